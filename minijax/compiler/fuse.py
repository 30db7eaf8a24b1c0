# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: the list of passes in XLA's cpu_compiler.cc.

The passes on loop IR, in order: from one nest an equation to few nests.
"""

from minijax.compiler.merge import coalesce, inline_single_uses, merge_loops
from minijax.compiler.views import inline_views, strided_operands

__all__ = ["FUSION_PASSES", "fuse"]


# --- The list of passes ---------------------------------------------------------------------------

FUSION_PASSES = (inline_views, strided_operands, inline_single_uses, merge_loops, coalesce)


def fuse(program):
    """Run the passes on loop IR one after the other."""
    for step in FUSION_PASSES:
        program = step(program)
    return program
