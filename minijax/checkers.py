# Exported from notebooks/08_blocks.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: rule checkers. Home: 08_blocks. In JAX: jax/_src/public_test_util.py (check_grads).

One checker for each kind of rule, none of which needs to be told the right answer: a derivative is
checked against differences, a transpose against an inner product, a batch rule against a loop. Each
raises AssertionError with a message that says what is off, and by what factor if there is one.
"""

import itertools
from contextlib import contextmanager
from functools import reduce
from math import factorial

import numpy as np

from minijax import compiler, dtypes
from minijax.array import as_array
from minijax.avals import ShapedArray, typeof
from minijax.config import enable_x64
from minijax.core import Tracer, eval_trace, rule_for, set_current_trace
from minijax.interpreters.jet import jet_flat
from minijax.interpreters.jvp import jvp_instantiated
from minijax.interpreters.partial_eval import PartialEvalTrace
from minijax.interpreters.staging import trace_to_jaxpr
from minijax.jaxpr import convert_constvars_jaxpr, eval_jaxpr
from minijax.primitives.elementwise import add, convert_element_type, mul
from minijax.rules import AxisData, UndefinedPrimal, Zero, drop, is_zero, not_mapped

__all__ = [
    "random_numbers", "as_list", "results", "numbers", "during", "name_of_rule", "apply_rule",
    "operand_name", "result_name", "is_inexact", "inexact_operands", "deviation", "subtractable",
    "excess_of", "factor_hint", "assert_aval", "assert_count", "check_impl", "check_result_type",
    "check_abstract_eval", "assert_predicted", "widened", "wide_dtype", "widened_params", "widest",
    "random_like", "NotDifferentiable", "check_jvp", "tangents_along", "check_tangent_types",
    "tangent_name", "apply_jvp", "check_primal", "check_direction", "central_differences",
    "difference", "check_transpose", "random_cotangents", "transposed", "has_cotangent",
    "linear_part", "is_linear", "check_pairing", "check_inner_products", "inner_product",
    "BATCH_SIZE", "MAX_COMBINATIONS", "check_batch", "dims_combinations", "example", "check_dims",
    "compare_batch", "tolerance", "check_lowering", "check_partial_eval", "run_in_two_parts",
    "check_jet", "nested_coefficients", "point_on_curve", "compare_coefficients", "checkers",
    "check_rule",
]


# --- Running a primitive --------------------------------------------------------------------------

def random_numbers():
    return np.random.default_rng(0)        # the same numbers in every check


def as_list(primitive, outs):
    return list(outs) if primitive.multiple_results else [outs]


def results(primitive, args, params):
    """The results of the primitive, evaluated, as a list of Arrays."""
    return as_list(primitive, primitive.bind(*args, **params))


def numbers(x):
    """The NumPy array behind a value; zeros behind a symbolic zero."""
    if is_zero(x):
        dtype = bool if x.aval.dtype == dtypes.float0 else x.aval.dtype
        return np.zeros(x.aval.shape, dtype)
    return np.asarray(x)


@contextmanager
def during(what):
    """Say in the note of any error what was being checked."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        error.add_note(f"(raised by {what})")
        raise


def name_of_rule(primitive, kind):
    return f"the {kind} rule of '{primitive}'"


def apply_rule(primitive, kind, args, params, note=""):
    with during(name_of_rule(primitive, kind) + note):
        return rule_for(primitive, kind)(*args, **params)


def operand_name(i, args):
    return "the operand" if len(args) == 1 else f"operand {i}"


def result_name(k, results):
    return "the result" if len(results) == 1 else f"result {k}"


def is_inexact(x):
    return dtypes.issubdtype(typeof(x).dtype, np.inexact)


def inexact_operands(args):
    return [i for i, x in enumerate(args) if is_inexact(x)]


# --- Saying what is off ---------------------------------------------------------------------------

