# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: layout assignment, algebraic simplifier.

What only rearranges elements becomes arithmetic on indices, or another look at the same memory.
"""

from minijax.compiler.bodies import (
    MAX_NODES, has_short_indices, indices_in, inlining, is_nested, is_view, rebuild, replace_axes,
    simple_producers,
)
from minijax.compiler.dead_steps import drop_dead
from minijax.loop_ir import (
    Axis, Call, Load, Nest, Product, Program, Quotient, buffers_read, is_fusible, row_major,
    strides_of,
)
from minijax.lower_products import matrices

__all__ = [
    "inline_views", "product_of_views", "split_axes", "collect_cuts", "divided_axis", "is_short",
    "strided_operands", "transposed", "permutation_of", "is_same_memory", "reshaper",
]


# --- Views are index maps -------------------------------------------------------------------------

def inline_views(program):
    """Read through transposes, slices, broadcasts, constants … to where elements are stored."""
    views = {}
    producers = simple_producers(program.steps)
    load = inlining(views)
    steps = []
    for step in program.steps:
        new = step
        if isinstance(step, Nest) and any(b in views for b in buffers_read(step)):
            is_product = isinstance(step, Product)
            new = product_of_views(step, views) if is_product else rebuild(step, load)
        steps.append(new)
        if isinstance(new, Nest) and is_view(new) and is_short(new):
            store = new.body[-1]
            if producers.get(store.buffer) is step:
                views[store.buffer] = new
    steps = [split_axes(s) if is_fusible(s) else s for s in steps]
    return drop_dead(Program(program.inputs, steps, program.outputs, program.eqns))


def product_of_views(product, views):
    """The product with views as its operands, as far as BLAS can take them."""
    for b in dict.fromkeys(buffers_read(product)):
        if b in views:
            made = rebuild(product, inlining({b: views[b]}))
            product = product if matrices(made) is None else made
    return product


def split_axes(nest):
    """Two loops for one where index maps take quotients of it: then they need none.

    A loop over all elements of a matrix that reads a row becomes loops over rows and over columns.
    """
    cuts = {axis: {1, axis.size} for axis in nest.axes}
    for index in indices_in(nest.body):
        collect_cuts(index, cuts)
    values, axes = {}, []
    for axis in nest.axes:
        parts = [axis]
        if len(cuts[axis]) > 2 and is_nested(cuts[axis]):
            ordered = sorted(cuts[axis], reverse=True)
            parts = [Axis(a // b) for a, b in zip(ordered, ordered[1:])]
            values[axis] = row_major(parts)
        axes += parts
    return Nest(axes, replace_axes(nest.body, values)) if values else nest


def collect_cuts(index, cuts):
    """Add the numbers of turns at which quotients of a loop variable change."""
    for atom in index.terms:
        if isinstance(atom, Quotient):
            axis, divisor = divided_axis(atom)
            if axis in cuts and divisor < axis.size:      # otherwise the quotient is always 0
                cuts[axis].add(divisor)
            collect_cuts(atom.index, cuts)


def divided_axis(atom):
    """(axis, n) if an atom is axis // n, or (axis // (n / m)) % m; else (None, 0)."""
    if list(atom.index.terms.values()) != [1] or atom.index.offset:
        return None, 0
    inner, = atom.index.terms
    if isinstance(inner, Axis):
        return inner, atom.divisor
    axis, divisor = divided_axis(inner) if isinstance(inner, Quotient) else (None, 0)
    return axis, divisor * atom.divisor


def is_short(nest):
    """Whether reading through a view is cheap: few nodes, and index maps that are quick."""
    return len(nest.body) <= MAX_NODES // 8 and has_short_indices(nest)


# --- What memory already holds --------------------------------------------------------------------

def strided_operands(program):
    """Give calls transposed operands as strided views, and reshapes as the same memory."""
    producers = simple_producers(program.steps)
    steps = []
    for step in program.steps:
        if isinstance(step, Call):
            step.inputs = [transposed(b, producers) for b in step.inputs]
        elif is_same_memory(step, producers):
            load, store = step.body
            step = Call("reshape", reshaper(store.buffer.shape), [load.buffer], [store.buffer],
                        store.eqn)
        steps.append(step)
    return drop_dead(Program(program.inputs, steps, program.outputs, program.eqns))


def transposed(given, producers):
    nest = producers.get(given) if not isinstance(given, tuple) else None
    if nest is None or len(nest.body) != 2 or not isinstance(nest.body[0], Load):
        return given
    load, shape = nest.body[0], nest.body[1].buffer.shape
    permutation = permutation_of(load, nest.axes)
    if permutation is None or [a.size for a in nest.axes] != list(shape):
        return given
    return load.buffer, permutation


def permutation_of(load, axes):
    """The order in which loops go through the axes of the buffer, if they do just that."""
    source = load.buffer
    if (load.guard or load.index.offset or len(axes) != len(source.shape) or 1 in source.shape
            or set(load.index.terms) != set(axes)):
        return None
    strides = strides_of(source.shape)
    places = [strides.index(c) if (c := load.index.terms[a]) in strides else -1 for a in axes]
    sizes_agree = all(k >= 0 and source.shape[k] == a.size for k, a in zip(places, axes))
    return tuple(places) if sizes_agree and len(set(places)) == len(axes) else None


def is_same_memory(step, producers):
    if not isinstance(step, Nest) or len(step.body) != 2 or not isinstance(step.body[0], Load):
        return False
    load, store = step.body
    return (producers.get(store.buffer) is step and load.index == step.order()
            and load.buffer.size == store.buffer.size and not load.guard)


def reshaper(shape):
    return lambda x: x.reshape(shape)
