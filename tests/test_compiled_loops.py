"""Loops and branches inside the compiler: every renderer gives what evaluation gives."""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.compiler import compile_jaxpr, machine
from minijax.compiler.check_ir import LoopIRError, check_program
from minijax.compiler.dead_steps import has_calls
from minijax.compiler.executable import RENDERERS
from minijax.compiler.in_place import is_plain_copy
from minijax.loop_ir import (
    Axis, Buffer, Const, Load, Loop, Nest, Op, Product, Program, Store, While, ZERO,
    axis_index, programs_in,
)

F32 = np.dtype(np.float32)


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def all_steps(program):
    for step in program.steps:
        yield step
        for inner in programs_in(step):
            yield from all_steps(inner)


def executable(f, *args, renderer="plain"):
    closed = minijax.make_jaxpr(f)(*args)
    return compile_jaxpr(closed, renderer=renderer)


def check_all(f, *args, want=None, rtol=2e-6):
    """Every renderer against loops in Python; the IR is legal after each pass."""
    if want is None:
        with minijax.disable_jit():
            want = minijax.tree.leaves(f(*args))
    for renderer in RENDERERS:
        exe = executable(f, *args, renderer=renderer)
        for name in ("lower", "tile_loops", "fuse", "update_in_place"):
            check_program(exe.passes[name])
        leaves = [np.asarray(x) for x in minijax.tree.leaves(args)]
        got = exe(*leaves)
        assert len(got) == len(want)
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, np.asarray(b), rtol=rtol, atol=1e-6, err_msg=renderer)
    return exe


# --- Programs -------------------------------------------------------------------------------------

def test_cumulative_sum():
    check_all(lambda x: lax.scan(lambda c, x: (c + x * x, c), 0.0, x), floats(5))


def test_carries_and_rows_of_vectors_backwards():
    def f(a, x):
        return lax.scan(lambda c, x: ((c[1], jnp.sin(c[0]) + x), c[0] * 2), (a, a * 2), x,
                        reverse=True)
    check_all(f, floats(3), floats(4, 3))
    check_all(f, floats(100), floats(4, 100))


@pytest.mark.parametrize("turns", [1, 2, 3, 4])
def test_carries_that_change_places(turns):
    check_all(lambda a, b: lax.fori_loop(0, turns, lambda i, c: (c[1], c[0]), (a, b)),
              floats(), floats(seed=1))
    check_all(lambda a, b: lax.fori_loop(0, turns, lambda i, c: (c[1], c[0]), (a, b)),
              floats(90), floats(90, seed=1))


@pytest.mark.parametrize("size", [1, 3, 70])
def test_one_carry_twice(size):
    check_all(lambda a: lax.fori_loop(0, 3, lambda i, c: (c[1] * 2, c[1] * 2, c[1]), (a, a, a)),
              floats(size))


def test_a_carry_passed_on_as_it_is_stays_where_it_is():
    exe = check_all(lambda a, b: lax.scan(lambda c, x: ((c[0] + c[1] * x, c[1]), c[1]), (a, b),
                                          jnp.arange(4.0)), floats(3), floats(3, seed=1))
    loop, = [s for s in exe.passes["fuse"].steps if isinstance(s, Loop)]
    assert len(loop.carries) == 1


def test_integers_and_booleans():
    check_all(lambda n: lax.while_loop(lambda c: c[0], lambda c: (c[1] < 10, c[1] + 1, ~c[0]),
                                       (True, n, False)), np.int32(3))
    check_all(lambda n: lax.while_loop(lambda n: n != 1, lambda n: jnp.where(n % 2 == 0, n // 2,
                                                                             3 * n + 1), n),
              np.int32(27))


def test_no_turns():
    check_all(lambda x: lax.scan(lambda c, x: (c + x, c), 1.0, x), floats(0), want=[1.0, []])
    check_all(lambda x: lax.scan(lambda c, _: (c * 2, jnp.ones(3) * c[0]), x, None, length=0),
              floats(2), want=[floats(2), np.zeros((0, 3))])
    check_all(lambda x: lax.while_loop(lambda c: c < 0, lambda c: c + 1, x), np.float32(1))


