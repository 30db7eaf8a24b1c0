"""Elementwise primitives, reductions, running reductions and sorting against JAX, rule by rule."""
import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from against_jax import (JAX_ONLY, as_list, assert_same, bind, check_batch, check_transpose,
                         is_float, jax_bind, tangent_like)
from jax import lax as jax_lax
from samples import elementwise_samples, floats, reduction_samples, sorting_samples

import minijax
from minijax.avals import typeof
from minijax.compiler.executable import compile_jaxpr
from minijax.core import RULE_KINDS, Primitive, primitives
from minijax.interpreters.jvp import jvp_flat, jvp_instantiated
from minijax.primitives import cumulative, elementwise, reductions, sorting
from minijax.rules import Zero, instantiate_zeros

with_accuracy = ("cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh").split()
JAX_ONLY |= {name: dict(accuracy=None) for name in with_accuracy}
JAX_ONLY |= {"mul": dict(out_dtype=None), "reduce_sum": dict(out_sharding=None),
             "convert_element_type": dict(sharding=None)}

OURS = elementwise_samples | reduction_samples | sorting_samples
# JAX does not export these two primitives
SAMPLES = [(name, i, args, params) for name, samples in OURS.items()
           for i, (args, params) in enumerate(samples) if name not in ("add_any", "copy")]


def tolerance(name, args):
    """What rounding leaves open: nothing where a result is exact by definition."""
    rounded = name == "mul" and np.iscomplexobj(args[0])     # a complex product is a sum
    if name in EXACT and not rounded or not any(map(is_float_like, args)):
        return True
    dtype = np.asarray(args[-1]).dtype
    return {"float16": 4e-3, "bfloat16": 3e-2}.get(dtype.name, 3e-6)


EXACT = set("""neg add sub mul max min abs sign eq ne lt le gt ge is_finite select_n clamp
    floor ceil round nextafter reduce_precision real imag complex conj convert_element_type
    bitcast_convert_type reduce_max reduce_min argmax argmin cummax cummin sort top_k""".split())


def is_float_like(x):
    return is_float(x) or np.asarray(x).dtype == ml_dtypes.bfloat16


def with_tangents(samples):
    # the test's tangents know float32 and complex64
    return [s for s in samples if any(map(is_float, s[2]))
            and all(np.asarray(x).dtype.itemsize >= 4 or not is_float_like(x) for x in s[2])
            and "jvp" not in primitives[s[0]].impossible]


# --- Each rule ---------------------------------------------------------------------------------
# JAX compiles each operation it meets, so it computes all samples of a primitive in one program.

@functools.cache
def jax_values(name):
    """JAX's results of each sample."""
    def run(all_args):
        return [as_list(name, jax_bind(name, *args, **params))
                for args, (_, params) in zip(all_args, OURS[name], strict=True)]
    return jax.jit(run)([args for args, _ in OURS[name]])


@pytest.mark.parametrize("name,i", [(name, i) for name, i, *_ in SAMPLES])
def test_value(name, i):
    args, params = OURS[name][i]
    outs = bind(name, args, params)
    avals = as_list(name, primitives[name].rules["abstract_eval"](*map(typeof, args), **params))
    for out, their, aval in zip(outs, jax_values(name)[i], avals, strict=True):
        assert_same(out, their, tolerance(name, args))
        assert typeof(out) == aval


def moving_sets(name, args):
    """The operands to move: all, and each alone; but not those that JAX cannot differentiate by."""
    floats = [i for i, x in enumerate(args) if is_float(x)]
    if name == "polygamma" or name == "clamp" and np.ndim(args[0]) < np.ndim(args[1]):
        return [[1]]
    return [floats, *([i] for i in floats if len(floats) > 1)]


def jax_jvp(name, args, params, moving, tangents):
    def f(*xs):
        full = dict(enumerate(args)) | dict(zip(moving, xs))
        return as_list(name, jax_bind(name, *full.values(), **params))
    return jax.jvp(f, [args[i] for i in moving], tangents)[1]


