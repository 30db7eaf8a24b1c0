"""Donated arguments, and what Compiled says about costs and memory."""
import warnings

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as mnp
from minijax.compiler import donation
from minijax.compiler.check_ir import check_program

f32 = np.float32


def arange(n):
    return mnp.arange(n, dtype=f32)


# --- Deleted arrays ------------------------------------------------------------------------------

@pytest.mark.parametrize("use", [
    lambda x: x + 1, np.asarray, repr, str, float, lambda x: mnp.sin(x),
    lambda x: minijax.jit(lambda y: y)(x), lambda x: x.tolist(), lambda x: x.at[...].set(1)])
def test_a_deleted_array_says_so(use):
    x = mnp.ones(())
    x.delete()
    x.delete()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[\]"):
        use(x)


def test_a_deleted_array_keeps_its_type():
    x, y = arange(3), jax.numpy.arange(3, dtype=f32)
    for a in (x, y):
        a.delete()
    assert x.is_deleted() and y.is_deleted()
    assert (x.shape, x.dtype, x.ndim, x.size) == (y.shape, y.dtype, y.ndim, y.size)
    with pytest.raises(RuntimeError) as ours:
        print(x)
    with pytest.raises(RuntimeError) as theirs:
        print(y)
    assert str(ours.value) == str(theirs.value)


# --- Donation ------------------------------------------------------------------------------------

CASES = {
    "elementwise": lambda np, x, y: x * 2 + y,
    "read again later": lambda np, x, y: (x + y, np.sum(x)),
    "transposed": lambda np, x, y: np.flip(x) + y,
    "shifted": lambda np, x, y: np.concatenate([x[1:], x[:1]]) * 2,
    "returned": lambda np, x, y: x,
    "twice": lambda np, x, y: (x + 1, x - 1),
    "softmax": lambda np, x, y: np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x))),
    "updated": lambda np, x, y: x.at[3].set(y[0]),
    "sorted": lambda np, x, y: np.sort(x),
    "cumulative": lambda np, x, y: np.cumsum(x) + y,
    "reshaped": lambda np, x, y: (x * 2, np.sort(x.reshape(4, 10))),
}


@pytest.mark.parametrize("name", CASES)
def test_donation_does_not_change_results(name):
    f = CASES[name]
    x, y = np.random.default_rng(0).normal(size=(2, 40)).astype(f32)
    donating = minijax.jit(lambda x, y: f(mnp, x, y), donate_argnums=0)
    for _ in range(2):
        given, kept = mnp.asarray(x), mnp.asarray(y)
        got = donating(given, kept)
        want = jax.jit(lambda x, y: f(jax.numpy, x, y))(x, y)
        for g, w in zip(minijax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5, atol=1e-6)
        assert given.is_deleted() and not kept.is_deleted()
    check_program(donating.lower(x, y).compile().executable.program)


def test_a_result_has_the_memory():
    x = arange(1000) + 0
    place = x._value.ctypes.data
    y = minijax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert y._value.ctypes.data == place and float(y[0]) == 1


