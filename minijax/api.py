# Exported from notebooks/10_numpy.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: transformations as users call them. Home: 10_numpy. In JAX: jax/_src/api.py.

Each function here flattens pytrees, checks what it was given, calls an interpreter on flat
functions and puts the pytrees together again.
"""

from functools import wraps

import numpy as np

from minijax import dtypes
from minijax.array import as_array
from minijax.avals import ShapedArray, typeof
from minijax.core import Tracer
from minijax.errors import see
from minijax.flatten import (
    FlatFunction, FlatFunctionWithAux, arg_label, as_index_tuple, check_array, fun_name,
    normalise_argnums, split_args, types_of_arguments,
)
from minijax.interpreters.batching import axis_of, batch_to_dims
from minijax.interpreters.jvp import jvp_instantiated
from minijax.interpreters.partial_eval import (
    apply_linear, linearize_flat, trace_unknown, without_unread_consts,
)
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.interpreters.transpose import backward_pass
from minijax.jaxpr import dce_jaxpr
from minijax.primitives.elementwise import convert_element_type
from minijax.rules import UndefinedPrimal, full_like_aval, instantiate_zeros
from minijax.tracebacks import api_boundary
from minijax.tree_util import (
    Partial, broadcast_prefix, keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_map,
    tree_structure, tree_unflatten,
)

__all__ = [
    "check_callable", "is_float0", "check_tangent", "jvp", "linearize", "linearize_tree", "vjp",
    "flatten_cotangents", "cotangent_like", "grad", "value_and_grad", "named_like",
    "check_grad_input", "check_scalar_output", "check_output_dtype", "vmap", "LateOutAxes",
    "broadcast_axes", "flatten_axes", "canonical_axis", "mapped_size", "size_mismatch", "jacfwd",
    "jacrev", "jacobian", "hessian", "jacobian_by", "PerArg", "standard_basis",
    "columns_of_jacobian", "rows_of_jacobian", "offsets", "split_into", "row_block", "typed_like",
    "ShapeDtypeStruct", "aval_of_argument", "make_jaxpr", "eval_shape", "linear_transpose",
    "check_one_kind", "Device", "CPU", "devices", "local_devices", "device_count",
    "local_device_count", "default_backend", "device_put", "check_devices", "device_get",
    "block_until_ready",
]


# --- Checks ---------------------------------------------------------------------------------------

def check_callable(f):
    if not callable(f):
        raise TypeError(f"expected a callable to transform, got {f!r} of type {type(f).__name__}")


def is_float0(aval):
    return aval.dtype == dtypes.float0


def check_tangent(primal, tangent, where, error=TypeError):
    """Raise unless `tangent` is like a primal of this aval; `error` if it has another dtype."""
    want, got = primal.to_tangent_aval(), typeof(tangent)
    if want.dtype != got.dtype:
        raise error(f"{where}: the tangent's dtype must be the tangent dtype of the primal; primal "
                    f"{primal} wants {want.str_short(False)}, got {got.str_short(False)}")
    if want.shape != got.shape:
        raise ValueError(f"{where}: primal and tangent must have equal shapes, got "
                         f"{want.shape} and {got.shape}")


# --- Forward mode ---------------------------------------------------------------------------------

def jvp(fun, primals, tangents, has_aux=False):
    """(fun(*primals), its derivative at primals applied to tangents).

    `primals` and `tangents` are tuples (or lists) of pytrees of equal structure. Raises TypeError
    for trees or dtypes that differ, ValueError for shapes that do.
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("primal and tangent arguments to jvp must be tuples or lists, got "
                        f"{type(primals).__name__} and {type(tangents).__name__}")
    ps, in_tree = tree_flatten(tuple(primals))
    ts, tangent_tree = tree_flatten(tuple(tangents))
    if in_tree != tangent_tree or isinstance(primals, list) != isinstance(tangents, list):
        raise TypeError("primal and tangent arguments to jvp must have the same tree structure; "
                        f"primals have {tree_structure(primals)}, tangents have "
                        f"{tree_structure(tangents)}")
    for aval, t in zip(types_of_arguments(fun, primals, {}, ps), ts):
        check_tangent(aval, t, f"jvp of {fun_name(fun)}")
    flat = (FlatFunctionWithAux if has_aux else FlatFunction)(fun, in_tree)
    outs, out_tangents = jvp_instantiated(flat, ps, ts)
    n = flat.out_tree.num_leaves
    pair = tree_unflatten(flat.out_tree, outs[:n]), tree_unflatten(flat.out_tree, out_tangents[:n])
    return (*pair, flat.aux_of(outs)) if has_aux else pair


