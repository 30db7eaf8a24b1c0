# Exported from notebooks/19_taylor.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: Taylor mode for users. Home: 19_taylor. In JAX: jax/experimental/jet.py."""

from math import factorial

import numpy as np

from minijax import dtypes
from minijax.api import check_callable
from minijax.avals import typeof
from minijax.core import unzip2
from minijax.flatten import FlatFunction, check_array, fun_name
from minijax.higher_order import jets  # gives programs their jet rules
from minijax.interpreters.jet import jet_flat, moves, scaled
from minijax.primitives.elementwise import convert_element_type
from minijax.rules import Zero, broadcast_to, full_like_aval, instantiate_zeros
from minijax.tracebacks import api_boundary
from minijax.tree_util import tree_structure, tree_unflatten, treedef_is_leaf

__all__ = ["jet", "check_leaf", "check_moves", "term_like", "array_of", "each_term"]


# --- What users call ------------------------------------------------------------------------------

@api_boundary
def jet(fun, primals, series, factorial_scaled=True, **_):
    """(fun(*primals), the series of the results along the curves that primals and series describe).

    `series[i]` lists the derivatives, of orders 1 to n, of argument i by the curve's parameter; a
    result has the list of its own n derivatives in its place. Without `factorial_scaled` they are
    Taylor coefficients: derivatives divided by k!. Raises ValueError for lists of different lengths
    and for pytrees, TypeError for integers and for terms unlike their primal.
    """
    check_callable(fun)
    orders = set(map(len, series))
    if len(orders) != 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    (order,) = orders
    primals, series = unzip2(zip(primals, series))
    for i, (x, terms) in enumerate(zip(primals, series)):
        check_leaf(x, f"primal value at position {i}")
        for j, t in enumerate(terms):
            check_leaf(t, f"term {j} for argument {i}")
        check_moves(x, i)
    terms = [[term_like(x, t) for t in ts] for x, ts in zip(primals, series)]
    if factorial_scaled:
        terms = each_term("div", terms)
    flat = FlatFunction(fun, tree_structure(tuple(primals)))
    flat.__name__ = fun_name(fun)
    outs, out_terms = jet_flat(flat, primals, terms, order)
    if factorial_scaled:
        out_terms = each_term("mul", out_terms)
    out_terms = [[array_of(t, x, factorial_scaled) for t in ts] for x, ts in zip(outs, out_terms)]
    return tree_unflatten(flat.out_tree, outs), tree_unflatten(flat.out_tree, out_terms)


def check_leaf(x, what):
    if not treedef_is_leaf(tree_structure(x)):
        raise ValueError(f"{what} is not an array")
    check_array(x, what)


def check_moves(x, i):
    if not dtypes.issubdtype(typeof(x).dtype, np.inexact):
        raise TypeError("jet follows floating-point and complex values along curves, and the "
                        f"primal value at position {i} is {typeof(x).str_short()}; write a float "
                        "such as 2.0, or close over the integer")


def term_like(x, t):
    """A term in its primal's shape and dtype; a plain 0 stays a symbol."""
    if type(t) in (int, float) and t == 0:
        return Zero.like(x)
    aval, got = typeof(x), typeof(t)
    if got.shape not in ((), aval.shape) or (got.dtype.kind == "c" and aval.dtype.kind != "c"):
        raise TypeError(f"a term of a series must be like its primal {aval.str_short()}, or a "
                        f"scalar; got {got.str_short()}")
    return broadcast_to(convert_element_type(t, aval.dtype, aval.weak_type), aval.shape)


def array_of(t, x, scaled):
    """A term of result x; integers, whose terms are 0, have integer ones if not scaled."""
    if moves(x):
        return instantiate_zeros(t)
    dtype = dtypes.canonicalize_dtype(float) if scaled else typeof(x).dtype
    return full_like_aval(typeof(x).update(dtype=dtype), 0)


def each_term(operation, series):
    """The terms of orders 1, 2, … multiplied or divided by 1!, 2!, …"""
    return [[scaled(operation, t, factorial(k)) for k, t in enumerate(terms, 1)]
            for terms in series]
