"""Samples of arguments for tests of each kind of rule: primitive name -> list of (args, params)."""
import ml_dtypes
import numpy as np
from samples_structural import structural_samples

from minijax.primitives.elementwise import RoundingMethod

bfloat16 = np.dtype(ml_dtypes.bfloat16)


# --- Arrays ------------------------------------------------------------------------------------

def floats(*shape, low=-2.0, high=2.0, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def ints(*shape, low=-9, high=9, dtype=np.int32, seed=0):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def bools(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


def complexes(*shape, seed=0):
    return (floats(*shape, seed=seed) + 1j * floats(*shape, seed=seed + 1)).astype(np.complex64)


def sample(*args, **params):
    return args, params


# --- Groups of samples -------------------------------------------------------------------------

def unary(low=-2.0, high=2.0, also=()):
    """Samples of a function of floats between two bounds: a matrix, narrow dtypes."""
    return [sample(floats(2, 3, low=low, high=high)),
            sample(floats(3, low=low, high=high, dtype=np.float16)),
            sample(floats(3, low=low, high=high, dtype=bfloat16)), *map(sample, also)]


def binary(low=-2.0, high=2.0, also=()):
    """Samples of a function of two floats: alike, and a scalar on either side."""
    left, right = floats(2, 3, low=low, high=high), floats(2, 3, low=low, high=high, seed=1)
    half = [floats(3, low=low, high=high, dtype=np.float16, seed=i) for i in (0, 1)]
    return [sample(left, right), sample(left, right[0, 0]), sample(left[0, 0], right),
            sample(left[0, 0], right[0, 0]), sample(*half), *also]


def binary_ints(low=-9, high=9):
    x, y = ints(2, 3, low=low, high=high), ints(2, 3, low=low, high=high, seed=1)
    return [sample(x, y), sample(x, y[0, 0]), sample(x[0, 0], y),
            sample(x.astype(np.int8), y.astype(np.int8)),
            sample(x.astype(np.uint8), y.astype(np.uint8))]


numeric_pairs = binary(also=binary_ints() + [sample(complexes(3), complexes(3, seed=5))])
bool_pairs = [sample(bools(2, 3), bools(2, 3, seed=1)), sample(bools(2, 3), np.True_)]
ordered_pairs = numeric_pairs[:-1] + bool_pairs
tied = np.array([[1, 2, 2], [3, 3, 3], [0, -1, 0]], np.float32)
some_ints = (ints(2, 3), ints(3, dtype=np.int8), ints(3, low=0, dtype=np.uint8))


def reductions(*arrays):
    return [sample(x, axes=axes) for x in arrays for axes in [(0,), (1,), (1, 0)]
            ] + [sample(arrays[0], axes=())]


def cumulations(*arrays):
    return [sample(x, axis=axis, reverse=bool(axis)) for x in arrays for axis in (0, 1)]


def conversions(*names, of):
    return [sample(x, new_dtype=np.dtype(name), weak_type=False) for x in of for name in names]


# --- Elementwise -------------------------------------------------------------------------------

elementwise_samples = {
    "neg": unary(also=[*some_ints, complexes(3)]),
    "add": numeric_pairs,
    "add_any": numeric_pairs,
    "sub": numeric_pairs,
    "mul": numeric_pairs,
    "div": numeric_pairs,
    "rem": binary(also=binary_ints()),
    "max": ordered_pairs + [sample(tied, tied.T.copy())],
    "min": ordered_pairs + [sample(tied, tied.T.copy())],
    "abs": unary(also=[ints(2, 3), complexes(3), tied]),
    "sign": unary(also=[*some_ints, tied]),
    "square": unary(also=[*some_ints, complexes(3)]),
    "integer_pow": [sample(x, y=y) for y in (-3, -1, 0, 1, 2, 7)
                    for x in (floats(2, 3, low=0.5), complexes(3))]
                   + [sample(ints(3), y=y) for y in (0, 1, 5)],
    "eq": ordered_pairs + [sample(complexes(3), complexes(3))],
    "ne": ordered_pairs + [sample(complexes(3), complexes(3))],
    "lt": ordered_pairs,
    "le": ordered_pairs,
    "gt": ordered_pairs,
    "ge": ordered_pairs,
    "is_finite": unary(also=[np.array([np.inf, np.nan, 1], np.float32)]),
    "select_n": [sample(bools(2, 3), floats(2, 3), floats(2, 3, seed=1)),
                 sample(np.True_, floats(2, 3), floats(2, 3, seed=1)),
                 sample(np.False_, floats(), floats(seed=1)),
                 sample(bools(3), ints(3), ints(3, seed=1)),
                 sample(ints(4, low=0, high=3), *[floats(4, seed=i) for i in range(3)]),
                 sample(np.int32(1), *[floats(4, seed=i) for i in range(3)])],
    "clamp": [sample(np.float32(-1), floats(2, 3), np.float32(1)),
              sample(floats(2, 3) - 1, floats(2, 3, seed=1), floats(2, 3) + 1),
              sample(np.int32(-3), ints(2, 3), np.int32(3)),
              sample(floats() - 1, floats(2, 3, seed=1), floats(2, 3) + 1)],
    "not": list(map(sample, [*some_ints, bools(3)])),
    "and": binary_ints() + bool_pairs,
    "or": binary_ints() + bool_pairs,
    "xor": binary_ints() + bool_pairs,
    "shift_left": binary_ints(low=0, high=7),
    "shift_right_arithmetic": binary_ints(low=0, high=7),
    "shift_right_logical": binary_ints(low=0, high=7),
    "population_count": list(map(sample, some_ints)),
    "clz": list(map(sample, some_ints)),
    "exp": unary(also=[complexes(3)]),
    "exp2": unary(),
    "expm1": unary(also=[complexes(3)]),
    "log": unary(0.5, 3, also=[complexes(3)]),
    "log1p": unary(-0.5, 3),
    "logistic": unary(also=[complexes(3)]),
    "pow": binary(0.5, 2, also=[sample(floats(3), ints(3)), sample(floats(3), np.int32(2)),
                                sample(np.zeros(3, np.float32), ints(3, low=0, high=2))]),
    "sqrt": unary(0.5, 3, also=[complexes(3)]),
    "rsqrt": unary(0.5, 3),
    "cbrt": unary(0.5, 3),
    "sin": unary(also=[complexes(3)]),
    "cos": unary(also=[complexes(3)]),
    "tan": unary(-1, 1),
    "asin": unary(-0.9, 0.9),
    "acos": unary(-0.9, 0.9),
    "atan": unary(),
    "atan2": binary(),
    "sinh": unary(),
    "cosh": unary(),
    "tanh": unary(also=[complexes(3)]),
    "asinh": unary(),
    "acosh": unary(1.5, 3),
    "atanh": unary(-0.9, 0.9),
    "erf": unary(),
    "erfc": unary(),
    "erf_inv": unary(-0.9, 0.9),
    "lgamma": unary(0.5, 4),
    "digamma": unary(0.5, 4),
    "polygamma": [sample(np.full(3, order, np.float32), floats(3, low=0.5)) for order in (1, 2)]
                 + [sample(np.float32(1), floats(2, 3, low=0.5))],
    "floor": unary(),
    "ceil": unary(),
    "round": [sample(x, rounding_method=method) for method in RoundingMethod
              for x in (floats(2, 3), floats(), np.array([0.5, 1.5, -0.5, -2.5], np.float32))],
    "nextafter": binary(),
    "reduce_precision": [sample(floats(2, 3), exponent_bits=e, mantissa_bits=m)
                         for e, m in [(8, 23), (8, 7), (5, 10), (4, 3)]],
    "real": [sample(complexes(2, 3))],
    "imag": [sample(complexes(2, 3))],
    "complex": binary()[:4],
    "conj": [sample(complexes(2, 3), input_dtype=np.dtype("complex64")),
             sample(floats(2, 3), input_dtype=np.dtype("float32"))],
    "convert_element_type": conversions(
        "bool", "int8", "int32", "uint8", "float16", "bfloat16", "float32", "complex64",
        of=[floats(2, 3), floats(3, dtype=bfloat16), ints(3, low=-300, high=300), bools(3)]),
    "bitcast_convert_type": [sample(floats(2, 3), new_dtype=np.dtype(name))
                             for name in ("int32", "uint32", "float32", "int8", "uint16")]
                            + [sample(ints(2, 4, dtype=np.int8), new_dtype=np.dtype("float32"))],
    "copy": unary(also=[*some_ints, bools(2)]),
}

lax_samples = {"stop_gradient": unary()}        # a primitive of the module lax itself

# --- Reductions, running reductions, sorting ---------------------------------------------------

reduction_samples = {
    "reduce_sum": reductions(floats(2, 3), floats(2, 3, dtype=bfloat16), ints(2, 3, dtype=np.int8),
                             floats(0, 3), complexes(2, 3)),
    "reduce_prod": reductions(floats(3, 5), tied, ints(2, 3), floats(2, 0)),
    "reduce_max": reductions(floats(2, 3), tied, ints(2, 3), bools(2, 3)),
    "reduce_min": reductions(floats(2, 3), tied, ints(2, 3), bools(2, 3)),
    "argmax": [sample(x, axes=(axis,), index_dtype=np.dtype("int32")) for axis in (0, 1)
               for x in (tied, ints(2, 3), bools(2, 3), floats(2, 3, dtype=bfloat16))],
    "argmin": [sample(x, axes=(axis,), index_dtype=np.dtype("uint8")) for axis in (0, 1)
               for x in (tied, ints(2, 3), bools(2, 3), floats(2, 3, dtype=bfloat16))],
    "reduce_and": reductions(bools(2, 3), ints(2, 3), np.zeros((0, 2), bool)),
    "reduce_or": reductions(bools(2, 3), ints(2, 3), np.zeros((0, 2), bool)),
    "reduce_xor": reductions(bools(2, 3), ints(2, 3), np.zeros((0, 2), np.uint8)),
    "cumsum": cumulations(floats(3, 4), ints(2, 3, dtype=np.int8), complexes(2, 3), floats(0, 1)),
    "cumprod": cumulations(floats(5, 4), tied, ints(2, 3), floats(0, 1)),
    "cummax": cumulations(floats(5, 4), tied, np.zeros((5, 7), np.float32), ints(2, 3)),
    "cummin": cumulations(floats(5, 4), tied, np.zeros((5, 7), np.float32), ints(2, 3)),
    "cumlogsumexp": cumulations(floats(5, 4), tied, floats(0, 1)),
}


def sorts(*arrays):
    return [sample(*arrays, dimension=dimension, is_stable=True, num_keys=num_keys)
            for dimension in (0, 1) for num_keys in range(1, len(arrays) + 1)]


sorting_samples = {
    "sort": sorts(floats(4, 5)) + sorts(ints(4, 5)) + sorts(tied) + sorts(tied, floats(3, 3))
            + sorts(ints(4, 5, low=0, high=2), floats(4, 5), floats(4, 5, seed=1))
            + sorts(floats(4, 5, dtype=bfloat16)),
    "top_k": [sample(x, k=k, axis=axis) for k in (0, 2, 3) for axis in (0, 1)
              for x in (floats(4, 5), tied, ints(4, 5), floats(4, 5, dtype=bfloat16))],
}

samples = (structural_samples | elementwise_samples | lax_samples | reduction_samples
           | sorting_samples)
