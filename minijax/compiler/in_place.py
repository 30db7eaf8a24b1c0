# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: XLA's buffer assignment and copy insertion.

An update of a part of an array is lowered to a copy and stores into it. In a loop that fills an
array, the copy would make each turn take as long as the array is large, and so it would each of
many updates in a row. So a copy of what nobody reads later is left out, and the update changes the
array where it is.
"""

from minijax.compiler.bodies import Builder, plain_load, rebuild
from minijax.compiler.dead_steps import body_program, has_calls
from minijax.loop_ir import (
    Branch, Buffer, Call, Const, Dynamic, Load, Loop, Nest, Op, Product, Program, Reduce, Store,
    While, all_nodes, axes_in, buffers_read, buffers_written, index_maps_of, is_fusible, nodes_read,
    programs_in, with_programs,
)

__all__ = [
    "update_in_place", "updated_in_place", "dying_copy", "without_last_reads", "users_of",
    "put_last", "is_plain_copy", "reads_before_it_writes", "reads_where_it_writes", "read_first",
    "depending_on", "needed_for", "reads_its_own", "rename", "rename_in_step", "add_in_place",
    "sums_begun", "growing_sum", "sides_of_sum", "unconverted", "is_product", "is_made_of_rows",
    "fills_with_zeros", "goes_to_each_once", "is_fixed", "begun_with", "added", "copy_of",
]


# --- Copies that nobody needs ---------------------------------------------------------------------

def update_in_place(program):
    """Leave out copies: of carries, inner loops first, and of what nests made."""
    steps = []
    for step in program.steps:
        if programs_in(step):
            step = with_programs(step, [update_in_place(p) for p in programs_in(step)])
        is_loop = not isinstance(step, (Nest, Call, Branch)) and not has_calls(step)
        steps.append(updated_in_place(step) if is_loop else step)
    return without_last_reads(Program(program.inputs, steps, program.outputs, program.eqns))


def updated_in_place(loop):
    """The loop without copies of carries whose old value no step reads after the copy."""
    *condition, body = programs_in(loop)
    carries = loop.carries
    while (found := dying_copy(body, {now for _, now, _ in carries})) is not None:
        old, new, steps = found
        body = rename(Program(body.inputs, steps, body.outputs, body.eqns), {new: old})
        carries = [(start, now, old if f is new else f) for start, now, f in carries]
    made = with_programs(loop, [*condition, body])
    made.carries = carries
    return made


def dying_copy(body, nows):
    """(old, new, steps) if a nest copies old to new, and without it the steps do the same in old.

    `old` is a carry, or a buffer of the body's own, and nobody reads it later.
    """
    for copy in filter(is_plain_copy, body.steps):
        old, new = copy.body[0].buffer, copy.body[1].buffer
        is_ours = old in nows or old not in body.inputs and old not in body.outputs
        first = next((s for s in body.steps if s is not copy and new in buffers_written(s)), None)
        if not is_ours or first is None:
            continue
        steps = [part for s in body.steps for part in
                 ([s] if reads_before_it_writes(s, old, new, first) else read_first(s, old, new))]
        steps = put_last(steps, copy)
        place = steps.index(copy)
        if all(reads_before_it_writes(s, old, new, first) for s in steps[place + 1:]):
            return old, new, steps[:place] + steps[place + 1:]
    return None


def without_last_reads(program):
    """The program without copies that read a buffer last which only nests have used.

    These nests use the copy's memory. (A call may know its operand by another name.)
    """
    users, names, steps = users_of(program), {}, []
    for step in program.steps:
        old, new = (n.buffer for n in step.body) if is_plain_copy(step) else (None, None)
        *others, last = users.get(old, [None])
        if (last is step and users[new][0] is step and others
                and all(isinstance(s, Nest) for s in others)
                and old not in program.inputs and old not in program.outputs):
            names[old], users[new] = new, others + users[new][1:]
        else:
            steps.append(step)
    for old in reversed(names):
        names[old] = names.get(names[old], names[old])
    steps = [rename_in_step(s, names) if names.keys() & {*buffers_read(s), *buffers_written(s)}
             else s for s in steps]
    return Program(program.inputs, steps, program.outputs, program.eqns)


def users_of(body):
    """The steps that read or write each buffer."""
    users = {}
    for step in body.steps:
        for buffer in {*buffers_read(step), *buffers_written(step)}:
            users.setdefault(buffer, []).append(step)
    return users


def put_last(steps, copy):
    """The steps with a copy, and what depends on it, behind those that don't."""
    after, changed, used = [copy], set(buffers_written(copy)), set(buffers_read(copy))
    before = steps[:steps.index(copy)]
    for step in steps[len(before) + 1:]:
        written = buffers_written(step)
        if changed.isdisjoint([*buffers_read(step), *written]) and used.isdisjoint(written):
            before.append(step)
        else:
            after.append(step)
            changed.update(written)
            used.update(buffers_read(step))
    return before + after