@functools.cache
def jax_tangents(name):
    """JAX's tangents of each sample in MOVING and each set of operands that move."""
    samples = [(args, params) for other, _, args, params in MOVING if other == name]

    def run(all_args):
        return [[jax_jvp(name, args, params, moving,
                         [tangent_like(known[i], 5 + i) for i in moving])
                 for moving in moving_sets(name, known)]
                for args, (known, params) in zip(all_args, samples, strict=True)]
    return jax.jit(run)([args for args, _ in samples])


MOVING = with_tangents(SAMPLES)


@pytest.mark.parametrize("name,i", [(name, i) for name, i, *_ in MOVING])
def test_jvp(name, i):
    args, params = OURS[name][i]
    theirs = jax_tangents(name)[[j for other, j, *_ in MOVING if other == name].index(i)]
    for moving, their in zip(moving_sets(name, args), theirs, strict=True):
        tangents = [tangent_like(x, 5 + j) if j in moving else Zero.like(x)
                    for j, x in enumerate(args)]
        _, outs = jvp_flat(lambda *xs: bind(name, xs, params), args, tangents)
        for out, t in zip(outs, their, strict=True):
            assert_same(instantiate_zeros(out), t, 2e-5)


def test_jvp_of_clamp_by_scalar_bounds():
    x, t, low = floats(2, 3), floats(2, 3, seed=1), np.float32(-0.3)
    _, ours = our_jvp(elementwise.clamp, (low, x, low + 1), (np.float32(1), t, np.float32(2)))
    assert_same(ours, np.where(x < low, np.float32(1), np.where(x > low + 1, np.float32(2), t)))


LINEAR = {"neg": [(0,)], "add": [(0,), (1,), (0, 1)], "sub": [(0,), (1,), (0, 1)],
          "mul": [(0,), (1,)], "div": [(0,)], "select_n": [(1,), (2,), (1, 2)], "real": [(0,)],
          "imag": [(0,)],
          "complex": [(0,), (1,), (0, 1)], "conj": [(0,)], "convert_element_type": [(0,)],
          "reduce_sum": [(0,)], "cumsum": [(0,)], "reduce_precision": [(0,)]}
TRANSPOSED = [(name, i) for name, i, args, params in MOVING if name in LINEAR and is_float(args[-1])
              and not params.get("new_dtype", np.dtype("f")).kind in "biuV"]


@pytest.mark.parametrize("name,i", TRANSPOSED)
def test_transpose(name, i):
    args, params = OURS[name][i]
    for chosen in LINEAR[name]:
        check_transpose(name, args, params, chosen, 1e-2 if "new_dtype" in params else 1e-6)


@pytest.mark.parametrize("name,i", [(name, i) for name, i, *_ in SAMPLES])
def test_batch(name, i):
    args, params = OURS[name][i]
    check_batch(name, args, params, tolerance(name, args))


def test_every_rule_is_there_or_impossible():
    kinds = ("impl", "abstract_eval", "jvp", "transpose", "batch")
    assert set(kinds) < set(RULE_KINDS)
    holes = [(name, kind) for name in OURS for kind in kinds
             if not ({kind} & {*primitives[name].rules, *primitives[name].impossible})]
    assert holes == []


def test_every_primitive_has_samples():
    modules = (elementwise, reductions, cumulative, sorting)
    ours = {p.name for m in modules for p in vars(m).values() if isinstance(p, Primitive)}
    assert ours == set(OURS)


@pytest.mark.parametrize("name", elementwise_samples)
def test_scalars_are_like_arrays(name):
    for args, params in elementwise_samples[name]:
        if all(np.shape(x) == np.shape(args[0]) != () for x in args):
            scalars = [np.asarray(x)[(0,) * np.ndim(x)] for x in args]
            row = primitives[name].bind(*[np.asarray(x)[None] for x in scalars], **params) \
                if "new_dtype" not in params or name == "convert_element_type" else None
            if row is not None:
                assert_same(primitives[name].bind(*scalars, **params), np.asarray(row)[0], 1e-6)


# --- Special values ----------------------------------------------------------------------------

SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -2.5,
                    0.49999997, 200, -200, 3e9, -3e9, 8388609.0], np.float32)
UNARY = [name for name in elementwise_samples
         if len(elementwise_samples[name][0][0]) == 1 and not elementwise_samples[name][0][1]
         and name not in ("not", "population_count", "clz", "real", "imag", "copy")]


