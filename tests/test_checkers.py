"""The rule checkers catch planted wrong rules, and say what is wrong with them."""
import re

import numpy as np
import pytest
from samples_higher_order import higher_order_samples

from minijax.avals import ShapedArray
from minijax.book.exercises import rule_on_trial
from minijax.book.failures import describe_error
from minijax.checkers import NotDifferentiable, check_jvp, check_rule, checkers
from minijax.core import Primitive, primitives
from minijax.higher_order.jit import jit_p
from minijax.interpreters.staging import JaxprTrace
from minijax.primitives import dot, elementwise as ew, structural
from minijax.primitives.reductions import reduce_sum_p
from minijax.rules import Zero, deflinear, instantiate_zeros, is_undefined_primal, is_zero

rng = np.random.default_rng(1)
A, B = rng.normal(size=(2, 2, 3)).astype(np.float32)
I = np.arange(6, dtype=np.int32).reshape(2, 3)
AXES = dict(axes=(1,))
PERMUTATION = dict(permutation=(2, 0, 1))
DOT = dict(dimension_numbers=(((1,), (0,)), ((), ())), precision=None, preferred_element_type=None)


# --- Wrong rules: (primitive, kind, args, params, rule, what the message says) ------------------

def jvp_of(tangent):
    """A jvp rule with the primitive's own primal result: tangent(ts, *primals, **params)."""
    def plant(primitive):
        def rule(primals, tangents, **params):
            ts = list(map(instantiate_zeros, tangents))
            return primitive.bind(*primals, **params), tangent(ts, *primals, **params)
        return rule
    return plant


def as_is(rule):
    return lambda primitive: rule


def mul_jvp_without_zeros(primals, tangents):
    (x, y), (t, u) = primals, tangents
    return ew.mul(x, y), ew.add(ew.mul(t, y), ew.mul(x, u))


def one_sided(ct, x, y):
    return [ew.mul(ct, y), None] if is_undefined_primal(x) else [None, None]


def in_place_impl(x):
    x *= -1
    return x


def reduce_sum_batch_ignoring_dims(axis, vals, dims, *, axes):
    return primitives["reduce_sum"].bind(vals[0], axes=axes), dims[0]


def reduce_sum_batch_off_by_one(axis, vals, dims, *, axes):
    (x,), (d,) = vals, dims
    moved = tuple(a + (a > d) for a in axes)
    return primitives["reduce_sum"].bind(x, axes=moved), d - sum(a < d for a in moved)


def add_batch_as_if_aligned(axis, vals, dims):
    return ew.add(*vals), next(d for d in dims if d is not None)


def swapped_lowering(primitive):
    good = primitive.rules["lowering"]
    return lambda ctx, x, y: good(ctx, y, x)


def forgetful_partial_eval(primitive):
    """Takes all operands for unknown, but forgets to record a use of the first."""
    def rule(trace, *args, jaxpr, **params):
        zeros = [np.zeros(v.aval.shape, v.aval.dtype) for v in jaxpr.jaxpr.invars]
        return JaxprTrace.process_primitive(trace, primitive, [zeros[0], *args[1:]],
                                            dict(jaxpr=jaxpr, **params))
    return rule


good_jit_jvp = jit_p.rules["jvp"]
JIT_ARGS, JIT_PARAMS = higher_order_samples["jit"][0]

