"""The passes: each leaves a legal loop IR that computes what the one before computed.

A program is run by loop_interpreter before and after each pass. Sizes are small, so the thresholds
of the passes, which are about caches, are made small too.
"""
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st
from loop_interpreter import run
from test_random_programs import EXAMPLES, programs, scalar
from test_random_programs import run as run_random

import minijax
import minijax.numpy as jnp
from minijax.avals import ShapedArray
from minijax.compiler import blocks, compile_jaxpr, donation, plan, rows
from minijax.compiler.check_ir import check_program
from minijax.compiler.executable import run_passes
from minijax.compiler.fuse import FUSION_PASSES, fuse
from minijax.compiler.simplify import exact_identities, fold_constants
from minijax.compiler.passes import common_subexpressions, dead_code, inline_calls, lower
from minijax.config import num_threads
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.jaxpr import check_jaxpr, eval_jaxpr
from minijax.loop_ir import Loop, Nest, Program, Reduce, Store, all_nodes

# Passes that change the order in which sums are taken.
REORDER = {"coalesce", "cut_reductions"}


SMALL = ((rows, "MIN_ROW", 4), (rows, "MIN_BYTES", 0),
         (plan, "WORTH_SHARING", 1), (plan, "PIECE", 0.5), (donation, "LARGE", 1),
         (blocks, "BLOCK", 8), (blocks, "ROWS", 8), (blocks, "AT_ONCE", 4))


@pytest.fixture
def small(monkeypatch):
    """Thresholds for matrices of a few numbers."""
    for module, name, value in SMALL:
        monkeypatch.setattr(module, name, value)


def lowered(function, *arrays):
    """The loop IR of a function of arrays that returns an array or a tuple, and its operands."""
    def flat(*xs):
        out = function(*xs)
        return list(out) if isinstance(out, tuple) else [out]
    closed = trace_to_closed_jaxpr(flat, [ShapedArray(a.shape, a.dtype) for a in arrays])
    closed = common_subexpressions(dead_code(inline_calls(closed)))
    return check_program(lower(closed)), [*map(np.asarray, closed.consts), *arrays]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def check_each_pass(function, *arrays, passes=FUSION_PASSES):
    """Run the passes one by one; return the last program."""
    program, operands = lowered(function, *arrays)
    want = run(program, operands)
    for step in passes:
        program = check_program(step(program))
        got = run(program, operands)
        for g, w in zip(got, want, strict=True):
            if step.__name__ in REORDER and w.dtype.kind == "f":
                np.testing.assert_allclose(g, w, rtol=2e-6, atol=2e-6 * np.abs(w).max(initial=1),
                                           err_msg=step.__name__)
            else:
                np.testing.assert_array_equal(g, w, err_msg=step.__name__)
        want = got
    return program


# --- Programs ------------------------------------------------------------------------------------

def softmax(x):
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return e / jnp.sum(e, axis=1, keepdims=True)


def layernorm(x):
    centred = x - jnp.mean(x, axis=1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred ** 2, axis=1, keepdims=True) + 1e-5)


def logsumexp(x):
    m = jnp.max(x, axis=1, keepdims=True)
    return jnp.log(jnp.sum(jnp.exp(x - m), axis=1, keepdims=True)) + m


def gradient(f):
    return minijax.grad(lambda x: jnp.sum(f(x) * jnp.sin(x)))


def forces(position, mass):
    apart = position[None, :, :] - position[:, None, :]
    square = jnp.sum(apart ** 2, axis=-1) + 0.01
    pull = mass[None, :] / (square * jnp.sqrt(square))
    return jnp.sum(pull[:, :, None] * apart, axis=1)


def batchnorm(x):
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1)


