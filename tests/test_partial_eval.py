"""The machinery of partial evaluation: what is done now, what is written down, what is kept."""

import gc
import weakref

import jax as real_jax
import numpy as np
import pytest

import minijax as mj
import minijax.numpy as jnp
from minijax.avals import ShapedArray
from minijax.book.traces import LogTrace
from minijax.core import eval_trace, forget, set_current_trace
from minijax.dtypes import float0
from minijax.errors import TracerBoolConversionError, UnexpectedTracerError
from minijax.higher_order.programs import jvp_jaxpr, partial_eval_jaxpr, save_less
from minijax.interpreters.jvp import JVPTracer, jvp_flat
from minijax.interpreters.partial_eval import (PartialEvalTrace, apply_linear, linearize_flat,
                                               split_jaxpr)
from minijax.interpreters.staging import trace_to_closed_jaxpr, trace_to_jaxpr
from minijax.jaxpr import Literal, check_jaxpr, convert_constvars_jaxpr, eval_jaxpr
from minijax.primitives.elementwise import add, cos, gt, mul, sin
from minijax.primitives.reductions import reduce_sum
from minijax.rules import Zero, instantiate_zeros, is_zero

vector = np.array([0.5, -1.0, 2.0], np.float32)
f32 = ShapedArray((), np.dtype(np.float32))
f32_3 = ShapedArray((3,), np.dtype(np.float32))


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def linearized(f, *args):
    """As `linearize_flat`; the program is checked."""
    outs, jaxpr, consts, zero_avals = linearize_flat(f, args)
    check_jaxpr(jaxpr)
    return outs, jaxpr, consts, zero_avals


def slopes(f, args, tangents):
    _, jaxpr, consts, zeros = linearized(f, *args)
    return [instantiate_zeros(t) for t in apply_linear(jaxpr, consts, zeros, tangents)]


def program(f, *avals):
    jaxpr, consts = trace_to_jaxpr(f, avals)
    assert not consts
    return jaxpr


def joined(jaxpr, unknown, args):
    """The program run in two parts, its results in their order."""
    known, consts, later, out_unknown, n_residuals = split_jaxpr(jaxpr, unknown)
    check_jaxpr(known), check_jaxpr(later)
    outs = eval_jaxpr(known, consts, *[x for x, u in zip(args, unknown) if not u])
    n_known = len(out_unknown) - sum(out_unknown)
    assert len(outs) == n_known + n_residuals
    rest = eval_jaxpr(later, [], *outs[n_known:], *[x for x, u in zip(args, unknown) if u])
    known_outs, rest = iter(outs[:n_known]), iter(rest)
    return [next(rest if u else known_outs) for u in out_unknown]


# --- The trace ------------------------------------------------------------------------------------

def test_known_operations_run_and_others_are_recorded():
    trace = PartialEvalTrace(eval_trace)
    x = trace.new_arg(f32)
    with set_current_trace(trace):
        known = mul(3.0, 3.0)
        out = add(known, sin(x))
    assert float(known) == 9.0
    jaxpr, consts = trace.to_jaxpr([out])
    assert names(jaxpr) == ["sin", "add"] and not consts
    literal, = [a for a in jaxpr.eqns[1].invars if isinstance(a, Literal)]
    assert literal.val == 9.0


def test_known_work_goes_to_the_parent_and_unknown_does_not():
    with set_current_trace(LogTrace()) as log:
        trace = PartialEvalTrace(log)
        x = trace.new_arg(f32)
        with set_current_trace(trace):
            mul(x, cos(2.0))
    assert [line.partition("(")[0] for line in log.lines] == ["cos"]


def test_a_tracer_of_another_partial_evaluation_is_known():
    outer = PartialEvalTrace(eval_trace)
    inner = PartialEvalTrace(outer)
    x = outer.new_arg(f32)
    with set_current_trace(inner):
        y = sin(x)
    assert outer.is_mine(y) and not inner.eqns and names(outer.to_jaxpr([y])[0]) == ["sin"]


