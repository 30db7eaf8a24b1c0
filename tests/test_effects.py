"""Callbacks and prints: what they show, when, and under which transformations; compared with JAX."""
import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax.experimental
from minijax.compiler.passes import common_subexpressions, dead_code
from minijax.interpreters.partial_eval import split_jaxpr
from minijax.interpreters.staging import trace_to_closed_jaxpr

LIBRARIES = {"jax": jax, "minijax": minijax}
F = np.float32
SCALAR = jax.ShapeDtypeStruct((), F)


def outcome(lib, run, capsys):
    """(what run(lib) returns or the type it raises, what it prints)"""
    capsys.readouterr()
    try:
        result = jax.tree.map(np.asarray, run(lib))
        lib.effects_barrier()
    except Exception as error:
        result = type(error)
    return result, capsys.readouterr().out


def agree(run, capsys, printed=None):
    ours, ours_out = outcome(minijax, run, capsys)
    theirs, theirs_out = outcome(jax, run, capsys)
    assert ours_out == theirs_out
    assert printed is None or ours_out == printed
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), ours, theirs)


# --- Formats --------------------------------------------------------------------------------------

@pytest.mark.parametrize("args, kwargs", [
    (("plain",), {}), (("{} {{}}", 1), {}), (("{:.2f} {x:>6}", F(2)), dict(x=3)),
    (("{x[0]} {y[a]}",), dict(x=[1, 2], y={"a": F(1)})), (("{}", "text"), {}), (("{!r}", "text"), {}),
    (("{1} {0}", 1, 2), {}), (("{t}",), dict(t=(np.arange(3), {"k": None}))),
    (("{} {}", 1), {}), (("{}", 1, 2), {}), (("{x}",), {}), (("{x}",), dict(x=1, y=2)),
    (("no braces", 2), {}), ((3,), {}), (("{x.shape} {x.dtype}",), dict(x=np.zeros((2, 3), F))),
], ids=str)
@pytest.mark.parametrize("jitted", [False, True])
def test_formats(args, kwargs, jitted, capsys):
    fmt, *rest = args

    def run(lib):
        show = lambda: lib.debug.print(fmt, *rest, **kwargs)
        return (lib.jit(show) if jitted else show)()
    agree(run, capsys)


def test_traced_values_and_others_mix(capsys):
    agree(lambda lib: lib.jit(lambda x: lib.debug.print("{} {n} {x}", "s", n=None, x=x))(F(2)), capsys,
          "s None 2.0\n")


def test_options_may_come_in_a_call_of_their_own(capsys):
    agree(lambda lib: lib.debug.print(ordered=True)("{}", F(1)), capsys, "1.0\n")
    got = []
    minijax.debug.callback(ordered=True)(lambda x: got.append(float(x)), F(1))
    assert got == [1.0]
    agree(lambda lib: lib.debug.print(x=1), capsys)
    agree(lambda lib: lib.debug.callback(3), capsys)


def test_print_options_are_those_of_tracing(capsys):
    with np.printoptions(precision=2):
        show = minijax.jit(lambda x: minijax.debug.print("{}", x))
        show.lower(np.ones(2, F))
    show(np.array([1 / 3, 2 / 3], F))
    assert capsys.readouterr().out == "[0.33 0.67]\n"


# --- Under transformations ------------------------------------------------------------------------

def speaking(lib, ordered=False):
    def f(x):
        lib.debug.print("x {}", x, ordered=ordered)
        y = lib.numpy.sin(x) * x
        lib.debug.print("y {:.3f}", y, ordered=ordered)
        return y
    return f


