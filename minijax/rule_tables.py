# Exported from notebooks/ref_extend.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: rules as tables. Home: ref_extend. In JAX: the dicts of jax/_src/interpreters/*.py.

JAX keeps the rules of a kind in a dict from primitives to functions. Here a primitive has its
rules; a table is a view of one kind, and writing into it gives the primitive a rule.
"""

from collections.abc import MutableMapping

from minijax.avals import typeof
from minijax.core import bump_rules_epoch, primitives
from minijax.rules import AxisData, not_mapped

__all__ = [
    "RuleTable", "with_axis", "without_axis", "primitive_jvps", "primitive_transposes",
    "primitive_batchers", "fancy_primitive_batchers",
]


# --- Rules as tables ------------------------------------------------------------------------------

class RuleTable(MutableMapping):
    """The rules of one kind: primitive -> rule. Setting one is `primitive.def_rule(kind, rule)`.

    `to_ours` and `to_jax` translate a rule between JAX's arguments and ours.
    """

    def __init__(self, kind, to_ours=lambda rule: rule, to_jax=lambda rule: rule):
        self.kind, self.to_ours, self.to_jax = kind, to_ours, to_jax

    def __getitem__(self, primitive):
        if self.kind not in primitive.rules:
            raise KeyError(primitive)
        return self.to_jax(primitive.rules[self.kind])

    def __setitem__(self, primitive, rule):
        primitive.impossible.pop(self.kind, None)
        primitive.def_rule(self.kind, self.to_ours(rule))

    def __delitem__(self, primitive):
        if self.kind not in primitive.rules:
            raise KeyError(primitive)
        del primitive.rules[self.kind]
        bump_rules_epoch()

    def __iter__(self):
        return (p for p in list(primitives.values()) if self.kind in p.rules)

    def __len__(self):
        return sum(1 for _ in self)

    def __repr__(self):
        return f"RuleTable({self.kind!r}, {len(self)} primitives)"


# JAX's plain batch rules are not told the axis: rule(values, dims, **params).

def with_axis(rule):
    def batch(axis, vals, dims, /, **params):
        return rule(tuple(vals), tuple(dims), **params)
    batch.without_axis = rule
    return batch


def without_axis(rule):
    def batch(vals, dims, /, **params):
        size = next(typeof(x).shape[d] for x, d in zip(vals, dims) if d is not not_mapped)
        return rule(AxisData(size, None, None), list(vals), list(dims), **params)
    return getattr(rule, "without_axis", batch)


primitive_jvps = RuleTable("jvp")
primitive_transposes = RuleTable("transpose")
primitive_batchers = RuleTable("batch", with_axis, without_axis)
fancy_primitive_batchers = RuleTable("batch")
