"""The libraries that a program may run through, each with the same few names."""

import importlib.metadata
from types import SimpleNamespace

import jax
import jax.numpy
import numpy as np

import minijax
import minijax.numpy

__all__ = ["MINIJAX", "JAX", "NUMPY", "NUMBA", "versions"]


def jax_like(name, module):
    """minijax or JAX: programs see `lib.np`, `lib.jit`, `lib.grad`, …"""
    return SimpleNamespace(
        name=name, np=module.numpy, nn=module.nn, jit=module.jit, grad=module.grad,
        vmap=module.vmap, hessian=module.hessian, trace=module.make_jaxpr, map=module.tree.map,
        lax=module.lax, block=module.block_until_ready, forget=module.clear_caches)


MINIJAX = jax_like("minijax", minijax)
JAX = jax_like("jax", jax)

# NumPy is its own baseline: the same formulas eagerly, and no transformations.
NUMPY = SimpleNamespace(name="numpy", np=np, jit=lambda f: f, map=jax.tree.map,
                        block=lambda out: out, forget=lambda: None)
NUMBA = SimpleNamespace(name="numba", np=np, jit=None, map=jax.tree.map,
                        block=lambda out: out, forget=lambda: None)


def versions():
    others = ("jax", "jaxlib", "numpy", "numba", "llvmlite", "scipy")
    return {"minijax": minijax.__version__, **{p: importlib.metadata.version(p) for p in others}}
