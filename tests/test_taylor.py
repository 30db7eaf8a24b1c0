"""Taylor mode: as JAX's `jet` where that has rules, and as nested jvps everywhere (see test_rules)."""
import jax as real_jax
import jax.numpy as real_jnp
import numpy as np
import pytest
from jax.experimental.jet import jet as real_jet

import minijax as jax
import minijax.nn
import minijax.numpy as jnp
from minijax import lax
from minijax.core import Primitive, forget, primitives
from minijax.experimental.jet import jet

SERIES = [0.7, -0.5, 0.25, 1.5]

FUNCTIONS = {
    "exp": lambda np, lax, x: np.exp(x),
    "expm1": lambda np, lax, x: np.expm1(x),
    "log": lambda np, lax, x: np.log(x),
    "log1p": lambda np, lax, x: np.log1p(x),
    "logistic": lambda np, lax, x: lax.logistic(x),
    "sqrt": lambda np, lax, x: np.sqrt(x),
    "rsqrt": lambda np, lax, x: lax.rsqrt(x),
    "square": lambda np, lax, x: lax.square(x),
    "integer powers": lambda np, lax, x: x ** 5 + x ** -3,
    "pow": lambda np, lax, x: x ** 2.5 + 1.5 ** x + x ** x,
    "sin, cos": lambda np, lax, x: np.sin(x) + np.cos(2.0 * x),
    "sinh, cosh": lambda np, lax, x: np.sinh(x) + np.cosh(2.0 * x),
    "tanh": lambda np, lax, x: np.tanh(x),
    "asinh, atanh": lambda np, lax, x: np.arcsinh(x) + np.arctanh(x),
    "acosh": lambda np, lax, x: np.arccosh(x + 1.0),
    "erf": lambda np, lax, x: lax.erf(x) + lax.erfc(2.0 * x),
    "erf_inv": lambda np, lax, x: lax.erf_inv(x),
    "atan2": lambda np, lax, x: np.arctan2(x, x * x + 1.0),
    "div": lambda np, lax, x: (x + 1.0) / (x * x + 2.0) + 3.0 / x,
    "abs, max, min": lambda np, lax, x: np.abs(x - 1.0) * np.maximum(x, x * x) + np.minimum(x, 0.5 + 0 * x),
    "where": lambda np, lax, x: np.where(x > 0.4, np.sin(x), x),
    "floor, rem": lambda np, lax, x: np.floor(x * 7.0) * x + lax.rem(x, 0.25),
    "clamp": lambda np, lax, x: lax.clamp(0.45 + 0 * x, x, 0.55 + 0 * x) * x,
    "reductions": lambda np, lax, x: np.sum(np.sin(x)) + np.max(x * x) + np.min(x),
    "dot": lambda np, lax, x: np.dot(np.stack([x, x * x]), np.exp(x)),
    "shapes": lambda np, lax, x: np.concatenate([x[::-1], x[:1]]).reshape(2, 2).T * x[1],
    "indexing": lambda np, lax, x: x[np.array([2, 0, 0])] * lax.dynamic_slice(x, (1,), (1,)),
    "scatter-add": lambda np, lax, x: x.at[np.array([0, 0])].add(np.sin(x[:2])),
    "cumulative": lambda np, lax, x: np.cumsum(x) * np.cumprod(x),
    "constant": lambda np, lax, x: (3.0, x > 0.4, x),
}


@pytest.mark.parametrize("name, scaled", [*[(name, True) for name in FUNCTIONS], ("exp", False),
                                          ("dot", False), ("constant", False)])
def test_as_in_jax(name, scaled):
    f = FUNCTIONS[name]
    x = np.array([0.3, 0.5, 0.7])
    terms = [c * np.array([1.0, 0.5, -1.0]) for c in SERIES]
    with jax.enable_x64(), real_jax.enable_x64():
        got = jet(lambda x: f(jnp, lax, x), (jnp.array(x),), (terms,), factorial_scaled=scaled)
        want = real_jet(lambda x: f(real_jnp, real_jax.lax, x), (real_jnp.array(x),), (terms,),
                        factorial_scaled=scaled)
    assert jax.tree.structure(got) == jax.tree.structure(jax.tree.map(np.asarray, want))
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9)


