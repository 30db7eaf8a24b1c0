"""Loops that are written with vectors: whole ones, what is left over, masks, and gathered elements."""

import re
from functools import partial

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.compiler import compile_jaxpr
from minijax.compiler.native import module_text, part_texts
from minijax.compiler.plan import Plan

SIZES = [16, 17, 31, 32, 48, 63, 64, 100, 255, 256, 257, 1000, 4099]


def rng():
    return np.random.default_rng(3)


def effort_of(f, *args):
    """1 if every loop that is worth it is written with vectors, 2 if some are left to LLVM."""
    plan = Plan(minijax.jit(f).lower(*args).compile().executable.program)
    return module_text(plan, part_texts(plan))[1]


def plain(f, *args):
    """The results of the generated source, run as Python."""
    closed = minijax.make_jaxpr(f)(*args)
    return compile_jaxpr(closed, renderer="plain")(*args)[0]


ELEMENTWISE = {
    "float32": (lambda x: jnp.maximum(x, 0.5) / (x * x + 1), np.float32),
    "exp": (lambda x: jnp.exp(x) - 1, np.float32),
    "bool": (lambda x: (x > 0) & (x < 3), np.float32),
    "mixed": (lambda x: x.astype(jnp.float32) * 1.5 + (x > 1), np.int8),
    "integers": (lambda x: x // 3 + x % 5, np.int32),
    "float16": (lambda x: x + 1, np.float16),
    "bfloat16": (lambda x: (x.astype(jnp.bfloat16) * 3).astype(jnp.float32), np.float32),
    "complex": (lambda x: jnp.abs(x * (1 + 2j)), np.complex64),
    "complex results": (lambda x: jnp.where(x.real > 0, x * x - 1j, x.conj()), np.complex64),
    "made complex": (lambda x: lax.complex(x, x + 1) * 2, np.float32),
    "positions": (lambda x: x + jnp.arange(x.size, dtype=np.float32), np.float32),
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name, n):
    f, dtype = ELEMENTWISE[name]
    x = (rng().normal(size=n) * 4).astype(dtype)
    np.testing.assert_allclose(minijax.jit(f)(x), f(minijax.numpy.asarray(x)), rtol=3e-6, atol=1e-6)


PLACES = {
    "shifted": lambda x: x[1:] - x[:-1],
    "padded": lambda x: jnp.pad(x, (3, 5)) * 2,
    "reversed": lambda x: x[::-1] + x,
    "every third": lambda x: x[::3] * 2,
    "joined": lambda x: jnp.concatenate([x, x * 2, x[:5]]),
    "rolled": lambda x: jnp.roll(x, 7) + x,
    "repeated": lambda x: jnp.repeat(x, 3) + 1,
    "tiled": lambda x: jnp.tile(x, 2) - 1,
    "chosen": lambda x: x[jnp.argsort(x)] + x[(jnp.arange(x.size) * 7) % x.size],
    "in order": lambda x: x[jnp.argsort(x)] + x,
    "set": lambda x: x.at[3:9].set(0.0) * 2,
}


@pytest.mark.parametrize("n", [17, 64, 300, 5000])
@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_elements_that_lie_elsewhere(name, n, dtype):
    f, x = PLACES[name], rng().normal(size=n).astype(dtype)
    x *= dtype(2 - 1j) if x.dtype.kind == "c" else 1
    np.testing.assert_array_equal(minijax.jit(f)(x), f(jnp.asarray(x)))


ROWS = {
    "scaled": lambda lib, x, k: x * x[:, :1] - 1,
    "chosen": lambda lib, x, k: x[k] * 2,
    "added up": lambda lib, x, k: lib.numpy.zeros_like(x).at[k].add(lib.numpy.sin(x)),
    "divided by their sums": lambda lib, x, k: lib.nn.softmax(x),
}


@pytest.mark.parametrize("n", [5, 6, 7, 8, 9, 12, 15])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_short_rows(name, n, dtype):
    x, k = rng().normal(size=(300, n)).astype(dtype), rng().integers(-5, 400, 300)
    got = minijax.jit(partial(ROWS[name], minijax))(x, k)
    want = jax.jit(partial(ROWS[name], jax))(x, k)
    np.testing.assert_allclose(got, want, rtol=3e-6 if dtype == np.float32 else 3e-3, atol=1e-6)


def test_short_rows_are_written_with_vectors():
    for n in (6, 8, 11):
        assert effort_of(lambda x: x * x[:, :1], np.ones((10_000, n), np.float32)) == 1


@pytest.mark.parametrize("n", [16, 37, 100])
def test_complex_numbers_that_a_loop_carries(n):
    def f(lib, z, c):
        def turn(z, k):
            following = lib.numpy.where(abs(z) < 2, z * z + c, z).at[1:20].add(1j * k)
            return following, (following[0], abs(following).sum())
        return lib.lax.scan(turn, z, lib.numpy.arange(3.0))

    z, c = (rng().normal(size=(2, n, 2)) @ [0.5, 0.5j]).astype(np.complex64)
    assert effort_of(partial(f, minijax), z, c) == 1
    for got, want in zip(minijax.tree.leaves(minijax.jit(partial(f, minijax))(z, c)),
                         jax.tree.leaves(jax.jit(partial(f, jax))(z, c)), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(512, 512), (300, 260), (257, 263), (2, 400, 256)])
