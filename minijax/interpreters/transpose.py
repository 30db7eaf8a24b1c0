# Exported from notebooks/07_grad.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: transposition. Home: 07_grad. In JAX: jax/_src/interpreters/ad.py (backward_pass).

A linear program runs backwards: read the equations from the last to the first, and apply each
primitive's transpose rule to the cotangents of its results. A variable used twice gets the sum.
"""

from minijax.avals import typeof
from minijax.core import rule_for, swap_source
from minijax.jaxpr import Literal
from minijax.rules import UndefinedPrimal, Zero, add_tangents, is_undefined_primal, is_zero

__all__ = ["CotangentSums", "transpose_eqn", "read", "run_nonlinear", "backward_pass"]


# --- What has arrived so far ----------------------------------------------------------------------

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
        """The sum, which is needed once: a variable is bound by one equation."""
        return self.sums.pop(var) if var in self.sums else Zero(var.aval)

    def of(self, var):
        return self.sums.get(var, Zero(var.aval))


# --- One equation backwards -----------------------------------------------------------------------

def transpose_eqn(eqn, values, sums):
    """Send the cotangents of an equation's results on to its linear operands."""
    cts = [sums.take(v) for v in eqn.outvars]
    if all(is_zero(ct) for ct in cts):
        return
    operands = [read(values, a) for a in eqn.invars]
    rule = rule_for(eqn.primitive, "transpose")
    operand_cts = rule(cts if eqn.primitive.multiple_results else cts[0], *operands, **eqn.params)
    for atom, ct in zip(eqn.invars, operand_cts, strict=True):
        if ct is not None:
            sums.add(atom, ct)


def read(values, atom):
    """The value of a known operand, or an UndefinedPrimal in place of a linear one."""
    if type(atom) is Literal:
        return atom.val
    return values[atom] if atom in values else UndefinedPrimal(atom.aval)


# --- Running backwards ----------------------------------------------------------------------------

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


# backward_pass : (Jaxpr : [a] -o [b]) -> consts -> [a or undefined] -> [CT b] -> [CT a]

def backward_pass(jaxpr, consts, args, cotangents):
    """Cotangents of the inputs marked as UndefinedPrimal, None for the others.

    Equations that depend on no undefined input are run forwards first. A cotangent may be a
    symbolic `Zero`, among the arguments as among the results.
    """
    values = dict(zip(jaxpr.constvars, consts))
    values.update((v, x) for v, x in zip(jaxpr.invars, args) if not is_undefined_primal(x))
    linear_eqns = run_nonlinear(jaxpr, values)
    sums = CotangentSums(values)
    for atom, ct in zip(jaxpr.outvars, cotangents):
        sums.add(atom, ct)
    source = swap_source(None)
    try:
        for eqn in reversed(linear_eqns):
            swap_source(eqn.source_info or source)      # what comes of an equation is from its line
            transpose_eqn(eqn, values, sums)
    finally:
        swap_source(source)
    return [sums.of(v) if is_undefined_primal(x) else None for v, x in zip(jaxpr.invars, args)]