def nested(f, x, terms):
    """Derivatives of f along x + terms[0] t + terms[1] t²/2 + …, by nested jvps."""
    def curve(t):
        return f(sum((c * t ** k / np.prod(np.arange(1.0, k + 1)) for k, c in enumerate(terms, 1)), x))
    out = []
    for _ in terms:
        curve = lambda t, g=curve: jax.jvp(g, (t,), (1.0,))[1]
        out.append(curve(0.0))
    return out


@jax.custom_jvp
def custom(x):
    return jnp.sin(x) * x


custom.defjvp(lambda primals, tangents: (custom(*primals), tangents[0] * 100.0))


@jax.custom_vjp
def reverse_only(x):
    return jnp.sin(x) * x


reverse_only.defvjp(lambda x: (reverse_only(x), x), lambda x, ct: (ct,))


def plain(x):
    return jnp.sin(x) * x


batched = jax.custom_batching.custom_vmap(plain)
batched.def_vmap(lambda size, mapped, x: (plain(x), True))


def closing_over(x):
    @jax.custom_jvp
    def f(y):
        return plain(y) * x
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return f(x)


PROGRAMS = {
    "jit": (jax.jit(plain), plain),
    "jit in jit": (jax.jit(lambda x: jax.jit(plain)(x) * x), lambda x: plain(x) * x),
    "checkpoint": (jax.checkpoint(plain), plain),
    "custom_jvp": (custom, plain),
    "custom_vjp": (reverse_only, plain),
    "custom_vmap": (batched, plain),
    "custom_jvp that closes over the point": (closing_over, lambda x: plain(x) * x),
    "cond": (lambda x: lax.cond(x > 0, plain, lambda x: 0.0 * x, x), plain),
    "cond, one branch still": (lambda x: lax.cond(x > 0, plain, lambda x: 1.0, x), plain),
    "switch": (lambda x: lax.switch(1, [jnp.cos, plain, jnp.exp], x), plain),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x),
                                       (0, jnp.cos(x)))[1], lambda x: jnp.cos(x) * x ** 3),
    "while that tests the point": (
        lambda x: lax.while_loop(lambda y: y < 2.0, lambda y: y * y + x, x),
        lambda x: ((x * x + x) ** 2 + x) ** 2 + x),
    "fori": (lambda x: lax.fori_loop(0, 3, lambda i, y: y * x + i, x),
             lambda x: ((x * x) * x + 1) * x + 2),
    "scan": (lambda x: lax.scan(lambda c, y: (c * x * y, c + y), 1.0, jnp.array([1.0, 2.0, 3.0]))[1],
             lambda x: jnp.stack([2.0 + 0 * x, x + 2, 2 * x * x + 3])),
    "scan, reversed, over rows that move": (
        lambda x: lax.scan(lambda c, y: (c * y, c), x, x * jnp.array([2.0, 3.0]), reverse=True)[0],
        lambda x: 6 * x ** 3),
    "scan in cond in jit": (
        jax.jit(lambda x: lax.cond(x > 0, lambda x: lax.scan(
            lambda c, _: (c * x, None), x, None, length=2)[0], lambda x: x, x)), lambda x: x ** 3),
    "grad": (jax.grad(lambda x: plain(x) * x), lambda x: jnp.cos(x) * x ** 2 + 2 * jnp.sin(x) * x),
    "grad of scan": (jax.grad(lambda x: lax.scan(lambda c, _: (c * x, None), x, None, length=2)[0]),
                     lambda x: 3 * x * x),
    "hessian": (jax.hessian(lambda x: x ** 5), lambda x: 20 * x ** 3),
    "vmap": (lambda x: jax.vmap(lambda y: plain(x * y))(jnp.arange(3.0)),
             lambda x: plain(x * jnp.arange(3.0))),
    "jet": (lambda x: jet(jnp.sin, (x * x,), ((x, 1.0),))[1][1],
            lambda x: -jnp.sin(x * x) * x * x + jnp.cos(x * x)),
    "jvp": (lambda x: jax.jvp(plain, (x,), (x,))[1], lambda x: x * (jnp.cos(x) * x + jnp.sin(x))),
    "linear solve": (lambda x: lax.custom_linear_solve(
        lambda v: (1 + x) * v, jnp.sin(x), lambda mv, b: b / mv(1.0)), lambda x: jnp.sin(x) / (1 + x)),
    "sort": (lambda x: jnp.sort(jnp.stack([x, x * x, jnp.sin(3 * x)])),
             lambda x: jnp.stack([x * x, x, jnp.sin(3 * x)])),
    "lgamma": (lax.lgamma, lax.lgamma),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_programs(name, compiled):
    program, same = PROGRAMS[name]
    with jax.enable_x64():
        x, terms = jnp.float64(0.6), SERIES[:3]
        expand = lambda x: jet(program, (x,), (terms,))
        value, series = (jax.jit(expand) if compiled else expand)(x)
        np.testing.assert_allclose(value, same(x), rtol=1e-9)
        for got, want in zip(series, nested(same, x, terms)):
            np.testing.assert_allclose(got, want, rtol=1e-7)


