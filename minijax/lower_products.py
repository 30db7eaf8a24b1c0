# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: loop IR. Home: ref_compiler. In JAX: XLA's DotThunk, and Eigen behind it.

Products of matrices. Small ones are nests like any other, which fuse with what stands around them;
of large ones BLAS knows how to keep blocks in caches, and a Product is what it is called for.
"""

from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from minijax.loop_ir import (
    Axis, Buffer, COMPLEX, Const, Index, Load, NARROW, Product, Reduce, Store, axes_in, axis_index,
    body_of, combined_step, convert, flat_index, index_maps_of, join, linear_sum, op, parts_of,
    read, reduce_in_register, row_major, strides_of,
)

__all__ = [
    "MIN_PRODUCT", "MIN_SUM", "lower_product", "add_product", "complex_product", "is_for_blas",
    "ProductAxes", "transposed", "product_nest", "add_up_rows", "product_step", "converted",
    "in_groups", "stride_of_group", "lies_in_rows", "is_regular", "Matrix", "matrices", "others_in",
    "matrix_of",
]


# --- Which way ------------------------------------------------------------------------------------

# BLAS is called for matrices of so many multiplications, and sums of so many terms.
MIN_PRODUCT, MIN_SUM = 2 ** 12, 8


def lower_product(ctx, lhs, rhs, dimension_numbers):
    """A step for a product, a Product or a nest; None if its dtypes are for NumPy."""
    out, = ctx.avals_out
    if not ctx.is_native():
        return None
    lhs, rhs, out = ctx.as_buffer(lhs), ctx.as_buffer(rhs), ctx.result()
    if out.dtype in COMPLEX and not is_for_blas(
            ProductAxes(lhs.shape, rhs.shape, dimension_numbers), out.dtype):
        complex_product(ctx, lhs, rhs, dimension_numbers, out)
    elif out.dtype in NARROW or out.dtype == bool:      # summed in a wider dtype
        total = Buffer(out.shape, NARROW.get(out.dtype, np.dtype(np.int32)))
        add_product(ctx, lhs, rhs, dimension_numbers, total)
        combined_step(ctx, out, lambda total: convert(total, out.dtype), [total])
    else:
        add_product(ctx, lhs, rhs, dimension_numbers, out)
    return out


def add_product(ctx, lhs, rhs, dimension_numbers, out):
    """Append the steps of a product in the dtype of `out`."""
    lhs, rhs = (converted(ctx, x, out.dtype) if x.dtype in NARROW else x for x in (lhs, rhs))
    axes = ProductAxes(lhs.shape, rhs.shape, dimension_numbers)
    make = product_step if is_for_blas(axes, out.dtype) else product_nest
    make(ctx, lhs, rhs, axes, out)


def complex_product(ctx, lhs, rhs, dimension_numbers, out):
    """Append (A + iB)(C + iD) = AC - BD + i(AD + BC), four products of real numbers."""
    part = np.finfo(out.dtype).dtype

    def parts(x):
        made = [Buffer(x.shape, part) for _ in range(2)]
        for k, buffer in enumerate(made):
            combined_step(ctx, buffer, lambda v: parts_of(convert(v, out.dtype))[k], [x])
        return made

    totals = [Buffer(out.shape, part) for _ in range(4)]
    for total, (x, y) in zip(totals, product(parts(lhs), parts(rhs))):
        add_product(ctx, x, y, dimension_numbers, total)
    combined_step(ctx, out, lambda ac, ad, bc, bd: join(op("sub", ac, bd), op("add", ad, bc)),
                  totals)


def is_for_blas(axes, dtype):
    m, n, k = (prod(a.size for a in group) for group in (axes.lhs_free, axes.rhs_free, axes.sums))
    return dtype.kind in "fc" and m * n * k >= MIN_PRODUCT and k >= MIN_SUM and m * n > 1


class ProductAxes:
    """The loops of a product: batch, free axes of each operand, and those that are summed over."""

    def __init__(self, lhs_shape, rhs_shape, dimension_numbers):
        (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = dimension_numbers
        self.lhs, self.rhs = [Axis(n) for n in lhs_shape], [Axis(n) for n in rhs_shape]
        for i, j in zip((*lhs_sum, *lhs_batch), (*rhs_sum, *rhs_batch)):
            self.rhs[j] = self.lhs[i]
        self.batch, self.sums = [self.lhs[i] for i in lhs_batch], [self.lhs[i] for i in lhs_sum]
        self.lhs_free = [a for a in self.lhs if a not in self.rhs]
        self.rhs_free = [a for a in self.rhs if a not in self.lhs]

    def row(self):
        """The loop along neighbours in memory of an operand, if it is not summed over."""
        for axes in (self.rhs, self.lhs):
            long = [a for a in axes if a.size != 1]
            if long and long[-1] not in self.sums and long[-1] not in self.batch:
                return long[-1]
        return None

    def turned(self, ctx, lhs, rhs):
        """The operands; if the sum runs along rows, one from outside the loop is transposed there.

        Then rows are added up, which needs no sum across the lanes of a vector.
        """
        operands, loops = [lhs, rhs], [self.lhs, self.rhs]
        for k, (x, axes) in enumerate(zip(operands, loops)):
            home = ctx.home_of(x)
            free = [a for a in axes if a not in self.sums and a not in self.batch]
            if home is ctx or not free or not self.sums or not self.runs_along_sum():
                continue
            turned = [*(a for a in axes if a in self.batch), *self.sums, *free]
            operands[k] = transposed(home, x, [axes.index(a) for a in turned])
            axes[:] = turned
        return operands

    def runs_along_sum(self):
        return self.row() is None

    def term(self, lhs, rhs, dtype, values={}):
        """The node of a product of two elements."""
        factors = []
        for operand, axes in ((lhs, self.lhs), (rhs, self.rhs)):
            place = flat_index([values.get(a, axis_index(a)) for a in axes], operand.shape)
            factors.append(convert(read(operand, place), dtype))
        return op("mul", *factors)


def transposed(ctx, x, permutation):
    """A copy of an array with its axes in another order."""
    out = Buffer(tuple(x.shape[k] for k in permutation), x.dtype)
    axes = [Axis(n) for n in out.shape]
    place = [axis_index(axes[permutation.index(k)]) for k in range(len(axes))]
    load = Load(x, flat_index(place, x.shape))
    ctx.nest(axes, [load, Store(out, row_major(axes), load)])
    return out


# --- Loops of our own -----------------------------------------------------------------------------

def product_nest(ctx, lhs, rhs, axes, out):
    """Append loops of our own for a product."""
    free = [*axes.batch, *axes.lhs_free, *axes.rhs_free]
    lhs, rhs = axes.turned(ctx, lhs, rhs)
    if not axes.sums or any(a.size == 0 for a in axes.sums) or axes.runs_along_sum():
        term = axes.term(lhs, rhs, out.dtype)
        if axes.sums:
            reduce_in_register(ctx, "add", out, free, axes.sums, term)
        else:
            ctx.nest(free, body_of([Store(out, row_major(free), term)]))
    else:
        add_up_rows(ctx, out, lhs, rhs, axes, free)


def add_up_rows(ctx, out, lhs, rhs, axes, free):
    """out[m, :] += lhs[m, k] · rhs[k, :], some k at a time: then a result is stored less often."""
    *sums, last = axes.sums
    some = Axis(max(c for c in range(1, 9) if last.size % c == 0))
    rest = Axis(last.size // some.size)
    term = axes.term(lhs, rhs, out.dtype, {last: axis_index(rest) * some.size + axis_index(some)})
    total = Reduce("add", [some], body_of([term]), term, 1)
    place, inner = row_major(free), axes.row()
    if not sums and rest.size == 1:
        ctx.nest(free, [total, Store(out, place, total)])
        return
    start = [Axis(a.size) for a in free]
    zero = Const(0, out.dtype)
    ctx.nest(start, [zero, Store(out, row_major(start), zero)])
    loops = [*(a for a in free if a is not inner), *sums, rest, inner]
    ctx.nest(loops, [total, Store(out, place, total, combine="add")])


# --- Products for BLAS ----------------------------------------------------------------------------

def product_step(ctx, lhs, rhs, axes, out):
    """Append a Product, with one loop for all axes of a kind."""
    groups = axes.batch, axes.lhs_free, axes.rhs_free, axes.sums
    b, m, n, k = (Axis(prod(a.size for a in group)) for group in groups)
    left = in_groups(ctx, converted(ctx, lhs, out.dtype), axes.lhs,
                     [axes.batch, axes.lhs_free, axes.sums], [b, m, k])
    right = in_groups(ctx, converted(ctx, rhs, out.dtype), axes.rhs,
                      [axes.batch, axes.sums, axes.rhs_free], [b, k, n],
                      in_rows=ctx.home_of(rhs) is not ctx)
    value = op("mul", left, right)
    total = Reduce("add", [k], [left, right, value], value, 1)
    ctx.nest([b, m, n], [total, Store(out, row_major([b, m, n]), total)], Product)


def converted(ctx, x, dtype):
    """An operand in the dtype of the result."""
    if x.dtype == dtype:
        return x
    out = Buffer(x.shape, dtype)
    combined_step(ctx, out, lambda v: convert(v, dtype), [x])
    return out


def in_groups(ctx, x, axes, groups, loops, in_rows=False):
    """The load of an operand's element in loops that each go through a whole group of its axes.

    The operand is copied, in the outermost program that has it, if its order in memory does not
    allow that; or if its rows have to lie `in_rows`: BLAS is slow with a right operand of columns.
    """
    strides, sizes = [stride_of_group(x, axes, g) for g in groups], [a.size for a in loops[1:]]
    if None in strides or not is_regular(strides[1:], sizes) or (
            in_rows and not lies_in_rows(strides[1:], sizes)):
        turned = [a for group in groups for a in group]
        x = transposed(ctx.home_of(x), x, [axes.index(a) for a in turned])
        strides = [stride_of_group(x, turned, group) for group in groups]
    return Load(x, linear_sum([(axis_index(a), s) for a, s in zip(loops, strides)]))


def stride_of_group(x, axes, group):
    """The distance in memory between neighbours of a group of axes; None if they are no row."""
    group = [a for a in group if a.size != 1]
    places = [axes.index(a) for a in axes if a in group]
    if not group:
        return 0
    between = axes[places[0]:places[-1] + 1]
    if [a for a in between if a.size != 1] != group:
        return None
    return strides_of(x.shape)[places[-1]]


def lies_in_rows(strides, sizes):
    """Whether a matrix lies in memory row by row, though perhaps with gaps in between."""
    return (sizes[1] == 1 or strides[1] == 1) and (sizes[0] == 1 or strides[0] >= sizes[1])


def is_regular(strides, sizes):
    """Whether a matrix lies in memory row by row or column by column."""
    return lies_in_rows(strides, sizes) or lies_in_rows(strides[::-1], sizes[::-1])


# --- What BLAS sees -------------------------------------------------------------------------------

class Matrix(NamedTuple):
    """Where a matrix begins in a buffer, its sizes, and the distances between neighbours."""

    buffer: Buffer
    place: Index
    sizes: tuple
    strides: tuple

    def in_rows(self):
        return lies_in_rows(self.strides, self.sizes)


def matrices(product):
    """The left, the right operand and the result of each turn of a product's first loop.

    None if BLAS can't take them, as after a view of an operand was put in the operand's place.
    """
    (_, m, n), total, store = product.axes, *product.body[-2:]
    k, = total.axes
    left, right = total.value.args
    fixed = [i for node in others_in(product) for i in index_maps_of(node)]
    if not all(isinstance(x, Load) and not x.guard for x in (left, right)) or any(
            a in (m, n, k) for index in fixed for a in axes_in(index)):
        return None
    found = matrix_of(left, m, k), matrix_of(right, k, n), matrix_of(store, m, n)
    return None if None in found else found


def others_in(product):
    """The nodes of a product that compute where its operands begin."""
    total, store = product.body[-2:]
    known = {*total.value.args, total.value, total, store}
    return [node for node in [*product.body, *total.body] if node not in known]


def matrix_of(node, rows, columns):
    rest = Index({a: c for a, c in node.index.terms.items() if a not in (rows, columns)},
                 node.index.offset)
    sizes = rows.size, columns.size
    strides = tuple(node.index.terms.get(a, 0) for a in (rows, columns))
    if any(a in (rows, columns) for a in axes_in(rest)) or not is_regular(strides, sizes):
        return None
    return Matrix(node.buffer, rest, sizes, strides)