def test_rows_and_columns_at_once(shape):
    x = rng().normal(size=shape).astype(np.float32)
    f = (lambda x: x[..., :256, :256] + jnp.swapaxes(x[..., :256, :256], -1, -2))
    np.testing.assert_array_equal(minijax.jit(f)(x), f(jnp.asarray(x)))
    g = (lambda x: jnp.swapaxes(x, -1, -2) * 2)
    np.testing.assert_array_equal(minijax.jit(g)(x), g(jnp.asarray(x)))


REDUCTIONS = {
    "sum": (jnp.sum, np.float32), "max": (jnp.max, np.float32), "min of integers": (jnp.min, np.int32),
    "any": (lambda x: jnp.any(x > 3), np.float32), "all": (lambda x: jnp.all(x < 3), np.float32),
    "sum of integers": (jnp.sum, np.int32), "product": (lambda x: jnp.prod(1 + x / 1000), np.float32),
    "sum of uint8": (jnp.sum, np.uint8), "max of uint8": (jnp.max, np.uint8),
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, n):
    """Accumulators in a vector are those of the source, which names each of them."""
    f, dtype = REDUCTIONS[name]
    x = np.abs(rng().normal(size=n) * 4).astype(dtype)
    got = minijax.jit(f)(x)
    np.testing.assert_allclose(got, f(jnp.asarray(x)), rtol=1e-5)
    if name != "product":           # 1 + x / 1000 and the product may be rounded together
        np.testing.assert_array_equal(got, plain(f, x))


@pytest.mark.parametrize("n", range(1, 20))
def test_few_gathered_elements_that_are_then_reduced(n):
    x = rng().normal(size=n).astype(np.float32)
    order = rng().permutation(n)
    values, largest, total = minijax.jit(lambda x, i: (x[i], x[i].max(), x[i].sum()))(x, order)
    np.testing.assert_array_equal(values, x[order])
    assert largest == x.max()
    np.testing.assert_allclose(total, x.sum(), rtol=1e-6, atol=1e-6)



@pytest.mark.parametrize("n", [63, 64, 257])
def test_nan_and_signed_zeros_in_every_lane(n):
    for place in range(0, n, 7):
        x = np.full(n, -0.0, np.float32)
        x[place] = np.nan
        assert np.isnan(minijax.jit(jnp.max)(x)) and np.isnan(minijax.jit(jnp.min)(x))
    y = np.asarray(minijax.jit(lambda x: x * 1)(np.full(n, -0.0, np.float32)))
    assert np.signbit(y).all()


def test_loops_are_written_with_vectors():
    matrix, vector = np.ones((300, 1000), np.float32), np.ones(100_000, np.float32)
    for f, x in ((jnp.sum, matrix), (lambda x: jnp.sum(x, axis=0), matrix), (jnp.exp, vector),
                 (minijax.nn.softmax, matrix), (lambda x: x + x[::-1], vector),
                 (minijax.grad(minijax.nn.logsumexp), vector), (lambda x: x.T * 2, matrix),
                 (jnp.sin, vector), (lambda x: jnp.sum(jnp.sin(x)), vector),
                 (lambda x: x * x + 1j, vector.astype(complex))):
        assert effort_of(f, x) == 1
    assert effort_of(lax.lgamma, vector) == 2           # which is a call of the C library