def assert_same_with_signs(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert_same(ours, theirs, 3e-6)
    zeros = theirs == 0
    if ours.dtype.kind == "f":
        assert (np.signbit(ours[zeros]) == np.signbit(theirs[zeros])).all(), (ours, theirs)


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name):
    # XLA's tangent of 3e9 is off by far more than rounding, its digamma above 1e9 differs
    x = SPECIAL[:15] if name in ("sin", "cos", "tan", "digamma", "lgamma") else SPECIAL
    assert_same_with_signs(getattr(elementwise, name)(x), getattr(jax_lax, name)(x))


@pytest.mark.parametrize("method", elementwise.RoundingMethod)
def test_rounding_of_special_values(method):
    theirs = jax_lax.round(SPECIAL, jax_lax.RoundingMethod(int(method)))
    assert_same_with_signs(elementwise.round(SPECIAL, method), theirs)


BINARY = "add sub mul div rem max min pow atan2 nextafter eq lt le".split()


@pytest.mark.parametrize("name", BINARY)
def test_special_pairs(name):
    pairs = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -2, 3], np.float32)
    x, y = (np.ascontiguousarray(a).ravel() for a in np.meshgrid(pairs, pairs))
    ours, theirs = getattr(elementwise, name)(x, y), getattr(jax_lax, name)(x, y)
    if name == "nextafter":               # subnormals, which XLA flushes when they are compared
        assert_same(np.asarray(ours).view(np.int32), np.asarray(theirs).view(np.int32))
    else:
        assert_same_with_signs(ours, theirs)


INT_NAMES = "int8 int16 int32 uint8 uint16 uint32".split()


def edge_pairs(dtype):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 40, info.max - 1,
                       info.max, -1 if info.min else 5, -7 if info.min else 6]).astype(dtype)
    return [np.ascontiguousarray(a).ravel() for a in np.meshgrid(values, values)]


INT_BINARY = """add sub mul div rem max min bitwise_and bitwise_or bitwise_xor shift_left
    shift_right_arithmetic shift_right_logical lt""".split()
INT_UNARY = "neg sign square bitwise_not population_count clz".split()


@functools.cache
def at_the_edges(module, dtype):
    """The results of each function of integers in a module."""
    def run(x, y):
        return {name: getattr(module, name)(*((x, y) if name in INT_BINARY else (x,)))
                for name in INT_BINARY + INT_UNARY}
    return (jax.jit(run) if module is jax_lax else run)(*edge_pairs(dtype))


@pytest.mark.parametrize("dtype", INT_NAMES)
@pytest.mark.parametrize("name", INT_BINARY + INT_UNARY)
def test_integers_at_the_edges(name, dtype):
    assert_same(at_the_edges(elementwise, dtype)[name], at_the_edges(jax_lax, dtype)[name])


TARGETS = [*INT_NAMES, "bool", "float16", "bfloat16", "float32"]


@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16", "int32", "uint8"])
def test_conversion_of_special_values(source):
    values = [0, 1, 2, 200]
    if not source.startswith("u"):
        values += [-1, 127, 128, -129, 255, 256, 40000]
    if "float" in source:
        values += [np.nan, np.inf, -np.inf, 3e9, -3e9, 2.0**31, 2.0**32, 0.7, -0.7, 300.7, 1e-7]
    with np.errstate(over="ignore"):
        x = np.array(values, np.float64).astype(source)
    theirs = jax.jit(lambda x: [jax_lax.convert_element_type(x, t) for t in TARGETS])(x)
    for target, their in zip(TARGETS, theirs):
        assert_same(elementwise.convert_element_type(x, target), their)


@pytest.mark.parametrize("x", [
    3, -1, 300, 2 ** 40, 2 ** 100, True, 2.5, 0.1, 1 + 2j, float("nan"), np.float32(2.5),
    np.float64(1 + 2 ** -11 + 2 ** -40), np.int8(-3), np.int64(2 ** 40), np.bool_(True)], ids=repr)
