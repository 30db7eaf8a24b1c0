"""`debug.breakpoint` stops where JAX's does, also in compiled programs, and shows what JAX's shows."""
import io
import os

import jax
import numpy as np
import pytest

import minijax

COMMANDS = "p secret\nsecret['b'][0] + 1\npp secret\np undefined\np 1 +\nl\nup\np f\ndown\nd\nbt\nu\nu\nc\n"


def eager(lib, stop):
    def f(x):
        secret = {"a": 41, "b": [x * x]}
        stop(secret)
        return x * 2
    return f(lib.numpy.float32(3))


def compiled(lib, stop):
    @lib.jit
    def f(x):
        secret = {"a": (41, "text"), "b": [x * x]}
        stop(secret)
        return x * 2
    return f(np.float32(3)) + f(np.float32(4))


def gradient(lib, stop):
    def f(x):
        secret = {"b": [x * x]}
        stop(secret)
        return x * secret["b"][0]
    return lib.grad(f)(np.float32(3)) + lib.jit(lib.grad(f))(np.float32(2))


def branch(lib, stop):
    @lib.jit
    def f(x):
        def positive(y):
            secret = {"b": [x * y]}
            stop(secret)
            return y
        return lib.lax.cond(x > 0, positive, lambda y: -y, x)
    return f(np.float32(3)) + f(np.float32(-3))


def loop(lib, stop):
    def f(c, x):
        secret = {"b": [x * 2]}
        stop(secret, ordered=True)
        return c + x, None
    return lib.jit(lambda xs: lib.lax.scan(f, np.float32(0), xs)[0])(np.arange(2, dtype=np.float32))


def each_of_a_batch(lib, stop):
    def f(x):
        secret = {"b": [x * 2]}
        stop(secret)
        return x
    return lib.vmap(f)(np.arange(2, dtype=np.float32))


def before_a_value_is_used(lib, stop):
    @lib.jit
    def f(x):
        secret = {"b": [x * 2]}
        return stop(secret, token=x) * x
    return f(np.float32(3))


def run(lib, program, commands, **options):
    """The results of a program, and what its debugger printed."""
    stdin, stdout = io.StringIO(commands * 4), io.StringIO()

    def stop(secret, **more):
        return lib.debug.breakpoint(stdin=stdin, stdout=stdout, **options | more)
    result = program(lib, stop)
    lib.effects_barrier()
    return np.asarray(result), stdout.getvalue()


@pytest.mark.parametrize("program", [eager, compiled, gradient, branch, loop, each_of_a_batch,
                                     before_a_value_is_used], ids=lambda f: f.__name__)
def test_the_debugger_prints_what_jaxs_prints(program):
    (got, text), (want, jaxs_text) = (run(lib, program, COMMANDS, num_frames=2) for lib in (minijax, jax))
    np.testing.assert_array_equal(got, want)
    assert text == jaxs_text and "Entering jdb:" in text


def test_options_of_breakpoint():
    lines = {n: run(minijax, compiled, "bt\nc\n", num_frames=n)[1].count("File") for n in (1, 2, None)}
    assert lines[1] == 2 and lines[2] == 4 and lines[None] > 6           # it stops twice
    texts = {on: run(minijax, compiled, "bt\nc\n", filter_frames=on)[1] for on in (False, True)}
    own = f"{os.sep}minijax{os.sep}"
    assert own in texts[False] and own not in texts[True]
    assert run(minijax, eager, "c\n", backend="cli")[0] == 6


@pytest.mark.parametrize("lib", [minijax, jax], ids=["minijax", "jax"])
def test_ordered_and_token_exclude_each_other(lib):
    with pytest.raises(ValueError, match="mutually exclusive"):
        lib.debug.breakpoint(ordered=True, token=1.0)


def test_without_stdin_it_reads_from_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("p secret + 1\np len([np.pi for _ in [secret]])\nc\n"))

    def f(x):
        secret = 41
        minijax.debug.breakpoint()
        return x * x + (secret - 41)
    assert minijax.jit(f)(3.0) == 9.0
    assert "42" in (text := capsys.readouterr().out) and "(jdb) 1\n" in text


def test_quit_exits():
    with pytest.raises(SystemExit):
        run(minijax, eager, "q\n")


def test_a_token_that_nobody_uses_drops_the_stop():
    def f(x):
        minijax.debug.breakpoint(token=x, stdin=io.StringIO("q\n"))
        return x
    assert minijax.jit(f)(3.0) == 3.0


def test_variables_that_are_no_trees_and_tracers_that_are_dead():
    dead, stdout = [], io.StringIO()

    def f(x):
        odd, more = {1: 2, "a": x}, x * 2
        dead.append(x)
        minijax.debug.breakpoint(stdin=io.StringIO("p odd\np more\nup\np len(dead)\nc\n"), stdout=stdout)
        return more * len(odd)
    minijax.jit(f)(3.0)
    with minijax.checking_leaks():
        minijax.jit(lambda y: y)(2.0)
    text = stdout.getvalue()
    assert "'<cant_flatten>'" in text and "Array(6., dtype=float32" in text and "(jdb) 1\n" in text


def test_it_keeps_no_tracers():
    def f(x):
        y = x * 2
        minijax.debug.breakpoint(num_frames=1, stdin=io.StringIO("c\n" * 2), stdout=io.StringIO())
        return y
    with minijax.checking_leaks():
        assert minijax.jit(f)(3.0) == 6.0
