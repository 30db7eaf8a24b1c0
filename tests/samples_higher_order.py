"""Samples of the primitives that contain programs: name -> list of (args, params)."""
import numpy as np

from minijax.avals import typeof
from minijax.interpreters.batching import batch_flat
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.primitives.elementwise import add, exp, mul, sin
from minijax.primitives.reductions import reduce_sum


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def program(f, *args):
    """The program of f, which returns a list, at the types of args."""
    return trace_to_closed_jaxpr(f, [typeof(a) for a in args], f.__name__)


def jit_sample(f, *args):
    return args, dict(jaxpr=program(f, *args), name=f.__name__, inline=False, donated_invars=())


def chain(x, y):
    return [mul(sin(x), y), reduce_sum(exp(mul(x, x)), (1,))]


def linear(x):
    return [add(x, mul(x, np.float32(3))), reduce_sum(x, (0,))]


def choosy(x, n, z):
    return [n, mul(x, z), x]


def custom_jvp_sample(f, *args):
    def rule(primals, tangents):
        return jvp_flat(f, primals, tangents)
    return args, dict(call_jaxpr=program(f, *args), jvp=rule, num_consts=0, symbolic_zeros=False)


def custom_vjp_sample(f, *args):
    def fwd(perturbed, *args):
        return f(*args), args, ()

    def bwd(memo, residuals, cts):
        raise AssertionError("bwd runs in reverse mode only")
    return args, dict(call_jaxpr=program(f, *args), fwd=fwd, bwd=bwd, num_consts=0,
                      symbolic_zeros=False)


def custom_vmap_sample(f, *args):
    def rule(axis, vals, dims):
        return batch_flat(f, axis, vals, dims)
    return args, dict(call=program(f, *args), rule=rule)


def custom_lin_sample(x, t):
    params = dict(bwd=lambda memo, residuals, cts: [mul(cts[0], residuals[0])], memo=(), num_res=1,
                  perturbed=(True,), out_avals=(typeof(t),))
    return (x, t), params


higher_order_samples = {
    "jit": [jit_sample(chain, floats(2, 3), floats(2, 3, seed=1)), jit_sample(linear, floats(2, 3)),
            jit_sample(choosy, floats(2), np.int32(3), floats(2, seed=1))],
    "custom_jvp_call": [custom_jvp_sample(chain, floats(2, 3), floats(2, 3, seed=1)),
                        custom_jvp_sample(linear, floats(2, 3)),
                        custom_jvp_sample(choosy, floats(2), np.int32(3), floats(2, seed=1))],
    "custom_vjp_call": [custom_vjp_sample(chain, floats(2, 3), floats(2, 3, seed=1)),
                        custom_vjp_sample(linear, floats(2, 3))],
    "custom_lin": [custom_lin_sample(floats(3), floats(3, seed=1))],
    "custom_vmap_call": [custom_vmap_sample(chain, floats(2, 3), floats(2, 3, seed=1)),
                         custom_vmap_sample(linear, floats(2, 3))],
}
