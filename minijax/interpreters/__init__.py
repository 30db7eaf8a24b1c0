# Exported from notebooks/*.ipynb by tools/export.py: edit the notebook, not this file.
"""The modules ad, batching, jet, jvp, mlir, partial_eval, staging, transpose, xla."""
