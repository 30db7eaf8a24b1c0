"""Trees as vectors, and names of types, as in JAX."""

import jax
import jax.flatten_util
import numpy as np
import pytest

import minijax
from minijax.flatten_util import ravel_pytree
from minijax.typing import ArrayLike

F = np.float32
TREES = {
    "one dtype": {"w": np.arange(6, dtype=F).reshape(2, 3), "b": [F(7), np.zeros(0, F)]},
    "mixed": (np.arange(3, dtype=np.int32), F(2.5), np.ones((2, 2), np.float16), True),
    "complex": [np.array([1 + 2j], np.complex64), np.ones(2, F)],
    "a number": 3.0,
    "nothing": {"a": None},
}


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("wrap", ["eager", "jit", "vmap"])
def test_there_and_back(name, wrap):
    def run(lib, ravel):
        vector, unravel = ravel(TREES[name])
        back = {"eager": unravel, "jit": lib.jit(unravel),
                "vmap": lambda v: lib.vmap(unravel)(lib.numpy.stack([v, v]))}[wrap](vector)
        leaves, tree = lib.tree.flatten(back)
        return [vector, *leaves], str(tree)
    (got, our_tree), (want, their_tree) = (run(minijax, ravel_pytree),
                                           run(jax, jax.flatten_util.ravel_pytree))
    assert our_tree == their_tree
    for ours, theirs in zip(got, want, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("ravel", [ravel_pytree, jax.flatten_util.ravel_pytree], ids=["minijax", "jax"])
def test_a_vector_of_another_dtype(ravel):
    lib = minijax if ravel is ravel_pytree else jax
    _, unravel = ravel(TREES["mixed"])
    with pytest.raises(TypeError, match="unravel function given array of dtype int32"):
        unravel(lib.numpy.ones(9, np.int32))
    _, unravel = ravel(TREES["one dtype"])
    assert unravel(lib.numpy.ones(7, np.int32))["w"].dtype == np.int32


def test_gradient_of_a_function_of_the_vector():
    vector, unravel = ravel_pytree(TREES["one dtype"])
    gradient = minijax.grad(lambda v: minijax.numpy.sum(unravel(v)["w"] ** 2))(vector)
    np.testing.assert_array_equal(gradient, [0, *(2 * np.arange(6))])


def test_device_get_leaves_numbers_alone():
    for lib in (minijax, jax):
        tree = lib.device_get({"a": lib.numpy.ones(2), "b": 1, "c": F(2)})
        assert type(tree["a"]) is np.ndarray and type(tree["b"]) is int and tree["c"] == 2


@pytest.mark.parametrize("x", [1, 2.0, True, 1j, F(1), np.ones(2), [1.0], "a", None], ids=repr)
def test_what_is_like_an_array(x):
    assert isinstance(x, ArrayLike) == isinstance(x, jax.typing.ArrayLike)
    assert isinstance(minijax.numpy.ones(2), ArrayLike)
