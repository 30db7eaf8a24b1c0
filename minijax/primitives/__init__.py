# Exported from notebooks/*.ipynb by tools/export.py: edit the notebook, not this file.
<<<<<<< HEAD
"""The modules barrier, cumulative, dot, elementwise, indexing, reductions, sorting, special,
=======
"""The modules callbacks, cumulative, dot, elementwise, indexing, reductions, sorting, special,
>>>>>>> main
structural."""
