"""The machinery of running backwards: sums, zeros, known operands, what rules are asked."""

import numpy as np
import pytest

import minijax as mj
import minijax.numpy as jnp
from minijax import core
from minijax.avals import ShapedArray, typeof
from minijax.core import Primitive, forget
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.staging import trace_to_closed_jaxpr, trace_to_jaxpr
from minijax.interpreters.transpose import CotangentSums, backward_pass, read
from minijax.jaxpr import Literal, Var, check_jaxpr, eval_jaxpr
from minijax.primitives.elementwise import add, cos, mul, mul_p, neg, sin
from minijax.primitives.reductions import reduce_sum
from minijax.primitives.structural import broadcast_in_dim
from minijax.rules import UndefinedPrimal, Zero, is_undefined_primal, is_zero

f32 = ShapedArray((), np.dtype(np.float32))
f32_3 = ShapedArray((3,), np.dtype(np.float32))
vector = np.array([0.5, -1.0, 2.0], np.float32)
ct = np.array([1.0, 10.0, 100.0], np.float32)


def program(f, *avals):
    return trace_to_jaxpr(f, avals)


def program_backwards(jaxpr):
    """The program that the backward pass through a program of one number runs."""
    undefined = [UndefinedPrimal(f32)]
    return trace_to_closed_jaxpr(lambda u: backward_pass(jaxpr, [], undefined, [u]), [f32])


def backwards(f, avals, cts, known=()):
    """Cotangents of the arguments; `known` maps numbers of arguments to their values."""
    jaxpr, consts = program(f, *avals)
    known = dict(known)
    args = [known.get(i, UndefinedPrimal(a)) for i, a in enumerate(avals)]
    return backward_pass(jaxpr, consts, args, cts)


def assert_transposed(f, avals, seed=0):
    """⟨u, L v⟩ = ⟨Lᵀ u, v⟩ for random u and v."""
    rng = np.random.default_rng(seed)
    jaxpr, consts = program(f, *avals)
    vs = [rng.normal(size=a.shape).astype(np.float32) for a in avals]
    us = [rng.normal(size=v.aval.shape).astype(np.float32) for v in jaxpr.outvars]
    outs = eval_jaxpr(jaxpr, consts, *vs)
    in_cts = backward_pass(jaxpr, consts, [UndefinedPrimal(a) for a in avals], us)
    assert all(typeof(c).shape == a.shape for c, a in zip(in_cts, avals) if not is_zero(c))
    left = sum(np.sum(u * np.asarray(out)) for u, out in zip(us, outs))
    right = sum(np.sum(np.asarray(c) * v) for c, v in zip(in_cts, vs) if not is_zero(c))
    np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


@pytest.fixture
def two_results_p():
    """(x, y) -> (2 x, x + y): linear in both; it keeps the cotangents that its rule was given."""
    primitive = Primitive("two_results_for_tests", multiple_results=True)
    primitive.given = []

    @primitive.def_abstract_eval
    def _(x, y):
        return [x, x]

    @primitive.def_transpose
    def _(cts, x, y):
        primitive.given.append(cts)
        first, second = [0.0 if is_zero(c) else c for c in cts]
        return [add(mul(2.0, first), second), second]

    yield primitive
    del core.primitives[primitive.name]


# --- Copy and sum ---------------------------------------------------------------------------------

@pytest.mark.parametrize("f, avals", [
    (lambda v: [neg(v)], [f32_3]),
    (lambda v, w: [add(v, w)], [f32_3, f32_3]),
    (lambda v: [mul(v, vector)], [f32_3]),
    (lambda v: [mul(vector, v)], [f32_3]),
    (lambda v: [reduce_sum(v, (0,))], [f32_3]),
    (lambda v: [broadcast_in_dim(v, (3, 2), (0,))], [f32_3]),
    (lambda v: [mul(v, vector)], [f32]),
    (lambda v, w: [add(v, w)], [f32, f32_3]),
    (lambda v: [v, v, neg(v)], [f32_3]),
    (lambda v, w: [add(mul(v, vector), neg(add(v, w))), w], [f32_3, f32_3]),
])
def test_backwards_is_the_transpose(f, avals):
    assert_transposed(f, avals)


def test_readers_add_up():
    assert np.allclose(backwards(lambda v: [add(add(v, v), v)], [f32_3], [ct])[0], 3 * ct)
    assert np.allclose(backwards(lambda v: [v, v], [f32_3], [ct, 2 * ct])[0], 3 * ct)


def test_a_long_chain_of_forks_is_walked_once():
    """2⁴⁰ paths lead from the result to the input, but only 40 equations."""
    def doubled(v):
        for _ in range(40):
            v = add(v, v)
        return [v]
    jaxpr, _ = program(doubled, f32)
    closed = program_backwards(jaxpr)
    assert len(closed.eqns) == 40
    assert backwards(doubled, [f32], [1.0])[0] == 2.0 ** 40


