"""The structural primitives and dot_general against JAX: values, dtypes, errors and every rule."""
import jax.numpy as jnp
import numpy as np
import pytest
from against_jax import assert_same, check_batch, check_jvp, check_transpose, check_value, is_float
from jax import lax as jax_lax
from samples_structural import floats, ints, shape_samples

from minijax import dtypes
from minijax.avals import ShapedArray
from minijax.core import primitives
from minijax.primitives import dot, structural
from minijax.rules import UndefinedPrimal

SAMPLES = [(name, args, params) for name, samples in shape_samples.items()
           for args, params in samples]
FLOAT_SAMPLES = [s for s in SAMPLES if s[1] and all(map(is_float, s[1]))]


def tolerance(name, params):
    """True for exact equality, which all but sums give."""
    if name not in ("dot_general", "pad", "broadcast_in_dim"):
        return True
    return 1e-3 if params.get("preferred_element_type") == np.float16 else 1e-5


def ids(samples):
    return [f"{name}-{i}" for i, (name, *_) in enumerate(samples)]


@pytest.mark.parametrize("name,args,params", SAMPLES, ids=ids(SAMPLES))
def test_value(name, args, params):
    check_value(name, args, params, tolerance(name, params))


@pytest.mark.parametrize("name,args,params", SAMPLES, ids=ids(SAMPLES))
def test_jvp(name, args, params):
    if args:
        check_jvp(name, args, params, tolerance(name, params))


@pytest.mark.parametrize("name,args,params", FLOAT_SAMPLES, ids=ids(FLOAT_SAMPLES))
def test_transpose(name, args, params):
    # dot_general is linear in one operand at a time; of pad JAX can't transpose the value alone
    everything = () if name == "dot_general" else (tuple(range(len(args))),)
    for chosen in {*((i,) for i in range(len(args)) if (name, i) != ("pad", 1)), *everything}:
        check_transpose(name, args, params, chosen, tolerance(name, params))


def test_transpose_of_padding_value_alone():
    params = dict(padding_config=((1, 2, 1), (0, -1, 0)))
    ct = floats(8, 3)
    x, value = floats(3, 4), UndefinedPrimal(ShapedArray((), np.float32))
    found = primitives["pad"].rules["transpose"](ct, x, value, **params)
    assert found[0] is None
    inside = structural.pad(np.ones_like(x), np.float32(0), params["padding_config"])
    assert_same(found[1], ct[np.asarray(inside) == 0].sum(dtype=np.float32), 1e-5)


@pytest.mark.parametrize("name,args,params", SAMPLES, ids=ids(SAMPLES))
def test_batch(name, args, params):
    if args:
        check_batch(name, args, params, tolerance(name, params))


@pytest.mark.parametrize("name", shape_samples)
def test_every_kind_of_rule_is_there_or_impossible(name):
    for kind in ("impl", "abstract_eval", "jvp", "transpose", "batch"):
        assert (kind in primitives[name].rules) != (kind in primitives[name].impossible), kind


# --- Functions -----------------------------------------------------------------------------------

X = floats(2, 3, 4)