def linearize(fun, *primals, has_aux=False):
    """(fun(*primals), f_lin) where f_lin(*tangents) is the derivative there, worked out once.

    f_lin is a pytree: its leaves are the values that the derivative needs.
    """
    check_callable(fun)
    ps, in_tree = tree_flatten(primals)
    in_avals = types_of_arguments(fun, primals, {}, ps)
    flat, outs, jaxpr, consts, zero_avals, aux = linearize_tree(fun, ps, in_tree, has_aux)

    @api_boundary
    def f_lin(consts, *tangents):
        ts, tangent_tree = tree_flatten(tangents)
        if tangent_tree != in_tree:
            raise TypeError("tangents must have the tree structure of the primals; expected "
                            f"{in_tree}, got {tangent_tree}")
        for aval, t in zip(in_avals, ts):
            check_tangent(aval, t, f"linearized {fun_name(fun)}", ValueError)
        out_ts = apply_linear(jaxpr, consts, zero_avals, ts)
        return tree_unflatten(flat.out_tree, [instantiate_zeros(t) for t in out_ts])

    return tree_unflatten(flat.out_tree, outs), Partial(f_lin, consts), *aux


def linearize_tree(fun, ps, in_tree, has_aux):
    """Linearize fun on flat primals, leaving aux out of the linear program."""
    flat = (FlatFunctionWithAux if has_aux else FlatFunction)(fun, in_tree)
    outs, jaxpr, consts, zero_avals = linearize_flat(flat, ps, fun_name(fun))
    n = flat.out_tree.num_leaves
    is_output = [i < n for i, aval in enumerate(zero_avals) if aval is None]
    aux = (flat.aux_of(outs),) if has_aux else ()
    jaxpr, consts = without_unread_consts(dce_jaxpr(jaxpr, is_output), consts)
    return flat, outs[:n], jaxpr, consts, zero_avals[:n], aux


# --- Reverse mode ---------------------------------------------------------------------------------

def vjp(fun, *primals, has_aux=False):
    """(fun(*primals), f_vjp) with f_vjp(cotangents) a tuple of cotangents, one a primal.

    Integer primals have cotangents of dtype float0. f_vjp is a pytree with residuals as leaves.
    """
    check_callable(fun)
    ps, in_tree = tree_flatten(primals)
    in_avals = types_of_arguments(fun, primals, {}, ps)
    flat, outs, jaxpr, consts, zero_avals, aux = linearize_tree(fun, ps, in_tree, has_aux)
    out_avals = [typeof(x) for x in outs]

    @api_boundary
    def f_vjp(consts, *cotangents):
        if len(cotangents) != 1:
            raise TypeError(f"the function that vjp of {fun_name(fun)} returned takes one "
                            f"argument, a cotangent like the output, {flat.out_tree}; got "
                            f"{len(cotangents)}\n{see('tangents-and-cotangents')}")
        cts = flatten_cotangents(*cotangents, flat.out_tree, out_avals, fun_name(fun))
        kept = [ct for ct, zero in zip(cts, zero_avals) if zero is None]
        undefined = [UndefinedPrimal(v.aval) for v in jaxpr.invars]
        in_cts = backward_pass(jaxpr, consts, undefined, kept)
        return tree_unflatten(in_tree, [cotangent_like(a, ct) for a, ct in zip(in_avals, in_cts)])

    return tree_unflatten(flat.out_tree, outs), Partial(f_vjp, consts), *aux