def test_a_fan_out_becomes_a_sum_in_the_program():
    jaxpr, _ = program(lambda v: [add(neg(v), mul(v, 2.0))], f32)
    closed = program_backwards(jaxpr)
    check_jaxpr(closed)
    assert sorted(e.primitive.name for e in closed.eqns) == ["add_any", "mul", "neg"]


# --- Zeros ----------------------------------------------------------------------------------------

def test_an_unused_input_has_a_symbolic_zero():
    first, second = backwards(lambda v, w: [neg(v)], [f32_3, f32], [ct])
    assert np.allclose(first, -ct)
    assert is_zero(second) and second.aval.shape == ()


def test_zero_cotangents_cost_nothing():
    """Of two results only one is asked for: no rule of the other's equations is called."""
    with forget("transpose", mul_p):
        first, second = backwards(lambda v, w: [neg(v), mul(w, vector)], [f32_3, f32_3],
                                  [ct, Zero(f32_3)])
    assert np.allclose(first, -ct) and is_zero(second)


def test_all_cotangents_zero():
    in_ct, = backwards(lambda v: [neg(v)], [f32_3], [Zero(f32_3)])
    assert is_zero(in_ct) and in_ct.aval.shape == (3,)


def test_a_rule_may_return_zero_or_none():
    with forget("transpose", mul_p):
        mul_p.def_transpose(lambda u, x, y: [Zero(x.aval), None])
        assert is_zero(backwards(lambda v: [mul(v, 2.0)], [f32_3], [ct])[0])
        mul_p.def_transpose(lambda u, x, y: [None, None])
        assert is_zero(backwards(lambda v: [mul(v, 2.0)], [f32_3], [ct])[0])


# --- Several results ------------------------------------------------------------------------------

def test_a_rule_of_several_results_gets_a_zero_for_those_not_asked_for(two_results_p):
    def f(v, w):
        first, second = two_results_p.bind(v, w)
        return [first]
    v_ct, w_ct = backwards(f, [f32, f32], [1.0])
    given, = two_results_p.given
    assert given[0] == 1.0 and is_zero(given[1])
    assert v_ct == 2.0 and w_ct == 0.0


def test_several_results_and_operands(two_results_p):
    v_ct, w_ct = backwards(two_results_p.bind, [f32_3, f32_3], [ct, 5 * ct])
    assert np.allclose(v_ct, 7 * ct) and np.allclose(w_ct, 5 * ct)


def test_several_results_none_of_which_is_asked_for(two_results_p):
    def f(v, w):
        two_results_p.bind(v, w)
        return [w]
    v_ct, w_ct = backwards(f, [f32, f32], [3.0])
    assert not two_results_p.given and is_zero(v_ct) and w_ct == 3.0


# --- Known operands -------------------------------------------------------------------------------

def test_literals_and_constants_have_no_cotangent():
    assert np.allclose(backwards(lambda v: [add(mul(v, 2.0), mul(v, vector))], [f32_3], [ct])[0],
                       ct * (2 + vector))


def test_a_literal_or_constant_result_is_passed_over():
    in_ct, = backwards(lambda v: [2.0, vector, neg(v)], [f32_3], [np.float32(1.0), ct, ct])
    assert np.allclose(in_ct, -ct)


def test_known_inputs_have_none_and_are_used():
    cts = backwards(lambda y, v: [mul(v, y)], [f32_3, f32_3], [ct], {0: vector})
    assert cts[0] is None and np.allclose(cts[1], ct * vector)


def test_what_no_linear_input_reaches_is_run_forwards():
    def f(y, v):
        z = cos(mul(y, y))
        return [mul(z, v), mul(v, sin(z))]
    in_ct = backwards(f, [f32_3, f32_3], [ct, ct], {0: vector})[1]
    z = np.cos(vector * vector)
    np.testing.assert_allclose(in_ct, ct * (z + np.sin(z)), rtol=1e-5)


def test_a_known_input_that_is_a_result():
    assert backwards(lambda y, v: [y, neg(v)], [f32, f32], [5.0, 1.0], {0: 3.0}) == [None, -1.0]


def test_read_tells_known_from_linear():
    known, linear = Var(f32), Var(f32)
    values = {known: 3.0}
    assert read(values, known) == 3.0 and read(values, Literal(np.float32(2), f32)) == 2.0
    assert is_undefined_primal(read(values, linear)) and read(values, linear).aval == f32


