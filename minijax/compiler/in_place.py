# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: XLA's buffer assignment and copy insertion.

An update of a part of an array is lowered to a copy and stores into it. In a loop that fills an
array, the copy would make each turn take as long as the array is large. So a copy of what nobody
reads later is left out, and the update changes the array where it is.
"""

from minijax.compiler.bodies import Builder, plain_load, rebuild
from minijax.compiler.dead_steps import body_program, has_calls
from minijax.loop_ir import (
    Axis, Branch, Buffer, Call, Const, Load, Loop, Nest, Product, Program, Store, While, all_nodes,
    buffers_read, buffers_written, is_fusible, nodes_read, programs_in, with_programs,
)

__all__ = [
    "update_in_place", "updated_in_place", "dying_copy", "put_last", "is_plain_copy",
    "reads_before_it_writes", "reads_where_it_writes", "read_first", "depending_on", "needed_for",
    "reads_its_own", "rename", "rename_in_step", "add_in_place", "sums_begun", "begun_with",
    "growing_sum", "is_made_of_rows", "fills_with_zeros", "copy_of",
]


# --- Copies that nobody needs ---------------------------------------------------------------------

def update_in_place(program):
    """Leave out copies in loops, inner loops first."""
    steps = []
    for step in program.steps:
        if programs_in(step):
            step = with_programs(step, [update_in_place(p) for p in programs_in(step)])
        is_loop = not isinstance(step, (Nest, Call, Branch)) and not has_calls(step)
        steps.append(updated_in_place(step) if is_loop else step)
    return Program(program.inputs, steps, program.outputs, program.eqns)


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

# A turn that adds a product to a carry first fills an array with zeros, adds rows to it, and then
# adds it to the carry. It can add the rows to a copy of the carry; and the copy is left out above.

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
    for step in body.steps:
        parts = growing_sum(step, body)
        if parts:
            total, base, result = parts
            kept = [s for s in body.steps if s is not step]
            steps = [new for s in kept for new in begun_with(base, result, s, total)]
            return sums_begun(Program(body.inputs, steps, body.outputs, body.eqns))
    return body_program(body)


def begun_with(base, result, step, total):
    """The steps for one that fills a sum with zeros, or with a product, or adds rows to it."""
    if total not in buffers_written(step):
        return [step]
    if fills_with_zeros(step, total):
        return [copy_of(base, result, step)]
    new = rename_in_step(step, {total: result})
    if not isinstance(new, Product):
        return [new]
    new.body[-1].combine = "add"
    return [copy_of(base, result, Nest([Axis(a.size) for a in step.axes], [])), new]


def growing_sum(step, body):
    """(sum, base, result) if a step does result = base + sum, and nobody else reads the sum."""
    if not isinstance(step, Nest) or len(step.body) != 4:
        return None
    *loads, add, store = step.body
    if not all(isinstance(n, Load) and n.index == step.order() and not n.guard and
               n.buffer.size == step.count() for n in loads):
        return None
    if getattr(add, "name", "") != "add" or set(add.args) != set(loads) or store.combine or \
            store.index != step.order():
        return None
    for total, base in (loads, loads[::-1]):
        if base.buffer in body.inputs and is_made_of_rows(total.buffer, step, body):
            return total.buffer, base.buffer, store.buffer
    return None


def is_made_of_rows(total, reader, body):
    """Whether a sum is filled with zeros, then only added to, read by one step; or a product."""
    users = [s for s in body.steps if total in buffers_read(s) or total in buffers_written(s)]
    if total in body.outputs or users[-1] is not reader:
        return False
    if len(users) != 3:
        return len(users) == 2 and isinstance(users[0], Product)
    zeros, rows, _ = users
    return fills_with_zeros(zeros, total) and isinstance(rows, Nest) and all(
        n.combine == "add" for n in rows.body if isinstance(n, Store)) and not any(
        isinstance(n, Load) and n.buffer is total for n in all_nodes(rows.body))


def fills_with_zeros(step, buffer):
    if not isinstance(step, Nest) or len(step.body) != 2 or buffer not in buffers_written(step):
        return False
    value, store = step.body
    return isinstance(value, Const) and value.value == 0 and not store.combine


def copy_of(base, result, like):
    """A nest with the loops of another that copies a buffer."""
    load = Load(base, like.order())
    return Nest(like.axes, [load, Store(result, like.order(), load)])
