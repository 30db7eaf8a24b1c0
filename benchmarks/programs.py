"""The programs.  Each is written once, as a function of a library; NumPy's gradients are by hand.

`build(lib)` makes the function that is timed, `inputs(rng, size)` its arguments as NumPy arrays.
`KINDS` are the kinds of rows that the summary takes together.
"""

from functools import partial
from typing import Callable, NamedTuple

import numpy as np

from benchmarks import handwritten

__all__ = ["Program", "PROGRAMS", "KINDS", "program", "builders", "lorenz"]

KINDS = ("elementwise", "reductions", "row-wise", "loops", "networks", "BLAS", "calls", "eager")


class Program(NamedTuple):
    """A row of the table; sizes are (full, small), the small one for tests and --quick.

    A row with `sweep` is also measured over many sizes: sweep(n) is the size of about n elements.
    """
    name: str
    kind: str
    build: Callable
    inputs: Callable
    sizes: tuple
    in_numpy: Callable = None           # build(lib) for NumPy; the same function where it can be
    in_numba: Callable = None           # the hand-written kernel, not yet compiled
    block_each: bool = True             # wait for each call; False: for the last of many
    sweep: Callable = None


PROGRAMS = []


def program(name, kind, inputs, sizes, in_numpy=None, in_numba=None, block_each=True, sweep=None):
    """Enter the decorated builder into the table; in_numpy="same" if NumPy can run it as it is."""
    def enter(build):
        PROGRAMS.append(Program(name, kind, build, inputs, sizes,
                                build if in_numpy == "same" else in_numpy, in_numba, block_each,
                                sweep))
        return build
    return enter


def itself(n):
    return n


def side(n):
    return max(2, round(n ** 0.5))


def builders(row):
    """{library's name: a function that makes the program anew}, as far as the row has them."""
    out = {"minijax": row.build, "jax": row.build}
    if row.in_numpy:
        out["numpy"] = row.in_numpy
    if row.in_numba:
        out["numba"] = lambda lib: handwritten.compiled(row.in_numba)
    return out


# --- Inputs ---------------------------------------------------------------------------------------

def normal(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def vector(rng, n):
    return (normal(rng, n),)


def square_matrix(rng, n):
    return (normal(rng, n, n),)


def two_matrices(rng, n):
    return normal(rng, n, n), normal(rng, n, n)


# --- Elementwise chains ---------------------------------------------------------------------------

ALPHA, SCALE = 1.6732632, 1.050701


def selu_of(xp, x):
    return SCALE * xp.where(x > 0, x, ALPHA * xp.expm1(xp.minimum(x, 0)))


@program("selu", "elementwise", vector, (1_000_000, 1000), "same", handwritten.selu, sweep=itself)
def selu(lib):
    return lib.jit(lambda x: selu_of(lib.np, x))


def selu_gradient_by_hand(lib):
    one = np.float32(SCALE)
    return lambda x: np.where(x > 0, one, one * np.float32(ALPHA) * np.exp(np.minimum(x, 0)))


@program("selu gradient", "elementwise", vector, (1_000_000, 1000), selu_gradient_by_hand,
         handwritten.selu_gradient, sweep=itself)
def selu_gradient(lib):
    return lib.jit(lib.grad(lambda x: selu_of(lib.np, x).sum()))


@program("x + x.T", "elementwise", square_matrix, (2000, 60), "same", handwritten.plus_transpose,
         sweep=side)
def plus_transpose(lib):
    return lib.jit(lambda x: x + x.T)


# --- Reductions and rows --------------------------------------------------------------------------

@program("sum", "reductions", square_matrix, (2000, 60), "same", handwritten.total, sweep=side)
def total(lib):
    return lib.jit(lambda x: lib.np.sum(x))


@program("column sums", "reductions", square_matrix, (2000, 60), "same", handwritten.column_sums,
         sweep=side)
def column_sums(lib):
    return lib.jit(lambda x: lib.np.sum(x, axis=0))


@program("softmax rows", "row-wise", square_matrix, (1000, 40), "same", handwritten.softmax_rows,
         sweep=side)
def softmax_rows(lib):
    def softmax(x):
        e = lib.np.exp(x - lib.np.max(x, axis=1, keepdims=True))
        return e / lib.np.sum(e, axis=1, keepdims=True)
    return lib.jit(softmax)


@program("layernorm", "row-wise", square_matrix, (1024, 40), "same", handwritten.layernorm,
         sweep=side)
def layernorm(lib):
    return lib.jit(lambda x: normalised(lib.np, x))


def normalised(xp, x):
    centred = x - xp.mean(x, axis=1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred ** 2, axis=1, keepdims=True) + 1e-5)


