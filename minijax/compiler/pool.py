# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's thread pool.

Long loops in pieces, run by a few threads at once. Pieces are functions without Python in them,
so threads do not wait for one another. Threads are made at the first use and stay.
"""

import os
import threading
from queue import SimpleQueue

import numpy as np

from minijax.config import num_threads

__all__ = ["share", "thread_count", "cpu_count", "Task", "Pool", "pool"]


# --- Sharing work ---------------------------------------------------------------------------------

def share(function, count, scratch, *args):
    """Let some threads call function(*args, taken), which does pieces until all are taken.

    There are `count` of them; `taken` is an array with the number of the next one. If `scratch` is
    not 0, each thread adds an array of that many bytes to the arguments, before `taken`.
    """
    helpers = min(thread_count(), count) - 1
    task = Task(function, count, scratch, args)
    if helpers < 1 or getattr(_local, "is_helper", False):
        task.run()
        return
    try:
        pool.ask(task, helpers)
        task.run()
    finally:
        task.close()
    if task.error:
        raise task.error


def thread_count():
    """How many threads work at once: `minijax_num_threads`, or as many as this process has CPUs."""
    return num_threads.value or cpu_count()


def cpu_count():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Task:
    """Pieces that several threads take.

    Machine code takes them. A thread that came back to Python for each piece would have to wait for
    the other to let Python go, which it would do for no longer than a piece takes.
    """

    def __init__(self, function, count, scratch, args):
        self.function, self.count, self.scratch, self.args = function, count, scratch, args
        self.taken = np.zeros(1, np.int64)
        self.error, self.is_closed, self.running = None, False, 0
        self.changed = threading.Condition()

    def run(self):
        own = [np.empty(self.scratch, np.uint8)] if self.scratch else []
        self.function(*self.args, *own, self.taken)

    def help(self):
        """What another thread does, unless it comes too late."""
        with self.changed:
            if self.is_closed:
                return
            self.running += 1
        try:
            self.run()
        except BaseException as error:       # raised again by the thread that shared the work
            self.error = error
        finally:
            with self.changed:
                self.running -= 1
                self.changed.notify_all()

    def close(self):
        """Take what is left, if anything, and wait for those who help."""
        self.taken[0] = self.count
        with self.changed:
            self.is_closed = True
            while self.running:
                self.changed.wait()


_local = threading.local()


class Pool:
    """Threads that wait for tasks; as many as were ever asked for at once."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.tasks, self.threads, self.lock = SimpleQueue(), [], threading.Lock()

    def ask(self, task, helpers):
        with self.lock:
            while len(self.threads) < helpers:
                thread = threading.Thread(target=self.work, args=(self.tasks,), daemon=True,
                                          name=f"minijax {len(self.threads)}")
                thread.start()
                self.threads.append(thread)
        for _ in range(helpers):
            self.tasks.put(task)

    def work(self, tasks):
        _local.is_helper = True
        while True:
            tasks.get().help()


pool = Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.reset)       # threads do not survive a fork