CALLS = [
    ("broadcast_in_dim", (X[0], (4, 3), (1, 0))), ("broadcast", (X, (2, 3))),
    ("broadcast", (2.0, ())),
    ("broadcast_to_rank", (X[0], 4)), ("expand_dims", (X, (0, -1))), ("expand_dims", (X, ())),
    ("reshape", (X, (4, 6))), ("reshape", (X, 24)), ("reshape", (X, (4, 6), (2, 0, 1))),
    ("reshape", (X, (2, 3, 4), (0, 1, 2))), ("collapse", (X, 1)), ("collapse", (X, 0, -1)),
    ("transpose", (X, (2, 1, 0))), ("squeeze", (X[:1, :, :1], (-1, 0))), ("squeeze", (X, ())),
    ("rev", (X, [0, 2])), ("slice", (X, (0, 1, 1), (2, 3, 4), (1, 1, 2))),
    ("slice_in_dim", (X, 1, -1, 2, -1)), ("slice_in_dim", (X, None, None)),
    ("slice_in_dim", (X, -2, None, 1, 1)), ("index_in_dim", (X, -1, 1)),
    ("index_in_dim", (X, 2, -1, False)), ("pad", (X[0], np.float32(1), [(1, 1, 1), (0, -1, 0)])),
    ("concatenate", ([X, X], 1)), ("concatenate", ([X], 0)), ("split", (X, (1, 0, 3), -1)),
    ("iota", (np.int8, 300)), ("iota", (jnp.bfloat16, 300)), ("iota", (float, 3)),
    ("broadcasted_iota", (np.float32, (3, 4), 1)), ("full", ((2, 3), 2)), ("full", ((2, 3), 3.5)),
    ("full", ((), True)), ("full", (3, np.float32(1))), ("full", ((2,), 1, np.int8)),
    ("full", ((2,), 1j)), ("full_like", (X, 2)), ("full_like", (2.0, 1)),
    ("full_like", (X, 1, int)),
    ("full_like", (X, 1, None, (2,))), ("dot", (X[0], X[0].T)), ("dot", (X[0], X[0, 0])),
    ("dot", (X[0, 0], X[0, 0])), ("batch_matmul", (X, X.transpose(0, 2, 1))),
    ("dot_general", (2.0, 3.0, (((), ()), ((), ())))),
    ("broadcast_shapes", ((2, 3), (3,), (1, 1, 3))),
    ("broadcast_shapes", ((), (0, 1), (1, 4))),
]


@pytest.mark.parametrize("name,args", CALLS, ids=[f"{c[0]}-{i}" for i, c in enumerate(CALLS)])
def test_function(name, args):
    ours = (getattr(structural, name, None) or getattr(dot, name))(*args)
    theirs = getattr(jax_lax, name)(*args)
    if name == "broadcast_shapes":
        assert ours == theirs
        return
    for out, their in zip(*(xs if isinstance(xs, (list, tuple)) else [xs] for xs in (ours, theirs)),
                          strict=True):
        assert_same(out, their, 1e-5 if name.startswith(("dot", "batch_matmul")) else True)
        assert out.weak_type == their.weak_type


def test_every_dtype_is_broadcast():
    for dtype in map(dtypes.canonicalize_dtype, dtypes.all_dtypes):
        row = np.ones(6).astype(dtype)
        for x in (row[:3], row[::2]):           # side by side in memory, or not
            out = np.asarray(structural.broadcast_in_dim(x, (2, 3), (1,)))
            assert out.dtype == dtype and (out == x).all()


def test_zeros_like():
    assert_same(structural.zeros_like(X), np.zeros_like(X))


DTYPES = ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64",
          "float8_e4m3fn"]


@pytest.mark.parametrize("lhs", DTYPES)
@pytest.mark.parametrize("rhs", [*DTYPES[:8:3], "same"])
def test_dot_dtypes(lhs, rhs):
    x, y = jnp.asarray(floats(4, 3)).astype(lhs), jnp.asarray(floats(3, 2, seed=1))
    y = y.astype(lhs if rhs == "same" else rhs)
    theirs = jax_lax.dot(x, y)
    ours = dot.dot(np.asarray(x), np.asarray(y))
    assert ours.dtype == theirs.dtype
    wide = np.complex64 if lhs == "complex64" else np.float32
    rounding = 2.0 ** -2 if "float8" in theirs.dtype.name else 2.0 ** -7
    np.testing.assert_allclose(np.asarray(ours).astype(wide), np.asarray(theirs).astype(wide),
                               rounding, rounding)


def test_narrow_floats_accumulate_in_float32():
    # 4096 ones: a bfloat16 accumulator would stop at 256
    ones = np.ones((1, 4096), jnp.bfloat16)
    assert float(np.asarray(dot.dot(ones, ones.T))[0, 0]) == 4096


def test_results_do_not_share_memory_that_is_written():
    x = np.array(X)
    structural.pad(x, np.float32(0), [(0, 0, 0)] * 3)
    assert (x == X).all()


# --- Errors --------------------------------------------------------------------------------------