# --- Functions that are called --------------------------------------------------------------------

def functions_of(f, x):
    """The functions of floats that stand apart in the module of a program."""
    return set(re.findall(r'define internal [^@]*@"([a-z]\w*_(?:v16)?f\d\d)"',
                          minijax.jit(f).lower(x).compile().as_text("llvm")))


@pytest.mark.parametrize("n", [None, 5, 16, 37])
@pytest.mark.parametrize("name", "exp tanh log erf sin cos tan expm1 cbrt".split())
def test_a_function_that_is_used_often_is_called(name, n):
    """The numbers are those of its instructions in place, to the last bit."""
    once = lambda x: getattr(lax, name)(1 / (1 + jnp.abs(x)))
    x = (rng().normal(size=n or ()) * 3).astype(np.float32)[()]
    often = lambda x: once(once(once(once(once(x)))))
    assert functions_of(often, x) and not functions_of(once, np.float32(1))
    want = np.ravel(x)
    for _ in range(5):
        want = [np.float32(minijax.jit(once)(number)) for number in want]
    np.testing.assert_array_equal(np.ravel(minijax.jit(often)(x)), want)


def test_a_function_that_is_seldom_used_stands_in_place():
    x = np.ones(1000, np.float32)
    assert not functions_of(lambda x: jnp.tanh(jnp.tanh(x)), x)
    assert functions_of(lambda x: jnp.sin(x) + jnp.cos(x), x) == {"sin_v16f32", "cos_v16f32"}
    # loops that are left to LLVM become vectors only if there is no call in them
    assert not functions_of(lambda x: lax.lgamma(jnp.sin(jnp.sin(x))), np.ones(4096, np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles_in_some_lanes(name, dtype):
    f, x = minijax.jit(getattr(lax, name)), rng().normal(size=203)
    scales = 10.0 ** rng().integers(-30, 37 if dtype == np.float32 else 300, size=203)
    x = np.where(rng().random(203) < 0.2, x * scales, x).astype(dtype)
    x[[7, 30, 31, 202]] = np.inf, np.nan, -np.inf, -0.0
    with minijax.enable_x64(dtype == np.float64):
        got = np.asarray(f(x))
        np.testing.assert_array_equal(got, [np.asarray(f(number)) for number in x])
    assert np.isnan(got).sum() == 3 and got.dtype == dtype


# --- Products and sums that are rounded at once ---------------------------------------------------

def test_contraction_is_that_of_jax():
    a, b, c = rng().normal(size=(3, 1000)).astype(np.float32)
    factors = np.full(50, np.float32(0.77))

    def f(a, b, c):
        return a * b + c

    def repeated(scan, factors):
        return scan(lambda s, h: (s * h + 1.5, s), np.float32(1.3), factors)[1]

    # other tests in this process may have told XLA not to optimise
    fast = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 3})
    np.testing.assert_array_equal(minijax.jit(f)(a, b, c), fast(f)(a, b, c))
    np.testing.assert_array_equal(repeated(lax.scan, factors),
                                  fast(partial(repeated, jax.lax.scan))(factors))


def test_equal_products_still_cancel():
    a, b = rng().normal(size=(2, 1000)).astype(np.float32)
    for f in (lambda a, b: a * b - a * b, lambda a, b: a * b - b * a):
        assert not np.any(minijax.jit(f)(a, b))


@pytest.mark.parametrize("dtype", "bool int8 int16 float16 bfloat16 int32 float32 complex64".split())
def test_no_row_is_stored_beyond_its_end(dtype):
    """Rows are stored from the last to the first: what is stored too much stays in the next one."""
    for n in (1, 3, 7, 9, 15, 17, 33, 49):
        x = np.arange(1, n + 1).astype(np.dtype(getattr(jnp, dtype)))
        f = lambda x: lax.scan(lambda c, _: (c + c, c), x, None, length=3, reverse=True)[1]
        with minijax.disable_jit():
            wanted = np.asarray(f(jnp.asarray(x)))
        np.testing.assert_array_equal(np.asarray(minijax.jit(f)(x)), wanted)
