"""Errors as users meet them: short tracebacks, links into the book; and the judge of purity."""
import ast
import pickle
import re
import random
import traceback
import warnings
from pathlib import Path

import jax as real_jax
import nbformat
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.config import config, traceback_filtering
from minijax.purity import check_pure, impurities
from minijax.tracebacks import SECTION_OF, linked_section

import wrong_programs

ROOT = Path(__file__).resolve().parent.parent
X = np.ones(3, np.float32)


# --- Tracebacks -----------------------------------------------------------------------------------

def bad_if(x):
    return x if x > 0 else -x            # the line that a user should see


def shape_mismatch():
    return jnp.ones(3) + jnp.ones(4)


def write(x):
    x[0] = 1.0


FAILING = {
    "jit": lambda: jax.jit(bad_if)(1.0),
    "vmap": lambda: jax.vmap(bad_if)(X),
    "make_jaxpr": lambda: jax.make_jaxpr(bad_if)(1.0),
    "grad of jit": lambda: jax.grad(jax.jit(bad_if))(1.0),
    "checkpoint": lambda: jax.checkpoint(bad_if)(1.0),
    "scan": lambda: lax.scan(lambda c, x: (bad_if(c), x), 0.0, X),
    "eval_shape": lambda: jax.eval_shape(bad_if, 1.0),
    "linearize": lambda: jax.linearize(jax.jit(bad_if), 1.0),
    "operator": shape_mismatch,
    "method": lambda: jnp.ones(3).reshape(7),
    "jnp": lambda: jnp.dot(jnp.ones(3), jnp.ones(4)),
    "lax": lambda: lax.add(1, 1.0),
    "assignment": lambda: write(jnp.ones(3)),
    "grad of an int": lambda: jax.grad(lambda x: x)(3),
    "vjp later": lambda: jax.vjp(jnp.sin, 1.0)[1]("no cotangent"),
    "custom_jvp": lambda: jax.custom_jvp(bad_if)(1.0),
    "a static list": lambda: jax.jit(bad_if, static_argnums=0)([1]),
}


