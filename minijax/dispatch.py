# Exported from notebooks/12_jit_inside.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: jit as users call it. Home: 12_jit_inside. In JAX: jax/_src/pjit.py, jax/_src/stages.py.

A call of a jitted function is a look-up: trees, avals, static values and everything else that
tracing reads make the key; only a new key is traced, and only a new program compiled.
"""

import inspect
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, update_wrapper
from sys import getrefcount
from weakref import WeakKeyDictionary

from minijax.api import ShapeDtypeStruct, aval_of_argument, check_callable, devices, vjp
from minijax.array import Array, as_array
from minijax.avals import ShapedArray, typeof
from minijax.compile_logs import explain_miss, log_step, timed
from minijax.compiler.analysis import cost_analysis, memory_analysis
from minijax.compiler.donation import usable_donations
from minijax.config import config, debug_infs, debug_nans, disable_jit, explain_cache_misses
from minijax.core import Tracer, eval_trace, get_current_trace, rules_epoch
from minijax.errors import see
from minijax.flatten import (
    FlatFunction, as_index_tuple, fun_name, normalise_argnums, positional_names, signature_of,
    split_args, types_of_arguments,
)
from minijax.higher_order.jit import bind_jit, executable_of, find_wrong_number
from minijax.higher_order.programs import memos
from minijax.interpreters.staging import trace_to_jaxpr
from minijax.jaxpr import ClosedJaxpr, convert_constvars_jaxpr, eval_jaxpr
from minijax.tracebacks import api_boundary, bound_methods, let_out
from minijax.tree_code import builder, reader
from minijax.tree_util import tree_flatten, tree_leaves, tree_structure, tree_unflatten

__all__ = [
    "chosen_positions", "check_chosen", "check_disjoint", "static_key", "tagged", "Program",
    "CheckedProgram", "warn_of_unusable", "writable", "LEAF_TREE", "plain_tree", "ArgumentReader",
    "leaf_key", "programs_of", "JitFunction", "split_static", "trace_program", "donated_leaves",
    "buffers_of", "BoundJit", "jit", "fwd_and_bwd", "clear_caches", "ArgInfo", "Stage", "Traced",
    "Lowered", "Compiled", "check_arguments",
]


# --- Static arguments -----------------------------------------------------------------------------

def chosen_positions(kind, fun, argnums, argnames):
    """Positions and names of arguments that are "static", or that are to "donate".

    Each is completed from the other by the signature.
    """
    names = positional_names(fun)
    nums = as_index_tuple(f"{kind}_argnums", () if argnums is None else argnums)
    given = argnames if argnames is not None else ()
    given = (given,) if isinstance(given, str) else given
    if not (isinstance(given, Iterable) and all(isinstance(n, str) for n in given)):
        raise TypeError(f"{kind}_argnames must be a string or a sequence of strings, got {given!r}")
    given = tuple(given)
    check_chosen(kind, fun, nums, given, names)
    nums = tuple(n % len(names) if n < 0 and names else n for n in nums)
    by_name = tuple(names.index(n) for n in given if n in names)
    by_num = tuple(names[n] for n in nums if 0 <= n < len(names))
    return frozenset(nums + by_name), frozenset(given + by_num)


def check_chosen(kind, fun, nums, given, names):
    signature = signature_of(fun)
    if signature is None:
        return
    kinds = {p.kind for p in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        for n in nums:
            if not -len(names) <= n < len(names):
                raise ValueError(f"jitted function {fun_name(fun)} has {len(names)} positional "
                                 f"arguments, but {kind}_argnums includes {n}")
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for name in given:
            if name not in signature.parameters:
                raise ValueError(f"function {fun_name(fun)} has no argument {name!r}, which "
                                 f"{kind}_argnames includes")


def check_disjoint(static_nums, donate_nums, static_names, donate_names):
    for kind, both in (("nums", static_nums & donate_nums), ("names", static_names & donate_names)):
        if both:
            raise ValueError(f"static_arg{kind} and donate_arg{kind} cannot intersect, but both "
                             f"have {', '.join(map(repr, sorted(both)))}")


def static_key(label, value):
    """A key that keeps 1, True and 1.0 apart; ValueError if the value can't be one."""
    try:
        hash(value)
    except TypeError:
        remedy = ("it has no value before the program runs: make the argument that it comes from "
                  "static, too" if isinstance(value, Tracer) else
                  "use a tuple for a list, or a class with __hash__ and __eq__")
        raise ValueError(
            f"Non-hashable static arguments are not supported: {label} is {value!r:.80} of type "
            f"{type(value).__name__}. A static argument is part of the key under which compiled "
            f"programs are found: {remedy}\n{see('static-arguments')}") from None
    return type(value), tagged(value)


