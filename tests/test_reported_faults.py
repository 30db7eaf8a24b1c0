"""Inputs on which systems of this kind have been wrong, with right answers; also jitted and batched."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax.numpy as mnp


def agree(f, *args, rtol=1e-6):
    """f(library)(*args) equals JAX's, eager, jitted and under vmap over a batch of two."""
    theirs = f(jax)(*map(jnp.asarray, args))
    eager = f(minijax)(*map(mnp.asarray, args))
    for ours in (eager, minijax.jit(f(minijax))(*args)):
        compare(ours, theirs, rtol)
    batch = [np.stack([x, x]) for x in map(np.asarray, args)]
    compare(minijax.vmap(f(minijax))(*batch), jax.vmap(f(jax))(*batch), rtol)
    compare(minijax.jit(minijax.vmap(f(minijax)))(*batch), jax.vmap(f(jax))(*batch), rtol)


def compare(ours, theirs, rtol):
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol)


def gradient(f):
    return lambda lib: lib.grad(lambda x: f(lib, x))


F = np.float32
V = np.array([1.0, -2.0, 3.0, 0.5, 2.5], F)


@pytest.mark.parametrize("start", [-9, -2, 0, 3, 4, 99])
def test_dynamic_slice_out_of_range(start):
    start = np.int32(start)
    cut = lambda lib, x, i: lib.numpy.sum(lib.lax.dynamic_slice(x, (i,), (3,)) ** 2)
    agree(lambda lib: lambda x, i: cut(lib, x, i), V, start)
    agree(lambda lib: lambda x, i: lib.grad(lambda x: cut(lib, x, i))(x), V, start)
    agree(lambda lib: lambda x, i: lib.value_and_grad(lambda x: cut(lib, x, i))(x), V, start)


def test_gradient_of_batched_dynamic_slice_lands_on_clamped_elements():
    starts = np.array([-1, 1, 99], np.int32)
    total = lambda lib: lambda x: lib.numpy.sum(
        lib.vmap(lambda i: lib.lax.dynamic_slice(x, (i,), (2,)))(starts) * 2.0)
    compare(minijax.grad(total(minijax))(V), jax.grad(total(jax))(V), 1e-6)


def test_vmap_of_grad_where_the_branch_not_taken_is_nan():
    f = lambda lib, x: lib.numpy.where(x > 0, lib.numpy.sqrt(lib.numpy.where(x > 0, x, 1.0)), 0.0)
    agree(gradient(f), F(0.0))
    agree(gradient(f), F(-1.0))


@pytest.mark.parametrize("x", [[-np.inf, -np.inf], [0.0, -np.inf], [1e30, 1e30], [np.inf, 0.0]])
def test_logsumexp_and_its_gradient(x):
    x = np.array(x, F)
    agree(lambda lib: lambda x: lib.nn.logsumexp(x), x)
    if np.isfinite(x).all():
        agree(gradient(lambda lib, x: lib.nn.logsumexp(x)), x)


def test_masked_mean():
    mask = np.array([True, False])
    f = lambda lib, x: lib.numpy.mean(x, where=mask)
    x = np.array([0.0, 100.0], F)
    agree(gradient(f), x)
    np.testing.assert_array_equal(minijax.grad(lambda x: f(minijax, x))(x), [1.0, 0.0])


@pytest.mark.parametrize("f, x, slope", [
    (lambda lib, x: lib.nn.sigmoid(x), -200.0, 0.0),
    (lambda lib, x: lib.nn.elu(x), 200.0, 1.0),
    (lambda lib, x: lib.numpy.sinc(x), 0.0, 0.0),
    (lambda lib, x: lib.nn.relu(x), 0.0, 0.0),
    (lambda lib, x: lib.nn.softplus(x), -200.0, 0.0),
    (lambda lib, x: lib.numpy.maximum(x, 0.0), 0.0, 0.5),
    (lambda lib, x: lib.numpy.minimum(x, 0.0), 0.0, 0.5),
    (lambda lib, x: lib.numpy.abs(x), 0.0, None),
    (lambda lib, x: lib.numpy.sign(x), 0.0, 0.0),
    (lambda lib, x: lib.numpy.clip(x, 0.0, 1.0), 0.0, None),
    (lambda lib, x: lib.numpy.tanh(x), 100.0, 0.0),
    (lambda lib, x: lib.numpy.logaddexp(x, x), 0.0, 1.0),
    (lambda lib, x: x ** 2, 0.0, 0.0),
    (lambda lib, x: x ** 0.5, 4.0, 0.25),
])
def test_gradients_at_special_points(f, x, slope):
    agree(gradient(f), F(x))
    if slope is not None:
        assert minijax.grad(lambda x: f(minijax, x))(x) == pytest.approx(slope)


@pytest.mark.parametrize("x", [[2, 3, np.nan], [np.nan, 3, 2], [2, np.nan, 3], [-0.0, 0.0, -0.0]])
def test_max_and_argmax_with_nan(x):
    for name in ("max", "argmax", "min", "argmin", "sort"):
        agree(lambda lib: getattr(lib.numpy, name), np.array(x, F))