def layernorm_gradient_by_hand(lib):
    def gradient(x, ct):
        centred = x - np.mean(x, axis=1, keepdims=True)
        scale = 1 / np.sqrt(np.mean(centred ** 2, axis=1, keepdims=True) + np.float32(1e-5))
        y = centred * scale
        ct = ct - np.mean(ct, axis=1, keepdims=True) - y * np.mean(ct * y, axis=1, keepdims=True)
        return ct * scale
    return gradient


@program("layernorm gradient", "row-wise", two_matrices, (1024, 40), layernorm_gradient_by_hand,
         handwritten.layernorm_gradient, sweep=side)
def layernorm_gradient(lib):
    return lib.jit(lib.grad(lambda x, ct: lib.np.sum(normalised(lib.np, x) * ct)))


def softmax_by_hand(lib):
    def gradient(x):
        e = np.exp(x - x.max())
        return e / e.sum()
    return gradient


@program("logsumexp gradient", "row-wise", vector, (1_000_000, 1000), softmax_by_hand,
         handwritten.logsumexp_gradient, sweep=itself)
def logsumexp_gradient(lib):
    return lib.jit(lib.grad(lib.nn.logsumexp))


# --- Physics --------------------------------------------------------------------------------------

def bodies(rng, n):
    return normal(rng, n, 3), rng.uniform(0.5, 2, n).astype(np.float32)


@program("n-body forces", "elementwise", bodies, (2000, 50), "same", handwritten.forces)
def n_body(lib):
    def forces(position, mass):
        apart = position[None, :, :] - position[:, None, :]
        square = lib.np.sum(apart ** 2, axis=-1) + 0.01
        pull = mass[None, :] / (square * lib.np.sqrt(square))
        return lib.np.sum(pull[:, :, None] * apart, axis=1)
    return lib.jit(forces)


def lorenz_start(rng, size):
    return tuple(np.float32(v) for v in (1.0, 1.5, 20.0))


def lorenz_velocity(x, y, z):
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.6666667 * z


def runge_kutta_step(state, h):
    def moved(k, h):
        return tuple(s + h * v for s, v in zip(state, k))
    k1 = lorenz_velocity(*state)
    k2 = lorenz_velocity(*moved(k1, h / 2))
    k3 = lorenz_velocity(*moved(k2, h / 2))
    k4 = lorenz_velocity(*moved(k3, h))
    return tuple(s + h / 6 * (a + 2 * b + 2 * c + d)
                 for s, a, b, c, d in zip(state, k1, k2, k3, k4))


@program("Lorenz, 50 steps", "loops", lorenz_start, (3, 3), "same", handwritten.lorenz)
def lorenz(lib, steps=50):
    def walk(x, y, z):
        state = x, y, z
        for _ in range(steps):
            state = runge_kutta_step(state, 0.01)
        return state
    return lib.jit(walk)


# --- Loops that are data --------------------------------------------------------------------------

def lorenz_steps(rng, n):
    return (*lorenz_start(rng, 3), np.full(n, 0.01, np.float32))


def lorenz_path(lib):
    def walk(x, y, z, steps):
        def step(state, h):
            state = runge_kutta_step(state, h)
            return state, state
        return lib.lax.scan(step, (x, y, z), steps)[1]
    return walk