@pytest.mark.parametrize("unroll", [1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize("reverse", [False, True])
def test_unrolled(unroll, reverse):
    check_all(lambda x: lax.scan(lambda c, x: (c * 0.5 + x, c - x), x[0], x, unroll=unroll,
                                 reverse=reverse), floats(8, 2))


def test_a_loop_in_a_branch_in_a_loop_in_a_loop():
    def inner(c, x):
        return lax.cond(x > c, lambda c: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + i, c),
                        lambda c: c - x, c), c

    def outer(c, row):
        c, ys = lax.scan(inner, c, row)
        return c + 1, (ys.sum(), ys)

    check_all(lambda x: lax.scan(outer, 0.0, x), floats(3, 5))


def test_branches():
    branches = [lambda x: (x + 1, x[0]), lambda x: (x * x, x[1]), lambda x: (-x, 0.0)]
    for index in (-1, 0, 1, 2, 7):
        check_all(lambda i, x: lax.switch(i, branches, x), np.int32(index), floats(3))


def test_a_condition_for_each_example():
    def halvings(x, y):
        return lax.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + y, c[2] + 1),
                              (x, y, 0))
    x, y = np.linspace(0, 900, 37, dtype=np.float32), floats(37, 2)
    check_all(minijax.vmap(halvings), x, y)
    check_all(minijax.vmap(minijax.vmap(halvings, (0, None)), (None, 0)), x, floats(2, 3))
    check_all(minijax.vmap(halvings), x[:0], y[:0])


def test_gradients_of_scans():
    def f(x, w):
        c, ys = lax.scan(lambda c, x: (jnp.tanh(w @ c + x), c.sum()), x[0], x)
        return c.sum() + (ys * ys).sum()
    check_all(minijax.grad(f, (0, 1)), floats(4, 3), floats(3, 3, seed=1))
    check_all(minijax.vmap(minijax.grad(f), (0, None)), floats(2, 4, 3), floats(3, 3, seed=1))


def test_callbacks_inside_make_a_loop_of_python():
    def root(x):
        return minijax.pure_callback(np.sqrt, x, x)

    def f(x):
        return lax.scan(lambda c, x: (root(c + x), c[::-1]), x[0], x)
    exe = check_all(f, abs(floats(3, 4)) + 1)
    assert "in turns(3):" in exe.as_text()

    def g(x, i):
        def body(c):
            return c[0] + 1, lax.cond(c[0] % 2 == 0, root, lambda a: a * (2 + c[0]), c[1])
        return lax.while_loop(lambda c: c[0] < 5, body, (i, x))
    check_all(g, abs(floats(4)) + 1, np.int32(0))


# --- What is not computed -------------------------------------------------------------------------

def test_a_million_turns_in_constant_memory():
    def f(x):
        c, _ = lax.scan(lambda c, _: (c * 0.5 + 1, jnp.ones(1000) * c), x, None, length=1_000_000)
        return c
    exe = executable(f, np.float32(3), renderer="llvm")
    assert exe(np.float32(3))[0] == 2.0
    buffers = [b for s in all_steps(exe.passes["fuse"]) for b in getattr(s, "carries", ())]
    assert max(b.size for carry in buffers for b in carry) == 1


def test_carries_that_only_feed_themselves_are_dropped():
    def f(x, y):
        c, _ = lax.scan(lambda c, _: ((c[0] * 0.5, jnp.sin(c[1]) + c[0]), None), (x, y), None,
                        length=5)
        return c[0]
    exe = check_all(f, np.float32(3), floats(9))
    loop, = [s for s in exe.passes["fuse"].steps if isinstance(s, Loop)]
    assert len(loop.carries) == 1


# --- Updates in place -----------------------------------------------------------------------------

def copies(program, size):
    return [s for s in all_steps(program) if isinstance(s, Nest) and s.count() == size]


def test_an_array_filled_an_element_a_turn_is_not_copied():
    def f(n):
        def body(c):
            i, a = c
            return i + 1, a.at[i + 1].set(a[i] * 2 + i)
        return lax.while_loop(lambda c: c[0] < n, body, (0, jnp.ones(200)))
    exe = check_all(f, np.int32(50))
    loop, = [s for s in exe.passes["update_in_place"].steps if isinstance(s, While)]
    assert not copies(loop.body, 200)


def test_no_update_in_place_while_the_old_value_is_needed():
    def reads_old(i, c):
        new = c.at[i].set(i * 2.0)
        return new + c[i + 1]

    def keeps_old(i, c):
        return c[0].at[i].set(7.0), c[0]

    def shifts(i, c):
        return lax.dynamic_update_slice(c, c[:-1], (1,))

    def twice(i, c):
        return c.at[i].set(1.0).at[i + 1].add(c[i])

    x = jnp.asarray(floats(100))
    check_all(lambda x: lax.fori_loop(0, 5, reads_old, x), x)
    check_all(lambda x: lax.fori_loop(0, 5, keeps_old, (x, x)), x)
    check_all(lambda x: lax.fori_loop(0, 5, shifts, x), x)
    check_all(lambda x: lax.fori_loop(0, 5, twice, x), x)