def flatten_cotangents(cotangents, out_tree, out_avals, name):
    cts, ct_tree = tree_flatten(cotangents)
    if ct_tree != out_tree:
        raise ValueError(f"the cotangent for {name} must have the tree structure of its output; "
                         f"expected {out_tree}, got {ct_tree}")
    for aval, ct in zip(out_avals, cts):
        want, got = aval.to_tangent_aval(), typeof(ct)
        if want.shape != got.shape or want.dtype not in (dtypes.float0, got.dtype):
            raise ValueError(f"the cotangent for {name} must match its output: expected "
                             f"{want.str_short()}, got {got.str_short()}")
    return cts


def cotangent_like(aval, ct):
    # float0 has one value only, so nothing was accumulated for it
    if is_float0(aval.to_tangent_aval()):
        return np.zeros(aval.shape, dtypes.float0)
    return instantiate_zeros(ct)


def grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """The gradient of a scalar-valued function, as a function of the same arguments.

    Differentiates with respect to the positional arguments `argnums` (an int gives a pytree like
    that argument, a tuple gives a tuple). With has_aux, `fun` returns (value, aux) and the
    gradient function (gradient, aux). Raises TypeError for inputs or outputs that have no gradient.
    """
    value_and_grad_f = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @api_boundary
    @wraps(fun, updated=())
    def grad_f(*args, **kwargs):
        value, gradient = value_and_grad_f(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient
    return grad_f


def value_and_grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """A function that returns (fun's value, its gradient); see `grad`."""
    check_callable(fun)
    nums = as_index_tuple("argnums", argnums)
    single = not isinstance(argnums, (tuple, list))

    @api_boundary
    @wraps(fun, updated=())
    def value_and_grad_f(*args, **kwargs):
        chosen = normalise_argnums("argnums", nums, len(args), TypeError)
        some, rebuild = split_args(args, chosen)
        for i, x in zip(chosen, some):
            check_grad_input(x, arg_label(fun, i), holomorphic, allow_int)
        call = named_like(fun, lambda *some: fun(*rebuild(some), **kwargs))
        out, f_vjp, *aux = vjp(call, *some, has_aux=has_aux)
        check_scalar_output(out, fun_name(fun), holomorphic)
        grads = f_vjp(full_like_aval(typeof(out), 1))
        gradient = grads[0] if single else grads
        return ((out, aux[0]) if has_aux else out), gradient
    return value_and_grad_f


def named_like(fun, g):
    g.__name__ = fun_name(fun)
    return g


def check_grad_input(tree, label, holomorphic, allow_int, real_only=False):
    for path, x in tree_flatten_with_path(tree)[0]:
        where = f"grad of {label}" + (f" at {keystr(path)}" if path else "")
        dtype = typeof(check_array(x, where)).dtype
        if holomorphic:
            if not dtypes.issubdtype(dtype, np.complexfloating):
                raise TypeError(f"{where}: with holomorphic=True inputs must be complex, got "
                            f"{dtype}")
        elif real_only and dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{where}: jacfwd requires real inputs, got {dtype}; for complex "
                            "functions use holomorphic=True, or jvp directly")
        elif not dtypes.issubdtype(dtype, np.inexact) and not allow_int:
            raise TypeError(f"{where}: grad requires real- or complex-valued inputs (a floating "
                            f"dtype), got {dtype}; write a float such as 3.0, convert with "
                            f".astype(float), or choose other argnums\n{see('inputs-of-grad')}")


def check_scalar_output(out, name, holomorphic):
    try:
        aval = typeof(out)
    except TypeError:
        raise TypeError(f"gradient only defined for scalar-output functions; {name} returned "
                        f"{tree_structure(out)}") from None
    if aval.shape != ():
        raise TypeError(f"gradient only defined for scalar-output functions; {name} returned an "
                        f"array of shape {aval.shape}. Sum it, or use jacrev, jacfwd or vjp\n"
                        + see("inputs-of-grad"))
    check_output_dtype("grad", aval.dtype, name, holomorphic)


