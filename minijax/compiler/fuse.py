# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: the list of passes in XLA's cpu_compiler.cc.

The passes on loop IR, in order: from one nest an equation to few nests.
"""

from minijax.compiler.blocks import cut_reductions
from minijax.compiler.dead_steps import body_program, drop_dead, has_calls
from minijax.compiler.merge import coalesce, inline_single_uses, merge_loops, walk_in_squares
from minijax.compiler.rows import fuse_rows
from minijax.compiler.views import inline_views, strided_operands
from minijax.loop_ir import Program, programs_in, with_programs

__all__ = ["FUSION_PASSES", "fuse", "run_fusion_passes", "fuse_inside"]


# --- The list of passes ---------------------------------------------------------------------------

FUSION_PASSES = (inline_views, strided_operands, inline_single_uses, merge_loops, coalesce,
                 cut_reductions, fuse_rows, walk_in_squares)


def fuse(program):
    """Run the passes on loop IR one after the other, on the programs inside steps first."""
    return run_fusion_passes(drop_dead(program), FUSION_PASSES)


def run_fusion_passes(program, passes):
    steps = [fuse_inside(s) if programs_in(s) else s for s in program.steps]
    program = Program(program.inputs, steps, program.outputs, program.eqns)
    for step in passes:
        program = step(program)
    return program


def fuse_inside(step):
    """The step with fused programs. In machine code nothing may become a call."""
    passes = [p for p in FUSION_PASSES if has_calls(step) or p is not strided_operands]
    return with_programs(step, [body_program(run_fusion_passes(p, passes))
                                for p in programs_in(step)])