wrong_rules = {
    "mul jvp: product of tangents": (
        ew.mul_p, "jvp", (A, B), {}, jvp_of(lambda ts, x, y: ew.mul(*ts)),
        "operand 0 alone is zero"),
    "mul jvp: one term only": (
        ew.mul_p, "jvp", (A, B), {}, jvp_of(lambda ts, x, y: ew.mul(ts[0], y)),
        "operand 1 alone is zero; is a term missing"),
    "mul jvp: a term twice": (
        ew.mul_p, "jvp", (A, B), {},
        jvp_of(lambda ts, x, y: ew.add(ew.mul(ts[0], ew.add(y, y)), ew.mul(x, ts[1]))),
        "operand 0 alone is off by a factor of about 2"),
    "mul jvp: shares that do not add up": (
        ew.mul_p, "jvp", (A, B), {},
        jvp_of(lambda ts, x, y: ew.add(ew.add(ew.mul(ts[0], y), ew.mul(x, ts[1])), ew.mul(*ts))),
        "along all operands at once is off"),
    "mul jvp: no symbolic zeros": (
        ew.mul_p, "jvp", (A, B), {}, as_is(mul_jvp_without_zeros), "symbolic zeros"),
    "sub jvp: both plus": (
        ew.sub_p, "jvp", (A, B), {}, jvp_of(lambda ts, x, y: ew.add(*ts)),
        "operand 1 alone is off by a factor of about -1; a sign"),
    "cos jvp: sign": (
        ew.cos_p, "jvp", (A,), {}, jvp_of(lambda ts, x: ew.mul(ts[0], ew.sin(x))),
        "factor of about -1; a sign"),
    "cos jvp of a scalar: sign": (
        ew.cos_p, "jvp", (A[0, 0],), {}, jvp_of(lambda ts, x: ew.mul(ts[0], ew.sin(x))),
        "wrong sign"),
    "sin jvp: the derivative without the tangent": (
        ew.sin_p, "jvp", (A,), {}, jvp_of(lambda ts, x: ew.cos(x)), "is off: got"),
    "exp jvp: the primal is wrong": (
        ew.exp_p, "jvp", (A,), {}, as_is(lambda ps, ts: (ps[0], ew.mul(ts[0], ew.exp(ps[0])))),
        "not what 'exp' computes"),
    "floor jvp: the identity": (
        ew.floor_p, "jvp", (A,), {}, jvp_of(lambda ts, x: ts[0]), "should be zero"),
    "tanh jvp: a tangent of another dtype": (
        ew.tanh_p, "jvp", (A,), {},
        jvp_of(lambda ts, x: ew.convert_element_type(ts[0], np.dtype("float16"))), "dtype float16"),
    "reduce_sum jvp: shape": (
        reduce_sum_p, "jvp", (A,), AXES, jvp_of(lambda ts, x, *, axes: ts[0]), "shape"),
    "mul transpose: ct twice": (
        ew.mul_p, "transpose", (A, B), {},
        as_is(lambda ct, x, y: [ew.mul(ct, ct), None] if is_undefined_primal(x)
              else [None, ew.mul(x, ct)]),
        "operand 0 should equal"),
    "mul transpose: an operand forgotten": (
        ew.mul_p, "transpose", (A, B), {}, as_is(one_sided), "linear in operand 1.*no cotangent"),
    "neg transpose: sign": (
        ew.neg_p, "transpose", (A,), {}, as_is(lambda ct, x: [ct]), "factor of about -1; a sign"),
    "div transpose: as if linear in the divisor": (
        ew.div_p, "transpose", (A, B), {}, as_is(lambda ct, x, y: [
            ew.div(ct, y) if is_undefined_primal(x) else None,
            ew.div(x, ct) if is_undefined_primal(y) else None]), "not linear in operand 1"),
    "neg transpose: not a list": (
        ew.neg_p, "transpose", (A,), {}, as_is(lambda ct, x: ew.neg(ct)), "should return a list"),
    "transpose transpose: permutation forgotten": (
        structural.transpose_p, "transpose", (A[None],), PERMUTATION,
        as_is(lambda ct, x, *, permutation: [ct]), "cotangent of the operand has shape"),
    "transpose transpose: not inverted": (
        structural.transpose_p, "transpose", (np.stack([A[:, :2]] * 2),), PERMUTATION,
        as_is(lambda ct, x, *, permutation: [structural.transpose(ct, permutation)]),
        "should equal"),
    "reduce_sum transpose: not broadcast": (
        reduce_sum_p, "transpose", (A,), AXES, as_is(lambda ct, x, *, axes: [ct]), "shape"),
    "dot_general transpose: factors swapped": (
        dot.dot_general_p, "transpose", (A[:, :2], B[:, :2]), DOT,
        as_is(lambda ct, x, y, **params: [
            dot.dot_general_p.bind(ct, y, **params) if is_undefined_primal(x) else None,
            dot.dot_general_p.bind(x, ct, **params) if is_undefined_primal(y) else None]),
        "operand 0 should equal"),
    "reduce_sum batch: dims ignored": (
        reduce_sum_p, "batch", (A,), AXES, as_is(reduce_sum_batch_ignoring_dims),
        "batch dimensions 0"),
    "reduce_sum batch: off by one": (
        reduce_sum_p, "batch", (A,), AXES, as_is(reduce_sum_batch_off_by_one),
        "batch dimensions 1"),
    "add batch: operands not aligned": (
        ew.add_p, "batch", (A, B), {}, as_is(add_batch_as_if_aligned),
        r"batch dimensions \(None, 0\)"),
    "sin batch: reversed": (
        ew.sin_p, "batch", (A,), {},
        as_is(lambda axis, vals, dims: (structural.rev(ew.sin(vals[0]), (dims[0],)), dims[0])),
        "example 0"),
    "sin batch: wrong out dim": (
        ew.sin_p, "batch", (A,), {}, as_is(lambda axis, vals, dims: (ew.sin(vals[0]), 0)),
        "not the batch axis|one example is"),
    "reduce_sum abstract_eval: shape kept": (
        reduce_sum_p, "abstract_eval", (A,), AXES, as_is(lambda x, *, axes: x), "shape"),
    "eq abstract_eval: dtype kept": (
        ew.eq_p, "abstract_eval", (A, B), {}, as_is(lambda x, y: x), "dtype float32.*bool"),
    "add abstract_eval: weak": (
        ew.add_p, "abstract_eval", (A, B), {}, as_is(lambda x, y: x.update(weak_type=True)),
        "weakly"),
    "sin abstract_eval: a list": (
        structural.split_p, "abstract_eval", (A,), dict(sizes=(1, 2), axis=1),
        as_is(lambda x, *, sizes, axis: [x]), "expected 2, got 1"),
    "sub lowering: operands swapped": (
        ew.sub_p, "lowering", (A, B), {}, swapped_lowering,
        "compiled, is off by a factor of about -1; a sign"),
    "cos lowering: another function": (
        ew.cos_p, "lowering", (A,), {}, as_is(ew.sin_p.rules["lowering"]), "compiled, is off: got"),
    "jit partial_eval: an operand forgotten": (
        jit_p, "partial_eval", JIT_ARGS, JIT_PARAMS, forgetful_partial_eval,
        "with unknown operands"),
    "jit jvp: results swapped": (
        jit_p, "jvp", *higher_order_samples["jit"][1],
        lambda p: lambda ps, ts, **params: tuple(x[::-1] for x in good_jit_jvp(ps, ts, **params)),
        "result 0 beside the tangent has shape"),
    "neg impl: in place": (ew.neg_p, "impl", (A,), {}, as_is(in_place_impl),
                           "writes into the operand"),
    "add impl: promotes": (ew.add_p, "impl", (I, I), {}, as_is(lambda x, y: x + y.astype(np.int64)),
                           "int64, but x64 is off"),
    "neg impl: a list": (ew.neg_p, "impl", (A,), {}, as_is(lambda x: [-x]), "one result"),
    "neg impl: not NumPy's": (ew.neg_p, "impl", (A,), {}, as_is(lambda x: 1.0),
                              "should return a NumPy"),
}