@pytest.mark.parametrize("dtype", "bool int8 uint8 int32 float16 float32 complex64".split())
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning", "ignore::RuntimeWarning")
def test_conversion_of_numbers(x, dtype):
    """From all of their digits, once; and a program holds the result, no equation."""
    try:
        their = jax_lax.convert_element_type(x, dtype)
    except (OverflowError, TypeError) as error:
        if isinstance(x, complex):                # whose imaginary part is dropped here
            return
        with pytest.raises(type(error)):
            elementwise.convert_element_type(x, np.dtype(dtype))
        return
    convert = lambda: elementwise.convert_element_type(x, np.dtype(dtype))
    assert_same(convert(), their)
    jaxpr = minijax.make_jaxpr(convert)()
    assert not jaxpr.eqns and not jaxpr.consts
    assert_same(minijax.jit(convert)(), their)


def test_select_n_beyond_the_cases():
    which, cases = np.array([-1, 0, 1, 2, 5], np.int32), floats(3, 5)
    assert_same(elementwise.select_n(which, *cases), jax_lax.select_n(which, *cases))


def test_extremes_of_nothing_and_of_nan():
    for x in (np.zeros((0, 2), np.float32), np.zeros((0, 2), np.int8), np.zeros((0, 2), bool),
              np.array([[1, np.nan], [np.nan, 2]], np.float32)):
        for name in ("reduce_max", "reduce_min"):
            assert_same(getattr(reductions, name)(x, [0]), getattr(jax_lax, name)(x, [0]))


@pytest.mark.parametrize("order", [[2, 3, np.nan], [np.nan, 3, 2], [2, np.nan, np.nan], [3, 3, 2]])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_place_of_extreme(name, order, dtype):
    x = np.array(order).astype(dtype)
    theirs = getattr(jax_lax, name)(x, 0, np.int32)
    assert_same(getattr(reductions, name)(x, 0, np.int32), theirs)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn"])
def test_sorting_of_special_values(dtype):
    x = SPECIAL[:12].astype(dtype)
    places = np.arange(12, dtype=np.int32)
    for ours, theirs in zip(sorting.sort_key_val(x, places), jax_lax.sort_key_val(x, places)):
        assert_same_with_signs(np.asarray(ours).astype(np.float32),
                               np.asarray(theirs).astype(np.float32))
    for ours, theirs in zip(sorting.top_k(x, 12), jax_lax.top_k(x, 12)):
        assert_same_with_signs(np.asarray(ours).astype(np.float32),
                               np.asarray(theirs).astype(np.float32))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_extremes_of_nothing(name, dtype, compiled):
    """Infinity only where the dtype has it, else its last number."""
    x = np.zeros((0, 2), np.dtype(getattr(jnp, dtype)))
    f = functools.partial(getattr(reductions, name), axes=(0,))
    found = np.asarray((minijax.jit(f) if compiled else f)(x))
    want = np.asarray(getattr(jax_lax, name)(x, (0,)))
    assert found.dtype == want.dtype and found.tobytes() == want.tobytes()


def test_the_largest_floats_of_fewer_than_8_bits():
    """JAX's top_k of them is an error of its compiler."""
    every = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)
    for top in (functools.partial(sorting.top_k, k=16), minijax.jit(lambda x: sorting.top_k(x, 16))):
        values, places = top(every)
        np.testing.assert_array_equal(places, [7, 6, 5, 4, 3, 2, 1, 0, *range(8, 16)])
        np.testing.assert_array_equal(np.asarray(values), every[np.asarray(places)])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8", "bool"])
def test_the_largest_of_many_that_are_equal(dtype, compiled):
    """Of equal elements the first comes first, whether a few are looked for or many sorted."""
    numbers = np.random.default_rng(0).integers(0, 9, (4, 3, 40)) - (0 if dtype == "uint8" else 4)
    x = numbers.astype(dtype)
    if dtype.endswith("float16") or dtype == "float32":
        x[0, 0, :9] = [np.nan, -0.0, np.inf, 0.0, -np.inf, np.nan, -0.0, np.inf, 0.0]
    for axis, sizes in (2, (0, 1, 7, 16, 17, 40)), (0, (2, 4)), (1, (1, 3)):
        for k in sizes:
            top = functools.partial(sorting.top_k, k=k, axis=axis)
            ours = (minijax.jit(top) if compiled else top)(x)
            for got, want in zip(ours, jax_lax.top_k(x, k, axis=axis), strict=True):
                assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


# --- Types -------------------------------------------------------------------------------------

