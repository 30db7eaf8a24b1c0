"""Long loops in pieces: results to the bit, forks, nested use, exceptions, Ctrl-C."""

import gc
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as mnp
from minijax.compiler import pool
from minijax.compiler.executable import collector_pause, compile_jaxpr
from minijax.compiler.pool import Task, cpu_count, share, thread_count
from minijax.config import num_threads

ROOT = Path(__file__).resolve().parent.parent


def rand(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def softmax(x):
    e = mnp.exp(x - mnp.max(x, axis=1, keepdims=True))
    return e / mnp.sum(e, axis=1, keepdims=True)


PROGRAMS = {
    "elementwise": (lambda x: mnp.exp(x) * mnp.sin(x) + 1, rand(1000, 777)),
    "rows": (lambda x: mnp.sum(mnp.tanh(x), axis=1), rand(1000, 777)),
    "sum": (lambda x: mnp.sum(mnp.exp(x)), rand(2_000_001)),
    "softmax": (softmax, rand(700, 900)),
    "gradient": (minijax.grad(lambda x: mnp.sum(softmax(x) ** 2)), rand(700, 900)),
    "small products": (lambda x: x @ mnp.swapaxes(x, 1, 2), rand(4000, 30, 20)),
    "outer": (lambda x: mnp.sum(mnp.sqrt(mnp.abs(x[:, None] - x[None, :])), axis=1), rand(1500)),
}


# --- Results -----------------------------------------------------------------------------------

@pytest.mark.parametrize("name", PROGRAMS)
def test_any_number_of_threads_gives_the_same_bits(name):
    f, x = PROGRAMS[name]
    lowered = minijax.jit(f).lower(x)
    assert "share(" in lowered.as_text("main")
    compiled, results = lowered.compile(), set()
    for threads in (1, 2, 3, 2):
        with num_threads(threads):
            results.add(np.asarray(compiled(x)).tobytes())
    assert len(results) == 1


def test_pieces_depend_on_the_program_alone():
    f, x = PROGRAMS["elementwise"]
    texts = set()
    for threads in (1, 2):
        with num_threads(threads):
            minijax.clear_caches()
            texts.add(minijax.jit(f).lower(x).as_text("main"))
    assert len(texts) == 1


def test_short_loops_stay_in_one_thread():
    assert "share(" not in minijax.jit(lambda x: x + 1).lower(rand(1000)).as_text("main")


def test_several_user_threads_at_once():
    f, x = PROGRAMS["softmax"]
    jitted = minijax.jit(f)
    want, wrong = np.asarray(jitted(x)), []

    def work():
        for _ in range(10):
            wrong.extend([1] if not np.array_equal(jitted(x), want) else [])
    with num_threads(2):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_strided_arguments_are_copied_first():
    x = rand(900, 700)
    with num_threads(2):
        got = minijax.jit(lambda x: mnp.exp(x))(x.T)
    np.testing.assert_allclose(got, np.exp(x.T), rtol=1e-6)


# --- The pool ----------------------------------------------------------------------------------

_taking = threading.Lock()


def share_pieces(function, count, scratch=0, *args):
    """`share` with a Python function of a piece's number in place of machine code."""
    def run(*args):
        *args, taken = args
        while True:
            with _taking:
                number = int(taken[0])
                taken[0] += 1
            if number >= count:
                return
            function(*args, number)
    share(run, count, scratch, *args)


def test_each_piece_is_done_once_by_several_threads():
    done, names, start = [], set(), threading.Barrier(2)

    def function(number):
        if threading.current_thread().name not in names:
            names.add(threading.current_thread().name)
            start.wait(10)                           # both threads are here
        done.append(number)
    with num_threads(2):
        share_pieces(function, 100)
    assert sorted(done) == [*range(100)] and len(names) == 2


def test_each_thread_has_scratch_memory_of_its_own():
    seen, start = {}, threading.Barrier(2)

    def function(x, scratch, number):
        if threading.get_ident() not in seen:
            seen[threading.get_ident()] = scratch
            start.wait(10)
        assert x == 7 and scratch is seen[threading.get_ident()] and scratch.nbytes == 100
    with num_threads(2):
        share_pieces(function, 20, 100, 7)
    one, other = seen.values()
    assert one is not other


@pytest.mark.parametrize("threads", [1, 2])
def test_exceptions_arrive_and_nothing_is_left_running(threads):
    def function(number):
        raise BufferError(f"piece {number}")
    with num_threads(threads), pytest.raises(BufferError, match="piece"):
        share_pieces(function, 2)
    done = []
    with num_threads(threads):
        share_pieces(done.append, 2)
    assert sorted(done) == [0, 1]


def test_nested_use_runs_in_the_thread_that_asks():
    inner, start = [], threading.Barrier(2)

    def function(number):
        start.wait(10)
        names = set()
        share_pieces(lambda number: names.add(threading.current_thread().name), 2)
        if threading.current_thread().name.startswith("minijax"):
            inner.append(names == {threading.current_thread().name})
    with num_threads(2):
        share_pieces(function, 2)
    assert inner == [True]


def test_a_helper_that_comes_too_late_does_nothing():
    task = Task(lambda taken: None, 1, 0, ())
    task.run()
    task.close()
    task.function = None
    task.help()
    assert task.error is None


def test_how_many():
    assert thread_count() == cpu_count() >= 1
    with num_threads(3):
        assert thread_count() == 3
    with pytest.raises(ValueError, match="must be a number from 0 up"):
        num_threads(-1)


FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

CHILD = """
    import os, numpy as np, minijax, minijax.numpy as mnp
    f, x = minijax.jit(lambda x: mnp.exp(x) + 1), np.ones(1_000_000, np.float32)
    want = np.asarray(f(x))
    child = os.fork()
    if not child:
        os._exit(0 if (np.asarray(f(x)) == want).all() else 1)
    print(os.waitpid(child, 0)[1], (np.asarray(f(x)) == want).all())
"""


@FORKS
def test_a_forked_process_starts_its_own_threads():
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(CHILD)], cwd=ROOT,
                         env=os.environ | {"MINIJAX_NUM_THREADS": "2"}, capture_output=True,
                         text=True, timeout=120)
    assert run.stdout.split() == ["0", "True"], run.stderr


