# Exported from notebooks/ref_bodies.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: loop IR. Home: ref_bodies. In JAX: XLA's sort thunk.

Sorting in loop IR, for loops that a call of NumPy would take out of machine code. Runs of 1, 2, 4,
… elements are merged in pairs: a merge is a loop whose carries are two places to read from.
"""

from functools import partial
from math import prod

import numpy as np

from minijax.loop_ir import (
    Axis, AxisValue, Buffer, COMPLEX, Const, Dynamic, Index, Load, Loop, LoweringContext, Op,
    Reduce, Store, ZERO, axis_index, body_of, const_like, dynamic_index, lanes_for, library_step,
    op, parts_of, wide,
)

__all__ = [
    "lower_sort", "lower_top_k", "stays_in_loop", "can_be_loops", "sort_rows", "for_each_row",
    "FEW", "find_largest", "rising_number", "merge_runs", "merge_turn", "is_less", "comes_before",
    "falling_key",
]


# --- Lowering rules -------------------------------------------------------------------------------

def lower_sort(ctx, *values, dimension, num_keys, **params):
    """Sort rows together, by the first `num_keys` of the operands; NaN comes last."""
    if not stays_in_loop(ctx):
        return library_step(ctx, *values, dimension=dimension, num_keys=num_keys, **params)
    outs = [ctx.result(k) for k in range(len(values))]
    columns = [lambda place, number, x=x: Load(x, place) for x in map(ctx.as_buffer, values)]
    sort_rows(ctx, outs[0].shape, dimension, columns, num_keys, list(enumerate(outs)))
    return outs


def lower_top_k(ctx, x, *, k, axis):
    """Sort elements and their places by falling keys, and keep the first k; or look for a few."""
    few = k <= FEW and x.dtype.itemsize <= 4
    if k == 0 or not (can_be_loops(ctx) if few else stays_in_loop(ctx)):
        return library_step(ctx, x, k=k, axis=axis)
    x, outs = ctx.as_buffer(x), [ctx.result(0), ctx.result(1)]
    if few:
        for_each_row(ctx, x.shape, axis, outs, partial(find_largest, x, outs, k, x.shape[axis]))
        return outs
    columns = [lambda place, number: falling_key(Load(x, place)),
               lambda place, number: Load(x, place),
               lambda place, number: AxisValue(number, np.int32)]
    sort_rows(ctx, x.shape, axis, columns, 1, [(1, outs[0]), (2, outs[1])])
    return outs


def stays_in_loop(ctx):
    """At the top of a program NumPy sorts faster; in a loop, Python would have to go round."""
    return ctx.outer is not None and can_be_loops(ctx)


def can_be_loops(ctx):
    """Whether there is something to sort, of types that machine code has."""
    return ctx.is_native() and ctx.avals_in[0].ndim > 0 and all(
        prod(a.shape) for a in ctx.avals_in)


# --- Rows -----------------------------------------------------------------------------------------

def sort_rows(ctx, shape, axis, columns, num_keys, outs):
    """Sort `columns` along an axis, and store the first elements of column c in `out`: (c, out).

    A column is a function of an element's place in memory, and its number in the row -> node.
    """
    def add_row(body, place):
        along = Axis(shape[axis])
        nodes = [column(place(axis_index(along), along.size), axis_index(along))
                 for column in columns]
        runs = [Buffer((along.size,), node.dtype) for node in nodes]
        stores = [Store(run, axis_index(along), node) for run, node in zip(runs, nodes)]
        body.nest([along], body_of(stores))
        runs = merge_runs(body, runs, num_keys)
        for column, out in outs:
            along = Axis(out.shape[axis])
            load = Load(runs[column], axis_index(along))
            body.nest([along], [load, Store(out, place(axis_index(along), along.size), load)])

    for_each_row(ctx, shape, axis, [out for _, out in outs], add_row)


def for_each_row(ctx, shape, axis, outs, add_row):
    """Append a loop over all rows along an axis, whose body add_row(context, place) makes.

    place(k, size) is where element k of the row is in an array with rows of this size.
    """
    inner, rows = prod(shape[axis + 1:]), Axis(prod(shape) // shape[axis])
    body = LoweringContext(ctx) if rows.size > 1 else ctx
    row = axis_index(rows)
    add_row(body, lambda k, size: row // inner * (size * inner) + row % inner + k * inner)
    if rows.size > 1:
        ctx.emit(Loop(rows, body.program(outs), [], ctx.number))


# --- A few of the largest -------------------------------------------------------------------------

# So many are found by looking for the largest again and again, which a vector unit does well.
FEW = 16


def find_largest(x, outs, k, size, ctx, place):
    """Append a loop that finds the largest key below the one before, k times.

    A key is an integer of 64 bits: above the element's, falling upwards; below, its place.
    """
    along, turn = Axis(size), Axis(k)
    index = axis_index(along)
    # no key is the largest integer, below which the first one is looked for
    rising, first = rising_number(Load(x, place(index, size))), Const(2 ** 32 - 2, np.int64)
    number = op("sub", first, AxisValue(index, np.int64))
    keys = Buffer((size,), np.dtype(np.int64))
    key = op("or", op("shift_left", rising, Const(32, np.int64)), number)
    ctx.nest([along], body_of([Store(keys, index, key)]))

    body = LoweringContext(ctx)
    start, now, following = (Buffer((), np.dtype(np.int64)) for _ in range(3))
    ctx.nest([], body_of([Store(start, ZERO, Const(np.iinfo(np.int64).max, np.int64))]))
    inner = Axis(size)
    key, limit = Load(keys, axis_index(inner)), Load(now, ZERO)
    value = op("select", op("lt", key, limit), key, Const(np.iinfo(np.int64).min, np.int64))
    best = Reduce("max", [inner], body_of([value]), value, lanes_for([inner]))
    body.nest([], body_of([Store(following, ZERO, best)]))
    low = op("and", Load(following, ZERO), Const(2 ** 32 - 1, np.int64))
    found = op("sub", first, low)
    there, at = place(axis_index(turn), k), dynamic_index(found, 0, size - 1)
    body.nest([], body_of([Store(outs[0], there, Load(x, place(at, size))),
                           Store(outs[1], there, Op("convert", (found,), np.int32))]))
    ctx.emit(Loop(turn, body.program([following, *outs]), [(start, now, following)]))


def rising_number(x):
    """An int64 in -2³¹ … 2³¹ - 1 that rises with a number of at most 32 bits."""
    if x.dtype.kind not in "bui":
        return op("not", Op("convert", (falling_key(x),), np.int64))
    number = Op("convert", (x,), np.int64)
    return op("sub", number, Const(2 ** 31, np.int64)) if x.dtype == np.uint32 else number


# --- Merging --------------------------------------------------------------------------------------

def merge_runs(ctx, runs, num_keys):
    """Append a loop that merges runs of 1 element, then of 2, 4, …; return the sorted buffers."""
    size = runs[0].size
    passes, turn = Axis((size - 1).bit_length()), Axis(size)
    if passes.size == 0:
        return runs
    now, following = ([Buffer((size,), run.dtype) for run in runs] for _ in range(2))
    one_pass, body = LoweringContext(ctx), LoweringContext(ctx)
    places = [[Buffer((), np.dtype(np.int64)) for _ in range(2)] for _ in range(3)]
    zero = Const(0, np.int64)
    one_pass.nest([], [zero, *(Store(b, ZERO, zero) for b in places[0])])
    body.nest([], merge_turn(now, following, places[1], places[2], passes, turn, num_keys))
    carries = list(zip(*places))
    one_pass.emit(Loop(turn, body.program([*places[2], *following]), carries))
    carries = list(zip(runs, now, following))
    ctx.emit(Loop(passes, one_pass.program(following), carries, ctx.number))
    return now


def merge_turn(runs, merged, places, next_places, passes, turn, num_keys):
    """The body that writes one element: the lesser of those at two places, of equals the left."""
    size, one = Const(runs[0].size, np.int64), Const(1, np.int64)
    number = AxisValue(axis_index(turn), np.int64)
    width = op("shift_left", one, AxisValue(axis_index(passes), np.int64))
    in_pair = op("and", number, op("sub", op("shift_left", width, one), one))
    first = op("sub", number, in_pair)
    middle = op("min", op("add", first, width), size)
    end = op("min", op("add", middle, width), size)
    begins = op("eq", in_pair, const_like(in_pair, 0))
    left, right = (op("select", begins, start, Load(place, ZERO))
                   for start, place in zip((first, middle), places))

    def element(run, place):
        last = run.size - 1
        return Load(run, Index({Dynamic(op("min", place, const_like(place, last)), 0, last): 1}))

    lefts, rights = ([element(run, place) for run in runs] for place in (left, right))
    is_less_right = is_less(rights[:num_keys], lefts[:num_keys])
    takes_right = op("and", op("lt", right, end), op("or", op("ge", left, middle), is_less_right))
    stores = [Store(out, axis_index(turn), op("select", takes_right, y, x))
              for out, x, y in zip(merged, lefts, rights)]
    step = Op("convert", (takes_right,), np.int64)
    following = op("add", left, op("sub", one, step)), op("add", right, step)
    stores += [Store(place, ZERO, value) for place, value in zip(next_places, following)]
    return body_of(stores)


# --- Order ----------------------------------------------------------------------------------------

def is_less(xs, ys):
    """Whether some keys stand before others: the first that differ decide."""
    xs, ys = ([part for v in values for part in (parts_of(v) if v.dtype in COMPLEX else [wide(v)])]
              for values in (xs, ys))
    less = comes_before(xs[-1], ys[-1])
    for x, y in zip(xs[-2::-1], ys[-2::-1]):
        less = op("or", comes_before(x, y), op("and", op("not", comes_before(y, x)), less))
    return less


def comes_before(x, y):
    """x < y, where NaN is larger than all numbers."""
    if x.dtype.kind != "f":
        return op("lt", x, y)
    return op("and", op("eq", x, x), op("not", op("le", y, x)))


def falling_key(x):
    """An integer (or bool) that falls where x rises: -0 is less than 0, NaN more than infinity."""
    x = wide(x)
    if x.dtype.kind in "bui":
        return op("not", x)
    bits = Op("bitcast", (x,), np.dtype(f"i{x.dtype.itemsize}"))
    most = const_like(bits, np.iinfo(bits.dtype).max)
    is_negative = op("lt", bits, const_like(bits, 0))
    return op("not", op("select", is_negative, op("xor", bits, most), bits))
