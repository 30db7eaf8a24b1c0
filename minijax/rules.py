# Exported from notebooks/08_blocks.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: rule makers. Home: 08_blocks. In JAX: jax/_src/interpreters/{ad,batching}.py.

What the rules of primitives are made of: symbolic zeros, undefined primals, the axis that vmap
maps, and makers that turn one line of mathematics into a rule. Nothing here names an interpreter.
"""

from functools import reduce
from typing import NamedTuple

import numpy as np

from minijax import dtypes
from minijax.array import Array
from minijax.avals import ShapedArray, aval_of_type, typeof
from minijax.core import primitives, rule_for

__all__ = [
    "bind", "broadcast", "broadcast_to", "full_like_aval", "const", "moveaxis", "Zero", "is_zero",
    "instantiate_zeros", "add_tangents", "UndefinedPrimal", "is_undefined_primal",
    "refuse_undefined", "shape_of", "defjvp", "sum_of_shares", "defjvp_with_result",
    "def_no_derivative", "def_not_linear", "defjet_linear", "defjet_bilinear", "sum_of_products",
    "deflinear", "defbilinear", "def_transpose_per_operand", "unbroadcast", "not_mapped",
    "AxisData", "move_batch_axis", "batch_axis_first", "drop", "defvectorized", "defbroadcasting",
    "align_operands", "align", "elementwise_shape", "check_dtypes", "def_elementwise_aval",
    "def_shape_aval", "def_elementwise_impl", "arity", "def_checked_impl", "check_operands",
    "EIGHT_BITS", "rounded_once", "in_eight_bits", "defreducer", "def_batch_along",
    "defbatch_front", "shift_axes", "deflinear_jointly",
]


# --- Operations that makers need ------------------------------------------------------------------

# They are primitives, and those stand above this layer; so they are looked up by name when used.

def bind(name, *args, **params):
    return primitives[name].bind(*args, **params)


def broadcast(x, shape, dims):
    """`x` in the larger `shape`, its own axes at `dims`; a scalar for `()` stays what it is."""
    if not shape:
        return x
    return bind("broadcast_in_dim", x, shape=tuple(shape), broadcast_dimensions=tuple(dims))


def broadcast_to(x, shape):
    """A scalar `x` in `shape`; anything else must have that shape already."""
    return x if typeof(x).shape == tuple(shape) else broadcast(x, shape, ())


def full_like_aval(aval, value):
    """A Python number in `aval`'s shape and dtype; a program records a broadcast."""
    return broadcast(Array(np.array(value, aval.dtype), aval.weak_type), aval.shape, ())


def const(x, value):
    """The Python number `value` as a scalar constant of `x`'s dtype and weak type."""
    aval = typeof(x)
    return Array(np.array(value).astype(aval.dtype), aval.weak_type)


def moveaxis(x, source, destination):
    """Move one axis (both numbers not negative)."""
    if source == destination:
        return x
    permutation = [i for i in range(typeof(x).ndim) if i != source]
    permutation.insert(destination, source)
    return bind("transpose", x, permutation=tuple(permutation))


# --- Tangents and cotangents ----------------------------------------------------------------------

class Zero:
    """A tangent or cotangent that is zero by construction, kept as a symbol with its aval."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    @classmethod
    def like(cls, x):
        """The zero tangent of a value."""
        return cls(typeof(x).to_tangent_aval())

    def __repr__(self):
        return f"Zero({self.aval})"


def is_zero(t):
    return type(t) is Zero


def instantiate_zeros(t):
    """The array that a symbolic zero stands for; other values as they are."""
    if not is_zero(t):
        return t
    if t.aval.dtype == dtypes.float0:
        return np.zeros(t.aval.shape, dtypes.float0)
    return full_like_aval(t.aval, 0)


def add_tangents(s, t):
    """s + t, where either may be a symbolic zero."""
    if is_zero(s):
        return t
    return s if is_zero(t) else bind("add_any", s, t)


class UndefinedPrimal:
    """Stands for a linear operand in a transpose rule: its value is not known, its aval is."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"UndefinedPrimal({self.aval})"


