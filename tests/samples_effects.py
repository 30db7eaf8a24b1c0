"""Samples of the primitives that call Python or check: name -> list of (args, params)."""
import numpy as np

from minijax.avals import ShapedArray
from minijax.experimental.checkify import FailedCheckError, init_error, with_check
from minijax.primitives.callbacks import FlatCallback, debug_effect
from minijax.tree_util import tree_flatten, tree_structure

PAIR = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32(2)
TREE = tree_structure((PAIR, {}))


def say(x, y):
    assert x.shape == (2, 3) and y.shape == ()


RESULTS = dict(callback=FlatCallback(lambda x, y: [x * y, x.sum()], TREE), sharding=None,
               result_avals=(ShapedArray((2, 3), np.float32), ShapedArray((), np.float32)))
PRINT = dict(fmt="", ordered=True, partitioned=False, in_tree=TREE, static_args=(),
             np_printoptions=(), mapped=(), logged=False)
SAY = dict(callback=FlatCallback(say, TREE), effect=debug_effect, partitioned=False)


def check_sample():
    error = with_check(init_error, np.False_, FailedCheckError, ("", tree_structure(((), {}))))
    leaves, tree = tree_flatten(error)
    return leaves, dict(err_tree=tree, debug=True)


effect_samples = {
    "debug_callback": [(PAIR, SAY)],
    "debug_print": [(PAIR, PRINT)],
    "pure_callback": [(PAIR, dict(RESULTS, vmap_method=method))
                      for method in ("sequential", "sequential_unrolled")],
    "io_callback": [(PAIR, dict(RESULTS, ordered=False))],
    "check": [check_sample()],
}