def test_is_a_function_like_any_other():
    third = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]
    np.testing.assert_allclose(jax.grad(third)(0.3), np.sin(0.3), rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(third, (0.3,), (2.0,))[1], 2 * np.sin(0.3), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(third))(jnp.arange(3.0)), -np.cos(np.arange(3.0)),
                               rtol=1e-6)


def test_several_arguments_and_results():
    value, series = jet(lambda x, y: {"sum": x + y, "product": (x * y, 2.0)}, (2.0, 3.0),
                        ((1.0, 0.0), [0.0, 4.0]))
    assert value == {"sum": 5.0, "product": (6.0, 2.0)}
    assert series == {"sum": [1.0, 4.0], "product": ([3.0, 8.0], [0.0, 0.0])}


def test_complex_numbers():
    z, (d, dd) = jet(lambda z: jnp.exp(z * z), (1j,), ((1.0 + 0j, 0j),))
    np.testing.assert_allclose([z, d, dd], np.exp(-1) * np.array([1, 2j, -2]), rtol=1e-6)
    z, (d, dd) = jet(jnp.abs, (3 + 4j,), ((1.0 + 0j, 0j),))
    np.testing.assert_allclose([z, d, dd], [5, 3 / 5, 16 / 125], rtol=1e-6)


def test_order_and_cost():
    assert jet(jnp.sin, (0.3,), ((),))[1] == []
    count = [len(jax.make_jaxpr(lambda x: jet(lambda x: jnp.tanh(jnp.sin(x) * x), (x,), (
        (1.0, *[0.0] * (n - 1)),)))(0.3).eqns) for n in (4, 8, 16)]
    assert count[2] < 4.5 * count[1] < 4.5 ** 2 * count[0]


POWERS = {
    "x ** 3": lambda np, x: x ** 3, "x ** 100": lambda np, x: x ** 100,
    "x ** -2": lambda np, x: x ** -2, "x ** 0": lambda np, x: x ** 0 * x,
    "x ** 2.5": lambda np, x: np.power(x, 2.5), "x ** -0.5": lambda np, x: np.power(x, -0.5),
    "1.5 ** x": lambda np, x: np.power(1.5, x), "x ** x": lambda np, x: np.power(x, x),
}


