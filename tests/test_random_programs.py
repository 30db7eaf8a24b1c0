"""Programs drawn at random: eager, jitted, vmapped and differentiated, against real JAX.

A program is a straight line of operations on earlier values, written in terms of a `numpy` module, so
that NumPy itself gives the shapes while one is drawn. Loops and branches hold operations, and one
another, to a depth of three. MINIJAX_FUZZ_EXAMPLES sets how many are drawn.
"""
import os
import re

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import minijax
import minijax.numpy as mnp

EXAMPLES = int(os.environ.get("MINIJAX_FUZZ_EXAMPLES", 30))
SHAPES = [(), (3,), (2, 3), (3, 2), (2, 1, 3), (1,)]


class PythonLax:
    """Loops and branches in plain Python: what they mean, and the shapes while a program is drawn."""

    @staticmethod
    def cond(pred, true_fun, false_fun):
        return true_fun() if pred else false_fun()

    @staticmethod
    def while_loop(cond_fun, body_fun, value):
        while cond_fun(value):
            value = body_fun(value)
        return value

    @staticmethod
    def fori_loop(lower, upper, body_fun, value):
        for i in range(lower, upper):
            value = body_fun(i, value)
        return value

    @staticmethod
    def scan(f, carry, xs, reverse=False):
        ys = []
        for x in xs[::-1] if reverse else xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys[::-1] if reverse else ys)

    @staticmethod
    def map(f, xs):
        return np.stack([f(x) for x in xs])

    stop_gradient = staticmethod(lambda x: x)


LAX = {np: PythonLax, jnp: jax.lax, mnp: minijax.lax}


# One line an operation. The operand's rank and dtype decide whether it may be drawn.
UNARY = {
    "sin": lambda np, x: np.sin(x),
    "cos": lambda np, x: np.cos(x),
    "tanh": lambda np, x: np.tanh(x),
    "exp of tanh": lambda np, x: np.exp(np.tanh(x)),
    "log1p of square": lambda np, x: np.log1p(np.square(x)),
    "sqrt of 1 + square": lambda np, x: np.sqrt(1.0 + x * x),
    "neg": lambda np, x: -x,
    "double": lambda np, x: x * 2,
    "one minus": lambda np, x: 1 - x,
    "cube": lambda np, x: np.tanh(x) ** 3,
    "clip": lambda np, x: np.clip(x, -1.5, 1.5),
    "relu": lambda np, x: np.maximum(x, 0.125),
    "where": lambda np, x: np.where(x > 0.0625, x, x * 0.5),
    "sum": lambda np, x: np.sum(x),
    "mean of last": lambda np, x: np.mean(x, axis=-1),
    "max of first": lambda np, x: np.max(x, axis=0),
    "prod of tanh": lambda np, x: np.prod(np.tanh(x), axis=-1, keepdims=True),
    "cumsum": lambda np, x: np.cumsum(x, axis=0),
    "sort": lambda np, x: np.sort(x, axis=-1),
    "flip": lambda np, x: np.flip(x, axis=-1),
    "first": lambda np, x: x[0],
    "strided": lambda np, x: x[..., ::2],
    "new axis": lambda np, x: x[None],
    "gathered": lambda np, x: x[..., np.array([0, -1, 0])],
    "transpose": lambda np, x: np.transpose(x),
    "ravel": lambda np, x: np.ravel(x),
    "column": lambda np, x: np.reshape(x, (-1, 1)),
    "swap": lambda np, x: np.swapaxes(x, 0, -1),
    "pad": lambda np, x: np.pad(x, [(1, 0)] * x.ndim),
    "roll": lambda np, x: np.roll(x, 1, axis=0),
    "tile": lambda np, x: np.tile(x, 2),
    "squeeze": lambda np, x: np.squeeze(x),
    "var": lambda np, x: np.var(x, axis=-1),
    "gram": lambda np, x: np.matmul(np.swapaxes(x, -1, -2), x) * 0.1,
    "einsum": lambda np, x: np.einsum("...i,...j->...ij", x, x) * 0.25,
    "cond": lambda np, x: LAX[np].cond(np.sum(x) > 0.3, lambda: np.sin(x), lambda: x * 0.25),
    "fori": lambda np, x: LAX[np].fori_loop(0, 3, lambda i, c: np.sin(c) * x + i, x),
    "while": lambda np, x: x * LAX[np].while_loop(lambda s: np.max(np.abs(s), initial=0.0) > 0.7,
                                                  lambda s: s * 0.5, LAX[np].stop_gradient(x)),
    "scan, ys": lambda np, x: LAX[np].scan(lambda c, r: (np.tanh(c + r), c * r), x[0], x)[1],
    "scan, carry": lambda np, x: LAX[np].scan(
        lambda c, r: (c * 0.5 + np.sin(r), c), x[-1] * 0.5, x, reverse=True)[0],
    "map": lambda np, x: LAX[np].map(lambda r: np.sum(r * r), x),
    "cond in scan": lambda np, x: LAX[np].scan(lambda c, r: (LAX[np].cond(
        np.sum(c) > 0.2, lambda: c * r, lambda: c - r), np.sum(c)), x[0], x)[1],
}
BINARY = {
    "add": lambda np, x, y: x + y,
    "sub": lambda np, x, y: x - y,
    "mul": lambda np, x, y: x * y,
    "div": lambda np, x, y: x / (2.0 + y * y),
    "maximum": lambda np, x, y: np.maximum(x, y),
    "arctan2": lambda np, x, y: np.arctan2(x, 1.0 + y * y),
    "select": lambda np, x, y: np.where(x < 0.3, x, y),
    "concatenate": lambda np, x, y: np.concatenate([np.ravel(x), np.ravel(y)]),
    "stack": lambda np, x, y: np.stack([x, y], axis=-1),
    "outer": lambda np, x, y: np.outer(x, y) * 0.5,
    "dot": lambda np, x, y: np.dot(x, np.swapaxes(y, 0, -1)) * 0.25,
    "recurrence": lambda np, x, y: LAX[np].scan(
        lambda c, r: (np.tanh(c) * 0.5 + r, np.sum(c)), np.ravel(x), np.ravel(y))[1],
    "choice": lambda np, x, y: LAX[np].cond(
        np.sum(x) > np.sum(y), lambda: np.ravel(x)[0] * y, lambda: np.sin(y)),
}
# Loops and branches around an operation that keeps the shape, or around such a loop or branch.
AROUND = {
    "scan of": lambda np, f, x: LAX[np].scan(lambda c, r: (np.tanh(c + f(r)), f(c) * r), x[0], x)[1],
    "backward scan of": lambda np, f, x: LAX[np].scan(
        lambda n, r: (n + 1, f(r) * n), 0, x, reverse=True)[1],
    "branch of": lambda np, f, x: LAX[np].cond(np.sum(x) > 0.3, lambda: f(x), lambda: x * 0.25),
    "loop of": lambda np, f, x: LAX[np].fori_loop(0, 2, lambda i, c: np.tanh(f(c)) + i * x, x),
    "map of": lambda np, f, x: LAX[np].map(f, x),
    "while of": lambda np, f, x: x * LAX[np].while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, np.sin(f(s[1]))), (0, LAX[np].stop_gradient(x)))[1],
}
KEEP_SHAPE = ["sin", "cube", "clip", "where", "one minus", "flip", "cond", "fori"]


