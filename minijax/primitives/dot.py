# Exported from notebooks/09_shapes.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives. Home: 09_shapes. In JAX: jax/_src/lax/lax.py (dot_general).

One product for matrices, vectors, batches of matrices and any tensor contraction. Give every axis a
letter, as einsum does. A letter that stands in both operands and in the result is a batch axis; in
both operands only, it is contracted; in one operand and the result, it is free. Gradients and
batching then follow by writing down letters.
"""

from enum import Enum
from functools import lru_cache
from math import prod

import numpy as np

from minijax import dtypes
from minijax.avals import ShapedArray, typeof
from minijax.core import Primitive
from minijax.loop_ir import library_step
from minijax.lower_products import lower_product
from minijax.primitives.elementwise import convert_element_type
from minijax.primitives.structural import transpose
from minijax.rules import def_checked_impl, defbilinear, not_mapped

__all__ = [
    "dot_letters", "dot_of_letters", "positions", "dot_general_p", "dot_general",
    "dot_general_impl", "MATMUL", "matmul_axes", "dot_dtype", "precision_rank",
    "dot_general_abstract_eval", "check_dot_axes", "contract_like", "dot_general_transpose_lhs",
    "dot_general_transpose_rhs", "dot_general_batch", "dot_general_lowering", "Precision",
    "canonicalize_precision", "dot", "batch_matmul",
]


# --- Dimension numbers and letters ----------------------------------------------------------------

# dimension_numbers = ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)): axis numbers.

@lru_cache(1024)
def dot_letters(dimension_numbers, lhs_ndim, rhs_ndim):
    """The letters (here: numbers) of both operands and of the result.

    The result has the batch axes first, then lhs's free axes, then rhs's.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs = list(range(lhs_ndim))
    rhs = list(range(lhs_ndim, lhs_ndim + rhs_ndim))
    for i, j in zip((*lhs_contract, *lhs_batch), (*rhs_contract, *rhs_batch)):
        rhs[j] = lhs[i]
    batch = [lhs[i] for i in lhs_batch]
    free = [a for a in lhs if a not in rhs] + [a for a in rhs if a not in lhs]
    return tuple(lhs), tuple(rhs), (*batch, *free)


def dot_of_letters(lhs, rhs, out):
    """The dimension numbers of the product `lhs, rhs -> out`, and the letters of its result.

    The result's axes are batch, lhs's free, rhs's free: the letters of `out` in another order.
    """
    contract = [a for a in lhs if a in rhs and a not in out]
    batch = [a for a in out if a in lhs and a in rhs]
    found = (*batch, *(a for a in lhs if a not in rhs), *(a for a in rhs if a not in lhs))
    return ((positions(contract, lhs), positions(contract, rhs)),
            (positions(batch, lhs), positions(batch, rhs))), found


def positions(letters, word):
    return tuple(word.index(a) for a in letters)


# --- dot_general ----------------------------------------------------------------------------------

dot_general_p = Primitive("dot_general")
dot_general_p.usual_params.update(precision=None, preferred_element_type=None)


def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None):
    """Multiply and sum over the contracting axes, for every index of batch and free axes.

    dimension_numbers = ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)). The result has
    the batch axes, lhs's free axes, rhs's free axes. On the CPU `precision` changes nothing.
    """
    numbers = tuple(tuple(tuple(map(int, axes)) for axes in pair) for pair in dimension_numbers)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_and_canonicalize_user_dtype(
            preferred_element_type, "dot_general")
    return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers,
                              precision=canonicalize_precision(precision),
                              preferred_element_type=preferred_element_type)


def dot_general_impl(lhs, rhs, *, dimension_numbers, precision, preferred_element_type):
    result = preferred_element_type or dot_dtype(lhs.dtype, rhs.dtype)
    dtype = dtypes.computed_in.get(result, result)      # narrow floats are rounded once, at the end
    lhs, rhs = lhs.astype(dtype, copy=False), rhs.astype(dtype, copy=False)
    if dimension_numbers == MATMUL and lhs.ndim == rhs.ndim == 2:
        return np.matmul(lhs, rhs).astype(result, copy=False)
    lhs_axes, rhs_axes, n_batch, n_contract = matmul_axes(dimension_numbers, lhs.ndim, rhs.ndim)
    lhs, rhs = lhs.transpose(lhs_axes), rhs.transpose(rhs_axes)
    batch, rows = lhs.shape[:n_batch], lhs.shape[n_batch:lhs.ndim - n_contract]
    columns = rhs.shape[n_batch + n_contract:]
    inner = prod(lhs.shape[lhs.ndim - n_contract:])
    out = np.matmul(lhs.reshape((*batch, prod(rows), inner)),
                    rhs.reshape((*batch, inner, prod(columns))))
    return out.reshape((*batch, *rows, *columns)).astype(result, copy=False)


