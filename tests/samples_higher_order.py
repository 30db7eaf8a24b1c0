"""Samples of the primitives that contain programs: name -> list of (args, params)."""
import numpy as np

from minijax.avals import typeof
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


def checkpoint_sample(f, *args, **changes):
    params = dict(jaxpr=program(f, *args).jaxpr, prevent_cse=True, differentiated=False, policy=None)
    return args, params | changes


def chain(x, y):
    return [mul(sin(x), y), reduce_sum(exp(mul(x, x)), (1,))]


def linear(x):
    return [add(x, mul(x, np.float32(3))), reduce_sum(x, (0,))]


def choosy(x, n, z):
    return [n, mul(x, z), x]


higher_order_samples = {
    "jit": [jit_sample(chain, floats(2, 3), floats(2, 3, seed=1)), jit_sample(linear, floats(2, 3)),
            jit_sample(choosy, floats(2), np.int32(3), floats(2, seed=1))],
    "remat2": [checkpoint_sample(chain, floats(2, 3), floats(2, 3, seed=1)),
               checkpoint_sample(linear, floats(2, 3), differentiated=True),
               checkpoint_sample(choosy, floats(2), np.int32(3), floats(2, seed=1),
                                 prevent_cse=(True, False, False)),
               checkpoint_sample(chain, floats(2, 3), floats(2, 3, seed=1),
                                 policy=lambda primitive, *_, **__: primitive.name == "sin")],
    "name": [([floats(2, 3)], {"name": "x"}), ([np.arange(3)], {"name": "n"})],
    "optimization_barrier": [([floats(2, 3)], {}), ([floats(2), np.int32(3), floats()], {})],
}