def deviation(got, want, rtol, atol=0.0, where=True):
    """None if `got` equals `want` at the places `where`, else where they differ most, and how."""
    got, want, where = subtractable(got), subtractable(want), np.broadcast_to(where, want.shape)
    excess = excess_of(got, want, where, rtol, atol)
    if not excess.any():
        return None
    at = np.unravel_index(excess.argmax(), excess.shape)
    place = f" at [{', '.join(map(str, at))}]" if at else ""
    hint = factor_hint(got[where], want[where])
    return f"{hint}: got {got[at]:.6g}, expected {want[at]:.6g}{place}"


def subtractable(x):
    """Numbers in a dtype wide enough to subtract: bool, small floats and integers become larger."""
    if dtypes.issubdtype(x.dtype, np.inexact):
        return x.astype(wide_dtype(x.dtype))
    return x.astype(np.float64 if x.dtype.itemsize < 8 else np.longdouble)


def excess_of(got, want, where, rtol, atol):
    """How far beyond the permitted difference each number is."""
    equal = (got == want) | (np.isnan(got) & np.isnan(want)) | ~where
    with np.errstate(all="ignore"):
        allowed = atol + rtol * np.where(np.isfinite(want), np.abs(want), 0)
        difference = np.where(equal, 0, np.abs(got - want)) - allowed
    return np.where(equal, 0, np.maximum(np.nan_to_num(difference, nan=np.inf), 0))


def factor_hint(got, want):
    """Whether one is a multiple of the other: most slips are a sign, a factor or a missing term."""
    if not (np.isfinite(got).all() and np.isfinite(want).all()):
        return "is off"
    norm = np.vdot(want, want).real
    if norm == 0:
        return "should be zero"
    if not got.any():
        return "is zero; is a term missing?"
    factor = np.vdot(want, got).real / norm
    if want.size < 2 or np.abs(got - factor * want).max() > 1e-3 * np.abs(got).max():
        return "has the wrong sign" if np.allclose(got, -want, 1e-3) else "is off"
    return f"is off by a factor of about {factor:.3g}" + ("; a sign?" if factor < 0 else "")


def assert_aval(what, value, aval, weak=False):
    """Raise unless a value has the shape and dtype (and weak type) that it should have."""
    got = value.aval if is_zero(value) else typeof(value)
    for part in ("shape", "dtype", "weak_type")[:3 if weak else 2]:
        if getattr(got, part) != getattr(aval, part):
            raise AssertionError(f"{what} has {part} {getattr(got, part)}, expected "
                                 f"{getattr(aval, part)} ({got} instead of {aval})")


def assert_count(what, found, expected):
    if len(found) != expected:
        raise AssertionError(f"{what}: expected {expected}, got {len(found)}")


# --- impl -----------------------------------------------------------------------------------------

def check_impl(primitive, args, params=None):
    """The implementation returns NumPy arrays of permitted dtypes and leaves its operands alone.

    Its operands are NumPy arrays; a primitive that contains programs gets Arrays, and returns them.
    """
    params = params or {}
    originals = [as_array(x) for x in args]
    operands = [x if primitive.higher_order else np.array(x) for x in originals]
    outs = apply_rule(primitive, "impl", operands, params)
    if primitive.multiple_results != isinstance(outs, (list, tuple)):
        wants = "a list of results" if primitive.multiple_results else "one result, not a list"
        raise AssertionError(f"{name_of_rule(primitive, 'impl')} should return {wants}")
    for out in as_list(primitive, outs):
        check_result_type(primitive, out)
    for i, (before, after) in enumerate(zip(originals, operands)):
        if deviation(np.asarray(after), np.asarray(before), 0):
            raise AssertionError(f"{name_of_rule(primitive, 'impl')} writes into "
                                 f"{operand_name(i, args)}; work on a copy")


def check_result_type(primitive, out):
    what = name_of_rule(primitive, "impl")
    if not primitive.higher_order and not isinstance(out, (np.ndarray, np.generic)):
        raise AssertionError(f"{what} should return a NumPy array, got {type(out).__name__}")
    if dtypes.canonicalize_dtype(out.dtype) != out.dtype:
        raise AssertionError(f"{what} returns {out.dtype}, but x64 is off; did NumPy promote?")