def check_output_dtype(transformation, dtype, name, holomorphic):
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{name}: with holomorphic=True the output must be complex, got "
                            f"{dtype}")
    elif not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(f"{transformation} requires real-valued outputs (a floating dtype), but "
                        f"{name} returned {dtype}; for complex functions use holomorphic=True")


# --- vmap -----------------------------------------------------------------------------------------

def vmap(fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None, spmd_axis_name=None):
    """`fun` on a batch of arguments: equal to a loop over their axes, without the loop.

    `in_axes` is an int, None, or a tuple with a pytree prefix of each argument; `out_axes` a prefix
    of the output. Raises ValueError, naming arguments, axes and sizes, if those don't fit together.
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple, dict))):
        raise TypeError("vmap in_axes must be an int, None, or a tuple of entries corresponding to "
                        f"the positional arguments, got {in_axes!r}")
    if not all(type(leaf) is int for leaf in tree_leaves((in_axes, out_axes))):
        raise TypeError("vmap in_axes and out_axes must be ints, None, or pytrees of those, got "
                        f"{in_axes!r} and {out_axes!r}")

    @api_boundary
    @wraps(fun, updated=())
    def vmap_f(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(f"vmap in_axes has {len(in_axes)} entries, but {fun_name(fun)} was "
                             f"called with {len(args)} positional arguments")
        leaves, in_tree = tree_flatten((args, kwargs))
        types_of_arguments(fun, args, kwargs, leaves)
        dims = flatten_axes("vmap in_axes", fun, in_axes, args, kwargs)
        dims = [None if d is None else canonical_axis(d, x, fun) for d, x in zip(dims, leaves)]
        size = mapped_size(fun, args, kwargs, dims, leaves, axis_size)
        flat = FlatFunction(fun, in_tree, with_kwargs=True)
        axis = axis_of(size, axis_name, spmd_axis_name)
        outs = batch_to_dims(flat, axis, leaves, dims, LateOutAxes(flat, out_axes, fun))
        return tree_unflatten(flat.out_tree, outs)
    return vmap_f


class LateOutAxes:
    """The flat out_axes, iterated over once the function has run and its output's tree is known."""

    def __init__(self, flat, out_axes, fun):
        self.flat, self.out_axes, self.fun = flat, out_axes, fun

    def __iter__(self):
        dummy = tree_unflatten(self.flat.out_tree, [0] * self.flat.out_tree.num_leaves)
        return iter(broadcast_axes(f"vmap out_axes of {fun_name(self.fun)}", self.out_axes, dummy))