def is_undefined_primal(x):
    return type(x) is UndefinedPrimal


def refuse_undefined(*operands):
    """TypeError if any of the operands, whose values are needed, is undefined."""
    for x in operands:
        if is_undefined_primal(x):
            raise TypeError(
                "only a linear function can be transposed, and this one needs the value of "
                f"something of type {x.aval} that depends on its argument: it may add up such "
                "values, and multiply them by others, but not by one another")


aval_of_type[UndefinedPrimal] = refuse_undefined


def shape_of(x):
    """The shape of an operand of a transpose rule, defined or not."""
    return x.aval.shape if is_undefined_primal(x) else typeof(x).shape


# --- Makers of jvp rules --------------------------------------------------------------------------

def defjvp(primitive, *operand_rules):
    """A rule an operand: rule(t, *primals, **params) -> its share of the tangent; None for none."""
    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        shares = [rule(t, *primals, **params) for rule, t in zip(operand_rules, tangents)
                  if rule is not None and not is_zero(t)]
        return out, sum_of_shares(shares, out)
    primitive.def_jvp(jvp)


def sum_of_shares(shares, out):
    if not shares:
        return Zero.like(out)
    # A scalar operand beside a full array has a scalar tangent: give it the result's shape first.
    shape = typeof(out).shape
    return reduce(add_tangents, [broadcast_to(t, shape) for t in shares])


def defjvp_with_result(primitive, *operand_rules):
    """As `defjvp`, for derivatives that reuse the result: rule(t, out, *primals, **params)."""
    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        shares = [rule(t, out, *primals, **params) for rule, t in zip(operand_rules, tangents)
                  if rule is not None and not is_zero(t)]
        return out, sum_of_shares(shares, out)
    primitive.def_jvp(jvp)


def def_no_derivative(primitive, why="its result moves in steps"):
    """For integer- and bool-valued primitives: the tangent is zero, and there is no transpose."""
    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        if primitive.multiple_results:
            return out, [Zero.like(o) for o in out]
        return out, Zero.like(out)
    primitive.def_jvp(jvp)
    primitive.def_impossible("transpose", why)


def def_not_linear(primitive):
    primitive.def_impossible("transpose", "it is linear in no operand")


# --- Makers of jet rules --------------------------------------------------------------------------

# A jet rule gives the Taylor coefficient of order k ≥ 1 of the result from the operands' `x[0] …
# x[k]` and the result's own `out[0] … out[k - 1]`; or a function of tracers, which writes the
# operation with others. Most primitives need none: their jvp rule will do.

def defjet_linear(primitive):
    """Coefficients go through the primitive as tangents do: for primitives linear in what moves."""
    def jet(k, out, *operands, **params):
        primals, terms = [x[0] for x in operands], [x[k] for x in operands]
        if all([is_zero(t) for t in terms]):
            outs = out if primitive.multiple_results else [out]
            zeros = [Zero.like(y[0]) for y in outs]
            return zeros if primitive.multiple_results else zeros[0]
        return rule_for(primitive, "jvp")(primals, terms, **params)[1]
    primitive.def_jet(jet)


def defjet_bilinear(primitive):
    """(x y)_k = Σ x_j y_{k-j}, the product of power series."""
    def jet(k, out, x, y, **params):
        return sum_of_products(lambda a, b: primitive.bind(a, b, **params), x, y, k, out)
    primitive.def_jet(jet)


def sum_of_products(product, x, y, k, out, first=0):
    """Σ x_j y_{k-j} for j = `first` … k, zero by construction if no product is left."""
    products = [product(x[j], y[k - j]) for j in range(first, k + 1)
                if not (is_zero(x[j]) or is_zero(y[k - j]))]
    return reduce(add_tangents, products, Zero.like(out[0]))


