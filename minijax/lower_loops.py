# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: loop IR. Home: ref_compiler. In JAX: the lowering rules in jax/_src/lax/control_flow.

Lowering rules of the primitives that contain programs and run them more or less than once: scan,
while and cond become the steps Loop, While and Branch, whose bodies are the lowered programs. A
scan's arrays are read where they are, and its results stored where they stay.
"""

from math import prod

import numpy as np

from minijax.loop_ir import (
    Axis, AxisValue, Branch, Buffer, Const, Load, Loop, LoweringContext, Reduce, Store, While, ZERO,
    axis_index, body_of, buffers_written, convert, lanes_for, library_step, linear_sum, op, read,
    row_major, wide,
)

__all__ = [
    "lower_scan", "add_loop", "part_of", "store_all", "seen_by_body", "carries_of", "lower_while",
    "any_of", "advance", "lower_cond", "lower_cumulative", "lower_place", "AxisWalk",
]


# --- scan -----------------------------------------------------------------------------------------

def lower_scan(ctx, *values, reverse, length, jaxpr, num_consts, num_carry, unroll=1, **params):
    """A Loop of length // unroll turns that each do `unroll` steps, and the steps that are left."""
    if not ctx.is_native():
        return library_step(ctx, *values, reverse=reverse, length=length, jaxpr=jaxpr,
                            num_consts=num_consts, num_carry=num_carry, unroll=unroll, **params)
    consts, carry = values[:num_consts], values[num_consts:num_consts + num_carry]
    xs = values[num_consts + num_carry:]
    ys = [ctx.result(k) for k in range(num_carry, len(ctx.avals_out))]
    steps = min(max(1, unroll), max(1, length))

    def add_steps(body, carry, first, count):
        """Append `count` steps, of which the first has this number; return the carry after them."""
        for k in range(count):
            place = (first + k) * -1 + (length - 1) if reverse else first + k
            parts = [part_of(body, x, place) for x in xs]
            outs = body.lower_closed(jaxpr, [*consts, *carry, *parts])
            carry = outs[:num_carry]
            for y, value in zip(ys, outs[num_carry:]):
                store_all(body, y, value, place)
        return carry

    turns, rest = divmod(length, steps)
    if turns > 1:
        axis = Axis(turns)
        carry = add_loop(ctx, axis, jaxpr.jaxpr, num_consts, carry, ys,
                         lambda body, now: add_steps(body, now, axis_index(axis) * steps, steps))
    else:
        rest = length
    return [*add_steps(ctx, carry, ZERO + (length - rest), rest), *ys]


def add_loop(ctx, axis, jaxpr, num_consts, starts, ys, add_body):
    """Append a Loop whose body add_body(context, carry) makes; return the last carry."""
    body = LoweringContext(ctx)
    now = seen_by_body(ctx, body, jaxpr, num_consts, starts)
    carries = carries_of(ctx, body, starts, now, add_body(body, now))
    outputs = [following for _, _, following in carries] + ys
    ctx.emit(Loop(axis, body.program(outputs), carries, ctx.number))
    return now


def part_of(ctx, x, place):
    """x[place], for an index map `place` along the first axis."""
    part = Buffer(x.shape[1:], x.dtype)
    axis = Axis(part.size)
    load = Load(x, place * part.size + axis_index(axis))
    ctx.nest([axis], [load, Store(part, axis_index(axis), load)])
    return part


def store_all(ctx, out, value, place=ZERO):
    """Write a value into out[place], or into all of it."""
    size = 1 if isinstance(value, Const) else value.size
    axis = Axis(size)
    store = Store(out, place * size + axis_index(axis), read(value, axis_index(axis)))
    ctx.nest([axis], body_of([store]))


# --- Carries --------------------------------------------------------------------------------------