def broadcast_axes(what, axes, tree):
    """One axis (or None) a leaf of `tree`, from a pytree prefix."""
    try:
        return broadcast_prefix(axes, tree, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(f"{what} must be an int, None, or a pytree prefix of the values it is "
                         f"for; got {axes!r}: {error}") from None


def flatten_axes(what, fun, axes, args, kwargs):
    """One axis a leaf of (args, kwargs); keyword arguments are mapped along their axis 0."""
    return (broadcast_axes(f"{what} of {fun_name(fun)}", axes, args)
            + [0] * len(tree_leaves(kwargs)))


def canonical_axis(axis, x, fun):
    rank = typeof(x).ndim
    if not -rank <= axis < rank:
        raise ValueError(f"vmap of {fun_name(fun)}: axis {axis} is out of range for an argument of "
                         f"shape {typeof(x).shape}; its rank must be at least "
                         f"{axis + 1 if axis >= 0 else -axis}")
    return axis % rank


def mapped_size(fun, args, kwargs, dims, leaves, axis_size):
    """The one size of all mapped axes."""
    sizes = {typeof(x).shape[d] for x, d in zip(leaves, dims) if d is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if not sizes:
        raise ValueError(f"vmap of {fun_name(fun)} must have at least one non-None value in "
                         "in_axes, or an axis_size")
    if len(sizes) > 1:
        raise ValueError(size_mismatch(fun, args, kwargs, dims, axis_size))
    return sizes.pop()


def size_mismatch(fun, args, kwargs, dims, axis_size):
    lines = [f"vmap of {fun_name(fun)} got inconsistent sizes for array axes to be mapped:"]
    paths = tree_flatten_with_path((args, kwargs))[0]
    for (path, x), d in zip(paths, dims):
        if d is None:
            continue
        if path[0].idx == 0:
            label, inner = arg_label(fun, path[1].idx), path[2:]
        else:
            label, inner = f"keyword argument {keystr(path[1:2])}", path[2:]
        where = f" at {keystr(inner)}" if inner else ""
        lines.append(f"  * {label}{where} has size {typeof(x).shape[d]} along axis {d} "
                     f"({typeof(x).str_short()})")
    if axis_size is not None:
        lines.append(f"  * axis_size is {axis_size}")
    return "\n".join([*lines, see("axes-of-vmap")])


# --- Jacobians ------------------------------------------------------------------------------------

def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """The Jacobian of fun, a column at a time by vmap of jvp: best for few inputs.

    Leaves have shape (*output shape, *input shape), nested as output tree of input trees.
    """
    return jacobian_by(columns_of_jacobian, fun, argnums, has_aux, holomorphic)


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """The Jacobian of fun, a row at a time by vmap of vjp: best for few outputs. See `jacfwd`."""
    return jacobian_by(rows_of_jacobian, fun, argnums, has_aux, holomorphic, allow_int)


jacobian = jacrev


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    """The matrix of second derivatives of a function: jacfwd of jacrev."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def jacobian_by(method, fun, argnums, has_aux, holomorphic, allow_int=False):
    check_callable(fun)
    nums = as_index_tuple("argnums", argnums)

    @api_boundary
    @wraps(fun, updated=())
    def jac_f(*args, **kwargs):
        chosen = normalise_argnums("argnums", nums, len(args))
        some, rebuild = split_args(args, chosen)
        for i, x in zip(chosen, some):
            check_grad_input(x, arg_label(fun, i), holomorphic, allow_int,
                             real_only=method is columns_of_jacobian)
        call = named_like(fun, lambda *some: fun(*rebuild(some), **kwargs))
        jac, *aux = method(call, some, has_aux, holomorphic)
        if not isinstance(argnums, (tuple, list)):
            jac = tree_map(lambda per_arg: per_arg[0], jac, is_leaf=lambda t: isinstance(t, PerArg))
        else:
            jac = tree_map(tuple, jac, is_leaf=lambda t: isinstance(t, PerArg))
        return (jac, aux[0]) if has_aux else jac
    return jac_f


class PerArg(list):
    """The Jacobians of one output leaf, one pytree for each argument."""


def standard_basis(leaves):
    """For each leaf, all unit tangents of the leaves put end to end, along a leading axis."""
    sizes = [typeof(x).size for x in leaves]
    eye = np.eye(sum(sizes))
    blocks = np.split(eye, np.cumsum(sizes)[:-1], axis=1)
    return [as_array(b.reshape(len(eye), *typeof(x).shape).astype(typeof(x).dtype))
            for b, x in zip(blocks, leaves)]


def columns_of_jacobian(f, args, has_aux, holomorphic):
    args = tuple(args)
    leaves, in_tree = tree_flatten(args)
    basis = tree_unflatten(in_tree, standard_basis(leaves))
    # Not linearize: between its two passes the residuals of a long loop would have to be kept.
    push = vmap(lambda *tangents: jvp(f, args, tangents, has_aux=has_aux),
                out_axes=(None, -1, None) if has_aux else (None, -1))
    out, columns, *aux = push(*basis)
    for y in tree_leaves(out) if holomorphic else ():
        check_output_dtype("jacfwd", typeof(y).dtype, fun_name(f), holomorphic)
    return (tree_map(lambda c, y: split_into(c, y, leaves, in_tree), columns, out),
            *aux)


def rows_of_jacobian(f, args, has_aux, holomorphic):
    leaves, in_tree = tree_flatten(tuple(args))
    out, f_vjp, *aux = vjp(f, *args, has_aux=has_aux)
    outs, out_tree = tree_flatten(out)
    for y in outs:
        check_output_dtype("jacrev", typeof(y).dtype, fun_name(f), holomorphic)
    basis = tree_unflatten(out_tree, standard_basis(outs))
    rows = tree_leaves(vmap(f_vjp)(basis))          # one a leaf of the arguments
    blocks = [[row_block(r, k, outs, x) for r, x in zip(rows, leaves)]
              for k in range(len(outs))]
    return (tree_unflatten(out_tree, [PerArg(tree_unflatten(in_tree, b)) for b in blocks]), *aux)


def offsets(leaves):
    return np.cumsum([0, *[typeof(x).size for x in leaves]])


def split_into(columns, out, leaves, in_tree):
    ends = offsets(leaves)
    columns = typed_like(columns, out)
    blocks = [columns[..., a:b].reshape(*typeof(out).shape, *typeof(x).shape)
              for a, b, x in zip(ends, ends[1:], leaves)]
    return PerArg(tree_unflatten(in_tree, blocks))


def row_block(rows, k, outs, x):
    ends = offsets(outs)
    block = typed_like(rows, x)[ends[k]:ends[k + 1]]
    return block.reshape(*typeof(outs[k]).shape, *typeof(x).shape)


def typed_like(rows, x):
    """Derivatives of or by `x`, weakly typed as it is; for an integer zeros of its dtype."""
    if is_float0(rows):
        return full_like_aval(typeof(x).update(shape=rows.shape), 0)
    return convert_element_type(rows, typeof(rows).dtype, typeof(x).weak_type)


# --- Programs -------------------------------------------------------------------------------------

class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist, for `eval_shape` and `lower`.

    The dtype stays as given, also one of 64 bits without jax_enable_x64; None is a ValueError.
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding")

    def __init__(self, shape, dtype, *, weak_type=False, sharding=None):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified, got None")
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.weak_type, self.sharding = weak_type, sharding

    def update(self, **changes):
        """One with other values of the given attributes."""
        return ShapeDtypeStruct(**{name: getattr(self, name) for name in self.__slots__} | changes)

    @classmethod
    def like(cls, x):
        """The type of an array, a number or another ShapeDtypeStruct."""
        aval = aval_of_argument(x)
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object: this ShapeDtypeStruct has shape ()")
        return self.shape[0]

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and self.key() == other.key()

    def __hash__(self):
        return hash(self.key())

    def key(self):
        return self.shape, self.dtype, self.weak_type

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"


def aval_of_argument(x):
    """The type of an argument whose value does not count: anything with a shape and a dtype."""
    try:
        return typeof(x)
    except TypeError:
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise
    weak_type = getattr(x, "weak_type", False)
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype), weak_type)


def make_jaxpr(fun, static_argnums=(), axis_env=None, return_shape=False):
    """A function of fun's arguments that returns the program fun does, as a ClosedJaxpr."""
    check_callable(fun)
    static = as_index_tuple("static_argnums", static_argnums)

    @api_boundary
    @wraps(fun, updated=())
    def make_jaxpr_f(*args, **kwargs):
        fixed = normalise_argnums("static_argnums", static, len(args))
        dynamic = [i for i in range(len(args)) if i not in fixed]
        some, rebuild = split_args(args, dynamic)
        leaves, in_tree = tree_flatten((tuple(some), kwargs))
        flat = FlatFunction(lambda *a, **k: fun(*rebuild(a), **k), in_tree, with_kwargs=True)
        avals = types_of_arguments(fun, args, kwargs, leaves, aval_of_argument)
        closed = trace_to_closed_jaxpr(flat, avals, fun_name(fun))
        if not return_shape:
            return closed
        structs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
                   for a in closed.out_avals]
        return closed, tree_unflatten(flat.out_tree, structs)
    return make_jaxpr_f


def eval_shape(fun, *args, **kwargs):
    """Shapes and dtypes of fun(*args, **kwargs), as ShapeDtypeStructs; nothing is computed."""
    return make_jaxpr(fun, return_shape=True)(*args, **kwargs)[1]


def linear_transpose(fun, *primals):
    """The transpose of a linear function; `primals` give shapes and dtypes only.

    It is a pytree: its leaves are values that `fun` multiplies with. Raises TypeError for
    cotangents unlike the output, and unless all dtypes are inexact or all are integers.
    """
    leaves, in_tree = tree_flatten(primals)
    flat = FlatFunction(fun, in_tree)
    in_avals = types_of_arguments(fun, primals, {}, leaves, aval_of_argument)
    jaxpr, consts = trace_unknown(flat, in_avals, fun_name(fun))
    check_one_kind([a.dtype for a in [*in_avals, *jaxpr.out_avals]])

    @api_boundary
    def transposed(consts, cotangent):
        cts, ct_tree = tree_flatten(cotangent)
        got = [(typeof(ct).shape, typeof(ct).dtype) for ct in cts]
        if ct_tree != flat.out_tree or got != [(a.shape, a.dtype) for a in jaxpr.out_avals]:
            raise TypeError(f"the cotangent for the transpose of {fun_name(fun)} must be like its "
                            f"output, {tree_unflatten(flat.out_tree, jaxpr.out_avals)}; got "
                            f"{tree_unflatten(ct_tree, list(map(typeof, cts)))}")
        undefined = [UndefinedPrimal(v.aval) for v in jaxpr.invars]
        outs = backward_pass(jaxpr, consts, undefined, cts)
        return tree_unflatten(in_tree, [instantiate_zeros(ct) for ct in outs])
    return Partial(transposed, consts)


def check_one_kind(found):
    if not any(all(dtypes.issubdtype(d, kind) for d in found) for kind in (np.inexact, np.integer)):
        raise TypeError("linear_transpose takes functions of floating-point or complex numbers, or "
                        f"of integers, to such; got {', '.join(sorted({d.name for d in found}))}")


class Device:
    """The CPU, the only device there is."""

    platform = device_kind = "cpu"
    id = process_index = 0

    def __repr__(self):
        return "CpuDevice(id=0)"


CPU = Device()


def devices(backend=None):
    """The list of devices: one CPU. RuntimeError for another backend."""
    if backend not in (None, "cpu"):
        raise RuntimeError(f"unknown backend {backend!r}: minijax has the CPU only")
    return [CPU]


local_devices = devices


def device_count(backend=None):
    """How many devices there are."""
    return len(devices(backend))


local_device_count = device_count


def default_backend():
    """The platform of the default device."""
    return CPU.platform


# --- Arrays and devices ---------------------------------------------------------------------------

def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """Every leaf of `x` as an Array. There is one device: nothing moves, whatever the options."""
    check_devices("device_put", device)
    return tree_map(lambda leaf: leaf if isinstance(leaf, Tracer) else as_array(leaf), x)


def check_devices(function, devices):
    """ValueError for what is neither None, nor a device, nor a tree of these."""
    for device in tree_leaves(devices):
        if not isinstance(device, Device):
            raise ValueError(f"{function} takes a device, one of jax.devices(), got {device!r}: "
                             "minijax has the CPU only")


def device_get(x):
    """Every array in the tree `x` as a NumPy array; other leaves as they are."""
    return tree_map(lambda leaf: np.asarray(leaf) if hasattr(leaf, "__array__") else leaf, x)


def block_until_ready(x):
    """Wait for all arrays in `x`: minijax computes at once, so return `x`."""
    return x
