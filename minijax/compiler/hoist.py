# Exported from notebooks/ref_bodies.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_bodies. In JAX: XLA's WhileLoopInvariantCodeMotion.

A pass from one jaxpr to the next: what a loop's body computes of constants alone is the same in
every turn. It is moved in front of the loop, which gets the results as further constants.
"""

from minijax.compiler.passes import with_inner
from minijax.compiler.simplify import REARRANGING
from minijax.jaxpr import ClosedJaxpr, Var, dce_jaxpr, variables_read

__all__ = [
    "hoist_invariants", "from_scan", "from_while", "MOVED_FROM_LOOPS", "STAYING", "SMALL_RESULT",
    "without_invariants", "may_move", "moved_copies",
]


# --- The pass -------------------------------------------------------------------------------------

def hoist_invariants(closed):
    """Compute what is the same in every turn of a loop before it, from inner loops outwards."""
    eqns = []
    for eqn in closed.jaxpr.eqns:
        eqn = with_inner(hoist_invariants, eqn)
        move = MOVED_FROM_LOOPS.get(eqn.primitive.name)
        before, eqn = move(eqn) if move else ([], eqn)
        eqns += [*before, eqn]
    if all(new is old for new, old in zip(eqns, closed.jaxpr.eqns)):
        return closed
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)


def from_scan(eqn):
    """(equations, the scan without them). One without turns is left alone."""
    n = eqn.params["num_consts"]
    if eqn.params["length"] < 2:
        return [], eqn
    before, results, jaxpr = without_invariants(eqn.params["jaxpr"], eqn.invars[:n])
    params = eqn.params | {"jaxpr": jaxpr, "num_consts": n + len(results)}
    invars = [*eqn.invars[:n], *results, *eqn.invars[n:]]
    return before, eqn.replace(invars=invars, params=params) if results else eqn


def from_while(eqn):
    """(equations, the while without them), from its condition and its body.

    If the body never runs, they are computed for nothing, but that takes no longer than one turn.
    """
    cond_n, body_n = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    cond_consts, body_consts = eqn.invars[:cond_n], eqn.invars[cond_n:cond_n + body_n]
    in_cond, cond_results, cond = without_invariants(eqn.params["cond_jaxpr"], cond_consts)
    in_body, body_results, body = without_invariants(eqn.params["body_jaxpr"], body_consts)
    if not cond_results and not body_results:
        return [], eqn
    params = eqn.params | {"cond_jaxpr": cond, "cond_nconsts": cond_n + len(cond_results),
                           "body_jaxpr": body, "body_nconsts": body_n + len(body_results)}
    invars = [*cond_consts, *cond_results, *body_consts, *body_results,
              *eqn.invars[cond_n + body_n:]]
    return [*in_cond, *in_body], eqn.replace(invars=invars, params=params)


MOVED_FROM_LOOPS = {"scan": from_scan, "while": from_while}


# --- What is moved --------------------------------------------------------------------------------

# Equations that a loop which reads their results does as quickly itself, without memory for them.
STAYING = REARRANGING | {"iota", "convert_element_type"}

# Results of so many elements are moved, larger ones only if a constant behind them is as large.
SMALL_RESULT = 4096


def without_invariants(closed, consts):
    """(equations of `consts` alone, the variables of their results, the program without them).

    The program takes the results as constants behind those that it had.
    """
    jaxpr, n = closed.jaxpr, len(consts)
    behind = {v: v.aval.size for v in jaxpr.invars[:n]}     # variable -> its largest constant
    invariant = []
    for eqn in jaxpr.eqns:
        inputs = [v for v in eqn.invars if isinstance(v, Var)]
        if all(v in behind for v in inputs) and may_move(eqn):
            largest = max([behind[v] for v in inputs], default=0)
            if all(v.aval.size <= max(largest, SMALL_RESULT) for v in eqn.outvars):
                invariant.append(eqn)
                behind.update(dict.fromkeys(eqn.outvars, largest))
    moved = {v: e for e in invariant if e.primitive.name not in STAYING for v in e.outvars}
    staying = [e for e in jaxpr.eqns if moved.keys().isdisjoint(e.outvars)]
    inner = dce_jaxpr(jaxpr.replace(eqns=staying))
    read = variables_read(inner)
    results = [v for v in moved if v in read]
    inner = inner.replace(invars=[*jaxpr.invars[:n], *results, *jaxpr.invars[n:]])
    env = dict(zip(jaxpr.invars[:n], consts))
    outside = dce_jaxpr(jaxpr.replace(eqns=invariant, outvars=results)).eqns
    outside = moved_copies(outside, env)
    return outside, [env[v] for v in results], ClosedJaxpr(inner, closed.consts)


def may_move(eqn):
    """Whether an equation only computes, and surely ends."""
    return not (eqn.effects or eqn.primitive.higher_order
                or eqn.primitive.name == "optimization_barrier")


def moved_copies(eqns, env):
    """The equations with new variables for their results, and operands from outside of the loop."""
    copies = []
    for eqn in eqns:
        invars = [env[v] if isinstance(v, Var) else v for v in eqn.invars]
        outvars = [Var(v.aval) for v in eqn.outvars]
        env.update(zip(eqn.outvars, outvars))
        copies.append(eqn.replace(invars=invars, outvars=outvars))
    return copies