MATRIX = [(6, 10)]
PROGRAMS = {
    "softmax": (softmax, MATRIX), "its gradient": (gradient(softmax), MATRIX),
    "layernorm": (layernorm, MATRIX), "layernorm's gradient": (gradient(layernorm), MATRIX),
    "logsumexp": (logsumexp, MATRIX), "logsumexp's gradient": (gradient(logsumexp), MATRIX),
    "attention": (lambda q, k, v: softmax(q @ k.T) @ v, [(6, 4), (9, 4), (9, 3)]),
    "forces": (forces, [(9, 3), (9,)]),
    "batchnorm's gradient": (gradient(batchnorm), [(11, 6)]),
    "sums": (lambda x: (jnp.sum(x), jnp.sum(x * x, axis=0), jnp.max(x.T + 1), jnp.prod(x[:2])), [(45, 11)]),
    "sums of three axes": (lambda x: (jnp.sum(x, (0, 2)), jnp.min(x, 1), jnp.sum(x, 2)), [(7, 20, 9)]),
    "extremes": (lambda x: (jnp.any(x > 2), jnp.all(x < 2, 0), jnp.argmax(x, 1)), [(30, 9)]),
    "tiles of tiles": (lambda x: (jnp.tile(x, 2), jnp.tile(jnp.tile(x, 2), 2)), [(1, 20)]),
    "mean of many": (lambda x: x - x.mean(), [(101,)]),
    "columns that do not divide": (lambda x: jnp.sum(x, 0), [(43, 5)]),
    "integers": (lambda x: jnp.sum((10 * x).astype(int), 0), [(43, 5)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_pass_keeps_the_program(name, small):
    function, shapes = PROGRAMS[name]
    check_each_pass(function, *[numbers(*s, seed=k) for k, s in enumerate(shapes)])


# --- Rows ----------------------------------------------------------------------------------------

ROW_WISE = ["softmax", "its gradient", "layernorm", "layernorm's gradient", "logsumexp", "forces"]


@pytest.mark.parametrize("name", ROW_WISE)
def test_rows_become_one_loop(name, small):
    function, shapes = PROGRAMS[name]
    program = fuse(lowered(function, *[numbers(*s) for s in shapes])[0])
    loop, = program.steps
    assert isinstance(loop, Loop) and loop.axis.size == shapes[0][0]


@pytest.mark.parametrize("renderer", ["llvm", "plain"])
@pytest.mark.parametrize("name", ["its gradient", "layernorm's gradient", "forces"])
def test_renderers_run_loops_over_rows(name, renderer, small):
    function, shapes = PROGRAMS[name]
    arrays = [numbers(*s, seed=k) for k, s in enumerate(shapes)]
    program, operands = lowered(function, *arrays)
    closed = trace_to_closed_jaxpr(lambda *xs: [function(*xs)],
                                   [ShapedArray(a.shape, a.dtype) for a in arrays])
    got, = compile_jaxpr(closed, renderer=renderer)(*arrays)
    np.testing.assert_allclose(got, run(program, operands)[0], rtol=2e-5, atol=2e-6)


def test_no_row_of_another_is_read(small):
    """A value that is needed in a later row, or transposed, must be in memory for all rows."""
    def f(x):
        e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
        return e + e[::-1], e @ e.T, jnp.sum(e, 0)
    program = check_each_pass(f, numbers(8, 8))
    assert len(program.steps) > 1


def test_results_that_are_read_again_are_stored_too(small):
    def f(x):
        e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
        s = jnp.sum(e, axis=1, keepdims=True)
        return e, s, e / s
    loop, *others = check_each_pass(f, numbers(6, 10)).steps
    assert isinstance(loop, Loop)
    assert [s.name for s in others] == ["reshape"]         # of s, whose axis of size 1 is no work


def test_short_rows_are_taken_together(monkeypatch):
    monkeypatch.setattr(rows, "MIN_BYTES", 0)
    monkeypatch.setattr(rows, "MIN_ROW", 40)
    loop, = check_each_pass(softmax, numbers(24, 10)).steps
    assert loop.axis.size == 6             # four rows a turn


def test_small_arrays_stay_as_they_are():
    program = fuse(lowered(softmax, numbers(6, 10))[0])
    assert all(isinstance(s, Nest) for s in program.steps)


# --- Long reductions -----------------------------------------------------------------------------

def longest(program):
    nests = [s for s in program.steps if isinstance(s, Nest)]
    reduces = [n for s in nests for n in all_nodes(s.body) if isinstance(n, Reduce)]
    return max(np.prod([a.size for a in n.axes]) for n in reduces)


@pytest.mark.parametrize("shape", [(1_000_000,), (1000, 1000), (10, 300, 401), (999_983,)])
def test_no_reduction_stays_long(shape):
    f = lambda x: jnp.sum(x + x.T) if len(set(shape)) < len(shape) else jnp.sum(jnp.sin(x))
    program = check_program(fuse(lowered(f, np.zeros(shape, np.float32))[0]))
    assert longest(program) < 2 * blocks.BLOCK


@pytest.mark.parametrize("shape, axis", [
    ((1_000_003,), 0), ((1000, 1000), None), ((100_000, 8), 0), ((8, 100_000), 1), ((300, 20, 50), (0, 2)),
    ((200_000, 3), 0), ((2000, 501), 0), ((130, 64), 0)])
def test_float32_sums_keep_seven_digits(shape, axis):
    x = np.random.default_rng(0).uniform(size=shape).astype(np.float32)
    got = np.asarray(minijax.jit(lambda x: jnp.sum(x, axis))(x))
    want = x.sum(axis, dtype=np.float64)
    assert np.abs(got / want - 1).max() < 5e-7
    assert np.sqrt(np.mean((got / want - 1) ** 2)) < 1.2e-7


def test_cuts_are_the_same_everywhere():
    """The order of a sum is part of the program: the same bits from every renderer, every time."""
    x = numbers(20_011)
    f = minijax.jit(lambda x: jnp.sum(x * x))
    got = [np.asarray(f(x)).tobytes() for _ in range(3)]
    assert len({*got, np.asarray(run(fuse(lowered(lambda x: jnp.sum(x * x), x)[0]), [x])[0]).tobytes()}) == 1


# --- Passes from jaxpr to jaxpr ------------------------------------------------------------------

def simplified(function, *arrays):
    closed = trace_to_closed_jaxpr(lambda *xs: [function(*xs)],
                                   [ShapedArray(np.shape(a), np.asarray(a).dtype) for a in arrays])
    return dead_code(exact_identities(fold_constants(inline_calls(closed))))


def names_of(closed):
    return [e.primitive.name for e in closed.jaxpr.eqns]


AWKWARD = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38], np.float32)

# A function of a vector, and the equations that are left of it.
IDENTITIES = {
    "times one": (lambda x: x * 1.0, []),
    "one times": (lambda x: 1 * x, []),
    "by one": (lambda x: x / 1.0, []),
    "minus nothing": (lambda x: x - 0.0, []),
    "plus nothing, but -0.0 + 0.0 is 0.0": (lambda x: x + 0.0, ["add"]),
    "plus -0.0": (lambda x: x + -0.0, []),
    "minus -0.0, where -0.0 - -0.0 is 0.0": (lambda x: x - -0.0, ["sub"]),
    "times zero, which keeps NaN": (lambda x: x * 0.0, ["mul"]),
    "x - x, which is NaN at infinity": (lambda x: x - x, ["sub"]),
    "twice negative": (lambda x: -(-x), []),
    "four times negative": (lambda x: -(-(-(-x) * 1.0)), []),
    "by four": (lambda x: x / 4.0, ["mul"]),
    "by three": (lambda x: x / 3.0, ["div"]),
    "one by": (lambda x: 1.0 / x, ["div"]),
    "reversed twice": (lambda x: jnp.flip(jnp.flip(x)), []),
    "reshaped back": (lambda x: jnp.reshape(jnp.reshape(x, (2, 5)), (10,)), []),
    "transposed back": (lambda x: jnp.transpose(jnp.transpose(x.reshape(2, 5))).reshape(10), []),
    "constants": (lambda x: x + (jnp.float32(2) * 3 + jnp.sqrt(jnp.float32(4))), ["add"]),
    "an array of ones": (lambda x: x * jnp.ones(10, jnp.float32), []),
    "half an array of ones": (lambda x: x * (jnp.ones(10, jnp.float32) / 2), ["broadcast_in_dim", "mul"]),
    "to the first": (lambda x: x ** 1, []),
    "equal cases": (lambda x: jnp.where(x > 0, x, x), []),
    "is it NaN": (lambda x: jnp.where(jnp.isnan(x), 1.0, x), None),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_identities_are_exact(name):
    function, left = IDENTITIES[name]
    closed = simplified(function, AWKWARD)
    if left is not None:
        assert names_of(closed) == left
    with np.errstate(all="ignore"):
        want = np.asarray(function(jnp.asarray(AWKWARD)))
        got, = closed.jaxpr.eqns and eval_jaxpr(closed.jaxpr, closed.consts, jnp.asarray(AWKWARD)) \
            or [jnp.asarray(AWKWARD)]
    bits = lambda x: np.where(np.isnan(x), np.float32(np.nan), x).tobytes()
    assert bits(np.asarray(got)) == bits(want)


def test_integers_lose_their_zeros():
    assert names_of(simplified(lambda x: (x + 0) * 1 - 0, np.arange(3, dtype=np.int32))) == []


def test_complex_numbers_are_left_alone():
    """(inf + 0j) * 1 has a NaN in it."""
    assert names_of(simplified(lambda x: x * 1.0, np.array([1j, 2], np.complex64))) == ["mul"]


def test_programs_inside_equations_are_simplified():
    def f(x):
        return minijax.jit(lambda y: y * 1.0 + minijax.lax.scan(lambda c, _: (-(-c) * 1.0, None), y, None, 3)[0])(x)
    closed = simplified(f, np.float32(1))
    scan, = [e for e in closed.jaxpr.eqns if e.primitive.name == "scan"]
    assert scan.params["jaxpr"].jaxpr.eqns == []


def test_a_gradient_loses_its_ones():
    f = minijax.grad(lambda x: jnp.sum(jnp.sin(x)))
    assert names_of(simplified(f, AWKWARD)) == ["cos"]


# --- Random programs -----------------------------------------------------------------------------

def check_compiler_passes(closed, *arrays):
    """Each pass of the compiler, on jaxprs or on loop IR, leaves a legal program that agrees."""
    want = eval_jaxpr(closed.jaxpr, closed.consts, *arrays)
    for name, program in run_passes(closed).items():
        if isinstance(program, Program):
            got = run(check_program(program), [*map(np.asarray, consts), *map(np.copy, arrays)])
        else:
            check_jaxpr(program)
            consts = program.consts
            got = eval_jaxpr(program.jaxpr, consts, *arrays)
        for g, w in zip(got, map(np.asarray, want), strict=True):
            scale = max(1.0, float(np.max(np.abs(w), initial=0.0)))
            np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-6 * scale, err_msg=name)


WIDE = ((6, 4), (4, 6), (24,), (3, 2, 4), (1, 20))


@settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES < 1000, print_blob=True,
          suppress_health_check=list(HealthCheck))