def test_constants_may_be_tracers_of_an_outer_trace():
    def outer(y):
        jaxpr, consts = trace_to_jaxpr(lambda v: [mul(v, sin(y))], [f32_3])
        return backward_pass(jaxpr, consts, [UndefinedPrimal(f32_3)], [ct])
    (value,), (slope,) = jvp_flat(outer, [vector], [np.ones(3, np.float32)])
    np.testing.assert_allclose(value, ct * np.sin(vector), rtol=1e-6)
    np.testing.assert_allclose(slope, ct * np.cos(vector), rtol=1e-6)


# --- What goes wrong ------------------------------------------------------------------------------

def test_a_cotangent_of_another_shape_is_refused():
    with forget("transpose", mul_p):
        mul_p.def_transpose(lambda u, x, y: [mul(u, y), None])
        with pytest.raises(AssertionError, match=r"shape \(3,\) for a value of type"):
            backwards(lambda v: [mul(v, vector)], [f32], [ct])


def test_too_few_cotangents_are_refused():
    with forget("transpose", mul_p):
        mul_p.def_transpose(lambda u, x, y: [mul(u, y)])
        with pytest.raises(ValueError, match="shorter"):
            backwards(lambda v: [mul(v, 2.0)], [f32_3], [ct])


def test_a_program_that_is_not_linear_is_refused():
    with pytest.raises(NotImplementedError, match="no transpose rule for primitive 'sin'"):
        backwards(lambda v: [sin(v)], [f32], [1.0])


@pytest.mark.parametrize("f", [
    lambda x: x * x,
    lambda x: 1.0 / x,
    lambda x: jnp.where(x > 0, 1.0, 2.0),
    lambda x: jnp.arange(3.0)[x.astype(int)],
    lambda x: mj.jit(lambda y: y * y)(x),
    lambda x: mj.lax.cond(x > 0, lambda: x, lambda: 2 * x),
    lambda x: mj.lax.cond(True, lambda: x * x, lambda: 2 * x),
    lambda x: mj.lax.scan(lambda c, _: (c * x, None), x, None, length=2)[0],
], ids=["product", "quotient", "select", "index", "jit", "predicate", "branch", "scan"])
def test_a_function_that_needs_its_arguments_value_is_refused(f):
    with pytest.raises(TypeError, match="only a linear function can be transposed"):
        mj.linear_transpose(f, 2.0)(1.0)


def test_sums_drop_what_goes_to_constants():
    known, linear = Var(f32), Var(f32)
    sums = CotangentSums({known: 3.0})
    for atom in (known, Literal(np.float32(1), f32), linear):
        sums.add(atom, np.float32(1.0))
    assert list(sums.sums) == [linear]
    assert sums.of(linear) == 1.0 and sums.take(linear) == 1.0 and is_zero(sums.take(linear))


# --- Compositions ---------------------------------------------------------------------------------

def test_gradients_nest_in_every_order():
    f = lambda x: jnp.sum(jnp.sin(x) * x * x)
    second = -np.sin(vector) * vector ** 2 + 4 * vector * np.cos(vector) + 2 * np.sin(vector)
    ones = np.ones(3, np.float32)
    over = [mj.grad(lambda x: jnp.sum(mj.grad(f)(x)))(vector),
            mj.jvp(mj.grad(f), (vector,), (ones,))[1],
            mj.grad(lambda x: mj.jvp(f, (x,), (ones,))[1])(vector),
            mj.vjp(mj.grad(f), vector)[1](ones)[0],
            mj.linearize(mj.grad(f), vector)[1](ones)]
    for got in over:
        np.testing.assert_allclose(got, second, rtol=2e-5)


def test_the_backward_pass_can_be_batched():
    _, f_vjp = mj.vjp(lambda x: jnp.sin(x) * 2.0, vector)
    basis = np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(mj.vmap(f_vjp)(basis)[0], np.diag(2 * np.cos(vector)), atol=1e-6)


def test_a_vjp_may_be_applied_again():
    _, f_vjp = mj.vjp(lambda x: x * x, vector)
    for scale in (1.0, 2.0):
        np.testing.assert_allclose(f_vjp(scale * ct)[0], 2 * vector * ct * scale, rtol=1e-6)


def test_an_equation_that_runs_backwards_is_from_the_line_of_its_own():
    """As in JAX: messages and tools lead to where the value was used, not to the call of grad."""
    def f(x):
        y = jnp.sin(x)
        return jnp.sum(y * 2.0)

    jaxpr = mj.make_jaxpr(mj.grad(f))(np.ones(3, np.float32)).jaxpr
    lines = {eqn.source_info.line - f.__code__.co_firstlineno for eqn in jaxpr.eqns
             if eqn.primitive.name == "mul" and eqn.source_info.code is f.__code__}
    assert lines == {1, 2}
