"""The compiler: compiled programs against eager ones, and the passes one by one."""
import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from samples import samples

import minijax.higher_order.jit                        # noqa: F401  (all primitives)
from minijax.array import Array
from minijax.avals import ShapedArray
from minijax.compiler import compile_jaxpr, executable, native
from minijax.compiler.check_ir import LoopIRError, check_program
from minijax.compiler.fuse import FUSION_PASSES
from minijax.compiler.passes import lower
from minijax.core import primitives
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.loop_ir import Call, Load, Nest, Product, Store, all_nodes

f32 = np.float32


# --- Tools -------------------------------------------------------------------------------------

def bind(name, *args, **params):
    return primitives[name].bind(*args, **params)


def rand(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(f32)


def program(function, *arrays):
    """The ClosedJaxpr of a function of arrays that returns a list."""
    return trace_to_closed_jaxpr(function, [ShapedArray(a.shape, a.dtype) for a in arrays])


def compiled(function, *arrays, renderer="llvm"):
    return compile_jaxpr(program(function, *arrays), renderer=renderer)


def eager(function, *arrays):
    return [o._value for o in function(*[Array(a.copy()) for a in arrays])]


def assert_close(got, want, sums=False):
    assert isinstance(got, np.ndarray)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.kind in "fc" or got.dtype.name == "bfloat16":
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        eps = 4 * float(np.finfo(f32 if got.dtype.itemsize in (4, 8) and got.dtype.kind != "f"
                                 else got.dtype if got.dtype.kind == "f" else f32).eps)
        eps = max(eps, 2.0 ** -6 if got.dtype.name == "bfloat16" else 0)
        np.testing.assert_allclose(got.astype(wide), want.astype(wide),
                                   rtol=eps * (4 if sums else 1), atol=1e-5 if sums else 1e-37)
    else:
        np.testing.assert_array_equal(got, want)


def assert_same(function, *arrays, sums=False):
    """By both renderers, and as plain Python, the program gives what evaluation gives."""
    want = eager(function, *arrays)
    for renderer in executable.RENDERERS:
        got = compiled(function, *arrays, renderer=renderer)(*arrays)
        for g, w in zip(got, want, strict=True):
            assert_close(g, w, sums)


def nests(exe):
    return [s for s in exe.passes["fuse"].steps if isinstance(s, Nest)]


def check_passes(closed):
    """Every pass on the loop IR leaves a legal IR."""
    step = check_program(lower(closed))
    for fusion_pass in FUSION_PASSES:
        step = check_program(fusion_pass(step))
    return step


# --- Every primitive ---------------------------------------------------------------------------

def sample_program(name):
    """All samples of a primitive as one program, and its arguments."""
    chosen = [(tuple(map(np.asarray, args)), params) for args, params in samples[name]]
    arrays = [a for args, _ in chosen for a in args]

    def function(*operands):
        rest, outs = iter(operands), []
        for args, params in chosen:
            out = bind(name, *[next(rest) for _ in args], **params)
            outs += out if primitives[name].multiple_results else [out]
        return outs
    return function, arrays


first_order = [n for n, p in primitives.items() if n in samples and not p.higher_order]


@pytest.mark.parametrize("name", first_order)
def test_primitive(name):
    function, arrays = sample_program(name)
    check_passes(program(function, *arrays))
    sums = name in ("reduce_sum", "reduce_prod", "dot_general", "cumsum")
    assert_same(function, *arrays, sums=sums)


# --- Fusion ------------------------------------------------------------------------------------

def test_a_chain_is_one_loop():
    def f(x, y):
        a = bind("mul", bind("add", x, y), f32(0.5))
        return [bind("sub", bind("tanh", a), bind("exp", a))]
    exe = compiled(f, rand(3, 4), rand(3, 4))
    assert len(nests(exe)) == 1 and len(nests(exe)[0].axes) == 1
    assert_same(f, rand(3, 4), rand(3, 4, seed=1))


def test_views_are_index_maps():
    def f(x, b):
        t = bind("transpose", x, permutation=(1, 0))
        s = bind("slice", t, start_indices=(1, 0), limit_indices=(4, 3), strides=None)
        r = bind("rev", bind("reshape", s, new_sizes=(9,), dimensions=None), dimensions=(0,))
        wide = bind("broadcast_in_dim", b, shape=(9,), broadcast_dimensions=())
        padded = bind("pad", bind("add", r, wide), f32(7), padding_config=((1, -2, 1),))
        return [bind("mul", padded, padded)]
    exe = compiled(f, rand(3, 5), rand())
    assert len(nests(exe)) == 1
    assert len(exe.passes["fuse"].steps) == 1
    check_passes(exe.jaxpr)
    assert_same(f, rand(3, 5), rand())


def test_a_reduction_computes_its_operand():
    def f(x, y):
        return [bind("reduce_sum", bind("mul", x, y), axes=(1,))]
    exe = compiled(f, rand(4, 300), rand(4, 300))
    assert len(nests(exe)) == 1
    assert_same(f, rand(4, 300), rand(4, 300, seed=1), sums=True)


def test_shared_values_stay_in_one_loop():
    """Values that several members of one loop read are scalars there; only results are stored."""
    def f(x):
        e = bind("exp", x)
        return [bind("add", e, x), bind("mul", e, e)]
    exe = compiled(f, rand(10))
    assert len(nests(exe)) == 1
    assert sum(isinstance(n, Store) for n in nests(exe)[0].body) == 2
    assert sum(isinstance(n, Load) for n in nests(exe)[0].body) == 1
    assert_same(f, rand(10))


def test_no_cycle_between_loops():
    """x -> sum -> broadcast -> add with exp(x): the exponential may not wait for itself."""
    def f(x):
        e = bind("exp", x)
        s = bind("reduce_sum", e, axes=(0,))
        return [bind("div", e, bind("broadcast_in_dim", s, shape=(10,), broadcast_dimensions=()))]
    check_passes(program(f, rand(10)))
    assert_same(f, rand(10), sums=True)


def test_transposed_operand_of_a_product_is_not_copied():
    def f(x, y):
        t = bind("transpose", x, permutation=(1, 0))
        return [bind("dot_general", t, y, dimension_numbers=(((1,), (0,)), ((), ())),
                     precision=None, preferred_element_type=None)]
    exe = compiled(f, rand(30, 40), rand(30, 50))
    product, = exe.program.steps
    assert isinstance(product, Product)
    assert_same(f, rand(30, 40), rand(30, 50), sums=True)
    assert_same(f, rand(30, 40) > 1, rand(30, 50) > 1)


def test_softmax_and_its_epilogue():
    def f(x):
        m = bind("reduce_max", x, axes=(1,))
        e = bind("exp", bind("sub", x, bind("broadcast_in_dim", m, shape=(5, 300),
                                            broadcast_dimensions=(0,))))
        s = bind("reduce_sum", e, axes=(1,))
        return [bind("div", e, bind("broadcast_in_dim", s, shape=(5, 300),
                                    broadcast_dimensions=(0,)))]
    assert_same(f, rand(5, 300), sums=True)


def test_an_update_leaves_its_operand_alone():
    def f(x, u, i):
        return [bind("dynamic_update_slice", x, u, i), bind("neg", x)]
    x = rand(6)
    exe = compiled(f, x, rand(2), np.int32(3))
    before = x.copy()
    exe(x, rand(2), np.asarray(np.int32(3)))
    np.testing.assert_array_equal(x, before)
    assert_same(f, x, rand(2), np.asarray(np.int32(9)))


# --- Reductions --------------------------------------------------------------------------------

@pytest.mark.parametrize("shape, axes", [((1000,), (0,)), ((7, 301), (1,)), ((301, 7), (0,)),
                                         ((3, 70, 5), (1,)), ((3, 5, 70), (0, 2)),
                                         ((4, 65, 65), (1, 2)), ((1, 300), (0,)),
                                         ((300, 1), (1,)), ((2, 300, 1), (1, 2))])
def test_sums_are_accurate(shape, axes):
    x = rand(*shape)
    got, = compiled(lambda x: [bind("reduce_sum", x, axes=axes)], x)(x)
    exact = x.astype(np.float64).sum(axes)
    bound = np.prod([shape[a] for a in axes]) * np.finfo(f32).eps * np.abs(x).sum(axes) + 1e-12
    assert (np.abs(got - exact) <= bound).all()


def test_long_sums_use_many_accumulators():
    """The order of sums is part of the IR, so it is the same in plain Python, to the bit."""
    x = rand(1000)
    f = lambda x: [bind("reduce_sum", x, axes=(0,))]
    exes = [compiled(f, x, renderer=renderer) for renderer in executable.RENDERERS]
    assert "lanes(64, f32(0.0))" in exes[0].as_text()
    assert len({exe(x)[0].tobytes() for exe in exes}) == 1


# --- Special values ----------------------------------------------------------------------------

special = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, 3e38, -3e38, 0.5, -2.5, 88,
                    89, -88, -104, 1e-8, 100, 2 ** 23 + 1, 1e10], f32)
