"""Loops and branches: values, types, programs and errors, against real JAX."""
import re
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax.numpy as mnp
from minijax.config import enable_checks
from minijax.jaxpr import check_jaxpr, dce_jaxpr, eval_jaxpr

F = np.float32
V = np.array([0.5, -1.25, 2.0, 0.75], F)
M = np.arange(12, dtype=F).reshape(4, 3) / 5 - 1


def compare(ours, theirs, rtol=1e-5):
    ours, theirs = minijax.tree.flatten(ours), jax.tree.flatten(theirs)
    assert str(ours[1]) == str(theirs[1])
    for a, b in zip(ours[0], theirs[0], strict=True):
        if not isinstance(b, jax.Array):        # JAX hands NumPy arrays and numbers on as they are
            a, b = np.asarray(a), np.asarray(jnp.asarray(b))
        assert a.shape == b.shape and a.dtype == b.dtype
        assert getattr(a, "weak_type", None) == getattr(b, "weak_type", None)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-6)


def agree(f, *args, rtol=1e-5):
    """f(library, *args) equals JAX's, eager and jitted, in values, types and structure."""
    theirs = f(jax, *args)
    compare(f(minijax, *args), theirs, rtol)
    compare(minijax.jit(lambda *xs: f(minijax, *xs))(*args), theirs, rtol)


# --- Values and types -----------------------------------------------------------------------------

