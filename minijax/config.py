# Exported from notebooks/ref_foundations.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: foundations. Home: ref_foundations. In JAX: jax/_src/config.py.

An option is a `State`: `state.value` reads it, `with state(new):` overrides it in this thread, and
`config.update(name, new)` sets it for the process.
"""

import contextlib
import difflib
import os
import threading

__all__ = [
    "State", "Config", "config", "bool_state", "enum_state", "int_state", "object_state",
    "enable_x64", "numpy_dtype_promotion", "disable_jit", "debug_nans", "debug_infs",
    "checking_leaks", "enable_checks", "log_compiles", "explain_cache_misses",
    "traceback_filtering", "platforms", "platform_name", "default_matmul_precision",
    "compilation_cache_dir", "enable_compilation_cache", "compilation_cache_max_size",
    "num_threads",
]


# --- States ---------------------------------------------------------------------------------------

class _ThreadLocal(threading.local):
    """What one thread overrides, and its cached trace key with the epoch it was built in."""

    def __init__(self):
        self.overrides = {}
        self.key = ()
        self.epoch = None


_local = _ThreadLocal()


class State:
    """One configuration option: a process-wide value that each thread may override.

    `check` maps a proposed value to a stored one or raises ValueError; options with `in_trace_key`
    are read while tracing, so they belong to the key of every traced or compiled program.
    `touched` says whether anyone has set it yet: until then, hot paths need not ask for its value.
    """

    def __init__(self, name, value, check, doc, *, in_trace_key=False):
        self.name, self.check, self.__doc__ = name, check, doc
        self.in_trace_key = in_trace_key
        self.global_value = check(value)
        self.touched = self.global_value not in (False, None)

    @property
    def value(self):
        """The value that holds in this thread."""
        return _local.overrides.get(self.name, self.global_value)

    def __call__(self, new_val=True):
        """Return a context manager that overrides the option in this thread."""
        return self._overridden(self.check(new_val))

    @contextlib.contextmanager
    def _overridden(self, new_value):
        overrides = _local.overrides
        missing = object()
        previous = overrides.get(self.name, missing)
        self._override(new_value)
        try:
            yield
        finally:
            if previous is missing:
                del overrides[self.name]
                _local.epoch = None
            else:
                self._override(previous)

    def _override(self, new_value):
        self.touched = True
        _local.overrides[self.name] = new_value
        _local.epoch = None

    def __repr__(self):
        return f"State({self.name}={self.value!r})"


# --- The configuration object ---------------------------------------------------------------------

class Config:
    """All options by JAX's names: `config.jax_enable_x64`, `config.update('jax_enable_x64', True)`.

    An unknown name raises AttributeError and names the close matches.
    """

    def __init__(self):
        # a plain object() as epoch: comparing by identity is safe without a lock
        self.__dict__.update(_states={}, _key_states=(), _epoch=object())

    def add(self, state):
        """Register a State under its name and return it."""
        self._states[state.name] = state
        if state.in_trace_key:
            self.__dict__["_key_states"] += (state,)
        self.__dict__["_epoch"] = object()
        return state

    def update(self, name, value):
        """Set an option for the whole process; a thread's override still wins in that thread."""
        state = self._state(name)
        state.global_value = state.check(value)
        state.touched = True
        self.__dict__["_epoch"] = object()

    def read(self, name):
        """Return an option's value in this thread."""
        return self._state(name).value

    @property
    def values(self):
        """A dict from every option's name to the value that holds in this thread."""
        return {name: state.value for name, state in self._states.items()}

    def trace_key(self):
        """Return the hashable tuple of all options that tracing reads, cached per thread."""
        local, epoch = _local, self._epoch
        if local.epoch is not epoch:
            local.key = tuple(state.value for state in self._key_states)
            local.epoch = epoch
        return local.key

    def trace_key_names(self):
        """Names of the options in the trace key, in its order."""
        return [state.name for state in self._key_states]

    def _state(self, name):
        if name not in self._states:
            near = difflib.get_close_matches(name, self._states, n=2, cutoff=0.6)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise AttributeError(f"unrecognized config option: {name}{hint}")
        return self._states[name]

    def __getattr__(self, name):
        return self._state(name).value

    def __setattr__(self, name, value):
        raise AttributeError(f"set an option with config.update({name!r}, {value!r})")

    def __dir__(self):
        return [*super().__dir__(), *self._states]


config = Config()


# --- Declaring options ----------------------------------------------------------------------------