FUNCTIONS = ("exp exp2 expm1 log log1p sin cos tan tanh asin acos atan sinh cosh asinh acosh atanh "
             "erf erfc sqrt rsqrt cbrt logistic abs neg sign floor ceil is_finite lgamma").split()


@pytest.mark.parametrize("renderer", ["llvm", "python"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(dtype, renderer):
    x = special.astype(dtype)
    f = lambda x: [bind(name, x) for name in FUNCTIONS]
    outs = compiled(f, x, renderer=renderer)(x)
    for name, got, want in zip(FUNCTIONS, outs, eager(f, x)):
        got, want = (o.astype(np.float64) for o in (got, want))
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps, err_msg=name,
                                   atol=1e-15 if name == "lgamma" else np.finfo(dtype).tiny)
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]), name)


def test_nan_is_not_folded_away():
    f = lambda x, y: [bind("ne", x, x), bind("max", x, y), bind("min", x, y), bind("eq", x, y),
                      bind("reduce_max", x, axes=(0,)), bind("rem", x, y)]
    grid = np.array(np.meshgrid(special, special)).reshape(2, -1)
    assert_same(f, *grid.copy())


def test_integers_at_the_edge():
    for dtype in (np.int8, np.int32, np.uint8, np.uint32):
        bounds = np.iinfo(dtype)
        edge = np.array([0, 1, 2, 7, 31, 32, 33, bounds.max, bounds.min, bounds.max - 1], dtype)
        if bounds.min:
            edge = np.concatenate([edge, np.array([-1, -2, -33], dtype)])
        grid = np.array(np.meshgrid(edge, edge)).reshape(2, -1).astype(dtype)
        names = ("add sub mul div rem max min shift_left shift_right_logical "
                 "shift_right_arithmetic and or xor lt ge").split()
        assert_same(lambda x, y: [bind(n, x, y) for n in names], *grid.copy())
        unary = ["not", "clz", "population_count", "sign", "neg"] + ["abs"] * (bounds.min < 0)
        assert_same(lambda x: [bind(n, x) for n in unary], edge)


