"""The traces of chapter 1 for other chapters: log what a function does, or count what it costs.

    with set_current_trace(FlopTrace()) as counting:
        grad(loss)(params)
    counting.flops

Both leave the work to their parent, so they see what jvp, vmap and transposition ask of it. The
second looks inside jitted functions.
"""

from math import prod

import numpy as np

from minijax.avals import typeof
from minijax.core import Trace, get_current_trace, set_current_trace
from minijax.jaxpr import eval_jaxpr

__all__ = ["ParentTrace", "LogTrace", "FlopTrace", "count_flops", "flops_of", "short"]


class ParentTrace(Trace):
    """A trace that asks its parent (if none is given, the current trace) and passes values on."""

    def __init__(self, parent=None):
        super().__init__()
        self.parent = parent or get_current_trace()

    def ask_parent(self, primitive, args, params):
        with set_current_trace(self.parent):
            return primitive.bind(*args, **params)

    def inside(self, primitive, args, params):
        """Run the program that a higher-order primitive contains, one primitive at a time."""
        if primitive.name != "jit":
            raise NotImplementedError(f"{type(self).__name__} can't look inside '{primitive}'")
        program = params["jaxpr"]
        with set_current_trace(self):
            return eval_jaxpr(program.jaxpr, program.consts, *args)


# --- Logging --------------------------------------------------------------------------------------

class LogTrace(ParentTrace):
    """Collects a line for each primitive in `lines`: its name, operands and result."""

    def __init__(self, parent=None):
        super().__init__(parent)
        self.lines = []

    def process_primitive(self, primitive, args, params):
        out = self.ask_parent(primitive, args, params)
        self.lines.append(f"{primitive}({', '.join(map(short, args))}) = {short(out)}")
        return out


def short(x):
    """A scalar as a number, an array as its type, a pair of jvp as ⟨value, velocity⟩."""
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(short, x))}]"
    if hasattr(x, "primal"):
        return f"⟨{short(x.primal)}, {short(x.tangent)}⟩"
    aval = getattr(x, "aval", None) or typeof(x)
    known = not aval.shape and (x.to_concrete_value() if hasattr(x, "to_concrete_value") else x)
    return aval.str_short() if known is False or known is None else f"{np.asarray(known)[()]:.3g}"


# --- Counting -------------------------------------------------------------------------------------

# They move numbers, or make them, without arithmetic.
FREE = frozenset("""broadcast_in_dim reshape transpose squeeze expand_dims slice pad concatenate
    split rev iota copy gather scatter dynamic_slice dynamic_update_slice convert_element_type
    select_n bitcast_convert_type stop_gradient real imag complex""".split())


def flops_of(primitive, operands, results):
    """The floating-point operations of one application, from the avals of its operands and results.

    One for each element of an elementwise result, be it a sum or a sine; in a reduction one less
    than there are elements to combine; in a scatter one for each update.
    """
    made = sum(a.size for a in results)
    if primitive.name in FREE:
        return 0
    if primitive.name.startswith(("reduce_", "arg")):
        return operands[0].size - made
    if primitive.name.startswith("scatter-"):
        return operands[-1].size
    return made


def dot_flops(operands, results, dimension_numbers):
    """A product and a sum for each pair of elements that meets."""
    (contracting, _), _ = dimension_numbers
    return 2 * results[0].size * prod(operands[0].shape[i] for i in contracting)


class FlopTrace(ParentTrace):
    """Adds up floating-point operations in `flops`, and by the primitive's name in `by_name`."""

    def __init__(self, parent=None):
        super().__init__(parent)
        self.flops, self.by_name = 0, {}

    def process_primitive(self, primitive, args, params):
        if primitive.higher_order:
            return self.inside(primitive, args, params)
        out = self.ask_parent(primitive, args, params)
        self.charge(primitive, args, out if primitive.multiple_results else [out], params)
        return out

    def charge(self, primitive, args, outs, params):
        operands, results = map(typeof, args), map(typeof, outs)
        if primitive.name == "dot_general":
            cost = dot_flops([*operands], [*results], params["dimension_numbers"])
        else:
            cost = flops_of(primitive, [*operands], [*results])
        self.flops += cost
        self.by_name[primitive.name] = self.by_name.get(primitive.name, 0) + cost


def count_flops(f, *args):
    """The floating-point operations of f(*args), which is run."""
    with set_current_trace(FlopTrace()) as counting:
        f(*args)
    return counting.flops
