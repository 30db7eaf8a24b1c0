"""What a loop's body may hold: every primitive stays in machine code."""

import ml_dtypes
import numpy as np
import pytest
from samples import samples
from samples_effects import effect_samples
from samples_higher_order import higher_order_samples
from scipy import special

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.compiler import compile_jaxpr
from minijax.compiler.check_ir import LoopIRError, check_program
from minijax.compiler.dead_steps import has_calls
from minijax.compiler.executable import RENDERERS
from minijax.core import primitives
from minijax.loop_ir import Buffer, Load, Nest, Op, Product, Program, Store, ZERO

bfloat16 = np.dtype(ml_dtypes.bfloat16)


def compiled(f, *args, renderer="llvm"):
    exe = compile_jaxpr(minijax.make_jaxpr(f)(*args), renderer=renderer)
    for name in ("lower", "tile_loops", "fuse", "update_in_place"):
        check_program(exe.passes[name])
    return exe


def stays_in_machine_code(exe):
    return not any(map(has_calls, exe.program.steps))


def as_bits(x):
    """An array of floats as integers, all NaNs alike."""
    x = np.where(x != x, x.dtype.type(np.nan), x)
    return x.view(f"u{x.dtype.itemsize}")


# --- Every primitive in the body of a scan --------------------------------------------------------

def scanned(name, args, params):
    """A function of stacked arguments: a scan whose body applies a primitive to each."""
    def function(*rows):
        return lax.scan(lambda c, xs: (c, primitives[name].bind(*xs, **params)), None, rows,
                        length=2)[1]
    return function, [np.stack([a, a[::-1] if a.ndim else a]) for a in args]


first_order = [n for n, p in primitives.items() if n in samples and not p.higher_order]

# All but the callbacks, for which Python must go round, and custom_lin, which is never evaluated.
in_bodies = [n for n in primitives if n not in effect_samples and n != "custom_lin"]


@pytest.mark.parametrize("name", in_bodies)
def test_a_primitive_in_a_body(name):
    for args, params in (samples | higher_order_samples)[name]:
        args = tuple(np.asarray(jnp.asarray(a)) for a in args)
        function, rows = scanned(name, args, params)
        exe = compiled(function, *rows)
        where = f"{name} of {[f'{a.dtype}{a.shape}' for a in args]}, {params}"
        assert stays_in_machine_code(exe), where
        found = exe(*rows)
        for k in range(2):
            want = minijax.tree.leaves(primitives[name].bind(*[r[k] for r in rows], **params))
            for g, w in zip(found, want, strict=True):
                assert_near(g[k], np.asarray(w), where)


OTHERS = [bfloat16, *map(np.dtype, ("bool int8 int64 uint8 uint32 uint64 float16 float64 complex64 "
                                    "complex128").split()),
          *map(np.dtype, (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn,
                          ml_dtypes.int4, ml_dtypes.uint2))]


def in_dtypes(name, args, params):
    """A sample's arguments and parameters with numbers of every dtype that the primitive takes."""
    kind = "f" if any(a.dtype.kind in "fc" for a in args) else args[-1].dtype.kind if args else ""
    for dtype in OTHERS:
        new = [a.astype(dtype) if a.dtype.kind.replace("c", "f") == kind else a for a in args]
        own = dict(input_dtype=dtype) if "input_dtype" in params else {}
        try:
            minijax.make_jaxpr(lambda *xs: primitives[name].bind(*xs, **params | own))(*new)
        except (TypeError, ValueError):               # the primitive does not take this dtype
            continue
        yield new, params | own


@pytest.mark.parametrize("name", first_order)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
def test_a_primitive_of_other_dtypes(name):
    with minijax.enable_x64(True):
        for args, params in samples[name][::max(1, len(samples[name]) - 1)]:
            made = [(scanned(name, new, own), new, own)
                    for new, own in in_dtypes(name, list(map(np.asarray, args)), params)]
            all_rows = [rows for (_, rows), _, _ in made]
            together = lambda all_rows: [f(*rows) for ((f, _), _, _), rows in zip(made, all_rows)]
            exe = compiled(together, all_rows)
            assert stays_in_machine_code(exe), (name, [s.name for s in exe.program.steps])
            found = iter(exe(*minijax.tree.leaves(all_rows)))
            for (_, rows), _, own in made:
                wants = [minijax.tree.leaves(primitives[name].bind(*[r[k] for r in rows], **own))
                         for k in range(2)]
                for want in zip(*wants, strict=True):
                    got = next(found)
                    for g, w in zip(got, want, strict=True):
                        assert_near(g, np.asarray(w), f"{name} of {[r.dtype for r in rows]}, {own}")