def test_floats_to_integers_saturate():
    x = np.array([0.5, -0.5, 127.5, 128, 300, -300, 3e9, -3e9, 1e19, np.inf, -np.inf, np.nan], f32)
    for name in ("int8", "int32", "uint8", "uint32", "bool"):
        assert_same(lambda x: [bind("convert_element_type", x, new_dtype=np.dtype(name),
                                    weak_type=False)], x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), ()])
def test_empty_and_scalar_arrays(shape):
    assert_same(lambda x: [bind("add", bind("exp", x), f32(1)), bind(
        "reduce_sum", x, axes=tuple(range(len(shape)))), x], rand(*shape))


# --- Operands and results ----------------------------------------------------------------------

def test_operands_may_be_strided_and_read_only():
    exe = compiled(lambda x: [bind("add", x, f32(1))], rand(3, 4))
    x = rand(4, 3).T
    np.testing.assert_array_equal(exe(x)[0], x + 1)
    x = np.broadcast_to(rand(4), (3, 4))
    np.testing.assert_array_equal(exe(x)[0], x + 1)


def test_results_may_be_arguments_literals_and_repeated():
    def f(x):
        y = bind("neg", x)
        return [x, y, y, bind("add", f32(1), f32(2))]
    assert_same(f, rand(3))