def is_plain_copy(step):
    if not isinstance(step, Nest) or len(step.body) != 2 or not isinstance(step.body[0], Load):
        return False
    load, store = step.body
    return (not load.guard and not store.combine and load.index == store.index == step.order()
            and load.buffer.size == store.buffer.size == step.count()
            and load.buffer.dtype == store.buffer.dtype)


def reads_before_it_writes(step, old, new, first):
    """Whether a step never sees `old` changed if `new` is the same memory."""
    if old in buffers_written(step):
        return False
    if old not in buffers_read(step):
        return True
    if step is not first or not isinstance(step, Nest):
        return False
    return step.count() == 1 or reads_where_it_writes(step, old, new)


def reads_where_it_writes(nest, old, new):
    """Whether a nest reads of `old` only the element that it will write to `new`, each once."""
    stores = [n for n in nest.body if isinstance(n, Store) and n.buffer is new]
    if any((s.index - nest.order()).terms.keys() & set(nest.axes) for s in stores):
        return False
    loads = [n for n in all_nodes(nest.body) if isinstance(n, Load) and n.buffer is old]
    return all(n in nest.body and n.index == s.index for n in loads for s in stores)


def read_first(step, old, new):
    """The step, or two in its place: one reads `old` and computes, the next stores it in `new`."""
    if not is_fusible(step) or new not in buffers_written(step):
        return [step]
    stores = [n for n in step.body if isinstance(n, Store)]
    late = depending_on(new, step.body)
    last = [n for n in stores if n.buffer is new or n in late]
    values = depending_on(old, step.body) - late - {*stores}
    after = needed_for(last, step.body, values)
    kept = {n: Buffer(tuple(a.size for a in step.axes), n.dtype) for n in after if n in values}
    if len(kept) * step.count() >= old.size or reads_its_own(step, new):
        return [step]
    ends = [*kept, *(n for n in stores if n not in last)]
    to_memory = [Store(b, step.order(), n, None, n.eqn) for n, b in kept.items()]
    early = Nest(step.axes, needed_for(ends, step.body) + to_memory)
    return [early, rebuild(Nest(step.axes, after), plain_load, _FromMemory(kept, step.order()))]


def depending_on(buffer, body):
    """The nodes of a body whose values depend on what a buffer holds."""
    found = set()
    for node in body:
        if not found.isdisjoint(nodes_read(node)) or any(
                isinstance(n, Load) and n.buffer is buffer for n in all_nodes([node])):
            found.add(node)
    return found


def needed_for(ends, body, given=()):
    """The nodes of a body that some are computed from, and these, but nothing that is given."""
    found = {*ends}
    for node in reversed(body):
        if node in found and node not in given:
            found.update(nodes_read(node))
    return [n for n in body if n in found]


def reads_its_own(nest, new):
    """Whether a nest loads from a buffer, other than `new`, that it stores into."""
    written = {*buffers_written(nest)} - {new}
    return any(isinstance(n, Load) and n.buffer in written for n in all_nodes(nest.body))


class _FromMemory(Builder):
    """Copies a body, loading the values of some nodes from where they were kept."""

    def __init__(self, kept, order):
        super().__init__()
        self.kept, self.order = kept, order

    def copy_node(self, node, *rest):
        if node in self.kept:
            return self.load(self.kept[node], self.order, (), node.eqn)
        return super().copy_node(node, *rest)


def rename(program, names):
    """The program with other buffers in place of some."""
    steps = [rename_in_step(s, names) for s in program.steps]
    outputs = [names.get(b, b) for b in program.outputs]
    return body_program(Program(program.inputs, steps, outputs, program.eqns))


def rename_in_step(step, names):
    def new(buffer):
        return names.get(buffer, buffer)

    if isinstance(step, Nest):
        nest = rebuild(step, lambda builder, buffer, *rest: builder.load(new(buffer), *rest))
        for node in nest.body:
            if isinstance(node, Store):
                node.buffer = new(node.buffer)
        return nest
    made = with_programs(step, [rename(p, names) for p in programs_in(step)])
    if isinstance(step, Branch):
        made.index, made.outputs = new(step.index), [*map(new, step.outputs)]
    else:
        made.carries = [tuple(map(new, carry)) for carry in step.carries]
    return made


# --- Sums that grow -------------------------------------------------------------------------------

def add_in_place(program):
    """In loops, begin a sum with what it will be added to."""
    steps = []
    for step in program.steps:
        if programs_in(step):
            step = with_programs(step, [add_in_place(p) for p in programs_in(step)])
        if isinstance(step, (Loop, While)):
            *others, body = programs_in(step)
            step = with_programs(step, [*others, sums_begun(body)])
        steps.append(step)
    return Program(program.inputs, steps, program.outputs, program.eqns)