FUNCTIONS = {
    "cond": lambda lib: lib.lax.cond(True, lambda x: x + 1, lambda x: x * 2.5, 2.0),
    "cond without operands": lambda lib: lib.lax.cond(False, lambda: 1, lambda: 2),
    "cond with operand": lambda lib: lib.lax.cond(1, lambda x: x, lambda x: x, operand={"a": V}),
    "cond, operand None": lambda lib: lib.lax.cond(1.5, lambda _: 1.0, lambda _: 2.0, operand=None),
    "cond, old form": lambda lib: lib.lax.cond(False, V, lambda x: x + 1, 2 * V, lambda x: x - 1),
    "cond of an array": lambda lib: lib.lax.cond(lib.numpy.array(0.0), lambda: V, lambda: -V),
    "cond of weak and strong": lambda lib: lib.lax.cond(True, lambda: 1.0, lambda: F(2)),
    "cond of strong and weak": lambda lib: lib.lax.cond(True, lambda: F(2), lambda: 1.0),
    "cond, passed through": lambda lib: lib.lax.cond(True, lambda x, y: (y, x), lambda x, y: (y, y),
                                                     1, 2),
    "switch": lambda lib: lib.lax.switch(1, [lambda x: x, lambda x: -x, lambda x: x * x], V),
    "switch below": lambda lib: lib.lax.switch(-5, [lambda x: x, lambda x: -x], V),
    "switch above": lambda lib: lib.lax.switch(np.uint8(9), [lambda x: x, lambda x: -x], V),
    "switch by a long integer": lambda lib: lib.lax.switch(
        -2 ** 40, [lambda x: x, lambda x: -x], V),
    "switch of one": lambda lib: lib.lax.switch(3, [lambda x, y: x + y], V, 1.0),
    "while": lambda lib: lib.lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 3, s[1] * 2),
                                            (0, V)),
    "while, promoted": lambda lib: lib.lax.while_loop(lambda x: x < 9, lambda x: x * F(1.5), 1),
    "while that never turns": lambda lib: lib.lax.while_loop(lambda x: False, lambda x: x + 1, 3),
    "while on nothing": lambda lib: lib.lax.while_loop(lambda x: False, lambda x: x, None),
    "while, handed on": lambda lib: lib.lax.while_loop(
        lambda s: s["i"] < s["n"], lambda s: {**s, "i": s["i"] + 1, "x": s["x"] + s["y"]},
        {"i": 0, "n": 3, "x": V, "y": 2.0}),
    "fori": lambda lib: lib.lax.fori_loop(0, 5, lambda i, x: x + i, V),
    "fori, backwards": lambda lib: lib.lax.fori_loop(5, 0, lambda i, x: x + i, V),
    "fori of int8": lambda lib: lib.lax.fori_loop(np.int8(1), np.int8(4), lambda i, x: x * i, 2),
    "fori, mixed bounds": lambda lib: lib.lax.fori_loop(0, np.int16(4), lambda i, x: x + i, 1),
    "fori, dynamic": lambda lib: lib.jit(lambda n: lib.lax.fori_loop(
        2, n, lambda i, s: (s[1], s[0] + i), (0.0, 1.0)))(6),
    "fori, unrolled": lambda lib: lib.lax.fori_loop(0, 7, lambda i, x: x + i, V, unroll=3),
    "fori, wholly unrolled": lambda lib: lib.lax.fori_loop(0, 4, lambda i, x: x * 2, 1, unroll=True),
    "scan": lambda lib: lib.lax.scan(lambda c, x: (c + x, c * x), 1.0, V),
    "scan of ints, promoted": lambda lib: lib.lax.scan(lambda c, x: (c + x, c), 0, V),
    "scan, reverse": lambda lib: lib.lax.scan(lambda c, x: (c + x, {"c": c}), 0.0, V, reverse=True),
    "scan over a tree": lambda lib: lib.lax.scan(
        lambda c, x: ((c[0] + x["a"], c[1] - x["b"][0]), (x["b"], c)), (0.0, np.zeros(3, F)),
        {"a": V, "b": [M]}),
    "scan over nothing": lambda lib: lib.lax.scan(lambda c, _: (c * 2, c), 1, None, length=4),
    "scan without ys": lambda lib: lib.lax.scan(lambda c, x: (c + x, None), 0.0, V),
    "scan without carry": lambda lib: lib.lax.scan(lambda _, x: (None, x * x), None, V),
    "scan, empty": lambda lib: lib.lax.scan(lambda c, x: (c + x.sum(), (x * 2, c > 0)), 1.5,
                                            np.zeros((0, 2), F)),
    "scan, handed on": lambda lib: lib.lax.scan(
        lambda c, x: ((c[0], c[1] + x[0]), (x[0], x[1], c[0])), (V, 0.0), (V, M)),
    "scan, unrolled": lambda lib: lib.lax.scan(lambda c, x: (c + x, c * x), 1.0, V, unroll=3),
    "scan, wholly unrolled": lambda lib: lib.lax.scan(lambda c, x: (c + x, c), 1.0, V, unroll=0),
    "scan of bools": lambda lib: lib.lax.scan(lambda c, x: (c ^ x, c & x), True, V > 0),
    "map": lambda lib: lib.lax.map(lambda x: x * x, V),
    "map of a tree": lambda lib: lib.lax.map(lambda t: {"s": t[0] + t[1].sum()}, (V, M)),
    "map of an empty array": lambda lib: lib.lax.map(lambda x: (x.sum(), x), np.zeros((0, 3), F)),
    "map, batches": lambda lib: lib.lax.map(lambda x: x @ x, M, batch_size=3),
    "map, even batches": lambda lib: lib.lax.map(lambda x: (x.sum(), x), M, batch_size=2),
    "map, one batch": lambda lib: lib.lax.map(lambda x: x @ x, M, batch_size=4),
    "map, large batch": lambda lib: lib.lax.map(lambda x: x @ x, M, batch_size=9),
    "map, full batch": lambda lib: lib.lax.map(lambda x: x @ x, M, batch_size=0),
    "associative_scan": lambda lib: lib.lax.associative_scan(lib.numpy.add, V),
    "associative_scan of matrices": lambda lib: lib.lax.associative_scan(
        lib.numpy.matmul, np.stack([M[:3], M[1:], M[:3] + 1, M[1:] * 2, M[:3]])),
    "associative_scan, reverse": lambda lib: lib.lax.associative_scan(
        lambda a, b: {"x": a["x"] * b["x"], "y": a["y"] | b["y"]}, {"x": M, "y": M > 0},
        reverse=True, axis=1),
    "associative_scan of one": lambda lib: lib.lax.associative_scan(lib.numpy.add, V[:1]),
    "associative_scan of none": lambda lib: lib.lax.associative_scan(lib.numpy.add, V[:0]),
    "associative_scan, last axis": lambda lib: lib.lax.associative_scan(lib.numpy.maximum, M, axis=-1),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_value_and_types(f):
    agree(f)


@pytest.mark.parametrize("n", range(1, 18))
def test_associative_scan_of_every_small_length(n):
    x = np.arange(1, n + 1, dtype=np.int32)
    np.testing.assert_array_equal(minijax.lax.associative_scan(mnp.add, x), np.cumsum(x))
    np.testing.assert_array_equal(minijax.lax.associative_scan(mnp.add, x, reverse=True),
                                  np.cumsum(x[::-1])[::-1])


# --- Programs -------------------------------------------------------------------------------------