def assert_near(got, want, where):
    assert (got.shape, got.dtype) == (want.shape, want.dtype), where
    rtol, atol = 2e-6, 1e-6
    if want.dtype in NARROW:            # evaluated in steps, each of which rounds
        atol = float(ml_dtypes.finfo(want.dtype).eps)
        rtol, got, want = 4 * atol, got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=where)


# --- Narrow numbers -------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 65504, 65520, 6e-8, 3e-8, 2.98e-8, 1e-40,
           3.4e38, 1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 2049, 2051]

NARROW = [d for d, wide in minijax.dtypes.computed_in.items() if wide == np.float32]
FEW_BITS = [d for d in minijax.dtypes.computed_in if d not in NARROW]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("renderer", RENDERERS)
def test_conversions_round_to_the_nearest_even(dtype, renderer):
    many = np.random.default_rng(0).integers(0, 2 ** 32, 500, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        for x in (np.array([*SPECIAL, *many], np.float32), np.array([True, False]),
                  np.arange(-300, 300, dtype=np.int32) * 117):
            got, = compiled(lambda x: x.astype(dtype), x, renderer=renderer)(x)
            np.testing.assert_array_equal(as_bits(got), as_bits(x.astype(dtype)))
            for wider in (np.float32, np.int32, bool):
                back, = compiled(lambda x: x.astype(wider), got, renderer=renderer)(got)
                want = np.asarray(jnp.asarray(got).astype(wider))
                np.testing.assert_array_equal(back, want)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_doubles_are_rounded_once_to_float16(renderer):
    with minijax.enable_x64(True):
        x = np.array([1 + 2.0 ** -11 + 2.0 ** -40, 1 + 2.0 ** -11, 65519.999999, 1e300,
                      -5.960464477e-8, 2.98023223876953125e-08, 2.9802322387695316e-08, np.nan])
        got, = compiled(lambda x: x.astype(np.float16), x, renderer=renderer)(x)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(as_bits(got), as_bits(x.astype(np.float16)))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("renderer", RENDERERS)
def test_each_equation_rounds(dtype, renderer):
    """Compiled and evaluated chains have the same bits, in a loop and outside."""
    x = np.random.default_rng(0).normal(size=200).astype(np.float32).astype(dtype)

    def f(x):
        y = x * x + x / 3 - jnp.sqrt(abs(x))
        return [y, jnp.maximum(y, -x), jnp.where(y > x, y, -1), y.sum(), y.max(), jnp.cumsum(y),
                jnp.nextafter(x, y), y.reshape(20, 10).sum(0)]

    want = [np.asarray(w) for w in f(jnp.asarray(x))]
    in_loop = lambda xs: lax.map(f, xs)
    got = compiled(f, x, renderer=renderer)(x)
    turns = compiled(in_loop, np.stack([x, x]), renderer=renderer)
    looped = [g[1] for g in turns(np.stack([x, x]))]
    assert stays_in_machine_code(turns)
    for g, again, w in zip(got, looped, want, strict=True):
        for found in (g, again):
            assert (found.dtype, found.shape) == (w.dtype, w.shape)
            np.testing.assert_allclose(found.astype(np.float64), w.astype(np.float64),
                                       rtol=2 * float(ml_dtypes.finfo(dtype).eps))
    for k in (0, 1, 2, 4, 6):
        np.testing.assert_array_equal(as_bits(got[k]), as_bits(want[k]))


@pytest.mark.parametrize("dtype", [d for d in NARROW if d.itemsize == 1], ids=str)
def test_every_number_of_8_bits(dtype):
    """What loops compute of each pair of numbers is what the next dtype computes, rounded."""
    every = np.arange(2 ** ml_dtypes.finfo(dtype).bits, dtype=np.uint8).view(dtype)
    x, y = (np.repeat(every, every.size), np.tile(every, every.size))
    f = lambda x, y: [x + y, x - y, x * y, x / y, -x, jnp.sqrt(x), jnp.exp(x), jnp.round(x)]
    with np.errstate(all="ignore"):
        wide = [np.asarray(v) for v in f(*(jnp.asarray(v.astype(np.float32)) for v in (x, y)))]
        for got, want in zip(compiled(f, x, y)(x, y), wide, strict=True):
            np.testing.assert_array_equal(as_bits(got), as_bits(want.astype(dtype)))
        for got, want in zip(compiled(lambda *xy: [jnp.less(*xy), jnp.equal(*xy)], x, y)(x, y),
                             (x < y, x == y), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", FEW_BITS, ids=str)
@pytest.mark.parametrize("renderer", RENDERERS)
def test_integers_of_few_bits_wrap_around(dtype, renderer):
    """In a loop as outside, where each primitive is compared with JAX."""
    def f(x):
        y = x.astype(dtype)
        rows = y.reshape(20, 30)
        return [y, (x / 7).astype(dtype), y.astype(np.float32), y * y - y, jnp.maximum(y, -y),
                y > 1, y.at[y].add(y), jnp.arange(4)[y], lax.reduce_max(rows, (1,)),
                lax.dot(rows, rows.T), lax.reduce_xor(rows, (0,)), lax.cummax(y), jnp.sort(y)]

    x = np.arange(-300, 300, dtype=np.int32)
    two = np.stack([x, x])
    turns = compiled(lambda xs: lax.map(f, xs), two, renderer=renderer)
    assert stays_in_machine_code(turns)
    for got, want in zip(turns(two), f(jnp.asarray(x)), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got[1].astype(int), np.asarray(want).astype(int))


def test_neighbours_of_16_bits():
    x = np.array([*SPECIAL[:8], np.inf, 6e-8], np.float16)
    for target in (np.inf, -np.inf, 0.0, np.nan):
        y = np.full_like(x, target)
        got, = compiled(jnp.nextafter, x, y)(x, y)
        with np.errstate(over="ignore"):
            want = np.where(x == y, y, np.nextafter(x, y))
            np.testing.assert_array_equal(as_bits(got), as_bits(want))


def test_the_checker_wants_16_bits_converted():
    half, out = (Buffer((), np.dtype(np.float16)) for _ in range(2))
    load = Load(half, ZERO)
    total = Op("add", (load, load), half.dtype)
    program = Program([half], [Nest([], [load, total, Store(out, ZERO, total)])], [out], [])
    with pytest.raises(LoopIRError, match="add of float16"):
        check_program(program)


# --- Complex numbers ------------------------------------------------------------------------------

def complexes(*shape, seed=0, dtype=np.complex64):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


FUNCTIONS = ("exp exp2 expm1 log log1p sqrt sin cos tan sinh cosh tanh abs conj sign square real "
             "imag reciprocal").split()
INVERSES = "arcsin arccos arctan arcsinh arccosh arctanh".split()


def log1p(z):
    """NumPy's log1p adds 1 first."""
    a, b = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
    return np.log1p(a * (2 + a) + b * b) / 2 + 1j * np.arctan2(b, 1 + a)


exact = {"log1p": log1p}


@pytest.mark.parametrize("name", FUNCTIONS + INVERSES)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_complex_numbers(name, dtype):
    with minijax.enable_x64(True):
        sizes = np.float32([1e-30, 1e-3, 0.5, 1, 1.5, 30])[:, None]
        z = (complexes(40, dtype=dtype) * sizes).astype(dtype)
        z = np.append(z, np.array([0, -1, 1, 1j, -1j, complex(-4, 0.0), complex(-4, -0.0)], dtype))
        f = getattr(jnp, name)
        with np.errstate(all="ignore"):
            # what NumPy computes for complex128 is the exact value of a complex64
            want = exact.get(name, getattr(np, name))(z.astype(np.complex128))
            for renderer in RENDERERS:
                exe = compiled(f, z, renderer=renderer)
                got, = exe(z)
                assert not exe.rendered.functions
                good = np.isfinite(want) & (abs(want) < 1e30)
                # 2^z turns by the angle log(2) Im z, which has an error of its own
                eps = np.finfo(dtype).eps * (1 + abs(z) * (name == "exp2"))
                wrong = abs(got - want) > 8 * eps * abs(want) + 1e-44
                where = good & wrong
                assert not where.any(), (z[where], got[where], want[where])


def near_branch_points(dtype):
    """Complex numbers with parts around 0, 1 and -1, tiny and huge ones, zeros of both signs."""
    info = np.finfo(dtype)
    sizes = [0, 3 * info.tiny, 1e-30, 1e-5, 0.1, 0.9, 1 - info.eps / 2, 1, 1 + info.eps, 1.5, 10,
             1e4, 3e4, 1e7, 1e8, 1e15, 1e30, info.max / 2, np.inf]
    sizes = np.array(sizes + [1e-160, 1e160] * (info.bits == 64), info.dtype)
    sizes = np.concatenate([sizes, -sizes])
    grid = np.empty((sizes.size, sizes.size), dtype)
    grid.real, grid.imag = sizes[:, None], sizes
    some = complexes(2000) * np.exp(3 * np.random.default_rng(1).normal(size=2000))
    return np.concatenate([grid.ravel(), some, 1 + some / 1000, 1j + some / 1000]).astype(dtype)


@pytest.mark.parametrize("name", INVERSES)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_inverse_functions_of_complex_numbers(name, dtype):
    """Each part by itself to some units in its last place, with the sign of every zero."""
    with minijax.enable_x64(True), np.errstate(all="ignore"):
        z, info = near_branch_points(dtype), np.finfo(dtype)
        want = getattr(np, name)(z.astype(np.clongdouble))
        for renderer in RENDERERS:
            exe = compiled(getattr(jnp, name), z, renderer=renderer)
            got, = exe(z)
            assert not exe.rendered.functions
            for g, w in ((got.real, want.real), (got.imag, want.imag)):
                unlike = ~((g == w.astype(g.dtype)) | np.isnan(g) & np.isnan(w))
                wrong = unlike & ~(abs(g - w) <= 4 * info.eps * abs(w) + info.tiny)
                assert not wrong.any(), (z[wrong], g[wrong], w[wrong])
                turned = (np.signbit(g) != np.signbit(w)) & ~np.isnan(w)
                assert not turned.any(), (z[turned], g[turned], w[turned])


@pytest.mark.parametrize("renderer", RENDERERS)
def test_extremes_of_complex_numbers(renderer):
    """Real parts are compared first, and NaN in a part wins, as in NumPy."""
    parts = [0.0, 1, -1, np.nan, np.inf]
    x, y = np.meshgrid(*2 * [[complex(a, b) for a in parts for b in parts]])
    x, y = x.astype(np.complex64), y.astype(np.complex64)
    functions = [jnp.maximum, jnp.minimum, lambda x, y: lax.clamp(y, x, y[::-1]),
                 lambda x, y: x.max(1), lambda x, y: y.min(0), lambda x, y: x[2:3, :3].prod()]
    for f in functions:
        with minijax.disable_jit():
            want = np.asarray(f(jnp.asarray(x), jnp.asarray(y)))
        in_loop = lambda xs, ys: lax.map(lambda pair: f(*pair), (xs, ys))
        exe = compiled(in_loop, np.stack([x, x]), np.stack([y, y]), renderer=renderer)
        assert stays_in_machine_code(exe)
        got = exe(np.stack([x, x]), np.stack([y, y]))[0][1]
        # which of two numbers with NaN it is, no one promises
        with_nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), with_nan)
        np.testing.assert_array_equal(got[~with_nan], want[~with_nan])