@pytest.mark.parametrize("name", POWERS)
def test_powers_as_in_jax_to_high_order(name):
    """Along a curve that bends, of scalars and of arrays; JAX takes e^(r log x), away from 0."""
    with jax.enable_x64(), real_jax.enable_x64():
        for x in (0.8, np.array([0.8, 1.1])):
            terms = [0.3 * x / (k + 1) for k in range(12)]
            got = jet(lambda x: POWERS[name](jnp, x), (x,), (terms,), factorial_scaled=False)
            want = real_jet(lambda x: POWERS[name](real_jnp, x), (x,), (terms,),
                            factorial_scaled=False)
            np.testing.assert_allclose(np.array(got[1]), np.array(want[1]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", POWERS)
def test_powers_cost_the_square_of_the_order(name):
    count = [len(jax.make_jaxpr(lambda x: jet(lambda x: POWERS[name](jnp, jnp.sin(x)), (x,), (
        (1.0, *[0.0] * (n - 1)),)))(0.3).eqns) for n in (8, 16, 32)]
    assert count[2] < 4 * count[1] < 16 * count[0]


@pytest.mark.parametrize("power", [2.5, 0.5, 3.0, 1.0, 0.0, -1.5, 2, 3, 5])
def test_powers_at_zero(power):
    """Where nested jvps give numbers, these are the same: all of them for whole powers."""
    x, terms = np.zeros(2, np.float32), [np.float32([1, 2]), np.float32([0.5, -1]), np.float32([3, 0])]
    f = lambda x: x ** power if type(power) is int else jnp.power(x, np.float32(power))
    got, want = jet(f, (x,), (terms,))[1], nested(f, x, terms)
    finite = np.isfinite(want)
    assert finite.all() or type(power) is float
    np.testing.assert_allclose(np.array(got)[finite], np.array(want)[finite], rtol=1e-5)


def test_a_loop_is_expanded_once():
    """The scan on series has a body that grows like a power of the order, not twofold with it."""
    def sizes(n):
        f = lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, None, length=10)[0]
        jaxpr = jax.make_jaxpr(lambda x: jet(f, (x,), ((1.0,) * n,)))(0.3)
        (loop,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]
        return len(loop.params["jaxpr"].eqns)
    assert sizes(8) < 4.5 * sizes(4)


ERRORS = [
    (lambda jet, one: jet(lambda x, y: x, (one, one), ((one,), (one, one))), ValueError, "inconsistent lengths"),
    (lambda jet, one: jet(lambda: one, (), ()), ValueError, "inconsistent lengths"),
    (lambda jet, one: jet(lambda x: x, ((one, one),), ((one,),)), ValueError,
     "primal value at position 0 is not an array"),
    (lambda jet, one: jet(lambda x: x, (one,), (((one,),),)), ValueError,
     "term 0 for argument 0 is not an array"),
    (lambda jet, one: jet(3, (one,), ((one,),)), TypeError, "callable"),
    (lambda jet, one: jet(lambda x, y: x, (one, one), ((one,),)), TypeError, "missing"),
    (lambda jet, one: jet(lambda x: x * x, (3,), ((one,),)), TypeError, "floating-point"),
    (lambda jet, one: jet(lambda x: x * x, (one,), ((one[None].repeat(2),),)), TypeError, None),
]


@pytest.mark.parametrize("call, error, message", ERRORS)
def test_errors_are_of_jaxs_type(call, error, message):
    with pytest.raises(error, match=message):
        call(jet, jnp.float32(1.0))
    if message is not None:
        with pytest.raises(error):
            call(real_jet, real_jnp.float32(1.0))


def test_no_rule():
    lonely = Primitive("lonely_for_a_test")
    lonely.def_impl(lambda x: x)
    lonely.def_abstract_eval(lambda x: x)
    try:
        with pytest.raises(NotImplementedError, match="lonely_for_a_test"):
            jet(lambda x: lonely.bind(x), (1.0,), ((1.0,),))
        lonely.def_jet(lambda k, out, x: x[k])
        assert jet(lambda x: lonely.bind(x), (1.0,), ((2.0, 3.0),))[1] == [2.0, 3.0]
    finally:
        del primitives["lonely_for_a_test"]


def test_rules_can_be_taken_away():
    """Without jet rules the jvp rules do, and without those nothing does."""
    f = lambda x: x * x * x / (x + 1.0)
    expand = lambda: np.array(jet(f, (2.0,), ((1.0, 0.0, 0.0),))[1])
    want = expand()
    with forget("jet"):
        np.testing.assert_allclose(expand(), want, rtol=1e-5)
        with forget("jvp"), pytest.raises(NotImplementedError):
            expand()


@pytest.mark.parametrize("error, f", [
    (KeyError, lambda np, lax, x: lax.scan(lambda c, _: (c * x, None), x, None, length=2)[0]),
    (KeyError, lambda np, lax, x: lax.cond(True, np.sin, np.cos, x)),
    (KeyError, lambda np, lax, x: lax.lgamma(x)),
    (TypeError, lambda np, lax, x: np.abs(x * 1j)),
    (TypeError, lambda np, lax, x: lax.clamp(0.2, np.stack([x, x]), 0.7)),
])
def test_more_than_jax_has(error, f):
    """The rows about `jet` in the book's table of departures."""
    with pytest.raises(error):
        real_jet(lambda x: f(real_jnp, real_jax.lax, x), (0.5,), ((1.0, 0.0),))
    got = jet(lambda x: f(jnp, lax, x), (0.5,), ((1.0, 0.0),))[1]
    want = nested(lambda x: f(jnp, lax, x), 0.5, [1.0, 0.0])
    np.testing.assert_allclose(np.array(got), np.array(want), rtol=1e-5)


def test_powers_of_numbers_below_zero():
    power = lambda np, x: np.power(x, np.float32(3.0))
    assert np.isnan(real_jet(lambda x: power(real_jnp, x), (-1.0,), ((1.0, 0.0),))[1]).all()
    np.testing.assert_allclose(jet(lambda x: power(jnp, x), (-1.0,), ((1.0, 0.0),))[1], [3.0, -6.0])
