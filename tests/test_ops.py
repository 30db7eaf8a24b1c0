"""`ops`: reductions of groups of rows, compared with JAX."""
from functools import partial

import jax
import jax.ops
import numpy as np
import pytest

import minijax
import minijax.ops

NAMES = ["segment_sum", "segment_prod", "segment_max", "segment_min"]
ROWS = np.array([[1.5, -2], [0.5, 4], [3, 0.25], [-1, 2], [2, 2]], np.float32)
IDS = np.array([2, 0, 2, 9, -1])

CALLS = {
    "rows": lambda f: f(ROWS, IDS, 4), "numbers": lambda f: f(ROWS[:, 0], IDS, num_segments=3),
    "as many as needed": lambda f: f(ROWS[:3], IDS[:3]), "no segments": lambda f: f(ROWS, IDS, 0),
    "integers": lambda f: f(np.arange(5, dtype=np.int8), IDS, 4),
    "bools": lambda f: f(ROWS[:, 0] > 1, IDS, 4), "bfloat16": lambda f: f(
        ROWS.astype(jax.numpy.bfloat16), IDS, 4),
    "mode": lambda f: f(ROWS, IDS, 4, mode="clip"),
    "sorted": lambda f: f(ROWS, np.arange(5), 4, indices_are_sorted=True, unique_indices=True),
    "buckets": lambda f: f(ROWS, IDS, 4, bucket_size=2),
    "many axes of ids": lambda f: f(ROWS, np.array([[0, 1], [1, 1], [0, 3], [2, 2], [1, 0]]), 3),
    "negative number": lambda f: f(ROWS, IDS, -1), "no array": lambda f: f([1.0, 2.0], [0, 1], 2),
    "ids that are floats": lambda f: f(ROWS, IDS * 1.5, 4),
}


def outcome(run, f):
    try:
        return run(f)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_segments(name, call):
    ours, theirs = [outcome(CALLS[call], getattr(lib.ops, name)) for lib in (minijax, jax)]
    if isinstance(theirs, type):
        assert ours is theirs
        return
    assert ours.dtype == theirs.dtype and ours.weak_type == theirs.weak_type
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize("name", NAMES)
def test_transformations(name):
    def program(lib):
        f = partial(getattr(lib.ops, name), num_segments=4)
        slope = lambda x: lib.grad(lambda x: lib.numpy.sum(lib.numpy.sin(f(x, IDS[:3]))))(x)
        batch = np.stack([ROWS, -ROWS])
        return (lib.jit(f)(ROWS, IDS), lib.vmap(f, (0, None))(batch, IDS),
                lib.vmap(f, (None, 0))(ROWS, np.stack([IDS, IDS[::-1]])),
                lib.jit(slope)(ROWS[:3]) if name != "segment_prod" else 0.0)
    for ours, theirs in zip(program(minijax), program(jax), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_number_of_segments_must_be_known():
    for lib in (jax, minijax):
        with pytest.raises(lib.errors.ConcretizationTypeError):
            lib.jit(lib.ops.segment_sum)(ROWS, IDS, 4)