_WORDS = {**dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
          **dict.fromkeys(("0", "false", "f", "no", "n", "off", ""), False)}


def _from_environment(name, default):
    return os.environ.get("MINIJAX_" + name.split("_", 1)[1].upper(), default)


def bool_state(name, default, doc, *, in_trace_key=False):
    """Declare a boolean option; `MINIJAX_…` in the environment sets its first value."""
    def check(value):
        word = value.lower() if isinstance(value, str) else value
        if word in (True, False):
            return bool(word)
        if word in _WORDS:
            return _WORDS[word]
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return config.add(State(name, _from_environment(name, default), check, doc,
                            in_trace_key=in_trace_key))


def enum_state(name, choices, default, doc, *, in_trace_key=False):
    """Declare an option whose value is one of the given strings."""
    def check(value):
        if value in choices:
            return value
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return config.add(State(name, _from_environment(name, default), check, doc,
                            in_trace_key=in_trace_key))


def int_state(name, default, doc, *, lowest=0):
    """Declare an option that is a whole number; `MINIJAX_…` in the environment may set it."""
    def check(value):
        if isinstance(value, str) and value.lstrip("-").isdigit():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= lowest:
            return value
        raise ValueError(f"{name} must be a number from {lowest} up, got {value!r}")
    return config.add(State(name, _from_environment(name, default), check, doc))


def object_state(name, default, doc, *, in_trace_key=False):
    """Declare an option that holds any hashable object, such as a mesh."""
    return config.add(State(name, default, lambda value: value, doc, in_trace_key=in_trace_key))


# --- The options ----------------------------------------------------------------------------------

enable_x64 = bool_state(
    "jax_enable_x64", False, in_trace_key=True,
    doc="Allow 64-bit types; off, 64-bit requests become 32-bit.")

numpy_dtype_promotion = enum_state(
    "jax_numpy_dtype_promotion", ("standard", "strict"), "standard", in_trace_key=True,
    doc="'strict' refuses to mix dtypes; Python scalars still adapt.")

disable_jit = bool_state(
    "jax_disable_jit", False, in_trace_key=True,
    doc="Run jit-decorated functions and loops operation by operation.")

debug_nans = bool_state(
    "jax_debug_nans", False, in_trace_key=True,
    doc="Raise FloatingPointError at the first operation that returns a NaN.")

debug_infs = bool_state(
    "jax_debug_infs", False, in_trace_key=True,
    doc="Raise FloatingPointError at the first operation that returns an infinity.")

checking_leaks = bool_state(
    "jax_check_tracer_leaks", False, in_trace_key=True,
    doc="After each trace, raise if a tracer is still referenced.")

enable_checks = bool_state(
    "jax_enable_checks", False, in_trace_key=True,
    doc="Run the internal checkers, such as check_jaxpr, on everything that is built.")

log_compiles = bool_state(
    "jax_log_compiles", False, doc="Log each trace and compilation with its duration.")

explain_cache_misses = bool_state(
    "jax_explain_cache_misses", False, doc="Log why a jitted function was traced again.")

traceback_filtering = enum_state(
    "jax_traceback_filtering",
    ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"), "auto",
    doc="What becomes of the library's own frames in tracebacks: 'off' keeps them, 'tracebackhide' "
        "marks them for IPython and pytest to fold, 'remove_frames' (also 'quiet_…') removes them; "
        "'auto' marks in IPython and removes elsewhere.")

platforms = object_state("jax_platforms", None, doc="Accepted: there is the CPU only.")

platform_name = object_state("jax_platform_name", "", doc="Accepted: there is the CPU only.")

default_matmul_precision = object_state(
    "jax_default_matmul_precision", None, doc="Accepted: products have full precision always.")

compilation_cache_dir = object_state(
    "jax_compilation_cache_dir", None,
    doc="The folder for compiled programs; None: MINIJAX_CACHE_DIR, or in the user's cache folder.")

enable_compilation_cache = bool_state(
    "jax_enable_compilation_cache", True,
    doc="Keep compiled programs on disk; MINIJAX_DISABLE_CACHE=1 in the environment turns it off.")

compilation_cache_max_size = int_state(
    "jax_compilation_cache_max_size", -1, lowest=-1,
    doc="Bytes that compiled programs may take on disk, oldest removed first; -1: 256 MiB.")

num_threads = int_state(
    "minijax_num_threads", 0,
    doc="How many threads share a long loop; 0: as many as there are CPUs. (Not an option of JAX.)")
