"""Base programs, written once for JAX and minijax: each takes the library and a float32[3] vector."""
import numpy as np

MATRIX = np.arange(9, dtype=np.float32).reshape(3, 3) / 7 - 0.5


def polynomial(jax, x):
    return x * x * x - 2.0 * x + 1.0


def trigonometric(jax, x):
    np_ = jax.numpy
    return np_.sin(x) * np_.cos(2.0 * x) + np_.tanh(x)


def nested_calls(jax, x):
    inner = jax.jit(lambda y: jax.numpy.sin(y) * x)
    return inner(x) + jax.jit(lambda z: z * inner(z))(x + 1.0)


def mlp_loss(jax, x):
    np_ = jax.numpy
    hidden = np_.tanh(np_.dot(MATRIX, x) + 0.1)
    return np_.sum((np_.dot(hidden, MATRIX) - 1.0) ** 2)


def newton_sqrt(jax, x):
    a = x * x + 1.0
    y = a
    for _ in range(4):
        y = 0.5 * (y + a / y)
    return y


def softmax_rows(jax, x):
    np_ = jax.numpy
    logits = MATRIX * x
    shifted = np_.exp(logits - np_.max(logits, axis=1, keepdims=True))
    return shifted / np_.sum(shifted, axis=1, keepdims=True)


def indexing(jax, x):
    return x[::-1] * x[1] + x.at[np.array([0, 2])].add(x[0])


def selecting(jax, x):
    np_ = jax.numpy
    return np_.where(x > 0.5, np_.exp(x), x * x) + np_.maximum(x, 0.3)


def shapes(jax, x):
    np_ = jax.numpy
    grid = np_.concatenate([x[None, :], (x + 1.0)[None, :]]).reshape(3, 2).T
    return np_.sum(grid * np_.pad(x, (1, 1))[1:4], axis=0)


def closure_over_outer(jax, x):
    """A derivative inside, of a function that closes over the outer variable."""
    inner = lambda y: jax.numpy.sum(jax.numpy.sin(y) * x)
    return jax.grad(inner)(x * 0.5) * x


def batched_inside(jax, x):
    pair = jax.vmap(lambda row, y: jax.numpy.dot(row, x) * y, in_axes=(0, None))
    return pair(MATRIX, x[0])


def mixed_integers(jax, x):
    np_ = jax.numpy
    order = np_.arange(3)
    return np_.cumsum(x) * order + np_.sort(x) / (order + 1)


def scanning(jax, x):
    np_ = jax.numpy
    turn = lambda c, row: (np_.sin(c * row) + x, {"y": c * x[0], "row": row})
    c, ys = jax.lax.scan(turn, x * 0.5, MATRIX + x)
    back, _ = jax.lax.scan(lambda c, row: (0.5 * c + row, None), x, ys["y"], reverse=True)
    return c + back + np_.sum(ys["row"], axis=0)


def choosing(jax, x):
    lax, np_ = jax.lax, jax.numpy
    first = lax.cond(x[0] > 0.2, lambda y: np_.sin(y) * x, lambda y: y * y, x + 1.0)
    second = lax.switch(np_.int32(4.0 * x[1]), [np_.cos, lambda y: y * x[2], np_.tanh], first)
    return lax.fori_loop(0, 3, lambda i, c: c * second + i, first)


def scan_in_cond_in_scan(jax, x):
    lax, np_ = jax.lax, jax.numpy

    def inner(c):
        return lax.scan(lambda d, u: (d * u * 0.5 + c, d), c, x)[0]

    def turn(c, t):
        y = lax.cond(t > 0.5, inner, lambda c: c * t, c)
        return y, np_.sin(y)
    c, ys = lax.scan(turn, x[1], x, reverse=True)
    return ys + c


def while_in_scan_in_vmap(jax, x):
    """The loop counts how often x[0] goes into y: it has no derivative, what is done with it has."""
    lax = jax.lax

    def count(y):
        start = lax.stop_gradient(y), 0.0
        return lax.while_loop(lambda s: s[0] > 0.2, lambda s: (s[0] - 0.25, s[1] + 1.0), start)[1]

    def one(t):
        return lax.scan(lambda c, y: (c * t + count(y * t), None), t, x)[0]
    return jax.vmap(one)(x)


def cond_in_vmap_in_fori(jax, x):
    lax, np_ = jax.lax, jax.numpy
    pick = jax.vmap(lambda t: lax.cond(t > 0.5, lambda: np_.sqrt(t - 0.25), lambda: t * t * x[1]))
    return lax.fori_loop(0, 2, lambda i, c: pick(c) + 0.1 * x, x)


def switch_of_loops(jax, x):
    lax, np_ = jax.lax, jax.numpy
    sums = lax.associative_scan(lambda a, b: a * b + 0.1 * a, x)
    rows = lax.map(lambda t: lax.switch(np_.int32(3.0 * t), [
        lambda: lax.fori_loop(0, 2, lambda i, c: c * t, sums[0]), lambda: np_.exp(t) * x[0],
        lambda: t]), x)
    return rows * sums


def custom_rules(jax, x):
    """A rule that is not the derivative, also batched, beside the implicit derivative of a root."""
    np_ = jax.numpy
    f = jax.custom_jvp(lambda y, z: np_.sin(y) * z)
    f.defjvp(lambda p, t: (f(*p), 3.0 * np_.cos(p[0]) * t[0] * p[1] + 2.0 * np_.sin(p[0]) * t[1]))
    root = jax.lax.custom_root(lambda y: y * y - x, np_.ones_like(x), lambda g, y: np_.sqrt(x),
                               lambda g, y: y / g(np_.ones_like(y)))
    return f(x, root) + jax.vmap(f)(x, x)


PROGRAMS = [polynomial, trigonometric, nested_calls, mlp_loss, newton_sqrt, softmax_rows, indexing,
            selecting, shapes, closure_over_outer, batched_inside, mixed_integers,
            scanning, choosing, scan_in_cond_in_scan, while_in_scan_in_vmap, cond_in_vmap_in_fori,
            switch_of_loops, custom_rules]


# Each transformation takes a function of a vector to another one, in the library given.

def by_jvp(jax, f):
    return lambda x: jax.jvp(f, (x,), (jax.numpy.cos(x),))[1]


def by_grad(jax, f):
    return jax.grad(lambda x: jax.numpy.sum(f(x) * 0.5))


def by_vmap(jax, f):
    return lambda x: jax.vmap(f)(jax.numpy.stack([x, x * 0.5]))[1]


def by_jit(jax, f):
    return jax.jit(f)


def by_linearize(jax, f):
    return lambda x: jax.linearize(f, x)[1](jax.numpy.ones_like(x))


TRANSFORMATIONS = {"jvp": by_jvp, "grad": by_grad, "vmap": by_vmap, "jit": by_jit,
                   "linearize": by_linearize}


def transformed(jax, program, names):
    """The program under the named transformations, the first outermost."""
    f = lambda x: program(jax, x)
    for name in reversed(names):
        f = TRANSFORMATIONS[name](jax, f)
    return f
