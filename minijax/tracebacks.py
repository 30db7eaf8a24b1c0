# Exported from notebooks/ref_errors.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: foundations. Home: ref_errors. In JAX: jax/_src/traceback_util.py.

An error of a user's program should show the user's program. Functions that users call are
boundaries: what passes one on its way out loses the frames of this package, and says where the book
explains it.
"""

import builtins
import os
import re
import sys
import sysconfig
from functools import wraps
from types import FunctionType, ModuleType, TracebackType

from minijax import errors
from minijax.config import traceback_filtering

__all__ = [
    "PACKAGE", "STANDARD", "BELOW", "NOTE", "is_inside", "is_below", "filtering_mode",
    "hide_frames", "chain_of", "without_frames", "mark_hidden", "EXPLAINS", "SECTION_OF",
    "link_section", "linked_section", "BAD_CALL", "OF_A_TRACER", "ASKED", "BOUNDARY", "CALLERS",
    "section_for", "for_this_error", "is_bad_call", "section_for_users_line", "codes_of", "let_out",
    "api_boundary", "make_boundaries", "bound_methods", "make_fronts",
]


# --- Which frames are shown -----------------------------------------------------------------------

PACKAGE = os.path.dirname(errors.__file__) + os.sep
STANDARD = sysconfig.get_path("stdlib") + os.sep
BELOW = tuple(os.sep + name + os.sep for name in ("numpy", "numba", "scipy", "llvmlite"))
NOTE = ("(frames inside minijax are left out of this traceback; to see them: "
        "MINIJAX_TRACEBACK_FILTERING=off, or config.update('jax_traceback_filtering', 'off'))")


def is_inside(file):
    return file.startswith((PACKAGE, "<minijax "))       # the latter: code that the compiler made


def is_below(file):
    """Whether this package may have called what stands there: a user calls it, too."""
    return any(name in file for name in BELOW) or (
        file.startswith(STANDARD) and "site-packages" not in file)


def filtering_mode():
    """"off", "tracebackhide" or "remove_frames"; what "auto" means here."""
    mode = traceback_filtering.value
    if mode == "auto":
        return "tracebackhide" if hasattr(builtins, "__IPYTHON__") else "remove_frames"
    return mode.removeprefix("quiet_")


def hide_frames(error):
    """Take the frames of this package out of an error's traceback, and those it came from."""
    mode = filtering_mode()
    if mode == "off":
        return
    for e in chain_of(error):
        if mode == "tracebackhide":
            mark_hidden(e.__traceback__)
        elif e.__traceback__ is not None:
            e.__traceback__ = without_frames(e.__traceback__)
    if mode == "remove_frames":
        others = [n for n in getattr(error, "__notes__", ()) if n != NOTE]
        error.__notes__ = [*others, NOTE]


def chain_of(error):
    """The error, its causes and contexts; each once."""
    found, stack = {}, [error]
    while stack:
        e = stack.pop()
        if e is not None and id(e) not in found:
            found[id(e)] = e
            stack += [e.__cause__, e.__context__]
    return found.values()