# --- abstract_eval --------------------------------------------------------------------------------

def check_abstract_eval(primitive, args, params=None):
    """The abstract evaluation rule predicts shape, dtype and weak type of the real results."""
    args, params = [as_array(x) for x in args], params or {}
    avals = as_list(primitive, apply_rule(primitive, "abstract_eval", map(typeof, args), params))
    outs = as_list(primitive, apply_rule(primitive, "impl", [
        x if primitive.higher_order else x._value for x in args], params))
    predicted = f"that {name_of_rule(primitive, 'abstract_eval')} predicts"
    assert_count(f"results {predicted}", avals, len(outs))
    for k, (aval, out) in enumerate(zip(avals, outs)):
        what = f"{result_name(k, outs)} {predicted}"
        weak = any(x.weak_type for x in args) or bool(params.get("weak_type", False))
        assert_predicted(what, aval, ShapedArray(out.shape, out.dtype), weak)


def assert_predicted(what, aval, real, may_be_weak):
    for part in ("shape", "dtype"):
        if getattr(aval, part) != getattr(real, part):
            raise AssertionError(f"{what} has {part} {getattr(aval, part)}, but the real one has "
                                 f"{getattr(real, part)}")
    if aval.weak_type and not may_be_weak:
        raise AssertionError(f"{what} is weakly typed, although no operand is")


# --- jvp: against differences ---------------------------------------------------------------------

# Derivatives of 32-bit programs are hard to see in differences, so operands become 64-bit ones.
# Only programs inside primitives keep their types and are checked with larger steps, less strictly.

def widened(x):
    """A 64-bit copy of a floating-point or complex value; call it with x64 on."""
    x = np.asarray(x)
    return as_array(x.astype(wide_dtype(x.dtype)))


def wide_dtype(dtype):
    if dtypes.issubdtype(dtype, np.complexfloating):
        return np.dtype(np.complex128)
    return np.dtype(np.float64) if dtypes.issubdtype(dtype, np.floating) else dtype


def widened_params(params):
    return {k: wide_dtype(v) if isinstance(v, np.dtype) else v for k, v in params.items()}


@contextmanager
def widest(primitive, args, params):
    """(operands, parameters, step of differences, relative tolerance) to take derivatives with."""
    if primitive.higher_order:
        yield [as_array(x) for x in args], params, 1e-2, 2e-2
    else:
        with enable_x64(True):
            yield [widened(x) for x in args], widened_params(params), 1e-6, 1e-5


def random_like(rng, x):
    """Normal random numbers of the shape and dtype of a floating-point or complex value."""
    aval = typeof(x)
    z = rng.normal(size=aval.shape)
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        z = z + 1j * rng.normal(size=aval.shape)
    return as_array(np.asarray(z).astype(aval.dtype))


class NotDifferentiable(ValueError):
    """A sample tells nothing about a jvp rule: the primitive has a kink there, or is not finite."""


def check_jvp(primitive, args, params=None, symbolic_zeros=True, along=None):
    """The tangent equals the central difference along it: each operand alone, then all together.

    `along` lists the operands that may move, by default all floating-point ones. Places where the
    primitive has a kink or is not finite are left out; NotDifferentiable if none is left. With
    `symbolic_zeros` the rule is also run with `Zero` as the tangent of operands that stand still,
    as jvp does with constants.
    """
    params = params or {}
    moving = inexact_operands(args) if along is None else along
    groups = [[i] for i in moving] + ([moving] if len(moving) > 1 else [])
    # an operand that may not move at all has a symbolic zero every time
    variants = [True] if along is not None else [False, True] if symbolic_zeros else [False]
    for group in groups:
        check_tangent_types(primitive, args, params, group, variants[0])
    with widest(primitive, args, params) as (args, params, step, rtol):
        told = [check_direction(primitive, args, params, group, (step, rtol), symbolic)
                for group in groups for symbolic in variants]
    if told and not any(told):
        raise NotDifferentiable(f"'{primitive}' has no derivative at this sample; choose another")


