"""Samples of the primitives that contain programs: name -> list of (args, params)."""
import numpy as np

from minijax.avals import ShapedArray, typeof
from minijax.experimental.checkify import FailedCheckError, init_error, with_check
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.primitives.callbacks import FlatCallback, debug_effect
from minijax.primitives.elementwise import add, exp, mul, sin
from minijax.primitives.reductions import reduce_sum
from minijax.tree_util import tree_flatten, tree_structure


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


def callback(f, *args):
    return FlatCallback(f, tree_structure((args, {})))


def say(x, y):
    assert x.shape == (2, 3) and y.shape == ()


PAIR = floats(2, 3), np.float32(2)
RESULTS = dict(callback=callback(lambda x, y: [x * y, x.sum()], *PAIR), sharding=None,
               result_avals=(ShapedArray((2, 3), np.float32), ShapedArray((), np.float32)))
PRINT = dict(fmt="", ordered=True, partitioned=False, in_tree=tree_structure((PAIR, {})),
             static_args=(), np_printoptions=(), mapped=())


def check_sample():
    error = with_check(init_error, np.False_, FailedCheckError, ("", tree_structure(((), {}))))
    leaves, tree = tree_flatten(error)
    return leaves, dict(err_tree=tree, debug=True)


higher_order_samples = {
    "debug_callback": [(PAIR, dict(callback=callback(say, *PAIR), effect=debug_effect,
                                   partitioned=False))],
    "debug_print": [(PAIR, PRINT)],
    "pure_callback": [(PAIR, dict(RESULTS, vmap_method=method))
                      for method in ("sequential", "sequential_unrolled")],
    "io_callback": [(PAIR, dict(RESULTS, ordered=False))],
    "check": [check_sample()],
    "jit": [jit_sample(chain, floats(2, 3), floats(2, 3, seed=1)), jit_sample(linear, floats(2, 3)),
            jit_sample(choosy, floats(2), np.int32(3), floats(2, seed=1))],
}