def test_extremes_of_complex_numbers_are_those_of_jax():
    z = complexes(5, 7)
    z[2, 3], z[4] = z[2, 4].real + 9j, z[3]
    jax_lax = pytest.importorskip("jax").lax
    for name in ("cummax", "cummin"):
        got, = compiled(lambda z: lax.map(getattr(lax, name), z[None]), z)(z)
        np.testing.assert_array_equal(got[0], np.asarray(getattr(jax_lax, name)(z)))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("letters", ["ij,jk->ik", "ij,kj->ik", "ji,jk->ki", "bij,bjk->bik", "ij,j->i",
                                     "i,ij->j", "bij,bkj->bki"])
def test_complex_products_of_blas(letters, dtype):
    sizes = dict(i=30, j=20, k=40, b=3)
    with minijax.enable_x64(True):
        x, y = (complexes(*map(sizes.get, word), seed=k, dtype=dtype)
                for k, word in enumerate(letters.split("->")[0].split(",")))
        exe = compiled(lambda x, y: jnp.einsum(letters, x, y), x, y)
        want = np.einsum(letters, x.astype(np.complex128), y)
        if want.ndim > 1:
            assert sum(isinstance(step, Product) for step in exe.program.steps) == 1
        np.testing.assert_allclose(exe(x, y)[0], want, rtol=0,
                                   atol=30 * np.finfo(dtype).eps * abs(want).max())


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("dtype", ["complex64", "float16", bfloat16, "bool"], ids=str)
def test_products_in_a_loop(dtype, size):
    x, y = (complexes(2, size, size, seed=k) for k in (0, 1))
    x, y = (z.astype(dtype) if dtype == "complex64" else z.real.astype(dtype) for z in (x, y))
    f = lambda x, y: lax.map(lambda pair: (pair[0] @ pair[1], pair[0].real @ pair[1]), (x, y))
    for renderer in RENDERERS if size == 3 else ["llvm"]:
        exe = compiled(f, x, y, renderer=renderer)
        assert stays_in_machine_code(exe)
        for g, a in zip(exe(x, y), (x, x.real)):
            want = np.asarray(jnp.matmul(a, y))
            assert g.dtype == want.dtype
            np.testing.assert_allclose(g.astype(np.complex64), want.astype(np.complex64),
                                       rtol=1e-5 if dtype == "complex64" else 2e-2, atol=1e-5)