PROGRAMS = {
    "cond": lambda lib, p, x: lib.lax.cond(p > 0, lambda x: x * 2, lambda x: x + 1.0, x),
    "closures": lambda lib, p, x: lib.lax.cond(p > 0, lambda: (x * 2.0, p), lambda: (1.0 - x, p + 1)),
    "switch": lambda lib, p, x: lib.lax.switch(p, [lambda x: x * 2, lambda x: -x, lambda x: x], x),
    "starts that are promoted": lambda lib, p, x: lib.lax.scan(
        lambda c, a: ((c[0] + a, c[1] + 1), c[0]), (0, 0), lib.numpy.ones(3, np.float16)),
    "bounds that are converted": lambda lib, p, x: lib.lax.fori_loop(
        lib.lax.convert_element_type(p, np.int16), 10, lambda i, c: c + i * 0.5, 0),
    "map in batches": lambda lib, p, x: lib.lax.map(
        lambda t: (t[0] * x, t[1]), (lib.numpy.ones(7), lib.numpy.ones((7, 2))), batch_size=3),
    "map in batches without a rest": lambda lib, p, x: lib.lax.map(
        lambda t: (t * x, t), lib.numpy.ones(6), batch_size=2),
    "map in one batch": lambda lib, p, x: lib.lax.map(
        lambda t: t * x, lib.numpy.ones(6), batch_size=6),
    "associative_scan": lambda lib, p, x: lib.lax.associative_scan(
        lambda a, b: (a[0] * b[0], lib.lax.max(a[1], b[1])), (x * lib.numpy.ones(7), lib.numpy.arange(7))),
    "associative_scan backwards": lambda lib, p, x: lib.lax.associative_scan(
        lib.lax.mul, lib.numpy.ones((2, 6)), reverse=True, axis=1),
    "passed through": lambda lib, p, x: lib.lax.cond(p > 0, lambda: (x, p + 1), lambda: (x, p)),
    "while": lambda lib, p, x: lib.lax.while_loop(
        lambda c: c[0] < x, lambda c: (c[0] * 2 + x, c[1] + p), (1.0, 0)),
    "while, handed on": lambda lib, p, x: lib.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1], c[2] * c[1]), (0, x, x)),
    "fori": lambda lib, p, x: lib.lax.fori_loop(0, 5, lambda i, c: c * x + i, x),
    "fori, dynamic": lambda lib, p, x: lib.lax.fori_loop(0, p, lambda i, c: c * x + i, x),
    "scan": lambda lib, p, x: lib.lax.scan(lambda c, a: (c * a + x, c), x, lib.numpy.ones(4)),
    "scan, handed on": lambda lib, p, x: lib.lax.scan(
        lambda c, a: ((c[0], c[0] * c[1]), (a, c[1])), (x, x), lib.numpy.ones(4)),
    "scan, reverse": lambda lib, p, x: lib.lax.scan(
        lambda c, a: (c + a, None), p, None if p is None else lib.numpy.arange(3), reverse=True),
    "jvp of scan": lambda lib, p, x: lib.jvp(
        lambda x: lib.lax.scan(lambda c, a: (c * x, c + a), 2.0, lib.numpy.ones(3))[1], (x,), (x,)),
    "jvp of while": lambda lib, p, x: lib.jvp(
        lambda x: lib.lax.while_loop(lambda c: c[0] < p, lambda c: (c[0] + 1, c[1] * x), (0, x)),
        (x,), (x,)),
    "jvp of cond": lambda lib, p, x: lib.jvp(
        lambda x: lib.lax.cond(p > 0, lambda: (x * x, 1), lambda: (2.0 * x, 2)), (x,), (x,)),
    "vmap of scan": lambda lib, p, x: lib.vmap(
        lambda y: lib.lax.scan(lambda c, a: (c * y, c), x, lib.numpy.ones((3,))))(lib.numpy.ones(5)),
    "vmap of while": lambda lib, p, x: lib.vmap(
        lambda y: lib.lax.while_loop(lambda c: c < y, lambda c: c + x, y))(lib.numpy.ones(5)),
    "vmap of while, one condition": lambda lib, p, x: lib.vmap(
        lambda y: lib.lax.while_loop(lambda c: c[0] < p, lambda c: (c[0] + 1, c[1] * y),
                                     (0, x)))(lib.numpy.ones(5)),
    "vmap of cond": lambda lib, p, x: lib.vmap(
        lambda y: lib.lax.cond(p > 0, lambda: y * y, lambda: y + 1.0))(lib.numpy.ones(5)),
    "vmap of cond, a choice each": lambda lib, p, x: lib.vmap(
        lambda y: lib.lax.cond(y > 0, lambda: y * y, lambda: y + 1.0))(lib.numpy.ones(5)),
    "vmap of cond of integers": lambda lib, p, x: lib.vmap(
        lambda y: lib.lax.switch(y, [lambda: y * y, lambda: y + 1, lambda: y]))(lib.numpy.arange(5)),
}


