"""jit: what is traced when, keys, static arguments, constants, stages, threads."""
import gc
import linecache
import threading
import weakref

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as mnp


class Counted:
    """A function that counts its Python calls."""

    def __init__(self, f):
        self.f, self.calls = f, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.f(*args, **kwargs)


def counted_jit(f, **options):
    counted = Counted(f)
    return minijax.jit(counted, **options), counted


def test_traced_once_a_signature():
    f, count = counted_jit(lambda x: x * 2)
    for x in (1.0, 2.0, 3.0):
        assert f(x) == 2 * x
    assert count.calls == 1
    f(np.ones(3, np.float32)), f(np.zeros(3, np.float32))
    assert count.calls == 2
    f(1)                                             # int32, not float32
    f(np.float32(1.0))                               # strong, not weak
    assert count.calls == 4


def test_dicts_in_any_order_are_one_signature():
    f, count = counted_jit(lambda d: d["a"] - d["b"])
    assert f({"a": 3.0, "b": 1.0}) == f({"b": 1.0, "a": 3.0}) == 2.0
    assert count.calls == 1


def test_the_same_function_jitted_twice_is_traced_once():
    count = Counted(lambda x: x + 1)
    minijax.jit(count)(1.0), minijax.jit(count)(2.0)
    assert count.calls == 1


def test_a_function_made_in_a_loop_is_traced_each_time():
    calls = []
    for _ in range(3):
        minijax.jit(lambda x: (calls.append(x), x)[1])(1.0)
    assert len(calls) == 3


def test_configuration_is_part_of_the_key():
    f, count = counted_jit(lambda x: mnp.sin(x))
    f(1.0)
    with minijax.enable_x64():
        assert f(1.0).dtype == np.float64
    assert f(1.0).dtype == np.float32 and count.calls == 2


def test_jitting_a_gradient_of_a_jitted_function():
    f = minijax.jit(lambda x: x * x * x)
    assert f(2.0) == 8.0 and minijax.jit(minijax.grad(f))(2.0) == 12.0
    assert minijax.jit(minijax.grad(minijax.jit(minijax.grad(f))))(2.0) == 12.0


def test_static_values_of_different_types_do_not_collide():
    f = minijax.jit(lambda x, n: x if n is True else x * 10 if type(n) is int else x * 100,
                    static_argnums=1)
    assert [f(1.0, n) for n in (1, True, 1.0)] == [10.0, 1.0, 100.0]
    g = minijax.jit(lambda x, n: x * 10 if type(n[0]) is int else x, static_argnums=1)
    assert [g(1.0, (n,)) for n in (1, True)] == [10.0, 1.0]


def test_static_arguments_by_number_and_name():
    for options in ({"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": -1},
                    {"static_argnames": ("n",)}):
        f = minijax.jit(lambda x, n: x + sum(range(n)), **options)
        assert f(1.0, 3) == f(1.0, n=3) == f(n=3, x=1.0) == 4.0


def test_static_default():
    @minijax.jit
    def plain(x, n=2):
        return x * n
    f = minijax.jit(lambda x, n=2: x * sum([1] * n), static_argnames="n")
    assert f(1.0) == 2.0 and f(1.0, n=3) == 3.0 and plain(1.0) == 2.0


def test_static_objects_are_keyed_by_identity_unless_they_say_otherwise():
    class Plain:
        def __init__(self, n):
            self.n = n
    f, count = counted_jit(lambda x, o: x * o.n, static_argnums=1)
    a, b = Plain(2), Plain(2)
    assert f(1.0, a) == f(1.0, a) == f(1.0, b) == 2.0 and count.calls == 2


def test_static_argnums_out_of_range():
    with pytest.raises(ValueError, match="static_argnums"):
        minijax.jit(lambda x: x, static_argnums=3)
    with pytest.raises(ValueError, match="nope"):
        minijax.jit(lambda x: x, static_argnames="nope")


def test_constants_are_arguments_of_the_program():
    c = mnp.arange(3.0)
    f = minijax.jit(lambda x: x + c)
    np.testing.assert_array_equal(f(1.0), [1.0, 2.0, 3.0])
    jaxpr = f.trace(1.0).jaxpr
    assert len(jaxpr.consts) == 1 and jaxpr.consts[0] is c