def frames_of(run, mode):
    with traceback_filtering(mode), pytest.raises(Exception) as caught:
        run()
    return caught.value, [f.filename for f in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("what", FAILING)
@pytest.mark.parametrize("mode", ["remove_frames", "quiet_remove_frames"])
def test_only_the_users_frames_are_left(what, mode):
    error, files = frames_of(FAILING[what], mode)
    assert all(file == __file__ for file in files)
    assert sum("MINIJAX_TRACEBACK_FILTERING=off" in note for note in error.__notes__) == 1


@pytest.mark.parametrize("what", ["jit", "vmap", "grad of jit", "checkpoint", "scan"])
def test_the_users_line_is_the_last(what):
    error, _ = frames_of(FAILING[what], "remove_frames")
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert last.name == "bad_if" and "the line that a user should see" in last.line


def test_off_keeps_all_frames_and_adds_no_note():
    error, files = frames_of(FAILING["jit"], "off")
    assert sum("minijax" in file and file != __file__ for file in files) > 3
    assert not getattr(error, "__notes__", [])


def test_tracebackhide_marks_frames():
    error, files = frames_of(FAILING["jit"], "tracebackhide")
    marks = [(f.f_code.co_filename == __file__, f.f_locals.get("__tracebackhide__", False))
             for f, _ in traceback.walk_tb(error.__traceback__)]
    assert len(files) > 5 and all(mine != marked for mine, marked in marks)


def test_causes_and_contexts_are_shortened_too():
    def handler(x):
        try:
            jnp.dot(jnp.ones(3), jnp.ones(4))
        except TypeError:
            raise RuntimeError("instead")
    error, _ = frames_of(lambda: jax.jit(handler)(1.0), "remove_frames")
    files = {f.filename for f in traceback.extract_tb(error.__context__.__traceback__)}
    assert files == {__file__}


def test_the_option_takes_jaxs_values():
    for mode in ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"):
        with traceback_filtering(mode), real_jax._src.config.traceback_filtering(mode):
            pass
    with pytest.raises(ValueError, match="must be one of"):
        config.update("jax_traceback_filtering", "some")


def test_frames_of_generated_code_are_left_out_too():
    def rejects(x):
        raise KeyError("mine")
    error, files = frames_of(
        lambda: jax.jit(lambda x: jax.pure_callback(rejects, x, x))(1.0), "remove_frames")
    assert isinstance(error, KeyError) and set(files) == {__file__}


def test_a_result_that_is_no_array_names_its_function():
    def nameless(x):
        return {"a": "text"}
    for run in (jax.jit(nameless), lambda x: lax.cond(True, nameless, nameless, x)):
        with pytest.raises(TypeError, match="a result of nameless at \\[.a.\\]: value 'text'"):
            run(1.0)


def test_errors_of_the_user_pass_unchanged():
    class Mine(Exception):
        pass
    mine = Mine("x")

    def f(x):
        raise mine
    with pytest.raises(Mine) as caught:
        jax.jit(jax.grad(f))(1.0)
    assert caught.value is mine


def test_keyboard_interrupt_passes():
    def f(x):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        jax.jit(f)(1.0)


def test_functions_are_found_under_the_names_of_users():
    for function in (jnp.dot, jnp.where, lax.scan, jax.grad, jax.checkpoint, jax.nn.relu):
        assert pickle.loads(pickle.dumps(function)) is function
    assert jnp is jax.numpy and lax is jax.lax


# --- Links ----------------------------------------------------------------------------------------

def slug(heading):
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def sections():
    nb = nbformat.read(ROOT / "notebooks" / "ref_errors.ipynb", as_version=4)
    text = "\n".join(c.source for c in nb.cells if c.cell_type == "markdown")
    return [slug(h) for h in re.findall(r"^#+ +(.*?)\s*$", text, re.M)]


def links_in(path):
    """The sections that calls of `see`, and of `_message`, name in a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("see", "_message"):
            last = node.args[-1]
            if isinstance(last, ast.Constant):
                yield last.value


def test_every_link_leads_to_a_section():
    found = {link for path in (ROOT / "minijax").rglob("*.py") for link in links_in(path)}
    assert len(found) >= 10
    assert found <= set(sections()), found - set(sections())
    assert len(sections()) == len(set(sections())), "two sections of one name: links are ambiguous"


def functions_in(tree, name=""):
    """(qualified name, node) of the functions and classes of a module, from the outside inwards."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield f"{name}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from functions_in(node, f"{name}{node.name}.")
        else:
            yield from functions_in(node, name)


def raises_in(function):
    """The names of the error classes that a function raises."""
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield getattr(node.exc.func, "id", getattr(node.exc.func, "attr", ""))


MODULES = {str(path.relative_to(ROOT / "minijax"))[:-3].replace("/", "."): ast.parse(path.read_text())
           for path in (ROOT / "minijax").rglob("*.py")}

# No learner meets these: parts of the library that fail by faults of its own, the checkers' verdicts,
# and what Python's protocols ask for. `_concrete` raises classes that bring their link.
NOT_FOR_LEARNERS = ("book.", "compiler.", "checkers", "purity", "extend.core.primitives",
                    "core.Trace.process_primitive", "core.forget", "core.ConcreteWhenKnown._concrete",
                    "tracebacks")


def test_every_place_in_the_table_exists():
    for place, section in SECTION_OF.items():
        assert section in sections(), section
        module = max((m for m in MODULES if f"{place}.".startswith(f"{m}.")), key=len, default=None)
        assert module, place
        function = place[len(module) + 1:]
        assert not function or function in dict(functions_in(MODULES[module])), place


def test_every_raise_that_a_learner_can_reach_links_a_section():
    linked_by_class = {name for name in dir(jax.errors) if name.startswith(("Tracer", "NonConcrete"))}
    linked_by_class |= {"ConcretizationTypeError", "UnexpectedTracerError"}
    missing = [
        f"{module}.{name}: {error}" for module, tree in MODULES.items()
        for name, function in functions_in(tree) if not isinstance(function, ast.ClassDef)
        for error in raises_in(function)
        if error not in linked_by_class and not f"{module}.{name}".startswith(NOT_FOR_LEARNERS)
        and not any(isinstance(n, ast.Call) and getattr(n.func, "id", "") == "see"
                    for n in ast.walk(function))
        and not (SECTION_OF.get(f"{module}.{name}") or SECTION_OF.get(module))]
    assert not missing


def nan_under_debug_nans():
    with jax.debug_nans(True):
        jax.jit(jnp.log)(-1.0)


LINKED = {
    "python-control-flow": (jax.errors.TracerBoolConversionError, FAILING["jit"]),
    "concrete-values": (jax.errors.ConcretizationTypeError, lambda: jax.jit(float)(1.0)),
    "integers-and-loops": (jax.errors.TracerIntegerConversionError,
                           lambda: jax.jit(lambda n: sum(range(n)))(1)),
    "numpy-functions": (jax.errors.TracerArrayConversionError, lambda: jax.jit(np.sin)(1.0)),
    "shapes-of-values": (jax.errors.NonConcreteBooleanIndexError,
                         lambda: jax.jit(lambda x: x[x > 0])(X)),
    "static-arguments": (ValueError, FAILING["a static list"]),
    "in-place-updates": (TypeError, FAILING["assignment"]),
    "inputs-of-grad": (TypeError, FAILING["grad of an int"]),
    "axes-of-vmap": (ValueError, lambda: jax.vmap(jnp.add)(jnp.ones(3), jnp.ones(4))),
    "nan-behind-where": (FloatingPointError, nan_under_debug_nans),
    "types-of-carries-and-branches": (TypeError, lambda: lax.scan(
        lambda c, x: ((c[0], c[1] > 0), x), (0.0, np.float32(1)), X)),
    "gradients-of-loops": (ValueError, lambda: jax.grad(lambda x: lax.while_loop(
        lambda y: y > 1.0, lambda y: y / 2, x))(5.0)),
}


@pytest.mark.parametrize("section", LINKED)
def test_errors_link_their_section(section):
    kind, run = LINKED[section]
    with pytest.raises(kind) as caught:
        run()
    assert f"See the book: ref_errors.html#{section}" in str(caught.value)


# What happens deep inside one function is explained where another stands
EXPLAINED = {
    "concrete-values": ["format", "format by %", "NumPy's zeros", "NumPy's assignment", "pickle"],
    "shapes-of-values": ["traced tile", "zeros", "mask", "nonzero", "repeat"],
    "leaked-tracers": ["leak", "float of a leak", "if of a leak", "NumPy of a leak"],
    "arrays-as-python-values": ["dict key", "traced dict key", "format of an array"],
    "in-place-updates": ["put", "fill_diagonal", "at of a ufunc"],
    "static-arguments": ["static tracer", "static number below", "static kind",
                         "static number of checkpoint"],
    "functions-and-arguments": ["map of no function", "map of a function of one", "apply no callable",
                                "ufunc of one", "lower of too few", "None",
                                "check_grads of no function"],
    "shapes-that-do-not-fit": ["where: shapes", "vectorize", "diag", "property"],
    "derivatives-that-differ": ["check_grads"],
    "missing-rules": ["linear_transpose of a product"],
    "rules-of-your-own": ["custom_gradient", "custom_jvp no pair"],
    "prints-and-callbacks": ["print: format code", "pure_callback: no types"],
    "trees-that-do-not-match": ["no pair", "unflatten by a structure"],
    "options-and-devices": ["device_put", "to_device", "backend of jit"],
    "what-array-functions-take": ["string in a tree", "masked", "jvp of a string"],
    "inputs-of-grad": ["argnums a float", "argnums too large"],
}


@pytest.mark.parametrize("section", EXPLAINED)
def test_the_section_explains_this_error(section):
    runs = {name: run for programs in OURS.values() for name, run in programs.items()}
    assert {name: linked_section(error_of(runs[name])) for name in EXPLAINED[section]} == dict.fromkeys(
        EXPLAINED[section], section)


def test_what_is_no_array_is_named():
    for run in (jax.jit(lambda x, y: x), jax.vmap(lambda x, y: x), jax.make_jaxpr(lambda x, y: x),
                lambda *args: jax.vjp(lambda x, y: x, *args), jax.jit(lambda x, y: x).lower):
        with pytest.raises(TypeError, match=r"argument 'y' \(number 1\) of <lambda> at \['k'\]: value"):
            run(1.0, {"k": "text"})
    for run in (jax.grad, jax.vmap, jax.jit):
        with pytest.raises(TypeError, match=r"a result of <lambda> at \[1\]: value 'text'"):
            run(lambda x: (x, "text"))(X)


UNLIKE = {
    "a structure of carries": lambda: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1,), (0, 1.0)),
    "a structure of branches": lambda: lax.cond(True, lambda: 1.0, lambda: {"a": 1.0}),
    "types of branches": lambda: lax.switch(1, [lambda: 1.0, lambda: X]),
}