def test_quotients_do_not_overflow():
    x = np.array([3e38 + 3e38j, 1e-38 + 1e-38j, 1 + 1j, 0, 1], np.complex64)
    y = np.array([3e38 + 3e38j, 1e-38 + 1e-38j, 1e38j, 1, 0], np.complex64)
    with np.errstate(all="ignore"):
        for renderer in RENDERERS:
            got, = compiled(lambda x, y: x / y, x, y, renderer=renderer)(x, y)
            np.testing.assert_allclose(got, x / y, rtol=1e-6)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_complex_numbers_in_a_loop(renderer):
    def f(z):
        def turn(i, c):
            total, z = c
            z = jnp.where(abs(z) > 2, z / 3, z * z + 0.3j) ** 2
            return total.at[i].add(z.sum() - z.conj()[i]), jnp.cumsum(z[::-1]) / 2
        return lax.fori_loop(0, 4, turn, (jnp.zeros_like(z), z))

    z = complexes(5)
    exe = compiled(f, z, renderer=renderer)
    assert stays_in_machine_code(exe)
    with minijax.disable_jit():
        want = f(jnp.asarray(z))
    for g, w in zip(exe(z), want):
        np.testing.assert_allclose(g, np.asarray(w), rtol=2e-5)


# --- The derivatives of digamma -------------------------------------------------------------------