def printed(lib, f):
    text = str(lib.make_jaxpr(lambda p, x: f(lib, p, x))(3, 2.0))
    return re.sub(r" (out_)?sharding=None(?=\])|(?<=\]) $", "", text, flags=re.M)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_printed_as_jax_prints_it(name):
    assert printed(minijax, PROGRAMS[name]) == printed(jax, PROGRAMS[name])


def test_programs_pass_the_checker():
    with enable_checks(True):
        for f in PROGRAMS.values():
            check_jaxpr(minijax.make_jaxpr(lambda p, x: f(minijax, p, x))(3, 2.0))


# --- What transformations make of programs --------------------------------------------------------

def scans_in(jaxpr):
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]


def test_what_is_the_same_in_every_turn_is_computed_once_and_not_stacked():
    """Residuals of a matrix product by a constant: the matrix itself, once."""
    w, xs = np.ones((3, 3), F), np.ones((7, 3), F)

    def f(w, xs):
        turn = lambda c, x: (mnp.tanh(mnp.dot(mnp.sin(w), c) + x), None)
        return mnp.sum(minijax.lax.scan(turn, xs[0], xs)[0])
    jaxpr = minijax.make_jaxpr(minijax.grad(f))(w, xs)
    forwards, backwards = scans_in(jaxpr)
    assert backwards.params["reverse"] and not forwards.params["reverse"]
    assert not [v for v in forwards.outvars if v.aval.shape == (7, 3, 3)]
    inside = [eqn.primitive.name for eqn in forwards.params["jaxpr"].eqns]
    assert "sin" not in inside and "dot_general" in inside


def test_rows_of_xs_are_residuals_without_a_copy():
    f = lambda xs: minijax.lax.scan(lambda c, x: (c * x, None), 1.0, xs)[0]
    forwards, backwards = scans_in(minijax.make_jaxpr(minijax.grad(f))(V))
    (xs,) = [v for v in forwards.invars if v.aval.shape == V.shape]
    assert xs in backwards.invars
    assert len([v for v in forwards.outvars if v.aval.shape == V.shape]) == 1      # the carries


def test_a_known_part_of_no_use_is_not_run():
    f = lambda x: minijax.lax.scan(lambda c, _: (c * 2.0, None), x, None, length=5)[0]
    assert len(scans_in(minijax.make_jaxpr(lambda x: minijax.linearize(f, x)[1](x))(1.0))) == 2
    g = minijax.linear_transpose(f, 1.0)
    assert len(scans_in(minijax.make_jaxpr(g)(1.0))) == 1 and g(1.0)[0] == 32.0


def unused(lib, x):
    """Of three carries and two ys, what is returned needs the second carry and the first y."""
    turn = lambda c, a: ((c[0] + 1, c[1] * a, c[2] + c[0]), (c[1] + a, c[2]))
    (_, c, _), (ys, _) = lib.lax.scan(turn, (0, x, 2), lib.numpy.ones(4))
    n = lib.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x, c[2] + 1), (0, x, 1))
    z = lib.lax.cond(x > 0, lambda: (x * 2, x + 1), lambda: (x, x * 3))
    return c, ys, n[1], z[1]


def test_dead_code_inside_loops():
    jaxpr = dce_jaxpr(minijax.make_jaxpr(lambda x: unused(minijax, x))(2.0).jaxpr)
    check_jaxpr(jaxpr)
    scan, loop, choice = [e for e in jaxpr.eqns if e.primitive.name in ("scan", "while", "cond")]
    assert scan.params["num_carry"] == 1 and len(scan.outvars) == 2
    assert len(loop.outvars) == 2 and len(choice.outvars) == 1
    compare(tuple(eval_jaxpr(jaxpr, [], mnp.asarray(2.0))), unused(jax, 2.0))
    agree(unused, 2.0)


# --- Derivatives ----------------------------------------------------------------------------------

def newton(lib, a):
    return lib.lax.while_loop(lambda y: abs(y * y - a) > 1e-3, lambda y: 0.5 * (y + a / y), a)