def tagged(value):
    if type(value) is tuple:
        return tuple((type(v), tagged(v)) for v in value)
    return value


# --- What one key leads to ------------------------------------------------------------------------

class Program:
    """What one key leads to: the program, its constants and the tree of its results."""

    __slots__ = ("jaxpr", "consts", "const_values", "in_tree", "out_tree", "build", "weak", "name",
                 "donate_argnums", "donated", "inline", "executable")

    def __init__(self, jaxpr, consts, in_tree, out_tree, name, donated, inline):
        self.jaxpr, self.consts, self.in_tree = jaxpr, consts, in_tree
        self.out_tree = LEAF_TREE if out_tree == LEAF_TREE else out_tree
        self.build = builder(out_tree)
        self.name, self.inline, self.donate_argnums = name, inline, donated
        self.donated = usable_donations(jaxpr.in_avals[len(consts):], jaxpr.out_avals, donated)
        unusable = [k for k in donated if k not in self.donated]
        warn_of_unusable([jaxpr.in_avals[len(consts) + k] for k in unusable])
        self.weak = [v.aval.weak_type for v in jaxpr.outvars]
        traced = any(isinstance(c, Tracer) for c in consts)
        self.const_values = None if traced else [as_array(c)._value for c in consts]
        self.executable = None

    def run(self, buffers):
        """The results, put together, on NumPy buffers of Arrays, no trace being active."""
        if self.executable is None:
            self.executable = self.compile()
        outs = self.executable.call(*self.const_values, *buffers)
        if self.out_tree is LEAF_TREE:
            return Array(outs[0], self.weak[0])
        return self.build([Array(out, weak) for out, weak in zip(outs, self.weak)])

    def compile(self):
        types = tuple(self.jaxpr.in_avals[len(self.consts):])
        log_step("Compiling jit(%s) with shapes and types %s", self.name, types)
        with timed(f"compilation of jit({self.name})"):
            return executable_of(self.jaxpr, tuple(len(self.consts) + k for k in self.donated))

    def run_donating(self, leaves, buffers):
        """As `run`; arrays that are donated are no more, and results may have their memory."""
        for k in self.donated:
            buffers[k] = writable(buffers, k)
        try:
            return self.run(buffers)
        finally:
            for k in self.donated:
                if type(leaves[k]) is Array:
                    leaves[k].delete()

    def bind(self, leaves):
        """The program as one equation, or as its equations if it is inline."""
        if self.inline:
            return eval_jaxpr(self.jaxpr, [], *self.consts, *leaves)
        return bind_jit(self.jaxpr, self.consts, leaves, self.name, self.inline)


class CheckedProgram(Program):
    """A program traced while `debug_nans` or `debug_infs` is on: it looks at its results."""

    __slots__ = ()

    def run(self, buffers):
        out = super().run(buffers)
        given = zip([*self.const_values, *buffers], self.jaxpr.in_avals)
        find_wrong_number(self.jaxpr, [Array(b, a.weak_type) for b, a in given], tree_leaves(out))
        return out


def warn_of_unusable(avals):
    if avals:
        kinds = ", ".join(a.str_short(short_dtypes=False) for a in avals)
        warnings.warn(f"Some donated buffers were not usable: {kinds}.\nNo result has that shape "
                      "and dtype, so these arrays stay as they are.", stacklevel=4)


def writable(buffers, k):
    """A buffer that a result may be written over: this one if nobody else has it, else a copy."""
    # Who knows of it: its Array, the list, and the call of getrefcount.
    if buffers[k].base is not None or not buffers[k].flags.owndata or getrefcount(buffers[k]) > 3:
        return buffers[k].copy()
    buffers[k].setflags(write=True)
    return buffers[k]


LEAF_TREE = tree_structure(0)


@cache
def plain_tree(n):
    """The tree of n positional arguments that are leaves."""
    return tree_structure(((0,) * n, {}))


class ArgumentReader:
    """Leaves and tree of (args, kwargs); quickly if they are Arrays in a tree met before."""

    __slots__ = ("tree", "read")

    def __init__(self):
        self.tree = self.read = None

    def expect(self, tree):
        self.tree, self.read = tree, reader(tree)

    def __call__(self, args, kwargs):
        if not kwargs and all([type(x) is Array for x in args]):
            return args, plain_tree(len(args))
        leaves = self.read and self.read((args, kwargs))
        if leaves is not None and all([type(x) is Array for x in leaves]):
            return leaves, self.tree
        return tree_flatten((args, kwargs))