TRANSFORMED = {
    "plain": lambda lib, f: f(F(2)),
    "jit": lambda lib, f: lib.jit(f)(F(2)),
    "grad": lambda lib, f: lib.grad(f)(F(2)),
    "jvp": lambda lib, f: lib.jvp(f, (F(2),), (F(1),)),
    "vjp": lambda lib, f: lib.vjp(f, F(2))[1](F(1)),
    "linearize": lambda lib, f: lib.linearize(f, F(2))[1](F(1)),
    "jit(grad)": lambda lib, f: lib.jit(lib.grad(f))(F(2)),
    "grad(jit)": lambda lib, f: lib.grad(lib.jit(f))(F(2)),
    "grad(jit(jit))": lambda lib, f: lib.grad(lib.jit(lib.jit(f)))(F(2)),
    "jit(jit)": lambda lib, f: lib.jit(lib.jit(f))(F(2)),
    "vmap": lambda lib, f: lib.vmap(f)(np.arange(3, dtype=F)),
    "jit(vmap)": lambda lib, f: lib.jit(lib.vmap(f))(np.arange(3, dtype=F)),
    "vmap(jit)": lambda lib, f: lib.vmap(lib.jit(f))(np.arange(3, dtype=F)),
    "jit(vmap(grad))": lambda lib, f: lib.jit(lib.vmap(lib.grad(f)))(np.arange(3, dtype=F)),
    "value_and_grad": lambda lib, f: lib.value_and_grad(f)(F(2)),
    "grad(grad)": lambda lib, f: lib.grad(lib.grad(f))(F(2)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_prints_in_the_same_order_as_jax(name, capsys):
    agree(lambda lib: TRANSFORMED[name](lib, speaking(lib, ordered=True)), capsys)


@pytest.mark.parametrize("name", TRANSFORMED)
def test_unordered_prints_keep_their_order_too(name, capsys):
    """JAX promises none for these; here they are those of ordered ones."""
    _, ordered = outcome(minijax, lambda lib: TRANSFORMED[name](lib, speaking(lib, True)), capsys)
    _, unordered = outcome(minijax, lambda lib: TRANSFORMED[name](lib, speaking(lib)), capsys)
    assert unordered == ordered != ""


def test_nested_vmaps_go_row_by_row(capsys):
    """JAX goes through the columns first; a departure."""
    minijax.vmap(minijax.vmap(lambda x: minijax.debug.print("{}", x)))(np.arange(4).reshape(2, 2))
    assert capsys.readouterr().out.split() == ["0", "1", "2", "3"]


def test_escaped_braces_first(capsys):
    """JAX takes this for a format without arguments to fill in; a departure."""
    minijax.debug.print("{{}} {}", 1)
    assert capsys.readouterr().out == "{} 1\n"


def test_many_runs_of_one_program(capsys):
    f = minijax.jit(speaking(minijax))
    [f(F(i)) for i in range(3)]
    assert capsys.readouterr().out.count("x ") == 3


def test_vmap_with_an_axis_in_the_middle_and_an_operand_not_mapped(capsys):
    x = np.arange(6, dtype=F).reshape(2, 3)
    agree(lambda lib: lib.vmap(lambda x, y: lib.debug.print("{} {}", x, y, ordered=True), (1, None))(
        x, F(7)), capsys)
    agree(lambda lib: lib.vmap(lambda x, y: lib.debug.print("{}", y, ordered=True), (1, None))(x, F(7)),
          capsys, "7.0\n")


def test_a_callback_sees_arrays(capsys):
    def run(lib):
        seen = []
        check = lambda x, y, s: seen.append(
            (isinstance(x, lib.Array), x.shape, str(y["k"].dtype), x.weak_type, s))
        lib.jit(lambda x: lib.debug.callback(check, x, {"k": x.astype(int)}, "s"))(np.ones(3, F))
        lib.effects_barrier()
        return [len(seen), *seen[0][1], seen[0][0]], capsys.readouterr()[:0]
    agree(run, capsys)


@pytest.mark.parametrize("wrap", ["eager", "jit", "jit of vmap"])
@pytest.mark.parametrize("call", ["pure_callback", "io_callback"])
def test_a_callback_sees_no_weak_types(call, wrap):
    def seen(lib):
        kinds = []
        look = lambda *args: (kinds.append([x.weak_type for x in args]), F(1))[1]
        options = {"vmap_method": "sequential"} if call == "pure_callback" else {}
        callback = getattr(lib, call, None) or getattr(lib.experimental, call)
        f = lambda x: callback(look, SCALAR, x, 2, F(3), **options)
        if wrap == "eager":
            f(1.5)
        else:
            lib.jit(f)(1.5) if wrap == "jit" else lib.jit(lib.vmap(f))(np.ones(1, F))
        lib.effects_barrier()
        return kinds
    assert seen(minijax) == seen(jax)


def test_a_callback_may_keep_what_it_gets():
    kept = []

    @minijax.jit
    def f(x):
        for _ in range(4):
            x = minijax.numpy.cumsum(x * 2)
            minijax.debug.callback(kept.append, x)
        return x

    f(np.ones(50, F)), f(np.zeros(50, F))
    want = np.ones(50, F)
    for x in kept[:4]:
        want = np.cumsum(want * 2)
        np.testing.assert_allclose(np.asarray(x), want, rtol=1e-5)


def test_a_callback_may_compute_and_transform():
    got = []

    def look(x):
        got.append(float(minijax.grad(lambda y: minijax.numpy.sum(y ** 2))(x)[0]))

    minijax.jit(minijax.grad(lambda x: (minijax.debug.callback(look, x), x.sum())[1]))(np.ones(2, F))
    assert got == [2.0]


# --- In loops and custom rules --------------------------------------------------------------------

def loops(lib):
    lax, show = lib.lax, lambda fmt, x: lib.debug.print(fmt, x, ordered=True)

    def scanned(x):
        def body(c, y):
            show("scan {}", c)
            return c * y, c
        return lax.scan(body, x, np.arange(1, 4, dtype=F))[0]

    def counted(x):
        def body(i, c):
            show("fori {}", i)
            return lib.numpy.sin(c) * 2
        return lax.fori_loop(0, 3, body, x)

    def while_true(x):
        def body(c):
            show("while {}", c)
            return c + 1
        return lax.while_loop(lambda c: c < 4, body, x)

    def chosen(x):
        return lax.cond(x > 1, lambda x: (show("yes {}", x), x * x)[1],
                        lambda x: (show("no {}", x), -x)[1], x)

    def nested(x):
        return lax.scan(lambda c, y: (chosen(c) + y, None), scanned(x), np.arange(2, dtype=F))[0]

    def custom(x):
        @lib.custom_jvp
        def f(x):
            show("custom {}", x)
            return lib.numpy.sin(x)
        f.defjvp(lambda p, t: (f(*p), t[0] * lib.numpy.cos(p[0])))
        return f(x)

    def custom_backwards(x):
        @lib.custom_vjp
        def f(x):
            show("primal {}", x)
            return x * x

        def forward(x):
            show("forward {}", x)
            return x * x, x

        def backward(x, ct):
            show("backward {}", ct)
            return (2 * x * ct,)
        f.defvjp(forward, backward)
        return f(x)

    def dropped(x):
        lib.jit(custom)(x)
        scanned(x)
        return x
    return locals()


WRAPS = {"eager": lambda lib, f: f, "jit": lambda lib, f: lib.jit(f), "grad": lambda lib, f: lib.grad(f),
         "jit(grad)": lambda lib, f: lib.jit(lib.grad(f)), "grad(jit)": lambda lib, f: lib.grad(lib.jit(f)),
         "jvp": lambda lib, f: lambda x: lib.jvp(f, (x,), (x,))}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", ["scanned", "counted", "while_true", "chosen", "nested", "custom",
                                  "custom_backwards", "dropped"])
