# Exported from notebooks/15_custom_rules.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: solutions of equations. Home: 15_custom_rules. In JAX: lax/control_flow/solves.py.

A solution is differentiated by the equation that it solves, whatever the solver did to find it.
"""

from minijax.api import linear_transpose, linearize
from minijax.avals import typeof
from minijax.flatten import FlatFunction, fun_name
from minijax.higher_order.custom_jvp import custom_jvp_call_p
from minijax.higher_order.linear_solve import linear_solve_p
from minijax.higher_order.programs import as_flat, closed_program, split_list
from minijax.interpreters.jvp import jvp_instantiated
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.jaxpr import eval_jaxpr
from minijax.primitives.elementwise import neg
from minijax.rules import Zero
from minijax.tree_util import tree_flatten, tree_structure, tree_unflatten

__all__ = [
    "TracedStep", "check_like", "checked_step", "custom_root", "call_root", "custom_linear_solve",
    "with_shared_constants",
]


# --- Solutions as users call them -----------------------------------------------------------------

class TracedStep:
    """A function of trees like `example`, traced: program, constants, and tree of the output."""

    def __init__(self, name, fun, example, n_args=1):
        leaves, in_tree = tree_flatten((example,) * n_args)
        flat = FlatFunction(fun, in_tree)
        self.jaxpr, self.consts = closed_program(flat, [typeof(x) for x in leaves], name)
        self.out_tree = flat.out_tree


def check_like(name, step, example_name, example, has_aux=False):
    """Raise unless the output (its first part with has_aux) is a tree like the example's."""
    tree, wanted = step.out_tree, tree_structure(example)
    if has_aux:
        pair = tree_unflatten(tree, [0] * tree.num_leaves)
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ValueError(f"{name}() should return a pair (solution, aux), because has_aux is "
                             f"True; it returned {tree}")
        tree = tree_structure(pair[0])
    if tree != wanted:
        raise TypeError(f"{name}() output pytree structure must match {example_name}, got {tree} "
                        f"and {wanted}")


def checked_step(name, fun, b, has_aux):
    """A step of a linear solve, whose output must be like b."""
    step = TracedStep(name, fun, b)
    check_like(name, step, "b", b, has_aux)
    wanted = [typeof(x).shape for x in tree_flatten(b)[0]]
    got = [a.shape for a in step.jaxpr.out_avals][:len(wanted)]
    if got != wanted:
        raise ValueError(f"{name}() output shapes must match b, got {got} and {wanted}")
    return step


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """solve(f, initial_guess), a root x of f, with derivatives by the implicit function theorem.

    They are with respect to what f closes over. `tangent_solve(g, y)` returns the x with g(x) = y
    of a linear function g. With has_aux, `solve` returns (x, aux). All have trees like the guess,
    else TypeError.
    """
    system = TracedStep(fun_name(f), f, initial_guess)
    check_like("f", system, "initial_guess", initial_guess)
    solver = TracedStep("solve", lambda x: solve(f, x), initial_guess)
    check_like("solve", solver, "initial_guess", initial_guess, has_aux)
    inverse = TracedStep("tangent_solve", lambda x, y: tangent_solve(linearize(f, x)[1], y),
                         initial_guess, 2)
    check_like("tangent_solve", inverse, "x", initial_guess)
    steps, guess = (system, solver, inverse), tree_flatten(initial_guess)[0]
    consts = [c for step in steps for c in step.consts]
    outs = call_root([step.jaxpr for step in steps], [len(step.consts) for step in steps],
                     *consts, *guess)
    return tree_unflatten(solver.out_tree, outs)


def call_root(programs, sizes, *operands):
    """The root as a call with a rule, which holds no values of this trace: it outlives it."""
    system, solver, inverse = map(as_flat, programs)

    def solution(*args):
        _, solver_consts, _, guess = split_list(args, sizes)
        return solver(*solver_consts, *guess)

    # f(p, x(p)) = 0   gives   ∂f/∂x dx = -∂f/∂p dp
    def jvp(primals, tangents):
        outs = call_root(programs, sizes, *primals)     # a call again, for its derivatives
        params, _, inverse_consts, guess = split_list(primals, sizes)
        x, aux = split_list(outs, [len(guess)])
        _, moved = jvp_instantiated(lambda *p: system(*p, *x), params, tangents[:sizes[0]])
        x_dot = inverse(*inverse_consts, *x, *moved)
        return outs, [*map(neg, x_dot), *map(Zero.like, aux)]

    solution.__name__ = jvp.__name__ = "custom_root"
    return custom_jvp_call_p.bind(*operands, call_jaxpr=solution, jvp=jvp, num_consts=0,
                                  symbolic_zeros=False)


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """solve(matvec, b), an x with matvec(x) = b, with the derivatives that this equation gives.

    `transpose_solve(vecmat, b)` solves with the transposed matrix; reverse mode needs it, or
    `symmetric=True`, for which `solve` serves both. With has_aux, solvers return (x, aux). Raises
    TypeError for trees and ValueError for shapes that differ from b's.
    """
    if symmetric and transpose_solve is None:
        transpose_solve = solve
    steps = {"matvec": checked_step("matvec", matvec, b, False),
             "solve": checked_step("solve", lambda b: solve(matvec, b), b, has_aux)}
    if transpose_solve is not None:
        vecmat = matvec if symmetric else lambda x: linear_transpose(matvec, b)(x)[0]
        steps["vecmat"] = checked_step("vecmat", vecmat, b, False)
        steps["transpose_solve"] = checked_step(
            "transpose_solve", lambda b: transpose_solve(vecmat, b), b, has_aux)
    consts, programs = with_shared_constants(steps, b)
    outs = linear_solve_p.bind(*consts, *tree_flatten(b)[0], num_consts=len(consts),
                               **{"vecmat": None, "transpose_solve": None, **programs})
    return tree_unflatten(steps["solve"].out_tree, outs)


def with_shared_constants(steps, b):
    """The constants of all steps, and their programs, each with all of them as first arguments."""
    consts = [c for step in steps.values() for c in step.consts]
    avals = [*map(typeof, consts), *map(typeof, tree_flatten(b)[0])]
    programs, first = {}, 0
    for name, step in steps.items():
        own = slice(first, first + len(step.consts))
        programs[name] = trace_to_closed_jaxpr(
            lambda *args: eval_jaxpr(step.jaxpr, [], *args[own], *args[len(consts):]), avals, name)
        first = own.stop
    return consts, programs
