"""The names and signatures of JAX's public modules that this package has, and those it says it lacks."""
import importlib
import inspect
import re
from pathlib import Path

import jax
import pytest

import minijax

DEPARTURES = (Path(__file__).resolve().parent.parent / "book" / "departures.md").read_text()

MODULES = ("debug", "extend.core", "errors", "experimental.checkify", "ad_checkpoint", "custom_batching",
           "custom_derivatives", "tree", "tree_util", "checkpoint_policies")

LAX = """cond switch select while_loop fori_loop scan map associative_scan stop_gradient custom_root
    custom_linear_solve""".split()

TOP = """jit grad value_and_grad vmap jvp vjp linearize linear_transpose jacfwd jacrev jacobian hessian
    make_jaxpr eval_shape checkpoint remat custom_jvp custom_vjp custom_gradient closure_convert
    pure_callback effects_barrier named_scope named_call ensure_compile_time_eval debug_nans debug_infs
    log_compiles checking_leaks explain_cache_misses enable_x64 clear_caches device_put device_get
    devices device_count default_backend block_until_ready typeof ShapeDtypeStruct""".split()

# Parameters about many devices, XLA, or JAX's own machinery
NOT_HERE = {"reduce_axes", "sum_match", "mesh_axis", "explicit_mesh_axis", "compiler_options",
            "manual_axis_type", "is_ref", "check_leaks", "ctx", "debug_info", "source_info", "print_shapes",
            "custom_pp_eqn_rules", "name_stack", "print_effects", "kwargs"}

# Classes that a user gets from the library and does not make
MADE_INSIDE = {"Error", "ClosedJaxpr", "Jaxpr", "JaxprEqn", "Var", "Effect"}

# Functions that are called by position, or whose arguments come in two calls
OTHER_NAMES = {"extend.core.concrete_or_error", "extend.core.jaxpr_as_fun"}


def modules(path):
    return [importlib.import_module(f"{lib.__name__}.{path}") for lib in (minijax, jax)]


def public(module):
    return [n for n in dir(module) if not n.startswith("_") and not inspect.ismodule(getattr(module, n))]


def parts(path):
    """(our namespace, JAX's)"""
    if path == "checkpoint_policies":
        return minijax.checkpoint_policies, jax.checkpoint_policies
    return modules(path)


def callables():
    """(name, ours, JAX's) of every function, class and method that both have."""
    spaces = [(f"{path}.", *parts(path), public(parts(path)[1])) for path in MODULES]
    spaces += [("lax.", minijax.lax, jax.lax, LAX), ("", minijax, jax, TOP)]
    for prefix, ours, theirs, names in spaces:
        for name in names:
            a, b = getattr(ours, name, None), getattr(theirs, name, None)
            if a is None or not callable(b) or isinstance(b, type) and issubclass(b, Exception):
                continue
            if name not in MADE_INSIDE and f"{prefix}{name}" not in OTHER_NAMES:
                yield f"{prefix}{name}", a, b
            for method in vars(b) if isinstance(b, type) else ():
                if not method.startswith("_") and callable(getattr(a, method, None)):
                    yield f"{prefix}{name}.{method}", getattr(a, method), getattr(b, method)


def parameters(function):
    """{name: parameter} but for self, or None if Python can't tell."""
    try:
        return {n: p for n, p in inspect.signature(function).parameters.items() if n != "self"}
    except (TypeError, ValueError):
        return None


def differences(ours, theirs):
    """What a call written for JAX could trip over."""
    mine, theirs, found = parameters(ours), parameters(theirs), []
    takes = {kind: any(p.kind is kind for p in mine.values())
             for kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)}
    positional, wanted = ([n for n, p in these.items() if p.kind <= p.POSITIONAL_OR_KEYWORD]
                          for these in (mine, theirs))
    if len(mine) == len(theirs) == len(positional) == len(wanted) == 1:
        return found                         # one argument: nobody passes it by name
    place = 0
    for name, p in theirs.items():
        if p.kind in takes:
            found += [f"no *{name}"] if name not in NOT_HERE and not takes[p.kind] else []
        elif name in NOT_HERE or name.startswith("_"):
            continue
        elif p.kind is inspect.Parameter.POSITIONAL_ONLY:
            found += [f"{name} by position"] if place >= len(positional) else []
            place += 1
        elif name not in mine:
            found += [] if takes[inspect.Parameter.VAR_KEYWORD] else [f"no {name}"]
        else:
            if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
                found += [f"{name} elsewhere"] if positional[place:place + 1] != [name] else []
                place += 1
            if p.default is not p.empty and mine[name].default is p.empty:
                found.append(f"{name} without default")
    return found


CALLABLES = [c for c in callables() if parameters(c[2]) is not None]


@pytest.mark.parametrize("ours, theirs", [c[1:] for c in CALLABLES], ids=[c[0] for c in CALLABLES])
def test_a_call_written_for_jax_fits(ours, theirs):
    assert not differences(ours, theirs)


@pytest.mark.parametrize("path", MODULES)
def test_what_is_not_here_is_on_the_page(path):
    ours, theirs = parts(path)
    missing = {n for n in public(theirs) if not hasattr(ours, n)}
    named = set(re.findall(r"[\w.]+", DEPARTURES.partition("## Not there yet")[2]))
    listed = {name.rpartition(".")[2] for name in named}
    missing = {n for n in missing if not n.endswith("DO_NOT_USE")}
    assert missing <= listed, missing - listed


def test_differences_are_found():
    assert differences(lambda x: x, lambda x, y=1: x) == ["no y"]
    assert differences(lambda x: x, lambda *, y=1: x) == ["no y"]
    assert differences(lambda y, x: x, lambda x, y: x) == ["x elsewhere", "y elsewhere"]
    assert differences(lambda x, *, y: x, lambda x, *, y=1: x) == ["y without default"]
    assert differences(lambda x: x, lambda x, *args: x) == ["no *args"]
    assert differences(lambda x, z=0, **options: x, lambda x, *, y=1, **rest: x) == []
