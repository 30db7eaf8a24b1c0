# Exported from notebooks/*.ipynb by tools/export.py: edit the notebook, not this file.
"""The modules callbacks, cumulative, dot, elementwise, indexing, reductions, sorting, special,
structural."""