def around(name, operation):
    return lambda np, x: AROUND[name](np, lambda y: operation(np, y), x)


ONCE = {f"{name} {inner}": around(name, UNARY[inner]) for name in AROUND for inner in KEEP_SHAPE}
TWICE = {f"{name} {inner}": around(name, ONCE[inner]) for name in AROUND for inner in ONCE}
UNARY |= ONCE | TWICE
OPERATIONS = UNARY | BINARY
# NumPy reduces a scalar along an axis that it does not have; JAX refuses.
NEED_AN_AXIS = {"mean of last", "max of first", "prod of tanh", "cumsum", "sort", "flip", "var",
                "swap", "roll", "gram", "dot", "scan, ys", "scan, carry", "map", "cond in scan"}
NEED_AN_AXIS |= {name for name in ONCE | TWICE if re.search("scan of|map of|flip", name)}
SIMPLE = sorted(OPERATIONS.keys() - ONCE.keys() - TWICE.keys())


@st.composite
def programs(draw, shapes=tuple(SHAPES)):
    """(input arrays, steps): each step an operation and the numbers of the values it takes."""
    chosen = draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=2))
    inputs = [draw_array(draw, shape) for shape in chosen]
    values, steps = list(inputs), []
    for _ in range(draw(st.integers(1, 7))):
        name = draw(st.sampled_from(draw(st.sampled_from([SIMPLE, SIMPLE, sorted(ONCE), sorted(TWICE)]))))
        arity = 1 if name in UNARY else 2
        operands = [draw(st.integers(0, len(values) - 1)) for _ in range(arity)]
        value = try_numpy(name, [values[i] for i in operands])
        if value is not None:
            values.append(value)
            steps.append((name, operands))
    return inputs, steps


def draw_array(draw, shape):
    size = int(np.prod(shape))
    eighths = draw(st.lists(st.integers(-16, 16), min_size=size, max_size=size))
    # irrational factor: ties between computed values would make max and sort ill-conditioned
    steps = np.arange(size) * np.sqrt(2) / 97
    return (np.array(eighths) / 8 + steps).astype(np.float32).reshape(shape)


def try_numpy(name, operands):
    """The value, or None if the operation does not fit these operands."""
    if name in NEED_AN_AXIS and not all(x.ndim for x in operands):
        return None
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(OPERATIONS[name](np, *operands))
    except (ValueError, IndexError, TypeError):
        return None
    return value if value.size <= 200 and value.ndim <= 4 else None


def run(lib_numpy, steps, inputs):
    values = list(inputs)
    for name, operands in steps:
        values.append(OPERATIONS[name](lib_numpy, *[values[i] for i in operands]))
    return values[len(inputs):] or values


def close(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.shape == b.shape and a.dtype == b.dtype
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-5 * scale)


def scalar(lib_numpy, steps):
    return lambda *inputs: sum(lib_numpy.sum(lib_numpy.tanh(v)) for v in run(lib_numpy, steps, inputs))


@settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES < 1000, print_blob=True,
          suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_program(program):
    inputs, steps = program
    note(f"steps: {steps}")
    ours, theirs = map(mnp.asarray, inputs), map(jnp.asarray, inputs)
    ours, theirs = list(ours), list(theirs)
    wanted = run(jnp, steps, theirs)
    close(run(mnp, steps, ours), wanted)
    close(minijax.jit(lambda *xs: run(mnp, steps, xs))(*ours), wanted)
    batch = lambda lib_numpy, xs: [lib_numpy.stack([x, x * 0.5, -x]) for x in xs]
    batched = minijax.vmap(lambda *xs: run(mnp, steps, xs))(*batch(mnp, ours))
    close(batched, jax.vmap(lambda *xs: run(jnp, steps, xs))(*batch(jnp, theirs)))
    for k, factor in enumerate([1, 0.5, -1]):
        close([y[k] for y in batched], run(mnp, steps, [x * factor for x in ours]))
    argnums = tuple(range(len(inputs)))
    close(minijax.jit(minijax.grad(scalar(mnp, steps), argnums))(*ours),
          jax.grad(scalar(jnp, steps), argnums)(*theirs))