@pytest.mark.parametrize("what", UNLIKE)
def test_unlike_carries_and_branches_link_their_section(what):
    with pytest.raises(TypeError, match="#types-of-carries-and-branches"):
        UNLIKE[what]()


def test_what_is_no_loop_does_not_link_to_loops():
    with pytest.raises(NotImplementedError, match="linear in no operand") as caught:
        jax.linear_transpose(jnp.sin, 1.0)(1.0)
    assert linked_section(caught.value) == "missing-rules"


def test_a_traced_assignment_links_its_section():
    with pytest.raises(TypeError, match="#in-place-updates"):
        jax.jit(write)(X)


def test_a_leaked_tracer_names_function_and_line():
    kept = []

    def stores(x):
        kept.append(x * 2)               # here it gets away
        return x
    jax.jit(stores)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError) as caught:
        kept[0] + 1
    place = re.search(r"test_errors_teach\.py:(\d+) \(stores\)", str(caught.value))
    line = Path(__file__).read_text().splitlines()[int(place[1]) - 1]
    assert "here it gets away" in line and "tracing stores" in str(caught.value)
    assert "#leaked-tracers" in str(caught.value)


@pytest.mark.parametrize("name", [n for n in dir(real_jax.errors) if n.endswith("Error")
                                  and n != "KeyReuseError"])
