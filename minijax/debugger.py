# Exported from notebooks/ref_debugging.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: looking into programs. Home: ref_debugging. In JAX: jax/_src/debugger/.

`debug.breakpoint`: an equation that stops the program and asks what to print of its variables.
"""

import cmd
import inspect
import pprint
import sys
import threading
import traceback
from dataclasses import dataclass, replace

from minijax.core import Tracer
from minijax.debugging import debug_callback, pure_callback
from minijax.lax import stop_gradient
from minijax.tracebacks import is_inside
from minijax.tree_util import tree_flatten, tree_leaves, tree_unflatten

__all__ = [
    "DebuggerFrame", "take_tracers", "as_tree", "CliDebugger", "one_at_a_time", "debug_breakpoint",
]


# --- A debugger for programs ----------------------------------------------------------------------

@dataclass(frozen=True)
class DebuggerFrame:
    """A frame of Python's call stack; its current line is `source[offset]`, if that is known."""

    filename: str
    locals: dict
    globals: dict
    code_context: list
    source: list
    lineno: int
    offset: int | None

    @classmethod
    def from_frameinfo(cls, info):
        try:
            lines, start = inspect.getsourcelines(info.frame)
        except OSError:
            lines, start = [], 1
        source, offset = "".join(lines).split("\n"), info.lineno - max(start, 1)
        known = bool(lines) and offset < len(source)
        return cls(info.filename, dict(info.frame.f_locals), info.frame.f_globals,
                   info.code_context, source if known else [], info.lineno,
                   offset if known else None)


def take_tracers(frames):
    """The tracers among the variables, and a function from values for them to frames.

    It holds none of them, so it may be called when their trace has ended.
    """
    leaves, tree = tree_flatten([{k: as_tree(v) for k, v in f.locals.items()} for f in frames])
    traced = [isinstance(x, Tracer) and x._trace.alive for x in leaves]
    tracers = [x for x, is_traced in zip(leaves, traced) if is_traced]
    others = [None if is_traced else x for x, is_traced in zip(leaves, traced)]
    bare = [replace(f, locals={}) for f in frames]

    def frames_with(values):
        rest = iter(values)
        found = [next(rest) if is_traced else x for x, is_traced in zip(others, traced)]
        return [replace(f, locals=variables)
                for f, variables in zip(bare, tree_unflatten(tree, found))]
    return tracers, frames_with


def as_tree(value):
    try:
        tree_leaves(value)
    except Exception:                       # any node's own code may run here
        return "<cant_flatten>"
    return value


class CliDebugger(cmd.Cmd):
    """Reads commands from `stdin`, and prints to `stdout` what they ask of the frames."""

    prompt, intro = "(jdb) ", "Entering jdb:"

    def __init__(self, frames, stdin=None, stdout=None, completekey="tab"):
        super().__init__(completekey, stdin, stdout)
        self.use_rawinput = stdin is None
        self.frames, self.number = frames, 0

    def run(self):
        while True:
            try:
                return self.cmdloop()
            except KeyboardInterrupt:
                self.say("--KeyboardInterrupt--")

    def say(self, *lines):
        print(*lines, sep="\n", file=self.stdout)

    def show(self, expression, text=repr):
        frame = self.frames[self.number]
        try:
            self.say(text(eval(expression, {**frame.globals, **frame.locals})))
        except Exception as error:
            self.say("*** " + traceback.format_exception_only(error)[-1].strip())

    def show_source(self, around=2):
        frame = self.frames[self.number]
        self.say(f"> {frame.filename}({frame.lineno})")
        for i, line in enumerate(frame.source):
            if -around - 1 <= i - frame.offset <= around:
                self.say(("->  " if i == frame.offset else "    ") + line)

    def move(self, step, refusal):
        if 0 <= self.number + step < len(self.frames):
            self.number += step
        else:
            self.say(refusal)
        self.show_source()

    def default(self, line):
        self.show(line)

    def do_p(self, expression):
        """p expression: print its value."""
        self.show(expression)

    def do_pp(self, expression):
        """pp expression: print its value over several lines."""
        self.show(expression, pprint.pformat)

    def do_up(self, _):
        """u(p): go to the frame that called this one."""
        self.move(1, "At topmost frame.")

    def do_down(self, _):
        """d(own): go back to the frame that this one called."""
        self.move(-1, "At bottommost frame.")

    def do_list(self, _):
        """l(ist): print the lines around the current one."""
        self.show_source(around=5)

    def do_where(self, _):
        """w(here): print all frames."""
        self.say("Traceback:")
        for frame in reversed(self.frames):
            line = "<no source>" if frame.offset is None else frame.source[frame.offset].strip()
            self.say(f'  File "{frame.filename}", line {frame.lineno}', f"    {line}")

    def do_continue(self, _):
        """c(ont(inue)): let the program go on."""
        return True

    def do_quit(self, _):
        """q(uit): exit from Python."""
        sys.exit(0)

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit


one_at_a_time = threading.Lock()


def debug_breakpoint(*, backend=None, filter_frames=True, num_frames=None, ordered=False,
                     token=None, **kwargs):
    """Stop here whenever the program gets here, also if it is compiled, and read commands.

    They see the innermost `num_frames` frames, without this package's unless `filter_frames` is
    off. `kwargs` may be `stdin` and `stdout` of the debugger; there is one, for every `backend`. A
    `token`, a pytree of arrays, is returned, and the stop comes before its use; otherwise it is an
    effect. ValueError if it is to be `ordered` and has a token.
    """
    if ordered and token is not None:
        raise ValueError("`ordered` and `token` are mutually exclusive arguments.")
    infos = [i for i in inspect.stack()[1:] if not (filter_frames and is_inside(i.filename))]
    frames = [DebuggerFrame.from_frameinfo(i) for i in infos[:num_frames]]
    tracers, frames_with = take_tracers(frames)

    def breakpoint(*values):
        with one_at_a_time:
            CliDebugger(frames_with(values), **kwargs).run()

    if token is None:
        return debug_callback(breakpoint, *tracers, ordered=ordered)

    def breakpoint_before(token, *values):
        breakpoint(*values)
        return token
    token, tracers = stop_gradient((token, tracers))
    return pure_callback(breakpoint_before, token, token, *tracers)