def test_memory_that_somebody_else_sees_is_not_written():
    x = arange(1000)
    seen = np.asarray(x)
    before = seen.copy()
    y = minijax.jit(lambda x: x + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(seen, before)
    np.testing.assert_array_equal(np.asarray(y), before + 1)
    part = arange(10)[2:5]
    assert minijax.jit(lambda x: x * 2, donate_argnums=0)(part).tolist() == [4, 6, 8]
    mine = np.arange(5, dtype=f32)
    minijax.jit(lambda x: x * 2, donate_argnums=0)(mine)
    assert mine.tolist() == [0, 1, 2, 3, 4]


def test_names_trees_and_static_arguments():
    def step(n, params, lr, *, scale):
        return minijax.tree.map(lambda p: p * n - lr * scale, params)
    params = {"w": arange(4), "b": arange(2)}
    scale = mnp.ones(())
    new = minijax.jit(step, static_argnums=0, donate_argnames=("params",))(2, params, 0.5, scale=scale)
    assert new["w"].tolist() == [-0.5, 1.5, 3.5, 5.5]
    assert params["w"].is_deleted() and params["b"].is_deleted() and not scale.is_deleted()


def test_unusable_donations_warn_as_in_jax():
    def messages(lib, np_):
        x = np_.ones(3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lib.jit(lambda x: x.sum(), donate_argnums=0)(x)
        assert not x.is_deleted()
        return [(w.category, str(w.message).splitlines()[0]) for w in caught]
    assert messages(minijax, mnp) == messages(jax, jax.numpy) != []


def test_two_arguments_for_one_result():
    x, y = arange(4), arange(4)
    with pytest.warns(UserWarning, match="not usable"):
        minijax.jit(lambda x, y: x + y, donate_argnums=(0, 1))(x, y)
    assert x.is_deleted() and not y.is_deleted()


def test_inside_other_transformations_nothing_is_deleted():
    f = minijax.jit(lambda x: x * x, donate_argnums=0)
    x = arange(3)
    minijax.grad(lambda x: f(x).sum())(x)
    minijax.jit(lambda x: f(x) + x)(x)
    assert minijax.vmap(f)(x).tolist() == [0, 1, 4] and not x.is_deleted()


def test_static_and_donated_is_refused():
    with pytest.raises(ValueError, match="cannot intersect"):
        minijax.jit(lambda x: x, static_argnums=0, donate_argnums=0)
    with pytest.raises(ValueError, match="donate_argnums includes 3"):
        minijax.jit(lambda x: x, donate_argnums=3)


# --- Costs and memory ----------------------------------------------------------------------------

COSTS = {
    "elementwise": lambda np, x: np.exp(x) * 2 + x,
    "comparison": lambda np, x: np.where(x > 1, x, -x),
    "transposed": lambda np, x: x.T + 1,
    "product": lambda np, x: x @ x,
    "columns": lambda np, x: np.sum(x, 1),
}


@pytest.mark.parametrize("name", COSTS)
def test_costs_are_jaxs(name):
    f, x = COSTS[name], np.ones((64, 64), f32)
    ours = minijax.jit(lambda x: f(mnp, x)).lower(x).compile().cost_analysis()
    theirs = jax.jit(lambda x: f(jax.numpy, x)).lower(x).compile().cost_analysis()
    assert ours["transcendentals"] == theirs.get("transcendentals", 0)
    for key in ("flops", "bytes accessed"):        # XLA counts a sum of n as n - 1 additions
        assert abs(ours[key] / max(theirs[key], 1) - 1) < 0.04, key


def test_rows_in_cache_are_no_traffic():
    def softmax(x):
        e = mnp.exp(x - mnp.max(x, axis=1, keepdims=True))
        return e / mnp.sum(e, axis=1, keepdims=True)
    x = np.zeros((500, 400), f32)
    cost = minijax.jit(softmax).lower(x).cost_analysis()
    assert cost["bytes accessed"] == 2 * x.nbytes
    assert cost["transcendentals"] == x.size


def test_loops_cost_their_turns():
    f = minijax.jit(lambda x: minijax.lax.fori_loop(0, 50, lambda i, c: c * 1.5 + 1, x))
    assert 100 <= f.lower(f32(1)).cost_analysis()["flops"] <= 200


def test_memory_analysis():
    x, y = np.ones((100, 100), f32), np.ones(100, f32)
    f = lambda x, y: mnp.sort(x @ x) + y
    stats = minijax.jit(f).lower(x, y).compile().memory_analysis()
    theirs = jax.jit(lambda x, y: jax.numpy.sort(x @ x) + y).lower(x, y).compile().memory_analysis()
    assert stats.argument_size_in_bytes == theirs.argument_size_in_bytes == 40_400
    assert stats.output_size_in_bytes == theirs.output_size_in_bytes == 40_000
    assert stats.temp_size_in_bytes >= 40_000 and stats.alias_size_in_bytes == 0
    donated = minijax.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile().memory_analysis()
    assert donated.alias_size_in_bytes == 40_000


def test_one_array_may_be_given_for_two_donated_arguments():
    f = minijax.jit(lambda x, y: (x * 2 + y, y + 1), donate_argnums=(0, 1))
    x = minijax.numpy.arange(50_000.0)
    a, b = f(x, x)
    want = np.arange(50_000, dtype=np.float32)
    assert x.is_deleted() and np.array_equal(a, want * 3) and np.array_equal(b, want + 1)


# --- Memory of the program's own -----------------------------------------------------------------

TEMPORARIES = {
    "divided by the sum": lambda e: e / mnp.sum(e),
    "returned too": lambda e: (e / mnp.sum(e), e),
    "read by two results": lambda e: (e / mnp.sum(e), e - mnp.max(e)),
    "reshaped": lambda e: (e / mnp.sum(e), mnp.sort(e.reshape(10, 100))),
    "read backwards": lambda e: e / mnp.sum(e) + e[::-1],
    "in a loop": lambda e: minijax.lax.fori_loop(0, 3, lambda i, c: c / mnp.sum(c), e / mnp.sum(e)),
}


@pytest.mark.parametrize("name", TEMPORARIES)
def test_results_in_the_memory_of_temporaries_have_the_same_bits(name, monkeypatch):
    x, results = mnp.sin(arange(1000)), set()
    for large in (1, 10 ** 9):
        monkeypatch.setattr(donation, "LARGE", large)
        minijax.clear_caches()
        compiled = minijax.jit(lambda x: TEMPORARIES[name](mnp.exp(x))).lower(x).compile()
        check_program(compiled.executable.program)
        results.add(b"".join(np.asarray(r).tobytes() for r in minijax.tree.leaves(compiled(x))))
    assert len(results) == 1


def test_a_result_has_the_memory_of_a_temporary():
    compiled = minijax.jit(minijax.grad(minijax.nn.logsumexp)).lower(arange(100_000)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 100_000
