"""x[index] and x.at[index]: against NumPy where it has the same meaning, against JAX elsewhere."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy_against_jax import OURS, agree, agree_transformed, jax

from minijax.config import enable_x64

mnp = OURS.np
SHAPE = (3, 4, 5)
X = np.arange(60, dtype=np.float32).reshape(SHAPE)


# --- Indices drawn at random ---------------------------------------------------------------------

@st.composite
def array_index(draw, size, lead):
    shape = draw(st.sampled_from([(), (2,), (1,), (3, 2), (0,)])) if lead is None else \
        draw(st.sampled_from([lead, (), (1,)]))
    return draw(hnp.arrays(np.int32, shape, elements=st.integers(-size, size - 1)))


@st.composite
def indices(draw, shape=SHAPE, arrays=True):
    """A valid NumPy index: numbers, slices, new axes, an ellipsis, arrays, masks."""
    kinds = ["slice", "slice", "int", "new",
             "ellipsis"] + ["array"] * 2 * arrays + ["mask"] * arrays
    lead = draw(st.sampled_from([(2,), (3, 2), None])) if arrays else None
    out, axis, used = [], 0, False
    while axis < len(shape) and draw(st.booleans() if len(out) > 2 else st.just(True)):
        kind = draw(st.sampled_from(kinds))
        n = shape[axis]
        if kind == "slice":
            out.append(draw(st.slices(n)))
        elif kind == "int":
            out.append(draw(st.integers(-n, n - 1)))
        elif kind == "array":
            out.append(draw(array_index(n, lead)))
        elif kind == "mask":
            out.append(draw(hnp.arrays(bool, (n,))) if lead is None else draw(array_index(n, lead)))
        elif kind == "new":
            out.append(None)
            continue
        elif not used:
            out.append(Ellipsis)
            used = True
            axis += draw(st.integers(0, len(shape) - axis - 1))
            continue
        axis += kind not in ("new", "ellipsis")
    return tuple(out)


def numpy_result(f):
    try:
        return f()
    except IndexError:      # shapes of arrays and masks that don't broadcast
        return None


@settings(max_examples=200, deadline=None)
@given(indices())
def test_reading_is_numpys(index):
    expected = numpy_result(lambda: X[index])
    if expected is None:
        with pytest.raises((ValueError, IndexError)):
            mnp.asarray(X)[index]
        return
    np.testing.assert_array_equal(np.asarray(mnp.asarray(X)[index]), expected)


@settings(max_examples=25, deadline=None)
@given(indices())
def test_reading_under_jit_is_numpys(index):
    expected = numpy_result(lambda: X[index])
    if expected is None:
        return
    arrays = [i for i in index if isinstance(i, np.ndarray) and i.dtype != bool]

    def read(x, arrays):
        rest = iter(arrays)
        return x[tuple(next(rest) if isinstance(i, np.ndarray) and i.dtype != bool else i
                       for i in index)]
    np.testing.assert_array_equal(np.asarray(OURS.jit(read)(X, arrays)), expected)


@settings(max_examples=60, deadline=None)
@given(indices())
def test_gradient_of_reading_counts_uses(index):
    expected = np.zeros(SHAPE, np.float32)
    if numpy_result(lambda: np.add.at(expected, index, 1) or True) is None:
        return
    found = OURS.grad(lambda x: mnp.sum(x[index]))(X)
    np.testing.assert_array_equal(np.asarray(found), expected)


@settings(max_examples=120, deadline=None)
@given(indices(), st.sampled_from(["add", "min", "max", "multiply", "subtract"]))
def test_updates_are_those_of_ufunc_at(index, name):
    ufunc = {"min": np.minimum, "max": np.maximum}.get(name) or getattr(np, name)
    expected = X.copy()
    if numpy_result(lambda: ufunc.at(expected, index, 7) or True) is None:
        return
    found = getattr(mnp.asarray(X).at[index], name)(7)
    np.testing.assert_array_equal(np.asarray(found), expected)


@settings(max_examples=80, deadline=None)
@given(indices(arrays=False))
def test_setting_values_at_basic_indices(index):
    expected = X.copy()
    values = -np.arange(1, expected[index].size + 1,
                        dtype=np.float32).reshape(expected[index].shape)
    expected[index] = values
    np.testing.assert_array_equal(np.asarray(mnp.asarray(X).at[index].set(values)), expected)


@settings(max_examples=20, deadline=None)
@given(indices(), st.sampled_from(["clip", "fill", "promise_in_bounds", None]))
def test_reading_out_of_bounds_is_jaxs(index, mode):
    far = tuple(i * 3 if isinstance(i, (int, np.ndarray)) and getattr(i, "dtype", None) != bool
                else i
                for i in index)
    if numpy_result(lambda: X[index]) is None:
        return
    agree(lambda m: m.np.asarray(X).at[far].get(mode=mode))


# --- What JAX decides ----------------------------------------------------------------------------

V = np.arange(5, dtype=np.float32)
INDICES = {
    "past the end": 20, "before the start": -7, "scalar array": np.int32(20),
    "vector": np.array([20, -20, 3]), "unsigned": np.array([1, 7], np.uint8),
    "int8": np.array([-1, -5, 100], np.int8), "True": True, "False": False,
    "None": None, "empty tuple": (), "empty list in tuple": ([],), "list in tuple": ([0, 3],),
    "mask": V > 2, "mask list": ([True, False, True, False, False],), "nested": (None, [1, 2]),
    "float": 1.5, "string": "a", "list": [1, 2], "nested list": [1, [2]], "list with None": [None],
    "float array": np.array([1.0]), "too many": (1, 2), "two ellipses": (..., ...),
    "object": object(),
    "dict": {}, "short mask": np.array([True, False]), "2d mask": np.ones((5, 2), bool),
    "complex": 1j, "float in tuple": (1.0,), "slice of floats": slice(0.5, 2),
    "tuple of bool": (True, 1),
    "scalar mask": np.array(True), "reversed": slice(None, None, -2),
    "step 0": slice(None, None, 0),
}


@pytest.mark.parametrize("name", INDICES)
def test_kinds_of_index(name):
    agree(lambda m: m.np.asarray(V)[INDICES[name]])


@pytest.mark.parametrize("name", INDICES)
def test_kinds_of_index_to_set(name):
    agree(lambda m: m.np.asarray(V).at[INDICES[name]].set(7))


@pytest.mark.parametrize("mode", [None, "clip", "fill", "drop", "promise_in_bounds", "wrong"])
@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("index", [2, -1, 20, -20, np.array([1, 20, -20, -1])], ids=str)
def test_modes(index, wrap, mode):
    agree(lambda m: m.np.asarray(V).at[index].get(mode=mode, wrap_negative_indices=wrap))
    agree(lambda m: m.np.asarray(V).at[index].add(5, mode=mode, wrap_negative_indices=wrap))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bool", "complex64", "bfloat16"])
def test_fill_values(dtype):
    agree(lambda m: m.np.ones(3, dtype).at[np.array([1, 5])].get(mode="fill"))
    agree(lambda m: m.np.ones(3, dtype).at[np.array([1, 5])].get(mode="fill", fill_value=0))


@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "mul", "divide", "power",
                                  "min",
                                  "max"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_update_methods(name, dtype):
    values = np.array([3, 2, 2], dtype)
    agree(lambda m: getattr(m.np.arange(1, 6).astype(dtype).at[np.array([0, 3, -1])], name)(values))
    agree(lambda m: getattr(m.np.arange(1, 6).astype(dtype).at[1:4], name)(values))
    agree(lambda m: getattr(m.np.arange(1, 6).astype(dtype).at[:], name)(2))


def test_update_of_unknown_option():
    with pytest.raises(TypeError):
        mnp.arange(3).at[0].set(1, inplace=True)


def test_apply():
    for index in (1, slice(1, 4), np.array([1, 3]), np.array([1, 1, 3])):
        agree(lambda m: m.np.arange(1., 6.).at[index].apply(lambda x: x * x + 1))


def test_dtypes_of_updates():
    agree(lambda m: m.np.arange(3).at[0].set(2.5))
    agree(lambda m: m.np.arange(3.).at[0].set(2))
    agree(lambda m: m.np.arange(3, dtype="int8").at[0].set(5))
    agree(lambda m: m.np.arange(3, dtype="uint8").at[0].add(np.int32(5)))
    agree(lambda m: m.np.zeros(3, bool).at[0].set(True))
    with pytest.warns(FutureWarning, match="incompatible types"):
        mnp.arange(3).at[0].set(2.5)


def test_shapes_of_updates():
    agree(lambda m: m.np.zeros((3, 4)).at[1].set(np.arange(4.)))
    agree(lambda m: m.np.zeros((3, 4)).at[:, None, 1].set(np.ones((3, 1))))
    agree(lambda m: m.np.zeros((3, 4)).at[1].set(np.ones((2, 4))))
    agree(lambda m: m.np.zeros((3, 4)).at[1].set(np.ones((1, 4))))
    agree(lambda m: m.np.zeros((3, 4)).at[::-1].set(np.arange(12.).reshape(3, 4)))
    agree(lambda m: m.np.zeros((0, 4)).at[:].set(1))
    agree(lambda m: m.np.zeros(()).at[()].set(1))
    agree(lambda m: m.np.zeros(()).at[None].add(2))


# --- Transformations -----------------------------------------------------------------------------

READS = {
    "number": lambda x: x[1],
    "slices": lambda x: x[1:, ::-2],
    "new axis": lambda x: x[None, 1:, ..., None],
    "array": lambda x: x[np.array([0, 2, 0])],
    "pairs": lambda x: x[np.array([0, 2]), np.array([3, -1])],
    "mixed": lambda x: x[1:, np.array([[0], [2]])],
    "mask": lambda x: x[X[:, :, 0] > 20],
    "fill": lambda x: x.at[np.array([0, 9])].get(mode="fill", fill_value=3.0),
    "set": lambda x: x.at[1].set(5.0),
    "add": lambda x: x.at[np.array([0, 0])].add(2.0),
    "multiply": lambda x: x.at[np.array([0, 2])].multiply(3.0, unique_indices=True),
    "max": lambda x: x.at[np.array([0, 2])].max(20.0),
    "set out of bounds": lambda x: x.at[7].set(1.0),
}


@pytest.mark.parametrize("name", READS)
def test_reads_under_transformations(name):
    agree_transformed(lambda m, x: READS[name](m.np.asarray(x)), X[..., 0])


def test_gradients_of_values_to_set():
    values = np.array([3., 4.], np.float32)
    for update in ("set", "add", "subtract", "min", "max"):
        agree_transformed(lambda m, v: getattr(m.np.arange(4.).at[np.array([1, 2])], update)(v),
                          values)


@pytest.mark.parametrize("index", [2, -1, 7, -9])
def test_traced_number_as_index(index):
    agree_transformed(lambda m, i: m.np.asarray(V)[i], np.int32(index), differentiable=False)
    agree_transformed(lambda m, i: m.np.asarray(X)[1:, i, ::-1], np.int32(index),
                      differentiable=False)
    agree_transformed(lambda m, i: m.np.asarray(X)[i, i], np.int32(index), differentiable=False)
    agree(lambda m: m.jit(m.grad(lambda x, i: (x[i] ** 2).sum()))(X, index))


def test_traced_array_as_index():
    places = np.array([2, -1, 7, -9], np.int32)
    agree_transformed(lambda m, i: m.np.asarray(X)[i], places, differentiable=False)
    agree_transformed(lambda m, i: m.np.asarray(X)[:, i, 1:3], places, differentiable=False)
    agree_transformed(lambda m, i: m.np.asarray(X).at[:, i].add(1.0), places, differentiable=False)


def test_mapping_both_array_and_index():
    places = np.array([0, 2, -1], np.int32)
    agree(lambda m: m.vmap(lambda x, i: x[i])(X, places))
    agree(lambda m: m.vmap(lambda x, i: x.at[i].set(-1.0))(X, places))
    agree(lambda m: m.vmap(lambda x, i: x[..., i], in_axes=(1, 0))(X, np.arange(4)))
    agree(lambda m: m.vmap(m.vmap(lambda x, i: x[i], (0, None)), (None, 0))(X, places))


def test_traced_mask_is_refused():
    for use in (lambda x: x[x > 1], lambda x: x.at[x > 1].set(0.0)):
        agree(lambda m: m.jit(lambda x: use(x))(V))
    agree(lambda m: m.grad(lambda x: x[x > 1].sum())(V))     # known under grad alone
    agree(lambda m: m.jit(lambda i: m.np.asarray(V)[1:i])(2))


# --- Functions -----------------------------------------------------------------------------------

M = np.arange(12, dtype=np.float32).reshape(3, 4)
ROWS = np.array([[1, -1], [0, 2], [3, 9]], np.int32)
MASK = M % 3 == 1

FUNCTIONS = {
    "take": lambda np_: [np_.take(M, np.array([2, -1, 20])),
                         np_.take(M, np.array([0, 5, -1]), axis=0),
                         np_.take(M, 1, axis=1), np_.take(M, np.array([[7, -9]]), axis=1,
                                                          mode="clip"),
                         np_.take(M, np.array([7, -9]), axis=1, mode="wrap"),
                         np_.take(M, np.array([9]), axis=0, fill_value=-1)],
    "take bools": lambda np_: [np_.take(M, np.array([True, False]), axis=0), np_.take(M, True)],
    "take nothing": lambda np_: np_.take(np.zeros((0, 3), np.float32), np.array([0]), axis=0),
    "take mode": lambda np_: np_.take(M, 1, mode="raise"),
    "take mode 2": lambda np_: np_.take(M, 1, mode="x"),
    "write in no mode, known place": lambda np_: np_.asarray(M).at[0].set(1.0, mode="x"),
    "write in no mode, mask": lambda np_: np_.asarray(M).at[M > 0].add(1.0, mode="x"),
    "take out": lambda np_: np_.take(M, 1, out=M),
    "take_along_axis": lambda np_: [np_.take_along_axis(M, ROWS, 1),
                                    np_.take_along_axis(M, ROWS[:1, :], 1),
                                    np_.take_along_axis(M, ROWS, -1, mode="clip"),
                                    np_.take_along_axis(M, np.array([3, 30]), None)],
    "take_along_axis broadcast": lambda np_: np_.take_along_axis(M[:1], ROWS, 1),
    "take_along_axis dtype": lambda np_: np_.take_along_axis(M, M, 1),
    "take_along_axis rank": lambda np_: np_.take_along_axis(M, ROWS[0], 1),
    "put_along_axis": lambda np_: [np_.put_along_axis(M, ROWS, 99, 1, inplace=False),
                                   np_.put_along_axis(M, np.array([5]), 99, None, inplace=False)],
    "put_along_axis in place": lambda np_: np_.put_along_axis(M, ROWS, 99, 1),
    "put": lambda np_: [np_.put(M, np.array([0, 30]), np.array([5., 6.]), inplace=False),
                        np_.put(M, np.array([0, 30]), 5., mode="clip", inplace=False),
                        np_.put(M, np.array([0, 30]), np.array([5., 6., 7.]), mode="wrap",
                                inplace=False)],
    "put in place": lambda np_: np_.put(M, 1, 1),
    "place": lambda np_: np_.place(M, MASK, np.array([7., 8., 9.]), inplace=False),
    "place sizes": lambda np_: np_.place(M, MASK[0], 1., inplace=False),
    "fill_diagonal": lambda np_: [np_.fill_diagonal(M, 7, inplace=False),
                                  np_.fill_diagonal(M, np.array([1., 2.]), inplace=False)],
    "fill_diagonal 1": lambda np_: np_.fill_diagonal(M[0], 7, inplace=False),
    "nonzero": lambda np_: [np_.nonzero(MASK), np_.nonzero(MASK, size=6), np_.nonzero(MASK, size=2),
                            np_.nonzero(MASK, size=6, fill_value=-1),
                            np_.nonzero(MASK, size=6, fill_value=(7, 8)), np_.nonzero(M)],
    "nonzero of a number": lambda np_: np_.nonzero(5),
    "nonzero size 0": lambda np_: np_.nonzero(MASK, size=0),
    "nonzero empty": lambda np_: np_.nonzero(np.zeros((0, 2)), size=2),
    "flatnonzero": lambda np_: [np_.flatnonzero(MASK),
                                np_.flatnonzero(MASK, size=9, fill_value=-1)],
    "argwhere": lambda np_: [np_.argwhere(MASK), np_.argwhere(MASK, size=6, fill_value=-1),
                             np_.argwhere(3)],
    "where": lambda np_: [np_.where(MASK), np_.where(MASK, M, 0), np_.where(MASK, 1, 2),
                          np_.where(MASK, size=3, fill_value=1), np_.where(M[:1] > 1, 1, M[:, :1]),
                          np_.where(1, 2, 3.0)],
    "where one": lambda np_: np_.where(MASK, 1),
    "where size": lambda np_: np_.where(MASK, 1, 2, size=3),
    "compress": lambda np_: [np_.compress(np.array([True, False, True]), M, axis=0),
                             np_.compress(np.array([True, False, True]), M),
                             np_.compress(np.array([False, True]), M, axis=1, size=2,
                                          fill_value=7)],
    "compress long": lambda np_: np_.compress(np.array([True] * 5), M, axis=0),
    "extract": lambda np_: [np_.extract(MASK, M), np_.extract(MASK, M, size=6, fill_value=-1)],
    "unravel_index": lambda np_: [np_.unravel_index(np.array([0, 5, 11, 20, -1, -30]), (3, 4)),
                                  np_.unravel_index(7, (2, 2, 2)), np_.unravel_index(3, 6)],
    "ravel_multi_index": lambda np_: [
        np_.ravel_multi_index((np.array([0, 2]), np.array([3, 1])), (3, 4)),
        np_.ravel_multi_index((np.array([0, 5]), np.array([3, -1])), (3, 4), mode="clip"),
        np_.ravel_multi_index((np.array([0, 5]), np.array([3, -1])), (3, 4), mode="wrap",
                              order="F")],
    "ravel_multi_index bounds": lambda np_: np_.ravel_multi_index((np.array([9]), np.array([0])),
                                                                  (3, 4)),
    "ix_": lambda np_: [np_.ix_(np.array([0, 2]), np.array([1, 3])),
                        np_.ix_(np.array([True, False]), np.array([1]))],
    "ix_ rank": lambda np_: np_.ix_(M),
    "diag_indices": lambda np_: [np_.diag_indices(3), np_.diag_indices(2, 3)],
    "diag_indices_from": lambda np_: np_.diag_indices_from(M[:, :3]),
    "diag_indices_from shape": lambda np_: np_.diag_indices_from(M),
    "tril_indices": lambda np_: [np_.tril_indices(3), np_.tril_indices(3, 1, 4),
                                 np_.tril_indices(2, -1)],
    "triu_indices": lambda np_: [np_.triu_indices(3), np_.triu_indices(3, 1, 4),
                                 np_.triu_indices(2, -1)],
    "tril_indices_from": lambda np_: [np_.tril_indices_from(M), np_.triu_indices_from(M, 1)],
    "mask_indices": lambda np_: np_.mask_indices(3, np_.triu),
    "select": lambda np_: [np_.select([M > 8, M > 4], [M, -M], 1), np_.select([M > 8], [1.5])],
    "select lengths": lambda np_: np_.select([M > 8], [M, M]),
    "select none": lambda np_: np_.select([], []),
    "choose": lambda np_: [np_.choose(np.array([0, 1, 1]), [np.arange(3.), -np.arange(3.)]),
                           np_.choose(np.array([0, 5, -1]), [np.arange(3), 7], mode="wrap"),
                           np_.choose(np.array([0, 5, -1]), [np.arange(3), 7], mode="clip")],
    "choose bounds": lambda np_: np_.choose(np.array([2]), [1, 2]),
    "piecewise": lambda np_: [np_.piecewise(M, [M < 3, M > 8], [0, lambda x: x * 2]),
                              np_.piecewise(M, [M < 3, M > 8], [0, lambda x: x * 2, lambda x: -x])],
    "piecewise lengths": lambda np_: np_.piecewise(M, [M < 3], [1, 2, 3]),
    "delete": lambda np_: [np_.delete(M, 1, axis=0), np_.delete(M, np.array([0, -1]), axis=1),
                           np_.delete(M, slice(1, 3)), np_.delete(M, M[0] > 1, axis=1),
                           np_.delete(M, np.array([0, 0, 2]), axis=1)],
    "delete unique": lambda np_: np_.delete(M, np.array([-1, 1]), axis=1,
                                            assume_unique_indices=True),
    "delete bounds": lambda np_: [np_.delete(M, np.array([20]), axis=1)],
    "delete number bounds": lambda np_: [np_.delete(M, 20, axis=1)],
    "delete mask size": lambda np_: [np_.delete(M, M[0] > 1, axis=0)],
    "insert": lambda np_: [np_.insert(M, 1, 7., axis=0), np_.insert(M, np.array([0, 2, 2]), 9.,
                                                                    axis=1),
                           np_.insert(M, slice(0, 4, 2), -1.),
                           np_.insert(M[0], 2, np.array([5., 6.])),
                           np_.insert(M, 1, np.arange(3.), axis=1),
                           np_.insert(M[0], np.array([3, 1]), np.array([5., 6.]))],
    "insert dtype": lambda np_: np_.insert(M, 1.5, 1),
    "mgrid": lambda np_: [np_.mgrid[:3, 1:3], np_.mgrid[0:1:5j], np_.mgrid[:4],
                          np_.mgrid[0:1:3j, :2]],
    "ogrid": lambda np_: [np_.ogrid[:3, 1:3], np_.ogrid[0:1:5j]],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    agree(lambda m: FUNCTIONS[name](m.np))


WIDE = ["nonzero", "flatnonzero", "argwhere", "where", "unravel_index", "ravel_multi_index",
        "diag_indices", "tril_indices", "insert", "mgrid", "take", "compress"]


@pytest.mark.parametrize("name", WIDE)
def test_functions_in_64_bit(name):
    with jax.enable_x64(True), enable_x64(True):
        agree(lambda m: FUNCTIONS[name](m.np))


def test_functions_under_transformations():
    x = np.array([3., 1., 4., 1., 5.], np.float32)
    agree_transformed(lambda m, x: m.np.take(x, np.array([0, 0, 3])), x)
    agree_transformed(lambda m, x: m.np.take_along_axis(x, np.array([0, 0, 3]), 0), x)
    agree_transformed(lambda m, x: m.np.put_along_axis(x, np.array([1]), 7., 0, inplace=False), x)
    agree_transformed(lambda m, x: m.np.nonzero(x > 2, size=4), x, differentiable=False)
    agree_transformed(lambda m, x: m.np.where(x > 2, x ** 2, 0), x)
    agree_transformed(lambda m, x: m.np.select([x > 2, x > 0], [x ** 2, -x]), x)
    agree_transformed(lambda m, x: m.np.delete(x, 1), x)
    agree_transformed(lambda m, x: m.np.insert(x, 1, x[2]), x)
    agree_transformed(lambda m, x: m.np.piecewise(x, [x < 2, x > 3],
                                                  [lambda v: v ** 2, 5., lambda v: -v]),
                      x)
    agree(lambda m: m.jit(lambda x: m.np.nonzero(x > 2))(x))
    agree(lambda m: m.jit(lambda i: m.np.delete(m.np.arange(4.), i))(2))


def test_integers_of_four_bits_count_from_the_end():
    index = mnp.asarray([-1, 0, -4, 3], mnp.int4)
    for f in (lambda i: mnp.arange(4)[i], OURS.jit(lambda i: mnp.arange(4)[i])):
        np.testing.assert_array_equal(f(index), [3, 0, 0, 3])
