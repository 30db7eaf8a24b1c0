"""checkify: the same messages as JAX's, whatever transformations stand around and inside."""
import jax
import jax.experimental.checkify
import numpy as np
import pytest

import minijax
from minijax.experimental import checkify

F = np.float32
X = np.arange(3, dtype=F)


def message(lib, f, args, errors, wrap=lambda lib, f: f):
    module = lib.experimental.checkify
    checked = wrap(lib, module.checkify(f(lib), getattr(module, errors)))
    error, out = checked(*map(lib.numpy.asarray, args))
    return error.get(), jax.tree.map(np.asarray, out)


def agree(f, *args, errors="all_checks", wrap=lambda lib, f: f):
    ours, our_out = message(minijax, f, args, errors, wrap)
    theirs, their_out = message(jax, f, args, errors, wrap)
    assert ours == theirs
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), our_out, their_out)
    return ours


def positive(lib, bound=0):
    def f(x):
        lib.experimental.checkify.check(lib.numpy.all(x > bound), "{x} and {b}", x=x, b=X)
        return lib.numpy.log(x + 1)
    return f


PROGRAMS = {
    "fine": (lambda lib: lambda x: lib.numpy.exp(x), F(1)),
    "user": (positive, F(-1)),
    "user, fine": (positive, F(1)),
    "nan": (lambda lib: lambda x: lib.numpy.sin(lib.numpy.log(x)), F(-1)),
    "nan later": (lambda lib: lambda x: lib.numpy.sqrt(lib.numpy.sin(x)), F(-1)),
    "nan in some element": (lambda lib: lambda x: lib.numpy.log(x).sum(), X - 1),
    "division": (lambda lib: lambda x: 1 / x, F(0)),
    "division of integers": (lambda lib: lambda x: x // 0, np.int32(1)),
    "index": (lambda lib: lambda x, i: x[i], X, np.int32(5)),
    "negative index": (lambda lib: lambda x, i: x[i], X, np.int32(-4)),
    "known index": (lambda lib: lambda x: x[5], X),
    "known index, second axis": (lambda lib: lambda x: x[1, 7], np.ones((2, 3), F)),
    "index, fine": (lambda lib: lambda x, i: x[i], X, np.int32(-3)),
    "indices": (lambda lib: lambda x, i: x[i], X, np.array([1, -9, 7], np.int32)),
    "indices of two axes": (lambda lib: lambda x, i: x[i, i], np.ones((2, 3), F),
                            np.array([1, 2], np.int32)),
    "scatter": (lambda lib: lambda x, i: x.at[i].set(1), X, np.array([0, 3], np.int32)),
    "scatter_add": (lambda lib: lambda x, i: x.at[i].add(1), X, np.array([-5, 0], np.int32)),
    "scatter, fine": (lambda lib: lambda x, i: x.at[i].mul(2), X, np.array([-3, 2], np.int32)),
    "dynamic_slice": (lambda lib: lambda x, i: lib.lax.dynamic_slice(x, (i,), (2,)), X, np.int32(2)),
    "dynamic_slice, fine": (lambda lib: lambda x, i: lib.lax.dynamic_slice(x, (i,), (2,)), X,
                            np.int32(1)),
    "dynamic_update_slice": (lambda lib: lambda x, i: lib.lax.dynamic_update_slice(x, x[:2], (i,)), X,
                             np.int32(2)),
    "first of several": (lambda lib: lambda x: lib.numpy.log(x) + 1 / (x + 1), F(-1)),
    "derivative": (lambda lib: lib.grad(lambda x: lib.numpy.sqrt(x) * 2), F(0)),
    "jvp": (lambda lib: lambda x: lib.jvp(positive(lib), (x,), (x,)), F(-1)),
    "grad of user check": (lambda lib: lib.grad(positive(lib)), F(-1)),
    "vmap of user check": (lambda lib: lib.vmap(positive(lib)), X - 1),
    "vmap, fine": (lambda lib: lib.vmap(positive(lib)), X + 1),
    "jit inside": (lambda lib: lib.jit(positive(lib)), F(-1)),
    "jit of vmap of grad inside": (lambda lib: lib.jit(lib.vmap(lib.grad(positive(lib)))), X - 1),
    "jits in jits": (lambda lib: lib.jit(lambda x: lib.jit(positive(lib))(x) + lib.jit(positive(lib, 3))(
        x)), F(2)),
}
def loops(lib):
    np_, lax, check = lib.numpy, lib.lax, lib.experimental.checkify.check

    def scanned(x):
        def body(c, y):
            check(y < 3, "y {y} c {c}", y=y, c=c)
            return c + y, c * y
        return lax.scan(body, x, np.arange(6, dtype=F))[0]

    def turns(x):
        def body(c):
            check(c < 5, "c {c}", c=c)
            return c + 1
        return lax.while_loop(lambda c: c < 8, body, x)

    def condition(x):
        def goes_on(c):
            check(c < 5, "cond {c}", c=c)
            return c < 8
        return lax.while_loop(goes_on, lambda c: c + 1, x)

    def chosen(x):
        def yes(x):
            check(x < 0, "negative {x}", x=x)
            return x
        return lax.cond(x > 3, yes, lambda x: np_.log(x - 5), x)

    def counted(x):
        return lax.fori_loop(0, 4, lambda i, c: np_.log(c - 1), x)

    def inside(x):
        return lax.scan(lambda c, y: (chosen(c + y), y), x, np.arange(3, dtype=F))[0]

    def batched(x):
        return lib.vmap(scanned)(np_.stack([x, x + 1]))

    def checkpointed(x):
        return lib.checkpoint(inside)(x) + lib.jit(lib.checkpoint(scanned))(x)

    def flagged(x):
        return lib.checkpoint(scanned, prevent_cse=(False,))(x)

    def in_turns(x):
        return lax.scan(lambda c, y: (lib.checkpoint(chosen)(c + y), y), x, np.arange(3, dtype=F))[0]

    def with_a_rule(x):
        f = lib.custom_jvp(inside)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
        return lib.jit(f)(x) + f(x)
    return locals()


for _name in "scanned", "turns", "condition", "chosen", "counted", "inside", "batched", "checkpointed", "flagged", "in_turns", "with_a_rule":
    for _x in F(1), F(4), F(9):
        PROGRAMS[f"{_name} {_x}"] = (lambda lib, name=_name: loops(lib)[name], _x)
WRAPS = {"": lambda lib, f: f, "jit": lambda lib, f: lib.jit(f)}
SETS = ["user_checks", "nan_checks", "index_checks", "div_checks", "float_checks", "automatic_checks",
        "all_checks"]


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_messages(name, wrap):
    f, *args = PROGRAMS[name]
    agree(f, *args, wrap=WRAPS[wrap])


@pytest.mark.parametrize("errors", SETS)
@pytest.mark.parametrize("name", ["user", "first of several", "index", "scatter", "division"])
def test_sets_of_errors(name, errors):
    f, *args = PROGRAMS[name]
    agree(f, *args, errors=errors)


@pytest.mark.parametrize("outer", [lambda lib, f: lib.vmap(f), lambda lib, f: lib.jit(lib.vmap(f)),
                                   lambda lib, f: lib.vmap(lib.jit(f))])
@pytest.mark.parametrize("name", ["user", "nan", "division"])
def test_vmap_outside_tells_each_element(name, outer):
    told = agree(PROGRAMS[name][0], X - 1, wrap=outer)
    assert "at mapped index" in told
    agree(PROGRAMS[name][0], X + 2, wrap=outer)


def test_checks_in_the_gradient_of_a_loop():
    """JAX loses these."""
    f = checkify.checkify(minijax.grad(loops(minijax)["scanned"]))
    assert f(F(1))[0].get() == minijax.jit(f)(F(1))[0].get() == "y 3.0 c 4.0 (`check` failed)"


def test_checks_in_custom_rules():
    @minijax.custom_jvp
    def f(x):
        checkify.check(x > 0, "custom {x}", x=x)
        return minijax.numpy.log(x)

    f.defjvp(lambda primals, tangents: (minijax.numpy.log(*primals), 7 * tangents[0]))
    for wrap in (lambda g: g), minijax.jit:
        error, out = wrap(checkify.checkify(f, checkify.all_checks))(minijax.numpy.float32(-1))
        assert error.get() == "custom -1.0 (`check` failed)" and np.isnan(out)
        assert minijax.grad(lambda x: wrap(checkify.checkify(f))(x)[1])(F(2)) == 7
        error, slope = wrap(checkify.checkify(minijax.grad(f), checkify.nan_checks))(F(-1))
        assert error.get() == "nan generated by primitive: log." and slope == 7


def test_gradient_outside():
    f = lambda x: checkify.checkify(lambda x: minijax.numpy.sqrt(x))(x)[1]
    assert minijax.grad(f)(4.0) == 0.25
    (error, out), (_, tangent) = minijax.jvp(checkify.checkify(positive(minijax)), (F(-0.5),), (F(1),))
    assert error.get().startswith("-0.5 and") and tangent == 2


def test_nan_kinds_only_in_floats():
    assert agree(lambda lib: lambda x: x + 1, np.int32(3)) is None


@pytest.mark.parametrize("call", [
    lambda c, np: c.check(np.array([True]), "vector"), lambda c, np: c.check(1, "number"),
    lambda c, np: c.check(True, "{}", 3), lambda c, np: c.check(True, "{x}", x="text"),
    lambda c, np: c.debug_check(1.0, "number"),
])
def test_bad_arguments(call):
    for lib in minijax, jax:
        with pytest.raises(TypeError):
            call(lib.experimental.checkify, lib.numpy)


def test_a_batched_loop_inside_is_refused():
    for lib in minijax, jax:
        f = lib.vmap(loops(lib)["turns"])
        with pytest.raises(ValueError, match="vmap"):
            lib.experimental.checkify.checkify(f)(X)


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_rules_of_custom_functions_get_arrays(kind):
    """Also where a program has a known number in place of an operand."""
    def program(lib):
        check = lib.experimental.checkify.check

        def told(x, what):
            check(x < 0, what + " {x}", x=x)
            return x
        f = getattr(lib, kind)(lambda x: x * 2)
        if kind == "custom_jvp":
            f.defjvp(lambda p, t: (f(*p), told(p[0], "jvp") * t[0]))
        else:
            f.defvjp(lambda x: (f(x), x), lambda x, ct: (told(x, "bwd") * ct,))
        return lib.grad(f)
    agree(program, F(3))


def test_check_without_checkify():
    for lib in minijax, jax:
        module = lib.experimental.checkify
        with pytest.raises(module.JaxRuntimeError, match="-1.0 and"):
            positive(lib)(lib.numpy.float32(-1))
        with pytest.raises(ValueError, match="not functionalized|compiled as it is"):
            lib.jit(positive(lib))(F(-1))
    assert minijax.jit(lambda x: x + 1)(1) == 2
    assert issubclass(checkify.JaxRuntimeError, ValueError)


def test_debug_checks_only_count_under_checkify():
    def f(x):
        checkify.debug_check(x > 0, "debug {}", x)
        return x
    x = minijax.numpy.float32(-1)
    assert f(x) == -1 and minijax.jit(f)(x) == -1
    assert checkify.checkify(f)(x)[0].get() == "debug -1.0 (`check` failed)"


def test_throw_and_check_error():
    error, _ = checkify.checkify(positive(minijax))(minijax.numpy.float32(-1))
    with pytest.raises(checkify.JaxRuntimeError, match="-1.0 and") as raised:
        error.throw()
    assert isinstance(raised.value.__cause__, checkify.FailedCheckError)
    assert "test_checkify.py" in raised.value.__cause__.__notes__[0]
    with pytest.raises(checkify.JaxRuntimeError):
        checkify.check_error(error)
    again, _ = checkify.checkify(lambda: checkify.check_error(error))()
    assert again.get() == error.get()
    assert checkify.checkify(positive(minijax))(minijax.numpy.float32(1))[0].throw() is None
    for checks in (checkify, jax.experimental.checkify):
        with pytest.raises(TypeError, match="check_error takes an Error"):
            checks.check_error("an error")


def test_errors_are_pytrees():
    error, _ = checkify.checkify(positive(minijax))(minijax.numpy.float32(-1))
    copied = minijax.jit(lambda e: e)(error)
    assert copied.get() == error.get() and str(error) == f"Error({error.get()})"
    assert all(isinstance(x, minijax.Array) for x in minijax.tree.leaves(error))


def test_results_are_arrays():
    _, out = checkify.checkify(lambda x: (x, 3))(F(1))
    assert all(isinstance(x, minijax.Array) for x in out)


def test_static_arguments_pass_through():
    error, out = checkify.checkify(lambda x, how: getattr(minijax.numpy, how)(x), checkify.nan_checks)(
        F(-1), "log")
    assert error.get() == "nan generated by primitive: log."


def test_rules_are_of_primitives():
    to_come = {"bessel_i0e", "bessel_i1e", "igamma", "igammac", "regularized_incomplete_beta"}
    assert checkify.error_checks.keys() - to_come <= minijax.core.primitives.keys()
