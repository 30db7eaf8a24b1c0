# Exported from notebooks/ref_foundations.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: foundations. Home: ref_foundations. In JAX: jax/_src/errors.py.

Each class says when it is raised and what to do. A tracer is any object with an `aval`; if it has
`_origin_msg()`, that text ends the message.
"""

__all__ = [
    "JAXTypeError", "JAXIndexError", "see", "LEAKED", "has_ended", "ConcretizationTypeError",
    "TracerBoolConversionError", "TracerIntegerConversionError", "TracerArrayConversionError",
    "NonConcreteBooleanIndexError", "JaxprTypeError", "JaxRuntimeError", "UnexpectedTracerError",
    "ImpossibleRuleError",
]


# --- Bases ----------------------------------------------------------------------------------------

class JAXTypeError(TypeError):
    """A TypeError that comes from tracing."""


class JAXIndexError(IndexError):
    """An IndexError that comes from tracing."""


def _describe(tracer):
    aval = getattr(tracer, "aval", None)
    name = type(tracer).__name__
    return f"a traced value ({name})" if aval is None else f"a traced {aval} ({name})"


def see(section):
    """The line that ends a message: where the book explains it, in the notebook ref_errors."""
    return f"See the book: ref_errors.html#{section}"


def _message(tracer, problem, remedy, section):
    origin = getattr(tracer, "_origin_msg", str)().strip()
    if has_ended(tracer):
        remedy, section = LEAKED, "leaked-tracers"
    return "\n".join(filter(None, [problem, remedy, origin, see(section)]))


LEAKED = ("The function that made it has returned: it escaped by a side effect (a global, a list, "
          "an attribute). Return the value from the transformed function instead of storing it.")


def has_ended(tracer):
    return not getattr(getattr(tracer, "_trace", None), "alive", True)


# --- A concrete value was needed ------------------------------------------------------------------

class ConcretizationTypeError(JAXTypeError):
    """Raised when Python needs the number behind a tracer, which stands for any number.

    Typical causes are `float(x)`, `print(f'{x:.2f}')`, or a shape, axis or length that depends on
    an argument of a jitted function.  Mark that argument static (`static_argnums`), compute it
    from `x.shape` instead of `x`, or move the code outside the transformed function.
    """

    def __init__(self, tracer, context="", section="concrete-values"):
        remedy = "If it comes from an argument, make that argument static (static_argnums)" + (
            "." if context else "; to look at it, use jax.debug.print.")
        super().__init__(_message(
            tracer, f"a concrete value is needed here, but got {_describe(tracer)}.",
            f"{context.rstrip('.')}.\n{remedy}" if context else remedy, section))


class TracerBoolConversionError(ConcretizationTypeError):
    """Raised when `if`, `while`, `and`, `or`, `not` or `assert` asks a tracer for its truth.

    Choose between values with `jnp.where` or `lax.cond`, loop with `lax.while_loop`, combine
    conditions with `&`, `|`, `~`, or make the argument static.
    """

    def __init__(self, tracer):
        JAXTypeError.__init__(self, _message(
            tracer, f"{_describe(tracer)} has no truth value while tracing.",
            "Use jnp.where or lax.cond for a choice, lax.while_loop for a loop, & | ~ for logic, "
            "or make the argument static (static_argnums).", "python-control-flow"))


class TracerIntegerConversionError(JAXTypeError):
    """Raised when a tracer is used as a Python integer: `range(n)`, `a_list[n]`, `hex(n)`.

    Index an array made with `jnp.asarray` in place of a list, loop with `lax.fori_loop`, or make
    the argument static.
    """

    def __init__(self, tracer):
        super().__init__(_message(
            tracer, f"{_describe(tracer)} cannot be used as a Python integer.",
            "Index a jnp array instead of a list, use lax.fori_loop instead of range, "
            "or make the argument static (static_argnums).", "integers-and-loops"))


class TracerArrayConversionError(JAXTypeError):
    """Raised when a tracer is turned into a NumPy array, for instance by `np.sin(x)`.

    Call the function of the same name in `jax.numpy`, or reach NumPy through
    `jax.pure_callback`.
    """

    def __init__(self, tracer):
        super().__init__(_message(
            tracer, f"{_describe(tracer)} cannot become a NumPy array.",
            "Use the jax.numpy function of the same name, or jax.pure_callback to call NumPy.",
            "numpy-functions"))


class NonConcreteBooleanIndexError(JAXIndexError):
    """Raised when a traced boolean mask is an index: the length of `x[mask]` is not known.

    Keep the shape with `jnp.where(mask, x, fill)`, reduce with `where=mask`, or give
    `jnp.nonzero` a `size`.
    """

    def __init__(self, tracer):
        super().__init__(_message(
            tracer, f"a boolean index must be concrete, but got {_describe(tracer)}.",
            "Use jnp.where(mask, x, fill), a reduction with where=mask, "
            "or jnp.nonzero(mask, size=...).", "shapes-of-values"))


# --- A program breaks its own rules ---------------------------------------------------------------

class JaxprTypeError(TypeError):
    """Raised by `check_jaxpr`: a variable unbound or bound twice, or a type that is wrong."""


class JaxRuntimeError(RuntimeError):
    """Raised when a running program can't go on, say because a callback returns a wrong type."""


# --- A tracer outlived its trace ------------------------------------------------------------------

class UnexpectedTracerError(JAXTypeError):
    """Raised when a tracer is used after the transformation that made it has ended.

    The function stored an intermediate value in a global, an attribute or a list.  Return the
    value instead; `with jax.checking_leaks():` reports the leak where it happens.
    """

    def __init__(self, msg):
        super().__init__(f"{msg}\n{see('leaked-tracers')}")


# --- A rule can't exist ---------------------------------------------------------------------------

class ImpossibleRuleError(NotImplementedError, ValueError):
    """Raised when an interpreter needs a rule that can't exist; the message says why.

    The usual case is a gradient through `lax.while_loop`, or a `lax.fori_loop` whose number of
    turns is not known while tracing: use `lax.scan`, or `lax.fori_loop` with bounds that are Python
    numbers.
    """