def is_changed_in_place(program, size):
    """Whether the only loop of a program has carries of this size, and copies none in its turns."""
    loop, = [s for s in program.steps if isinstance(s, Loop)]
    carries = [(now, following) for _, now, following in loop.carries if now.size == size]
    return carries and all(now is following for now, following in carries)


# (i, a row of indices, the array) -> the array changed from other places of itself
FROM_OTHERS = {
    "the row before": lambda lib, i, k, c: c.at[i].set(lib.numpy.tanh(c[i - 1]) + 1),
    "the row after": lambda lib, i, k, c: c.at[i].set(c[i + 1] * 0.5 - c[i]),
    "any rows": lambda lib, i, k, c: c.at[k[0]].set(c[k[1]] - 0.5 * c[k[2]]),
    "a row reversed": lambda lib, i, k, c: c.at[k[0]].set(c[k[0]][::-1]),
    "neighbours in a row": lambda lib, i, k, c: c.at[i, 1:-1].set(c[i, :-2] * 0.3 - c[i, 2:]),
    "a sum of all": lambda lib, i, k, c: c.at[k[0]].set(c.sum(0) * 0.1),
    "rows that overlap": lambda lib, i, k, c: lib.lax.dynamic_update_slice(
        c, lib.lax.dynamic_slice(c, (k[0], 1), (3, 5)) * 0.9, (k[0] + 1, 0)),
    "a row that is added to": lambda lib, i, k, c: c.at[k[0]].add(0.3 * c[k[1]][::-1]),
    "dropped outside": lambda lib, i, k, c: c.at[3 * k[0] - 9].set(c[k[1]], mode="drop"),
    "clamped outside": lambda lib, i, k, c: c.at[3 * k[0] - 9].add(0.3 * c[k[1]], mode="clip"),
    "some rows, one often": lambda lib, i, k, c: c.at[k % 4].add(0.3 * c[k]),
    "two updates": lambda lib, i, k, c: c.at[i].set(c[i - 1]).at[k[0]].add(0.5 * c[k[1]]),
    "two updates, one old row": lambda lib, i, k, c: c.at[k[0]].set(c[k[1]]).at[k[1]].set(c[k[0]]),
    "a column": lambda lib, i, k, c: c.at[:, k[0] % 6].set(c[:, k[1] % 6] * 0.9),
    "an index in the array": lambda lib, i, k, c: c.at[k[0]].set(
        c[lib.numpy.abs(9 * c[k[1], 0]).astype(int) % 20]),
}


@pytest.mark.parametrize("name", FROM_OTHERS)
def test_rows_made_of_other_rows_are_changed_in_place(name):
    turns = np.arange(18), np.random.default_rng(0).integers(0, 20, (18, 3))

    def results(lib):
        def f(c):
            return lib.lax.scan(lambda c, t: (FROM_OTHERS[name](lib, *t, c), None), c,
                                lib.tree.map(lib.numpy.asarray, turns))[0]
        return f, lib.grad(lambda c: lib.numpy.sin(f(c)).sum())

    x = floats(20, 6)
    for k, (f, oracle) in enumerate(zip(results(minijax), results(jax))):
        want = jax.jit(oracle)(x)
        for renderer in ("llvm", "plain"):
            exe = executable(f, x, renderer=renderer)
            program = check_program(exe.passes["update_in_place"])
            assert k == 1 or is_changed_in_place(program, x.size)
            np.testing.assert_allclose(exe(x)[0], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [
    lambda lib, i, c: i * 1.0, lambda lib, i, c: lib.numpy.tanh(c[:, i - 1]) + 1])
def test_columns_are_changed_in_place_however_long_rows_are(value):
    def run(lib, c):
        return lib.lax.fori_loop(1, 300, lambda i, c: c.at[:, i].set(value(lib, i, c)), c)

    x = floats(64, 300)
    exe = executable(lambda c: run(minijax, c), x)
    assert is_changed_in_place(exe.passes["update_in_place"], x.size)
    np.testing.assert_allclose(exe(x)[0], jax.jit(lambda c: run(jax, c))(x), rtol=1e-5)