def tangents_along(args, group, symbolic):
    """Random tangents of the operands in `group`; zeros, perhaps symbolic, of the others."""
    rng = random_numbers()
    moves = [random_like(rng, x) if is_inexact(x) else Zero.like(x) for x in args]
    still = [Zero.like(x) if symbolic or not is_inexact(x) else as_array(np.zeros_like(x._value))
             for x in args]
    return [moves[i] if i in group else still[i] for i in range(len(args))]


def check_tangent_types(primitive, args, params, group, symbolic):
    args = [as_array(x) for x in args]
    tangents = tangents_along(args, group, symbolic)
    outs, out_tangents = apply_jvp(primitive, args, tangents, params, group)
    for k, (out, t) in enumerate(zip(outs, out_tangents)):
        aval = typeof(out).to_tangent_aval()
        if aval.dtype != dtypes.float0:
            assert_aval(tangent_name(k, outs, args, group), t, aval)


def tangent_name(k, outs, args, group):
    along = "" if len(args) == 1 else (f" along {operand_name(group[0], args)} alone"
                                       if len(group) == 1 else " along all operands at once")
    return f"the tangent of {result_name(k, outs)}{along}"


def apply_jvp(primitive, args, tangents, params, group, note=""):
    pair = apply_rule(primitive, "jvp", [list(args), list(tangents)], params, note)
    outs, out_tangents = (as_list(primitive, part) for part in pair)
    expected = results(primitive, args, params)
    assert_count("results of the jvp rule", outs, len(expected))
    assert_count("tangents of results of the jvp rule", out_tangents, len(expected))
    for k, (out, want) in enumerate(zip(outs, expected)):
        check_primal(primitive, k, out, want, outs)
    return outs, out_tangents


def check_primal(primitive, k, out, want, outs):
    what = f"{result_name(k, outs)} beside the tangent"
    assert_aval(what, out, typeof(want))
    if message := deviation(np.asarray(out), np.asarray(want), *tolerance(want.dtype)):
        raise AssertionError(f"{what} is not what '{primitive}' computes; it {message}")


def check_direction(primitive, args, params, group, accuracy, symbolic):
    """Compare tangents along `group` with differences; return whether that told anything."""
    step, rtol = accuracy
    tangents = tangents_along(args, group, symbolic)
    note = " given symbolic zeros" if symbolic and len(group) < len(args) else ""
    outs, out_tangents = apply_jvp(primitive, args, tangents, params, group, note)
    expected = central_differences(primitive, args, tangents, params, step)
    for k, (t, (want, smooth)) in enumerate(zip(out_tangents, expected)):
        got = np.broadcast_to(numbers(t), want.shape)
        atol = rtol * (1e-3 + np.abs(want[smooth]).max(initial=0.0))
        if message := deviation(got, want, rtol, atol, where=smooth):
            raise AssertionError(f"{tangent_name(k, outs, args, group)}{note} {message}")
    return any(smooth.any() or not want.size for want, smooth in expected)


def central_differences(primitive, args, tangents, params, step):
    """For each result (f(x + εt) - f(x - εt)) / 2ε, and where f is smooth enough to believe it.

    Smooth is where the difference at a point nearby is about the same. (At a tie of three, a sort's
    middle result has a slope along every direction and still no derivative.)
    """
    rng = np.random.default_rng(1)
    nearby = [None if is_zero(t) else 10 * step * random_like(rng, t)._value for t in tangents]

    def at(size, offset=0):
        moved = [x if is_zero(t) else as_array(
            x._value + x.dtype.type(size) * t._value + x.dtype.type(offset) * near)
            for x, t, near in zip(args, tangents, nearby)]
        return [y._value for y in results(primitive, moved, params)]

    points = at(-step), at(0), at(step), at(-step, 1), at(step, 1)
    return [difference(*ys, step) for ys in zip(*points)]