@given(programs(WIDE), st.booleans())
@example(([numbers(6, 4)], [("clip", [0]), ("backward scan of clip", [0]), ("stack", [0, 2]),
                            ("clip", [0]), ("backward scan of clip", [1]), ("add", [0, 0])]), True)
def test_passes_keep_random_programs(program, differentiate):
    """Each pass leaves a legal program with the same results; so do all renderers.

    Machine code gives the same bits twice, and in one thread or two.
    """
    inputs, steps = program
    note(f"steps: {steps}")

    def function(*xs):
        return tuple(run_random(jnp, steps, xs))

    def slope(*xs):
        return minijax.grad(scalar(jnp, steps), tuple(range(len(xs))))(*xs)

    chosen = slope if differentiate else function
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in SMALL:
            patch.setattr(module, name, value)
        check_each_pass(chosen, *inputs)
        closed = trace_to_closed_jaxpr(lambda *xs: list(chosen(*xs)),
                                       [ShapedArray(x.shape, x.dtype) for x in inputs])
        check_compiler_passes(closed, *inputs)
        compiled = compile_jaxpr(closed)
        plain = compile_jaxpr(closed, renderer="plain")(*inputs)
    results = []
    for threads in (1, 2, 2):
        with num_threads(threads):
            results.append([np.asarray(a).tobytes() for a in compiled(*inputs)])
    assert results[0] == results[1] == results[2]
    for a, b, want in zip(compiled(*inputs), plain, run(*lowered(chosen, *inputs)), strict=True):
        scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
        np.testing.assert_allclose(a, want, rtol=2e-5, atol=2e-6 * scale)
        np.testing.assert_allclose(b, want, rtol=2e-5, atol=2e-6 * scale)


def test_a_value_waits_behind_a_product():
    """Of y = tanh x a network keeps y, and makes 1 - y² where the derivative reads it."""
    def network(x, w1, w2):
        h = jnp.tanh(x @ w1)
        return jnp.sum(jnp.tanh(h @ w2) ** 2)

    gradient = minijax.grad(network, (0, 1, 2))
    arrays = numbers(64, 50), numbers(50, 70), numbers(70, 60)
    steps = fuse(lowered(gradient, *arrays)[0]).steps
    first = next(step for step in steps if type(step) is Nest and "tanh" in names_in(step))
    assert sum(isinstance(node, Store) for node in first.body) == 1
    for got, want in zip(minijax.jit(gradient)(*arrays), gradient(*arrays)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def names_in(nest):
    return [getattr(node, "name", None) for node in all_nodes(nest.body)]