def without_frames(traceback):
    """The traceback without this package's frames, and without those of what it calls below."""
    kept, inside = [], False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        inside = is_inside(file) or inside and is_below(file)
        if not inside:
            kept.append(traceback)
        traceback = traceback.tb_next
    shown = None
    for tb in reversed(kept):
        shown = TracebackType(shown, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return shown


def mark_hidden(traceback):
    """Leave a mark in this package's frames that IPython and pytest know: they fold them."""
    while traceback is not None:
        if is_inside(traceback.tb_frame.f_code.co_filename):
            traceback.tb_frame.f_locals["__tracebackhide__"] = True
        traceback = traceback.tb_next


# --- Which section explains an error --------------------------------------------------------------

EXPLAINS = {
    "what-array-functions-take": """avals dtypes rules primitives.elementwise primitives.special
        primitives.sorting interpreters.staging numpy.ufuncs numpy.ufunc_api numpy.promotion
        numpy.sorting numpy.polynomial numpy.reductions numpy.creation numpy.operators nn
        flatten.check_array api.ShapeDtypeStruct.__init__""",
    "shapes-that-do-not-fit": """rules.elementwise_shape numpy.promotion.broadcast_shapes
        numpy.ufuncs.where primitives.elementwise.clamp_aval primitives.elementwise.select_n_aval
        numpy.creation.keep_where numpy.creation.diag numpy.creation.diagonal numpy.creation.vander
        numpy.reductions.weights_along numpy.reductions.cumulative numpy.sorting.interp
        numpy.sorting.lexsort numpy.sorting.digitize
        numpy.promotion.shape_of_equal_ranks numpy.creation.broadcast_trailing
        numpy.reductions.canonical_axes numpy.reductions.check_has_result
        primitives.structural primitives.reductions primitives.cumulative primitives.dot
        numpy.manipulation numpy.contractions""",
    "shapes-of-values": "primitives.structural.canonicalize_shape numpy.indexing.bounds_of ops",
    "indices": "primitives.indexing numpy.indexing",
    "arrays-as-python-values": """array avals.ShapedArray.length core.Tracer.__iter__
        core.Tracer.__len__ api.ShapeDtypeStruct.__len__ core.ConcreteWhenKnown.__hash__""",
    "python-control-flow": "array.PythonConversions.__bool__ core.raise_if_not_scalar",
    "donated-arrays": "array.DeletedArray._value",
    "functions-and-arguments": "dispatch flatten api.check_callable",
    "static-arguments": "dispatch.chosen_positions dispatch.check_chosen dispatch.check_disjoint",
    "in-place-updates": "numpy.indexing.refuse_in_place numpy.ufunc_api.ufunc.at",
    "inputs-of-grad": """api.check_grad_input api.check_scalar_output api.check_output_dtype
        flatten.FlatFunctionWithAux.__call__""",
    "derivatives-that-differ": "test_util",
    "tangents-and-cotangents": """api.check_tangent api.jvp api.linearize
        api.flatten_cotangents api.linear_transpose api.check_one_kind
        avals.AbstractValue.to_tangent_aval experimental.jet""",
    "axes-of-vmap": """api.vmap api.broadcast_axes api.canonical_axis api.mapped_size
        interpreters.batching""",
    "trees-that-do-not-match": "tree_util flatten_util",
    "arguments-of-loops-and-branches": "control_flow",
    "missing-rules": "core.rule_for rules.refuse_undefined extending rule_tables",
    "rules-of-your-own": """custom_derivatives custom_batching solves higher_order.custom_jvp
        higher_order.custom_vjp higher_order.custom_vmap higher_order.linear_solve
        higher_order.linear_call""",
    "checkpoint-policies": "ad_checkpoint higher_order.checkpoint",
    "prints-and-callbacks": """debugging debugger primitives.callbacks
        higher_order.cond.refuse_exact_effects""",
    "failed-checks": "experimental.checkify",
    "options-and-devices": "config api.devices api.check_devices",
    "malformed-programs": "jaxpr",
}
SECTION_OF = {place: section for section, places in EXPLAINS.items() for place in places.split()}


def link_section(error):
    """Add a note that says where the book explains an error, unless it has one or is the user's."""
    if not linked_section(error) and (section := section_for(error)):
        error.add_note(errors.see(section))


def linked_section(error):
    """The section that an error's message or notes name, or None."""
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    found = re.search(re.escape(errors.see("")) + r"([\w-]+)", text)
    return found and found[1]


# What Python says of a call that does not fit, and of a tracer where it wants something else
BAD_CALL = re.compile(r"missing \d+ required|takes .* positional argument|got multiple values for|"
                      r"got an unexpected keyword|object is not callable$")
OF_A_TRACER = re.compile(r"\w*Tracer\b")

# Who asked for the format explains why; and a boundary has to do with calls alone
ASKED = ("array.Array.__format__",)
BOUNDARY = "tracebacks.api_boundary"

# Functions of the user's are called here, too, but the section says how
CALLERS = ("arguments-of-loops-and-branches", "rules-of-your-own", "checkpoint-policies",
           "prints-and-callbacks")


def section_for(error):
    """The section for the innermost place in an error's traceback that has one, or None."""
    for code in reversed(codes_of(error.__traceback__)):
        if is_inside(code.co_filename):
            module = code.co_filename.removeprefix(PACKAGE).removesuffix(".py").replace(os.sep, ".")
            place = f"{module}.{code.co_qualname.partition('.<locals>')[0]}"
            section = SECTION_OF.get(place) or SECTION_OF.get(module)
            if place == BOUNDARY and is_bad_call(error):
                return "functions-and-arguments"
            if section and place not in ASKED:
                return for_this_error(error, section)
        elif not is_below(code.co_filename):
            return section_for_users_line(error)
    return None


def for_this_error(error, section):
    """The section of a place, unless the error is of a kind that is explained elsewhere."""
    if isinstance(error, OverflowError):
        return "thirty-two-bits"
    return "functions-and-arguments" if section not in CALLERS and is_bad_call(error) else section


def is_bad_call(error):
    return isinstance(error, TypeError) and BAD_CALL.search(str(error)) is not None


def section_for_users_line(error):
    """The section if Python or NumPy was given a tracer there; errors of the user's have none."""
    if error.__cause__ is not None:
        return linked_section(error.__cause__)
    if type(error) is TypeError and OF_A_TRACER.search(str(error)):
        return "concrete-values"
    return None


def codes_of(traceback):
    """What ran, from the outermost frame to the innermost."""
    codes = []
    while traceback is not None:
        codes.append(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    return codes


# --- Boundaries -----------------------------------------------------------------------------------

def let_out(error):
    """Make an error what its user should see, on its way out of this package."""
    link_section(error)
    hide_frames(error)


def api_boundary(function):
    """`function`, whose errors show no frame of this package, not even this one's."""
    @wraps(function, updated=())
    def bounded(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            let_out(error)
            raise            # bare: Python adds no frame for it, and the traceback stays as it is
    return bounded


_boundaries = {}                 # function -> its boundary: one, whatever names it has


def make_boundaries(namespace, names):
    """Put a boundary in place of each plain function of this package among these names."""
    for name in names:
        function = namespace[name]
        if type(function) is FunctionType and is_inside(function.__code__.co_filename):
            if function not in _boundaries:
                _boundaries[function] = bounded = api_boundary(function)
                bounded.__module__, bounded.__qualname__ = namespace["__name__"], name  # for pickle
            namespace[name] = _boundaries[function]


def bound_methods(cls, names):
    """Make boundaries of these methods of a class."""
    for name in names:
        setattr(cls, name, api_boundary(getattr(cls, name)))


def make_fronts(namespace, names):
    """Put in place of these modules what users see of them: the same, with boundaries.

    Modules of this package that imported one before go on with its functions as they are, so that
    nothing is spent on boundaries inside.
    """
    for name in names:
        module = namespace[name]
        if hasattr(module, "behind"):
            continue                                            # done already
        namespace[name] = front = ModuleType(module.__name__, module.__doc__)
        vars(front).update(vars(module), behind=module)
        make_boundaries(vars(front), module.__all__)
        sys.modules[module.__name__] = front