def difference(low, middle, high, low_nearby, high_nearby, step):
    if not dtypes.issubdtype(middle.dtype, np.inexact):
        return np.zeros(middle.shape), np.ones(middle.shape, bool)     # it moves in steps
    with np.errstate(all="ignore"):
        central, ahead = (high - low) / (2 * step), (high - middle) / step
        change = np.abs(central - ahead) + np.abs(central - (high_nearby - low_nearby) / (2 * step))
        allowed = max(1e-3, 10 * step) * (1 + np.abs(central) + np.abs(middle))
    return central, np.isfinite(central) & (change <= allowed)


# --- transpose: an inner product ------------------------------------------------------------------

def check_transpose(primitive, args, params=None):
    """⟨ct, Lx⟩ = ⟨Lᵀct, x⟩ for each operand in which the primitive is linear, and for all jointly.

    An operand counts as linear if the rule returns a cotangent for it when it alone is undefined.
    """
    with widest(primitive, args, params or {}) as (args, params, _, rtol):
        linear = [i for i in inexact_operands(args) if has_cotangent(primitive, args, params, i)]
        for i in linear:
            check_pairing(primitive, args, params, [i], rtol)
        groups = [linear, *([i] for i in linear)] if len(linear) > 1 else []
        if groups and all(is_linear(primitive, args, params, group, rtol) for group in groups):
            check_pairing(primitive, args, params, linear, rtol)


def random_cotangents(primitive, args, params, only=None):
    """A cotangent for each result; symbolic zeros for integers and for all but result `only`."""
    rng = random_numbers()
    return [random_like(rng, y) if is_inexact(y) and only in (None, k) else Zero.like(y)
            for k, y in enumerate(results(primitive, args, params))]


def transposed(primitive, cts, args, params, undefined):
    operands = [UndefinedPrimal(typeof(x)) if i in undefined else x for i, x in enumerate(args)]
    note = f" with {' and '.join(operand_name(i, args) for i in undefined)} undefined"
    ct = cts if primitive.multiple_results else cts[0]
    in_cts = apply_rule(primitive, "transpose", [ct, *operands], params, note)
    if not isinstance(in_cts, (list, tuple)):
        raise AssertionError(f"{name_of_rule(primitive, 'transpose')} should return a list with "
                             f"one cotangent (or None) an operand, got {type(in_cts).__name__}")
    assert_count(f"cotangents from {name_of_rule(primitive, 'transpose')}", in_cts, len(args))
    return in_cts


def has_cotangent(primitive, args, params, i):
    """Whether the rule treats operand i as linear; an error if it should and does not."""
    cts = random_cotangents(primitive, args, params)
    try:
        found = transposed(primitive, cts, args, params, [i])[i]
    except AssertionError:
        raise
    except Exception:
        if is_linear(primitive, args, params, [i], 1e-5):
            raise
        return False           # not linear in this operand, so the rule may refuse it
    if found is None and is_linear(primitive, args, params, [i], 1e-5):
        raise AssertionError(f"'{primitive}' is linear in {operand_name(i, args)}, but its "
                             "transpose rule returns no cotangent for it")
    return found is not None


def linear_part(primitive, args, params, operands):
    """xs -> f(with xs at `operands`) - f(with zeros there), as NumPy arrays."""
    def at(xs):
        given = dict(zip(operands, xs))
        return results(primitive, [given.get(i, x) for i, x in enumerate(args)], params)
    zeros = [as_array(np.zeros_like(args[i]._value)) for i in operands]
    origin = [subtractable(y._value) for y in at(zeros)]
    return lambda xs: [subtractable(y._value) - y0 for y, y0 in zip(at(xs), origin)]


def is_linear(primitive, args, params, operands, rtol):
    """Whether L(x + 2z) = L(x) + 2 L(z) for random x and z, and L is not zero throughout."""
    rng = random_numbers()
    apply = linear_part(primitive, args, params, operands)
    xs, zs = ([random_like(rng, args[i]) for i in operands] for _ in range(2))
    sums = [as_array(x._value + x.dtype.type(2) * z._value) for x, z in zip(xs, zs)]
    trios = list(zip(apply(xs), apply(zs), apply(sums)))
    return (any(y.any() for y, _, _ in trios)
            and all(np.isfinite(y).all() and np.isfinite(z).all()
                    and np.allclose(s, y + 2 * z, rtol=rtol, atol=10 * rtol) for y, z, s in trios))


