# Exported from notebooks/ref_reductions.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives. Home: ref_reductions. In JAX: jax/_src/lax/control_flow/loops.py.

Running sums, products and extremes along one axis, from the front or (reverse) from the back.
"""

import operator
from functools import partial

import numpy as np

from minijax import complex_pairs, dtypes
from minijax.avals import typeof
from minijax.core import Primitive
from minijax.loop_ir import const_like, in_pairs, op
from minijax.lower_loops import lower_cumulative
from minijax.primitives.elementwise import (
    FLOAT, NUMERIC, add, eq, exp, full_like, is_finite, largest, max as maximum, min as minimum,
    mul, select, share_of_choice, smallest, sub, zeros_like,
)
from minijax.primitives.structural import concatenate, pad, rev, slice_in_dim
from minijax.rules import (
    Zero, check_dtypes, const, def_batch_along, def_checked_impl, def_not_linear, deflinear,
    is_zero,
)

__all__ = [
    "def_cumulative_aval", "accumulate", "of_numbers", "scan_pairs", "interleave",
    "def_jvp_by_scan", "primal_and_tangent", "cumsum_p", "cumsum", "cumprod_p", "cumprod",
    "product_rule", "choice_by", "cummax_p", "cummax", "cummin_p", "cummin", "cumlogsumexp_p",
    "cumlogsumexp", "recurrence_terms", "exp_of_difference", "compose_recurrences", "log_of_sum",
]


# --- What they share ------------------------------------------------------------------------------

def def_cumulative_aval(primitive, accepts):
    """The operand's type; the axis is not negative and in bounds."""
    def abstract_eval(x, *, axis, reverse):
        check_dtypes(primitive, [x], accepts)
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{primitive} got axis {axis}, out of bounds for shape {x.shape}; "
                             "negative axes are not allowed here")
        return x
    primitive.def_abstract_eval(abstract_eval)


def accumulate(ufunc):
    """accumulate(x, axis, reverse) by a ufunc: narrow floats accumulate in float32."""
    def function(x, *, axis, reverse):
        dtype = dtypes.computed_in.get(x.dtype, x.dtype)
        x_in_order = np.flip(x, axis) if reverse else x
        out = ufunc.accumulate(x_in_order, axis=axis, dtype=dtype).astype(x.dtype, copy=False)
        return np.ascontiguousarray(np.flip(out, axis)) if reverse else out
    return function


def of_numbers(name, of_pairs):
    """combine(total, element) for running sums and the like: one of OPS, or a function of pairs."""
    def combine(x, y):
        return in_pairs(of_pairs, x, y) if x.dtype.kind == "c" else op(name, x, y)
    return combine


# --- Their derivatives ----------------------------------------------------------------------------

def scan_pairs(combine, pair, axis):
    """All prefixes x₀, x₀∘x₁, x₀∘x₁∘x₂, … along an axis, for an associative ∘ on pairs of arrays.

    combine(left, right) -> pair. Neighbours are combined and scanned, which gives every second
    prefix; one more combination gives the others: 2n in all, in 2 log n steps that work on whole
    arrays. The grouping is that of lax.associative_scan, so that tied extremes share as in JAX.
    """
    n = typeof(pair[0]).shape[axis]
    if n < 2:
        return pair
    part = lambda start, stop, step: [slice_in_dim(v, start, stop, step, axis) for v in pair]
    odd = scan_pairs(combine, combine(part(0, n - 1, 2), part(1, n, 2)), axis)
    before = [slice_in_dim(v, 0, (n - 1) // 2, axis=axis) for v in odd]
    even = combine(before, part(2, n, 2)) if n > 2 else part(0, 0, 1)
    return [interleave(concatenate([first, e], axis), o, axis)
            for first, e, o in zip(part(0, 1, 1), even, odd)]


def interleave(even, odd, axis):
    """even[0], odd[0], even[1], odd[1], …"""
    def spread(x, before, after):
        config = [(0, 0, 0)] * typeof(x).ndim
        config[axis] = (before, after, 1)
        return pad(x, const(x, 0), config)
    longer = typeof(even).shape[axis] - typeof(odd).shape[axis]
    return add(spread(even, 0, 1 - longer), spread(odd, 1, longer))


def def_jvp_by_scan(primitive, pairs_of, combine):
    """A tangent that is the second part of a scan over the pairs pairs_of(x, t, out, axis)."""
    def jvp(primals, tangents, *, axis, reverse):
        (x,), (t,) = primals, tangents
        out = primitive.bind(x, axis=axis, reverse=reverse)
        if is_zero(t):
            return out, Zero.like(out)
        turn = (lambda v: rev(v, [axis])) if reverse else (lambda v: v)
        pair = pairs_of(turn(x), turn(t), turn(out), axis)
        return out, turn(scan_pairs(combine, pair, axis)[1])
    primitive.def_jvp(jvp)


def primal_and_tangent(x, t, out, axis):
    return [x, t]


# --- Running sums and products --------------------------------------------------------------------

cumsum_p = Primitive("cumsum")

def cumsum(operand, axis=0, reverse=False):
    """The sums of all elements up to each one along an axis."""
    return cumsum_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))

