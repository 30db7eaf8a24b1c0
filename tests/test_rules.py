"""Every primitive × every kind of rule: none is missing without a reason, and all are right."""
import importlib
import re

import pytest
from samples import samples as first_order_samples
from samples_effects import effect_samples
from samples_higher_order import higher_order_samples

from minijax.book.blocks import modules_of_primitives, rule_block
from minijax.checkers import NotDifferentiable, check_rule, checkers
from minijax.core import RULE_KINDS, Primitive, primitives

for name in modules_of_primitives():
    importlib.import_module(name)

# Rules that follow a convention of JAX's rather than the mathematics: test_vs_jax is their judge.
CONVENTIONS = {
    ("reduce_precision", "jvp"): "rounding counts as the identity",
    ("reduce_precision", "transpose"): "rounding counts as the identity",
    ("bitcast_convert_type", "jvp"): "a change of bits has no derivative",
    ("bitcast_convert_type", "jet"): "a change of bits has no derivative",
    ("reduce_precision", "jet"): "rounding counts as the identity",
    ("stop_gradient", "jvp"): "a constant on request",
    ("stop_gradient", "transpose"): "a constant on request",
    ("custom_vjp_call", "jvp"): "its tangent can only run backwards: see test_custom_rules",
    ("custom_vjp_call", "jet"): "expanded as the function it is, and jvp can't: see test_taylor",
    ("custom_lin", "abstract_eval"): "only its transpose can be run",
    ("custom_lin", "transpose"): "only its transpose can be run",
    ("debug_callback", "jvp"): "it has no results to have tangents: see test_effects",
    ("debug_print", "jvp"): "it has no results to have tangents: see test_effects",
    ("pure_callback", "jvp"): "a ValueError, as in JAX: see test_effects",
    ("pure_callback", "jet"): "a ValueError: see test_effects",
    ("io_callback", "jet"): "a ValueError: see test_effects",
    ("io_callback", "jvp"): "a ValueError, as in JAX: see test_effects",
}

samples = first_order_samples | higher_order_samples | effect_samples
PACKAGE = list(primitives.values())


def expected_kinds(primitive):
    """partial_eval is for primitives that contain programs: others are known or recorded whole.

    A jet rule is a shorter way than the jvp rule, for those who have one: see test_taylor.
    """
    return [k for k in RULE_KINDS if k != "jet" and (k != "partial_eval" or primitive.higher_order)]


cells = [(p, kind) for p in PACKAGE for kind in expected_kinds(p)]
filled = [(p, kind) for p, kind in cells if kind in p.rules]
every_primitive = pytest.mark.parametrize("primitive", PACKAGE, ids=str)


@every_primitive
def test_has_samples(primitive):
    assert samples.get(primitive.name), f"tests/samples.py has no sample of '{primitive}'"


@every_primitive
def test_has_every_rule_or_a_reason(primitive):
    missing = [k for k in expected_kinds(primitive)
               if k not in primitive.rules and not primitive.impossible.get(k)]
    assert not missing, f"'{primitive}' lacks {', '.join(missing)}, and no def_impossible says why"


@every_primitive
def test_no_rule_is_both_there_and_impossible(primitive):
    assert not primitive.rules.keys() & primitive.impossible.keys()


has_series = [(p, "jet") for p in PACKAGE if {"jet", "jvp"} & p.rules.keys()]


@pytest.mark.parametrize("primitive, kind", filled + has_series, ids=lambda x: str(x))
def test_rule(primitive, kind):
    if (primitive.name, kind) in CONVENTIONS:
        pytest.skip(CONVENTIONS[primitive.name, kind])
    told = [check_sample(primitive, kind, *sample, **options_of(primitive, kind, i))
            for i, sample in enumerate(samples.get(primitive.name, []))]
    assert any(told) or not told, f"no sample of '{primitive}' tells anything about its {kind} rule"


def options_of(primitive, kind, i):
    """Options of the checker, for sample i."""
    if primitive.name == "polygamma" and kind in ("jvp", "jet"):
        return dict(along=[1])                    # by its order it has no derivative, as in JAX
    # Machine code takes a while to make: of most samples only the generated source is run.
    return dict(compiled=i < 2) if kind == "lowering" else {}


def check_sample(primitive, kind, args, params, **options):
    """Check one sample; return whether that told anything: a rule may refuse some, as JAX's do."""
    try:
        check_rule(primitive, kind, args, params, **options)
    except (NotDifferentiable, NotImplementedError) as error:
        if re.match(r"no \w+ rule for primitive", str(error)):
            raise
        return False
    return True


def test_samples_are_of_primitives():
    assert samples.keys() <= {p.name for p in PACKAGE}


@every_primitive
def test_is_a_block_of_the_package(primitive):
    assert f'("{primitive.name}"' in rule_block(primitive)


def test_every_kind_has_a_checker():
    assert checkers.keys() == set(RULE_KINDS)


def test_a_hole_is_found():
    hollow = Primitive("hollow_for_a_test")
    try:
        with pytest.raises(AssertionError, match="lacks impl, .*batch"):
            test_has_every_rule_or_a_reason(hollow)
        with pytest.raises(AssertionError, match="no sample"):
            test_has_samples(hollow)
    finally:
        del primitives["hollow_for_a_test"]
