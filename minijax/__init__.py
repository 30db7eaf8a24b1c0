# Exported from notebooks/ref_package.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: what a user imports. Home: ref_package. In JAX: jax/__init__.py.

`import minijax as jax` and `import minijax.numpy as jnp`: ordinary JAX programs run on the CPU.
"""

from minijax import (
    ad_checkpoint, core, custom_batching, custom_derivatives, debug, dtypes, errors, experimental,
    extend, lax, nn, numpy, ops, stages, tracebacks as _tracebacks, tree, tree_util,
)
from minijax.ad_checkpoint import checkpoint, checkpoint_policies, remat
from minijax.api import (
    Device, ShapeDtypeStruct, block_until_ready, default_backend, device_count, device_get,
    device_put, devices, eval_shape, grad, hessian, jacfwd, jacobian, jacrev, jvp, linear_transpose,
    linearize, local_device_count, local_devices, make_jaxpr, value_and_grad, vjp, vmap,
)
from minijax.array import Array
from minijax.avals import typeof
from minijax.config import (
    checking_leaks, checking_leaks as check_tracer_leaks, config, debug_infs, debug_nans,
    disable_jit, enable_checks, enable_x64, explain_cache_misses, log_compiles,
    numpy_dtype_promotion,
)
from minijax.custom_derivatives import closure_convert, custom_gradient, custom_jvp, custom_vjp
from minijax.debugging import (
    effects_barrier, ensure_compile_time_eval, named_call, named_scope, pure_callback,
)
from minijax.dispatch import clear_caches, fwd_and_bwd, jit
from minijax.dtypes import float0

__all__ = [
    "ad_checkpoint", "core", "custom_batching", "custom_derivatives", "debug", "dtypes", "errors",
    "experimental", "extend", "lax", "nn", "numpy", "ops", "stages", "tree", "tree_util",
    "checkpoint", "checkpoint_policies", "remat", "Device", "ShapeDtypeStruct", "block_until_ready",
    "default_backend", "device_count", "device_get", "device_put", "devices", "eval_shape", "grad",
    "hessian", "jacfwd", "jacobian", "jacrev", "jvp", "linear_transpose", "linearize",
    "local_device_count", "local_devices", "make_jaxpr", "value_and_grad", "vjp", "vmap", "Array",
    "typeof", "check_tracer_leaks", "checking_leaks", "config", "debug_infs", "debug_nans",
    "disable_jit", "enable_checks", "enable_x64", "explain_cache_misses", "log_compiles",
    "numpy_dtype_promotion", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
    "effects_barrier", "ensure_compile_time_eval", "named_call", "named_scope", "pure_callback",
    "clear_caches", "fwd_and_bwd", "jit", "float0",
]


# --- The names of minijax -------------------------------------------------------------------------

__version__ = "0.1.0"

# What users get hides this package's frames in tracebacks: see the notebook ref_errors.
_tracebacks.make_fronts(vars(experimental), ("checkify",))
_tracebacks.make_fronts(vars(extend), ("core",))
_tracebacks.make_fronts(globals(), ("ad_checkpoint", "custom_batching", "custom_derivatives",
                                    "debug", "experimental", "lax", "nn", "numpy", "ops", "tree",
                                    "tree_util"))
_tracebacks.bound_methods(type(config), ("update", "__getattr__"))
_tracebacks.bound_methods(type(enable_x64), ("__call__",))
_tracebacks.bound_methods(ShapeDtypeStruct, ("__init__",))
_tracebacks.bound_methods(tree_util.PyTreeDef, ("compose", "flatten_up_to", "unflatten"))
_tracebacks.make_boundaries(globals(), globals().get("__all__", ()))