# --- Makers for linear primitives -----------------------------------------------------------------

def deflinear(primitive, transpose):
    """A primitive linear in its one operand: transpose(ct, x, **params) -> cotangent of x."""
    defjvp(primitive, lambda t, x, **params: primitive.bind(t, **params))
    defjet_linear(primitive)
    primitive.def_transpose(lambda ct, x, **params: [transpose(ct, x, **params)])


def defbilinear(primitive, lhs_transpose, rhs_transpose):
    """A primitive linear in each of two operands.

    lhs_transpose(ct, x, y, **params) -> cotangent of x, where x is undefined; rhs likewise for y.
    """
    defjvp(primitive, lambda t, x, y, **params: primitive.bind(t, y, **params),
           lambda t, x, y, **params: primitive.bind(x, t, **params))
    defjet_bilinear(primitive)
    def_transpose_per_operand(primitive, lhs_transpose, rhs_transpose)


def def_transpose_per_operand(primitive, *operand_rules):
    """rule(ct, *operands, **params) -> cotangent, or None for an operand that is never linear."""
    def transpose(ct, *operands, **params):
        refuse_undefined(*[x for rule, x in zip(operand_rules, operands) if rule is None])
        return [unbroadcast(rule(ct, *operands, **params), x) if is_undefined_primal(x) else None
                for rule, x in zip(operand_rules, operands)]
    primitive.def_transpose(transpose)


def unbroadcast(ct, x):
    """Sum a cotangent down to a scalar operand that was used at every element."""
    shape, ct_shape = shape_of(x), typeof(ct).shape
    if shape == ct_shape:
        return ct
    return bind("reduce_sum", ct, axes=tuple(range(len(ct_shape))))


# --- Makers of batching rules ---------------------------------------------------------------------

not_mapped = None


class AxisData(NamedTuple):
    """The axis that vmap maps: its size, its name for collectives, and the mesh axis it is on."""
    size: int
    name: object = None
    spmd_name: object = None


def move_batch_axis(axis, src, dst, x):
    """`x` with its batch axis at `dst`; an operand that has none is repeated along a new one."""
    if src is not_mapped:
        shape = list(typeof(x).shape)
        dims = [i for i in range(len(shape) + 1) if i != dst]
        shape.insert(dst, axis.size)
        return broadcast(x, shape, dims)
    return moveaxis(x, src, dst)


def batch_axis_first(axis, x, dim):
    return move_batch_axis(axis, dim, 0, x)


def drop(shape, axis):
    return (*shape[:axis], *shape[axis + 1:])


def defvectorized(primitive):
    """Batching of an elementwise primitive with one operand: the axis comes along."""
    primitive.def_batch(
        lambda axis, vals, dims, **params: (primitive.bind(*vals, **params), dims[0]))


def defbroadcasting(primitive, full=()):
    """Batching of an elementwise primitive with several operands of one shape, or scalars.

    `full`: the positions of operands that may not be scalars beside arrays.
    """
    def batch(axis, vals, dims, **params):
        aligned, dim = align_operands(axis, vals, dims)
        shape = next((typeof(v).shape for v in aligned if typeof(v).ndim), ())
        aligned = [broadcast_to(v, shape) if i in full else v for i, v in enumerate(aligned)]
        return primitive.bind(*aligned, **params), dim
    primitive.def_batch(batch)


def align_operands(axis, vals, dims):
    """Operands with their batch axes at one place, and that place; scalars may stay scalars."""
    shapes = [typeof(v).shape for v in vals]
    if len(set(dims)) == 1 and len(set(map(len, shapes))) == 1:       # they are already
        return vals, dims[0]
    inner = [shape if d is not_mapped else drop(shape, d) for shape, d in zip(shapes, dims)]
    largest = max(inner, key=len)
    dim = next((d for d, s in zip(dims, inner)
                if d is not not_mapped and len(s) == len(largest)), 0)
    return [align(axis, v, d, dim, largest) for v, d in zip(vals, dims)], dim


