# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: input-output aliasing of donated buffers.

A donated argument is not needed after the call, so a result may be written over it.
"""

from minijax.compiler.bodies import rebuild
from minijax.compiler.dead_steps import has_calls
from minijax.loop_ir import Load, Nest, Program, Store, all_nodes, buffers_read, buffers_written

__all__ = [
    "usable_donations", "reuse_memory", "LARGE", "large_temporaries", "may_take_place",
    "reads_what_it_replaces", "written_over",
]


# --- Memory that is given away --------------------------------------------------------------------

def usable_donations(in_avals, out_avals, donated):
    """The numbers of donated arguments whose memory a result fits into, each result once."""
    free = [(a.shape, a.dtype) for a in out_avals]
    usable = []
    for number in donated:
        kind = in_avals[number].shape, in_avals[number].dtype
        if kind in free:
            free.remove(kind)
            usable.append(number)
    return tuple(usable)


def reuse_memory(program, donated):
    """Put results into the memory of the inputs `donated` and of temporaries, if that is safe."""
    for old in [*(program.inputs[number] for number in donated), *large_temporaries(program)]:
        new = next((b for b in program.outputs if may_take_place(program, b, old)), None)
        if new is not None:
            steps = [written_over(s, new, old) for s in program.steps]
            outputs = [old if b is new else b for b in program.outputs]
            program = Program(program.inputs, steps, outputs, program.eqns)
    return program


# Memory for arrays of so many elements often comes fresh from the system, page by page.
LARGE = 2 ** 15


def large_temporaries(program):
    """The arrays that nests read and steps of the program made."""
    made = {b for s in program.steps for b in buffers_written(s)}
    read = [b for s in program.steps if isinstance(s, Nest) for b in buffers_read(s)]
    return dict.fromkeys(b for b in read if b in made and b.size >= LARGE)


def may_take_place(program, new, old):
    """Whether `new` can be written over `old`: nobody reads an element of `old` after that."""
    if any(has_calls(s) and old in (*buffers_read(s), *buffers_written(s)) for s in program.steps):
        return False              # a call may know it by another name, as a reshape does
    if (new.shape, new.dtype) != (old.shape, old.dtype) or new in program.inputs \
            or old in program.outputs:
        return False
    users = [s for s in program.steps if new in (*buffers_read(s), *buffers_written(s))]
    writers = [s for s in users if new in buffers_written(s)]
    if not writers or not all(isinstance(s, Nest) for s in users):
        return False
    first = program.steps.index(writers[0])
    later = program.steps[first + 1:]
    return not any(old in buffers_read(s) for s in later) and (
        old not in buffers_read(writers[0]) or reads_what_it_replaces(writers[0], new, old))


def reads_what_it_replaces(nest, new, old):
    """Whether each turn of a nest reads just the element of `old` that it writes in `new`."""
    stores = [n for n in nest.body if isinstance(n, Store) and n.buffer is new]
    loads = [n for n in all_nodes(nest.body) if isinstance(n, Load) and n.buffer is old]
    store, *others = stores
    before = nest.body[:nest.body.index(store)]
    return (not others and not store.combine and nest.count() == new.size
            and all(n in before and n.index == store.index and not n.guard for n in loads))


def written_over(step, new, old):
    """The step with one buffer in place of another; stores replace what the buffer was full of."""
    if new not in (*buffers_read(step), *buffers_written(step)):
        return step
    nest = rebuild(step, lambda builder, buffer, *rest: builder.load(
        old if buffer is new else buffer, *rest))
    body = [Store(old, n.index, n.value, n.combine or "replace", n.eqn)
            if isinstance(n, Store) and n.buffer is new else n for n in nest.body]
    return type(nest)(nest.axes, body)