def test_two_carries_made_of_each_other_are_changed_in_place():
    def run(lib, c, d):
        def turn(i, state):
            c, d = state
            return c.at[i].set(c[i - 1] * 0.5 + d[i - 1]), d.at[i].set(d[i - 1] - 0.1 * c[i - 1])
        return lib.lax.fori_loop(1, 20, turn, (lib.numpy.asarray(c), lib.numpy.asarray(d)))

    x, y = floats(20, 6), floats(20, 6, seed=1)
    for renderer in ("llvm", "plain"):
        exe = executable(lambda c, d: run(minijax, c, d), x, y, renderer=renderer)
        assert is_changed_in_place(check_program(exe.passes["update_in_place"]), x.size)
        for got, want in zip(exe(x, y), run(jax, x, y)):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_arguments_are_not_changed():
    x = jnp.zeros(100)
    y = minijax.jit(lambda x: lax.fori_loop(0, 9, lambda i, c: c.at[i].set(1.0), x))(x)
    assert float(x.sum()) == 0 and float(y.sum()) == 9


# --- The checker ----------------------------------------------------------------------------------

def filling_loop(part=2, length=3):
    """A loop of `length` turns that fills `part` elements a turn."""
    x, y, turn, i = Buffer((6,), F32), Buffer((6,), F32), Axis(length), Axis(part)
    load = Load(x, axis_index(turn) * part + axis_index(i))
    body = Program([x], [Nest([i], [load, Store(y, load.index, load)])], [y], [])
    return Program([x], [Loop(turn, body)], [y], [])


def test_the_checker_counts_parts():
    check_program(filling_loop())
    with pytest.raises(LoopIRError, match="4 of 6 elements"):
        check_program(filling_loop(length=2))
    program = filling_loop()
    program.steps.append(program.steps[0])
    with pytest.raises(LoopIRError, match="second time"):
        check_program(program)


def adding_loop():
    start, now, following = (Buffer((), F32) for _ in range(3))
    load, one = Load(now, ZERO), Const(1, F32)
    total = Op("add", (load, one), F32)
    body = Program([now], [Nest([], [load, one, total, Store(following, ZERO, total)])],
                   [following], [])
    loop = Loop(Axis(4), body, [(start, now, following)])
    return Program([start], [loop], [now], []), loop


def test_the_checker_knows_carries():
    program, loop = adding_loop()
    check_program(program)
    loop.body.steps.clear()
    with pytest.raises(LoopIRError, match="end of a turn"):
        check_program(program)
    program, loop = adding_loop()
    loop.carries *= 2
    with pytest.raises(LoopIRError, match="two carries"):
        check_program(program)
    program, loop = adding_loop()
    program.steps.append(loop)
    with pytest.raises(LoopIRError, match="second time"):
        check_program(program)


def test_the_checker_wants_a_condition():
    program, loop = adding_loop()
    flag = Buffer((), F32)
    zero = Const(0, F32)
    condition = Program([], [Nest([], [zero, Store(flag, ZERO, zero)])], [flag], [])
    program.steps = [While(condition, loop.body, loop.carries)]
    with pytest.raises(LoopIRError, match="no single bool"):
        check_program(program)


def test_text_shows_loops():
    exe = executable(lambda x: lax.fori_loop(0, 9, lambda i, c: c.at[i].set(1.0), x), floats(100))
    text = exe.ir_text()
    assert "loop i0<9:" in text or "loop while it holds:" in text
    assert "carry" in text


# --- Products in loops ----------------------------------------------------------------------------

@pytest.mark.parametrize("lhs, rhs, numbers", [
    ((3, 4), (4, 5), (((1,), (0,)), ((), ()))), ((4, 3), (4, 5), (((0,), (0,)), ((), ()))),
    ((3, 4), (5, 4), (((1,), (1,)), ((), ()))), ((4, 3), (5, 4), (((0,), (1,)), ((), ()))),
    ((30, 40), (40,), (((1,), (0,)), ((), ()))), ((40,), (40, 30), (((0,), (0,)), ((), ()))),
    ((40, 30), (40,), (((0,), (0,)), ((), ()))), ((40,), (40,), (((0,), (0,)), ((), ()))),
    ((2, 3, 40), (2, 40, 5), (((2,), (1,)), ((0,), (0,)))), ((3,), (4,), (((), ()), ((), ()))),
    ((2, 17, 3, 4), (4, 17, 2, 5), (((1, 3), (1, 0)), ((0,), (2,)))),
    ((3, 0), (0, 4), (((1,), (0,)), ((), ()))), ((1, 24), (24, 1), (((1,), (0,)), ((), ())))])
