# Exported from notebooks/*.ipynb by tools/export.py: edit the notebook, not this file.
"""The modules checkpoint, cond, jit, programs, scan, while_loop."""