@pytest.mark.parametrize("name,args", [
    ("add", (1.0, 2.0)), ("add", (1, 2)), ("sin", (1.0,)), ("is_finite", (1.0,)),
    ("add", (1.0, np.float32(2))), ("pow", (2.0, 3)), ("select_n", (True, 1.0, 2.0)),
    ("abs", (1j,)), ("eq", (1.0, 2.0)),
    ("clamp", (0.0, 3.0, 1.0)), ("convert_element_type", (1.0, np.float32)), ("square", (3,)),
    ("convert_element_type", (np.float32(1), np.int32)), ("bitcast_convert_type", (1.0, np.int32))])
def test_weak_types(name, args):
    ours, theirs = getattr(elementwise, name)(*args), getattr(jax_lax, name)(*args)
    assert_same(ours, theirs, 1e-6)
    assert ours.weak_type == theirs.weak_type


f32, i32, b1 = np.ones(3, np.float32), np.ones(3, np.int32), np.ones(3, bool)


@pytest.mark.parametrize("name,args", [
    ("add", (f32, i32)), ("add", (f32, 1)), ("add", (i32, 1.0)), ("add", (b1, b1)), ("sin", (i32,)),
    ("floor", (i32,)), ("bitwise_and", (f32, f32)), ("shift_left", (b1, b1)), ("abs", (b1,)),
    ("add", (f32, np.ones((2, 3), np.float32))), ("add", (f32, f32[:2])), ("pow", (i32, i32)),
    ("select_n", (f32, f32, f32)), ("select_n", (b1, f32, f32, f32)), ("select_n", (b1, f32, i32)),
    ("select_n", (b1[:2], f32, f32)), ("clamp", (0, f32, 1)), ("lt", (1j, 2j)),
    ("integer_pow", (i32, -1)), ("bitcast_convert_type", (b1, np.int8)), ("is_finite", (i32,)),
    ("clz", (f32,))])
def test_refused(name, args):
    for module in (jax_lax, elementwise):
        with pytest.raises(TypeError):
            getattr(module, name)(*args)


@pytest.mark.parametrize("name,args", [
    ("reduce_sum", (b1, [0])), ("reduce_and", (f32, [0])),
    ("argmax", (np.ones((2, 2), "c8"), 0, int))])
def test_refused_reductions(name, args):
    for module in (jax_lax, reductions):
        with pytest.raises(TypeError):
            getattr(module, name)(*args)


@pytest.mark.parametrize("name,args", [
    ("reduce_sum", (f32, [1])), ("reduce_sum", (f32, [0, 0])), ("argmax", (f32, 1, int)),
    ("argmax", (f32[:0], 0, int))])
def test_refused_axes(name, args):
    for module in (jax_lax, reductions):
        with pytest.raises(ValueError):
            getattr(module, name)(*args)


def test_negative_axis_of_a_running_sum():
    for module in (jax_lax, cumulative):
        with pytest.raises(ValueError):
            module.cumsum(jnp.ones(3) if module is jax_lax else f32, -1)


def test_narrow_sums_accumulate_in_float32():
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = np.full(4096, 1.0, dtype)
        assert float(np.asarray(reductions.reduce_sum(x, [0]))) == 4096


# --- Conventions of derivatives ----------------------------------------------------------------

def test_second_derivatives_at_zeros_and_ties():
    x = np.array([[0, 2, 0], [1, 0, 3], [2, 2, 2]], np.float32)
    for name, params in [("reduce_prod", dict(axes=(1,))), ("cumprod", dict(axis=1, reverse=False)),
                         ("cumlogsumexp", dict(axis=1, reverse=True)), ("logistic", {})]:
        theirs = jet(jax.jvp, lambda v: jax_bind_one(name, v, params), x)
        assert_same(jet(our_jvp, lambda v: primitives[name].bind(v, **params), x), theirs, 1e-5)


def jax_bind_one(name, x, params):
    return getattr(jax_lax, name + "_p").bind(x, **params, **JAX_ONLY.get(name, {}))


def our_jvp(f, primals, tangents):
    (out,), (t,) = jvp_instantiated(lambda *xs: [f(*xs)], primals, tangents)
    return out, t