def test_the_error_types_are_those_of_jax(name):
    ours, theirs = getattr(jax.errors, name), getattr(real_jax.errors, name)
    builtin = [c for c in theirs.__mro__ if c.__module__ == "builtins"]
    assert all(issubclass(ours, c) for c in builtin)


# --- Wrong programs -------------------------------------------------------------------------------

OURS, JAXS = (wrong_programs.wrong_programs(lib) for lib in (jax, real_jax))
WRONG = [(topic, name) for topic in OURS for name in OURS[topic]]

# Where JAX's error is that of a step within, and ours names the argument
ANOTHER_TYPE = {"eye", "map: batch_size", "associative_scan: scalar",
                "custom_linear_solve: structure", "linear_transpose of a product"}
PYTHONS_OWN = {"add a string", "add None"}          # raised by Python, after both operands declined


def error_of(run):
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("ignore")
        run()
    return caught.value


@pytest.mark.parametrize("topic, name", WRONG, ids=[f"{t}: {n}" for t, n in WRONG])
def test_a_wrong_program_gets_jaxs_error_its_own_line_and_a_link(topic, name):
    with traceback_filtering("remove_frames"):
        error = error_of(OURS[topic][name])
    jaxs = type(error_of(JAXS[topic][name]))
    same = isinstance(error, jaxs) or type(error).__name__ == jaxs.__name__
    assert same != (name in ANOTHER_TYPE), f"{type(error).__name__}, JAX: {jaxs.__name__}"
    files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    assert files <= {__file__, wrong_programs.__file__}
    assert (linked_section(error) in sections()) != (name in PYTHONS_OWN)


