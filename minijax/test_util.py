# Exported from notebooks/ref_debugging.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: looking into programs. Home: ref_debugging. In JAX: jax/_src/public_test_util.py.

Derivatives are checked by central differences, in the precision that the function has.
"""

from functools import partial

import numpy as np

from minijax.api import check_callable, jvp, linearize, vjp
from minijax.checkers import random_like
from minijax.tracebacks import api_boundary
from minijax.tree_util import tree_leaves, tree_map

__all__ = [
    "EPS", "TOLERANCES", "check_grads", "jvp_by_linearize", "pulled_back", "check_jvp", "check_vjp",
    "difference", "as_given", "inner_product", "check_close", "tolerance",
]


# --- Derivatives against differences --------------------------------------------------------------

EPS = 1e-4                        # the step, along a direction whose components are about 1
TOLERANCES = {"bfloat16": 1e-1, "float16": 1e-2, "float32": 2e-3, "float64": 1e-5,
              "complex64": 1e-3, "complex128": 1e-5}


@api_boundary
def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=None):
    """AssertionError if derivatives of f at args up to this order are not as differences say.

    `modes` are of "fwd", "rev" and "lin", the function that `linearize` returns. Tolerances are
    numbers, or dicts from dtypes to numbers, and grow with the size of what is compared.
    """
    check_callable(f)
    args = tuple(args)
    check = partial(check_grads, modes=modes, atol=atol, rtol=rtol, eps=eps)
    options = dict(atol=atol, rtol=rtol, eps=eps or EPS)
    for mode, f_jvp in ("fwd", partial(jvp, f)), ("lin", partial(jvp_by_linearize, f)):
        if mode in modes:
            check_jvp(f, f_jvp, args, **options, err_msg=mode)
            if order > 1:
                check(f_jvp, (args, args), order - 1)
    if "rev" in modes:
        check_vjp(f, partial(vjp, f), args, **options, err_msg="rev")
        if order > 1:
            check(partial(pulled_back, f), args, order - 1)


def jvp_by_linearize(f, primals, tangents):
    out, f_jvp = linearize(f, *primals)
    return out, f_jvp(*tangents)


def pulled_back(f, *args):
    """The cotangents of the arguments for the results as cotangents."""
    out, f_vjp = vjp(f, *args)
    return f_vjp(out)


@api_boundary
def check_jvp(f, f_jvp, args, atol=None, rtol=None, eps=EPS, err_msg=""):
    """AssertionError if f_jvp(args, tangents) is not (f(*args), its derivative)."""
    direction = tree_map(partial(random_like, np.random.RandomState(0)), args)
    out, tangent = f_jvp(args, direction)
    check_close(out, f(*args), atol, rtol, f"{err_msg} primal")
    check_close(tangent, difference(f, args, direction, eps), atol, rtol, f"{err_msg} tangent")


@api_boundary
def check_vjp(f, f_vjp, args, atol=None, rtol=None, eps=EPS, err_msg=""):
    """AssertionError if f_vjp(*args) is not (f(*args), its derivative's transpose)."""
    random = partial(random_like, np.random.RandomState(0))
    out, transpose = f_vjp(*args)
    check_close(out, f(*args), atol, rtol, f"{err_msg} primal")
    direction, cotangent = tree_map(random, args), tree_map(random, out)
    back = tree_map(np.conj, transpose(tree_map(lambda x: np.conj(x).astype(x.dtype), cotangent)))
    along = difference(f, args, direction, eps)
    check_close(inner_product(direction, back), inner_product(along, cotangent), atol, rtol,
                f"{err_msg} cotangent, in a random direction")


def difference(f, args, direction, eps):
    """(f(args + eps · direction) - f(args - eps · direction)) / 2 eps"""
    above, below = (f(*tree_map(lambda x, t: as_given(x, x + np.asarray(step, t.dtype) * t),
                                args, direction)) for step in (eps, -eps))
    return tree_map(lambda a, b: np.where(a == b, 0, a - b) * np.asarray(0.5 / eps, a.dtype),
                    tree_map(np.asarray, above), tree_map(np.asarray, below))


def as_given(x, value):
    """The value as a Python number if x is one."""
    return np.asarray(value).item() if isinstance(x, (float, complex)) else value


def inner_product(xs, ys):
    return sum([np.vdot(x, y).real for x, y in zip(tree_leaves(xs), tree_leaves(ys))])


def check_close(xs, ys, atol, rtol, name):
    def check_leaf(x, y):
        x, y = np.asarray(x), np.asarray(y)
        near = {k: max(tolerance(x.dtype, tol), tolerance(y.dtype, tol)) * x.size
                for k, tol in {"atol": atol, "rtol": rtol}.items()}
        wide = np.result_type(x.dtype, np.float32)
        np.testing.assert_allclose(x.astype(wide), y.astype(wide), **near, err_msg=name)
    tree_map(check_leaf, xs, ys)


def tolerance(dtype, given):
    """What is given for a dtype, or what is usual."""
    if given is None or isinstance(given, dict):
        given = {np.dtype(k).name: tol for k, tol in (given or {}).items()}
        return given.get(dtype.name, TOLERANCES.get(dtype.name, 0))
    return given