@program("Lorenz, scan", "loops", lorenz_steps, (10_000, 40), in_numba=handwritten.lorenz_path)
def lorenz_scan(lib):
    # the path is chaotic: libraries agree on its beginning
    return lib.jit(lambda *args: tuple(x[:200] for x in lorenz_path(lib)(*args)))


@program("Lorenz, scan, gradient", "loops", lorenz_steps, (1_000, 40))
def lorenz_gradient(lib):
    def far(*args):
        return sum(lib.np.sum(x[:200] ** 2) for x in lorenz_path(lib)(*args))
    return lib.jit(lib.grad(far, (0, 1, 2)))


def plane(rng, n):
    """The real and the imaginary parts of a grid of points."""
    return tuple(np.ascontiguousarray(a, np.float32) for a in
                 np.meshgrid(np.linspace(-2, 0.5, n), np.linspace(-1.2, 1.2, n)))


@program("Mandelbrot, while", "loops", plane, (300, 40), in_numba=handwritten.mandelbrot)
def mandelbrot(lib):
    def turns(a, b):
        def inside(state):
            x, y, n = state
            return (x * x + y * y < 4.0) & (n < 100)

        def turn(state):
            x, y, n = state
            return x * x - y * y + a, 2.0 * x * y + b, n + 1
        return lib.lax.while_loop(inside, turn, (0.0 * a, 0.0 * b, 0))[2]

    def mean_turns(a, b):
        # rounding decides when a point at the edge leaves, so libraries agree on the mean only
        return lib.np.mean(lib.vmap(lib.vmap(turns))(a, b), dtype=np.float32)
    return lib.jit(mean_turns)


def gated_network(rng, size):
    """Weights of a gated recurrent unit, a first state, and a sequence of inputs."""
    steps, batch, inputs, states = size
    weights = [normal(rng, m, states) * np.float32(0.1) for m in [inputs] * 3 + [states] * 3]
    return weights, normal(rng, batch, states), normal(rng, steps, batch, inputs)


def gated_loss(lib, weights, state, xs):
    wz, wr, wn, uz, ur, un = weights

    def step(h, x):
        z, r = lib.nn.sigmoid(x @ wz + h @ uz), lib.nn.sigmoid(x @ wr + h @ ur)
        h = (1.0 - z) * h + z * lib.np.tanh(x @ wn + (r * h) @ un)
        return h, h
    _, states = lib.lax.scan(step, state, xs)
    return lib.np.mean(states ** 2)


SMALL_GATED, GATED = (5, 2, 3, 4), (100, 16, 32, 64)


@program("GRU, 100 steps", "loops", gated_network, (GATED, SMALL_GATED))
def gated(lib):
    return lib.jit(partial(gated_loss, lib))


@program("GRU, 100 steps, gradient", "loops", gated_network, (GATED, SMALL_GATED))
def gated_gradient(lib):
    return lib.jit(lib.grad(partial(gated_loss, lib)))


