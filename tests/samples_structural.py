"""Samples of structural primitives, dot_general and indexing: name -> list of (args, params)."""
import numpy as np

from minijax.primitives.dot import Precision
from minijax.primitives.indexing import (GatherDimensionNumbers, GatherScatterMode,
                                         ScatterDimensionNumbers)


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def ints(*shape, seed=0):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.int32)


def dot_params(contracting=((), ()), batch=((), ()), precision=None, preferred_element_type=None):
    return dict(dimension_numbers=(contracting, batch), precision=precision,
                preferred_element_type=preferred_element_type)


shape_samples = {
    "transpose": [
        ((floats(2, 3, 4),), dict(permutation=(2, 0, 1))),
        ((ints(2, 3),), dict(permutation=(1, 0))),
    ],
    "broadcast_in_dim": [
        ((floats(),), dict(shape=(2, 3), broadcast_dimensions=())),
        ((floats(2, 3),), dict(shape=(4, 2, 3), broadcast_dimensions=(1, 2))),
        ((floats(2, 1),), dict(shape=(2, 4, 3), broadcast_dimensions=(0, 2))),
        ((floats(1, 3),), dict(shape=(1, 3), broadcast_dimensions=(0, 1))),
        ((ints(3),), dict(shape=(3, 2), broadcast_dimensions=(0,))),
    ],
    "reshape": [
        ((floats(2, 3, 4),), dict(new_sizes=(4, 6), dimensions=None)),
        ((floats(2, 3, 4),), dict(new_sizes=(8, 3), dimensions=(2, 0, 1))),
        ((floats(1),), dict(new_sizes=(), dimensions=None)),
        ((floats(0, 3),), dict(new_sizes=(2, 0), dimensions=None)),
    ],
    "squeeze": [
        ((floats(1, 3, 1),), dict(dimensions=(0, 2))),
        ((floats(1, 3, 1),), dict(dimensions=(2,))),
    ],
    "rev": [
        ((floats(2, 3, 4),), dict(dimensions=(0, 2))),
        ((floats(2, 3),), dict(dimensions=())),
    ],
    "slice": [
        ((floats(5, 6),), dict(start_indices=(1, 0), limit_indices=(4, 6), strides=None)),
        ((floats(5, 6),), dict(start_indices=(1, 0), limit_indices=(5, 6), strides=(3, 2))),
        ((floats(5, 6),), dict(start_indices=(2, 6), limit_indices=(2, 6), strides=(2, 1))),
        ((ints(4),), dict(start_indices=(1,), limit_indices=(3,), strides=(1,))),
    ],
    "pad": [
        ((floats(3, 4), floats()), dict(padding_config=((1, 2, 0), (0, 1, 2)))),
        ((floats(3, 4), floats()), dict(padding_config=((-1, 0, 0), (2, -2, 1)))),
        ((floats(3, 4), floats()), dict(padding_config=((-2, -1, 0), (-1, 3, 0)))),
        ((floats(0, 2), floats()), dict(padding_config=((1, 1, 3), (0, 0, 0)))),
        ((ints(3), ints()), dict(padding_config=((1, 0, 1),))),
    ],
    "concatenate": [
        ((floats(2, 3), floats(1, 3, seed=1), floats(2, 3, seed=2)), dict(dimension=0)),
        ((floats(2, 3), floats(2, 0)), dict(dimension=1)),
        ((ints(2), ints(3)), dict(dimension=0)),
    ],
    "split": [
        ((floats(2, 6),), dict(sizes=(1, 2, 3), axis=1)),
        ((floats(3, 2),), dict(sizes=(0, 3), axis=0)),
        ((ints(4),), dict(sizes=(1, 3), axis=0)),
    ],
    "iota": [
        ((), dict(dtype=np.dtype("int32"), shape=(3,), dimension=0)),
        ((), dict(dtype=np.dtype("float32"), shape=(2, 3), dimension=1)),
        ((), dict(dtype=np.dtype("int8"), shape=(300,), dimension=0)),
    ],
    "dot_general": [
        ((floats(2, 3), floats(3, 4, seed=1)), dot_params(((1,), (0,)))),
        ((floats(3), floats(3, seed=1)), dot_params(((0,), (0,)))),
        ((floats(2), floats(3, seed=1)), dot_params()),
        ((floats(2, 3, 4), floats(4, 2, 5, seed=1)), dot_params(((2,), (0,)), ((0,), (1,)))),
        ((floats(2, 3, 4), floats(4, 2, 3, seed=1)), dot_params(((1, 2), (2, 0)), ((0,), (1,)))),
        ((floats(2, 3, 4), floats(3, 5, 2, seed=1)), dot_params(((), ()), ((1, 0), (0, 2)))),
        ((floats(0, 3), floats(3, 4)), dot_params(((1,), (0,)), precision=(Precision.HIGH,) * 2)),
        ((floats(2, 0), floats(0, 3)), dot_params(((1,), (0,)))),
        ((ints(2, 3), ints(3, 2)), dot_params(((1,), (0,)))),
        ((ints(2, 3) > 0, ints(3, 2) > 0), dot_params(((1,), (0,)))),
        ((floats(2, 3).astype(np.float16), floats(3, 2)), dot_params(((1,), (0,)))),
        ((floats(2, 3), floats(3, 2)),
         dot_params(((1,), (0,)), preferred_element_type=np.dtype("float16"))),
        ((ints(2, 3), floats(3, 2)), dot_params(((1,), (0,)))),
    ],
}


# --- Indexing ------------------------------------------------------------------------------------