def seen_by_body(ctx, body, jaxpr, num_consts, starts):
    """What stands for each carry in a loop's body: a buffer, or its start if it never changes."""
    now = [start if jaxpr.outvars[k] is jaxpr.invars[num_consts + k] else
           Buffer(var.aval.shape, var.aval.dtype, var)
           for k, (start, var) in enumerate(zip(starts, ctx.eqn.outvars))]
    body.carried.update(b for b, start in zip(now, starts) if b is not start)
    return now


def carries_of(ctx, body, starts, now, results):
    """The triples of a loop's carries. Each needs memory of its own that the body fills."""
    free, carries = {b for step in body.steps for b in buffers_written(step)}, []
    for start, buffer, result in zip(starts, now, results):
        if buffer is start:
            continue
        if result not in free:
            copy = Buffer(buffer.shape, buffer.dtype)
            store_all(body, copy, result)
            result = copy
        free.discard(result)
        carries.append((ctx.as_buffer(start), buffer, result))
    return carries


# --- while ----------------------------------------------------------------------------------------

def lower_while(ctx, *values, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr, **params):
    """A While with two programs, which see the carries and constants of their own."""
    if not ctx.is_native():
        return library_step(ctx, *values, cond_nconsts=cond_nconsts, cond_jaxpr=cond_jaxpr,
                            body_nconsts=body_nconsts, body_jaxpr=body_jaxpr, **params)
    cond_consts, rest = values[:cond_nconsts], values[cond_nconsts:]
    body_consts, starts = rest[:body_nconsts], rest[body_nconsts:]
    condition, body = LoweringContext(ctx), LoweringContext(ctx)
    now = seen_by_body(ctx, body, body_jaxpr.jaxpr, body_nconsts, starts)
    condition.carried = body.carried
    holds, = condition.lower_closed(cond_jaxpr, [*cond_consts, *now])
    results = body.lower_closed(body_jaxpr, [*body_consts, *now])
    if cond_jaxpr.out_avals[0].ndim:
        holds = any_of(condition, holds)
        again, = body.lower_closed(cond_jaxpr, [*cond_consts, *now])
        results = [advance(body, again, old, new) for old, new in zip(now, results)]
    flag = condition.as_buffer(holds)
    carries = carries_of(ctx, body, starts, now, results)
    following = [f for _, _, f in carries]
    ctx.emit(While(condition.program([flag]), body.program(following), carries, ctx.number))
    return now


# With a condition for each example of a batch, the loop goes on while any of them holds, and a turn
# is a turn for those examples only. The axes of the condition are the first axes of every carry.

def any_of(ctx, holds):
    if not holds.size:
        return Const(False, bool)
    out = Buffer((), holds.dtype)
    axis = Axis(holds.size)
    load = Load(holds, axis_index(axis))
    found = Reduce("or", [axis], [load], load, lanes_for([axis]))
    ctx.nest([], [found, Store(out, ZERO, found)])
    return out