def_checked_impl(dot_general_p, dot_general_impl)


MATMUL = (((1,), (0,)), ((), ()))


@lru_cache(1024)
def matmul_axes(dimension_numbers, lhs_ndim, rhs_ndim):
    """Orders of axes for a matrix product: batch, rows, inner and batch, inner, columns."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    rows = [i for i in range(lhs_ndim) if i not in (*lhs_batch, *lhs_contract)]
    columns = [i for i in range(rhs_ndim) if i not in (*rhs_batch, *rhs_contract)]
    return ((*lhs_batch, *rows, *lhs_contract), (*rhs_batch, *rhs_contract, *columns),
            len(lhs_batch), len(lhs_contract))


@lru_cache(256)
def dot_dtype(lhs, rhs):
    """The more precise of two dtypes; complex before float before int. TypeError at a draw."""
    if lhs == rhs:
        return lhs
    ranks = precision_rank(lhs), precision_rank(rhs)
    if ranks[0] == ranks[1]:
        raise TypeError(f"dot_general got operands of dtypes {lhs} and {rhs}, of which neither is "
                        "more precise; convert one of them")
    return lhs if ranks[0] > ranks[1] else rhs


def precision_rank(dtype):
    real = dtypes.to_floating_dtype(dtype) if dtypes.issubdtype(dtype, np.inexact) else dtype
    is_float = dtypes.issubdtype(real, np.floating)
    return (dtypes.issubdtype(dtype, np.complexfloating),
            dtypes.finfo(real).maxexp if is_float else -1,
            dtypes.finfo(real).nmant if is_float else -1,
            real != bool and real.itemsize, not dtypes.issubdtype(real, np.unsignedinteger))


@dot_general_p.def_abstract_eval
def dot_general_abstract_eval(lhs, rhs, *, dimension_numbers, precision, preferred_element_type):
    check_dot_axes(lhs.shape, rhs.shape, dimension_numbers)
    letters, rhs_letters, out = dot_letters(dimension_numbers, lhs.ndim, rhs.ndim)
    sizes = dict(zip((*letters, *rhs_letters), (*lhs.shape, *rhs.shape)))
    dtype = dot_dtype(lhs.dtype, rhs.dtype)
    wanted = dtype if preferred_element_type is None else preferred_element_type
    if not dtypes.issubdtype(dtype, np.floating) and wanted.itemsize < dtype.itemsize:
        raise TypeError("dot_general preferred_element_type must not be narrower than the original "
                        f"type, got {wanted} for result type {dtype}")
    return ShapedArray([sizes[a] for a in out], wanted, lhs.weak_type and rhs.weak_type)


def check_dot_axes(lhs_shape, rhs_shape, dimension_numbers):
    for name, axes_pair in zip(("contracting", "batch"), dimension_numbers):
        for side, shape, axes in zip(("lhs", "rhs"), (lhs_shape, rhs_shape), axes_pair):
            if not all(0 <= i < len(shape) for i in axes) or len(set(axes)) != len(axes):
                raise TypeError(f"dot_general {side} {name} dimensions must be distinct axes of "
                                f"{side}, got {axes} for shape {shape}")
        lhs_sizes, rhs_sizes = ([shape[i] for i in axes] for shape, axes
                                in zip((lhs_shape, rhs_shape), axes_pair))
        if lhs_sizes != rhs_sizes:
            raise TypeError(f"dot_general requires {name} dimensions to have the same shape, got "
                            f"{lhs_sizes} and {rhs_sizes}, axes {axes_pair} of operands of shapes "
                            f"{lhs_shape} and {rhs_shape}")
    for side, contract, batch in zip(("lhs", "rhs"), *dimension_numbers):
        if set(contract) & set(batch):
            raise TypeError(f"dot_general {side} batch dimensions must be disjoint from "
                            f"contracting ones, got {batch} and {contract}")


def contract_like(operand, lhs, lhs_letters, rhs, rhs_letters, letters, **params):
    """The product `lhs, rhs -> letters`, as a cotangent of `operand`."""
    numbers, found = dot_of_letters(lhs_letters, rhs_letters, letters)
    product = dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, **params)
    ordered = transpose(product, positions(letters, found))
    return convert_element_type(ordered, operand.aval.dtype)


def dot_general_transpose_lhs(ct, x, y, *, dimension_numbers, **params):
    # z_out = Σ x_lhs y_rhs, so x̄_lhs = Σ z̄_out y_rhs: the sum runs over what x lacks
    lhs, rhs, out = dot_letters(dimension_numbers, x.aval.ndim, typeof(y).ndim)
    return contract_like(x, ct, out, y, rhs, lhs, **params)


def dot_general_transpose_rhs(ct, x, y, *, dimension_numbers, **params):
    # ȳ_rhs = Σ z̄_out x_lhs
    lhs, rhs, out = dot_letters(dimension_numbers, typeof(x).ndim, y.aval.ndim)
    return contract_like(y, ct, out, x, lhs, rhs, **params)


defbilinear(dot_general_p, dot_general_transpose_lhs, dot_general_transpose_rhs)


@dot_general_p.def_batch
def dot_general_batch(axis, vals, dims, *, dimension_numbers, **params):
    # The mapped axis is one more letter: a batch letter if both operands have it, else a free one.
    ranks = [typeof(x).ndim - (d is not not_mapped) for x, d in zip(vals, dims)]
    lhs, rhs, out = dot_letters(dimension_numbers, *ranks)
    lhs, rhs = (word if d is not_mapped else (*word[:d], "mapped", *word[d:])
                for word, d in zip((lhs, rhs), dims))
    numbers, found = dot_of_letters(lhs, rhs, ("mapped", *out))
    result = dot_general_p.bind(*vals, dimension_numbers=numbers, **params)
    return result, found.index("mapped")


@dot_general_p.def_lowering
def dot_general_lowering(ctx, lhs, rhs, *, dimension_numbers, precision, preferred_element_type):
    made = lower_product(ctx, lhs, rhs, dimension_numbers)
    return made or library_step(ctx, lhs, rhs, dimension_numbers=dimension_numbers,
                                precision=precision, preferred_element_type=preferred_element_type)


# --- Precision ------------------------------------------------------------------------------------

class Precision(Enum):
    """How many passes an accelerator makes over a product; CPUs always work in full precision."""
    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


_PRECISION_NAMES = {
    "default": Precision.DEFAULT, "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH, "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST,
}


def canonicalize_precision(precision):
    """None, or one Precision an operand, from a name, a Precision or a pair of them."""
    if precision is None:
        return None
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    found = tuple(_PRECISION_NAMES.get(p) if isinstance(p, str) else p for p in pair)
    if len(found) != 2 or not all(isinstance(p, Precision) for p in found):
        raise ValueError("precision must be None, a Precision, one of "
                         f"{list(_PRECISION_NAMES)}, or a pair of these, got {precision}")
    return found


# --- Products with fewer words --------------------------------------------------------------------

def dot(lhs, rhs, *, dimension_numbers=None, precision=None, preferred_element_type=None):
    """The product of vectors and matrices, or `dot_general` if dimension numbers are given."""
    lhs_shape, rhs_shape = np.shape(lhs), np.shape(rhs)
    if dimension_numbers is None:
        simple = len(lhs_shape) in (1, 2) and len(rhs_shape) in (1, 2)
        if not simple or lhs_shape[-1] != rhs_shape[0]:
            raise ValueError("dot without dimension_numbers takes vectors and matrices whose inner "
                             f"sizes agree, got shapes {lhs_shape} and {rhs_shape}")
        dimension_numbers = (((len(lhs_shape) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs, rhs, precision=None):
    """The matrix products of two stacks of matrices."""
    lhs_ndim, rhs_ndim = np.ndim(lhs), np.ndim(rhs)
    if lhs_ndim != rhs_ndim or lhs_ndim < 2:
        raise ValueError("batch_matmul takes arrays of the same number of axes, at least 2, got "
                         f"{lhs_ndim} and {rhs_ndim}")
    batch = tuple(range(lhs_ndim - 2))
    numbers = (((lhs_ndim - 1,), (lhs_ndim - 2,)), (batch, batch))
    return dot_general(lhs, rhs, numbers, precision)