def align(axis, x, src, dst, shape):
    """An operand of an elementwise primitive, its batch axis at `dst` of the unbatched `shape`."""
    rank = typeof(x).ndim
    if src is not_mapped:
        return move_batch_axis(axis, src, dst, x) if rank else x
    if rank == 1 and shape:
        full = (*shape[:dst], axis.size, *shape[dst:])
        return broadcast(x, full, (dst,))
    return moveaxis(x, src, dst)


# --- Makers of implementations and types ----------------------------------------------------------

def elementwise_shape(primitive, avals):
    """The common shape of operands; scalars go with any shape."""
    shapes = {a.shape for a in avals if a.shape}
    if len(shapes) > 1:
        raise TypeError(f"{primitive} got arrays of incompatible shapes: "
                        f"{', '.join(str(a.shape) for a in avals)}; lax functions want equal "
                        "shapes or scalars, minijax.numpy broadcasts")
    return shapes.pop() if shapes else ()


def check_dtypes(primitive, avals, accepts):
    for a in avals:
        if not any(dtypes.issubdtype(a.dtype, kind) for kind in accepts):
            names = " or ".join(kind.__name__ for kind in accepts)
            raise TypeError(f"{primitive} does not accept dtype {a.dtype.name}; it takes {names}")
    if any(a.dtype != avals[0].dtype for a in avals):
        raise TypeError(f"{primitive} requires arguments to have the same dtypes, got "
                        f"{', '.join(a.dtype.name for a in avals)}; convert one of them, or use "
                        "minijax.numpy, which promotes")


def def_elementwise_aval(primitive, accepts, result=None):
    """Operands of one dtype among `accepts`; the result has it too, or the dtype result(dtype)."""
    def abstract_eval(*avals, **params):
        check_dtypes(primitive, avals, accepts)
        shape = elementwise_shape(primitive, avals)
        dtype = avals[0].dtype if result is None else np.dtype(result(avals[0].dtype))
        return ShapedArray(shape, dtype, all([a.weak_type for a in avals]))
    primitive.def_abstract_eval(abstract_eval)


def def_shape_aval(primitive, result_shape):
    """One operand, and a result that differs in shape only: result_shape(shape, **params)."""
    primitive.def_abstract_eval(lambda x, **params: x.update(shape=result_shape(x.shape, **params)))


# NumPy promotes dtypes and broadcasts shapes that a primitive refuses. So these makers first ask
# the abstract evaluation rule, about dtypes once, and about shapes only where they differ.

def def_elementwise_impl(primitive, function):
    """Implement an elementwise primitive of one or two operands by a function of NumPy arrays."""
    accepted = set()

    def unary(x, **params):
        if x.dtype not in accepted:
            aval = check_operands(primitive, [x], params)
            if x.dtype in EIGHT_BITS:
                return in_eight_bits(function, aval, x, **params)
            accepted.add(x.dtype)
        return function(x, **params)

    def binary(x, y):
        dtype, shape = x.dtype, x.shape
        if (dtype not in accepted or y.dtype is not dtype
                or (y.shape != shape and y.shape and shape)):       # a scalar goes with any shape
            aval = check_operands(primitive, [x, y], {})
            if dtype in EIGHT_BITS:
                return in_eight_bits(function, aval, x, y)
            accepted.add(dtype)
        return function(x, y)

    primitive.def_impl(binary if arity(function) == 2 else unary)


def arity(function):
    """How many operands a ufunc or an implementation takes; parameters are passed by name only."""
    if hasattr(function, "nin"):
        return function.nin
    return function.__code__.co_argcount


