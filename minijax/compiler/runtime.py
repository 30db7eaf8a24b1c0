# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: the XLA runtime that compiled programs call.

The names that generated source uses, with their meaning in plain Python: scalar operations on NumPy
numbers. Compiled code gives the same names to Numba (see `numba_runtime`).
"""

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from minijax import dtypes
from minijax.avals import short_dtype_name
from minijax.compiler import vector_math
from minijax.primitives.elementwise import largest, smallest

__all__ = [
    "inf", "nan", "bool_", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64",
    "c64", "c128", "empty", "DTYPE_NAMES", "as_buffer", "as_buffers", "kernel", "load_if", "lanes",
    "local", "turns", "product", "matrix", "fold", "fold_add", "fold_mul", "fold_max", "fold_min",
    "fold_and", "fold_or", "fold_xor", "to_integer", "to_i8", "to_i16", "to_i32", "to_i64", "to_u8",
    "to_u16", "to_u32", "to_u64", "to_bool", "to_float", "clamp_index", "bitcast", "bits_i8",
    "bits_i16", "bits_i32", "bits_i64", "bits_u8", "bits_u16", "bits_u32", "bits_u64", "bits_f32",
    "bits_f64", "bits_bool", "select", "real_part", "imag_part", "complex_of", "maximum", "minimum",
    "absolute", "is_finite", "is_nan", "nextafter", "sign", "divide_int", "remainder", "width",
    "unsigned", "shift_left", "shift_right_logical", "shift_right_arithmetic", "popcount", "clz",
    "of_float", "floor", "ceil", "trunc", "round_even", "sqrt", "cbrt", "exp", "exp2", "expm1",
    "log", "log1p", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "power", "erf", "erfc", "erf_inv", "rsqrt", "round_away",
    "lgamma", "logistic",
]


# --- Dtypes and memory ----------------------------------------------------------------------------

inf, nan = math.inf, math.nan
bool_ = np.bool_
i8, i16, i32, i64 = np.int8, np.int16, np.int32, np.int64
u8, u16, u32, u64 = np.uint8, np.uint16, np.uint32, np.uint64
f32, f64 = np.float32, np.float64
c64, c128 = np.complex64, np.complex128
empty = np.empty

DTYPE_NAMES = {np.dtype(t): name for name, t in dict(
    bool_=bool_, i8=i8, i16=i16, i32=i32, i64=i64, u8=u8, u16=u16, u32=u32, u64=u64, f32=f32,
    f64=f64, c64=c64, c128=c128).items()}


def as_buffer(x):
    """What a library function returned, as an array in row-major order."""
    if type(x) is np.ndarray and x.flags.c_contiguous:
        return x
    return np.asarray(x, order="C")


def as_buffers(xs):
    return [as_buffer(x) for x in xs]


def kernel(dtypes):
    """Decorator of generated functions: run them on flat memory. Compiled code replaces it."""
    def decorate(function):
        return lambda *arrays: function(*[a.reshape(-1) for a in arrays])
    return decorate


# --- Memory inside a kernel -----------------------------------------------------------------------

def load_if(condition, memory, index):
    """memory[index] where the condition holds, else 0."""
    return memory[index] if condition else memory.dtype.type(0)


def lanes(count, start):
    """Accumulators of a reduction, all at its start value."""
    return np.full(count, start)


local = lanes                     # (count, zero): memory of a function's own


def turns(count):
    """The numbers 0 … count - 1, each as an array, for a loop that calls kernels."""
    return (np.array(number, np.int64) for number in range(count))


def product(sizes, adds, out, to, left, first, right, second):
    """out = left · right, or out += left · right.

    `sizes` are rows, columns and terms; a matrix is memory, and (where it begins, the distance
    between rows, that between columns).
    """
    rows, columns, terms = sizes
    result = matrix(left, first, (rows, terms)) @ matrix(right, second, (terms, columns))
    into = matrix(out, to, (rows, columns))
    into[...] = into + result if adds else result


def matrix(memory, place, shape):
    start, *strides = place
    return as_strided(memory[start:], shape, [memory.itemsize * s for s in strides])


def fold(combine):
    def folded(accumulators):
        """Combine accumulators in pairs, n/2 apart, n/4 apart, …: a tree."""
        while len(accumulators) > 1:
            half = len(accumulators) // 2
            accumulators = combine(accumulators[:half], accumulators[half:])
        return accumulators[0]
    return folded


fold_add, fold_mul = fold(np.add), fold(np.multiply)
fold_max, fold_min = fold(largest), fold(smallest)
fold_and, fold_or, fold_xor = fold(np.bitwise_and), fold(np.bitwise_or), fold(np.bitwise_xor)


# --- Conversions ----------------------------------------------------------------------------------

def to_integer(dtype):
    """Conversion to an integer dtype: floats round towards zero and saturate, NaN gives 0."""
    low, high = dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max

    def convert(x):
        if not np.issubdtype(type(x), np.floating):
            return np.asarray(x).astype(dtype)[()]
        return dtype(0 if math.isnan(x) else low if x <= low else high if x >= high else int(x))
    return convert


to_i8, to_i16, to_i32, to_i64 = map(to_integer, (i8, i16, i32, i64))
to_u8, to_u16, to_u32, to_u64 = map(to_integer, (u8, u16, u32, u64))


def to_bool(x):
    return x != 0


def to_float(dtype):
    return lambda x: np.asarray(x).astype(dtype)[()]


def clamp_index(x, low, high):
    """An index as int64, moved into low … high."""
    return i64(min(max(int(x), low), high))


def bitcast(to):
    return lambda x: np.asarray(x).view(to)[()]


bits_i8, bits_i16, bits_i32, bits_i64 = map(bitcast, (i8, i16, i32, i64))
bits_u8, bits_u16, bits_u32, bits_u64 = map(bitcast, (u8, u16, u32, u64))
bits_f32, bits_f64, bits_bool = map(bitcast, (f32, f64, bool_))


# Narrow numbers have the short names of jaxprs: f16, bf16, f8_e4m3fn, i4, …
for _dtype, _wide in dtypes.computed_in.items():
    _name = DTYPE_NAMES[_dtype] = short_dtype_name(_dtype)
    _convert = to_float if _wide == np.float32 else to_integer
    globals().update({_name: _dtype.type, f"to_{_name}": _convert(_dtype.type),
                      f"widen_{_name}": _wide.type, f"bits_{_name}": bitcast(_dtype)})


# --- Choices and integers -------------------------------------------------------------------------

def select(condition, if_true, if_false):
    return if_true if condition else if_false


real_part, imag_part = np.real, np.imag


def complex_of(x, y):
    """x + iy; not computed, for i ∞ is no number."""
    out = np.empty((), np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out[()]


maximum, minimum = largest, smallest
absolute, is_finite, is_nan = np.absolute, np.isfinite, np.isnan
nextafter = np.nextafter


def sign(x):
    return x if x == 0 else np.sign(x)


def divide_int(x, y):
    """x / y rounded towards zero; all bits set if y is 0; the smallest integer / -1 is itself."""
    if y == 0:
        return np.invert(type(x)(0))
    if y == -1:
        return -x
    q = x // y
    return type(x)(q + (q * y != x and (x < 0) != (y < 0)))


def remainder(x, y):
    """The remainder of x / y with the sign of x; an integer modulo 0 is itself."""
    if np.issubdtype(type(x), np.floating):
        return np.fmod(x, y)
    return x if y == 0 else type(x)(0) if y == -1 else np.fmod(x, y)


def width(x):
    return x.dtype.itemsize * 8


def unsigned(x):
    return np.asarray(x).view(f"u{x.dtype.itemsize}")[()]


def shift_left(x, n):
    return x << n if 0 <= n < width(x) else type(x)(0)


def shift_right_logical(x, n):
    if not 0 <= n < width(x):
        return type(x)(0)
    return np.asarray(unsigned(x) >> unsigned(n)).view(x.dtype)[()]


def shift_right_arithmetic(x, n):
    signed = np.asarray(x).view(f"i{x.dtype.itemsize}")[()]
    shifted = signed >> (int(n) if 0 <= n < width(x) else width(x) - 1)
    return np.asarray(shifted).view(x.dtype)[()]


def popcount(x):
    return type(x)(np.bitwise_count(unsigned(x)))


def clz(x):
    return type(x)(width(x) - int(unsigned(x)).bit_length())


# --- Functions of floats --------------------------------------------------------------------------

def of_float(function):
    """A function of the math module as one from a NumPy float to the same type."""
    return lambda x: type(x)(function(x))


floor, ceil, trunc, round_even, sqrt, cbrt = (np.floor, np.ceil, np.trunc, np.rint, np.sqrt,
                                              np.cbrt)
exp, exp2, expm1, log, log1p, log2 = np.exp, np.exp2, np.expm1, np.log, np.log1p, np.log2
sin, cos, tan, asin, acos, atan, atan2 = (np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan,
                                          np.arctan2)
sinh, cosh, tanh, asinh, acosh, atanh = (np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh,
                                         np.arctanh)
power = np.power
erf, erfc = of_float(math.erf), of_float(math.erfc)


def erf_inv(x):
    return type(x)(vector_math.evaluate("erf_inv", np.asarray(x)))


def rsqrt(x):
    return type(x)(1) / np.sqrt(x)


def round_away(x):
    return np.copysign(np.floor(np.abs(x) + type(x)(0.5)) if np.abs(x) < 2 ** 23 else np.abs(x), x)


def lgamma(x):
    if math.isinf(x) or x <= 0 and x == math.floor(x):
        return type(x)(inf)
    return type(x)(math.lgamma(x))


def logistic(x):
    return type(x)(1) / (type(x)(1) + np.exp(-x))
