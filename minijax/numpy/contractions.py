# Exported from notebooks/ref_numpy_arrays.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_numpy_arrays. In JAX: jax/_src/numpy/{tensor_contractions,einsum}.py.

Products that sum: all of them name the axes of two arrays by letters, and `contract` turns names
into one dot_general. einsum is the same for any number of operands, two at a time.
"""

import operator
import string
from collections import Counter
from functools import reduce

import numpy as np

from minijax import dtypes, lax
from minijax.core import concrete_or_error
from minijax.numpy.creation import asarray, diagonal
from minijax.numpy.manipulation import atleast_2d, concatenate, moveaxis, ravel, squeeze
from minijax.numpy.promotion import (
    check_arraylike, convert, ensure_arraylike, promote_args_inexact, promote_dtypes,
    promote_dtypes_inexact,
)
from minijax.numpy.reductions import average, sum as reduce_sum
from minijax.numpy.ufuncs import clip, conjugate, imag, multiply, real, sqrt
from minijax.primitives.structural import canonicalize_axis

__all__ = [
    "result_of", "contract", "drop_units", "without", "sum_others", "check_sizes", "arrange", "dot",
    "matmul", "check_batch_sizes", "vdot", "conjugate_if_complex", "inner", "outer", "tensordot",
    "paired_axes", "vecdot", "matvec", "vecmat", "kron", "cross", "components", "trace", "cov",
    "variables", "observation_weights", "corrcoef", "einsum", "with_text", "parse_subscripts",
    "expand_ellipsis", "names_of", "check_name_sizes", "contraction_path", "einsum_path",
    "contract_all", "contract_some", "on_diagonals", "convert_for_sum",
]


# --- Result types ---------------------------------------------------------------------------------

def result_of(name, operands, preferred_element_type):
    """(dtype, weak_type) of a product: the promoted one of its operands, or what was asked for."""
    if preferred_element_type is None:
        return dtypes.result_type(*operands, return_weak_type_flag=True)
    return dtypes.check_and_canonicalize_user_dtype(preferred_element_type, name), False


# --- Two operands with named axes -----------------------------------------------------------------

def contract(a, a_names, b, b_names, out_names, dtype, precision=None):
    """Σ a[a_names] b[b_names] over the names not in out_names; axes of size 1 broadcast.

    Names are hashable and not repeated in one operand; every name of out_names is in an operand.
    """
    a, a_names, b, b_names = drop_units(a, a_names, b, b_names)
    a, a_names = sum_others(a, a_names, {*b_names, *out_names})
    b, b_names = sum_others(b, b_names, {*a_names, *out_names})
    shared = [n for n in a_names if n in b_names]
    batch = [n for n in shared if n in out_names]
    summed = [n for n in shared if n not in out_names]
    places = lambda names, wanted: tuple(names.index(n) for n in wanted)
    check_sizes(a, a_names, b, b_names)
    out = lax.dot_general(a, b, ((places(a_names, summed), places(b_names, summed)),
                                 (places(a_names, batch), places(b_names, batch))),
                          precision=precision, preferred_element_type=dtype)
    names = batch + [n for n in (*a_names, *b_names) if n not in shared]
    return arrange(out, names, out_names)


def drop_units(a, a_names, b, b_names):
    """Both operands without axes of size 1 that face a longer axis of the other."""
    a_sizes, b_sizes = dict(zip(a_names, a.shape)), dict(zip(b_names, b.shape))
    a_dropped = [n for n in a_names if a_sizes[n] == 1 != b_sizes.get(n, 1)]
    b_dropped = [n for n in b_names if b_sizes[n] == 1 != a_sizes.get(n, 1)]
    return *without(a, a_names, a_dropped), *without(b, b_names, b_dropped)


def without(x, names, dropped):
    axes = [names.index(n) for n in dropped]
    return lax.squeeze(x, axes) if axes else x, [n for n in names if n not in dropped]


def sum_others(x, names, needed):
    """`x` summed over the axes that nothing else needs."""
    axes = tuple(i for i, n in enumerate(names) if n not in needed)
    if not axes:
        return x, list(names)
    # Products of bools are bools: there, "sum" means "or".
    summed = lax.reduce_or(x, axes) if x.dtype == bool else lax.reduce_sum(x, axes)
    return summed, [n for n in names if n in needed]


def check_sizes(a, a_names, b, b_names):
    for n in a_names:
        if n in b_names and a.shape[a_names.index(n)] != b.shape[b_names.index(n)]:
            raise TypeError(f"sizes of contracted or batch axes differ: {a.shape} and {b.shape}, "
                            f"with axes named {''.join(map(str, a_names))} and "
                            f"{''.join(map(str, b_names))}")


def arrange(x, names, wanted):
    """Axes named `names` in the order `wanted`, which may leave out none; missing ones get size
    1."""
    x = lax.transpose(x, [names.index(n) for n in wanted if n in names])
    missing = [i for i, n in enumerate(wanted) if n not in names]
    return lax.expand_dims(x, missing) if missing else x


# --- Products of vectors and matrices -------------------------------------------------------------

def dot(a, b, *, precision=None, preferred_element_type=None):
    """Sum over the last axis of `a` and the second to last of `b` (its only one, for a vector)."""
    a, b = ensure_arraylike("dot", a, b)
    dtype, weak = result_of("dot", (a, b), preferred_element_type)
    axes = ((), ()) if not a.ndim or not b.ndim else ((a.ndim - 1,), (max(b.ndim - 2, 0),))
    out = lax.dot_general(a, b, (axes, ((), ())), precision=precision, preferred_element_type=dtype)
    return convert(out, dtype, weak)


def matmul(a, b, *, precision=None, preferred_element_type=None):
    """Products of matrices in the last two axes; the axes before broadcast. Vectors lose their
    axis."""
    a, b = ensure_arraylike("matmul", a, b)
    for i, x in enumerate((a, b)):
        if x.ndim < 1:
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim "
                             "0")
    dtype, weak = result_of("matmul", (a, b), preferred_element_type)
    if a.ndim <= 2 and b.ndim <= 2:
        numbers = (((a.ndim - 1,), (0,)), ((), ()))
        out = lax.dot_general(a, b, numbers, precision=precision, preferred_element_type=dtype)
        return convert(out, dtype, weak)
    batch = list(range(max(a.ndim, b.ndim) - 2))
    check_batch_sizes(a, b)
    row = ["row"] if a.ndim > 1 else []
    column = ["column"] if b.ndim > 1 else []
    a_names = [*batch[len(batch) - max(a.ndim - 2, 0):], *row, "inner"]
    b_names = [*batch[len(batch) - max(b.ndim - 2, 0):], "inner", *column]
    if a.shape[-1] != b.shape[b_names.index("inner")]:
        raise TypeError(f"matmul: inner sizes differ in shapes {a.shape} and {b.shape}")
    out = contract(a, a_names, b, b_names, [*batch, *row, *column], dtype, precision)
    return convert(out, dtype, weak)


def check_batch_sizes(a, b):
    try:
        lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError("Incompatible types for matmul arguments: "
                         f"{a.aval.str_short()} and {b.aval.str_short()}") from None


def vdot(a, b, *, precision=None, preferred_element_type=None):
    """Σ conj(a) b over all elements."""
    a, b = ensure_arraylike("vdot", a, b)
    return dot(ravel(conjugate_if_complex(a)), ravel(b), precision=precision,
               preferred_element_type=preferred_element_type)


def conjugate_if_complex(x):
    return conjugate(x) if dtypes.issubdtype(x.dtype, np.complexfloating) else x


def inner(a, b, *, precision=None, preferred_element_type=None):
    """Sum over the last axes of both."""
    a, b = ensure_arraylike("inner", a, b)
    if not a.ndim or not b.ndim:
        if preferred_element_type is not None:
            a, b = convert(a, preferred_element_type), convert(b, preferred_element_type)
        return multiply(a, b)
    return tensordot(a, b, (-1, -1), precision=precision,
                     preferred_element_type=preferred_element_type)


def outer(a, b, out=None):
    """The matrix of products a[i] b[j] of the flat arrays."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.outer is not supported.")
    a, b = promote_dtypes(*ensure_arraylike("outer", a, b))
    return multiply(lax.expand_dims(ravel(a), (1,)), lax.expand_dims(ravel(b), (0,)))