def test_max_with_repeated_maxima_shares_its_gradient():
    x = np.array([1.0, 3.0, 3.0, 2.0], F)
    agree(gradient(lambda lib, x: lib.numpy.max(x)), x)
    agree(gradient(lambda lib, x: lib.numpy.sort(x)[1]), x)


def test_tests_for_special_values_are_not_folded_away():
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], F)
    for name in ("isnan", "isinf", "isfinite", "signbit", "nan_to_num"):
        agree(lambda lib: getattr(lib.numpy, name), x)
    agree(lambda lib: lambda x: (x - x == 0, x * 0.0, x + 0.0, x / x), x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_arrays(shape):
    x = np.zeros(shape, F)
    agree(lambda lib: lambda x: x * 2.0, x)
    agree(lambda lib: lambda x: (lib.numpy.sum(x, 0), lib.numpy.prod(x), lib.numpy.all(x > 0)), x)
    agree(lambda lib: lambda x: lib.numpy.concatenate([x, x]), x)
    agree(lambda lib: lambda x: lib.grad(lambda x: lib.numpy.sum(lib.numpy.sin(x)))(x), x)
    for lib in (minijax, jax):
        with pytest.raises(ValueError):
            lib.numpy.max(x)


def test_integer_arithmetic_wraps_and_never_traps():
    smallest = np.iinfo(np.int32).min
    x = np.array([smallest, -7, 7, 2147483647], np.int32)
    y = np.array([-1, 0, -2, 0], np.int32)
    for name in ("floor_divide", "remainder", "fmod", "left_shift", "right_shift", "add", "multiply"):
        agree(lambda lib: getattr(lib.numpy, name), x, y)
    agree(lambda lib: lib.lax.div, x, y)
    agree(lambda lib: lib.lax.rem, x, y)
    agree(lambda lib: lambda x: (-x, abs(x)), x)


def test_floats_become_integers_by_saturation():
    x = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 3.7, -3.7], F)
    for dtype in ("int32", "uint8", "int8"):
        agree(lambda lib: lambda x: x.astype(dtype), x)


def test_no_warning_for_what_ieee_defines(recwarn):
    x = mnp.asarray(np.array([0.0, -1.0, np.inf], F))
    for f in (lambda x: 1.0 / x, mnp.log, mnp.sqrt, lambda x: x - x, lambda x: x * 1e38 * 1e38):
        f(x), minijax.jit(f)(x)
    assert not recwarn.list


# --- Loops and branches ---------------------------------------------------------------------------

@pytest.mark.parametrize("m, n", [(5, 3), (3, 3), (4, 4), (1, 3)])
@pytest.mark.parametrize("in_condition", ["inner", "outer", "both", "neither"])
def test_nested_vmap_of_while(m, n, in_condition):
    limits = {"inner": lambda i, j: j, "outer": lambda i, j: i, "both": lambda i, j: i + j,
              "neither": lambda i, j: 4.0}

    def loop(lib, i, j):
        limit = limits[in_condition](i, j)
        return lib.lax.while_loop(lambda s: s[0] < limit, lambda s: (s[0] + 1.0, s[1] * 1.5 + i, s[2] + j),
                                  (0.0, j, lib.numpy.zeros(2)))
    outer, inner = np.arange(m, dtype=F), 2 * np.arange(n, dtype=F)
    grid = lambda lib: lib.vmap(lambda i: lib.vmap(lambda j: loop(lib, i, j))(inner))
    rows = [[loop(minijax, i, j) for j in inner] for i in outer]
    for ours in (grid(minijax)(outer), minijax.jit(grid(minijax))(outer)):
        for k, leaf in enumerate(ours):
            want = np.array([[np.asarray(cell[k]) for cell in row] for row in rows])
            np.testing.assert_allclose(leaf, want, rtol=1e-6)
    compare(grid(minijax)(outer), grid(jax)(outer), 1e-6)


def test_vmap_of_grad_of_cond_where_the_branch_not_taken_is_nan():
    f = lambda lib, x: lib.lax.cond(x > 0, lambda: lib.numpy.sqrt(x), lambda: -x)
    g = lambda lib, x: lib.lax.switch(lib.numpy.int32(x > 0), [lambda x: x * 0, lib.numpy.log], x)
    for h in (f, g):
        for x in (F(0.0), F(-1.0), F(4.0)):
            agree(gradient(h), x)
        slopes = minijax.vmap(minijax.grad(lambda x: h(minijax, x)))(np.array([-1.0, 0.0, 4.0], F))
        assert np.isfinite(slopes).all()


def test_gradient_of_a_batched_rule_that_differentiates_a_branch():
    """JAX 0.10 has no such gradient; a loop over the examples has."""
    def f(x):
        chosen = lambda x: minijax.lax.cond(x > 0, mnp.sqrt, lambda x: x * 3.0, x)
        rule = minijax.custom_jvp(chosen)
        rule.defjvp(lambda primals, tangents: minijax.jvp(chosen, primals, tangents))
        return rule(x)
    x = np.array([4.0, -2.0, 0.25], F)
    slopes = [minijax.grad(f)(a) for a in x]
    assert slopes == [0.25, 3.0, 1.0]
    for total in (lambda x: mnp.sum(minijax.vmap(f)(x)), minijax.jit(lambda x: mnp.sum(minijax.vmap(f)(x)))):
        np.testing.assert_array_equal(minijax.grad(total)(x), slopes)


