"""Layer: transposition. Home: 07_grad. In JAX: jax/_src/interpreters/ad.py (backward_pass).

A linear program runs backwards: read the equations from the last to the first, and apply each
primitive's transpose rule to the cotangents of its results. A variable used twice gets the sum.
"""
from minijax.avals import typeof
from minijax.core import rule_for
from minijax.jaxpr import Literal
from minijax.rules import UndefinedPrimal, Zero, add_tangents, is_undefined_primal, is_zero

# --- Running backwards -------------------------------------------------------------------------
# backward_pass : (Jaxpr : [a] -o [b]) -> consts -> [a or undefined] -> [CT b] -> [CT a]

def backward_pass(jaxpr, consts, args, cotangents):
    """Cotangents of the inputs marked as UndefinedPrimal, None for the others.

    Equations that depend on no undefined input are run forwards first.
    """
    values = dict(zip(jaxpr.constvars, consts))
    values.update((v, x) for v, x in zip(jaxpr.invars, args) if not is_undefined_primal(x))
    linear_eqns = run_nonlinear(jaxpr, values)
    sums = CotangentSums(values)
    for atom, ct in zip(jaxpr.outvars, cotangents):
        sums.add(atom, ct)
    for eqn in reversed(linear_eqns):
        transpose_eqn(eqn, values, sums)
    return [sums.of(v) if is_undefined_primal(x) else None for v, x in zip(jaxpr.invars, args)]


def run_nonlinear(jaxpr, values):
    """Evaluate into `values` what no undefined input reaches; return the other equations."""
    linear = []
    for eqn in jaxpr.eqns:
        if all(type(a) is Literal or a in values for a in eqn.invars):
            outs = eqn.primitive.bind(*[read(values, a) for a in eqn.invars], **eqn.params)
            values.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))
        else:
            linear.append(eqn)
    return linear


def read(values, atom):
    if type(atom) is Literal:
        return atom.val
    return values[atom] if atom in values else UndefinedPrimal(atom.aval)


def transpose_eqn(eqn, values, sums):
    cts = [sums.take(v) for v in eqn.outvars]
    if all(is_zero(ct) for ct in cts):
        return
    operands = [read(values, a) for a in eqn.invars]
    ct = cts if eqn.primitive.multiple_results else cts[0]
    for atom, operand_ct in zip(eqn.invars, rule_for(eqn.primitive, "transpose")(
            ct, *operands, **eqn.params)):
        if operand_ct is not None:
            sums.add(atom, operand_ct)


class CotangentSums:
    """What has reached each linear variable so far: a fan-out forwards is a sum backwards."""

    def __init__(self, known):
        self.known, self.sums = known, {}

    def add(self, atom, ct):
        if type(atom) is Literal or atom in self.known or is_zero(ct):
            return
        assert typeof(ct).shape == atom.aval.shape, (
            f"a cotangent of shape {typeof(ct).shape} for a value of type {atom.aval}")
        self.sums[atom] = add_tangents(self.sums[atom], ct) if atom in self.sums else ct

    def take(self, var):
        return self.sums.pop(var) if var in self.sums else Zero(var.aval)

    def of(self, var):
        return self.sums.get(var, Zero(var.aval))