def tensordot(a, b, axes=2, *, precision=None, preferred_element_type=None):
    """Sum over pairs of axes: the last `axes` of `a` and first of `b`, or as two lists of axes
    say."""
    a, b = ensure_arraylike("tensordot", a, b)
    dtype, weak = result_of("tensordot", (a, b), preferred_element_type)
    out = lax.dot_general(a, b, (paired_axes(a, b, axes), ((), ())), precision=precision,
                          preferred_element_type=dtype)
    return convert(out, dtype, weak)


def paired_axes(a, b, axes):
    if isinstance(axes, (int, np.integer)):
        if axes > min(a.ndim, b.ndim):
            raise TypeError(f"Number of tensordot axes (axes {axes}) exceeds input ranks "
                            f"({a.shape} and {b.shape})")
        return tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of "
                        "lists/tuples of ints.")
    first, second = (x if isinstance(x, (tuple, list)) else [x] for x in axes)
    if isinstance(axes[0], int) != isinstance(axes[1], int) or len(first) != len(second):
        raise TypeError("tensordot requires axes lists to have equal length, got "
                        f"{axes[0]} and {axes[1]}.")
    return (tuple(canonicalize_axis(i, a.ndim) for i in first),
            tuple(canonicalize_axis(i, b.ndim) for i in second))