def test_closing_over_an_outer_tracer():
    def f(x):
        inner = minijax.jit(lambda y: y * x)
        return inner(2.0) + inner(3.0)
    assert f(4.0) == 20.0 and minijax.grad(f)(4.0) == 5.0 and minijax.jit(minijax.grad(f))(4.0) == 5.0
    np.testing.assert_array_equal(minijax.vmap(f)(np.arange(3, dtype=np.float32)), [0, 5, 10])


def test_numpy_arguments_are_copied():
    x = np.ones(3, np.float32)
    same, constant = minijax.jit(lambda x: (x, x.T)), mnp.asarray(x)
    out = same(x)
    x[:] = 7
    np.testing.assert_array_equal(out[0], [1, 1, 1])
    np.testing.assert_array_equal(constant, [1, 1, 1])
    with pytest.raises(ValueError):
        np.asarray(out[0])[0] = 1


def test_every_replay_equals_the_first_call():
    f = minijax.jit(lambda x: mnp.cumsum(mnp.sin(x) @ mnp.cos(x).T, axis=0))
    x = mnp.asarray(np.random.default_rng(0).normal(size=(20, 20)).astype(np.float32))
    first = np.asarray(f(x))
    for _ in range(50):
        np.testing.assert_array_equal(f(x), first)
        f(x + 1.0)
    np.testing.assert_array_equal(f(x), first)


def test_outputs():
    f = minijax.jit(lambda x: {"a": (x, None, 3), "b": [x > 0]})
    out = f(1.0)
    assert out["a"][1] is None and out["a"][2] == 3 and bool(out["b"][0])
    assert out["a"][2].weak_type and out["a"][0].weak_type
    assert minijax.jit(lambda: 3.0)() == 3.0 and minijax.jit(lambda x: ())(1.0) == ()


def test_kwargs_and_pytrees():
    f = minijax.jit(lambda p, *, scale: mnp.dot(p["w"], p["b"]) * scale)
    p = {"w": mnp.ones((2, 3)), "b": mnp.arange(3.0)}
    np.testing.assert_array_equal(f(p, scale=2.0), [6.0, 6.0])


def test_jitted_method_and_decorator_forms():
    class Model:
        scale = 2.0

        def __eq__(self, other):
            return self is other

        def __hash__(self):
            return id(self)

        @minijax.jit
        def plain(x):
            return x

        @minijax.jit(static_argnums=0)
        def apply(self, x):
            return x * self.scale
    assert Model().apply(3.0) == 6.0
    assert minijax.jit(inline=True)(lambda x: x + 1)(1.0) == 2.0


def test_inline_leaves_no_equation():
    f = minijax.jit(lambda x: mnp.sin(x), inline=True)
    assert "jit" not in str(minijax.make_jaxpr(lambda x: f(x) * 2)(1.0))


def test_disable_jit():
    seen = []
    f = minijax.jit(lambda x: (seen.append(type(x)), x * 2)[1])
    with minijax.disable_jit():
        assert f(mnp.float32(2.0)) == 4.0
    assert seen == [minijax.Array]


def test_stages():
    f = minijax.jit(lambda x, y: mnp.sin(x) * y)
    x = mnp.arange(4.0)
    lowered = f.lower(x, 2.0)
    assert "sin" in lowered.as_text()
    compiled = lowered.compile()
    np.testing.assert_allclose(compiled(x, 2.0), np.sin(np.arange(4.0)) * 2, rtol=1e-6)
    assert "def " in compiled.as_text() and "mul" in compiled.as_text()
    with pytest.raises(TypeError, match="compiled for"):
        compiled(mnp.arange(5.0), 2.0)
    struct = minijax.ShapeDtypeStruct((4,), np.float32)
    assert f.eval_shape(struct, struct) == struct
    assert "f32[4]" in f.lower(struct, struct).as_text()


def test_donation_is_accepted():
    f = minijax.jit(lambda x, y: x + y, donate_argnums=0)
    assert f(1.0, 2.0) == 3.0
    assert minijax.jit(lambda x: x, donate_argnames="x")(1.0) == 1.0


def test_clear_caches():
    f, count = counted_jit(lambda x: x + 1.0)
    f(1.0)
    minijax.clear_caches()
    assert f(1.0) == 2.0 and count.calls == 2
    f.clear_cache()
    f(1.0)
    assert count.calls == 3


