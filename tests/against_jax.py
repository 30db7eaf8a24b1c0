"""One sample of a primitive compared with the same primitive of the installed JAX."""
import itertools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from jax import lax

from minijax import dtypes
from minijax.avals import typeof
from minijax.core import primitives
from minijax.interpreters.jvp import jvp_flat
from minijax.rules import AxisData, UndefinedPrimal, Zero, instantiate_zeros

# params that JAX's primitives have and ours don't, at their usual values
JAX_ONLY = {
    "broadcast_in_dim": dict(sharding=None), "reshape": dict(sharding=None),
    "iota": dict(sharding=None), "dot_general": dict(out_sharding=None),
}


def jax_param(value):
    """Our enums and dimension numbers as JAX's of the same name."""
    theirs = getattr(lax, type(value).__name__, None)
    if type(value) is tuple:
        return tuple(map(jax_param, value))
    if theirs is None:
        return value
    return theirs(*value) if isinstance(value, tuple) else theirs[value.name]


def jax_bind(name, *args, **params):
    params = {k: jax_param(v) for k, v in params.items()} | JAX_ONLY.get(name, {})
    name = name.replace("-", "_")
    if name.startswith("scatter"):      # the function passes the primitive a jaxpr of the addition
        return getattr(lax, name)(*args, **params)
    return getattr(lax, name + "_p").bind(*args, **params)


def as_list(name, out):
    return list(out) if primitives[name].multiple_results else [out]


def bind(name, args, params):
    return as_list(name, primitives[name].bind(*args, **params))


def is_float(x):
    return np.issubdtype(np.asarray(x).dtype, np.inexact)


def assert_same(ours, theirs, exact=True):
    """Same shape, dtype and values; `exact` may be a tolerance instead of True."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (ours, theirs)
    if ours.dtype == dtypes.float0:
        return
    tolerance = 0 if exact is True else exact
    wide = np.result_type(ours.dtype, np.float32) if ours.dtype.kind not in "biufc" else ours.dtype
    np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), tolerance, tolerance)


def check_value(name, args, params, exact=True):
    """Same values, shapes and dtypes, and what abstract_eval says."""
    outs = bind(name, args, params)
    theirs = as_list(name, jax_bind(name, *args, **params))
    avals = as_list(name, primitives[name].rules["abstract_eval"](*map(typeof, args), **params))
    for out, their, aval in zip(outs, theirs, avals, strict=True):
        assert_same(out, their, exact)
        assert typeof(out) == aval


def tangent_like(x, seed):
    if not is_float(x):
        return np.zeros(np.shape(x), dtypes.float0)
    return np.random.default_rng(seed).normal(size=np.shape(x)).astype(x.dtype)


def check_jvp(name, args, params, exact=True, jax_args=None):
    """All tangents at once, and each alone with the others symbolic zeros."""
    floats = [i for i, x in enumerate(args) if is_float(x)]
    for moving in [floats, *([i] for i in floats if len(floats) > 1)]:
        tangents = [tangent_like(x, 5 + i) if i in moving else np.zeros_like(x)
                    if is_float(x) else tangent_like(x, 0) for i, x in enumerate(args)]
        ours = [t if i in moving else Zero.like(x) for i, (x, t) in enumerate(zip(args, tangents))]
        _, outs = jvp_flat(lambda *xs: bind(name, xs, params), args, ours)
        _, theirs = jax.jvp(lambda *xs: jax_bind(name, *xs, **params), jax_args or args,
                            tuple(tangents))
        for out, their in zip(outs, as_list(name, theirs), strict=True):
            assert_same(instantiate_zeros(out), their, exact)


def check_transpose(name, args, params, chosen, exact=True):
    """The cotangents of the operands `chosen`, as if the others were known."""
    def f(*moving):
        full = list(args)
        for i, x in zip(chosen, moving):
            full[i] = x
        return jax_bind(name, *full, **params)

    moving = [args[i] for i in chosen]
    outs = as_list(name, jax.eval_shape(f, *moving))
    cts = [tangent_like(np.zeros(o.shape, o.dtype), 7 + i) for i, o in enumerate(outs)]
    ct = cts if primitives[name].multiple_results else cts[0]
    operands = [UndefinedPrimal(typeof(x)) if i in chosen else x for i, x in enumerate(args)]
    found = primitives[name].rules["transpose"](ct, *operands, **params)
    for i, their in zip(chosen, jax.linear_transpose(f, *moving)(ct), strict=True):
        assert_same(instantiate_zeros(found[i]), their, exact)


def check_batch(name, args, params, exact=True, size=3):
    """Every choice of batched operands and of two places of the batch axis, against a loop."""
    choices = [(None, 0, np.ndim(x)) if np.ndim(x) else (None, 0) for x in args]
    for dims in itertools.product(*choices):
        if all(d is None for d in dims):
            continue
        vals = [x if d is None else np.stack([other(x, i) for i in range(size)], d)
                for x, d in zip(args, dims)]
        outs, out_dims = primitives[name].rules["batch"](AxisData(size), vals, dims, **params)
        if not primitives[name].multiple_results:
            outs, out_dims = [outs], [out_dims]
        rows = [bind(name, [x if d is None else other(x, i) for x, d in zip(args, dims)], params)
                for i in range(size)]
        for k, (out, dim) in enumerate(zip(outs, out_dims, strict=True)):
            out = np.asarray(out)
            out = np.stack([out] * size) if dim is None else np.moveaxis(out, dim, 0)
            assert_same(out, np.stack([np.asarray(row[k]) for row in rows]), exact)


def other(x, i):
    """A different array of the same type for each example."""
    x = np.asarray(x)
    return x if x.dtype == bool else (x + np.asarray(i, x.dtype)).astype(x.dtype)