BAD_CALLS = [
    ("transpose", (X, (0, 1))), ("transpose", (X, (0, 1, 1))),
    ("broadcast_in_dim", (X, (2, 3), (0, 1, 2))),
    ("broadcast_in_dim", (X, (2, 3, 4), (0, 1))), ("broadcast_in_dim", (X, (2, 3, 5), (0, 1, 2))),
    ("broadcast_in_dim", (X, (2, 3, 4, 4), (0, 1, 4))),
    ("broadcast_in_dim", (X[0, 0], (4, -1), (0,))),
    ("broadcast_in_dim", (X[0], (3, 3, 4), (1, 1))),
    ("reshape", (X, (-1,))), ("reshape", (X, (2.0, 12))), ("reshape", (X, (24,), (0, 1))),
    ("squeeze", (X, (0,))), ("squeeze", (X, (3,))), ("expand_dims", (X, (0, 0))),
    ("expand_dims", (X, (7,))), ("rev", (X, (0, 0))), ("rev", (X, (3,))), ("rev", (X, (-1,))),
    ("slice", (X, (0, 0), (1, 1, 1), (1, 1, 1))), ("slice", (X, (0, 0, 0), (1, 1, 5), (1, 1, 1))),
    ("slice", (X, (0, 2, 0), (1, 1, 1), (1, 1, 1))),
    ("slice", (X, (0, -1, 0), (1, 1, 1), (1, 1, 1))),
    ("slice", (X, (0, 0, 0), (1, 1, 1), (1, 1))), ("slice", (X, (0, 0, 0), (1, 1, 1), (1, 1, -1))),
    ("slice_in_dim", (X, None, None, -1)),
    ("index_in_dim", (X, 2, 0)), ("pad", (X, 1, [(0, 0, 0)] * 3)), ("pad", (X, X, [(0, 0, 0)] * 3)),
    ("pad", (X, np.float32(0), [(0, 0, 0)] * 2)), ("pad", (X, np.float32(0), [(0, 0, -1)] * 3)),
    ("pad", (X, np.float32(0), [(-2, -2, 0)] * 3)), ("concatenate", ([], 0)),
    ("concatenate", ([1.0, 2.0], 0)), ("concatenate", ([X, X[0]], 0)), ("concatenate", ([X, X], 3)),
    ("concatenate", ([X, X[:, :2]], 0)), ("concatenate", ([X, X.astype(int)], 0)),
    ("split", (X, (1, 2), 0)), ("split", (X, (1, 1), 5)), ("split", (X, (3, -1), 0)),
    ("iota", (bool, 3)), ("broadcasted_iota", (int, (3,), 1)), ("full", ((2,), [1, 2])),
    ("full", ((2.0,), 1)), ("full", ((-1,), 1)), ("broadcast_shapes", ((2, 3), (2,))),
    ("collapse", (X, 2, 1)), ("dot", (X, X)), ("dot", (X[0], X[0])), ("batch_matmul", (X, X[0])),
    ("dot_general", (X, X, (((3,), (0,)), ((), ())))),
    ("dot_general", (X, X, (((0,), (1,)), ((), ())))),
    ("dot_general", (X, X, (((0, 0), (0, 0)), ((), ())))),
    ("dot_general", (X, X, (((0,), (0,)), ((0,), (1,))))),
    ("dot_general", (X, X, (((0,), (0,)), ((0,), (0,))))),
    ("dot_general", (X, X, (((), ()), ((1, 1), (1, 1))))),
    ("dot", (ints(2, 2), np.ones((2, 2), bool), ), dict(preferred_element_type=np.int8)),
    ("dot", (X[0], X[0].T), dict(precision="very high")),
]


@pytest.mark.parametrize("name,args,kwargs", [(*c, {})[:3] for c in BAD_CALLS],
                         ids=[f"{c[0]}-{i}" for i, c in enumerate(BAD_CALLS)])
def test_error(name, args, kwargs):
    with pytest.raises(Exception) as theirs:
        getattr(jax_lax, name)(*args, **kwargs)
    with pytest.raises((TypeError, ValueError, IndexError)) as ours:
        (getattr(structural, name, None) or getattr(dot, name))(*args, **kwargs)
    assert type(ours.value) is type(theirs.value), (ours.value, theirs.value)


def test_reshape_to_another_size():
    # JAX's lax.reshape lets the compiler find this; jnp.reshape raises this TypeError
    with pytest.raises(TypeError, match=r"\(2, 3, 4\).*size 24.*\(5,\)"):
        structural.reshape(X, (5,))
