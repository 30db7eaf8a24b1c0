# Exported from notebooks/*.ipynb by tools/export.py: edit the notebook, not this file.
"""The modules custom_jvp, custom_vjp, custom_vmap, jit, programs."""