def test_products_in_loops_are_nests(lhs, rhs, numbers):
    def f(a, b):
        return lax.fori_loop(0, 3, lambda i, c: c * 0.5 + lax.dot_general(a + c.sum(), b, numbers),
                             jnp.zeros(lax.dot_general(a, b, numbers).shape))
    exe = check_all(f, jnp.asarray(floats(*lhs)), jnp.asarray(floats(*rhs, seed=1)),
                    rtol=1e-4)
    loop, = [s for s in exe.passes["fuse"].steps if isinstance(s, Loop)]
    assert not has_calls(loop)


# shapes and dimension numbers of products that are worth a call of BLAS
LARGE_PRODUCTS = [
    ((24, 30), (30, 20), (((1,), (0,)), ((), ()))), ((30, 24), (30, 20), (((0,), (0,)), ((), ()))),
    ((24, 30), (20, 30), (((1,), (1,)), ((), ()))), ((30, 24), (20, 30), (((0,), (1,)), ((), ()))),
    ((150, 40), (40,), (((1,), (0,)), ((), ()))), ((40,), (40, 150), (((0,), (0,)), ((), ()))),
    ((40, 150), (40,), (((0,), (0,)), ((), ()))), ((40,), (150, 40), (((0,), (1,)), ((), ()))),
    ((3, 20, 30), (3, 30, 10), (((2,), (1,)), ((0,), (0,)))),
    ((20, 30, 3), (30, 10, 3), (((1,), (0,)), ((2,), (2,)))),
    ((20, 3, 30), (30, 3, 10), (((2,), (0,)), ((1,), (1,)))),
    ((4, 5, 9, 8), (8, 9, 30), (((2, 3), (1, 0)), ((), ()))),
    ((4, 5, 30), (30, 6, 4), (((2,), (0,)), ((), ()))),
    ((30, 2, 20), (2, 30, 3, 3), (((0, 1), (1, 0)), ((), ())))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lhs, rhs, numbers", LARGE_PRODUCTS)
def test_large_products_in_loops_are_calls_of_blas(lhs, rhs, numbers, dtype):
    def f(a, b):
        def turn(i, c):
            return c * 0.5 + lax.dot_general(0.1 * (a + jnp.tanh(c.sum())), b, numbers)
        return lax.fori_loop(0, 3, turn, lax.dot_general(a, b, numbers) * 0)
    with minijax.enable_x64(dtype == np.float64):
        exe = check_all(f, jnp.asarray(floats(*lhs), dtype), jnp.asarray(floats(*rhs, seed=1), dtype),
                        rtol=1e-4 if dtype == np.float32 else 1e-9)
    loop, = [s for s in exe.passes["fuse"].steps if isinstance(s, Loop)]
    assert not has_calls(loop) and any(isinstance(s, Product) for s in loop.body.steps)


def test_products_of_any_size_stay_in_the_loop():
    def f(x, w):
        return lax.while_loop(lambda c: jnp.sum(c) > 1e3, lambda c: (c @ w) * 0.5, x)
    x, w = np.full((130, 120), 3, np.float32), np.full((120, 120), 1 / 120, np.float32)
    exe = executable(f, x, w, renderer="llvm")
    assert not any(map(has_calls, exe.passes["fuse"].steps)) and "product" in exe.ir_text()
    np.testing.assert_allclose(exe(x, w)[0], x / 64, rtol=1e-5)


def test_operands_of_products_are_read_where_they_are():
    def chain(ws, x):
        def turn(x, i):
            w = lax.dynamic_index_in_dim(ws, i, keepdims=False)
            return jnp.tanh(x[:, 8:40] @ w[:, 4:].T), x[1:-1, :20] @ ws[1, :20, ::2]
        return lax.scan(turn, x, jnp.arange(3) - 1)
    exe = check_all(chain, jnp.asarray(floats(4, 40, 36)), jnp.asarray(floats(17, 40)), rtol=2e-4)
    loop, = [s for s in exe.passes["fuse"].steps if isinstance(s, Loop)]
    first, second = [s for s in loop.body.steps if isinstance(s, Product)]
    shapes = {n.buffer.shape for s in (first, second) for n in s.body[-2].body
              if isinstance(n, Load) and n.buffer.dtype == F32}
    assert (4, 40, 36) in shapes and (17, 40) in shapes       # of slices and transposes no copies
    assert (20, 18) in shapes                                 # but BLAS takes no steps of 2


def test_views_that_blas_can_not_take_are_copied():
    def f(x, y):
        wide = jnp.broadcast_to(x[:, :1], (20, 30))
        padded = jnp.pad(x, ((0, 0), (2, 2)))
        return wide @ y, padded @ jnp.concatenate([y, y[:4]]), x[::-1] @ y, x.reshape(30, 20).T @ y
    exe = check_all(f, jnp.asarray(floats(20, 30)), jnp.asarray(floats(30, 40)), rtol=1e-4)
    assert sum(isinstance(s, Product) for s in exe.passes["fuse"].steps) == 4
    assert not any(map(has_calls, exe.passes["fuse"].steps))


def test_what_memory_held_before_does_not_matter():
    """BLAS is told to multiply the old result by 0, and that must not make a NaN of a NaN."""
    def f(x, v):
        def turn(c, _):
            big = jnp.full((64, 64), jnp.nan) + c[0, 0]
            return jnp.where(jnp.isnan(big.sum()), x @ c, c), (x @ v, v @ x)
        return lax.scan(turn, x, None, 3)
    x = jnp.asarray(floats(64, 64) * 0.1)
    check_all(f, x, jnp.asarray(floats(64)), rtol=1e-4)


def test_products_of_no_floats_in_loops_are_nests_of_any_size():
    def f(a, b):
        return lax.fori_loop(0, 2, lambda i, c: c + a @ b, jnp.zeros((90, 80), a.dtype))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(np.int32) for shape in ((90, 100), (100, 80)))
    exe = executable(f, a, b, renderer="llvm")
    assert not any(map(has_calls, exe.passes["fuse"].steps))
    np.testing.assert_array_equal(exe(a, b)[0], 2 * a @ b)