def vecdot(x1, x2, /, *, axis=-1, precision=None, preferred_element_type=None):
    """Σ conj(x1) x2 along one axis, the others broadcast."""
    x1, x2 = ensure_arraylike("vecdot", x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"axes must match; got shapes {x1.shape} and {x2.shape} with axis={axis}")
    return einsum("...n,...n->...", moveaxis(conjugate_if_complex(x1), axis, -1),
                  moveaxis(x2, axis, -1), precision=precision,
                  preferred_element_type=preferred_element_type)


def matvec(x1, x2, /):
    """Products of matrices x1 and vectors x2, the other axes broadcast."""
    x1, x2 = ensure_arraylike("matvec", x1, x2)
    return einsum("...nm,...m->...n", x1, x2)


def vecmat(x1, x2, /):
    """Products of conjugate vectors x1 and matrices x2, the other axes broadcast."""
    x1, x2 = ensure_arraylike("vecmat", x1, x2)
    return einsum("...n,...nm->...m", conjugate_if_complex(x1), x2)


def kron(a, b):
    """The Kronecker product: every element of `a` times the whole of `b`, laid out as blocks."""
    a, b = promote_dtypes(*ensure_arraylike("kron", a, b))
    ndim = max(a.ndim, b.ndim)
    a, b = (lax.expand_dims(x, range(ndim - x.ndim)) for x in (a, b))
    product = multiply(lax.expand_dims(a, range(1, 2 * ndim, 2)),
                       lax.expand_dims(b, range(0, 2 * ndim, 2)))
    return lax.reshape(product, [n * m for n, m in zip(a.shape, b.shape)])


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross product of vectors with 3 components (or 2, the third being 0) along an axis."""
    a, b = ensure_arraylike("cross", a, b)
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    (a0, a1, *a2), (b0, b1, *b2) = components(a), components(b)
    if not a2 and not b2:
        return a0 * b1 - a1 * b0
    a2, b2 = a2[0] if a2 else lax.full_like(a0, 0), b2[0] if b2 else lax.full_like(b0, 0)
    parts = promote_dtypes(a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)
    stacked = lax.concatenate([lax.expand_dims(p, (p.ndim,)) for p in parts], parts[0].ndim)
    return moveaxis(stacked, -1, axisc)


def components(x):
    return [lax.index_in_dim(x, i, x.ndim - 1, keepdims=False) for i in range(x.shape[-1])]


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum of a diagonal of the matrices in axes axis1 and axis2."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.trace is not supported.")
    a = ensure_arraylike("trace", a)
    if canonicalize_axis(axis1, a.ndim) == canonicalize_axis(axis2, a.ndim):
        raise ValueError(f"axis1 and axis2 can not be same. axis1={axis1} and axis2={axis2}")
    offset = concrete_or_error(operator.index, offset, "'offset' argument of jnp.trace()")
    return reduce_sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


# --- Covariance -----------------------------------------------------------------------------------

def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    """The covariance matrix of variables, which are rows of `m` and of `y` (columns if not rowvar).

    Divides by n - ddof, ddof being 1, or 0 if `bias`. fweights are integer counts of observations,
    aweights their relative importance.
    """
    arrays = promote_args_inexact("cov", m) if y is None else promote_dtypes_inexact(
        *ensure_arraylike("cov", m, y))
    x = concatenate([variables(a, rowvar) for a in arrays])
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights, divisor = observation_weights(x.shape[1], ddof, fweights, aweights)
    x = x - lax.expand_dims(average(x, axis=1, weights=weights), (1,))
    weighted = x if weights is None else x * weights
    return squeeze(dot(x, conjugate(weighted).T) / divisor)


def variables(m, rowvar):
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    x = atleast_2d(m)
    return x if rowvar or x.shape[0] == 1 else x.T


def observation_weights(n, ddof, fweights, aweights):
    """(weights or None, what to divide the sum of products by)"""
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None and np.shape(w) != (n,):
            raise ValueError(f"{name} must be a vector with one weight an observation, got shape "
                             f"{np.shape(w)}")
    if fweights is not None and not dtypes.issubdtype(dtypes.dtype(fweights), np.integer):
        raise TypeError("fweights must be integer.")
    given = [asarray(w) for w in (fweights, aweights) if w is not None]
    if not given:
        return None, n - ddof
    weights = reduce(multiply, given)
    total = reduce_sum(weights)
    if ddof == 0:
        return weights, total
    if aweights is None:
        return weights, total - ddof
    return weights, total - ddof * reduce_sum(weights * given[-1]) / total


def corrcoef(x, y=None, rowvar=True):
    """The matrix of correlation coefficients of variables; see `cov`."""
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    deviation = sqrt(real(diagonal(c)))
    c = c / lax.expand_dims(deviation, (1,)) / lax.expand_dims(deviation, (0,))
    if dtypes.issubdtype(c.dtype, np.complexfloating):
        return lax.complex(clip(real(c), -1, 1), clip(imag(c), -1, 1))
    return clip(c, -1, 1)


# --- Einstein's notation --------------------------------------------------------------------------

def einsum(subscripts, /, *operands, out=None, optimize="auto", precision=None,
           preferred_element_type=None):
    """Name the axes of arrays by letters; multiply, and sum over the letters that the result lacks.

    'ij,jk->ik' is the matrix product; without '->' the result has the letters that occur once, in
    alphabetical order; '...' stands for axes that broadcast. Operands may also alternate with lists
    of numbers as names. `optimize` is a strategy of `np.einsum_path`, a path, or False: left to
    right.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    subscripts, operands = with_text(subscripts, operands)
    check_arraylike("einsum", *operands)
    operands = [asarray(x) for x in operands]
    names, out_names = parse_subscripts(subscripts, [x.ndim for x in operands])
    check_name_sizes(names, operands)
    dtype, weak = result_of("einsum", operands, preferred_element_type)
    path = contraction_path(subscripts, operands, optimize)
    return convert(contract_all(operands, names, out_names, path, dtype, precision), dtype, weak)


