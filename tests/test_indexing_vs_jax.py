"""gather, scatter and dynamic slices against JAX: values, dtypes, errors and every rule."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_jax import (assert_same, check_batch, check_jvp, check_transpose, check_value,
                         is_float, jax_param)
from jax import lax as jax_lax
from samples_structural import (ACCESSES, ROWS, floats, gather_sample, index, indexing_samples,
                                repeating_samples, scatter_sample)

from minijax.array import as_array
from minijax.avals import typeof
from minijax.core import primitives
from minijax.interpreters.batching import batch_flat
from minijax.interpreters.jvp import jvp_flat
from minijax.primitives import indexing
from minijax.primitives.indexing import GatherDimensionNumbers, GatherScatterMode
from minijax.rules import AxisData, UndefinedPrimal, Zero

SAMPLES = [(name, args, params) for group in (indexing_samples, repeating_samples)
           for name, samples in group.items() for args, params in samples]
LINEAR_OPERANDS = {"gather": [(0,)], "scatter-add": [(0,), (2,), (0, 2)], "scatter-sub": [(0, 2)],
                   "scatter": [(0,), (2,), (0, 2)], "scatter-mul": [(0,), (2,)],
                   "dynamic_slice": [(0,)], "dynamic_update_slice": [(0,), (1,), (0, 1)]}


def ids(samples):
    return [f"{name}-{i}" for i, (name, *_) in enumerate(samples)]


every_sample = pytest.mark.parametrize("name,args,params", SAMPLES, ids=ids(SAMPLES))


@every_sample
def test_value(name, args, params):
    check_value(name, args, params)


def needs_unique(name, params, moving):
    """JAX has no such rule unless indices are unique."""
    unique = params.get("unique_indices", True)
    return not unique and (name == "scatter" or name == "scatter-mul" and 2 in moving)


@every_sample
def test_jvp(name, args, params):
    if name == "scatter-mul" and is_float(args[0]) and not params["unique_indices"]:
        with pytest.raises(NotImplementedError):
            check_jvp(name, args, params)
        return
    if name in ("scatter-min", "scatter-max") and params["mode"] is GatherScatterMode.CLIP:
        # JAX's rule clips what it writes but fills what it reads, with nan: give it clipped indices
        check_jvp(name, args, params, 1e-5, (args[0], clipped(args, params), args[2]))
    else:
        check_jvp(name, args, params, 1e-5)


def clipped(args, params):
    x, indices, updates = args
    numbers = params["dimension_numbers"]
    sizes = indexing.update_sizes(x.shape, updates.shape, numbers)
    limits = [x.shape[d] - sizes[d] for d in numbers.scatter_dims_to_operand_dims]
    return np.clip(indices, 0, np.array(limits, np.int32))


LINEAR_SAMPLES = [(name, args, params, moving) for name, args, params in SAMPLES
                  for moving in LINEAR_OPERANDS.get(name, ()) if is_float(args[0])]


@pytest.mark.parametrize("name,args,params,moving", LINEAR_SAMPLES, ids=ids(LINEAR_SAMPLES))
def test_transpose(name, args, params, moving):
    if needs_unique(name, params, moving):
        operands = [UndefinedPrimal(typeof(x)) if i in moving else x for i, x in enumerate(args)]
        with pytest.raises(NotImplementedError, match="unique_indices"):
            primitives[name].rules["transpose"](args[0], *operands, **params)
    else:
        check_transpose(name, args, params, moving, 2e-6)


@every_sample
def test_batch(name, args, params):
    check_batch(name, args, params, exact=2e-6)


@pytest.mark.parametrize("name", indexing_samples)
def test_every_kind_of_rule_is_there_or_impossible(name):
    for kind in ("impl", "abstract_eval", "jvp", "transpose", "batch"):
        assert (kind in primitives[name].rules) != (kind in primitives[name].impossible), kind


# --- Details -------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint32", "bool", "complex64"])
@pytest.mark.parametrize("fill_value", [None, 1])
def test_fill_values(dtype, fill_value):
    (x, indices), params = gather_sample(ACCESSES[1], None)
    x = np.asarray(jnp.asarray(x).astype(dtype))
    args = (x, indices, params["dimension_numbers"], params["slice_sizes"])
    ours = indexing.gather(*args, mode="fill", fill_value=fill_value)
    theirs = jax_lax.gather(*map(jax_param, args), mode="fill", fill_value=fill_value)
    assert_same(ours, theirs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint32", "complex64"])
@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_mul", "scatter_min",
                                  "scatter_max", "scatter_sub"])
def test_scatter_dtypes(name, dtype):
    if dtype == "complex64" and name in ("scatter_min", "scatter_max"):
        return
    (x, indices, updates), params = scatter_sample(ROWS, None)
    x, updates = (np.asarray(jnp.asarray(v).astype(dtype)) for v in (x * 9, updates * 9))
    args = (x, indices, updates, params["dimension_numbers"])
    ours = getattr(indexing, name)(*args)
    assert_same(ours, getattr(jax_lax, name)(*map(jax_param, args)), 1e-2)


@pytest.mark.parametrize("indices_dtype", [np.int8, np.uint8, np.uint32, np.int32])
def test_index_dtypes(indices_dtype):
    (x, _), params = gather_sample(ROWS, None)
    indices = np.array([[3], [200], [255]]).astype(indices_dtype)
    args = (x, indices, params["dimension_numbers"], params["slice_sizes"])
    for mode in ("clip", "fill"):
        theirs = jax_lax.gather(*map(jax_param, args), mode=mode)
        assert_same(indexing.gather(*args, mode=mode), theirs)


@pytest.mark.parametrize("name", ["scatter_min", "scatter_max"])
def test_extremes_pass_nans_on_and_share_tangents_at_ties(name):
    x = np.array([1, 2, np.nan, 4], np.float32)
    updates = np.array([1, 1, 3, np.nan, 0], np.float32)
    numbers = indexing.ScatterDimensionNumbers((), (0,), (0,))
    args = x, index([0], [0], [2], [3], [9]), updates, numbers
    ours, theirs = getattr(indexing, name), getattr(jax_lax, name)
    assert_same(ours(*args), theirs(*map(jax_param, args)))
    tie = np.array([1, 2, 3, 4], np.float32), np.array([1, 1, 3, 5, 0], np.float32)
    moving = np.array([5, 6, 7, 8], np.float32), np.array([1, 2, 3, 4, 5], np.float32)
    _, (ours_t,) = jvp_flat(lambda x, u: [ours(x, args[1], u, numbers)], tie, moving)
    _, theirs_t = jax.jvp(lambda x, u: theirs(x, args[1], u, jax_param(numbers)), tie, moving)
    assert_same(ours_t, theirs_t, 1e-6)


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "dynamic_update_slice"])
def test_operands_are_not_written_to(name):
    x, updates = as_array(floats(5, 3)), as_array(floats(3, 3, seed=1))
    before = np.array(x)
    if name == "dynamic_update_slice":
        indexing.dynamic_update_slice(x, updates, (0, 0))
    else:
        getattr(indexing, name)(x, ROWS[1], updates, indexing.ScatterDimensionNumbers(*ROWS[2]))
    assert (np.asarray(x) == before).all()


# --- Dynamic slices: functions -------------------------------------------------------------------

X = floats(5, 6)
CALLS = [
    ("dynamic_slice", (X, (1, -2), (2, 2))),
    ("dynamic_slice", (X, (np.int8(-1), np.int8(9)), (2, 2))),
    ("dynamic_slice", (X, np.array([1, 2]), (2, 2))),
    ("dynamic_slice", (X, (np.uint8(7),) * 2, (1, 1))),
    ("dynamic_slice", (np.float32(2), (), ())), ("dynamic_slice_in_dim", (X, -2, 2)),
    ("dynamic_slice_in_dim", (X, np.uint8(3), 3, -1)), ("dynamic_index_in_dim", (X, -1)),
    ("dynamic_index_in_dim", (X, 7, 1, False)), ("dynamic_update_slice", (X, X[:2, :2], (4, -1))),
    ("dynamic_update_slice_in_dim", (X, X[:2], 1, 0)),
    ("dynamic_update_slice_in_dim", (X, X[:, :2], -1, 1)),
    ("dynamic_update_index_in_dim", (X, X[0], -1, 0)),
    ("dynamic_update_index_in_dim", (X, X[:, :1], 2, 1)),
    ("index_take", (X, (np.array([0, -1]), np.array([5, -7])), (0, 1))),
    ("index_take", (X, (np.array([0, -1, 6]),), (1,))),
]


@pytest.mark.parametrize("name,args", CALLS, ids=ids(CALLS))
def test_function(name, args):
    as_jax = [tuple(map(jnp.asarray, a)) if name == "index_take" and i == 1 else a
              for i, a in enumerate(args)]
    ours, theirs = getattr(indexing, name)(*args), getattr(jax_lax, name)(*as_jax)
    assert_same(ours, theirs)
    assert ours.weak_type == theirs.weak_type


@pytest.mark.parametrize("start", [-9, -6, -1, 0, 3, 9])
def test_a_negative_start_is_normalised_once(start):
    def ours(x, i):
        return [indexing.dynamic_slice(x, (i,), (2,))]

    x, i = floats(5), np.array(start, np.int32)
    want = np.asarray(jax_lax.dynamic_slice(x, (i,), (2,)))
    assert_same(ours(x, i)[0], want)
    (primal,), _ = jvp_flat(ours, [x, i], [x, Zero.like(i)])
    assert_same(primal, want)
    (rows,), (dim,) = batch_flat(ours, AxisData(2), [x, np.stack([i, i])], [None, 0])
    assert dim == 0
    assert_same(rows, np.stack([want, want]))


def test_cotangent_of_an_out_of_range_slice_lands_on_the_clamped_elements():
    x, starts = np.arange(12, dtype=np.float32).reshape(2, 6), np.array([4, 9], np.int32)

    def total(x, i):
        return (jax_lax.dynamic_slice(x, (i,), (3,)) * jnp.array([1.0, 10.0, 100.0])).sum()

    want = jax.vmap(jax.grad(total))(x, starts)
    ct = np.tile(np.array([1, 10, 100], np.float32), (2, 1))
    numbers = GatherDimensionNumbers((1,), (), (1,), (0,), (0,))
    found = primitives["gather"].rules["transpose"](
        ct, UndefinedPrimal(typeof(x)), starts[:, None], dimension_numbers=numbers,
        slice_sizes=(1, 3), mode=GatherScatterMode.CLIP, fill_value=None, indices_are_sorted=True,
        unique_indices=True)
    assert_same(found[0], want)


# --- Errors --------------------------------------------------------------------------------------

def with_numbers(**changes):
    (x, indices), params = gather_sample(ROWS, None)
    return x, indices, params["dimension_numbers"]._replace(**changes), params["slice_sizes"]


GOOD = with_numbers()
SCATTER = (*scatter_sample(ROWS, None)[0], scatter_sample(ROWS, None)[1]["dimension_numbers"])
BAD_CALLS = [
    ("gather", with_numbers(offset_dims=(2,))), ("gather", with_numbers(offset_dims=(1, 1))),
    ("gather", with_numbers(collapsed_slice_dims=(5,))),
    ("gather", with_numbers(collapsed_slice_dims=())),
    ("gather", with_numbers(start_index_map=(0, 1))),
    ("gather", with_numbers(start_index_map=(2,))),
    ("gather", with_numbers(operand_batching_dims=(0,))),
    ("gather", with_numbers(operand_batching_dims=(1,), start_indices_batching_dims=(1,))),
    ("gather", (*GOOD[:3], (1, 4))), ("gather", (*GOOD[:3], (2, 3))), ("gather", (*GOOD[:3], (1,))),
    ("gather", (GOOD[0], GOOD[1].astype(np.float32), *GOOD[2:])),
    ("gather", (*GOOD, {"mode": "wrong"})),
    ("scatter", (SCATTER[0], SCATTER[1], SCATTER[2].astype(int), SCATTER[3])),
    ("scatter", (SCATTER[0], SCATTER[1], SCATTER[2][:2], SCATTER[3])),
    ("scatter_add", (SCATTER[0], SCATTER[1], SCATTER[2][0], SCATTER[3])),
    ("scatter_add", (SCATTER[0], SCATTER[1], np.tile(SCATTER[2], 2), SCATTER[3])),
    ("scatter_add", (SCATTER[0], SCATTER[1].astype(np.float32), *SCATTER[2:])),
    ("dynamic_slice", (X, (0,), (1, 1))), ("dynamic_slice", (X, (0, 0), (1, 9))),
    ("dynamic_slice", (X, (0, 0), (1, -1))), ("dynamic_slice", (X, (0, 0.0), (1, 1))),
    ("dynamic_slice", (X, (0, np.int8(0)), (1, 1))),
    ("dynamic_update_slice", (X, X.astype(int), (0, 0))),
    ("dynamic_update_slice", (X[:2], X, (0, 0))),
    ("dynamic_update_slice", (X, X, (0, 0, 0))),
]


@pytest.mark.parametrize("name,args", BAD_CALLS, ids=ids(BAD_CALLS))
def test_error(name, args):
    args, kwargs = (args[:-1], args[-1]) if isinstance(args[-1], dict) else (args, {})
    with pytest.raises(Exception) as theirs:
        getattr(jax_lax, name)(*map(jax_param, args), **kwargs)
    with pytest.raises((TypeError, ValueError)) as ours:
        getattr(indexing, name)(*args, **kwargs)
    assert type(ours.value) is type(theirs.value), (ours.value, theirs.value)