def machine_code_of(f):
    """A weak reference to the machine code of a jitted function's only program."""
    program, = f.programs.values()
    return weakref.ref(program.executable.main.__globals__["run_0"].__self__[0])


def test_machine_code_is_freed_with_its_function_or_by_clear_caches():
    f = minijax.jit(lambda x: x * 1.25 + 0.375)
    f(1.0)
    code, lines = machine_code_of(f), len(linecache.cache)
    minijax.clear_caches()
    gc.collect()
    assert code() is None and len(linecache.cache) < lines
    assert f(1.0) == 1.625
    code = machine_code_of(f)
    del f
    gc.collect()
    assert code() is None


def test_texts_of_all_stages():
    lowered = minijax.jit(lambda x: mnp.exp(x) + 1.0).lower(np.ones(8, np.float32))
    for dialect, part in {"jaxpr": "exp a", "ir": "exp %0", "python": "@kernel", "main": "run_0(",
                          "llvm": "define", "asm": ".text", "assembly": "ret"}.items():
        assert part in lowered.as_text(dialect), dialect
        assert part in lowered.compile().as_text(dialect), dialect
    with pytest.raises(ValueError, match="no dialect 'hlo': expected one of 'jaxpr'"):
        lowered.as_text("hlo")


def test_block_until_ready():
    x = mnp.ones(3)
    assert minijax.block_until_ready({"a": x})["a"] is x and x.block_until_ready() is x


def test_an_exception_in_the_function_leaves_nothing():
    calls = []

    def sometimes(x):
        calls.append(x)
        if len(calls) == 1:
            raise RuntimeError("first")
        return x
    f = minijax.jit(sometimes)
    with pytest.raises(RuntimeError, match="first"):
        f(1.0)
    assert f(1.0) == 1.0


def test_endless_recursion_is_reported_and_harmless():
    f = minijax.jit(lambda x: f(x) + 1)
    with pytest.raises(RecursionError, match="did not end"):
        f(1.0)
    assert minijax.jit(lambda x: x + 1)(1.0) == 2.0


def test_threads_trace_and_run_independently():
    f = minijax.jit(lambda x: mnp.sum(mnp.sin(x) * x))
    want = np.asarray(minijax.grad(lambda x: mnp.sum(mnp.sin(x) * x))(mnp.arange(8.0)))
    failures = []

    def work():
        for _ in range(20):
            got = np.asarray(minijax.jit(minijax.grad(f))(mnp.arange(8.0)))
            if not np.allclose(got, want, rtol=1e-5):
                failures.append(got)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not failures


def test_x64_mul_by_a_python_scalar_keeps_float32():
    with minijax.enable_x64():
        x = mnp.ones(2, mnp.float32)
        assert (x * 0.1).dtype == minijax.jit(lambda x: x * 0.1)(x).dtype == np.float32
        assert minijax.jit(lambda x: mnp.multiply(x, 0.1))(x).dtype == np.float32


def test_special_values_survive_compilation():
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0], np.float32)
    f = lambda np_: lambda x: (np_.isnan(x), np_.isinf(x), np_.signbit(x * 1.0), -x + 0.0, x - x)
    for a, b in zip(minijax.jit(f(mnp))(x), jax.jit(f(jax.numpy))(x)):
        np.testing.assert_array_equal(a, b)


def test_ten_thousand_equations():
    def f(x):
        for _ in range(10_000):
            x = x + 1.0
        return x
    jaxpr = minijax.make_jaxpr(f)(0.0)
    assert len(jaxpr.eqns) == 10_000 and str(jaxpr).count("add") == 10_000
    assert minijax.jit(f)(0.0) == 10_000.0
    assert minijax.grad(f)(0.0) == 1.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "complex64", "int8",
                                   "uint16", "bool"])
def test_constants_of_every_dtype(dtype):
    for value in (2.5, np.inf, -0.0):
        if dtype[0] not in "fbc" or dtype == "bool":
            value = 3
        constant = mnp.asarray(value, dtype)
        f = lambda x: (x * constant, constant, mnp.stack([constant, constant]))
        x = mnp.array([1.0, -1.0]).astype(dtype)
        for a, b in zip(minijax.jit(f)(x), f(x), strict=True):
            assert a.dtype == b.dtype
            wide = [np.asarray(v).astype(np.complex128) for v in (a, b)]
            np.testing.assert_array_equal(*wide)