@pytest.mark.parametrize("order", [0, 1, 2, 3, 7, 20])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polygamma(order, dtype):
    """Against SciPy, also left of 0, where JAX 0.10 loses its digits from -10 on."""
    with minijax.enable_x64(True):
        x = np.concatenate([np.linspace(-30.3, 30, 500), [1e-3, -1e-3, 1e-8, -1e-8, 1e5]])
        x = x.astype(dtype)
        want = special.polygamma(order, x.astype(np.float64))
        want = np.where(abs(want) > np.finfo(dtype).max, np.copysign(np.inf, want), want)
        size = special.gamma(order + 1) if order else 1
        eps = 4 * np.finfo(dtype).eps if dtype == "float32" else 2e-13     # of SciPy's
        for m in (np.dtype(dtype).type(order), np.full_like(x, order)):
            got, = compiled(lambda m, x: lax.polygamma(m, x), m, x)(m, x)
            # near a zero, terms of this size cancel
            np.testing.assert_allclose(got, want, rtol=eps, atol=20 * eps * size)
        constant, = compiled(lambda x: lax.polygamma(np.dtype(dtype).type(order), x), x)(x)
        np.testing.assert_allclose(constant, want, rtol=eps, atol=20 * eps * size)


def test_polygamma_at_its_edges():
    x = np.float32([0, -0.0, -1, -7, np.inf, np.nan, 2, 2])
    m = np.float32([1, 2, 1, 2, 1, 1, 1.5, -1])
    got, = compiled(lax.polygamma, m, x)(m, x)
    np.testing.assert_array_equal(got, [np.inf, -np.inf, np.inf, -np.inf, 0, *3 * [np.nan]])