def string(rng, n):
    """A pluck of a string of n points, and a number for each of n / 2 steps in time."""
    x = np.linspace(0, 1, n, dtype=np.float32)
    return np.exp(-100 * (x - np.float32(0.3)) ** 2), np.full(n // 2, 0.2, np.float32)


@program("wave equation, scan", "loops", string, (1_000, 40))
def wave(lib):
    def step(state, speed):
        u, before = state
        bend = lib.np.roll(u, 1) + lib.np.roll(u, -1) - 2.0 * u
        return (2.0 * u - before + speed * bend, u), u[0]

    def run(start, speeds):
        (u, _), heard = lib.lax.scan(step, (start, start), speeds)
        return u, heard
    return lib.jit(run)


# --- A network's training step --------------------------------------------------------------------

def network(rng, size):
    """Parameters, inputs and labels; size is (the layers' widths, the batch)."""
    widths, batch = size
    params = [(normal(rng, m, n) / np.float32(np.sqrt(m)), np.zeros(n, np.float32))
              for m, n in zip(widths, widths[1:])]
    labels = np.eye(widths[-1], dtype=np.float32)[rng.integers(0, widths[-1], batch)]
    if widths[-1] == 1:
        labels = normal(rng, batch, 1)
    return params, normal(rng, batch, widths[0]), labels


def step_by_hand(lib):
    """Backpropagation written out, for NumPy."""
    def step(params, x, y):
        layers = [x]
        for w, b in params[:-1]:
            layers.append(np.tanh(layers[-1] @ w + b))
        back = (layers[-1] @ params[-1][0] + params[-1][1] - y) * np.float32(2 / y.size)
        new = []
        for (w, b), h in zip(reversed(params), reversed(layers)):
            new.append((w - np.float32(0.1) * (h.T @ back), b - np.float32(0.1) * back.sum(0)))
            back = (back @ w.T) * (1 - h * h) if h is not x else None
        return new[::-1]
    return step


def mlp_loss(xp, params, x, y):
    *hidden, (w_last, b_last) = params
    for w, b in hidden:
        x = xp.tanh(x @ w + b)
    return xp.mean((x @ w_last + b_last - y) ** 2)


def mlp_step(lib):
    def step(params, x, y):
        gradient = lib.grad(partial(mlp_loss, lib.np))(params, x, y)
        return lib.map(lambda p, g: p - 0.1 * g, params, gradient)
    return lib.jit(step)


program("MLP step, small", "networks", network, (((2, 16, 16, 1), 32), ((2, 16, 16, 1), 32)),
        step_by_hand)(mlp_step)
program("MLP step, large", "BLAS", network, (((784, 1024, 1024, 10), 128), ((20, 32, 32, 10), 16)),
        step_by_hand)(mlp_step)


# --- Derivatives and products of matrices ---------------------------------------------------------

@program("Hessian", "elementwise", vector, (100, 12))
def hessian(lib):
    def rosenbrock(x):
        return lib.np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    return lib.jit(lib.hessian(rosenbrock))


def small_matrices(rng, n):
    return normal(rng, n, 8, 8), normal(rng, n, 8, 8)


@program("small matmuls", "BLAS", small_matrices, (1000, 20), "same", handwritten.small_matmuls)
def small_matmuls(lib):
    return lib.jit(lambda x, y: x @ y)


@program("matmul", "BLAS", two_matrices, (512, 40), "same")
def matmul(lib):
    return lib.jit(lambda x, y: x @ y)


# --- The price of a call --------------------------------------------------------------------------

def scalar(rng, size):
    return (np.float32(1.5),)


def twelve_leaves(rng, n):
    return ([{"w": normal(rng, n), "b": normal(rng, n)} for _ in range(6)],)


def short_vector(rng, n):
    return (normal(rng, n),)


@program("call, scalar", "calls", scalar, (1, 1), block_each=False)
def call_scalar(lib):
    return lib.jit(lambda x: x + 1)


@program("call, 12 leaves", "calls", twelve_leaves, (4, 4), block_each=False)
def call_tree(lib):
    return lib.jit(lambda tree: lib.map(lambda x: x + 1, tree))


@program("trace MLP gradient", "calls", network, (((2, 16, 16, 1), 32),) * 2, block_each=False)
def trace_mlp(lib):
    def trace(params, x, y):
        # a new function each time, or it would be found in a cache
        lib.trace(lib.grad(lambda *args: mlp_loss(lib.np, *args)))(params, x, y)
        return x
    return trace


@program("eager x + x", "eager", short_vector, (10, 10), "same", block_each=False)
def eager_add(lib):
    return lambda x: x + x


def three_operations(xp):
    return lambda x: xp.sum(xp.sin(x) * x)


@program("eager grad", "eager", short_vector, (10, 10), block_each=False)
def eager_grad(lib):
    return lib.grad(three_operations(lib.np))


@program("eager vmap", "eager", square_matrix, (10, 10), block_each=False)
def eager_vmap(lib):
    return lib.vmap(three_operations(lib.np))