def_checked_impl(cumsum_p, accumulate(np.add))
def_cumulative_aval(cumsum_p, NUMERIC)
deflinear(cumsum_p, lambda ct, x, *, axis, reverse: cumsum(ct, axis, not reverse))
def_batch_along(cumsum_p, "axis")
lower_cumulative(cumsum_p, lambda dtype: 0, of_numbers("add", complex_pairs.add))


cumprod_p = Primitive("cumprod")

def cumprod(operand, axis=0, reverse=False):
    """The products of all elements up to each one along an axis."""
    return cumprod_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))

def product_rule(left, right):
    (x1, t1), (x2, t2) = left, right
    return [mul(x1, x2), add(mul(t1, x2), mul(x1, t2))]

def_checked_impl(cumprod_p, accumulate(np.multiply))
def_cumulative_aval(cumprod_p, NUMERIC)
def_jvp_by_scan(cumprod_p, primal_and_tangent, product_rule)
def_not_linear(cumprod_p)
def_batch_along(cumprod_p, "axis")
lower_cumulative(cumprod_p, lambda dtype: 1, of_numbers("mul", complex_pairs.multiply))


# --- Running extremes -----------------------------------------------------------------------------

def choice_by(function):
    """Pairs of x and its tangent combined by max or min; operands that tie give half each."""
    def combine(left, right):
        (x1, t1), (x2, t2) = left, right
        out = function(x1, x2)
        return [out, add(mul(t1, share_of_choice(x1, x2, out)),
                         mul(t2, share_of_choice(x2, x1, out)))]
    return combine


cummax_p = Primitive("cummax")

def cummax(operand, axis=0, reverse=False):
    """The largest of all elements up to each one along an axis."""
    return cummax_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))

def_checked_impl(cummax_p, accumulate(largest))
def_cumulative_aval(cummax_p, NUMERIC)
def_jvp_by_scan(cummax_p, primal_and_tangent, choice_by(maximum))
def_not_linear(cummax_p)
def_batch_along(cummax_p, "axis")
lower_cumulative(cummax_p, dtypes.lowest, partial(op, "max"))


cummin_p = Primitive("cummin")

def cummin(operand, axis=0, reverse=False):
    """The smallest of all elements up to each one along an axis."""
    return cummin_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))

def_checked_impl(cummin_p, accumulate(smallest))
def_cumulative_aval(cummin_p, NUMERIC)
def_jvp_by_scan(cummin_p, primal_and_tangent, choice_by(minimum))
def_not_linear(cummin_p)
def_batch_along(cummin_p, "axis")
lower_cumulative(cummin_p, dtypes.highest, partial(op, "min"))


# --- Logarithms of sums of exponentials -----------------------------------------------------------

cumlogsumexp_p = Primitive("cumlogsumexp")

def cumlogsumexp(operand, axis=0, reverse=False):
    """log of the sums of eˣ of all elements up to each one along an axis, without overflow."""
    return cumlogsumexp_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))

# out_i = log(e^out_{i-1} + e^x_i), so its tangent follows a linear recurrence:
# ȯut_i = e^(out_{i-1} - out_i) ȯut_{i-1} + e^(x_i - out_i) ẋ_i
def recurrence_terms(x, t, out, axis):
    n = typeof(out).shape[axis]
    before = concatenate([full_like(slice_in_dim(out, 0, 1 if n else 0, axis=axis), -np.inf),
                          slice_in_dim(out, 0, n - 1 if n else 0, axis=axis)], axis)
    return [exp_of_difference(before, out), mul(exp_of_difference(x, out), t)]

def exp_of_difference(part, whole):
    # infinities would cancel to NaN: ∞ - ∞ counts as 0, and -∞ has no share of -∞
    part = select(eq(part, const(part, np.inf)), zeros_like(part), part)
    return exp(sub(part, select(is_finite(whole), whole, zeros_like(whole))))

def compose_recurrences(left, right):
    # y ↦ a₂ (a₁ y + b₁) + b₂
    (a1, b1), (a2, b2) = left, right
    return [mul(a1, a2), add(mul(a2, b1), b2)]

def_checked_impl(cumlogsumexp_p, accumulate(np.logaddexp))
def_cumulative_aval(cumlogsumexp_p, FLOAT)
def_jvp_by_scan(cumlogsumexp_p, recurrence_terms, compose_recurrences)
def_not_linear(cumlogsumexp_p)
def_batch_along(cumlogsumexp_p, "axis")
lower_cumulative(cumlogsumexp_p, lambda dtype: -np.inf, lambda x, y: log_of_sum(x, y))

def log_of_sum(x, y):
    """log(eˣ + eʸ) = max + log(1 + e^-|x - y|), where ∞ - ∞ counts as 0"""
    difference = op("select", op("eq", x, y), const_like(x, 0), op("sub", x, y))
    falling = op("exp", op("neg", op("abs", difference)))
    return op("add", op("max", x, y), op("log1p", falling))