def index(*rows):
    return np.array(rows, np.int32)


# What the accesses read: (operand shape, indices, numbers, window sizes). Some windows are out of
# bounds, wholly or in part.
ROWS = ((5, 3), index([1], [4], [1]), ((1,), (0,), (0,)), (1, 3))
ACCESSES = [
    ROWS,
    ((5, 3), index([1], [-1], [7]), ((1,), (0,), (0,)), (1, 3)),
    ((5, 6), index([1, 2], [0, 5], [3, 4], [4, 0], [-1, 1]), ((1, 2), (), (0, 1)), (2, 2)),
    ((4, 5), index([[3, 1], [0, 0]], [[2, 2], [9, 1]]), ((), (0, 1), (1, 0)), (1, 1)),
    ((4, 5, 6), index([1], [2]), ((0, 2), (1,), (1,)), (4, 1, 2)),
    ((2, 5, 3), index([[1], [4]], [[0], [5]]), ((2,), (1,), (1,), (0,), (0,)), (1, 1, 3)),
    ((2, 5, 3), index([[1], [4]], [[0], [3]], [[2], [2]]), ((0,), (1,), (1,), (0,), (1,)),
     (1, 1, 2)),
    ((4, 3), np.zeros((0, 1), np.int32), ((1,), (0,), (0,)), (1, 3)),
    ((4, 3), np.zeros((2, 0), np.int32), ((0, 2), (), ()), (2, 3)),
    ((5,), np.array(2, np.int32).reshape(1), ((0,), (), (0,)), (2,)),
]
MODES = (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP)
OUT_OF_BOUNDS = (1, 2, 3, 5)        # modes matter to these


def in_modes(numbers):
    return [(ACCESSES[i], mode) for i in numbers
            for mode in (MODES if i in OUT_OF_BOUNDS else MODES[i % 2:i % 2 + 1])]


def gather_sample(access, mode, dtype=np.float32, fill_value=None, **flags):
    shape, indices, numbers, sizes = access
    params = dict(dimension_numbers=GatherDimensionNumbers(*numbers), slice_sizes=sizes, mode=mode,
                  fill_value=fill_value, indices_are_sorted=False, unique_indices=False)
    return (floats(*shape).astype(dtype), indices), params | flags


def updates_shape(access):
    shape, indices, numbers, sizes = access
    window = [n for d, n in enumerate(sizes) if d not in {*numbers[1], *set(*numbers[3:4])}]
    result = list(indices.shape[:-1])
    for d, n in zip(numbers[0], window):
        result.insert(d, n)
    return result


def scatter_sample(access, mode, dtype=np.float32, **flags):
    shape, indices, numbers, sizes = access
    params = dict(dimension_numbers=ScatterDimensionNumbers(*numbers), mode=mode,
                  indices_are_sorted=False, unique_indices=False)
    updates = floats(*updates_shape(access), seed=1)
    return (floats(*shape).astype(dtype), indices, updates.astype(dtype)), params | flags


# In these no element is written twice, also after clipping; so the flag unique_indices is true.
UNIQUE = (1, 3, 4, 5, 6, 9)


def scatter_samples():
    return [*(scatter_sample(access, mode) for access, mode in in_modes(range(len(ACCESSES)))),
            scatter_sample(ROWS, GatherScatterMode.PROMISE_IN_BOUNDS),
            scatter_sample(ROWS, GatherScatterMode.CLIP, np.int32)]


def unique_samples():
    return [*(scatter_sample(access, mode, unique_indices=True)
              for access, mode in in_modes(UNIQUE)),
            scatter_sample(ACCESSES[1], GatherScatterMode.CLIP, np.int32, unique_indices=True)]


def dynamic(*starts, dtype=np.int32):
    return tuple(np.array(i, dtype) for i in starts)


indexing_samples = {
    "gather": [
        *(gather_sample(access, mode, fill_value=0 if mode is MODES[1] else None)
          for access, mode in in_modes(range(len(ACCESSES)))),
        gather_sample(ROWS, GatherScatterMode.PROMISE_IN_BOUNDS),
        gather_sample(ACCESSES[1], GatherScatterMode.FILL_OR_DROP, np.int32, fill_value=-7),
    ],
    "scatter-add": scatter_samples(),
    "scatter-sub": scatter_samples()[1::4],
    "scatter": unique_samples(),
    "scatter-mul": unique_samples(),
    "scatter-min": scatter_samples()[::2],
    "scatter-max": scatter_samples()[1::3],
    "dynamic_slice": [
        ((floats(5, 6), *dynamic(1, 2)), dict(slice_sizes=(2, 3))),
        ((floats(5, 6), *dynamic(4, -1)), dict(slice_sizes=(2, 3))),
        ((floats(5), *dynamic(9, dtype=np.uint8)), dict(slice_sizes=(0,))),
        ((ints(5), *dynamic(3)), dict(slice_sizes=(4,))),
        ((floats(),), dict(slice_sizes=())),
    ],
    "dynamic_update_slice": [
        ((floats(5, 6), floats(2, 3, seed=1), *dynamic(1, 2)), {}),
        ((floats(5, 6), floats(2, 3, seed=1), *dynamic(4, -1)), {}),
        ((ints(5), ints(2, seed=1), *dynamic(3)), {}),
    ],
}

# Where an element may be written twice, JAX has fewer rules for these two.
repeating_samples = {"scatter": scatter_samples(), "scatter-mul": scatter_samples()[::4]}

structural_samples = shape_samples | indexing_samples
