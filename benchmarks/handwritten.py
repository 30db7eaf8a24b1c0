"""Some of the programs as one would write them for Numba by hand: plain loops, one thread."""

import numpy as np
from numba import njit

__all__ = ["compiled", "selu", "selu_gradient", "plus_transpose", "total", "column_sums",
           "softmax_rows", "layernorm", "layernorm_gradient", "logsumexp_gradient", "forces",
           "lorenz", "velocity", "lorenz_path", "mandelbrot", "small_matmuls"]

ALPHA, SCALE = np.float32(1.6732632), np.float32(1.050701)
ZERO, ONE = np.float32(0), np.float32(1)


def compiled(kernel):
    """A fresh compiled function, so that its first call is one."""
    return njit(error_model="numpy")(kernel)


def selu(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = SCALE * (x[i] if x[i] > ZERO else ALPHA * np.expm1(x[i]))
    return out


def selu_gradient(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = SCALE if x[i] > ZERO else SCALE * ALPHA * np.exp(x[i])
    return out


def plus_transpose(x):
    """In blocks of 32×32, so that both the rows and the columns stay in the cache."""
    n, out = x.shape[0], np.empty_like(x)
    for top in range(0, n, 32):
        for left in range(0, n, 32):
            for i in range(top, min(top + 32, n)):
                for j in range(left, min(left + 32, n)):
                    out[i, j] = x[i, j] + x[j, i]
    return out


def total(x):
    """Eight sums side by side, which the compiler may turn into vectors."""
    flat, lanes = x.reshape(-1), np.zeros(8, np.float32)
    whole = flat.size // 8 * 8
    for i in range(0, whole, 8):
        for k in range(8):
            lanes[k] += flat[i + k]
    out = ZERO
    for k in range(8):
        out += lanes[k]
    for i in range(whole, flat.size):
        out += flat[i]
    return out


def column_sums(x):
    out = np.zeros(x.shape[1], x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]
    return out


def softmax_rows(x):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = ZERO
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


def layernorm(x):
    out, n = np.empty_like(x), np.float32(x.shape[1])
    for i in range(x.shape[0]):
        mean, square = ZERO, ZERO
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean /= n
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) ** 2
        scale = ONE / np.sqrt(square / n + np.float32(1e-5))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * scale
    return out


def layernorm_gradient(x, ct):
    out, n = np.empty_like(x), np.float32(x.shape[1])
    for i in range(x.shape[0]):
        mean, square, total, along = ZERO, ZERO, ZERO, ZERO
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean /= n
        for j in range(x.shape[1]):
            centred = x[i, j] - mean
            square += centred * centred
            total += ct[i, j]
            along += ct[i, j] * centred
        scale = ONE / np.sqrt(square / n + np.float32(1e-5))
        total, along = total / n, along / n * scale * scale
        for j in range(x.shape[1]):
            out[i, j] = (ct[i, j] - total - (x[i, j] - mean) * along) * scale
    return out


def logsumexp_gradient(x):
    out, top, total = np.empty_like(x), x[0], ZERO
    for i in range(x.size):
        top = max(top, x[i])
    for i in range(x.size):
        out[i] = np.exp(x[i] - top)
        total += out[i]
    for i in range(x.size):
        out[i] /= total
    return out


def forces(position, mass):
    n, out = len(mass), np.zeros_like(position)
    for i in range(n):
        fx, fy, fz = ZERO, ZERO, ZERO
        for j in range(n):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            square = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            pull = mass[j] / (square * np.sqrt(square))
            fx, fy, fz = fx + pull * dx, fy + pull * dy, fz + pull * dz
        out[i, 0], out[i, 1], out[i, 2] = fx, fy, fz
    return out


def lorenz(x, y, z):
    h = np.float32(0.01)
    state, k, moved = np.empty(3, np.float32), np.empty((4, 3), np.float32), np.empty(3, np.float32)
    state[0], state[1], state[2] = x, y, z
    for _ in range(50):
        for stage in range(4):
            reach = ZERO if stage == 0 else h if stage == 3 else h / np.float32(2)
            for i in range(3):
                moved[i] = state[i] + reach * k[stage - 1, i] if stage else state[i]
            k[stage, 0] = np.float32(10) * (moved[1] - moved[0])
            k[stage, 1] = moved[0] * (np.float32(28) - moved[2]) - moved[1]
            k[stage, 2] = moved[0] * moved[1] - np.float32(2.6666667) * moved[2]
        for i in range(3):
            middle = np.float32(2) * (k[1, i] + k[2, i])
            state[i] += h / np.float32(6) * (k[0, i] + middle + k[3, i])
    return state[0], state[1], state[2]


@njit
def velocity(x, y, z):
    return (np.float32(10) * (y - x), x * (np.float32(28) - z) - y,
            x * y - np.float32(2.6666667) * z)


def lorenz_path(x, y, z, steps):
    n = len(steps)
    xs, ys, zs = (np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.float32))
    for i in range(n):
        h = steps[i]
        half, sixth, two = h / np.float32(2), h / np.float32(6), np.float32(2)
        ax, ay, az = velocity(x, y, z)
        bx, by, bz = velocity(x + half * ax, y + half * ay, z + half * az)
        cx, cy, cz = velocity(x + half * bx, y + half * by, z + half * bz)
        dx, dy, dz = velocity(x + h * cx, y + h * cy, z + h * cz)
        x += sixth * (ax + two * bx + two * cx + dx)
        y += sixth * (ay + two * by + two * cy + dy)
        z += sixth * (az + two * bz + two * cz + dz)
        xs[i], ys[i], zs[i] = x, y, z
    return xs[:200], ys[:200], zs[:200]


def mandelbrot(a, b):
    total = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            x, y, n = ZERO, ZERO, 0
            while x * x + y * y < np.float32(4) and n < 100:
                x, y, n = x * x - y * y + a[i, j], np.float32(2) * x * y + b[i, j], n + 1
            total += n
    return np.float32(total / a.size)


def small_matmuls(x, y):
    n, m, inner, p = x.shape[0], x.shape[1], x.shape[2], y.shape[2]
    out = np.zeros((n, m, p), x.dtype)
    for b in range(n):
        for i in range(m):
            for k in range(inner):
                for j in range(p):
                    out[b, i, j] += x[b, i, k] * y[b, k, j]
    return out