FORK_WHILE_COMPILING = """
    import gc, os, threading, minijax, minijax.numpy as mnp
    from minijax.compiler import machine

    compile_text, compiling, goes_on = machine.compile_text, threading.Event(), threading.Event()

    def slow(text, effort):
        compiling.set()
        goes_on.wait(0.5)
        return compile_text(text, effort)
    machine.compile_text = slow
    double = minijax.jit(lambda x: x * 2)
    thread = threading.Thread(target=double, args=(1.0,))
    thread.start()
    compiling.wait()
    child = os.fork()                        # while the thread has the compiler's lock
    if not child:
        os._exit(0 if minijax.jit(lambda x: x + 1)(1.0) == 2 and gc.isenabled() else 1)
    thread.join()
    print(os.waitpid(child, 0)[1], double(2.0) == 4)
"""


@FORKS
def test_a_child_can_compile_though_another_thread_was_compiling():
    run = subprocess.run([sys.executable, "-W", "ignore", "-c",
                          textwrap.dedent(FORK_WHILE_COMPILING)], cwd=ROOT, timeout=60,
                         env=os.environ | {"MINIJAX_DISABLE_CACHE": "1"}, capture_output=True,
                         text=True)
    assert run.stdout.split() == ["0", "True"], run.stderr


def lines_run(function, file):
    """How many lines of a file run while function() does."""
    count = itertools.count()
    interrupt_at(function, file, None, count)
    return next(count)


def interrupt_at(function, file, number, count=None):
    """function(), with a Ctrl-C at the line of a file that runs as this number."""
    count = count or itertools.count()

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.endswith(file):
            return None
        if event == "line" and next(count) == number:
            raise KeyboardInterrupt
        return trace
    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(previous)


def test_ctrl_c_at_any_line_leaves_no_half_compiled_program():
    x = rand(3)

    def compiles_and_runs():
        jaxpr = minijax.make_jaxpr(lambda x: mnp.sin(x) + 1)(x)
        return compile_jaxpr(jaxpr)(x)
    want = compiles_and_runs()[0]
    for number in range(lines_run(compiles_and_runs, "executable.py")):
        with pytest.raises(KeyboardInterrupt):
            interrupt_at(compiles_and_runs, "executable.py", number)
        assert (compiles_and_runs()[0] == want).all()
        assert gc.isenabled() and not collector_pause.compiling


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_an_exception_leaves_the_rest_undone():
    done = []

    def function(number):
        time.sleep(0.01)
        done.append(number)
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with num_threads(2), pytest.raises(KeyboardInterrupt):
            share_pieces(function, 1000)
    finally:
        signal.signal(signal.SIGALRM, handler)
    count = len(done)
    time.sleep(0.05)
    assert len(done) == count < 1000                 # no thread works on in the background
    with num_threads(2):
        share_pieces(function, 2)
    assert len(done) == count + 2


def test_the_pool_keeps_its_threads():
    with num_threads(2):
        for _ in range(3):
            share(lambda taken: None, 2, 0)
    names = [t.name for t in threading.enumerate() if t.name.startswith("minijax")]
    assert len(names) == len(set(names)) == len(pool.pool.threads)