def sums_begun(body):
    users = users_of(body)
    for step in body.steps:
        parts = growing_sum(step, body, users)
        if parts:
            steps = begun_with(*parts, step, body, users)
            return sums_begun(Program(body.inputs, steps, body.outputs, body.eqns))
    return body_program(body)


def growing_sum(step, body, users):
    """(sum, base, result) if a step does result = base + sum, and nobody else reads the sum."""
    for total, base in sides_of_sum(step):
        if total in body.inputs or total in body.outputs or users[total][-1] is not step:
            continue
        made = users[total][:-1]
        if is_made_of_rows(total, made, users) or base in body.inputs and is_product(made):
            return total, base, step.body[-1].buffer
    return None


def sides_of_sum(step):
    """[(x, y), (y, x)] if a step adds all of the buffers x and y, element by element; or []."""
    store = step.body[-1] if isinstance(step, Nest) else None
    add = unconverted(store.value) if isinstance(store, Store) else None
    if not isinstance(add, Op) or add.name != "add" or store.combine:
        return []
    loads = [*map(unconverted, add.args)]
    if not all(isinstance(n, Load) and n.index == store.index == step.order() and not n.guard
               and n.buffer.size == step.count() and n.dtype == store.buffer.dtype for n in loads):
        return []
    x, y = (n.buffer for n in loads)
    return [] if x is y else [(x, y), (y, x)]


def unconverted(node):
    """The node that is converted, or the node itself."""
    return node.args[0] if isinstance(node, Op) and node.name == "convert" else node


def is_product(made):
    return len(made) == 1 and isinstance(made[0], Product)


def is_made_of_rows(total, made, users):
    """Whether steps fill a sum with zeros, and then only add to it, or set each element once."""
    zeros, *rows = made
    return bool(rows) and fills_with_zeros(zeros, total, users) and all(
        is_fusible(s) and buffers_written(s) == [total] and
        (s.body[-1].combine == "add" or s is rows[0] and goes_to_each_once(s.body[-1], s)) and
        not any(isinstance(n, Load) and n.buffer is total for n in all_nodes(s.body))
        for s in rows)


def fills_with_zeros(step, buffer, users):
    """Whether a step writes zeros to all of a buffer, or copies another that one did that to."""
    if is_plain_copy(step):
        source = step.body[0].buffer
        writers = [s for s in users[source] if source in buffers_written(s)]
        return len(writers) == 1 and fills_with_zeros(writers[0], source, users)
    if not isinstance(step, Nest) or len(step.body) != 2 or buffer not in buffers_written(step):
        return False
    value, store = step.body
    return isinstance(value, Const) and value.value == 0 and not store.combine


def goes_to_each_once(store, nest):
    """Whether the turns of a nest's loops all store to different places."""
    steps = {a: c for a, c in store.index.terms.items() if a in nest.axes}
    begins = [a for a in store.index.terms if a not in steps]
    if not all(isinstance(a, Dynamic) and is_fixed(a.node, nest.axes) for a in begins):
        return False
    reach = 0
    for axis in sorted(nest.axes, key=lambda a: steps.get(a, 0)):
        if axis.size > 1 and steps.get(axis, 0) <= reach:
            return False
        reach += steps.get(axis, 0) * (axis.size - 1)
    return True


def is_fixed(node, axes):
    """Whether a node has the same value in all turns of the loops."""
    return not isinstance(node, Reduce) and all(is_fixed(n, axes) for n in nodes_read(node)) and \
        not any(a in axes for index in index_maps_of(node) for a in axes_in(index))


def begun_with(total, base, result, reader, body, users):
    """The steps with the result begun as the base, and what made the sum added to it.

    If nests make the base for nobody but the reader, they make it in the result's memory.
    """
    *makers, last = users[base]
    moves = base not in body.inputs + body.outputs and last is reader and all(
        isinstance(s, Nest) and base in buffers_written(s) for s in makers)
    rows = [added(s, total, result) for s in users[total][:-1]
            if not fills_with_zeros(s, total, users)]
    steps = []
    for step in body.steps:
        if step is reader:
            steps += rows if moves else [copy_of(base, result, reader), *rows]
        elif moves and base in buffers_written(step):
            steps.append(rename_in_step(step, {base: result}))
        elif total not in buffers_written(step):
            steps.append(step)
    return steps


def added(step, total, result):
    """The step with stores that add to the result, where it was the sum that it stored in."""
    step = rename_in_step(step, {total: result})
    step.body[-1].combine = "add"
    return step


def copy_of(base, result, like):
    """A nest with the loops of another that copies a buffer."""
    load = Load(base, like.order())
    return Nest(like.axes, [load, Store(result, like.order(), load)])
