# Exported from notebooks/*.ipynb by tools/export.py: edit the notebook, not this file.
"""The modules checkpoint, cond, custom_jvp, custom_vjp, custom_vmap, evaluate, jets, jit,
linear_call, linear_solve, programs, scan, while_loop."""