def test_a_partial_eval_rule_is_asked_only_if_something_is_unknown():
    f = mj.jit(lambda x: jnp.sin(x))
    trace = PartialEvalTrace(eval_trace)
    with set_current_trace(trace):
        value = f(2.0)
        assert np.isclose(value, np.sin(2.0)) and not trace.eqns
        f(trace.new_arg(f32))
    assert [eqn.primitive.name for eqn in trace.eqns] == ["jit"]


# --- linearize ------------------------------------------------------------------------------------

def test_the_linear_program_holds_only_linear_operations():
    outs, jaxpr, consts, _ = linearized(lambda x: [sin(cos(x))], vector)
    assert np.allclose(outs[0], np.sin(np.cos(vector)))
    assert names(jaxpr) == ["mul", "neg", "mul"]
    assert len(consts) == 2
    assert np.allclose(consts[0], np.sin(vector))


def test_slopes_are_those_of_jvp():
    def f(x, y):
        return [mul(x, sin(y)), reduce_sum(mul(y, y), (0,)), add(x, x)]
    args, tangents = (vector, vector + 1), (vector * 2, vector - 3)
    for got, want in zip(slopes(f, args, tangents), jvp_flat(f, args, tangents)[1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_zero_tangents_are_left_out_of_the_program():
    table = np.arange(3, dtype=np.float32)
    outs, jaxpr, consts, zeros = linearized(lambda x: [table, mul(x, x), gt(x, 0.0)], vector)
    assert len(outs) == 3 and len(jaxpr.outvars) == 1
    assert [z and z.dtype for z in zeros] == [np.float32, None, float0]
    result = apply_linear(jaxpr, consts, zeros, [vector])
    assert [is_zero(t) for t in result] == [True, False, True]
    np.testing.assert_allclose(result[1], 2 * vector * vector, rtol=1e-6)


def test_all_tangents_zero_leave_an_empty_program():
    outs, jaxpr, consts, zeros = linearized(lambda x: [7.0], vector)
    assert not jaxpr.eqns and not jaxpr.outvars and outs == [7.0]
    assert isinstance(apply_linear(jaxpr, consts, zeros, [vector])[0], Zero)


def test_a_result_may_be_an_argument_itself_and_twice():
    _, jaxpr, _, _ = linearized(lambda x, y: [x, x, y], vector, vector)
    assert not jaxpr.eqns and jaxpr.outvars == [jaxpr.invars[0], jaxpr.invars[0], jaxpr.invars[1]]


def test_an_unused_argument_stays_an_input():
    _, jaxpr, _, _ = linearized(lambda x, y: [sin(x)], vector, vector)
    assert len(jaxpr.invars) == 2
    assert all(jaxpr.invars[1] not in eqn.invars for eqn in jaxpr.eqns)


def test_dead_equations_are_dropped():
    def f(x):
        sin(mul(x, x))
        return [mul(x, 2.0)]
    assert names(linearized(f, vector)[1]) == ["mul"]


def test_integer_arguments_have_float0_tangents():
    _, jaxpr, _, zeros = linearized(lambda i, x: [i, x], np.int32(3), np.float32(1.0))
    assert jaxpr.invars[0].aval.dtype == float0 and zeros[1] is None


def test_a_residual_used_twice_is_kept_once():
    _, _, consts, _ = linearized(lambda x: [mul(x, x)], vector)
    assert len(consts) == 1 and consts[0].shape == (3,)


def test_branches_follow_the_primal():
    def f(x):
        return [mul(x, x) if gt(x, 0.0) else sin(x)]
    assert len(linearized(f, 2.0)[1].eqns) == 3           # two shares and their sum
    assert len(linearized(f, -2.0)[1].eqns) == 1          # the cosine is a number by then


def test_an_unknown_truth_value_is_refused():
    trace = PartialEvalTrace(eval_trace)
    x = trace.new_arg(f32)
    with set_current_trace(trace), pytest.raises(TracerBoolConversionError):
        bool(gt(x, 0.0))


def test_constants_of_an_outer_trace_are_residuals():
    seen = []

    def outer(x):
        _, jaxpr, consts, zeros = linearize_flat(lambda y: [mul(sin(x), y)], [vector])
        seen.extend(consts)
        return apply_linear(jaxpr, consts, zeros, [np.ones(3, np.float32)])

    (value,), (slope,) = jvp_flat(outer, [vector], [np.ones(3, np.float32)])
    assert [type(c) for c in seen] == [JVPTracer]
    np.testing.assert_allclose(value, np.sin(vector), rtol=1e-6)
    np.testing.assert_allclose(slope, np.cos(vector), rtol=1e-6)


def test_linearize_can_itself_be_traced():
    def f(x):
        outs, jaxpr, consts, zeros = linearize_flat(lambda x: [sin(x)], [x])
        return [*outs, *apply_linear(jaxpr, consts, zeros, [x])]
    jaxpr = trace_to_closed_jaxpr(f, [f32_3]).jaxpr
    check_jaxpr(jaxpr)
    outs = eval_jaxpr(jaxpr, [], vector)
    np.testing.assert_allclose(outs[1], np.cos(vector) * vector, rtol=1e-6)


def test_tracers_that_escape_are_told():
    kept = []
    linearized(lambda x: kept.append(x) or [sin(x)], 1.0)
    with pytest.raises(UnexpectedTracerError):
        sin(kept[0])


def test_the_trace_ends_after_an_error_too():
    kept = []

    def broken(x):
        kept.append(x)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        linearize_flat(broken, [1.0])
    assert not kept[0].tangent._trace.alive
    assert float(sin(0.0)) == 0.0                          # the current trace is as it was


# --- Splitting a program --------------------------------------------------------------------------

def test_both_parts_together_are_the_whole():
    def f(a, b, c):
        d = sin(a)
        return [mul(d, b), cos(d), add(mul(b, c), d), c]
    jaxpr, args = program(f, f32_3, f32_3, f32_3), (vector, vector + 1, vector - 2)
    whole = eval_jaxpr(jaxpr, [], *args)
    for mask in np.ndindex(2, 2, 2):
        for got, want in zip(joined(jaxpr, list(map(bool, mask)), args), whole, strict=True):
            np.testing.assert_array_equal(got, want)


def test_each_equation_is_in_one_part():
    jaxpr = program(lambda a, b: [mul(sin(a), cos(b))], f32, f32)
    known, _, later, out_unknown, n = split_jaxpr(jaxpr, [False, True])
    assert names(known) == ["sin"] and names(later) == ["cos", "mul"]
    assert out_unknown == [True] and n == 1


def test_residuals_come_before_unknown_inputs():
    jaxpr = program(lambda b, a: [mul(sin(a), b), reduce_sum(a, (0,))], f32, f32_3)
    known, _, later, out_unknown, n = split_jaxpr(jaxpr, [True, False])
    assert [v.aval.shape for v in later.invars] == [(3,), ()] and n == 1
    assert out_unknown == [True, False]
    assert [v.aval.shape for v in known.outvars] == [(), (3,)]       # known result, then residual


def test_a_residual_is_returned_once_however_often_it_is_used():
    def f(a, b):
        d = sin(a)
        return [mul(d, b), mul(b, d), mul(mul(b, d), d)]
    assert split_jaxpr(program(f, f32, f32), [False, True])[-1] == 1


def test_a_known_input_may_be_a_residual():
    known, _, _, _, n = split_jaxpr(program(lambda a, b: [mul(a, b)], f32, f32), [False, True])
    assert n == 1 and not known.eqns and known.outvars == known.invars


def test_nothing_unknown_and_nothing_known():
    jaxpr = program(lambda a: [sin(a), 2.0], f32)
    known, _, later, out_unknown, n = split_jaxpr(jaxpr, [False])
    assert names(known) == ["sin"] and not later.eqns and out_unknown == [False, False] and n == 0
    known, _, later, out_unknown, n = split_jaxpr(jaxpr, [True])
    assert not known.eqns and names(later) == ["sin"] and out_unknown == [True, False] and n == 0


def test_the_parts_of_a_jvp_are_primal_and_linear():
    jaxpr, consts, _ = jvp_jaxpr(program(lambda a: [sin(cos(a))], f32_3), (True,))
    known, _, later, _, n = split_jaxpr(jaxpr, [False, True])
    assert not consts and n == 2
    assert {"sin", "cos"} == set(names(known)) and set(names(later)) == {"mul", "neg"}


def test_programs_inside_programs_are_split_as_well():
    f = mj.jit(mj.jit(lambda a, b: jnp.sin(a) * b))
    jaxpr = mj.make_jaxpr(f)(1.0, 2.0).jaxpr
    known, consts, later, _, _ = split_jaxpr(jaxpr, [False, True])

    def deep(jaxpr):
        for eqn in jaxpr.eqns:
            yield eqn.primitive.name
            if "jaxpr" in eqn.params:
                yield from deep(eqn.params["jaxpr"].jaxpr)
    assert "sin" in deep(known) and "sin" not in deep(later) and "mul" in deep(later)
    assert np.isclose(joined(jaxpr, [False, True], (1.0, 2.0))[0], 2 * np.sin(1.0))


def test_constants_made_while_splitting_are_consts():
    jaxpr = convert_constvars_jaxpr(trace_to_jaxpr(lambda a: [add(a, vector)], [f32_3])[0])
    outs = joined(jaxpr, [False, True], (vector, vector))
    np.testing.assert_allclose(outs[0], 2 * vector)


# --- The memo -------------------------------------------------------------------------------------

def test_the_split_is_remembered_for_each_mask():
    jaxpr = program(lambda a, b: [mul(sin(a), b)], f32, f32)
    first = partial_eval_jaxpr(jaxpr, (False, True))
    assert partial_eval_jaxpr(jaxpr, (False, True)) is first
    assert partial_eval_jaxpr(jaxpr, (True, False)) is not first


def test_the_split_is_forgotten_with_a_rule_and_with_the_program():
    jaxpr = program(lambda a, b: [mul(sin(a), b)], f32, f32)
    first = partial_eval_jaxpr(jaxpr, (False, True))
    with forget("batch"):
        assert partial_eval_jaxpr(jaxpr, (False, True)) is not first
    alive = weakref.ref(jaxpr)
    del jaxpr, first
    gc.collect()                          # results refer to their program, which holds them
    assert alive() is None


def test_nesting_costs_no_power_of_two():
    calls = []

    def f(x):
        calls.append(1)
        return sin(x)

    for _ in range(12):
        f = mj.jit(f)
    assert np.isclose(mj.grad(f)(1.0), np.cos(1.0)) and len(calls) == 1


@pytest.mark.parametrize("transform", [lambda f: f, mj.jit])
def test_residuals_that_are_arguments_are_not_returned(transform):
    """Of x · y nothing has to be computed for later: the arguments themselves are kept."""
    _, f_lin = mj.linearize(transform(lambda x, y: x * y), vector, vector + 1)
    np.testing.assert_allclose(f_lin(vector, vector), vector * (2 * vector + 1), rtol=1e-6)


# --- Fewer residuals ------------------------------------------------------------------------------

def saved_less(f, *avals):
    """The parts of a split by which `f(known, unknown)` has been made to save less, and residuals."""
    known, consts, later, _, n = split_jaxpr(program(f, *avals), [False, True])
    parts = save_less(convert_constvars_jaxpr(known), later, n)
    assert not consts
    for jaxpr in parts[:2]:
        check_jaxpr(jaxpr)
    x, t = [np.linspace(0.5, 1.5, a.size, dtype=np.float32).reshape(a.shape) for a in avals]
    outs = eval_jaxpr(parts[0], [], x)
    found = eval_jaxpr(parts[1], [], *outs[len(outs) - parts[2]:], t)
    for got, want in zip([*outs[:len(outs) - parts[2]], *found], f(x, t)):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    return parts


def test_a_cheap_value_is_made_again_from_another_residual():
    def f(x, t):
        y = sin(x)
        return [mul(y, t), mul(mul(add(y, np.float32(1)), y), t)]
    known, later, n = saved_less(f, f32_3, f32_3)
    assert n == 1 and names(known) == ["sin", "add", "mul"]
    assert names(later) == ["add", "mul", "mul", "mul"]


def test_a_stretched_value_is_stretched_again():
    f = lambda x, t: [mul(mj.lax.broadcast(sin(x), (4,)), t)]
    known, later, n = saved_less(f, f32_3, ShapedArray((4, 3), np.dtype(np.float32)))
    assert known.out_avals == [f32_3] and names(later) == ["broadcast_in_dim", "mul"]


def test_what_is_not_cheap_or_has_no_source_is_kept():
    assert saved_less(lambda x, t: [mul(sin(x), mul(cos(sin(x)), t))], f32, f32)[2] == 2
    assert saved_less(lambda x, t: [mul(add(sin(x), cos(x)), t)], f32, f32)[2] == 1


def test_a_residual_that_nobody_reads_is_dropped():
    f = lambda x, t: [add(mul(sin(x), t), mj.lax.stop_gradient(cos(x)))]
    _, linear, consts, _ = linearized(f, vector, vector)
    assert len(consts) == len(linear.constvars) == 3          # not the slope of what is stopped
    softmax = lambda x: [mj.nn.softmax(x)]
    _, linear, consts, _ = linearized(softmax, vector)
    assert "eq" not in names(linear) and not any(c.dtype == np.bool_ for c in consts)


def attention(np_, nn, lax, q, k, v):
    return np_.sum(nn.softmax(q @ k.T) @ v)


def gru(np_, nn, lax, w, u, xs):
    def turn(h, x):
        z, c = nn.sigmoid(h @ w + x), np_.tanh(h @ u + x)
        h = (1 - z) * h + z * c
        return h, h
    return np_.sum(lax.scan(turn, 0 * xs[0], xs)[1])


def normalized(np_, nn, lax, x, gain, shift):
    centred = x - x.mean(-1, keepdims=True)
    return np_.sum((centred / np_.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * gain + shift) ** 2)


def layers(activation):
    def net(np_, nn, lax, x, w, u):
        act = np_.tanh if activation == "tanh" else getattr(nn, activation)
        return np_.mean((act(act(x @ w) @ u) - 1) ** 2)
    return net


NETWORKS = {
    **{name: (layers(name), (8, 5), (5, 7), (7, 6)) for name in (
        "tanh", "relu", "gelu", "sigmoid", "silu", "softplus", "elu", "leaky_relu", "relu6", "mish")},
    "softmax": (lambda np_, nn, lax, x, y: np_.sum(nn.softmax(x) * y), (8, 6), (8, 6)),
    "log_softmax": (lambda np_, nn, lax, x, y: np_.sum(nn.log_softmax(x) * y), (8, 6), (8, 6)),
    "logsumexp": (lambda np_, nn, lax, x: np_.sum(nn.logsumexp(x, -1)), (8, 6)),
    "layer norm": (normalized, (8, 6), (6,), (6,)),
    "attention": (attention, (8, 4), (8, 4), (8, 4)),
    "gru": (gru, (4, 4), (4, 4), (9, 4)),
}


def bytes_saved(jax, name):
    """What the derivative of a jitted function keeps, and the derivative."""
    f, *shapes = NETWORKS[name]
    rng = np.random.default_rng(0)
    args = [jax.numpy.asarray(rng.normal(size=s), np.float32) for s in shapes]
    y, pull = jax.vjp(jax.jit(lambda *args: f(jax.numpy, jax.nn, jax.lax, *args)), *args)
    arrays = {id(x): x for x in jax.tree_util.tree_leaves(pull) if hasattr(x, "nbytes")}
    return sum(x.nbytes for x in arrays.values()), pull(jax.numpy.ones_like(y))


@pytest.mark.parametrize("name", NETWORKS)
def test_jitted_functions_keep_no_more_than_in_jax(name):
    ours, derivative = bytes_saved(mj, name)
    theirs, want = bytes_saved(real_jax, name)
    assert ours <= theirs
    for got, expected in zip(derivative, want):
        np.testing.assert_allclose(got, expected, rtol=2e-4, atol=1e-5)