def advance(ctx, holds, old, new):
    """The new carry for the examples whose condition holds, the old one for others."""
    if old is new:
        return new
    out = Buffer(old.shape, old.dtype)
    axis = Axis(out.size)
    place = axis_index(axis)
    condition = Load(holds, place // max(1, out.size // max(1, holds.size)))
    ctx.nest([axis], body_of([Store(out, place, op("select", condition, read(new, place),
                                                   read(old, place)))]))
    return out


# --- cond -----------------------------------------------------------------------------------------

def lower_cond(ctx, index, *values, branches, **params):
    """A Branch; or, if its number is known, the program that it would run."""
    if not ctx.is_native():
        return library_step(ctx, index, *values, branches=branches, **params)
    if isinstance(index, Const):
        number = min(max(int(index.value), 0), len(branches) - 1)
        return ctx.lower_closed(branches[number], values)
    outs, programs = [ctx.result(k) for k in range(len(ctx.avals_out))], []
    for branch in branches:
        body = LoweringContext(ctx)
        for out, value in zip(outs, body.lower_closed(branch, values)):
            store_all(body, out, value)
        programs.append(body.program(outs))
    ctx.emit(Branch(index, programs, outs, ctx.number))
    return outs


# --- Running sums, argmax and argmin --------------------------------------------------------------

def lower_cumulative(primitive, start, combine):
    """Running sums and the like inside loops: combine(total, element) -> total, from start(dtype).

    Narrow numbers are combined as wider ones.
    """
    def lowering(ctx, x, *, axis, reverse):
        if ctx.outer is None or not ctx.is_native() or not isinstance(x, Buffer) or not x.size:
            return library_step(ctx, x, axis=axis, reverse=reverse)
        out, walk = ctx.result(), AxisWalk(ctx, x.shape, axis, 0, reverse)
        element = wide(walk.element(x))
        total = walk.carry(element.dtype)
        walk.start([(total, Const(start(element.dtype), element.dtype))])
        value = combine(walk.now(total), element)
        walk.turn([(total, value)], [Store(out, walk.place, convert(value, out.dtype))], [out])
        return out
    primitive.def_lowering(lowering)


def lower_place(primitive, comparison):
    """Where the first element is that no other is before, inside loops."""
    def lowering(ctx, x, *, axes, index_dtype):
        if ctx.outer is None or not ctx.is_native() or not isinstance(x, Buffer) or not x.size:
            return library_step(ctx, x, axes=axes, index_dtype=index_dtype)
        walk = AxisWalk(ctx, x.shape, axes[0], 1, False)
        new = wide(walk.element(x))
        best, where = walk.carry(new.dtype), walk.carry(index_dtype, ctx.eqn.outvars[0])
        walk.start([(best, wide(walk.first(x))), (where, Const(0, index_dtype))])
        if walk.axis.size == 0:
            return where[0]
        old = walk.now(best)
        better = op(comparison, new, old)
        if new.dtype.kind == "f":         # the first NaN is before all numbers
            better = op("or", better, op("and", op("is_nan", new), op("eq", old, old)))
        place = AxisValue(walk.index, index_dtype)
        walk.turn([(best, op("select", better, new, old)),
                   (where, op("select", better, place, walk.now(where)))], [], [])
        return where[1]
    primitive.def_lowering(lowering)


class AxisWalk:
    """A loop along one axis of an array whose turns go through all of the others."""

    def __init__(self, ctx, shape, axis, skipped, reverse):
        self.ctx, self.body, self.axis = ctx, LoweringContext(ctx), Axis(shape[axis] - skipped)
        self.shape = shape[:axis] + shape[axis + 1:]
        self.loops = Axis(prod(shape[:axis])), Axis(prod(shape[axis + 1:]))
        turn = axis_index(self.axis)
        self.index = turn * -1 + (shape[axis] - 1) if reverse else turn + skipped
        self.rows = linear_sum([(axis_index(self.loops[0]), prod(shape[axis:])),
                                (axis_index(self.loops[1]), 1)])
        self.place = self.rows + self.index * self.loops[1].size

    def carry(self, dtype, var=None):
        return tuple(Buffer(self.shape, np.dtype(dtype), v) for v in (None, var, None))

    def first(self, x):
        return Load(x, self.rows)

    def element(self, x):
        return Load(x, self.place)

    def now(self, carry):
        return Load(carry[1], row_major(self.loops))

    def start(self, values):
        stores = [Store(carry[0], row_major(self.loops), value) for carry, value in values]
        self.ctx.nest(self.loops, body_of(stores))

    def turn(self, values, stores, outputs):
        """Append the loop; a turn makes these next values of carries, and these stores."""
        stores = [*(Store(carry[2], row_major(self.loops), value) for carry, value in values),
                  *stores]
        self.body.nest(self.loops, body_of(stores))
        carries = [carry for carry, _ in values]
        program = self.body.program([*(carry[2] for carry in carries), *outputs])
        self.ctx.emit(Loop(self.axis, program, carries, self.ctx.number))