def test_sums_of_products_grow_in_blas():
    def loss(w, x):
        c, _ = lax.scan(lambda c, x: (jnp.tanh(c @ w + x), None), x[0], x)
        return c.sum()
    w, x = jnp.asarray(floats(24, 24) * 0.1), jnp.asarray(floats(5, 16, 24))
    exe = check_all(minijax.grad(loss), w, x, rtol=2e-4)
    assert any(isinstance(s, Product) and s.body[-1].combine == "add"
               for s in all_steps(exe.passes["update_in_place"]))


def test_addresses_that_scipy_publishes(monkeypatch):
    monkeypatch.setattr(machine, "blas_address", machine.scipy_address)
    a, b, v = floats(30, 40), floats(40, 50, seed=1), floats(40)
    outs = executable(lambda a, b, v: (a @ b, b.T @ v), a, b, v, renderer="llvm")(a, b, v)
    np.testing.assert_allclose(outs[0], a @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outs[1], b.T @ v, rtol=1e-4, atol=1e-5)


# --- Tiles of examples ----------------------------------------------------------------------------

@pytest.mark.parametrize("count", [32, 33, 64, 100])
def test_examples_that_run_by_themselves_run_in_tiles(count):
    def steps(x, a):
        return lax.while_loop(lambda c: (c[0] > 1) & (c[1] < 50),
                              lambda c: (c[0] * 0.5 + a * 0.1, c[1] + 1), (x, 0))
    x, a = np.linspace(0, 900, count, dtype=np.float32), floats(count, seed=1)
    exe = check_all(minijax.vmap(steps), x, a)
    assert any(isinstance(s, Loop) for s in exe.passes["tile_loops"].steps) == (count > 32)
    check_all(minijax.vmap(steps, (0, None)), x, np.float32(0.5))
    check_all(minijax.vmap(minijax.vmap(steps, (0, None)), (None, 0)), x, a[:3])


def test_examples_that_see_one_another_do_not_run_in_tiles():
    def f(x):
        def turn(c):
            return c * 0.5 + c[::-1] * 0.01
        rows = minijax.vmap(lambda c: lax.while_loop(lambda c: c.sum() > 1, turn, c))
        return rows(x)
    exe = check_all(f, jnp.asarray(abs(floats(40, 3))))
    assert not any(isinstance(s, Loop) for s in exe.passes["tile_loops"].steps)


# --- Sums that grow -------------------------------------------------------------------------------

def test_gradients_of_weights_grow_in_place():
    def loss(w, x):
        c, _ = lax.scan(lambda c, x: (jnp.tanh(c @ w + x), None), x[0], x)
        return c.sum()
    w, x = jnp.asarray(floats(12, 12)), jnp.asarray(floats(5, 16, 12))
    exe = check_all(minijax.grad(loss), w, x, rtol=2e-4)
    *_, loop = [s for s in all_steps(exe.passes["update_in_place"]) if isinstance(s, Loop)
                and s.carries]
    assert any(now is following and now.shape == (12, 12) for _, now, following in loop.carries)


