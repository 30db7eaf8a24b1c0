"""What jit's stages tell of a program, and functions made of its stages, as in JAX."""

import jax
import numpy as np
import pytest

import minijax

F = np.float32
LIBRARIES = pytest.mark.parametrize("lib", [minijax, jax], ids=["minijax", "jax"])


def stages(lib):
    @lib.jit
    def f(x, pair, *, scale):
        return {"y": x @ pair[0] * scale, "z": pair[1]}
    traced = f.trace(np.ones((2, 3), F), (np.ones(3, F), 2.0), scale=np.float16(3))
    lowered = traced.lower()
    return f, traced, lowered, lowered.compile()


@LIBRARIES
def test_stages_are_of_the_types_that_have_names(lib):
    f, traced, lowered, compiled = stages(lib)
    assert isinstance(f, lib.stages.Wrapped) and isinstance(traced, lib.stages.Traced)
    assert isinstance(lowered, lib.stages.Lowered) and isinstance(compiled, lib.stages.Compiled)
    info = lowered.args_info[1]["scale"]
    assert isinstance(info, lib.stages.ArgInfo) and not info.donated
    assert (info.shape, info.dtype) == ((), np.float16)


def test_all_stages_know_types_and_trees_of_arguments_and_results():
    for ours, theirs in zip(stages(minijax)[1:], stages(jax)[1:]):
        for name in ("in_tree", "out_tree", "in_avals", "args_info", "donate_argnums"):
            assert str(getattr(ours, name)) == str(getattr(theirs, name)), name
        assert shapes(minijax, ours.out_info) == shapes(jax, theirs.out_info)
    (_, ours, *_), (_, theirs, *_) = stages(minijax), stages(jax)
    assert ours.fun_name == theirs.fun_name == "f"
    assert str(ours.out_avals) == str(theirs.out_avals)


def shapes(lib, tree):
    return [(x.shape, x.dtype) for x in lib.tree.leaves(tree)]


def test_donated_arguments_are_told():
    ours, theirs = (lib.jit(lambda x, y: x + y, donate_argnums=1).lower(np.ones(3, F), np.ones(3, F))
                    for lib in (minijax, jax))
    assert ours.donate_argnums == theirs.donate_argnums == (1,)
    assert str(ours.args_info) == str(theirs.args_info)


@pytest.mark.parametrize("x", [2.0, 3, F(2), np.ones((2, 3), np.int8), True, 2j], ids=str)
def test_the_type_of_a_value(x):
    assert str(minijax.ShapeDtypeStruct.like(x)) == str(jax.ShapeDtypeStruct.like(x))
    struct = minijax.ShapeDtypeStruct.like(minijax.numpy.asarray(x))
    assert struct == minijax.ShapeDtypeStruct.like(struct)


class Typed:
    """Anything with a shape and a dtype will do where only these count."""
    shape, dtype = (2,), np.dtype(np.float64)


ONLY_TYPES = {
    "eval_shape": lambda lib, x: lib.eval_shape(lambda x: x * 2, x).dtype,
    "make_jaxpr": lambda lib, x: lib.make_jaxpr(lambda x: x * 2)(x),
    "linear_transpose": lambda lib, x: lib.linear_transpose(lambda x: x * 2, x)(np.ones(2, F))[0],
    "lower": lambda lib, x: lib.jit(lambda x: x * 2).lower(x).out_info.dtype,
    "zeros_like": lambda lib, x: lib.numpy.zeros_like(x),
    "full_like": lambda lib, x: lib.lax.full_like(x, 3),
}


@pytest.mark.parametrize("name", ONLY_TYPES)
@pytest.mark.parametrize("make", [lambda lib: Typed(),
                                  lambda lib: lib.ShapeDtypeStruct((2,), np.float64)])
def test_arguments_of_which_only_types_count(name, make):
    ours, theirs = (str(ONLY_TYPES[name](lib, make(lib))) for lib in (minijax, jax))
    assert ours == theirs
    with pytest.raises(TypeError):
        minijax.jit(lambda x: x * 2)(make(minijax))


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.complex128, np.int32, "bfloat16", int])
def test_a_struct_keeps_the_dtype_that_it_is_given(dtype):
    ours, theirs = (lib.ShapeDtypeStruct((2, 3), lib.numpy.dtype(dtype)) for lib in (minijax, jax))
    assert (repr(ours), len(ours)) == (repr(theirs), len(theirs))
    assert repr(ours.update(shape=(3,))) == repr(theirs.update(shape=(3,)))
    narrow = lambda lib: lib.ShapeDtypeStruct((2, 3), np.int32)
    assert (ours == narrow(minijax)) == (theirs == narrow(jax))
    assert ours == ours.update() and hash(ours) == hash(ours.update())


@pytest.mark.parametrize("lib", [minijax, jax], ids=["minijax", "jax"])
def test_a_struct_needs_a_dtype_and_axes(lib):
    with pytest.raises(ValueError, match="dtype must be specified"):
        lib.ShapeDtypeStruct((), None)
    with pytest.raises(TypeError, match="unsized"):
        len(lib.ShapeDtypeStruct((), F))


@pytest.mark.parametrize("argnums", [0, 1, (0, 2), (-1, 0)], ids=str)
@pytest.mark.parametrize("jitted", [True, False], ids=["jit", "eager"])
def test_forward_and_backward_pass(argnums, jitted):
    x, w, b = (np.arange(4, dtype=F).reshape(2, 2) + k for k in range(3))

    def run(lib):
        fwd, bwd = lib.fwd_and_bwd(lambda x, w, b: lib.numpy.sin(x @ w) + b, argnums, jitted=jitted)
        y, residuals = fwd(x, w, b)
        return [y, bwd(residuals, 2 * x)]
    got, want = run(minijax), run(jax)
    assert minijax.tree.structure(got) == minijax.tree.structure(want)
    for ours, theirs in zip(minijax.tree.leaves(got), minijax.tree.leaves(want)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_the_backward_pass_is_traced_once_and_aux_is_returned():
    traced = []

    @minijax.custom_vjp
    def f(x):
        return x * x
    f.defvjp(lambda x: (x * x, x), lambda x, ct: (traced.append(1), (2 * x * ct,))[1])
    fwd, bwd = minijax.fwd_and_bwd(lambda x: (f(x), x + 1), 0, has_aux=True)
    for x in (2.0, 3.0):
        y, residuals, aux = fwd(x)
        assert (y, aux, bwd(residuals, 1.0)) == (x * x, x + 1, 2 * x)
    assert len(traced) == 1


@LIBRARIES
def test_a_traced_call_can_be_run_and_transformed(lib):
    traced = lib.jit(lambda x, *, k: {"y": x * k}, static_argnames="k").trace(np.ones(3, F), k=3)
    x = np.arange(3, dtype=F)
    np.testing.assert_array_equal(traced(x)["y"], 3 * x)
    np.testing.assert_array_equal(lib.grad(lambda x: traced(x)["y"].sum())(x), np.full(3, 3, F))
    assert lib.jit(traced)(x)["y"].shape == (3,)
    with pytest.raises(TypeError if lib is minijax else AssertionError):
        traced(x, x)


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@LIBRARIES
def test_arguments_given_away_in_vain_are_told_too(lib):
    assert lib.jit(lambda x: x.sum(), donate_argnums=0).lower(np.ones(3, F)).donate_argnums == (0,)