def test_effects_in_programs_in_programs(name, wrap, capsys):
    if name == "while_true" and "grad" in wrap:
        pytest.skip("no reverse mode of while_loop")
    agree(lambda lib: WRAPS[wrap](lib, loops(lib)[name])(F(2)), capsys)


@pytest.mark.parametrize("name", ["scanned", "counted", "custom"])
def test_effects_in_batched_loops(name, capsys):
    agree(lambda lib: lib.jit(lib.vmap(loops(lib)[name]))(np.array([1, 2], F)), capsys)


def test_pure_callbacks_in_loops():
    def run(lib):
        f = lambda x: lib.pure_callback(lambda x: np.sin(x), SCALAR, x, vmap_method="sequential")
        loop = lambda x: lib.lax.fori_loop(0, 3, lambda i, c: f(c) + i, x)
        return lib.jit(lib.vmap(loop))(np.arange(3, dtype=F))
    np.testing.assert_allclose(run(minijax), run(jax), rtol=1e-6)


# --- The four laws --------------------------------------------------------------------------------

def test_programs_know_their_effects():
    show = lambda x: minijax.debug.print("{}", x)
    inner = minijax.jit(show)
    for f in show, inner, minijax.vmap(inner), minijax.jit(lambda x: inner(x)):
        jaxpr = minijax.make_jaxpr(f)(np.ones(2, F))
        assert [str(e) for e in jaxpr.effects] == ["Debug"], jaxpr
    ordered = minijax.make_jaxpr(lambda x: minijax.debug.print("{}", x, ordered=True))(1.0)
    assert [str(e) for e in ordered.effects] == ["OrderedDebug"]
    assert not minijax.make_jaxpr(lambda x: minijax.numpy.sin(x))(1.0).effects