def jet(jvp, f, x):
    """The second derivative along one direction."""
    v = floats(*x.shape, seed=3)
    return jvp(lambda x: jvp(f, (x,), (v,))[1], (x,), (v,))[1]


def test_gradients_where_infinities_meet():
    x, t = np.array([-np.inf, -np.inf, 0, 1], np.float32), np.ones(4, np.float32)
    _, out = our_jvp(lambda v: cumulative.cumlogsumexp(v, 0), (x,), (t,))
    assert_same(out, np.array([0, 0, 1, 1], np.float32), 1e-6)


def test_copy_and_add_any():
    assert_same(elementwise.copy(f32), jnp.copy(f32))
    assert_same(elementwise.add_any(f32, f32), f32 + f32)


WIDTHS = "uint2 int4 uint8 int16 float32 float4_e2m1fn float8_e4m3fn bfloat16".split()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("source", WIDTHS)
def test_bits_read_as_another_dtype(source, compiled):
    """A last axis has the parts of a number, lowest first: int4 has two in a byte, uint2 four.

    JAX is asked for types alone: running programs of so few bits can crash it.
    """
    for target in map(np.dtype, map(functools.partial(getattr, jnp), WIDTHS)):
        old, new = (elementwise.bit_width(d) for d in (dtype_of(source), target))
        for shape in ((), (2,), (4,), (8,), (16,), (3, 2)):
            bits = np.random.default_rng(0).integers(0, 2, (*shape, old), np.uint8)
            x = from_bits(bits, dtype_of(source))
            f = functools.partial(elementwise.bitcast_convert_type, new_dtype=target)
            f = minijax.jit(f) if compiled else f
            theirs = functools.partial(jax_lax.bitcast_convert_type, new_dtype=target)
            try:
                want = jax.eval_shape(theirs, jax.ShapeDtypeStruct(shape, x.dtype))
            except ValueError:
                with pytest.raises(ValueError, match="needs a last axis"):
                    f(x)
                continue
            got = np.asarray(f(x))
            assert (got.dtype, got.shape) == (want.dtype, want.shape), target
            assert got.tobytes() == from_bits(bits.reshape(*got.shape, new), target).tobytes()


def dtype_of(name):
    return np.dtype(getattr(jnp, name))


def from_bits(bits, dtype):
    """The numbers with these bits, the lowest first, along the last axis."""
    packed = np.packbits(bits, axis=-1, bitorder="little")
    return packed.view(dtype).reshape(bits.shape[:-1])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e5m2", "float8_e4m3fnuz"])
@pytest.mark.parametrize("name", ["rsqrt", "round"])
def test_steps_of_narrow_floats_round_once(name, dtype):
    dtype = np.dtype(getattr(jnp, dtype))
    bits = np.arange(0, 2 ** (8 * dtype.itemsize), 4 ** (dtype.itemsize - 1))
    x = bits.astype(f"u{dtype.itemsize}").view(dtype)
    x = x[~(abs(x.astype(np.float32)) < 2.0 ** -126)]      # XLA takes these bfloat16 for zeros
    ours, theirs = (np.asarray(getattr(m, name)(x)) for m in (elementwise, jax_lax))
    np.testing.assert_array_equal(ours.astype(np.float32), theirs.astype(np.float32))


# --- Integers of four bits ------------------------------------------------------------------------

OF_ONE = "neg sign square not population_count".split()
OF_TWO = "add sub mul div rem max min and or xor shift_left eq lt".split()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_integers_of_four_bits(dtype, compiled):
    """Each pair of numbers; results wrap around at four bits."""
    numbers = np.arange(-8, 8) if dtype == "int4" else np.arange(16)
    pair = [x.astype(np.int8).astype(dtype) for x in np.meshgrid(numbers, numbers)]
    some = [(name, pair[:1] if name in OF_ONE else pair, {}) for name in OF_ONE + OF_TWO]
    some += [("clamp", [pair[1], pair[0], pair[1].T], {}), ("integer_pow", pair[:1], dict(y=3))]
    some += [(name, pair[:1], dict(axes=(0,))) for name in ("reduce_max", "reduce_min")]
    for name, args, params in some:
        f = functools.partial(primitives[name].bind, **params)
        found = minijax.jit(f)(*args) if compiled else f(*args)
        want = jax_bind(name, *args, **params)
        assert (found.dtype, np.asarray(found).dtype) == (want.dtype, want.dtype), name
        np.testing.assert_array_equal(np.asarray(found).astype(int), np.asarray(want).astype(int),
                                      err_msg=name)


