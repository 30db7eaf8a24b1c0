"""The helpers of the notebooks: failures shown, the rule matrix, views of the source, drawings."""
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from minijax.avals import ShapedArray
from minijax.book.blocks import modules_of_primitives, rule_block, rule_column
from minijax.book.draw import bars, draw_boxes, draw_jaxpr, draw_trace_tower
from minijax.book.exercises import NotYet, check, judge_rule, not_yet
from minijax.book.failures import fails
from minijax.book.matrix import filled, hole, impossible, rule_matrix, state_of
from minijax.core import eval_trace, forget, primitives
from minijax.interpreters.jvp import JVPTrace
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.primitives.elementwise import add_p, cos, exp, floor_p, mul, mul_p, sin, sin_p


# --- Failures -------------------------------------------------------------------------------------

def test_fails_prints_type_and_message(capsys):
    with fails(ValueError, "at"):
        raise ValueError("wrong at /some/where/ipykernel_12/345.py and /a/b/core.py:12, "
                         "<x at 0x7f3a5c002d30>")
    assert capsys.readouterr().out == (
        "ValueError: wrong at <cell> and core.py:12, <x at 0x…>\n")


def test_fails_refuses_what_does_not_fail_or_fails_otherwise():
    with pytest.raises(AssertionError, match="should raise ValueError or TypeError"):
        with fails((ValueError, TypeError)):
            pass
    with pytest.raises(AssertionError, match="should match 'shape'"):
        with fails(ValueError, "shape"):
            raise ValueError("dtype")
    with pytest.raises(KeyError):
        with fails(ValueError):
            raise KeyError


def test_long_messages_are_wrapped_and_keep_their_lines(capsys):
    with fails(ValueError):
        raise ValueError("word " * 40 + "\nsecond")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 88 and lines[-1] == "second" and len(lines) == 4


# --- Exercises ------------------------------------------------------------------------------------

USES = [lambda x: x + 1, lambda x: x == 1, lambda x: x("a", 1), lambda x: x[0], lambda x: 2 * x,
        lambda x: np.asarray(x), lambda x: bool(x), lambda x: x.shape, lambda x: [*x],
        lambda x: np.allclose(x, 1)]


@pytest.mark.parametrize("use", USES)
def test_every_use_of_not_yet_is_not_yet(use, capsys):
    with check("name"):
        assert use(not_yet("think")), "wrong"
    assert capsys.readouterr().out == "not yet: name: think\n"


def test_check_passes_and_fails(capsys):
    with check("name", "well done"):
        pass
    assert capsys.readouterr().out == "✓ name: well done\n"
    with pytest.raises(AssertionError, match="^name: should be 2"):
        with check("name"):
            assert False, "should be 2"
    with pytest.raises(KeyError) as caught:
        with check("name"):
            raise KeyError
    assert "name" in caught.value.__notes__[0]


def test_a_rule_is_judged_and_the_packages_rule_comes_back():
    kept, sample = sin_p.rules["jvp"], ((np.ones(3, np.float32),), {})
    judge_rule(sin_p, "jvp", lambda ps, ts: (sin(*ps), mul(ts[0], cos(*ps))), sample)
    with pytest.raises(AssertionError, match="factor"):
        judge_rule(sin_p, "jvp", lambda ps, ts: (sin(*ps), mul(ts[0], sin(*ps))), sample)
    for stub in (not_yet, not_yet("hint")):
        with pytest.raises(NotYet):
            judge_rule(sin_p, "jvp", stub, sample)
    with forget("jvp"):
        judge_rule(sin_p, "jvp", kept, sample)
        assert "jvp" not in sin_p.rules
    assert sin_p.rules["jvp"] is kept


# --- The matrix -----------------------------------------------------------------------------------

def test_matrix_shows_holes_and_reasons():
    assert state_of(mul_p, "jvp") == filled and state_of(floor_p, "transpose") == impossible
    with forget("jvp"):
        assert state_of(mul_p, "jvp") == hole
        emptied = rule_matrix(["add", "mul", "floor"])
    assert "3 holes" in emptied.alt and "□" in repr(emptied)
    restored = rule_matrix([add_p, mul_p, floor_p])
    assert " 0 holes" in restored.alt and "□" not in repr(restored)
    assert f"no transpose: {floor_p.impossible['transpose']}" in restored._repr_svg_()