def test_an_error_of_the_users_own_gets_no_link():
    def rejects(x):
        raise ValueError("mine")
    assert linked_section(error_of(lambda: jax.jit(rejects)(1.0))) is None
    assert linked_section(error_of(lambda: jax.grad(lambda x: {}["no"])(1.0))) is None


def test_an_error_is_linked_once():
    error = error_of(lambda: jax.jit(jax.grad(lambda x: jnp.sum(jnp.ones(3) + jnp.ones(4))))(1.0))
    assert [n for n in error.__notes__ if "See the book" in n] == [
        "See the book: ref_errors.html#shapes-that-do-not-fit"]


# --- Purity ---------------------------------------------------------------------------------------

history, total, seen_by = [], 0, {}


class Model:
    def __init__(self):
        self.steps = 0

    def step(self, x):
        self.steps += 1
        return x

    def pure(self, x):
        return x * self.steps


def appends(x):
    history.append(1)
    return x


def counts(x):
    global total
    total += 1
    return x


def reads_what_it_counts(x):
    global total
    total += 1
    return x * float(total)


def caches(x, seen={}):
    seen[len(seen)] = 1
    return x


def draws(x):
    return x + np.random.normal()


def shuffles(x):
    return x * random.random()


def leaks(x):
    history.append(x)
    return x


def prints(x):
    print("hello")
    return x


def calls_one_that_counts(x):
    return jax.jit(counts)(x) * 2.0


def enclosed():
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return x
    return f


IMPURE = {
    "a list": (appends, r"changes the global history: \[\] becomes \[1\]"),
    "a global": (counts, r"changes the global total: \d+ becomes \d+"),
    "two programs": (reads_what_it_counts, r"two programs; first .*1\.0.*, then .*2\.0"),
    "a default": (caches, r"changes a default argument of caches"),
    "numpy.random": (draws, r"draws from numpy\.random"),
    "random": (shuffles, r"draws from Python's random"),
    "a leak": (leaks, r"a traced value gets away: .*test_errors_teach\.py:\d+ \(<lambda>\)|gets away"),
    "a print": (prints, r"prints while it is traced, and only then: 'hello"),
    "inside another": (calls_one_that_counts, r"changes the global total"),
    "a closure": (enclosed(), r"changes the variable calls around f: 0 becomes 1"),
    "an attribute": (Model().step, r"changes the object that its method belongs to.*steps"),
    "jitted": (jax.jit(appends), r"changes the global history"),
}


@pytest.mark.parametrize("kind", IMPURE)
def test_every_kind_of_impurity_is_found(kind):
    global total
    history.clear()
    total = 0
    f, sentence = IMPURE[kind]
    with pytest.raises(AssertionError, match=sentence) as caught:
        check_pure(f, 1.0)
    assert "is not pure" in str(caught.value) and "#side-effects" in str(caught.value)
    history.clear()


def test_random_states_are_put_back():
    before = random.getstate(), np.random.get_state()[1].tolist()
    impurities(draws, 1.0), impurities(shuffles, 1.0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


@pytest.mark.parametrize("f", [
    jnp.sin, jax.jit(jax.grad(lambda x: jnp.sin(x) * len(history))), Model().pure,
    lambda x: jnp.sum(jax.vmap(lambda y: y * x)(jnp.arange(3.0))),
    lambda x: lax.scan(lambda c, _: (c * x, c), 1.0, None, length=3),
    lambda x: (jax.debug.print("{}", x), x)[1],
    lambda x: x + jnp.asarray(np.arange(3.0)),
    lambda x: [x * i for i in sorted({3, 1, 2})],
], ids=range(8))
def test_pure_functions_pass(f):
    check_pure(f, 1.0)


def test_trees_and_keywords():
    check_pure(lambda tree, *, scale: {"out": tree["a"][0] * scale}, {"a": [X]}, scale=2.0)


def test_errors_of_the_function_go_through():
    with pytest.raises(ZeroDivisionError):
        check_pure(lambda x: 1 // 0, 1.0)
    assert jax.core.get_current_trace() is jax.core.eval_trace