def test_forward_mode_through_while():
    agree(lambda lib, a: lib.jvp(lambda a: newton(lib, a), (a,), (1.0,)), 3.0)
    agree(lambda lib, a: lib.jacfwd(lambda a: newton(lib, a))(a), 3.0)
    agree(lambda lib, a: lib.linearize(lambda a: newton(lib, a), a)[1](2.0), 3.0)
    agree(lambda lib, xs: lib.vmap(lib.jacfwd(lambda a: newton(lib, a)))(xs), abs(V))


@pytest.mark.parametrize("f", [
    lambda lib, x: newton(lib, x),
    lambda lib, x: lib.jit(lambda n: lib.lax.fori_loop(0, n, lambda i, c: c * x, x))(3),
    lambda lib, x: lib.lax.scan(lambda c, _: (newton(lib, c), None), x, None, length=2)[0],
    lambda lib, x: lib.lax.cond(x > 0, lambda: newton(lib, x), lambda: x),
])
def test_reverse_mode_through_while_says_why_not(f):
    for lib in (minijax, jax):
        with pytest.raises(ValueError, match="fori_loop") as caught:
            lib.grad(lambda x: f(lib, x))(2.0)
    with pytest.raises(ValueError, match="lax.scan") as caught:
        minijax.grad(lambda x: f(minijax, x))(2.0)
    assert isinstance(caught.value, NotImplementedError)


def test_linear_transpose_of_a_loop_that_counts():
    f = lambda lib: lambda x: lib.lax.fori_loop(0, 4, lambda i, c: c * (i + 1.0) + 2.0 * c, x)
    compare(minijax.linear_transpose(f(minijax), 1.0)(2.0), jax.linear_transpose(f(jax), 1.0)(2.0))
    g = lambda x: minijax.lax.scan(lambda c, a: ((c[0] + 1, c[1] * c[0] + a), a * c[0]), (1.0, x),
                                   x * mnp.ones(3))
    out, = minijax.linear_transpose(lambda x: g(x)[0][1] + mnp.sum(g(x)[1]), 1.0)(1.0)
    assert out == 22.0        # ((1 + 1) 2 + 1) 3 + 1 = 16, and 1 + 2 + 3


def test_integer_and_none_tangents():
    def f(lib, x, n):
        (i, y), (ks, ys) = lib.lax.scan(lambda c, k: ((c[0] + k, c[1] * x), (c[0], c[1])), (0, x), n)
        return y + lib.numpy.sum(ys) + i
    agree(lambda lib, x: lib.grad(lambda x: f(lib, x, np.arange(3)))(x), 1.5)
    agree(lambda lib, x: lib.hessian(lambda x: f(lib, x, np.arange(3)))(x), 1.5)


NUMBERS_GO_ALONG = {
    "a number": lambda lib, x: (3, x),
    "a counter": lambda lib, x: lib.lax.scan(lambda c, r: ((c[0] + 1, c[1] * r), c[0]), (0, x), V),
    "a branch": lambda lib, x: lib.lax.cond(x > 0, lambda: (3, x), lambda: (4, 2 * x)),
    "a loop of numbers": lambda lib, x: (lib.lax.fori_loop(0, 2, lambda i, c: c + i, 3), x),
    "a while": lambda lib, x: lib.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x)),
}


