# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: XLA's HloDCE and WhileLoopSimplifier.

Drops steps whose results nobody reads; of loops and branches also the parts that nobody needs.
"""

from minijax.loop_ir import (
    Branch, Call, Nest, Program, buffers_read, buffers_written, inputs_of, programs_in,
    with_programs,
)

__all__ = [
    "has_effect", "drop_dead", "needed_part", "needed_of_loop", "only", "body_program", "has_calls",
]


# --- What is needed -------------------------------------------------------------------------------

def has_effect(step, program):
    """Whether a step must run though nobody reads its results."""
    is_nest = isinstance(step, Nest)
    return not is_nest and step.eqn is not None and bool(program.eqns[step.eqn].effects)


def drop_dead(program):
    """Drop the steps, and the parts of loops and branches, whose results nobody reads."""
    live, steps = set(program.outputs), []
    for step in reversed(program.steps):
        if has_effect(step, program) or not live.isdisjoint(buffers_written(step)):
            steps.append(needed_part(step, live))
            live.update(buffers_read(steps[-1]))
    return Program(program.inputs, steps[::-1], program.outputs, program.eqns)


def needed_part(step, live):
    """The step without outputs and carries that neither the rest of the program nor it needs."""
    if isinstance(step, (Nest, Call)):
        return step
    if isinstance(step, Branch):
        outputs = [b for b in step.outputs if b in live]
        branches = [only(branch, outputs) for branch in step.branches]
        return Branch(step.index, branches, outputs, step.eqn)
    return needed_of_loop(step, live)


def needed_of_loop(step, live):
    """A carry is needed if its result is read, or it itself by what makes another needed thing."""
    following = {f for _, _, f in step.carries}
    others = [b for b in step.body.outputs if b not in following and b in live]
    kept, needed = None, {now for _, now, _ in step.carries if now in live}
    while kept is None or len(kept) < len(needed):
        kept = [c for c in step.carries if c[1] in needed]
        body = only(step.body, [*(f for _, _, f in kept), *others])
        programs = [*programs_in(step)[:-1], body]
        read = {b for p in programs for b in p.inputs}
        needed = {now for _, now, _ in step.carries if now in needed or now in read}
    made = with_programs(step, programs)
    made.carries = kept
    return made


def only(program, outputs):
    """The program of some of the outputs."""
    return body_program(drop_dead(Program(program.inputs, program.steps, outputs, program.eqns)))


def body_program(program):
    """The program with the inputs that its steps read."""
    inputs = inputs_of(program.steps, program.outputs)
    return Program(inputs, program.steps, program.outputs, program.eqns)


def has_calls(step):
    """Whether a step runs Python somewhere inside."""
    return isinstance(step, Call) or any(has_calls(s) for p in programs_in(step) for s in p.steps)