def test_digamma_left_of_zero():
    x = -np.float32([1e-3, 1e-8, 1e-20, 0.4, 0.6, 3.3, 100.7])
    got, = compiled(lax.digamma, x)(x)
    np.testing.assert_allclose(got, special.psi(x.astype(np.float64)), rtol=1e-6)


# --- Sorting --------------------------------------------------------------------------------------

def keys_of(dtype, *shape):
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 4, shape)
    if np.dtype(dtype).kind in "biu":
        return x.astype(dtype)
    x = np.where(rng.integers(0, 6, shape) == 0, np.nan, x.astype(np.float32))
    x = np.where(rng.integers(0, 6, shape) == 0, -0.0, x)
    return (x + 1j * rng.integers(-1, 2, shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


SORTED = ["float32", "int32", "uint8", "uint32", "bool", "float16", bfloat16, "complex64"]


@pytest.mark.parametrize("dtype", SORTED, ids=str)
@pytest.mark.parametrize("shape, axis", [((1,), 0), ((2,), 0), ((37,), 0), ((3, 7), 0), ((3, 7), 1),
                                         ((2, 5, 3), 1)])
def test_sorting_in_a_loop(dtype, shape, axis):
    x = keys_of(dtype, *shape)
    y = np.arange(x.size, dtype=np.int32).reshape(shape) % 5

    def sorts(x, y):
        outs = [lax.sort(x, axis), *lax.sort((x, y), axis, num_keys=1),
                *lax.sort((x, y, -y), axis, num_keys=2)]
        if x.dtype.kind != "c":
            for k in {1, min(3, shape[axis]), shape[axis]}:
                outs += lax.top_k(x, k, axis=axis)
        return outs

    want = sorts(jnp.asarray(x), jnp.asarray(y))
    in_loop = lambda x, y: lax.map(lambda pair: sorts(*pair), (x, y))
    for renderer in RENDERERS if shape in [(37,), (3, 7)] else ["llvm"]:
        stacked = np.stack([x, x]), np.stack([y, y])
        exe = compiled(in_loop, *stacked, renderer=renderer)
        assert stays_in_machine_code(exe)
        for g, w in zip(exe(*stacked), want, strict=True):
            np.testing.assert_array_equal(g[0].astype(np.complex64),
                                          np.asarray(w).astype(np.complex64))
            if np.issubdtype(g.dtype, np.floating):     # zeros of either sign keep their order
                np.testing.assert_array_equal(np.signbit(g[0]), np.signbit(np.asarray(w)))


@pytest.mark.parametrize("dtype", ["uint32", "int32", "float32"])
def test_a_few_of_the_largest_at_the_edges(dtype):
    x = np.array([0, 2 ** 32 - 1, 2 ** 31, 2 ** 31 - 1, 1, 2 ** 31, 5, 2 ** 32 - 1], np.uint32)
    x = np.stack([x, ~x]).view(dtype)
    for k in (3, 8):
        f = lambda x: lax.map(lambda x: lax.top_k(x, k), x)
        for g, w in zip(compiled(f, x)(x), lax.top_k(jnp.asarray(x), k)):
            np.testing.assert_array_equal(g, np.asarray(w))


def test_a_few_of_the_largest_are_found_without_sorting():
    x = np.random.default_rng(0).normal(size=(3, 500)).astype(np.float32)
    assert stays_in_machine_code(compiled(lambda x: lax.top_k(x, 5), x))
    assert not stays_in_machine_code(compiled(lambda x: lax.top_k(x, 50), x))


def test_a_long_row():
    x = np.random.default_rng(0).normal(size=(3, 5000)).astype(np.float32)
    got, = compiled(lambda x: lax.map(jnp.sort, x), x)(x)
    np.testing.assert_array_equal(got, np.sort(x))


def test_at_the_top_numpy_sorts():
    assert not stays_in_machine_code(compiled(jnp.sort, np.ones(8, np.float32)))


# --- What is the same in every turn ---------------------------------------------------------------

def hoisted(f, *args):
    """Names of the equations outside of loops, and of those inside the first one."""
    exe = compile_jaxpr(minijax.make_jaxpr(f)(*args))
    jaxpr = exe.passes["hoist_invariants"].jaxpr
    with minijax.disable_jit():
        want = minijax.tree.leaves(f(*args))
    for g, w in zip(exe(*map(np.asarray, args)), want, strict=True):
        np.testing.assert_allclose(g, np.asarray(w), rtol=2e-5)
    loop = next(e for e in jaxpr.eqns if e.primitive.name in ("scan", "while"))
    inside = loop.params["jaxpr" if loop.primitive.name == "scan" else "body_jaxpr"].jaxpr
    return [[e.primitive.name for e in eqns] for eqns in (jaxpr.eqns, inside.eqns)]


W = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)


def test_invariants_leave_a_scan():
    def f(w, x):
        body = lambda c, x: (jnp.tanh(c * jnp.exp(w)[0] + x), jnp.sin(w[0]))
        return lax.scan(body, w[1], x)
    outside, inside = hoisted(f, W, W)
    assert {"exp", "sin"} <= {*outside} and not {"exp", "sin"} & {*inside}
    assert "tanh" in inside


def test_invariants_leave_a_while_and_its_condition():
    def f(w, n):
        return lax.while_loop(lambda c: c[0] < n + jnp.cos(w[0, 0]).astype(int),
                              lambda c: (c[0] + 1, c[1] @ jnp.exp(w)), (0, w))
    for n in (-1, 0, 3):
        outside, inside = hoisted(f, W, np.int32(n))
        assert {"exp", "cos"} <= {*outside} and "exp" not in inside


def test_invariants_leave_nested_loops():
    def f(w, x):
        inner = lambda x: lax.fori_loop(0, 3, lambda i, c: c * jnp.exp(w[0]) + jnp.sin(x), x)
        return lax.map(inner, x)
    outside, inside = hoisted(f, W, W)
    assert "exp" in outside and "sin" in inside


def test_what_stays_in_a_loop():
    x = np.linspace(0, 1, 100, dtype=np.float32)
    table = lambda c, _: (c + jnp.exp(-abs(x_now[:, None] - x_now)).sum(), None)

    def f(x):
        nonlocal x_now
        x_now = x
        return lax.scan(table, jnp.float32(0), None, length=3)[0]
    x_now = None
    outside, inside = hoisted(f, x)
    assert "exp" in inside and "exp" not in outside

    once = lambda w: lax.scan(lambda c, _: (c + jnp.exp(w), None), w, None, length=1)[0]
    exe = compile_jaxpr(minijax.make_jaxpr(once)(W))
    assert [e.primitive.name for e in exe.passes["hoist_invariants"].jaxpr.eqns] == ["scan"]


def test_effects_stay_in_a_loop(capsys):
    def f(w):
        def body(i, c):
            minijax.debug.print("{}", w[0])
            return c + w
        return lax.fori_loop(0, 3, body, w)
    minijax.jit(f)(W[0])
    minijax.effects_barrier()
    assert len(capsys.readouterr().out.split()) == 3
