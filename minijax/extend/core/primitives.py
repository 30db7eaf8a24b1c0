# Exported from notebooks/ref_extend.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: JAX's names. Home: ref_extend. In JAX: jax/extend/core/primitives.py.

`primitives.add_p`, `primitives.jit_p` and so on: every primitive of the library by its name.
"""

from minijax.core import primitives

__all__ = ["OTHER_NAMES"]


# --- The modules ----------------------------------------------------------------------------------

# JAX's variables for these are not called as the primitives are.
OTHER_NAMES = {"add_jaxvals": "add_any", "remat": "remat2", "linear_solve": "custom_linear_solve"}


def __getattr__(name):
    stem = name.removesuffix("_p")
    stem = OTHER_NAMES.get(stem, stem)
    found = primitives.get(stem) or primitives.get(stem.replace("_", "-"))
    if found is None or stem == name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__():
    return [f"{name.replace('-', '_')}_p" for name in primitives]
