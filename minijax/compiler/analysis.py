# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: XLA's HloCostAnalysis; CompiledMemoryStats.

What a loop IR costs, counted and not measured: operations, traffic to memory, and memory in use.
"""

from math import prod
from typing import NamedTuple

from minijax.compiler.bodies import is_padding
from minijax.compiler.plan import Plan, bytes_of
from minijax.loop_ir import (
    Axis, Branch, Call, Load, Loop, Nest, Op, Quotient, Reduce, Store, all_nodes, buffer_of,
    programs_in,
)

__all__ = [
    "TRANSCENDENTAL", "cost_analysis", "total", "operations", "operations_of_node",
    "multiplications", "bytes_accessed", "accesses_of", "distinct", "atoms_below",
    "CompiledMemoryStats", "memory_analysis",
]


# --- Counting -------------------------------------------------------------------------------------

TRANSCENDENTAL = frozenset(
    "exp exp2 expm1 log log1p sqrt rsqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh "
    "asinh acosh atanh pow erf erfc lgamma logistic".split())


def cost_analysis(program):
    """Operations and bytes of one run, under the names that JAX gives them.

    The body of a `while` counts once. Library calls count as what they read and write, products of
    matrices also as their multiplications and additions.
    """
    simple, hard = total(operations(s, program.eqns) for s in program.steps)
    traffic = sum(bytes_accessed(s) for s in program.steps)
    return {"flops": float(simple), "transcendentals": float(hard),
            "bytes accessed": float(traffic)}


def total(pairs):
    simple = hard = 0
    for a, b in pairs:
        simple, hard = simple + a, hard + b
    return simple, hard


def operations(step, eqns):
    """(cheap operations, transcendental ones) of a step."""
    if isinstance(step, Nest):
        return total(operations_of_node(n, step.count()) for n in step.body)
    if isinstance(step, Call):
        return multiplications(step, eqns), 0
    costs = [total(operations(s, p.eqns) for s in p.steps) for p in programs_in(step)]
    turns = step.axis.size if isinstance(step, Loop) else 1
    simple, hard = max(costs) if isinstance(step, Branch) else total(costs)
    return turns * simple, turns * hard


def operations_of_node(node, turns):
    if isinstance(node, Reduce):
        turns *= prod(a.size for a in node.axes)
        simple, hard = total(operations_of_node(n, turns) for n in node.body)
        return simple + turns, hard
    if isinstance(node, Store):
        return (turns if node.combine not in (None, "replace") else 0), 0
    if not isinstance(node, Op) or is_padding(node):
        return 0, 0
    return (0, turns) if node.name in TRANSCENDENTAL else (turns, 0)


def multiplications(call, eqns):
    """A product of matrices multiplies and adds once for each element of each row and column."""
    eqn = eqns[call.eqn] if call.eqn is not None else None
    if eqn is None or eqn.primitive.name != "dot_general":
        return 0
    (contracted, _), _ = eqn.params["dimension_numbers"]
    shape = eqn.invars[0].aval.shape
    return 2 * prod(eqn.outvars[0].aval.shape) * prod(shape[k] for k in contracted)


def bytes_accessed(step):
    """Bytes that a step reads from memory and writes to it, each place once.

    What one turn of a loop over rows leaves for itself stays in the cache and does not count.
    """
    if isinstance(step, Call):
        return sum(map(bytes_of, {*map(buffer_of, step.inputs), *step.outputs}))
    places = {}
    for buffer, is_store, index in accesses_of(step):
        places.setdefault((buffer, is_store), {})[index] = distinct(index)
    return sum(min(b.size, sum(found.values())) * b.dtype.itemsize
               for (b, _), found in places.items())


def accesses_of(step):
    """(buffer, whether it is written, index map) for what a step touches of others' memory."""
    if isinstance(step, Nest):
        for node in all_nodes(step.body):
            if isinstance(node, (Load, Store)):
                yield node.buffer, isinstance(node, Store), node.index
                if isinstance(node, Store) and node.combine:
                    yield node.buffer, False, node.index
        return
    for program in programs_in(step):
        seen = {*program.inputs, *program.outputs}
        for inner in program.steps:
            yield from (a for a in accesses_of(inner) if a[0] in seen)


def distinct(index):
    """How many places an index map can lead to, at most."""
    return prod(a.size if isinstance(a, Axis) else a.high - a.low + 1 for a in atoms_below(index))


def atoms_below(index):
    """The loops that an index map depends on, and the indices that are computed."""
    found = set()
    for atom in index.terms:
        found |= atoms_below(atom.index) if isinstance(atom, Quotient) else {atom}
    return found


class CompiledMemoryStats(NamedTuple):
    """Bytes of memory that a call needs. `alias`: of results in donated arguments' memory."""
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int = 0


def memory_analysis(program, consts=0):
    """The memory of a program whose first `consts` inputs are its constants."""
    plan = Plan(program)
    arguments, outputs = dict.fromkeys(program.inputs[consts:]), dict.fromkeys(program.outputs)
    shared = [b for b in outputs if b in arguments]
    others = plan.arrays - {*program.inputs, *outputs}
    return CompiledMemoryStats(
        argument_size_in_bytes=sum(map(bytes_of, arguments)),
        output_size_in_bytes=sum(map(bytes_of, outputs)),
        alias_size_in_bytes=sum(map(bytes_of, shared)),
        temp_size_in_bytes=plan.size + sum(map(bytes_of, others)))
