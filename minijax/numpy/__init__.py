# Exported from notebooks/ref_package.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_package. In JAX: jax/numpy/__init__.py.

What `import minijax.numpy as jnp` offers. Importing it also puts operators on arrays and
tracers.
"""

from minijax.array import Array as ndarray
from minijax.numpy import operators as _operators  # puts operators on arrays and tracers
from minijax.numpy.contractions import (
    corrcoef, cov, cross, dot, einsum, einsum_path, inner, kron, matmul, matvec, outer, tensordot,
    trace, vdot, vecdot, vecmat,
)
from minijax.numpy.creation import (
    arange, array, array_repr, array_str, asarray, astype, bartlett, bfloat16, blackman, bool_,
    bool_ as bool, can_cast, cdouble, character, complex128, complex64, complex_, complexfloating,
    copy, csingle, diag, diagflat, diagonal, double, dtype, e, empty, empty_like, euler_gamma, eye,
    finfo, flexible, float16, float32, float4_e2m1fn, float64, float6_e2m3fn, float6_e3m2fn,
    float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
    float8_e5m2fnuz, float8_e8m0fnu, float_, floating, from_dlpack, frombuffer, fromfunction,
    fromiter, fromstring, full, full_like, generic, geomspace, get_printoptions, hamming, hanning,
    identity, iinfo, indices, inexact, inf, int16, int2, int32, int4, int64, int8, int_, integer,
    iscomplexobj, isdtype, isrealobj, isscalar, issubdtype, iterable, kaiser, linspace, load,
    logspace, meshgrid, nan, ndim, newaxis, number, object_, ones, ones_like, pi, printoptions,
    promote_types, result_type, save, savez, set_printoptions, shape, signedinteger, single, size,
    tri, tril, triu, uint, uint16, uint2, uint32, uint4, uint64, uint8, unsignedinteger, vander,
    zeros, zeros_like,
)
from minijax.numpy.indexing import (
    argwhere, c_, choose, compress, delete, diag_indices, diag_indices_from, extract, fill_diagonal,
    flatnonzero, index_exp, insert, ix_, mask_indices, mgrid, nonzero, ogrid, piecewise, place, put,
    put_along_axis, r_, ravel_multi_index, s_, select, take, take_along_axis, tril_indices,
    tril_indices_from, triu_indices, triu_indices_from, unravel_index, where,
)
from minijax.numpy.manipulation import (
    append, apply_along_axis, apply_over_axes, array_split, atleast_1d, atleast_2d, atleast_3d,
    block, broadcast_arrays, broadcast_shapes, broadcast_to, column_stack, concat, concatenate,
    convolve, correlate, diff, dsplit, dstack, ediff1d, expand_dims, flip, fliplr, flipud, gradient,
    hsplit, hstack, matrix_transpose, moveaxis, packbits, pad, permute_dims, ravel, repeat, reshape,
    resize, roll, rollaxis, rot90, split, squeeze, stack, swapaxes, tile, transpose, trapezoid,
    trim_zeros, unpackbits, unstack, unwrap, vectorize, vsplit, vstack,
)
from minijax.numpy.polynomial import (
    poly, polyadd, polyder, polydiv, polyint, polymul, polysub, polyval,
)
from minijax.numpy.reductions import (
    all, allclose, amax, amin, any, argmax, argmin, array_equal, array_equiv, average,
    count_nonzero, cumprod, cumsum, cumulative_prod, cumulative_sum, max, mean, median, min,
    nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmedian, nanmin, nanpercentile,
    nanprod, nanquantile, nanstd, nansum, nanvar, percentile, prod, ptp, quantile, std, sum, var,
)
from minijax.numpy.sorting import (
    argpartition, argsort, bincount, digitize, histogram, histogram2d, histogram_bin_edges,
    histogramdd, interp, intersect1d, isin, lexsort, partition, searchsorted, setdiff1d, setxor1d,
    sort, sort_complex, union1d, unique, unique_all, unique_counts, unique_inverse, unique_values,
)
from minijax.numpy.ufunc_api import (
    add, bitwise_and, bitwise_or, bitwise_xor, frompyfunc, logaddexp, logaddexp2, logical_and,
    logical_or, logical_xor, maximum, minimum, multiply, negative, subtract, ufunc,
)
from minijax.numpy.ufuncs import (
    abs, absolute, acos, acosh, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh,
    around, asin, asinh, atan, atan2, atanh, bitwise_count, bitwise_invert, bitwise_left_shift,
    bitwise_not, bitwise_right_shift, cbrt, ceil, clip, conj, conjugate, copysign, cos, cosh,
    deg2rad, degrees, divide, divmod, equal, exp, exp2, expm1, fabs, float_power, floor,
    floor_divide, fmax, fmin, fmod, frexp, gcd, greater, greater_equal, heaviside, hypot, imag,
    invert, isclose, iscomplex, isfinite, isinf, isnan, isneginf, isposinf, isreal, lcm, ldexp,
    left_shift, less, less_equal, log, log10, log1p, log2, logical_not, mod, modf, nan_to_num,
    nextafter, not_equal, positive, pow, power, rad2deg, radians, real, reciprocal, remainder,
    right_shift, rint, round, sign, signbit, sin, sinc, sinh, spacing, sqrt, square, tan, tanh,
    true_divide, trunc,
)

__all__ = [
    "ndarray", "corrcoef", "cov", "cross", "dot", "einsum", "einsum_path", "inner", "kron",
    "matmul", "matvec", "outer", "tensordot", "trace", "vdot", "vecdot", "vecmat", "arange",
    "array", "array_repr", "array_str", "asarray", "astype", "bartlett", "bfloat16", "blackman",
    "bool", "bool_", "can_cast", "cdouble", "character", "complex128", "complex64", "complex_",
    "complexfloating", "copy", "csingle", "diag", "diagflat", "diagonal", "double", "dtype", "e",
    "empty", "empty_like", "euler_gamma", "eye", "finfo", "flexible", "float16", "float32",
    "float4_e2m1fn", "float64", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float_", "floating", "from_dlpack", "frombuffer", "fromfunction", "fromiter",
    "fromstring", "full", "full_like", "generic", "geomspace", "get_printoptions", "hamming",
    "hanning", "identity", "iinfo", "indices", "inexact", "inf", "int16", "int2", "int32", "int4",
    "int64", "int8", "int_", "integer", "iscomplexobj", "isdtype", "isrealobj", "isscalar",
    "issubdtype", "iterable", "kaiser", "linspace", "load", "logspace", "meshgrid", "nan", "ndim",
    "newaxis", "number", "object_", "ones", "ones_like", "pi", "printoptions", "promote_types",
    "result_type", "save", "savez", "set_printoptions", "shape", "signedinteger", "single", "size",
    "tri", "tril", "triu", "uint", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8",
    "unsignedinteger", "vander", "zeros", "zeros_like", "argwhere", "c_", "choose", "compress",
    "delete", "diag_indices", "diag_indices_from", "extract", "fill_diagonal", "flatnonzero",
    "index_exp", "insert", "ix_", "mask_indices", "mgrid", "nonzero", "ogrid", "piecewise", "place",
    "put", "put_along_axis", "r_", "ravel_multi_index", "s_", "select", "take", "take_along_axis",
    "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from", "unravel_index",
    "where", "append", "apply_along_axis", "apply_over_axes", "array_split", "atleast_1d",
    "atleast_2d", "atleast_3d", "block", "broadcast_arrays", "broadcast_shapes", "broadcast_to",
    "column_stack", "concat", "concatenate", "convolve", "correlate", "diff", "dsplit", "dstack",
    "ediff1d", "expand_dims", "flip", "fliplr", "flipud", "gradient", "hsplit", "hstack",
    "matrix_transpose", "moveaxis", "packbits", "pad", "permute_dims", "ravel", "repeat", "reshape",
    "resize", "roll", "rollaxis", "rot90", "split", "squeeze", "stack", "swapaxes", "tile",
    "transpose", "trapezoid", "trim_zeros", "unpackbits", "unstack", "unwrap", "vectorize",
    "vsplit", "vstack", "poly", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub",
    "polyval", "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "array_equal",
    "array_equiv", "average", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "max", "mean", "median", "min", "nanargmax", "nanargmin", "nancumprod",
    "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod",
    "nanquantile", "nanstd", "nansum", "nanvar", "percentile", "prod", "ptp", "quantile", "std",
    "sum", "var", "argpartition", "argsort", "bincount", "digitize", "histogram", "histogram2d",
    "histogram_bin_edges", "histogramdd", "interp", "intersect1d", "isin", "lexsort", "partition",
    "searchsorted", "setdiff1d", "setxor1d", "sort", "sort_complex", "union1d", "unique",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "add", "bitwise_and",
    "bitwise_or", "bitwise_xor", "frompyfunc", "logaddexp", "logaddexp2", "logical_and",
    "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "subtract", "ufunc",
    "abs", "absolute", "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "around", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_count",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_right_shift", "cbrt", "ceil",
    "clip", "conj", "conjugate", "copysign", "cos", "cosh", "deg2rad", "degrees", "divide",
    "divmod", "equal", "exp", "exp2", "expm1", "fabs", "float_power", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "frexp", "gcd", "greater", "greater_equal", "heaviside", "hypot",
    "imag", "invert", "isclose", "iscomplex", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "isreal", "lcm", "ldexp", "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2",
    "logical_not", "mod", "modf", "nan_to_num", "nextafter", "not_equal", "positive", "pow",
    "power", "rad2deg", "radians", "real", "reciprocal", "remainder", "right_shift", "rint",
    "round", "sign", "signbit", "sin", "sinc", "sinh", "spacing", "sqrt", "square", "tan", "tanh",
    "true_divide", "trunc",
]