def with_text(subscripts, operands):
    """Subscripts as a text: einsum(x, [0, 1], y, [1, 2], [0, 2]) spells names as numbers."""
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), operands
    flat = (subscripts, *operands)
    spell = lambda s: "".join("..." if i is Ellipsis else string.ascii_letters[i] for i in s)
    n = len(flat) // 2
    text = ",".join(spell(s) for s in flat[1:2 * n:2])
    return text + (f"->{spell(flat[-1])}" if len(flat) % 2 else ""), flat[:2 * n:2]


def parse_subscripts(subscripts, ranks):
    """Lists of names of axes, one for each operand, and the names of the result's axes."""
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum: {subscripts!r} names {len(terms)} operands, got {len(ranks)}")
    if set(subscripts) - set(string.ascii_letters + ".,->"):
        raise ValueError(f"einsum: invalid characters in {subscripts!r}")
    width = max([rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks) if "..." in t],
                default=0)
    names = [names_of(t, rank, subscripts) for t, rank in zip(terms, ranks)]
    ellipsis = list(range(-width, 0))
    if not arrow:
        counts = Counter(c for t in terms for c in t.replace("...", ""))
        return names, [*ellipsis, *sorted(c for c in counts if counts[c] == 1)]
    out_names = expand_ellipsis(output, ellipsis)
    known = {n for term in names for n in term}
    if not set(out_names) <= known or len(set(out_names)) != len(out_names):
        raise ValueError(f"einsum: output of {subscripts!r} repeats a name or has one that no "
                         "operand has")
    return names, out_names


