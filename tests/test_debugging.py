"""Options that help to find mistakes: NaN, leaks, compilation logs, cache misses; and named scopes."""
import gc
import logging
import threading
from functools import partial

import jax
import numpy as np
import pytest
from programs import PROGRAMS

import minijax
import minijax.numpy as mnp
from minijax.core import eval_trace, get_current_trace

F = np.float32


def error_of(lib, run):
    try:
        run(lib)
    except Exception as error:
        return type(error), str(error).split("\n")[0]
    return None


# --- NaN and infinity -----------------------------------------------------------------------------

NAN = {
    "eager": lambda lib: lib.numpy.sin(lib.numpy.log(F(-1))),
    "jit": lambda lib: lib.jit(lambda x: lib.numpy.sin(lib.numpy.log(x)))(F(-1)),
    "jit in jit": lambda lib: lib.jit(lambda x: lib.jit(lib.numpy.log)(x) + 1)(F(-1)),
    "vmap": lambda lib: lib.vmap(lib.numpy.log)(np.arange(3, dtype=F) - 1),
    "vmap of jit": lambda lib: lib.vmap(lib.jit(lib.numpy.log))(np.arange(3, dtype=F) - 1),
    "jit of vmap": lambda lib: lib.jit(lib.vmap(lib.numpy.log))(np.arange(3, dtype=F) - 1),
    "grad": lambda lib: lib.grad(lambda x: lib.numpy.log(x))(F(-1)),
    "grad of jit": lambda lib: lib.grad(lib.jit(lambda x: lib.numpy.log(x)))(F(-1)),
    "jit of grad": lambda lib: lib.jit(lib.grad(lambda x: lib.numpy.log(x)))(F(-1)),
    "pytree": lambda lib: lib.jit(lambda d: {"a": d["a"] + 1, "b": lib.numpy.sqrt(d["b"])})(
        {"a": F(1), "b": F(-1)}),
    "scan": lambda lib: lib.jit(lambda x: lib.lax.scan(
        lambda c, y: (lib.numpy.log(c), y), x, np.arange(3, dtype=F)))(F(1)),
    "fine": lambda lib: lib.jit(lambda x: lib.numpy.sin(x) / x)(F(1)),
    "integers": lambda lib: lib.jit(lambda x: x // 0)(np.int32(1)),
    "dropped": lambda lib: lib.jit(lambda x: (lib.numpy.log(x), x)[1])(F(-1)),
    "complex": lambda lib: lib.numpy.log(np.complex64(np.nan)),
}


@pytest.mark.parametrize("name", NAN)
def test_debug_nans(name):
    with minijax.debug_nans():
        ours = error_of(minijax, NAN[name])
    with jax.debug_nans():
        theirs = error_of(jax, NAN[name])
    assert (ours and ours[0]) == (theirs and theirs[0])
    if ours and name not in ("scan", "grad", "grad of jit", "jit of grad", "complex"):
        assert ours[1] == theirs[1]
    assert error_of(minijax, NAN[name]) is None         # the option is off again


def with_rules(function, define, number):
    getattr(function, define)(*[pytest.fail] * number)      # not one of them is called here
    return function


WITH_LITERALS = {
    "checkpoint": lambda f: minijax.checkpoint(f),
    "custom_jvp": lambda f: with_rules(minijax.custom_jvp(f), "defjvp", 1),
    "custom_vjp": lambda f: with_rules(minijax.custom_vjp(f), "defvjp", 2),
    "custom_vmap": lambda f: with_rules(minijax.custom_batching.custom_vmap(f), "def_vmap", 1),
    "jit": lambda f: minijax.jit(f),
    "cond": lambda f: lambda x: minijax.lax.cond(x > 0, f, f, x),
    "linear_solve": lambda f: lambda x: minijax.lax.custom_linear_solve(
        lambda x: 2 * x, x, lambda matvec, b: f(b), has_aux=True),
}


@pytest.mark.parametrize("inside", [minijax.debug_nans, minijax.disable_jit])
@pytest.mark.parametrize("name", WITH_LITERALS)
def test_results_that_are_literals_are_arrays(name, inside):
    with inside():
        outs = WITH_LITERALS[name](lambda x: (x / 2, mnp.int32(5)))(mnp.ones((), F))
    assert [type(out) for out in outs] == [minijax.Array] * 2
    assert [out.item() for out in outs] == [0.5, 5]


def test_debug_infs():
    with minijax.debug_infs():
        for divide in lambda x: 1 / x, minijax.jit(lambda x: 1 / x):
            with pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div"):
                divide(mnp.zeros(2, F))
        assert np.isnan(mnp.log(F(-1)))
    assert np.isinf(1 / mnp.zeros(()))


def test_debug_nans_looks_at_the_thread_that_asked():
    seen = []
    with minijax.debug_nans():
        other = threading.Thread(target=lambda: seen.append(mnp.log(F(-1))))
        other.start(), other.join()
    assert np.isnan(seen[0])


def test_debug_nans_leaves_the_state_as_it_was():
    with minijax.debug_nans(), pytest.raises(FloatingPointError):
        minijax.jit(minijax.value_and_grad(lambda x: mnp.log(x)))(F(-1))
    assert get_current_trace() is eval_trace
    assert np.isnan(minijax.jit(lambda x: mnp.log(x))(F(-1)))


def test_a_nan_that_only_the_compiled_program_has(monkeypatch):
    from minijax.higher_order import jit as jit_module
    x = minijax.Array(np.array(1, F))
    with minijax.debug_nans():
        program = minijax.jit(lambda x: x + 1).lower(x).traced.program
        with pytest.raises(FloatingPointError, match="no single operation"):
            jit_module.find_wrong_number(program.jaxpr, [x], [minijax.Array(np.array(np.nan, F))])


# --- Leaks ----------------------------------------------------------------------------------------

kept = []


class Holder:
    pass


def leaky(x):
    kept.append(x * 2)
    return x


WRAPS = {"jit": lambda lib, f: lib.jit(f)(F(1)), "grad": lambda lib, f: lib.grad(f)(F(1)),
         "vmap": lambda lib, f: lib.vmap(f)(np.ones(2, F)),
         "make_jaxpr": lambda lib, f: lib.make_jaxpr(f)(F(1)),
         "jit of grad": lambda lib, f: lib.jit(lib.grad(f))(F(1)),
         "vjp": lambda lib, f: lib.vjp(f, F(1)), "jvp": lambda lib, f: lib.jvp(f, (F(1),), (F(1),)),
         "linearize": lambda lib, f: lib.linearize(f, F(1))}


@pytest.mark.parametrize("name", WRAPS)
def test_leaks_are_found(name):
    try:
        with minijax.checking_leaks(), pytest.raises(
                minijax.errors.UnexpectedTracerError,
                match=r"Leaked trace(.|\n)*test_debugging.py:\d+ \(leaky\); held by a list, the global kept"):
            WRAPS[name](minijax, leaky)
        kept.clear()
        if name in ("jit", "vmap", "make_jaxpr"):       # JAX looks after these only
            with jax.checking_leaks():
                found = error_of(jax, lambda lib: WRAPS[name](lib, leaky))
            assert found and "Leaked" in found[1]
    finally:
        kept.clear()


def test_who_holds_a_leak():
    holder, box = Holder(), {}

    def in_object(x):
        holder.kept = x
        return x

    def in_dict(x):
        box["kept"] = x
        return x

    for f, where in (in_object, "Holder"), (in_dict, "'kept' of a dict"):
        with minijax.checking_leaks(), pytest.raises(minijax.errors.UnexpectedTracerError, match=where):
            minijax.grad(f)(F(1))
        holder.kept = None
        box.clear()


CLEAN = {
    "hessian": lambda lib: lib.hessian(lambda x: lib.numpy.sum(lib.numpy.sin(x) ** 3))(np.ones(2, F)),
    "nested": lambda lib: lib.jit(lib.vmap(lib.grad(lib.jit(lambda x: lib.numpy.where(
        x > 0, x, lib.numpy.exp(x))))))(np.ones(2, F)),
    "has_aux": lambda lib: lib.value_and_grad(lambda x: (x * x, {"a": x}), has_aux=True)(F(1)),
    "vjp has_aux": lambda lib: lib.vjp(lambda x: (x * x, x), F(1), has_aux=True)[0],
    "closure": lambda lib: lib.jit(lambda x: lib.vmap(lambda y: x * y)(np.ones(2, F)))(F(1)),
    "loops": lambda lib: lib.grad(lambda x: lib.lax.fori_loop(0, 3, lambda i, c: lib.lax.cond(
        c > 2, lambda c: c * x, lambda c: c + x, c), x))(F(2)),
    "a counter backwards": lambda lib: lib.linear_transpose(lambda x: lib.lax.fori_loop(
        0, 3, lambda i, c: c * (i + 1.0), x), F(1))(F(1)),
    "cycle": lambda lib: lib.grad(lambda x: in_a_cycle(x) * x)(F(2)),
    "print": lambda lib: lib.jit(lambda x: (lib.debug.print("{}", x), x)[1])(F(1)),
}


def in_a_cycle(x):
    cycle = [x]
    cycle.append(cycle)
    return x


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_leaks_from_programs_in_order(name):
    with minijax.checking_leaks():
        CLEAN[name](minijax)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_nothing_leaks_from_programs_backwards(program):
    f, x = partial(program, minijax), mnp.array([0.3, 0.6, 0.9])
    with minijax.checking_leaks():
        push = lambda t: minijax.jvp(f, (x,), (t,))[1]
        minijax.linear_transpose(push, x)(mnp.ones_like(f(x)))


def test_an_exception_is_not_a_leak():
    with minijax.checking_leaks():
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                minijax.grad(lambda x: x * (1 // 0))(F(1))
        gc.collect()
        assert minijax.grad(lambda x: x * x)(F(1)) == 2


# --- Logs -----------------------------------------------------------------------------------------

def lines_of(caplog):
    return "\n".join(r.getMessage() for r in caplog.records if r.name.split(".")[0] == "minijax")


def test_log_compiles(caplog):
    def named_function(x):
        return mnp.sin(x) + 1
    f = minijax.jit(named_function)
    with minijax.log_compiles():
        f(np.ones(3, F)), f(np.zeros(3, F))
    text = lines_of(caplog)
    assert text.count("Finished tracing named_function for jit in") == 1
    assert text.count("Compiling jit(named_function) with shapes and types (ShapedArray(float32[3]),)") == 1
    assert text.count("Finished compilation of jit(named_function) in") == 1
    assert all(r.levelno == logging.WARNING for r in caplog.records)
    caplog.clear()
    f(np.ones(4, F))
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def explained(caplog, run):
    caplog.clear()
    with minijax.explain_cache_misses():
        run()
    return lines_of(caplog)


def test_explanations_name_static_values_that_came_or_went(caplog):
    f = minijax.jit(lambda x, n=2: x * n, static_argnames="n")
    f(1.0)
    assert "now n = 3 and before none" in explained(caplog, lambda: f(1.0, n=3))


def test_explanations_name_what_changed(caplog):
    f = minijax.jit(lambda params, x, n: params["w"] * x, static_argnums=2)
    w = {"w": np.ones(3, F)}
    say = lambda *args: explained(caplog, lambda: f(*args))
    first = say(w, 1.0, 2)
    assert "TRACING CACHE MISS at" in first and "test_debugging.py" in first and "not seen before" in first
    assert say(w, 2.0, 2) == ""
    assert "at params['w'], now f32[1] and before f32[3]" in say({"w": np.ones(1, F)}, 1.0, 2)
    assert "at x, now f32[] and before f32[]{weak_type=True}" in say(w, F(1), 2)
    assert "at x, now i32[]{weak_type=True} and before" in say(w, 1, 2)
    assert "different static values: now argument 2 = 3 and before argument 2 = 2" in say(w, 1.0, 3)
    assert "different input pytree" in say({"w": np.ones(3, F), "b": 1.0}, 1.0, 2)
    with minijax.enable_x64(True):
        assert "different option jax_enable_x64: now True and before False" in say(w, F(1), 2)


def test_a_function_made_anew_in_a_loop_is_explained(caplog):
    def run():
        for _ in range(2):
            minijax.jit(lambda x: x + 1)(1.0)
    first, second = explained(caplog, run).split("TRACING CACHE MISS")[1:]
    assert "made by the same line" not in first and "made by the same line" in second


def test_explanations_cope_with_callables_of_all_kinds(caplog):
    class Callable:
        def __call__(self, x):
            return x

    from functools import partial
    for f in Callable(), partial(lambda y, x: x, 1), np.sin and (lambda *a, **k: a[0]):
        assert "MISS" in explained(caplog, lambda: minijax.jit(f)(1.0))
        assert explained(caplog, lambda: minijax.jit(lambda *a, **k: a[1])(1.0, 2.0, k=3.0))


# --- Scopes ---------------------------------------------------------------------------------------

def stacks(lib, f):
    jaxpr = lib.make_jaxpr(f)(F(1))
    return [str(eqn.source_info.name_stack) for eqn in jaxpr.eqns]


def test_named_scopes():
    def f(lib):
        @lib.named_scope("decorated")
        def g(x):
            return x * 2

        def run(x):
            with lib.named_scope("outer"):
                x = x + 1
                with lib.named_scope("inner"):
                    x = x + 2
            return lib.named_call(lambda x: x - 1, name="called")(g(x)) * x
        return run
    assert stacks(minijax, f(minijax)) == stacks(jax, f(jax)) == [
        "outer", "outer/inner", "decorated", "called", ""]


def test_named_scope_refuses_what_is_no_string_and_is_left_by_exceptions():
    for lib in minijax, jax:
        with pytest.raises(TypeError, match="must be a string"):
            with lib.named_scope(3):
                pass
    with pytest.raises(ZeroDivisionError):
        with minijax.named_scope("left"):
            1 // 0
    assert stacks(minijax, lambda x: x + 1) == [""]


def test_named_call_takes_the_functions_name():
    def layer(x):
        return x + 1
    assert stacks(minijax, minijax.named_call(layer)) == ["layer"]
    assert minijax.named_call(layer).__name__ == "layer"


def test_messages_name_the_scope():
    def f(x):
        with minijax.named_scope("here"):
            kept.append(x + 1)
        return x
    minijax.jit(f)(F(1))
    with pytest.raises(minijax.errors.UnexpectedTracerError, match=r"\(f\) in here"):
        kept.pop() + 1


# --- Known values at once -------------------------------------------------------------------------

def test_ensure_compile_time_eval():
    def f(lib):
        def run(x):
            with lib.ensure_compile_time_eval():
                y = lib.numpy.sin(F(3))
                positive = bool(lib.numpy.sum(lib.numpy.arange(3)) + y > 0)
                z = x * 2                    # not known: recorded as ever
            return lib.numpy.sin(z) if positive else lib.numpy.cos(z)
        return run
    for lib in minijax, jax:
        np.testing.assert_allclose(lib.jit(f(lib))(F(1)), np.sin(2), rtol=1e-6)
        np.testing.assert_allclose(lib.grad(lib.jit(f(lib)))(F(1)), 2 * np.cos(2), rtol=1e-6)
    assert len(minijax.make_jaxpr(f(minijax))(F(1)).eqns) == 2
    assert get_current_trace() is eval_trace