# (a number of the turn, numbers of rows, the array) -> what a turn reads of the array
READS = {
    "a row": lambda lib, i, k, x: x[i],
    "two rows": lambda lib, i, k, x: x[i] * x[k[0]],
    "a row twice": lambda lib, i, k, x: x[k[0]] * x[k[0]][::-1],
    "rows that overlap": lambda lib, i, k, x: lib.lax.dynamic_slice(x, (i, 0), (3, 6)).sum(0),
    "any rows, some often": lambda lib, i, k, x: x[k % 4].sum(0),
    "a part of a column": lambda lib, i, k, x: x[3:9, k[0] % 6],
    "an element": lambda lib, i, k, x: x[i, k[0] % 6],
    "a row outside": lambda lib, i, k, x: x.at[3 * i - 9].get(mode="fill", fill_value=0),
}


@pytest.mark.parametrize("name, dtype", [*((name, "float32") for name in READS),
                                         ("two rows", "bfloat16"), ("an element", "float16")])
def test_gradients_of_rows_that_are_read_grow_in_place(name, dtype):
    rows = np.random.default_rng(0).integers(0, 20, (18, 3))

    def gradient(lib):
        def loss(x):
            def turn(i, c):
                return lib.numpy.tanh(c - READS[name](lib, i, lib.numpy.asarray(rows)[i], x))
            return lib.lax.fori_loop(0, 18, turn, lib.numpy.zeros(6, dtype)).sum()
        return lib.grad(loss)

    x = floats(20, 6).astype(dtype)
    want = np.asarray(jax.jit(gradient(jax))(x), np.float32)
    for renderer in ("llvm", "plain"):
        exe = executable(gradient(minijax), x, renderer=renderer)
        *_, backward = [s for s in check_program(exe.passes["update_in_place"]).steps
                        if isinstance(s, Loop)]
        assert [now is following for _, now, following in backward.carries
                if now.shape == x.shape] == [True]
        np.testing.assert_allclose(exe(x)[0].astype(np.float32), want, rtol=1e-4,
                                   atol=1e-6 if dtype == "float32" else 0.03)


def test_rows_that_are_set_over_others_are_no_sum():
    def f(c, k, rows):
        def turn(c, k):
            new = jnp.zeros_like(c).at[k[0]].set(rows[0]).at[k[1]].set(rows[1])
            two = lax.dynamic_update_slice(jnp.zeros_like(c), rows, (k[0], 0)).at[k[1]].add(1.0)
            return c + new + two, new[k[2]]
        return lax.scan(turn, c, k)
    k = jnp.array([[1, 1, 1], [2, 3, 3], [5, 4, 5]])
    check_all(f, jnp.asarray(floats(8, 3)), k, jnp.asarray(floats(2, 3, seed=1)))


def test_transposes_of_products_are_products():
    def f(a, b):
        return jnp.swapaxes(a @ b, 0, 1), jnp.swapaxes(jnp.einsum("bij,bjk->bik", b[None], a[None]),
                                                       1, 2)
    exe = check_all(f, jnp.asarray(floats(3, 4)), jnp.asarray(floats(4, 3)), rtol=1e-5)
    names = [e.primitive.name for e in exe.passes["transposed_products"].jaxpr.eqns]
    assert names.count("dot_general") == 2 and "transpose" not in names


# --- Along an axis --------------------------------------------------------------------------------

@pytest.mark.parametrize("axis", [0, 1])
def test_walks_along_an_axis_stay_in_the_loop(axis):
    def f(x):
        def turn(c, k):
            running = lax.cumsum(c, axis) * 0.1 + lax.cummax(c, axis, reverse=True)
            running = running + lax.cumprod(c * 0.5, axis) + lax.cummin(c, axis)
            return running, (jnp.argmax(running, axis), jnp.argmin(running + k, axis))
        return lax.scan(turn, x, jnp.arange(3.0))
    exe = check_all(f, jnp.asarray(floats(4, 5)), rtol=1e-5)
    assert not any(map(has_calls, exe.passes["fuse"].steps))


def test_the_place_of_the_first_nan():
    x = np.array([[1, np.nan, 7, np.nan], [2, 2, 1, 1], [np.inf, -np.inf, 0, np.inf]], np.float32)

    def f(x):
        return lax.fori_loop(0, 2, lambda i, c: (jnp.argmax(x + i, 1), jnp.argmin(x - i, 1)),
                             (jnp.zeros(3, int), jnp.zeros(3, int)))
    check_all(f, jnp.asarray(x))
    check_all(lambda x: lax.fori_loop(0, 2, lambda i, c: jnp.argmax(x[:, :1] + c[:, None], 1),
                                      jnp.zeros(3, int)), jnp.asarray(x))