@pytest.mark.parametrize("name", NUMBERS_GO_ALONG)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_tangents_of_integers_are_float0(name, compiled):
    def tangents(lib):
        f = lambda x: lib.jvp(lambda x: NUMBERS_GO_ALONG[name](lib, x), (x,), (F(1),))[1]
        return lib.tree.leaves((lib.jit(f) if compiled else f)(F(2)))
    for a, b in zip(tangents(minijax), tangents(jax), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if a.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_third_derivatives():
    f = lambda lib, x: lib.lax.fori_loop(0, 3, lambda i, c: lib.numpy.sin(c) * c, x)
    d = lambda lib, f: lib.grad(f)
    for lib_f in [lambda lib: d(lib, d(lib, d(lib, lambda x: f(lib, x)))),
                  lambda lib: lib.jacfwd(d(lib, lib.jacfwd(lambda x: f(lib, x))))]:
        agree(lambda lib, x: lib_f(lib)(x), 1.2, rtol=1e-4)


def test_complex_carries():
    f = lambda lib, z: lib.lax.scan(lambda c, x: (c * x + z, c.real), z, np.array([1, 1j, -2]))
    agree(f, np.complex64(1 + 2j))
    agree(lambda lib, z: lib.grad(lambda z: lib.numpy.real(f(lib, z)[0] ** 2))(z), np.complex64(1 + 2j))


# --- Closures over values of outer traces ---------------------------------------------------------

def towers(lib, x):
    """Bodies that close over tracers of jit, vmap, grad and jvp, all at once."""
    def outer(a):
        def inner(b):
            loop = lambda c, r: (lib.lax.cond(r > a[0], lambda: c * b, lambda: c + x[0]), r * b)
            c, ys = lib.lax.scan(loop, a[1], x)
            return c + lib.numpy.sum(ys) + lib.lax.fori_loop(0, 2, lambda i, d: d * a[2] + b, b)
        return lib.numpy.sum(lib.vmap(lib.grad(inner))(a * x))
    return lib.jvp(lib.jit(lib.grad(outer)), (x,), (lib.numpy.cos(x),))


def test_closures_over_every_kind_of_tracer():
    agree(towers, V, rtol=1e-4)


def test_a_body_may_not_leak():
    kept = []
    minijax.lax.fori_loop(0, 2, lambda i, c: (kept.append(c), c * 2)[1], 1.0)
    with pytest.raises(minijax.errors.UnexpectedTracerError):
        kept[0] + 1


# --- Eager loops ----------------------------------------------------------------------------------

def test_bodies_are_traced_and_compiled_once():
    ran, kept = [], np.arange(4, dtype=F)
    body = lambda c, x: (ran.append(1), (c + x, c))[1]
    turn = lambda i, c: (ran.append(1), c * 2)[1]
    row = lambda x: (ran.append(1), x + kept)[1]
    ten_more = lambda c: (ran.append(1), c + 10.0)[1]
    test = lambda c: (ran.append(1), c < 50.0)[1]
    for call in (lambda x: minijax.lax.scan(body, 0.0, x), lambda x: minijax.lax.map(row, x),
                 lambda x: minijax.lax.fori_loop(0, 3, turn, x[0]),
                 lambda x: minijax.lax.while_loop(test, ten_more, x[0]),
                 lambda x: minijax.lax.cond(x[0] > 5, test, test, x[1])):
        call(V)
        ran.clear()
        call(V * 2)
        assert not ran


def test_a_body_that_closes_over_a_tracer_is_traced_each_time():
    f = lambda x: minijax.lax.scan(lambda c, a: (c * x, None), 1.0, V)[0]
    for x in (2.0, 3.0):
        assert minijax.grad(f)(x) == 4 * x ** 3 and minijax.jit(f)(x) == x ** 4


def test_clear_caches_forgets_bodies():
    ran = []
    body = lambda c, x: (ran.append(1), (c + x, c))[1]
    minijax.lax.scan(body, 0.0, V)
    minijax.clear_caches()
    minijax.lax.scan(body, 0.0, V)
    assert len(ran) == 2


def test_a_million_turns_take_no_memory_when_their_rows_are_dropped():
    @minijax.jit
    def last(x):
        turn = lambda c, _: ((c[0] * 0.5 + c[1], c[1]), (c[0], c[0] > x))
        return minijax.lax.scan(turn, (x, x), None, length=1_000_000)[0][0]
    assert last(1.0) == 2.0
    tracemalloc.start()
    last(1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("compiled", [True, False], ids=["jit", "eager"])
@pytest.mark.parametrize("way", ["jvp", "vmap", "jacfwd", "jvp of jvp"])
def test_derivatives_of_a_million_turns_take_no_memory_either(way, compiled):
    def last(x, turns):
        return minijax.lax.fori_loop(0, turns, lambda i, c: mnp.sin(c) + 1e-6 * i, x)

    jvp = lambda f: lambda x: minijax.jvp(f, (x,), (x,))
    transform = {"jvp": jvp, "vmap": lambda f: lambda x: minijax.vmap(f)(mnp.stack([x, x])),
                 "jacfwd": minijax.jacfwd, "jvp of jvp": lambda f: jvp(jvp(f))}[way]
    f = transform(lambda x: last(x, 1_000_000))
    f = minijax.jit(f) if compiled else f
    f(mnp.ones(4))
    tracemalloc.start()
    f(mnp.ones(4))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000             # a float a turn would be 4 MB
    if compiled:
        assert f.lower(mnp.ones(4)).compile().memory_analysis().temp_size_in_bytes < 1000


def test_narrow_and_complex_numbers():
    for dtype in (mnp.bfloat16, np.complex64, np.float16, mnp.float8_e4m3fn, mnp.int4):
        x = np.arange(4).astype(dtype)
        f = lambda lib, x: lib.lax.scan(lambda c, a: (c * a + x[1], c), x[2], x)
        compare(f(minijax, mnp.asarray(x)), f(jax, jnp.asarray(x)))
        g = lambda lib, x: lib.lax.fori_loop(0, 3, lambda i, c: c + x, x)
        compare(g(minijax, mnp.asarray(x)), g(jax, jnp.asarray(x)))
        h = lambda lib, x: lib.lax.while_loop(lambda c: c[0].real < 5, lambda c: c + x[1], x)
        compare(h(minijax, mnp.asarray(x)), h(jax, jnp.asarray(x)))


# --- Without jit ----------------------------------------------------------------------------------

def test_disable_jit_runs_python():
    seen = []
    with minijax.disable_jit():
        minijax.lax.scan(lambda c, x: (c + x, seen.append(float(c))), 0.0, V)
        minijax.lax.while_loop(lambda i: i < 3, lambda i: (seen.append(int(i)), i + 1)[1], 0)
        minijax.lax.cond(True, lambda: seen.append("yes"), lambda: seen.append("no"))
        minijax.lax.switch(1, [lambda: seen.append("no"), lambda: seen.append("one")])
    np.testing.assert_allclose(seen[:4], np.cumsum(V) - V)
    assert seen[4:] == [0, 1, 2, "yes", "one"]


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if not re.search("empty|none|promoted", n)])
def test_value_without_jit(name):
    with minijax.disable_jit(), jax.disable_jit():
        ours, theirs = FUNCTIONS[name](minijax), FUNCTIONS[name](jax)
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


