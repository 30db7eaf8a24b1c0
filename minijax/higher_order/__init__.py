# Exported from notebooks/*.ipynb by tools/export.py: edit the notebook, not this file.
"""The modules checkpoint, jit, programs."""