def test_nothing_is_dropped_or_merged_by_passes():
    def f(x):
        [minijax.debug.print("same {}", x) for _ in range(3)]
        return [x]
    closed = trace_to_closed_jaxpr(f, [minijax.typeof(F(1))])
    assert [len(step(closed).eqns) for step in (dead_code, common_subexpressions)] == [3, 3]


def test_an_effect_is_in_one_part_of_a_split_program():
    def f(x, t):
        minijax.debug.print("known {}", x)
        minijax.debug.print("unknown {}", t)
        return [x * t]
    jaxpr = trace_to_closed_jaxpr(f, [minijax.typeof(F(1))] * 2).jaxpr
    known, _, later, *_ = split_jaxpr(jaxpr, [False, True])
    assert [eqn.params["fmt"] for eqn in known.eqns] == ["known {}"]
    assert [eqn.params["fmt"] for eqn in later.eqns if eqn.effects] == ["unknown {}"]


def test_a_call_nobody_reads_keeps_its_effects(capsys):
    def run(lib):
        inner = lib.jit(lambda x: (lib.debug.print("kept {}", x), x * 2)[1])
        return lib.jit(lambda x: (inner(x), inner(x), x)[2])(F(3))
    agree(run, capsys, "kept 3.0\nkept 3.0\n")


def test_effects_of_a_gradient_that_is_zero(capsys):
    agree(lambda lib: lib.jit(lib.grad(lambda x: (speaking(lib, True)(x), F(1) + 0 * x)[1]))(F(2)), capsys)


def test_loops_between_effects_do_not_change_their_order(capsys):
    @minijax.jit
    def f(x):
        for i in range(6):
            minijax.debug.print(f"{i} {{:.2f}}", minijax.numpy.sum(minijax.numpy.exp(x * i)))
            x = x / 2
        return x
    f(np.ones(100, F))
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == list("012345")


# --- pure_callback --------------------------------------------------------------------------------

def host(f, **options):
    return lambda lib: lambda *args: lib.pure_callback(f, SCALAR, *args, **options)


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
                                    "legacy_vectorized"])
@pytest.mark.parametrize("levels", [1, 2])
def test_vmap_methods(method, levels, capsys):
    def run(lib):
        shapes = []
        f = host(lambda x, y: (shapes.append((x.shape, y.shape)), np.add(x, y))[1],
                 vmap_method=method)(lib)
        for _ in range(levels):
            f = lib.vmap(f, (0, None))
        out = lib.jit(f)(np.arange(3.0 ** levels, dtype=F).reshape((3,) * levels), F(1))
        return out, list(map(np.array, map(str, shapes)))
    ours, theirs = run(minijax), run(jax)
    np.testing.assert_array_equal(ours[0], theirs[0])
    assert list(map(str, ours[1])) == list(map(str, theirs[1]))