def check_pairing(primitive, args, params, operands, rtol):
    n = len(results(primitive, args, params))
    for only in [None, *range(n)] if n > 1 else [None]:
        cts = random_cotangents(primitive, args, params, only)
        if not all(is_zero(ct) for ct in cts):
            check_inner_products(primitive, cts, args, params, operands, rtol)


def check_inner_products(primitive, cts, args, params, operands, rtol):
    # None stands for a zero, for instance where an operand does not reach the results that have cts
    in_cts = [Zero.like(x) if ct is None else ct
              for ct, x in zip(transposed(primitive, cts, args, params, operands), args)]
    for i in operands:
        assert_aval(f"the cotangent of {operand_name(i, args)}", in_cts[i], typeof(args[i]))
    rng, apply = random_numbers(), linear_part(primitive, args, params, operands)
    pairs = []
    for _ in range(3):
        xs = [random_like(rng, args[i]) for i in operands]
        got, want = inner_product([in_cts[i] for i in operands], xs), inner_product(cts, apply(xs))
        pairs.append((got, want))
    size = sum(np.abs(numbers(ct)).sum() for ct in cts)
    if message := deviation(*np.array(pairs).T, rtol, atol=rtol * size):
        name = " and ".join(operand_name(i, args) for i in operands)
        if not is_linear(primitive, args, params, operands, rtol):
            raise AssertionError(f"'{primitive}' is not linear in {name}: no transpose there")
        raise AssertionError(f"⟨Lᵀct, x⟩ for {name} should equal ⟨ct, Lx⟩, but "
                             f"{message.partition(' at ')[0]}")


def inner_product(cts, xs):
    # The real part of Σ ct x, without conjugation: JAX's convention for complex cotangents.
    with np.errstate(all="ignore"):
        return sum(float(np.sum(numbers(ct) * numbers(x)).real) for ct, x in zip(cts, xs))


# --- batch: against a loop ------------------------------------------------------------------------

BATCH_SIZE = 5                # unlike the sizes of axes in samples, so that a mix-up shows
MAX_COMBINATIONS = 40


def check_batch(primitive, args, params=None):
    """The batch rule equals a Python loop, for every combination of the operands' batch dimensions.

    Of more than 40 combinations a random choice is checked.
    """
    args, params = [as_array(x) for x in args], params or {}
    for dims in dims_combinations([x.ndim for x in args]):
        check_dims(primitive, args, dims, params)


def dims_combinations(ranks):
    """Every choice of None or an axis for each operand, but None for all."""
    combinations = list(itertools.product(*[[not_mapped, *range(n + 1)] for n in ranks]))[1:]
    if len(combinations) <= MAX_COMBINATIONS:
        return combinations
    chosen = random_numbers().choice(len(combinations), MAX_COMBINATIONS, replace=False)
    return [combinations[i] for i in sorted(chosen)]


def example(x, k):
    """Example k of a batch made from one operand: its numbers in another order and size."""
    x = np.asarray(x)
    if not k:
        return x
    if not is_inexact(x):
        return np.roll(x, k) if x.ndim else (x if x.dtype == bool else x + x.dtype.type(k))
    return (np.roll(x, k) * x.dtype.type(1 - k / 8)).astype(x.dtype)