def test_constants_are_arguments():
    c = Array(rand(3))
    exe = compiled(lambda x: [bind("add", x, c)], rand(3))
    np.testing.assert_array_equal(exe(rand(3, seed=1))[0], rand(3, seed=1) + c._value)


def test_several_threads_at_once():
    def f(x):
        return [bind("reduce_sum", bind("exp", bind("sort", x, dimension=0, is_stable=True,
                                                    num_keys=1)[0]), axes=(0,))]
    exe, x = compiled(f, rand(5000)), rand(5000)
    want, wrong = exe(x)[0], []

    def work():
        wrong.extend(r for _ in range(50) if (r := exe(x)[0]) != want)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# --- Passes ------------------------------------------------------------------------------------

def test_passes_can_be_looked_at():
    exe = compiled(lambda x: [bind("exp", x)], rand(3))
    assert list(exe.passes) == ["inline_calls", "dead_code", "fold_constants", "exact_identities",
                                "transposed_products", "hoist_invariants",
                                "common_subexpressions", "lower",
                                "tile_loops", "add_in_place", "fuse", "update_in_place",
                                "reuse_memory"]
    assert "exp" in exe.ir_text() and "# b:f32[3] = exp a" in exe.as_text()


def test_dead_code_and_common_subexpressions():
    def f(x):
        bind("log", x)
        return [bind("add", bind("exp", x), bind("exp", x))]
    eqns = compiled(f, rand(3)).passes["common_subexpressions"].eqns
    assert [e.primitive.name for e in eqns] == ["exp", "add"]


def test_zeros_of_either_sign_are_different_constants():
    f = lambda x: [bind("div", x, f32(0.0)), bind("div", x, f32(-0.0))]
    assert_same(f, np.ones(1, f32))


def test_calls_are_inlined():
    from minijax.higher_order.jit import bind_jit
    inner = program(lambda x: [bind("exp", x)], rand(3))

    def f(x):
        y, = bind_jit(inner.jaxpr, [], [x], "inner")
        return bind_jit(inner.jaxpr, [], [y], "inner")
    exe = compiled(f, rand(3))
    assert [e.primitive.name for e in exe.passes["inline_calls"].eqns] == ["exp", "exp"]
    assert len(nests(exe)) == 1
    assert_same(f, rand(3))


def test_equal_programs_share_machine_code_as_long_as_one_is_in_use():
    f = lambda x: [bind("atan", bind("sub", x, f32(0.123)))]
    exes = [compiled(f, rand(77)) for _ in range(2)]
    assert len({id(exe.main.__globals__["run_0"].__self__[0]) for exe in exes}) == 1
    code = weakref.ref(exes[0].main.__globals__["run_0"].__self__[0])
    key, = [key for key, value in native._codes.items() if value is code()]
    del exes
    gc.collect()
    assert code() is None and key not in native._codes


def test_a_function_outlives_what_the_collector_empties():
    """In a cycle that is taken apart, the machine code is emptied while functions are still there."""
    run = compiled(lambda x: [bind("exp", x)], rand(5)).main.__globals__["run_0"]
    code, *_ = run.__self__
    vars(code).clear()
    other = [bytes([255]) * size for size in range(16, 80) for _ in range(1000)]
    assert run.__name__ == "run_0" and other