@pytest.mark.parametrize("use", [
    lambda lib: lib.vmap(host(np.sin)(lib))(np.ones(3, F)),
    lambda lib: host(np.sin, vmap_method="some")(lib)(F(1)),
    lambda lib: lib.grad(host(np.sin)(lib))(F(1)),
    lambda lib: lib.jvp(lib.jit(host(np.sin)(lib)), (F(1),), (F(1),)),
    lambda lib: lib.pure_callback(np.sin, lib.ShapeDtypeStruct((), np.float64), F(1)),
    lambda lib: lib.experimental.io_callback(np.sin, lib.ShapeDtypeStruct((), np.int64), F(1)),
    lambda lib: lib.pure_callback(np.sin, 3, F(1)),
    lambda lib: host(np.sin)(lib)("text"),
])
def test_refusals_are_those_of_jax(use, capsys):
    agree(use, capsys)


def test_pytrees_of_results_and_arguments():
    def f(d, *, k):
        return {"a": np.asarray(d["x"]) + k, "b": [np.asarray(d["x"]).sum()]}

    def run(lib):
        structs = {"a": lib.ShapeDtypeStruct((2,), F), "b": [SCALAR]}
        return lib.jit(lambda x: lib.pure_callback(f, structs, {"x": x}, k=x[0]))(np.ones(2, F))
    jax.tree.map(np.testing.assert_array_equal, run(minijax), run(jax))


@pytest.mark.parametrize("wrong, message", [
    (lambda x: np.ones(3, F), r"float32\[3\]"), (lambda x: np.int32(x), r"int32\[\]"),
    (lambda x: (x, x), "2 arrays"), (lambda x: None, "0 arrays"),
])
@pytest.mark.parametrize("jitted", [False, True])
def test_results_must_be_as_promised(wrong, message, jitted):
    f = host(wrong)(minijax)
    with pytest.raises(RuntimeError, match=message):
        (minijax.jit(f) if jitted else f)(F(1))
    with pytest.raises(RuntimeError):
        host(wrong)(jax)(F(1))


def test_pure_calls_are_dropped_and_merged():
    calls = []
    f = host(lambda x: (calls.append(1), np.sin(x))[1])(minijax)
    assert minijax.jit(lambda x: (f(x), x)[1])(F(1)) == 1 and not calls
    assert minijax.jit(lambda x: f(x) + f(x))(F(0)) == 0 and len(calls) <= 2


def test_constant_operands_and_no_operands():
    f = minijax.jit(lambda: minijax.pure_callback(lambda: F(3), SCALAR))
    assert f() == 3
    g = minijax.jit(lambda x: x + minijax.pure_callback(lambda a, b: a + b, SCALAR, F(1), F(2)))
    assert g(F(1)) == 4


def test_what_a_callback_returns_is_copied():
    buffer = np.zeros(3, F)
    f = lambda x: minijax.pure_callback(lambda x: buffer, jax.ShapeDtypeStruct((3,), F), x)
    eager, compiled = f(F(0)), minijax.jit(f)(F(0))
    buffer[:] = 1
    assert not eager.any() and not compiled.any()


# --- Exceptions -----------------------------------------------------------------------------------

class Trouble(Exception):
    pass


BATCH = np.arange(3, dtype=F)


@pytest.mark.parametrize("wrap, x", [
    (lambda f: f, F(2)), (minijax.jit, F(2)), (minijax.vmap, BATCH),
    (lambda f: minijax.jit(minijax.vmap(f)), BATCH), (lambda f: minijax.vmap(minijax.jit(f)), BATCH),
    (lambda f: minijax.jit(minijax.vmap(minijax.grad(f))), BATCH)])