def check_dims(primitive, args, dims, params):
    examples = [[x if d is not_mapped else as_array(example(x, k)) for x, d in zip(args, dims)]
                for k in range(BATCH_SIZE)]
    batches = [x if d is not_mapped else as_array(np.stack([e[i] for e in examples], d))
               for i, (x, d) in enumerate(zip(args, dims))]
    note = f" for batch dimensions {dims if len(dims) > 1 else dims[0]}"
    axis = AxisData(BATCH_SIZE)
    outs, out_dims = apply_rule(primitive, "batch", [axis, batches, list(dims)], params, note)
    outs = as_list(primitive, outs)
    out_dims = list(out_dims) if primitive.multiple_results else [out_dims]
    loop = [results(primitive, e, params) for e in examples]
    assert_count("results of the batch rule" + note, outs, len(loop[0]))
    assert_count("batch dimensions of results of the batch rule" + note, out_dims, len(outs))
    for k, (out, dim) in enumerate(zip(outs, out_dims)):
        compare_batch(result_name(k, outs) + note, out, dim, [ys[k] for ys in loop])


def compare_batch(what, out, dim, wanted):
    """Compare a batch, whose examples lie along `dim`, with the results of a loop."""
    shape = typeof(out).shape
    if dim is not not_mapped and not (0 <= dim < len(shape) and shape[dim] == len(wanted)):
        raise AssertionError(f"{what} has shape {shape}, where axis {dim} is not the batch axis "
                             f"of size {len(wanted)}")
    one = shape if dim is not_mapped else drop(shape, dim)
    if one != wanted[0].shape or out.dtype != wanted[0].dtype:
        raise AssertionError(f"{what}: one example is {ShapedArray(one, out.dtype)}, the loop "
                             f"gives {wanted[0].aval}")
    for k, want in enumerate(wanted):
        got = np.asarray(out) if dim is not_mapped else np.take(np.asarray(out), k, dim)
        if message := deviation(got, np.asarray(want), *tolerance(want.dtype, np.asarray(want))):
            raise AssertionError(f"{what}: example {k} {message}")


def tolerance(dtype, want=None):
    """(relative, absolute) difference that another order of operations may make."""
    if not dtypes.issubdtype(dtype, np.inexact):
        return 0, 0
    eps = float(dtypes.finfo(dtype).eps)
    finite = np.abs(want[np.isfinite(want)]).max(initial=0.0) if want is not None else 0.0
    return 16 * eps, 16 * eps * float(finite)


# --- lowering: against impl -----------------------------------------------------------------------

def check_lowering(primitive, args, params=None, compiled=True):
    """The compiled primitive computes what its implementation does, up to rounding.

    With `compiled` false the generated source runs as plain Python, which is quicker for one call.
    """
    args, params = [as_array(x) for x in args], params or {}
    rule_for(primitive, "lowering")
    avals = [typeof(x) for x in args]
    jaxpr, consts = trace_to_jaxpr(lambda *xs: results(primitive, xs, params), avals)
    with during(f"the program compiled with {name_of_rule(primitive, 'lowering')}"):
        program = compiler.compile_jaxpr(convert_constvars_jaxpr(jaxpr), compiled=compiled)
        outs = program(*[as_array(x)._value for x in [*consts, *args]])
    expected = results(primitive, args, params)
    assert_count("results of the compiled program", outs, len(expected))
    for k, (out, want) in enumerate(zip(outs, expected)):
        assert_aval(f"{result_name(k, outs)}, compiled,", out, typeof(want))
        if message := deviation(out, np.asarray(want), *tolerance(want.dtype, np.asarray(want))):
            raise AssertionError(f"{result_name(k, outs)}, compiled, {message}")


# --- partial_eval: the two parts make the whole ---------------------------------------------------

def check_partial_eval(primitive, args, params=None):
    """Whatever operands are unknown, running the recorded rest later gives the same results."""
    args, params = [as_array(x) for x in args], params or {}
    expected = results(primitive, args, params)
    for unknown in itertools.islice(itertools.product([True, False], repeat=len(args)), 16):
        if any(unknown):
            outs = run_in_two_parts(primitive, args, params, unknown)
            for k, (out, want) in enumerate(zip(outs, expected)):
                what = f"{result_name(k, outs)} with unknown operands {unknown}"
                compare_batch(what, out, not_mapped, [want])


