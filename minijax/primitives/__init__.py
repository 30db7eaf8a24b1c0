# Exported from notebooks/*.ipynb by tools/export.py: edit the notebook, not this file.
"""The modules barrier, callbacks, cumulative, dot, elementwise, indexing, reductions, sorting,
special, structural."""