# --- Errors ---------------------------------------------------------------------------------------

ERRORS = {
    "pred of a shape": (lambda lib: lib.lax.cond(V > 0, lambda: 1, lambda: 2), "scalar"),
    "pred None": (lambda lib: lib.lax.cond(None, lambda: 1, lambda: 2), "None"),
    "pred a list": (lambda lib: lib.lax.cond([True], lambda: 1, lambda: 2), "list"),
    "pred bfloat16": (lambda lib: lib.lax.cond(lib.numpy.bfloat16(1), lambda: 1, lambda: 2), "bfloat16"),
    "pred complex": (lambda lib: lib.lax.cond(1j, lambda: 1, lambda: 2), "complex64"),
    "pred a string": (lambda lib: lib.lax.cond("yes", lambda: 1, lambda: 2), "str"),
    "branches of other types": (lambda lib: lib.lax.cond(True, lambda x: (x, 1), lambda x: (x, 1.0), 0),
                                r"true_fun\[1\] is i32\[\].*f32\[\]"),
    "branches of other shapes": (lambda lib: lib.lax.cond(True, lambda: V, lambda: V[:1]), "f32.4."),
    "branches of other trees": (lambda lib: lib.lax.cond(True, lambda: {"a": 1}, lambda: [1]),
                                r"'a': \*.*\[\*\]"),
    "no function": (lambda lib: lib.lax.cond(True, 1, 2), "true_fun"),
    "operand twice": (lambda lib: lib.lax.cond(True, abs, abs, 1.0, operand=2.0), "operand"),
    "branch returns a string": (lambda lib: lib.lax.cond(True, lambda: "a", lambda: "a"), "'a'"),
    "index a float": (lambda lib: lib.lax.switch(1.0, [abs, abs], 1), "float32"),
    "index of a shape": (lambda lib: lib.lax.switch(np.ones(3, int), [abs, abs], 1), r"\(3,\)"),
    "no branches": (lambda lib: lib.lax.switch(1, [], 1), "empty"),
    "switch, one branch differs": (lambda lib: lib.lax.switch(1, [abs, abs, lambda x: x > 0], 1),
                                   "branch 2 is bool"),
    "condition no bool": (lambda lib: lib.lax.while_loop(lambda x: x, lambda x: x, 1), "i32"),
    "condition of a shape": (lambda lib: lib.lax.while_loop(lambda x: x > 0, lambda x: x, V), "bool"),
    "condition a tuple": (lambda lib: lib.lax.while_loop(lambda x: (x > 0,), lambda x: x, 1), "bool"),
    "while, no function": (lambda lib: lib.lax.while_loop(None, lambda x: x, 1), "cond_fun"),
    "carry of another tree": (lambda lib: lib.lax.while_loop(lambda s: s["x"] > 0, lambda s: (1, 2),
                                                             {"x": 1, "y": 2}), "'x': .*'y': "),
    "carry of another dtype": (lambda lib: lib.lax.while_loop(
        lambda s: s["x"] > 0, lambda s: {"x": s["x"] * 1.5}, {"x": np.int32(1)}),
        r"\['x'\].* i32\[\].* f32\[\]"),
    "carry of another shape": (lambda lib: lib.lax.fori_loop(0, 3, lambda i, x: x[:-1], V),
                               r"f32\[4\].* f32\[3\]"),
    "fori, a leaf of another dtype": (lambda lib: lib.lax.fori_loop(
        0, 3, lambda i, state: {"w": state["w"], "n": i * 0.5}, {"w": V, "n": np.int32(1)}),
        r"fori_loop.*state\['n'\] is i32\[\].* f32\[\]"),
    "dynamic fori, another tree": (lambda lib: lib.jit(lambda n: lib.lax.fori_loop(
        0, n, lambda i, state: (state, i), 1.0))(3), r"fori_loop.*PyTreeDef\(\*\).*the carry state "),
    "scan body no pair": (lambda lib: lib.lax.scan(lambda c, x: c, 0, V), "pair"),
    "scan body a triple": (lambda lib: lib.lax.scan(lambda c, x: (c, x, x), 0, V), "pair"),
    "scan over nothing": (lambda lib: lib.lax.scan(lambda c, x: (c, x), 0), "length"),
    "scan of unequal lengths": (lambda lib: lib.lax.scan(lambda c, x: (c, x), 0, (V, M[:2])), "4, 2"),
    "scan of another length": (lambda lib: lib.lax.scan(lambda c, x: (c, x), 0, V, length=3), "3"),
    "scan over a number": (lambda lib: lib.lax.scan(lambda c, x: (c, x), 0, 3.0), "axis"),
    "scan of traced length": (lambda lib: lib.jit(lambda n: lib.lax.scan(
        lambda c, x: (c, x), 0, None, length=n))(3), "length"),
    "negative unroll": (lambda lib: lib.lax.scan(lambda c, x: (c, x), 0, V, unroll=-1), "unroll"),
    "unroll a string": (lambda lib: lib.lax.scan(lambda c, x: (c, x), 0, V, unroll="2"), "bool or an int"),
    "scan, no function": (lambda lib: lib.lax.scan(3, 0, V), "callable"),
    "bounds of unequal types": (lambda lib: lib.lax.fori_loop(np.int8(0), np.int16(3),
                                                              lambda i, x: x, 1), "int8.*int16"),
    "dynamic bounds, unrolled": (lambda lib: lib.jit(lambda n: lib.lax.fori_loop(
        0, n, lambda i, x: x, 1, unroll=2))(3), "unroll"),
    "fori, no function": (lambda lib: lib.lax.fori_loop(0, 1, None, 1), "body_fun"),
    "associative_scan, unequal": (lambda lib: lib.lax.associative_scan(
        lambda a, b: a, (V, M[:2])), "4, 2"),
    "associative_scan, axis": (lambda lib: lib.lax.associative_scan(max, V, axis=3), "axis"),
    "if on a carry": (lambda lib: lib.lax.fori_loop(0, 3, lambda i, x: x if x > 0 else -x, 1.0),
                      "truth value"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    f, message = ERRORS[name]
    with pytest.raises(Exception) as theirs:
        f(jax)
    with pytest.raises(Exception, match="(?s)" + message) as ours:
        f(minijax)
    names = {t.__name__ for t in type(ours.value).__mro__}
    assert type(theirs.value).__name__ in names
    assert minijax.lax.cond(True, lambda: 1, lambda: 2) == 1          # nothing is left behind


# --- Platforms ------------------------------------------------------------------------------------

@pytest.mark.parametrize("lib", [minijax, jax], ids=["minijax", "jax"])
def test_code_for_the_platform(lib):
    choose, x = lib.lax.platform_dependent, F(3)
    assert choose(x, cpu=lambda x: x + 1, tpu=lambda x: x + 2) == 4
    assert choose(x, tpu=lambda x: x + 2, default=lambda x: x + 3) == 6
    assert lib.jit(lambda x: choose(x, cpu=lambda x: x * x, default=lambda x: x))(x) == 9
    assert lib.grad(lambda x: choose(x, cpu=lambda x: x * x, default=lambda x: x))(x) == 6
    with pytest.raises(NotImplementedError):
        choose(x, tpu=lambda x: x)
    with pytest.raises(ValueError, match="cuda"):
        choose(x, gpu=lambda x: x)
    with pytest.raises(TypeError):
        choose(x, cpu=3)