def test_equal_loops_become_one_function():
    def f(x, y):
        return [bind("exp", x), bind("exp", y)]
    text = compiled(f, rand(2500), rand(2500)).as_text("llvm")
    assert text.count("define internal void") == 1 and text.count("call void @\"part_0\"") == 2


def test_a_long_chain_does_not_recurse():
    def f(x):
        for k in range(10_000):
            x = bind("add" if k % 2 else "mul", x, f32(1 + k % 3 * 1e-3))
        return [x]
    x = np.ones(2, f32)
    closed = program(f, x)
    check_passes(closed)
    exe = compile_jaxpr(closed, renderer="plain")
    assert all(sum(1 for _ in all_nodes(n.body)) < 1000 for n in nests(exe))
    np.testing.assert_allclose(exe(x)[0], eager(f, x)[0], rtol=1e-5)


def test_a_long_chain_of_views_does_not_recurse():
    def f(x):
        for k in range(1000):
            x = bind("transpose", x, permutation=(1, 0))
            x = bind("reshape", x, new_sizes=(3, 2), dimensions=None)
        return [x]
    check_passes(program(f, rand(3, 2)))
    exe = compiled(f, rand(3, 2), renderer="plain")
    np.testing.assert_array_equal(exe(rand(3, 2))[0], eager(f, rand(3, 2))[0])


def test_the_collector_is_paused_and_no_longer(monkeypatch):
    during = []
    run_passes = executable.run_passes
    monkeypatch.setattr(executable, "run_passes",
                        lambda closed: during.append(gc.isenabled()) or run_passes(closed))
    compiled(lambda x: [bind("exp", x)], rand(3))
    assert during == [False] and gc.isenabled()
    with pytest.raises(ValueError, match="renderer must be one of"):
        compiled(lambda x: [bind("exp", x)], rand(3), renderer="xla")
    assert gc.isenabled()
    gc.disable()
    try:
        compiled(lambda x: [bind("exp", x)], rand(3))
        assert not gc.isenabled()
    finally:
        gc.enable()


# --- The checker of the IR ---------------------------------------------------------------------

def broken(change):
    p = lower(program(lambda x: [bind("exp", bind("neg", x))], rand(3)))
    change(p)
    return p


@pytest.mark.parametrize("change", [
    lambda p: p.steps.reverse(),
    lambda p: p.steps.pop(),
    lambda p: p.steps.append(p.steps[-1]),
    lambda p: p.steps[0].body.reverse(),
    lambda p: p.steps[0].axes.clear(),
    lambda p: setattr(p.steps[0].axes[0], "size", 4),
    lambda p: setattr(p.steps[0].body[1], "name", "sine"),
    lambda p: setattr(p.steps[0].body[1], "dtype", np.dtype("int32")),
    lambda p: p.steps.append(Call("f", len, [p.outputs[0]], [p.inputs[0]])),
])
def test_checker_finds_what_is_wrong(change):
    with pytest.raises(LoopIRError):
        check_program(broken(change))


# --- The generated source ----------------------------------------------------------------------

def test_disabled_numba_is_plain_python():
    code = ("import sys, numpy as np\n"
            "from minijax.avals import ShapedArray\n"
            "from minijax.compiler import compile_jaxpr\n"
            "from minijax.primitives.elementwise import exp\n"
            "from minijax.interpreters.staging import trace_to_closed_jaxpr\n"
            "x = np.ones(3, np.float32)\n"
            "closed = trace_to_closed_jaxpr(lambda x: [exp(x)], [ShapedArray((3,), x.dtype)])\n"
            "print(compile_jaxpr(closed)(x)[0], 'numba' in sys.modules)\n")
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert out.stdout.strip() == f"{np.exp(np.ones(3, f32))} False", out.stderr