# --- Nothing takes a turn to Python ---------------------------------------------------------------

STAYS = {
    "a barrier": lambda c, z: lax.optimization_barrier(c) + z,
    "a checkpoint": lambda c, z: minijax.checkpoint(jnp.sin)(c) + z,
    "an element that is set": lambda c, z: c.at[1].set(z[0]),
    "an element that is added to": lambda c, z: c.at[(3 * z[0]).astype(int)].add(z[1]),
    "an element outside": lambda c, z: c.at[7].multiply(z[0]) * c.at[-9].min(z[1]),
}


@pytest.mark.parametrize("name", STAYS)
def test_bodies_that_stay_in_machine_code(name):
    f = lambda c, zs: lax.scan(lambda c, z: (STAYS[name](c, z), c), c, zs)
    zs = jnp.linspace(-0.3, 0.9, 24).reshape(6, 4)
    slope = minijax.grad(lambda *args: sum(x.sum() for x in f(*args)), argnums=(0, 1))
    for g in (f, slope):
        compiled = minijax.jit(g).lower(zs[0], zs).compile()
        loops = [s for s in compiled.executable.program.steps if isinstance(s, Loop)]
        assert loops and not any(map(has_calls, loops))
        with minijax.disable_jit():
            wanted = g(zs[0], zs)
        for a, b in zip(compiled(zs[0], zs), wanted):
            np.testing.assert_allclose(a, b, rtol=2e-6)


@pytest.mark.parametrize("change", [
    lambda lib, x, w: x.at[:10].set(x[:10] @ w),
    lambda lib, x, w: lib.lax.dynamic_update_slice(x, lib.numpy.tanh(x[5:15] @ w), (3, 0))])
def test_gradient_of_a_carry_that_is_changed_in_place(change):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 20, 20)).astype(np.float32) / 4

    def gradient(lib):
        def loss(x, w):
            def turn(x, _):
                return change(lib, x, w), None
            return (lib.lax.scan(turn, x, None, length=4)[0] ** 2).sum()
        return lib.jit(lib.grad(loss, (0, 1)))(lib.numpy.asarray(x), lib.numpy.asarray(w))

    for got, want in zip(gradient(minijax), gradient(jax), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(300, 300), (257, 1009), (20, 300), (64, 256), (3, 130, 300)])
def test_rows_and_columns_at_once_in_squares_of_any_sides(shape):
    x, y = floats(*shape), floats(*shape, seed=1).swapaxes(-1, -2).copy()
    add = minijax.jit(lambda x, y: 2 * x + jnp.swapaxes(y, -1, -2))
    want = 2 * x + y.swapaxes(-1, -2)
    np.testing.assert_array_equal(add(x, y), want)
    given = jnp.array(x)
    np.testing.assert_array_equal(minijax.jit(add, donate_argnums=0)(given, y), want)
    assert given.is_deleted()


# --- Updates in a row -----------------------------------------------------------------------------

def test_updates_in_a_row_copy_once():
    """The first one copies the argument; a value that is used again is copied too."""
    x = np.arange(1000, dtype=np.float32)
    chain = lambda x: x.at[0].set(2).reshape(10, 100).at[1].add(3).at[:, 5].multiply(4)
    exe = compile_jaxpr(minijax.make_jaxpr(chain)(x))
    check_program(exe.passes["update_in_place"])
    assert len([s for s in exe.passes["update_in_place"].steps if is_plain_copy(s)]) == 1
    assert minijax.jit(chain).lower(x).compile().memory_analysis().temp_size_in_bytes == 0
    shared = lambda x: [y := x.at[0].set(2), y.at[1].set(3), y.at[2].set(4).at[3].set(5)]
    sorted_too = lambda x: (jnp.sort(y := (x * 2).at[0].set(2)), y.at[1].set(3))
    for f in (chain, shared, sorted_too):
        with minijax.disable_jit():
            want = minijax.tree.leaves(f(jnp.asarray(x)))
        for _ in range(2):
            for got, w in zip(minijax.tree.leaves(minijax.jit(f)(x)), want, strict=True):
                np.testing.assert_array_equal(got, w)
    np.testing.assert_array_equal(x, np.arange(1000))