@pytest.mark.parametrize("kind", [Trouble, KeyboardInterrupt])
def test_exceptions_come_out_and_break_nothing(wrap, x, kind):
    bad = [True]

    def look(x):
        if bad[0] and x > 1:
            raise kind("here")

    f = wrap(lambda x: (minijax.debug.callback(look, x), x * x)[1])
    with pytest.raises(kind, match="here"):
        f(x)
    assert minijax.core.get_current_trace() is minijax.core.eval_trace
    bad[0] = False
    np.testing.assert_array_equal(minijax.jit(lambda x: x + 1)(x), x + 1)
    f(x)


# --- io_callback ----------------------------------------------------------------------------------

@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("wrap", ["eager", "jit", "vmap", "grad"])
def test_io_callback(wrap, ordered, capsys):
    def run(lib):
        state = [0]

        def count(x):
            state[0] += 1
            return F(state[0]) * np.asarray(x)

        def f(x):
            a = lib.experimental.io_callback(count, SCALAR, x, ordered=ordered)
            return a + 10 * lib.experimental.io_callback(count, SCALAR, x, ordered=ordered)
        return {"eager": f, "jit": lib.jit(f), "vmap": lib.vmap(f), "grad": lib.grad(f)}[wrap](
            F(1) if wrap != "vmap" else np.ones(3, F))
    agree(run, capsys)


DECIDING = {
    "cond": lambda lib, f, x: lib.lax.cond(x > 1, f, lambda x: x, x),
    "switch in a scan": lambda lib, f, x: lib.lax.fori_loop(
        0, 2, lambda i, c: lib.lax.switch(i + c.astype(int), [lambda x: x, lib.jit(f), abs], c), x),
    "a turn": lambda lib, f, x: lib.lax.while_loop(lambda c: c < 2, f, x),
    "a condition": lambda lib, f, x: lib.lax.while_loop(lambda c: f(c) < 2, lambda c: c + 1, x),
}


@pytest.mark.parametrize("name", DECIDING)
def test_no_io_for_examples_that_went_another_way(name):
    for lib, error in [(minijax, NotImplementedError), (jax, Exception)]:
        seen = []
        count = lambda x: (seen.append(float(x)), F(x + 1))[1]
        f = lambda x: lib.experimental.io_callback(count, SCALAR, x)
        with pytest.raises(error):
            lib.vmap(lambda x: DECIDING[name](lib, f, x))(np.arange(3, dtype=F))
        assert not seen
        lib.lax.map(lambda x: DECIDING[name](lib, f, x), np.arange(3, dtype=F))
        assert seen


def test_io_for_a_batch_that_goes_one_way():
    f = lambda x: minijax.experimental.io_callback(lambda x: F(2 * x), SCALAR, x)
    xs = np.arange(3, dtype=F)
    assert list(minijax.vmap(lambda x: minijax.lax.cond(True, f, abs, x))(xs)) == [0, 2, 4]
    last = minijax.vmap(lambda x: minijax.lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1])(xs)
    assert list(last) == [0, 4, 8]


def test_io_is_never_dropped(capsys):
    agree(lambda lib: lib.jit(lambda x: (lib.experimental.io_callback(
        lambda x: print("io", float(x)), None, x, ordered=True), x)[1])(F(1)), capsys, "io 1.0\n")


# --- log ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("lib", LIBRARIES.values(), ids=LIBRARIES)
def test_log_writes_to_the_logger_of_the_library(lib, caplog, capsys):
    caplog.set_level("INFO", "jax._src.debugging" if lib is jax else "minijax")
    log = lib.jit(lib.vmap(lambda x: lib.debug.log("x is {}", x)))
    log(np.arange(2, dtype=F))
    lib.effects_barrier()
    assert [r.getMessage() for r in caplog.records if "x is" in r.getMessage()] == [
        "x is 0.0", "x is 1.0"]
    assert capsys.readouterr().out == ""


def test_barrier():
    assert minijax.effects_barrier() is None