@pytest.mark.parametrize("name", wrong_rules)
def test_planted_wrong_rule_is_caught(name):
    primitive, kind, args, params, plant, message = wrong_rules[name]
    check_rule(primitive, kind, args, params)          # the package's own rule passes
    with rule_on_trial(primitive, kind, plant(primitive)):
        with pytest.raises(Exception) as caught:
            check_rule(primitive, kind, args, params)
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(message, text), text
    check_rule(primitive, kind, args, params)          # and is back afterwards


# --- What the checkers must accept --------------------------------------------------------------

def test_longhand_rule_without_symbolic_zeros_is_accepted_on_request():
    with rule_on_trial(ew.mul_p, "jvp", mul_jvp_without_zeros):
        check_rule(ew.mul_p, "jvp", (A, B), symbolic_zeros=False)


def test_integer_operands_have_symbolic_tangents():
    seen = []

    def rule(primals, tangents, **params):
        seen.extend(tangents)
        return ew.select_n(*primals), instantiate_zeros(ew.select_n(primals[0], *[
            instantiate_zeros(t) for t in tangents[1:]]))
    with rule_on_trial(ew.select_n_p, "jvp", rule):
        check_rule(ew.select_n_p, "jvp", (A > 0, A, B))
    assert all(is_zero(t) for t in seen[::3])


def test_kinks_are_left_out_and_a_sample_of_kinks_is_refused():
    check_jvp(ew.max_p, (A, np.where(A > 0, A, B)))
    with pytest.raises(NotDifferentiable, match="abs"):
        check_jvp(ew.abs_p, (np.zeros(3, np.float32),))


def test_a_rule_that_raises_is_named():
    def rule(primals, tangents):
        raise ValueError("oops")
    with rule_on_trial(ew.sin_p, "jvp", rule), pytest.raises(ValueError) as caught:
        check_rule(ew.sin_p, "jvp", (A,))
    assert "jvp rule of 'sin'" in caught.value.__notes__[0]
    assert describe_error(caught.value) == "ValueError: oops"


def test_a_missing_rule_and_an_unknown_kind():
    nothing = Primitive("nothing_at_all")
    try:
        for kind in checkers:
            with pytest.raises(NotImplementedError, match=kind):
                check_rule(nothing, kind, (A,))
        with pytest.raises(ValueError, match="no rule kind"):
            check_rule(nothing, "jpv", (A,))
    finally:
        del primitives["nothing_at_all"]


def test_a_block_of_the_readers_own():
    twice = Primitive("twice_for_a_test")
    try:
        twice.def_impl(lambda x: x + x)
        twice.def_abstract_eval(lambda x: x)
        deflinear(twice, lambda ct, x: twice.bind(ct))
        twice.def_batch(lambda axis, vals, dims: (twice.bind(*vals), dims[0]))
        for kind in ("impl", "abstract_eval", "jvp", "transpose", "batch"):
            check_rule(twice, kind, (A,))
        twice.def_transpose(lambda ct, x: [Zero(ShapedArray(ct.shape, ct.dtype))])
        with pytest.raises(AssertionError, match="is zero"):
            check_rule(twice, "transpose", (A,))
    finally:
        del primitives["twice_for_a_test"]