@pytest.mark.parametrize("shape, axes", [
    ((100_000, 3), (0,)), ((1000, 70, 3), (0, 1)), ((3, 5000, 2), (1,)), ((4099, 5), (0,)),
    ((300, 4, 50), (0, 2)), ((100_000, 3), (0, 1))])
def test_long_sums_lose_few_digits(shape, axes):
    """Evaluated operation by operation, as compiled: NumPy's own sum of rows is 1e-5 off."""
    x = np.random.default_rng(0).random(shape, np.float32)
    exact = x.astype(np.float64).sum(axes)
    compiled = minijax.jit(reductions.reduce_sum, static_argnums=1)
    for reduce_sum in (reductions.reduce_sum, compiled):
        np.testing.assert_allclose(reduce_sum(minijax.numpy.asarray(x), axes), exact, rtol=1e-6)


def test_sums_of_no_elements_and_of_integers():
    assert not np.any(reductions.reduce_sum(minijax.numpy.zeros((100, 0, 3)), (0, 1)))
    ones = minijax.numpy.ones((1000, 3), np.int8)
    np.testing.assert_array_equal(reductions.reduce_sum(ones, (0,)), np.int8(1000 % 256 - 256))


# --- The signs of zeros ---------------------------------------------------------------------------

def scattered(lib, method, x):
    zeros = lib.numpy.zeros(2, x.dtype).at[1].set(-0.0)
    return getattr(zeros.at[lib.numpy.arange(x.size) % 2], method)(lib.numpy.ravel(x))


EXTREMES = {
    "max": lambda lib, x: lib.lax.max(x, x[::-1]),
    "min": lambda lib, x: lib.lax.min(x, x[::-1]),
    "max of numbers": lambda lib, x: lib.lax.max(x[0, 0], x[-1, -1]),
    "max of more": lambda lib, x: lib.lax.max(x * 2, x[::-1] * 3) * 1,
    "clamp": lambda lib, x: lib.lax.clamp(x, x[::-1], x),
    "clip": lambda lib, x: lib.numpy.clip(x, 0.0, 1.0),
    "relu": lambda lib, x: lib.nn.relu(x),
    "reduce max": lambda lib, x: lib.numpy.max(x, axis=0),
    "reduce min": lambda lib, x: lib.numpy.min(x, axis=1),
    "all": lambda lib, x: lib.numpy.stack([lib.numpy.max(x), lib.numpy.min(x)]),
    "cummax": lambda lib, x: lib.lax.cummax(x, axis=1),
    "cummin": lambda lib, x: lib.lax.cummin(x, axis=1, reverse=True),
    "scatter max": lambda lib, x: scattered(lib, "max", x),
    "scatter min": lambda lib, x: scattered(lib, "min", x),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_order_zeros(name, dtype):
    """0.0 is larger than -0.0: eager, compiled, and printed as Python."""
    f, rng = EXTREMES[name], np.random.default_rng(0)
    x = rng.choice([0.0, -0.0, 0.0, -0.0, 1.0, -1.0, np.nan], (5, 23), p=[0.24] * 4 + [0.02, 0.01, 0.01])
    ours, theirs = minijax.numpy.asarray(x, dtype), jnp.asarray(x, dtype)
    expected = jax.jit(lambda x: f(jax, x))(theirs)
    plain = minijax.make_jaxpr(lambda x: f(minijax, x))(ours)
    results = [f(minijax, ours), minijax.jit(lambda x: f(minijax, x))(ours),
               compile_jaxpr(plain, compiled=False)(ours._value)[0]]
    for out in results:
        assert_same_with_signs(np.asarray(out, np.float32), np.asarray(expected, np.float32))


@pytest.mark.parametrize("f", ["max", "min"])
def test_both_zeros_share_the_gradient(f):
    x = np.float32([0.0, -0.0, -0.0])
    ours = minijax.grad(getattr(minijax.numpy, f))(x)
    assert_same(ours, jax.grad(getattr(jnp, f))(x))