def test_scan_and_map_over_nothing():
    empty = np.zeros((0, 3), F)
    step = lambda c, x: (c + x[0], {"y": x, "n": x.sum() > 0})
    agree(lambda lib: lambda xs: lib.lax.scan(step, 1.5, xs), empty)
    agree(lambda lib: lambda xs: lib.lax.map(lambda x: (x.sum(), x), xs), empty)
    agree(lambda lib: lib.grad(lambda xs: lib.lax.scan(step, 1.5, xs)[0]), empty)


def test_jacfwd_of_a_loop_with_grad_in_its_body():
    def loop(lib, x):
        inner = lambda y: lib.numpy.sum(lib.numpy.sin(y) * x)
        return lib.lax.scan(lambda c, a: (c + a * lib.grad(inner)(c), c.sum()), x, V)
    agree(lambda lib: lib.jacfwd(lambda x: loop(lib, x)), V[:3], rtol=1e-5)


def test_carry_errors_show_both_structures_and_the_leaf():
    with pytest.raises(TypeError) as caught:
        minijax.lax.scan(lambda c, x: (0, x), None, V)
    assert "PyTreeDef(None)" in str(caught.value) and "PyTreeDef(*)" in str(caught.value)
    with pytest.raises(TypeError) as caught:
        minijax.lax.scan(lambda state, x: ({"w": state["w"], "n": state["n"] + 0.5}, x),
                         {"w": F(1), "n": np.int32(1)}, V)
    assert all(part in str(caught.value) for part in ("state['n']", "i32[]", "f32[]"))
    assert "['w']" not in str(caught.value)


def test_endless_recursion_through_cond_says_so():
    @minijax.jit
    def countdown(n):
        return minijax.lax.cond(n > 0, lambda: countdown(n - 1), lambda: n)
    for _ in range(2):
        with pytest.raises(RecursionError, match="countdown did not end.*lax.cond"):
            countdown(3)
    assert minijax.jit(lambda x: x + 1)(1) == 2
    assert minijax.grad(lambda x: minijax.lax.cond(x > 0, lambda: x * x, lambda: x))(3.0) == 6.0



def test_replays_with_buffers_reused_equal_the_first_call():
    """Loops that update in place, temporaries in reused memory, other inputs in between."""
    def f(x):
        rows = minijax.lax.fori_loop(0, 3, lambda i, m: m.at[i].add(mnp.sin(m[2 - i])), mnp.outer(x, x))
        c, ys = minijax.lax.scan(lambda c, r: (c * 0.5 + r, mnp.cumsum(c)), x, rows)
        return mnp.sort(c) + mnp.sum(ys @ rows, 0), ys[::-1], mnp.where(x > 0, c, -c)
    total = lambda x: sum(mnp.sum(out) for out in f(x))
    x = V[:3]
    for g, args in [(f, x), (minijax.grad(total), x), (minijax.vmap(f), np.stack([x, -x, x * 0.5]))]:
        jitted = minijax.jit(g)
        want = [np.array(out) for out in minijax.tree.leaves(jitted(args))]
        for k in range(20):
            held = jitted(args + k)                    # whose memory is in use during the next call
            for out, first in zip(minijax.tree.leaves(jitted(args)), want, strict=True):
                np.testing.assert_array_equal(out, first)
            del held
        compare(g(mnp.asarray(args)), jax.tree.map(jnp.asarray, jitted(args)), 2e-5)


@pytest.mark.parametrize("wrap", [lambda lib, f: f, lambda lib, f: lib.jit(f),
                                  lambda lib, f: lambda *xs: lib.vmap(f)(*[x[None] for x in xs])])
def test_misuse_is_explained_inside_other_transformations(wrap):
    three, four = np.arange(3), np.ones(4, F)
    uses = {
        r"grad.*int32": lambda lib: wrap(lib, lambda n: lib.grad(lambda m: m ** 2)(n[1]))(three),
        r"size 3.*size 4|size 4.*size 3": lambda lib: wrap(
            lib, lambda n, y: lib.vmap(lambda a, b: a + b)(n, y))(three, four),
        r"tangent.*(int32|i32|\(3,\))": lambda lib: wrap(
            lib, lambda n, y: lib.jvp(lib.numpy.sin, (y,), (n,)))(three, four),
        r"cotangent.*tree": lambda lib: wrap(
            lib, lambda n, y: lib.vjp(lambda y: (y, y), y)[1](y))(three, four)}
    for message, use in uses.items():
        with pytest.raises(Exception) as theirs:
            use(jax)
        with pytest.raises((TypeError, ValueError), match="(?s)" + message) as ours:
            use(minijax)
        assert type(theirs.value).__name__ in {t.__name__ for t in type(ours.value).__mro__}