def test_matrix_of_the_package_is_small_and_names_every_primitive():
    svg = rule_matrix()._repr_svg_()
    assert len(svg) < 24_000
    assert all(f">{name}<" in svg for name in primitives)


# --- Views of the source --------------------------------------------------------------------------

def test_block_has_every_rule_and_nothing_of_the_next_primitive():
    block = rule_block("mul")
    assert block.startswith("# minijax/primitives/elementwise.py\nmul_p = Primitive(")
    assert "def mul(x, y)" in block and "defbilinear(mul_p" in block and "div_p" not in block
    assert rule_block(mul_p) == block and "```python" in block._repr_markdown_()
    with pytest.raises(LookupError, match="nonsense"):
        rule_block("nonsense")


def test_column_has_one_rule_a_primitive():
    column = rule_column("jvp", "add", "mul", "sin", "split")
    assert re.findall(r"\w+_p\b", column)[:3] == ["add_p", "mul_p", "sin_p"]
    assert "split_p.def_jvp" in column and "unbroadcast" not in column
    assert "defbilinear(mul_p" in rule_column("transpose", "mul")
    assert "minijax.primitives.elementwise" in modules_of_primitives()
    with pytest.raises(ValueError, match="no rule kind"):
        rule_column("vmap")


def test_every_rule_of_the_package_has_a_source():
    for kind in ("jvp", "transpose", "batch", "abstract_eval", "impl"):
        for primitive in primitives.values():
            if kind in primitive.rules:
                assert rule_column(kind, primitive), f"no source of the {kind} rule of {primitive}"


# --- Drawings -------------------------------------------------------------------------------------

def program():
    scalar = ShapedArray((), np.dtype("float32"))
    two = np.float32(2)
    return trace_to_closed_jaxpr(lambda x, y: [mul(sin(x), exp(mul(x, two))), y], [scalar] * 2)


PICTURES = {
    "jaxpr": lambda: draw_jaxpr(
        program(), lambda eqn: "<known>" if eqn.primitive is sin_p else "unknown"),
    "empty jaxpr": lambda: draw_jaxpr(trace_to_closed_jaxpr(lambda: [], [])),
    "tower": lambda: draw_trace_tower("EvalTrace", ("JVPTrace", "(x, ẋ)")),
    "boxes": lambda: draw_boxes(np.eye(2), np.arange(3), labels=["I", "v"], lit=[np.eye(2) > 0]),
    "bars": lambda: bars({"NumPy": 2400.0, "minijax": 480}, "µs", "a < b", lit="minijax"),
    "matrix": lambda: rule_matrix(["sin"]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_small_accessible_and_follows_the_page(name):
    drawing = PICTURES[name]()
    svg = drawing._repr_svg_()
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img" and root.get("aria-label") == drawing.alt == root[0].text
    assert root.get("fill") == "currentColor" and len(svg) < 20_000
    assert not re.search(r"(black|white|#000|#fff)\b", svg)
    assert svg == PICTURES[name]()._repr_svg_()


def test_graph_has_a_box_an_equation_below_what_it_reads():
    root = ElementTree.fromstring(draw_jaxpr(program())._repr_svg_())
    texts = {t.text: float(t.get("y")) for t in root.iterfind(".//{*}text")}
    assert texts["sin"] == texts["mul 2"] < texts["exp"] < texts["mul"] < texts["result"]
    assert len(list(root.iterfind(".//{*}rect"))) == 4


def test_boxes_of_a_layer_do_not_overlap():
    scalar = ShapedArray((), np.dtype("float32"))
    wide = trace_to_closed_jaxpr(lambda x: [sin(mul(x, np.float32(i))) for i in range(9)], [scalar])
    rows = {}
    for box in ElementTree.fromstring(draw_jaxpr(wide)._repr_svg_()).iterfind(".//{*}rect"):
        rows.setdefault(box.get("y"), []).append((float(box.get("x")), float(box.get("width"))))
    assert len(rows) == 2
    for row in map(sorted, rows.values()):
        assert len(row) == 9 and all(x + w < right for (x, w), (right, _) in zip(row, row[1:]))


def test_tower_of_a_tracer():
    trace = JVPTrace(JVPTrace(eval_trace))
    drawing = draw_trace_tower(trace.from_pair(1.0, 1.0))
    assert drawing.alt == "Traces from bottom to top: EvalTrace, JVPTrace, JVPTrace."