def leaf_key(x):
    if type(x) is Array:
        value = x._value
        return value.shape, value.dtype, x.weak_type
    aval = aval_of_argument(x)
    return aval.shape, aval.dtype, aval.weak_type


# --- The jitted function --------------------------------------------------------------------------

_programs = WeakKeyDictionary()          # function -> {options of jit -> {key -> Program}}


def programs_of(fun, options):
    try:
        return _programs.setdefault(fun, {}).setdefault(options, {})
    except TypeError:                    # a callable that can't be hashed or weakly referenced
        return {}


class JitFunction:
    """A function that is traced once a signature, compiled once a program, and then looked up."""

    def __init__(self, fun, static_argnums, static_argnames, donate_argnums, donate_argnames,
                 inline):
        self.fun, self.inline = fun, inline
        self.static_nums, self.static_names = chosen_positions(
            "static", fun, static_argnums, static_argnames)
        self.donate_nums, self.donate_names = chosen_positions(
            "donate", fun, donate_argnums, donate_argnames)
        check_disjoint(self.static_nums, self.donate_nums, self.static_names, self.donate_names)
        self.has_static = bool(self.static_nums or self.static_names)
        self.flatten = ArgumentReader()
        self.programs = programs_of(fun, (self.static_nums, self.static_names, self.donate_nums,
                                          self.donate_names, inline))
        update_wrapper(self, fun, updated=())   # not its __dict__: fun may be jitted itself

    def __call__(self, *args, **kwargs):
        # A boundary, not by @api_boundary: here every call of a function counts.
        try:
            if disable_jit.value:
                return self.fun(*args, **kwargs)
            program, leaves = self.look_up(args, kwargs)
            if get_current_trace() is eval_trace and program.const_values is not None:
                buffers = buffers_of(leaves)
                if buffers is not None:
                    if program.donated:
                        return program.run_donating(leaves, buffers)
                    return program.run(buffers)
            return tree_unflatten(program.out_tree, program.bind(leaves))
        except Exception as error:
            let_out(error)
            raise

    def look_up(self, args, kwargs):
        """The program of these arguments, traced if need be, and their leaves."""
        static, call = (), self.fun
        if self.has_static:
            (args, kwargs), static, call = split_static(self, args, kwargs)
        leaves, in_tree = self.flatten(args, kwargs)
        try:
            kinds = tuple([leaf_key(x) for x in leaves])
        except TypeError:
            types_of_arguments(call, args, kwargs, leaves, leaf_key)     # its error names one
        key = (in_tree.nodes, kinds, static, rules_epoch(), config.trace_key())
        try:
            program = self.programs.get(key)
        except TypeError:                # a node's aux data that can't be hashed
            key = (in_tree, *key[1:])
            program = self.programs.get(key)
        if program is None:
            if explain_cache_misses.value:
                explain_miss(self.fun, self.programs, key, in_tree, self.dynamic_names())
            program = self.programs[key] = trace_program(self, call, in_tree, leaves)
            self.flatten.expect(in_tree)
        return program, leaves

    def dynamic_names(self):
        names = enumerate(positional_names(self.fun))
        return [name for i, name in names if i not in self.static_nums]

    def __get__(self, instance, owner=None):
        # Jitted methods: bind self as the first argument, as functions do.
        return self if instance is None else BoundJit(self, instance)

    # stages

    def trace(self, *args, **kwargs):
        """The traced program of these arguments (arrays or ShapeDtypeStructs)."""
        return Traced(self.look_up(args, kwargs)[0])

    def lower(self, *args, **kwargs):
        """As `trace(...).lower()`."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args, **kwargs):
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self):
        self.programs.clear()

    def _cache_size(self):
        return len(self.programs)


bound_methods(JitFunction, ("trace", "lower", "eval_shape"))


def split_static(jitted, args, kwargs):
    """((dynamic args, dynamic kwargs), static key, the function of the dynamic ones)."""
    n = len(args)
    nums = {i: x for i, x in enumerate(args)
            if i in jitted.static_nums or i - n in jitted.static_nums}
    names = {k: v for k, v in kwargs.items() if k in jitted.static_names}
    key = (tuple((i, static_key(f"argument {i}", x)) for i, x in nums.items()),
           tuple((k, static_key(f"argument {k!r}", names[k])) for k in sorted(names)))
    fun = jitted.fun

    def call(*dynamic_args, **dynamic_kwargs):
        rest = iter(dynamic_args)
        full = [nums[i] if i in nums else next(rest) for i in range(len(args))]
        return fun(*full, **names, **dynamic_kwargs)

    dynamic_args = tuple(x for i, x in enumerate(args) if i not in nums)
    dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in names}
    return (dynamic_args, dynamic_kwargs), key, call


def trace_program(jitted, call, in_tree, leaves):
    name = fun_name(jitted.fun)
    flat = FlatFunction(call, in_tree, with_kwargs=True)
    avals = [aval_of_argument(x) for x in leaves]
    try:
        with timed(f"tracing {name} for jit"):
            jaxpr, consts = trace_to_jaxpr(flat, avals, name)
    except RecursionError as error:
        raise RecursionError(f"tracing {name} did not end: does it call itself without a "
                             "Python-level condition that stops it? Both branches of lax.cond "
                             "are traced") from error
    is_checked = debug_nans.value or debug_infs.value
    kind = CheckedProgram if is_checked else Program
    donated = () if is_checked else donated_leaves(jitted, in_tree, len(leaves))
    return kind(convert_constvars_jaxpr(jaxpr), consts, in_tree, flat.out_tree, name,
                donated, jitted.inline)


def donated_leaves(jitted, in_tree, n):
    """The numbers of the leaves that are in donated arguments."""
    if not (jitted.donate_nums or jitted.donate_names):
        return ()
    args, kwargs = tree_unflatten(in_tree, range(n))
    numbers = [i for i in range(len(args) + len(jitted.static_nums)) if i not in jitted.static_nums]
    given = [x for i, x in zip(numbers, args) if i in jitted.donate_nums]
    return tuple(tree_leaves([given, *(kwargs[k] for k in jitted.donate_names & kwargs.keys())]))


def buffers_of(leaves):
    """The NumPy buffers of values, or None if there is a tracer among them."""
    buffers = []
    for x in leaves:
        if type(x) is not Array:
            if isinstance(x, Tracer):
                return None
            x = as_array(x)
        buffers.append(x._value)
    return buffers


class BoundJit:
    """A jitted method of one object."""

    def __init__(self, jitted, instance):
        self.jitted, self.instance = jitted, instance

    def __call__(self, *args, **kwargs):
        return self.jitted(self.instance, *args, **kwargs)

    def lower(self, *args, **kwargs):
        return self.jitted.lower(self.instance, *args, **kwargs)


_not_given = object()


def jit(fun=_not_given, /, *, static_argnums=None, static_argnames=None, donate_argnums=None,
        donate_argnames=None, keep_unused=False, inline=False, in_shardings=None,
        out_shardings=None, device=None, backend=None):
    """`fun`, compiled: traced once for each signature of its arguments, then run as machine code.

    Arguments in static_argnums or static_argnames are Python values and part of the signature; they
    must be hashable. Arrays in donate_argnums or donate_argnames are deleted by the call if a
    result of their shape and dtype can have their memory. Also usable as `@jit(inline=True)`.
    """
    devices(backend)
    if fun is _not_given:
        return lambda f: jit(f, static_argnums=static_argnums, static_argnames=static_argnames,
                             donate_argnums=donate_argnums, donate_argnames=donate_argnames,
                             inline=inline)
    check_callable(fun)
    return JitFunction(fun, static_argnums, static_argnames, donate_argnums, donate_argnames,
                       inline)


def fwd_and_bwd(fun, argnums, has_aux=False, jitted=True):
    """(fwd, bwd) with fwd(*args) = (fun(*args), residuals), and bwd(residuals, ct) the cotangents.

    As `vjp` with respect to the arguments `argnums`, but the backward pass is a function of its
    own, which is compiled once. With `has_aux` fwd also returns what fun does.
    """
    check_callable(fun)
    nums = as_index_tuple("argnums", argnums)
    single = not isinstance(argnums, (tuple, list))

    def fwd(*args):
        some, rebuild = split_args(args, normalise_argnums("argnums", nums, len(args)))
        return vjp(lambda *some: fun(*rebuild(some)), *some, has_aux=has_aux)

    def bwd(residuals, ct):
        cts = residuals(ct)
        return cts[0] if single else cts
    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


def clear_caches():
    """Forget every traced and compiled program."""
    for tables in _programs.values():
        for programs in tables.values():
            programs.clear()
    for memo in memos:
        memo.clear()


# --- Stages ---------------------------------------------------------------------------------------

@dataclass(frozen=True)
class ArgInfo:
    """The type of an argument, and whether a call may take its memory."""

    _aval: ShapedArray
    donated: bool

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


class Stage:
    """A program on its way: what each stage knows of its arguments and results, as pytrees."""

    def __init__(self, program):
        self.program = program

    in_tree = property(lambda self: self.program.in_tree)
    out_tree = property(lambda self: self.program.out_tree)
    donate_argnums = property(lambda self: self.program.donate_argnums)

    @property
    def in_avals(self):
        avals = self.program.jaxpr.in_avals[len(self.program.consts):]
        return tree_unflatten(self.in_tree, avals)

    @property
    def args_info(self):
        infos = [ArgInfo(aval, i in self.donate_argnums)
                 for i, aval in enumerate(tree_leaves(self.in_avals))]
        return tree_unflatten(self.in_tree, infos)

    @property
    def out_info(self):
        structs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
                   for a in self.program.jaxpr.out_avals]
        return tree_unflatten(self.out_tree, structs)


class Traced(Stage):
    """A traced call: its program is `jaxpr`."""

    fun_name = property(lambda self: self.program.name)

    @api_boundary
    def __call__(self, *args, **kwargs):
        """Run the program on arguments of its types, which may be tracers."""
        leaves, in_tree = tree_flatten((args, kwargs))
        check_arguments(self.program, leaves, in_tree)
        return tree_unflatten(self.out_tree, self.program.bind(leaves))

    @property
    def jaxpr(self):
        return ClosedJaxpr(self.program.jaxpr) if not self.program.consts else self.open_jaxpr()

    def open_jaxpr(self):
        jaxpr, n = self.program.jaxpr, len(self.program.consts)
        return ClosedJaxpr(jaxpr.replace(constvars=jaxpr.invars[:n], invars=jaxpr.invars[n:]),
                           self.program.consts)

    @property
    def out_avals(self):
        return tree_unflatten(self.out_tree, self.program.jaxpr.out_avals)

    def lower(self):
        return Lowered(self)


class Lowered(Stage):
    """A program ready to be compiled; `as_text()` prints it."""

    def __init__(self, traced):
        super().__init__(traced.program)
        self.traced = traced

    def cost_analysis(self):
        """As `compile().cost_analysis()`."""
        return self.compile().cost_analysis()

    def as_text(self, dialect="jaxpr"):
        """The program as text: dialect "jaxpr", or one of those of `Compiled.as_text`."""
        if dialect == "jaxpr":
            return str(self.traced.jaxpr)
        return self.compile().as_text(dialect)

    def compile(self):
        return Compiled(self.program)


class Compiled(Stage):
    """A compiled program: call it with arguments like those it was lowered for."""

    def __init__(self, program):
        super().__init__(program)
        self.executable = program.compile()

    @api_boundary
    def __call__(self, *args, **kwargs):
        program = self.program
        leaves, in_tree = tree_flatten((args, kwargs))
        check_arguments(program, leaves, in_tree)
        buffers = buffers_of(leaves)
        if buffers is None:
            raise TypeError(f"{program.name} is compiled, so it takes no tracers: inside a "
                            "transformed function call the function that was lowered")
        return program.run_donating(leaves, buffers) if program.donated else program.run(buffers)

    def cost_analysis(self):
        """Counted, not measured, for one call: "flops", "transcendentals", "bytes accessed"."""
        return cost_analysis(self.executable.program)

    def memory_analysis(self):
        """Bytes of arguments, results, donated memory among these, and temporaries."""
        return memory_analysis(self.executable.program, len(self.program.consts))

    def as_text(self, dialect="python"):
        """The program as text, as the stages of compilation made it.

        Dialects: "jaxpr", "ir" (loop nests), "python" (the loops as source), "main" (what calls
        the machine code), "llvm" (before LLVM's own passes), "asm" or "assembly".
        """
        return self.executable.as_text(dialect)


def check_arguments(program, leaves, in_tree):
    """Raise a TypeError if a compiled program is called with arguments of other types."""
    if in_tree != program.in_tree:
        raise TypeError(f"{program.name} was compiled for arguments of the tree structure "
                        f"{program.in_tree}, called with {in_tree}")
    for aval, given in zip(program.jaxpr.in_avals[len(program.consts):], map(typeof, leaves)):
        if (aval.shape, aval.dtype) != (given.shape, given.dtype):
            raise TypeError(f"{program.name} was compiled for an argument {aval.str_short()}, "
                            f"called with {given.str_short()}")
