"""Programs inside programs: a holder runs a function of a vector inside a higher-order primitive.

A holder takes the library, the function and a float32[3] vector, and returns such a vector. Holders
differ in what they compute besides, so that one value taken for another shows.
"""
import numpy as np


def in_jit(lib, f, x):
    return lib.jit(lambda y: f(y) * 0.5)(x)


def in_cond(lib, f, x):
    return lib.lax.cond(x[0] > 0.1, lambda y: f(y) + x, lambda y: y * 2.0, x)


def in_switch(lib, f, x):
    index = lib.numpy.int32(x[1] + 1.0)
    return lib.lax.switch(index, [lambda y: y, f, lambda y: f(y) + 1.0, lambda y: -y], x)


def in_while(lib, f, x):
    turn = lambda s: (s[0] + 1.0, f(s[1]) * 0.75)
    return lib.lax.while_loop(lambda s: s[0] < 1.5 + x[0], turn, (lib.numpy.float32(0.0), x))[1]


def in_condition(lib, f, x):
    """The function decides how long the loop runs; the loop itself has no derivative."""
    ask = lambda s: (lib.numpy.sum(f(s[1])) < 9.0) & (s[0] < 3)
    n, y = lib.lax.while_loop(ask, lambda s: (s[0] + 1, s[1] * 1.5), (0, lib.lax.stop_gradient(x)))
    return x * n + y


def in_fori(lib, f, x):
    return lib.lax.fori_loop(0, 2, lambda i, c: f(c) * 0.5 + i * x, x)


def in_scan(lib, f, x):
    c, ys = lib.lax.scan(lambda c, r: (f(c) * r, c * r), x, x * 0.5 + 0.25, reverse=True)
    return c + lib.numpy.sum(ys, axis=0)


def in_map(lib, f, x):
    return lib.lax.map(lambda r: f(x * r)[2], x)


def in_vmap(lib, f, x):
    return lib.vmap(lambda r: f(x * r)[0])(x)


def in_grad(lib, f, x):
    return lib.grad(lambda y: lib.numpy.sum(f(y) * x))(x * 0.5)


def in_custom_jvp(lib, f, x):
    """Its rule is not the derivative, so that a derivative shows whether the rule was used."""
    g = lib.custom_jvp(lambda y, z: f(y) * z)

    @g.defjvp
    def rule(primals, tangents):
        (y, z), (dy, dz) = primals, tangents
        value, slope = lib.jvp(f, (y,), (dy,))
        return value * z, 1.5 * slope * z + value * dz
    return g(x, x * 0.5)


def in_custom_vjp(lib, f, x):
    g = lib.custom_vjp(f)
    g.defvjp(lambda y: (f(y), y), lambda y, ct: (2.0 * lib.vjp(f, y)[1](ct)[0],))
    return g(x)


def in_checkpoint(lib, f, x):
    return lib.checkpoint(lambda y: f(lib.numpy.sin(y)) * x)(x)


def in_custom_root(lib, f, x):
    residual = lambda y: y - 0.5 * f(x)
    return lib.lax.custom_root(residual, x, lambda g, y: y - g(y),
                               lambda g, y: y / g(lib.numpy.ones_like(y)))


def in_linear_solve(lib, f, x):
    scale = 1.5 + lib.numpy.sin(f(x))
    return lib.lax.custom_linear_solve(lambda y: y * scale, f(x + 0.5), lambda times, b:
                                       b / times(lib.numpy.ones_like(b)), symmetric=True)


def in_custom_vmap(lib, f, x):
    if lib.__name__ == "jax":           # whose custom_vmap has no reverse mode
        return f(x)
    g = lib.custom_batching.custom_vmap(f)
    g.def_vmap(lambda size, batched, y: (lib.vmap(f)(y), True))
    return g(x)


def in_pure_callback(lib, f, x):
    """Python code between two uses of the function; it has no derivative."""
    held = lib.lax.stop_gradient(f(x * 0.5))
    back = lib.pure_callback(lambda y: np.cos(y), lib.ShapeDtypeStruct((3,), np.float32), held,
                             vmap_method="expand_dims")
    return f(x) * back


def in_debug_callback(lib, f, x):
    lib.debug.callback(lambda y: None, f(x))
    return f(x * 1.25)


HOLDERS = {f.__name__[3:]: f for f in [
    in_jit, in_cond, in_switch, in_while, in_condition, in_fori, in_scan, in_map, in_vmap, in_grad,
    in_custom_jvp, in_custom_vjp, in_checkpoint, in_custom_root, in_linear_solve, in_custom_vmap,
    in_pure_callback, in_debug_callback]}

# These may not close over values that are differentiated or batched.
CLOSED = {"custom_jvp", "custom_vjp", "custom_vmap"}


def nested(*names):
    """A program of library and vector: a function inside the named holders, the first outermost."""
    def program(lib, x):
        outer = 0.5 if CLOSED & {*names} else x
        f = lambda y: lib.numpy.sin(y) * outer + y[0] * 0.25
        for name in reversed(names):
            f = held(lib, HOLDERS[name], f)
        return f(x)
    return program


def held(lib, holder, f):
    return lambda x: holder(lib, f, x)