def def_checked_impl(primitive, function):
    """Implement a primitive by a function of NumPy arrays that sees only operands it accepts."""
    accepted = set()

    def impl(*arrays, **params):
        kinds = (*[(a.dtype, a.shape) for a in arrays], *params.items())
        if kinds not in accepted:
            aval = check_operands(primitive, arrays, params)
            if any(a.dtype in EIGHT_BITS for a in arrays):
                return in_eight_bits(function, aval, *arrays, **params)
            if len(accepted) < 1000:
                accepted.add(kinds)
        return function(*arrays, **params)
    primitive.def_impl(impl)


def check_operands(primitive, arrays, params):
    """The type of the result, or of each; an error if the operands have none."""
    rule = primitive.rules.get("abstract_eval")
    if rule is not None:        # a chapter may have emptied the column
        return rule(*[ShapedArray(a.shape, a.dtype) for a in arrays], **params)


# NumPy computes with integers of fewer than 8 bits as with int8, and does not cut results back.
EIGHT_BITS = {narrow: wide for narrow, wide in dtypes.computed_in.items() if wide.itemsize == 1}


def rounded_once(function):
    """A function that takes some steps, which rounds narrow floats after the last step only."""
    def wide(x, **params):
        dtype = dtypes.computed_in.get(x.dtype, x.dtype)
        return function(x.astype(dtype, copy=False), **params).astype(x.dtype, copy=False)
    return wide


def in_eight_bits(function, aval, *arrays, **params):
    outs = function(*[a.astype(EIGHT_BITS.get(a.dtype, a.dtype)) for a in arrays], **params)
    if isinstance(outs, np.ndarray | np.generic):
        return outs.astype(aval.dtype)
    return [out.astype(a.dtype) for out, a in zip(outs, aval, strict=True)]


# --- Makers for axes and for many operands --------------------------------------------------------

def defreducer(primitive):
    """Batching of a reduction over `axes`: axes behind the batch axis move up by one."""
    def batch(axis, vals, dims, *, axes, **params):
        (x,), (dim,) = vals, dims
        moved = tuple([a + (a >= dim) for a in axes])
        return primitive.bind(x, axes=moved, **params), dim - sum([a < dim for a in moved])
    primitive.def_batch(batch)


def def_batch_along(primitive, name):
    """Batching of an operation along one axis, its parameter `name`, on operands of one shape."""
    def batch(axis, vals, dims, /, **params):        # the parameter may be named axis, too
        dim = next(d for d in dims if d is not not_mapped)
        moved = [move_batch_axis(axis, d, dim, v) for v, d in zip(vals, dims)]
        params[name] += params[name] >= dim
        out = primitive.bind(*moved, **params)
        return out, [dim] * len(out) if primitive.multiple_results else dim
    primitive.def_batch(batch)


def defbatch_front(primitive, shift):
    """Batching of a primitive whose parameters number axes: the batch axis goes in front.

    shift(size, **params) -> the parameters for operands that have one more axis, of that size,
    before their own.
    """
    def batch(axis, vals, dims, /, **params):        # split has a parameter named axis
        vals = [batch_axis_first(axis, x, d) for x, d in zip(vals, dims)]
        out = primitive.bind(*vals, **shift(axis.size, **params))
        return out, [0] * len(out) if primitive.multiple_results else 0
    primitive.def_batch(batch)


def shift_axes(axes):
    """The same axes after one more has come in front."""
    return tuple(i + 1 for i in axes)


def deflinear_jointly(primitive, is_data=lambda i: True):
    """The jvp rule of a primitive linear in all its data operands at once, such as concatenate.

    The tangents take the operands' places; `is_data(i)` says which operands have tangents (the
    others are indices). The transpose rule is the primitive's own.
    """
    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        if all(is_zero(t) for i, t in enumerate(tangents) if is_data(i)):
            return out, Zero.like(out)
        moved = [instantiate_zeros(t) if is_data(i) else x
                 for i, (x, t) in enumerate(zip(primals, tangents))]
        return out, primitive.bind(*moved, **params)
    primitive.def_jvp(jvp)
    defjet_linear(primitive)
