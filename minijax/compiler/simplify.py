# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: XLA's constant folding and AlgebraicSimplifier.

Passes from one jaxpr to the next that leave out work whose result is known. Only exact ones: every
result keeps its bits, also for -0.0, infinities and NaN.
"""

import numpy as np

from minijax.compiler.passes import also_inside
from minijax.core import primitives
from minijax.jaxpr import ClosedJaxpr, Literal, Var

__all__ = [
    "ELEMENTWISE", "REARRANGING", "Facts", "rewrite", "fold_constants", "folded", "filled",
    "exact_identities", "simpler", "is_real", "same_type", "is_number", "times_one", "plus_nothing",
    "minus_nothing", "divided_by_power_of_two", "undone", "converted_to_itself", "transposed_twice",
    "reshaped_twice", "chosen_from_equals", "first_power", "IDENTITIES",
]


# --- What need not be computed at all -------------------------------------------------------------

# Operations that do the same with every element, so that one number can stand for an array of them.
ELEMENTWISE = frozenset(
    "add sub mul div neg abs sign max min pow integer_pow exp exp2 log log1p expm1 sqrt rsqrt cbrt "
    "sin cos tan tanh logistic floor ceil eq ne lt le gt ge and or not xor select_n clamp "
    "convert_element_type is_finite square add_any".split())

# Operations that only rearrange or repeat elements.
REARRANGING = frozenset("broadcast_in_dim reshape transpose squeeze slice rev copy".split())


class Facts:
    """What a pass knows of the variables so far: who made them, and which number fills them."""

    def __init__(self):
        self.makers, self.numbers = {}, {}

    def number(self, atom):
        """The NumPy scalar that every element of an atom is; None if that is not known."""
        if isinstance(atom, Literal):
            return np.asarray(atom.val).astype(atom.aval.dtype)[()]
        return self.numbers.get(atom)

    def maker(self, atom):
        """The equation whose only result an atom is, or None."""
        return self.makers.get(atom) if isinstance(atom, Var) else None

    def note(self, eqn):
        if len(eqn.outvars) == 1:
            self.makers[eqn.outvars[0]] = eqn
            number = self.number(eqn.invars[0]) if eqn.invars else None
            if eqn.primitive.name in REARRANGING and number is not None:
                self.numbers[eqn.outvars[0]] = number


def rewrite(closed, rule):
    """The program with rule(eqn, facts) for each equation.

    That is an atom in place of its result, another equation, or None to leave it.
    """
    env, facts, eqns = {}, Facts(), []
    for eqn in closed.jaxpr.eqns:
        eqn = eqn.replace(invars=[env.get(v, v) if isinstance(v, Var) else v for v in eqn.invars])
        new = None if eqn.effects or len(eqn.outvars) != 1 else rule(eqn, facts)
        if isinstance(new, (Var, Literal)):
            env[eqn.outvars[0]] = new
            continue
        eqns.append(new or eqn)
        facts.note(eqns[-1])
    outvars = [env.get(v, v) if isinstance(v, Var) else v for v in closed.jaxpr.outvars]
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns, outvars=outvars), closed.consts)


@also_inside
def fold_constants(closed):
    """Compute what depends on literals alone; of an array, the number that fills it."""
    return rewrite(closed, folded)


def folded(eqn, facts):
    values = [facts.number(a) for a in eqn.invars]
    if not values or any(v is None for v in values):
        return None
    name, aval = eqn.primitive.name, eqn.outvars[0].aval
    if name in REARRANGING:
        value = values[0]
    elif name in ELEMENTWISE:
        with np.errstate(all="ignore"):
            value = eqn.primitive.rules["impl"](*map(np.asarray, values), **eqn.params)
    else:
        return None
    return filled(value, aval, eqn)


def filled(value, aval, eqn):
    """A literal, or the equation that makes an array of it."""
    literal = Literal(np.asarray(value).astype(aval.dtype)[()], aval.update(shape=()))
    if not aval.shape:
        return literal
    params = {"shape": aval.shape, "broadcast_dimensions": ()}
    return eqn.replace(primitive=primitives["broadcast_in_dim"], invars=[literal], params=params)


@also_inside
def exact_identities(closed):
    """Leave out operations that change nothing, and undo those that undo each other."""
    return rewrite(closed, simpler)


def simpler(eqn, facts):
    identity, out = IDENTITIES.get(eqn.primitive.name), eqn.outvars[0]
    if identity is None or not is_real(out.aval.dtype):
        return None
    new = identity(eqn, facts)
    is_other = isinstance(new, (Var, Literal)) and not same_type(new, out)
    return None if is_other else new


def is_real(dtype):
    # a complex number times one is not always itself: infinity has two parts
    return np.dtype(dtype).kind in "biuf"


def same_type(x, y):
    return (x.aval.shape, x.aval.dtype) == (y.aval.shape, y.aval.dtype)


def is_number(value, wanted):
    """Whether a number is known, and just this one: 0.0 and -0.0 are different."""
    if value is None or value.dtype.kind == "b":
        return False
    return value == wanted and bool(np.signbit(value)) == bool(np.signbit(wanted))


def times_one(eqn, facts):
    x, y = eqn.invars
    return x if is_number(facts.number(y), 1) else y if is_number(facts.number(x), 1) else None


def plus_nothing(eqn, facts):
    # x + 0.0 turns -0.0 into 0.0, x + -0.0 does not
    nothing = 0 if eqn.outvars[0].aval.dtype.kind in "iu" else -0.0
    x, y = eqn.invars
    if is_number(facts.number(y), nothing):
        return x
    return y if is_number(facts.number(x), nothing) else None


def minus_nothing(eqn, facts):
    x, y = eqn.invars
    return x if is_number(facts.number(y), 0) else None


def divided_by_power_of_two(eqn, facts):
    """A product, which is much faster, and exact: only the exponent changes."""
    x, y = eqn.invars
    value = facts.number(y)
    if is_number(value, 1):
        return x
    if (value is None or value.dtype.kind != "f" or not np.isfinite(value) or value == 0
            or x.aval.shape != eqn.outvars[0].aval.shape):
        return None
    mantissa, exponent = np.frexp(value)
    if abs(mantissa) != 0.5 or abs(exponent) > 64:
        return None
    inverse = Literal(value.dtype.type(1) / value, y.aval.update(shape=()))
    if not np.isfinite(inverse.val):
        return None
    return eqn.replace(primitive=primitives["mul"], invars=[x, inverse])


def undone(eqn, facts):
    """-(-x), not not x, and reversing twice."""
    x, = eqn.invars
    inner = facts.maker(x)
    same = inner and inner.primitive is eqn.primitive and inner.params == eqn.params
    return inner.invars[0] if same else None


def converted_to_itself(eqn, facts):
    return eqn.invars[0]                # taken only if dtype and shape stay the same


def transposed_twice(eqn, facts):
    x, permutation = eqn.invars[0], eqn.params["permutation"]
    if list(permutation) == sorted(permutation):
        return x
    inner = facts.maker(x)
    if inner is None or inner.primitive is not eqn.primitive:
        return None
    both = tuple(inner.params["permutation"][p] for p in permutation)
    if list(both) == sorted(both):
        return inner.invars[0]
    return eqn.replace(invars=inner.invars, params={**eqn.params, "permutation": both})


def reshaped_twice(eqn, facts):
    x = eqn.invars[0]
    inner = facts.maker(x)
    if eqn.params["dimensions"] is not None:
        return None
    if same_type(x, eqn.outvars[0]):
        return x
    if (inner is None or inner.primitive is not eqn.primitive
            or inner.params["dimensions"] is not None):
        return None
    source = inner.invars[0]
    return source if same_type(source, eqn.outvars[0]) else eqn.replace(invars=[source])


def chosen_from_equals(eqn, facts):
    which, *cases = eqn.invars
    if all(c is cases[0] for c in cases):
        return cases[0]
    value = facts.number(which)
    return None if value is None else cases[int(value)]


def first_power(eqn, facts):
    return eqn.invars[0] if eqn.params["y"] == 1 else None


# What a rule returns takes the place of the result if it has the same shape and dtype.
IDENTITIES = {
    "mul": times_one, "add": plus_nothing, "add_any": plus_nothing, "sub": minus_nothing,
    "div": divided_by_power_of_two, "neg": undone, "not": undone, "rev": undone,
    "convert_element_type": converted_to_itself, "broadcast_in_dim": converted_to_itself,
    "transpose": transposed_twice, "reshape": reshaped_twice, "select_n": chosen_from_equals,
    "integer_pow": first_power,
}