def expand_ellipsis(term, ellipsis):
    before, dots, after = term.partition("...")
    return [*before, *(ellipsis if dots else []), *after]


def names_of(term, rank, subscripts):
    count = rank - len(term.replace("...", ""))
    if count < 0 or count and "..." not in term:
        raise ValueError(f"einsum: {term!r} in {subscripts!r} does not fit an operand with {rank} "
                         "axes")
    # The axes of an ellipsis are numbered from behind: -1 is the last one in every operand.
    return expand_ellipsis(term, list(range(-count, 0)))


def check_name_sizes(names, operands):
    sizes = {}
    for term, x in zip(names, operands):
        for name, n in zip(term, x.shape):
            if 1 not in (n, sizes.setdefault(name, n)) and n != sizes[name]:
                raise ValueError(f"einsum: axis {name!r} has sizes {sizes[name]} and {n}")
            sizes[name] = max(n, sizes[name])


def contraction_path(subscripts, operands, optimize):
    """Which operands to combine next, as np.einsum_path gives it."""
    if len(operands) <= 2 or optimize is False:
        return [tuple(range(min(2, len(operands))))] * max(1, len(operands) - 1)
    if optimize in (True, "auto"):
        optimize = "optimal" if len(operands) <= 5 else "greedy"
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] != "einsum_path":
        optimize = ["einsum_path", *optimize]
    stand_ins = [np.broadcast_to(np.float32(0), x.shape) for x in operands]
    return np.einsum_path(subscripts, *stand_ins, optimize=optimize)[0][1:]


def einsum_path(subscripts, /, *operands, optimize="auto"):
    """The order in which `einsum` would combine its operands, and a report about its cost."""
    optimize = "optimal" if optimize in (True, "auto") else optimize
    stand_ins = [x if isinstance(x, str) or not hasattr(x, "shape")
                 else np.broadcast_to(np.float32(0), x.shape) for x in operands]
    return np.einsum_path(subscripts, *stand_ins, optimize=optimize)


def contract_all(operands, names, out_names, path, dtype, precision):
    work = [on_diagonals(x, term) for x, term in zip(operands, names)]
    for places in path:
        chosen = [work[i] for i in places]
        work = [w for i, w in enumerate(work) if i not in places]
        needed = {n for _, term in work for n in term} | set(out_names)
        work.append(contract_some(chosen, needed, dtype, precision))
    (x, found), = work
    x, found = sum_others(convert_for_sum(x, dtype), found, set(out_names))
    return arrange(x, found, out_names)


def contract_some(chosen, needed, dtype, precision):
    """The product of operands, two at a time, with the names that are needed later."""
    (x, names), *rest = chosen
    for i, (y, y_names) in enumerate(rest):
        later = needed | {n for _, term in rest[i + 1:] for n in term}
        out_names = [n for n in dict.fromkeys((*names, *y_names)) if n in later]
        x, names = contract(x, names, y, y_names, out_names, dtype, precision), out_names
    return x, names


def on_diagonals(x, names):
    """'ii' means the diagonal of two axes: `x` with each name once."""
    for name, count in Counter(names).items():
        for _ in range(count - 1):
            i = names.index(name)
            j = names.index(name, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ValueError(f"einsum: axis {name!r} has sizes {x.shape[i]} and {x.shape[j]}")
            x = diagonal(x, 0, i, j)
            names = [*[n for k, n in enumerate(names) if k not in (i, j)], name]
    return x, names


def convert_for_sum(x, dtype):
    return convert(x, dtype, x.weak_type) if x.dtype != dtype else x