def run_in_two_parts(primitive, args, params, unknown):
    trace = PartialEvalTrace(eval_trace)
    given = [trace.new_arg(typeof(x)) if u else x for x, u in zip(args, unknown)]
    with set_current_trace(trace):
        outs = as_list(primitive, apply_rule(primitive, "partial_eval", [trace, *given], params))
    later, consts = trace.to_jaxpr([y for y in outs if isinstance(y, Tracer)])
    rest = iter(eval_jaxpr(later, consts, *[x for x, u in zip(args, unknown) if u]))
    return [next(rest) if isinstance(y, Tracer) else y for y in outs]


# --- jet: against nested jvps ---------------------------------------------------------------------

def check_jet(primitive, args, params=None, order=3, along=None):
    """Taylor coefficients equal those of nested jvps along a random curve of that degree.

    A primitive without a jet rule is expanded by its jvp rule, and checked in the same way.
    """
    with widest(primitive, args, params or {}) as (args, params, _, _):
        moving = inexact_operands(args) if along is None else along
        rng = random_numbers()
        series = [[random_like(rng, x) if i in moving else Zero.like(x) for _ in range(order)]
                  for i, x in enumerate(args)]
        flat = lambda *xs: results(primitive, xs, params)
        with during(f"Taylor mode of '{primitive}'"):
            outs, found = jet_flat(flat, args, series, order)
        expected = nested_coefficients(flat, args, series, order)
        rtol = 1e-3 if primitive.higher_order else 1e-6
        told = [compare_coefficients(f"coefficient {k} of {result_name(i, outs)}", terms[k - 1],
                                     expected[k][i], rtol)
                for i, terms in enumerate(found) if is_inexact(outs[i])
                for k in range(1, order + 1)]
    if told and not any(told):
        raise NotDifferentiable(f"'{primitive}' has no series at this sample; choose another")


def nested_coefficients(flat, args, series, order):
    """[[c_k of each result] for k = 0 … order]: derivatives at 0 along the curve, divided by k!"""
    zero, one = (as_array(np.array(n, np.float32)) for n in (0, 1))

    def along_curve(t):
        return flat(*[point_on_curve(x, terms, t) for x, terms in zip(args, series)])
    derivatives = [along_curve]
    for _ in range(order):
        derivatives.append(lambda t, f=derivatives[-1]: jvp_instantiated(f, [t], [one])[1])
    return [[numbers(x) / factorial(k) if is_inexact(x) else None for x in f(zero)]
            for k, f in enumerate(derivatives)]


def point_on_curve(x, terms, t):
    """x + x_1 t + x_2 t² + …, by Horner's scheme."""
    if is_zero(terms[0]):
        return x
    t = convert_element_type(t, typeof(x).dtype)
    return reduce(lambda value, term: add(mul(value, t), term), [*terms[::-1], x])


def compare_coefficients(what, got, want, rtol):
    """Compare where the expected ones are finite; return whether that is anywhere."""
    got, finite = numbers(got), np.isfinite(want)
    if message := deviation(got, want, rtol, rtol * np.abs(want[finite]).max(initial=1), finite):
        raise AssertionError(f"{what} {message}")
    return finite.any() or not want.size


# --- One entry for all kinds ----------------------------------------------------------------------

checkers = {"impl": check_impl, "abstract_eval": check_abstract_eval, "jvp": check_jvp,
            "transpose": check_transpose, "batch": check_batch, "lowering": check_lowering,
            "partial_eval": check_partial_eval, "jet": check_jet}


def check_rule(primitive, kind, args, params=None, **options):
    """Check the primitive's rule of one kind at one sample of operands and parameters.

    Raises NotImplementedError if there is no such rule, AssertionError if it is wrong, and lets
    through, with a note, whatever the rule itself raises.
    """
    if kind not in checkers:
        raise ValueError(f"no rule kind {kind!r}; the kinds are {', '.join(checkers)}")
    if kind != "jet" or "jvp" not in primitive.rules:       # or the jvp rule will do
        rule_for(primitive, kind)
    checkers[kind](primitive, args, params, **options)
