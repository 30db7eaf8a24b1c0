# Exported from notebooks/11_jit.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 11_jit. In JAX: XLA's call inliner, DCE and CSE; pe.dce_jaxpr.

The passes from a jaxpr to a loop IR that computes each equation by itself. Each is a function from
one program to the next, and each result can be looked at.
"""

from collections import Counter
from functools import wraps

import numpy as np

from minijax.jaxpr import ClosedJaxpr, Var, dce_jaxpr, open_jaxpr
from minijax.loop_ir import Buffer, LoweringContext, Program

__all__ = [
    "also_inside", "with_inner", "CALLS", "inline_calls", "called_jaxpr", "substitute", "dead_code",
    "common_subexpressions", "equation_key", "atom_key", "transposed_products", "swapped_product",
    "lower",
]


# --- Programs in equations ------------------------------------------------------------------------

def also_inside(step):
    """Decorator of a pass over jaxprs: it then goes over the programs that equations contain."""
    @wraps(step)
    def on_all(closed):
        closed = step(closed)
        eqns = [with_inner(on_all, eqn) for eqn in closed.jaxpr.eqns]
        if all(new is old for new, old in zip(eqns, closed.jaxpr.eqns)):
            return closed
        return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)
    return on_all


def with_inner(step, eqn):
    """The equation with step(program) in place of each program among its parameters."""
    def inside(value):
        if isinstance(value, tuple) and any(isinstance(v, ClosedJaxpr) for v in value):
            return tuple(map(inside, value))
        return step(value) if isinstance(value, ClosedJaxpr) else value

    if not eqn.primitive.higher_order:
        return eqn
    return eqn.replace(params={key: inside(value) for key, value in eqn.params.items()})


# --- Inlining calls -------------------------------------------------------------------------------

# Primitives that only run a program, and the parameter that holds it, or a function of parameters.
CALLS = {"jit": "jaxpr", "closed_call": "call_jaxpr",
         "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
         "custom_vmap_call": "call", "custom_linear_solve": "solve",
         "linear_call": "callee"}


@also_inside
def inline_calls(closed):
    """Replace each equation that calls a program by the equations of that program."""
    jaxpr = closed.jaxpr
    if not any(called_jaxpr(eqn) for eqn in jaxpr.eqns):
        return closed
    out = _Inliner(closed)
    env = {v: v for v in [*jaxpr.constvars, *jaxpr.invars]}
    out.run(jaxpr, env, keep_names=True)
    outvars = [substitute(env, v) for v in jaxpr.outvars]
    return ClosedJaxpr(jaxpr.replace(constvars=out.constvars, eqns=out.eqns, outvars=outvars),
                       out.consts)


def called_jaxpr(eqn):
    """The program that an equation calls once, with its own operands; None for other equations."""
    found = CALLS.get(eqn.primitive.name)
    return found(eqn.params) if callable(found) else eqn.params.get(found)


class _Inliner:
    def __init__(self, closed):
        self.constvars, self.consts = list(closed.jaxpr.constvars), list(closed.consts)
        self.eqns = []

    def run(self, jaxpr, env, keep_names):
        # A program that is called twice binds its variables twice, so each call gets new ones.
        for eqn in jaxpr.eqns:
            invars = [substitute(env, v) for v in eqn.invars]
            inner = called_jaxpr(eqn)
            if inner is not None:
                env.update(zip(eqn.outvars, self.call(inner, invars)))
                continue
            outvars = eqn.outvars if keep_names else [Var(v.aval) for v in eqn.outvars]
            env.update(zip(eqn.outvars, outvars))
            self.eqns.append(eqn.replace(invars=invars, outvars=outvars))

    def call(self, inner, operands):
        jaxpr = open_jaxpr(inner)
        constvars = [Var(v.aval) for v in jaxpr.constvars]
        self.constvars += constvars
        self.consts += inner.consts if isinstance(inner, ClosedJaxpr) else []
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constvars, *operands]))
        self.run(jaxpr, env, keep_names=False)
        return [substitute(env, v) for v in jaxpr.outvars]


def substitute(env, atom):
    return env[atom] if isinstance(atom, Var) else atom


# --- Dead code ------------------------------------------------------------------------------------

@also_inside
def dead_code(closed):
    """Drop equations whose results nobody reads, unless they have effects."""
    return ClosedJaxpr(dce_jaxpr(closed.jaxpr), closed.consts)


# --- Common subexpressions ------------------------------------------------------------------------

@also_inside
def common_subexpressions(closed):
    """Compute equal equations once: same primitive, operands and parameters, and no effects."""
    jaxpr = closed.jaxpr
    env, seen, eqns = {}, {}, []
    for eqn in jaxpr.eqns:
        invars = [env.get(v, v) if isinstance(v, Var) else v for v in eqn.invars]
        key = equation_key(eqn, invars)
        if key is not None and key in seen:
            env.update(zip(eqn.outvars, seen[key]))
            continue
        seen[key] = eqn.outvars
        eqns.append(eqn.replace(invars=invars))
    outvars = [env.get(v, v) if isinstance(v, Var) else v for v in jaxpr.outvars]
    return ClosedJaxpr(jaxpr.replace(eqns=eqns, outvars=outvars), closed.consts)


def equation_key(eqn, invars):
    """What makes two equations equal, or None if no other can replace this one."""
    if eqn.effects or eqn.primitive.name == "optimization_barrier":
        return None
    params = tuple(sorted(eqn.params.items(), key=lambda item: item[0]))
    # x y and y x are one: were they two, x y - y x might be the rounding error of one of them
    operands = (frozenset if eqn.primitive.name in ("add", "mul") else tuple)(map(atom_key, invars))
    key = (eqn.primitive, operands, params,
           tuple(v.aval for v in eqn.outvars))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def atom_key(atom):
    if isinstance(atom, Var):
        return atom
    # by bytes: 0.0 == -0.0, and NaN differs from itself
    return atom.aval, np.asarray(atom.val).tobytes()


# --- Transposes of products -----------------------------------------------------------------------

@also_inside
def transposed_products(closed):
    """Compute the transpose of a product as the product of its operands in the other order."""
    jaxpr = closed.jaxpr
    reads = Counter(v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, Var))
    reads.update(v for v in jaxpr.outvars if isinstance(v, Var))
    products, eqns = {}, []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general" and reads[eqn.outvars[0]] == 1:
            products[eqn.outvars[0]] = eqn
        product = products.get(eqn.invars[0]) if eqn.primitive.name == "transpose" else None
        swapped = product and swapped_product(product, eqn)
        if swapped:
            eqns = [e for e in eqns if e is not product]
        eqns.append(swapped or eqn)
    return ClosedJaxpr(jaxpr.replace(eqns=eqns), closed.consts)


def swapped_product(product, transpose):
    """The product with its operands swapped, if that is all that the transpose does; else None."""
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = product.params["dimension_numbers"]
    lhs, rhs = product.invars
    batch, rows = len(lhs_batch), lhs.aval.ndim - len(lhs_batch) - len(lhs_sum)
    places = range(product.outvars[0].aval.ndim)
    if tuple(transpose.params["permutation"]) != (
            *places[:batch], *places[batch + rows:], *places[batch:batch + rows]):
        return None
    numbers = (rhs_sum, lhs_sum), (rhs_batch, lhs_batch)
    precision = product.params["precision"]
    swapped = precision[::-1] if isinstance(precision, tuple) else precision
    return product.replace(invars=[rhs, lhs], outvars=transpose.outvars, params=product.params | {
        "dimension_numbers": numbers, "precision": swapped})


# --- Lowering -------------------------------------------------------------------------------------

def lower(closed):
    """Loop IR for each equation by itself: every result goes to a buffer of its own."""
    jaxpr, ctx = closed.jaxpr, LoweringContext()
    inputs = [Buffer(v.aval.shape, v.aval.dtype, v) for v in [*jaxpr.constvars, *jaxpr.invars]]
    outputs = [ctx.as_buffer(value) for value in ctx.lower(jaxpr, inputs)]
    return Program(inputs, ctx.steps, outputs, ctx.eqns)
