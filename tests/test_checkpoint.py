"""checkpoint against real JAX: values, programs, residuals, policies, errors; and what is compiled."""
import inspect
import re
from functools import partial
from itertools import product

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import minijax
import minijax.ad_checkpoint
from minijax.compiler.executable import run_passes
from minijax.config import enable_checks
from minijax.jaxpr import check_jaxpr, jaxprs_in_params, open_jaxpr
from programs import PROGRAMS, TRANSFORMATIONS, transformed

X = np.array([0.3, 0.7, 1.1], np.float32)
LIBRARIES = pytest.mark.parametrize("lib", [minijax, jax], ids=["minijax", "jax"])


def same(f, *args, rtol=2e-4, atol=2e-5):
    """Compare f(library)(*args) of the two libraries, leaf by leaf."""
    ours, theirs = f(minijax)(*args), f(jax)(*args)
    ours, theirs = minijax.tree.leaves(ours), jax.tree.leaves(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


# --- Programs -------------------------------------------------------------------------------------

def network(lib, x, w, v):
    """Two layers, one of them jitted, with names."""
    np_, name = lib.numpy, lib.ad_checkpoint.checkpoint_name
    hidden = name(np_.sin(x @ w), "hidden")
    out = lib.jit(lambda h, v: np_.sin(name(h @ v, "product") * 0.1))(hidden, v)
    return np_.sum(out * out)


def network_arguments():
    random = np.random.default_rng(0)
    return [random.normal(size=s).astype(np.float32) for s in ((4, 3), (3, 5), (5, 2))]


POLICIES = {
    "none": lambda p: None,
    "everything": lambda p: p.everything_saveable,
    "nothing": lambda p: p.nothing_saveable,
    "dots": lambda p: p.dots_saveable,
    "dots without batch": lambda p: p.dots_with_no_batch_dims_saveable,
    "hidden": lambda p: p.save_only_these_names("hidden"),
    "product": lambda p: p.save_only_these_names("product"),
    "but hidden": lambda p: p.save_any_names_but_these("hidden"),
    "anything but": lambda p: p.save_anything_except_these_names("hidden"),
    "both": lambda p: p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("hidden")),
}


def with_policy(lib, name):
    policy = POLICIES[name](lib.checkpoint_policies)
    return lib.checkpoint(partial(network, lib), policy=policy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_gradients_under_every_policy(policy, jitted):
    def f(lib):
        g = lib.grad(with_policy(lib, policy), argnums=(0, 1, 2))
        return lib.jit(g) if jitted else g
    same(f, *network_arguments())


# --- Residuals ------------------------------------------------------------------------------------

def residuals(lib, f, *args, **kwargs):
    """The residuals without the columns that only JAX's lines end in."""
    lists = {minijax: minijax.ad_checkpoint, jax: jax._src.ad_checkpoint}
    found = lists[lib].saved_residuals(f, *args, **kwargs)
    return sorted((a.str_short(short_dtypes=True) if lib is jax else a.str_short(),
                   re.sub(r"^(from|output of \w+|named '\w+').*?/(\w+\.py:\d+)(:\d+)? ", r"\1 \2 ", s))
                  for a, s in found)


@pytest.mark.parametrize("policy", POLICIES)
def test_saves_what_jax_saves(policy):
    args = network_arguments()
    ours, theirs = [residuals(lib, with_policy(lib, policy), *args) for lib in (minijax, jax)]
    assert ours == theirs


def test_residuals_without_checkpoint_are_those_of_jax():
    def f(lib, x, pair, *, scale=2.0):
        y = lib.ad_checkpoint.checkpoint_name(lib.numpy.sin(x), "y")
        return lib.numpy.sum(lib.numpy.cos(y * pair["a"]) * pair["b"][0] * 3.0 * scale)
    for kwargs in ({}, {"scale": 3.0}):
        ours, theirs = [residuals(lib, partial(f, lib), X, {"a": X, "b": [X]}, **kwargs)
                        for lib in (minijax, jax)]
        assert ours == theirs


def test_print_saved_residuals(capsys):
    f = lambda x: minijax.ad_checkpoint.checkpoint_name(minijax.numpy.sin(x), "y") * 2.0 * x
    minijax.ad_checkpoint.print_saved_residuals(f, X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["f32[] from a literal", "f32[3] from the argument x"]
    assert re.fullmatch(r"f32\[3\] output of cos from .*test_checkpoint\.py:\d+:\d+ \(test_print_saved_residuals\.<locals>\.<lambda>\)",
                        lines[2])


# --- Programs as text -----------------------------------------------------------------------------

def text(lib, f, *args):
    """The program of f(lib); JAX's without what it alone prints."""
    printed = str(lib.make_jaxpr(f(lib))(*args))
    return re.sub(r" (out_)?sharding=None", "", printed)


@pytest.mark.parametrize("policy", ["none", "dots", "hidden"])
def test_prints_like_jax(policy):
    f = lambda lib: with_policy(lib, policy)
    args = network_arguments()
    assert text(minijax, f, *args) == text(jax, f, *args)


def test_prints_nested_like_jax():
    inner = lambda lib: lib.checkpoint(lambda x: lib.numpy.sin(lib.numpy.sin(x)), prevent_cse=False)
    f = lambda lib: lib.checkpoint(lambda x: inner(lib)(x) * 2.0, prevent_cse=(True,))
    assert text(minijax, f, X) == text(jax, f, X)


def test_gradient_prints_like_jax():
    """JAX hoists an inner program that it prints once more; the equations are the same."""
    f = lambda lib: lib.grad(lambda x: lib.numpy.sum(lib.checkpoint(
        lambda x: lib.numpy.sin(lib.numpy.sin(x)))(x)))
    ours, theirs = text(minijax, f, X), text(jax, f, X)
    operations = lambda t: re.findall(r"= (\w+)", t.replace("let jaxpr = ", "").replace(
        "jaxpr = {", "").replace("jaxpr={", ""))
    inside = minijax.make_jaxpr(f(minijax))(X).eqns[-1].params
    assert sorted(operations(ours)) == sorted(operations(theirs))
    assert inside["differentiated"] is True and inside["prevent_cse"] is True


# --- Compositions ---------------------------------------------------------------------------------

def remat_of(lib, f):
    return lib.checkpoint(f)


WAYS = TRANSFORMATIONS | {"remat": remat_of}


@pytest.mark.parametrize("names", [("remat",), ("remat", "remat"), *(
    t for t in product(WAYS, repeat=2) if t.count("remat") == 1)], ids="∘".join)
@pytest.mark.parametrize("program", PROGRAMS[::2], ids=lambda p: p.__name__)
def test_equals_jax(program, names):
    ours = towering(minijax, program, names)(minijax.numpy.asarray(X))
    with jax.disable_jit():
        theirs = towering(jax, program, [n for n in names if n != "remat"])(jax.numpy.asarray(X))
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


def towering(lib, program, names):
    f = lambda x: program(lib, x)
    for name in reversed(names):
        f = WAYS[name](lib, f)
    return f


@pytest.mark.parametrize("names", [
    ("jit", "grad", "remat", "vmap", "remat"), ("grad", "remat", "jit", "remat", "grad"),
    ("remat", "grad", "remat", "grad", "remat"), ("vmap", "grad", "jit", "remat", "jvp"),
    ("linearize", "remat", "remat", "grad"), ("grad", "remat", "linearize", "remat")], ids="∘".join)
def test_deep_towers(names):
    for program in PROGRAMS[1], PROGRAMS[2], PROGRAMS[9]:
        with enable_checks(True):
            ours = towering(minijax, program, names)(minijax.numpy.asarray(X))
        plain = transformed(jax, program, [n for n in names if n != "remat"])
        with jax.disable_jit():
            np.testing.assert_allclose(ours, plain(jax.numpy.asarray(X)), rtol=5e-4, atol=5e-5)


def test_closes_over_outer_tracers():
    def f(lib):
        def outer(x, y):
            inner = lib.checkpoint(lambda z: lib.numpy.sin(z * y) * x)
            return lib.numpy.sum(inner(x) + lib.jit(inner)(y))
        return lib.vmap(lib.grad(outer, argnums=(0, 1)), in_axes=(0, None))
    same(f, np.stack([X, X * 2, X - 1]), X)


# --- Loops and branches ---------------------------------------------------------------------------

def loop_of_checkpoints(lib):
    def loss(x, w):
        body = lib.checkpoint(lambda c, w: lib.numpy.sin(c @ w), prevent_cse=False)
        c, ys = lib.lax.scan(lambda c, _: (body(c, w), c.sum()), x, None, length=4)
        return (c * c).sum() + ys.sum()
    return lib.grad(loss, argnums=(0, 1))


def checkpoint_of_loop(lib, policy=None):
    def inside(x, w):
        c, ys = lib.lax.scan(lambda c, _: (lib.numpy.sin(c @ w), c.sum()), x, None, length=4)
        return (c * c).sum() + ys.sum()
    f = lib.checkpoint(inside, policy=policy)
    return lib.grad(lambda x, w: f(lib.numpy.sin(x), w), argnums=(0, 1))


def checkpoint_of_branch(lib):
    def inside(x):
        return lib.lax.cond(x.sum() > 1, lambda x: lib.numpy.sin(x) * x, lambda x: x * 3.0, x).sum()
    return lib.grad(lambda x, w: lib.checkpoint(inside)(x * x) * w[0, 0])


def branch_of_checkpoints(lib):
    inside = lib.checkpoint(lambda x: (lib.numpy.sin(x) * x).sum())
    return lib.grad(lambda x, w: lib.lax.cond(x.sum() > 1, inside, lambda x: x.sum() * w[0, 1], x * x))


def checkpoint_of_while(lib):
    def inside(x):
        turn = lambda c: (c[0] + 1, lib.numpy.sin(c[1]))
        return lib.lax.while_loop(lambda c: c[0] < 3, turn, (0, x))[1].sum()
    return lambda x, w: lib.jvp(lib.checkpoint(inside), (x,), (w[0],))


def all_levels(lib):
    """A checkpoint in a loop in a checkpoint, differentiated twice."""
    def inside(x):
        step = lambda c, _: (lib.checkpoint(lib.numpy.sin)(c) * x, c.sum())
        c, ys = lib.lax.scan(step, x, None, length=3)
        return (c * c).sum() + ys.sum()
    return lambda x, w: lib.hessian(lambda x: lib.checkpoint(inside)(lib.numpy.sin(x)))(x)


LOOPS = [loop_of_checkpoints, checkpoint_of_loop, checkpoint_of_branch, branch_of_checkpoints,
         checkpoint_of_while, all_levels]


@pytest.mark.parametrize("how", ["eager", "jit", "vmap"])
@pytest.mark.parametrize("program", LOOPS, ids=lambda p: p.__name__)
def test_loops_and_branches(program, how):
    w = np.arange(9, dtype=np.float32).reshape(3, 3) / 9 - 0.3
    if how == "vmap":
        same(lambda lib: lib.vmap(program(lib), in_axes=(0, None)), np.stack([X, -0.1 * X]), w)
    else:
        same(lambda lib: (lib.jit if how == "jit" else lambda f: f)(program(lib)), X, w)


@pytest.mark.parametrize("policy", ["dots", "everything", "nothing"])
def test_a_policy_around_a_loop(policy):
    w = np.arange(9, dtype=np.float32).reshape(3, 3) / 9 - 0.3
    same(lambda lib: checkpoint_of_loop(lib, POLICIES[policy](lib.checkpoint_policies)), X, w)


# --- Policies inside loops, branches and rules ----------------------------------------------------

def named(lib):
    return lib.ad_checkpoint.checkpoint_name


def scan_named(lib, x, w):
    np_ = lib.numpy
    def body(c, _):
        h = named(lib)(np_.sin(c @ w), "hidden")
        return np_.sin(h * 2.0), h.sum()
    c, ys = lib.lax.scan(body, x, None, length=4)
    return (c*c).sum() + ys.sum()


def scan_xs(lib, x, w):
    np_ = lib.numpy
    def body(c, r):
        h = named(lib)(np_.cos(c * r) , "hidden")
        p = named(lib)(h @ w, "product")
        return np_.sin(p), np_.exp(r)*h
    c, ys = lib.lax.scan(body, x, np_.sin(w), reverse=True)
    return (c*c).sum() + ys.sum()


def scan_invariant(lib, x, w):
    np_ = lib.numpy
    def body(c, _):
        h = named(lib)(np_.sin(w), "hidden")
        return np_.sin(c @ h), None
    return lib.lax.scan(body, x, None, length=4)[0].sum()


def cond_named(lib, x, w):
    np_ = lib.numpy
    def yes(x):
        return np_.sin(named(lib)(np_.sin(x @ w), "hidden"))
    def no(x):
        return np_.exp(named(lib)(x @ w, "product"))
    y = lib.lax.cond(x.sum() > 1, yes, no, x)
    return (y*y).sum()


def scan_in_scan(lib, x, w):
    np_ = lib.numpy
    def outer(c, _):
        def inner(d, r):
            return np_.sin(named(lib)(np_.sin(d @ w), "hidden") * r), None
        d = lib.lax.scan(inner, c, w)[0]
        return named(lib)(d*2., "product"), d.sum()
    c, ys = lib.lax.scan(outer, x, None, length=2)
    return c.sum() + ys.sum()


def cond_in_scan(lib, x, w):
    np_ = lib.numpy
    def body(c, r):
        yes = lambda c: np_.sin(named(lib)(c @ w, "product"))
        no = lambda c: named(lib)(np_.cos(c), "hidden") * r
        y = lib.lax.cond(c.sum() > 0.5, yes, no, c)
        return y, np_.sin(y)
    c, ys = lib.lax.scan(body, x, w)
    return c.sum() + ys.sum()


def jit_in_scan(lib, x, w):
    np_ = lib.numpy
    f = lib.jit(lambda c, w: np_.sin(named(lib)(np_.sin(c @ w), "hidden")))
    c, ys = lib.lax.scan(lambda c, r: (f(c, w) * r, c), x, w)
    return c.sum() + (ys*ys).sum()


def scan_in_jit(lib, x, w):
    return lib.jit(lambda x: scan_named(lib, x, w))(x)


def remat_in_scan(lib, x, w):
    np_ = lib.numpy
    f = lib.checkpoint(lambda c: np_.sin(named(lib)(np_.sin(c @ w), "hidden")))
    c, ys = lib.lax.scan(lambda c, r: (f(c) * r, c), x, w)
    return c.sum() + (ys*ys).sum()


def inner_policy(lib, x, w):
    np_ = lib.numpy
    f = lib.checkpoint(lambda c: np_.sin(named(lib)(np_.sin(c @ w), "hidden")),
                       policy=lib.checkpoint_policies.save_only_these_names("hidden"))
    c, ys = lib.lax.scan(lambda c, r: (f(c) * r, c), x, w)
    return c.sum() + (ys*ys).sum()


def while_inside(lib, x, w):
    np_ = lib.numpy
    n = lib.lax.while_loop(lambda c: c < 5., lambda c: c*2+1., lib.lax.stop_gradient(x.sum()))
    return np_.sin(x * n).sum()


def fori(lib, x, w):
    return lib.lax.fori_loop(0, 3, lambda i, c: named(lib)(lib.numpy.sin(c @ w), "hidden"), x).sum()


def custom_jvp(lib, x, w):
    @lib.custom_jvp
    def f(x): return lib.numpy.sin(x)
    f.defjvp(lambda p, t: (lib.numpy.sin(p[0]), named(lib)(lib.numpy.cos(p[0]), "hidden")*t[0]))
    c, _ = lib.lax.scan(lambda c, _: (f(c @ w), None), x, None, length=3)
    return c.sum() + f(x*2).sum()


def custom_vjp(lib, x, w):
    @lib.custom_vjp
    def f(x): return lib.numpy.sin(x)
    f.defvjp(lambda x: (lib.numpy.sin(x), named(lib)(lib.numpy.cos(x), "hidden")), lambda c, t: (c*t,))
    c, _ = lib.lax.scan(lambda c, _: (f(c @ w), None), x, None, length=3)
    return c.sum() + f(x*2).sum()


def relu_net(lib, x, w):
    def body(c, _): return lib.nn.relu(named(lib)(c @ w, "product")), None
    return lib.lax.scan(body, x, None, length=3)[0].sum()


def vmapped(lib, x, w):
    f = lambda x: scan_named(lib, x, w)
    return lib.vmap(f)(lib.numpy.stack([x, x*2])).sum()


def mapped(lib, x, w):
    return lib.lax.map(lambda r: lib.numpy.sin(named(lib)(lib.numpy.sin(r), "hidden")), w).sum()*x.sum()


def index_again(lib, x, w):
    i = lib.numpy.argmax(lib.numpy.sin(x))
    squared = lambda x: named(lib)(lib.numpy.cos(x), "hidden") ** 2
    y = lib.lax.switch(i, [lib.numpy.sin, squared, lambda x: x @ w], x * 2)
    return y.sum()


def ys_only(lib, x, w):
    _, ys = lib.lax.scan(lambda c, r: (c+1., named(lib)(lib.numpy.sin(r*c), "hidden")), 0., w)
    return lib.numpy.sin(ys).sum()*x.sum()


def named_carry(lib, x, w):
    c, _ = lib.lax.scan(lambda c, r: (named(lib)(lib.numpy.sin(c*r), "hidden"), None), x, w)
    return lib.numpy.sin(c).sum()


INSIDE = [scan_named, scan_xs, scan_invariant, cond_named, scan_in_scan, cond_in_scan, jit_in_scan,
          scan_in_jit, remat_in_scan, inner_policy, while_inside, fori, custom_jvp, custom_vjp,
          relu_net, vmapped, mapped, index_again, ys_only, named_carry]


def inside(lib, program, policy):
    policy = POLICIES[policy](lib.checkpoint_policies)
    return lib.checkpoint(lambda x, w: program(lib, lib.numpy.sin(x), w), policy=policy)


@pytest.mark.parametrize("policy", ["everything", "dots", "hidden"])
@pytest.mark.parametrize("program", INSIDE, ids=lambda p: p.__name__)
def test_a_policy_reaches_inside_as_in_jax(program, policy):
    """The types of all residuals are those of JAX, and so are the gradients."""
    w = np.arange(9, dtype=np.float32).reshape(3, 3) / 9 - 0.3
    ours, theirs = [[t for t, _ in residuals(lib, inside(lib, program, policy), X, w)]
                    for lib in (minijax, jax)]
    assert ours == theirs
    gradient = lambda lib: lib.grad(inside(lib, program, policy), argnums=(0, 1))
    same(gradient, X, w)
    for a, b in zip(minijax.jit(gradient(minijax))(X, w), gradient(minijax)(X, w)):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("way", ["vmap", "hessian", "jvp of grad", "scan"])
@pytest.mark.parametrize("program", [scan_xs, cond_in_scan, scan_in_scan], ids=lambda p: p.__name__)
def test_a_policy_inside_under_transformations(program, way):
    def f(lib):
        g = inside(lib, program, "hidden")
        if way == "vmap":
            return lib.vmap(lib.grad(g), in_axes=(0, None))
        if way == "hessian":
            return lambda x, w: lib.hessian(g)(x[0], w)
        if way == "jvp of grad":
            return lambda x, w: lib.jvp(lambda x: lib.grad(g)(x, w), (x[0],), (x[1],))
        return lib.grad(lambda x, w: lib.lax.scan(
            lambda c, r: (c + g(r, w), None), 0.0, x)[0], argnums=(0, 1))
    w = np.arange(9, dtype=np.float32).reshape(3, 3) / 9 - 0.3
    same(f, np.stack([X, -0.1 * X]), w)


def test_what_is_saved_in_a_turn_is_stacked_and_not_computed_again():
    def f(x, w):
        turn = lambda c, _: (minijax.numpy.tanh(named(minijax)(c @ w, "product")), None)
        return minijax.lax.scan(turn, x, None, length=5)[0].sum()

    def products(policy):
        g = minijax.grad(minijax.checkpoint(f, policy=policy), argnums=(0, 1))
        return count("dot_general", minijax.make_jaxpr(g)(X, np.eye(3, dtype=np.float32)))
    assert products(None) == 4
    assert products(minijax.checkpoint_policies.save_only_these_names("product")) == 3


@LIBRARIES
def test_offloaded_values_are_kept(lib):
    """JAX shows a transfer; values, and how many are kept, are the same on a CPU."""
    policies = lib.checkpoint_policies
    for policy, saved in (
            (policies.offload_dot_with_no_batch_dims("device", "pinned_host"), 2),
            (policies.save_and_offload_only_these_names(
                names_which_can_be_saved=["product"], names_which_can_be_offloaded=["hidden"],
                offload_src="device", offload_dst="pinned_host"), 2)):
        f = lib.checkpoint(partial(network, lib), policy=policy)
        args = network_arguments()
        kept = [t for t, s in residuals(lib, f, *args) if "argument" not in s]
        assert len(kept) == saved
        for a, b in zip(lib.grad(f, argnums=(0, 1, 2))(*args),
                        jax.grad(partial(network, jax), argnums=(0, 1, 2))(*args)):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    with pytest.raises(ValueError):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"],
            offload_src="device", offload_dst="pinned_host")


# --- Trees, constants, integers -------------------------------------------------------------------

def test_trees_keywords_and_integers():
    def f(lib):
        def inner(tree, n, *, scale):
            return {"out": lib.numpy.sin(tree["a"]) * scale * tree["b"][0], "n": n + 1}
        g = lib.checkpoint(inner)
        return lambda a, b: lib.grad(lambda a: lib.numpy.sum(
            g({"a": a, "b": [b]}, 3, scale=2.0)["out"]))(a)
    same(f, X, X)
    out = minijax.checkpoint(lambda n: (n, 2 * n))(3)
    assert out == (3, 6) and out[0].dtype == "int32"


def test_a_residual_that_is_an_integer():
    def f(lib):
        def inner(x):
            order = lib.numpy.argmax(x)
            return lib.numpy.sin(x)[order] * lib.numpy.cumsum(x)
        policy = lambda primitive, *_, **__: primitive.name == "argmax"
        return lib.grad(lambda x: lib.numpy.sum(lib.checkpoint(inner, policy=policy)(x)))
    same(f, X)


def test_nothing_is_computed_twice_that_a_policy_saves():
    f = with_policy(minijax, "dots")
    program = minijax.make_jaxpr(minijax.grad(f))(*network_arguments())
    backward = program.eqns[-1].params["jaxpr"]
    forward = [e for e in program.eqns if e.primitive.name == "dot_general"]
    assert len(forward) == 1                        # the other is in the jitted part
    assert [e.primitive.name for e in backward.eqns].count("dot_general") == 1


# --- Compiled -------------------------------------------------------------------------------------

def deep(lib, prevent_cse=True):
    def f(x):
        for _ in range(3):
            x = lib.checkpoint(lambda x: lib.numpy.sin(lib.numpy.sin(x)), prevent_cse=prevent_cse)(x)
        return lib.numpy.sum(x)
    return f


def count(name, jaxpr):
    return sum((e.primitive.name == name) + sum(count(name, j) for _, j in jaxprs_in_params(e.params))
               for e in open_jaxpr(jaxpr).eqns)


@pytest.mark.parametrize("prevent_cse, sines", [(True, 9), (False, 6), ((True,), 9), ((False,), 6)])
def test_recomputation_survives_the_compiler(prevent_cse, sines):
    closed = minijax.make_jaxpr(minijax.value_and_grad(deep(minijax, prevent_cse)))(X)
    assert count("sin", closed) == 9
    assert count("sin", run_passes(closed)["common_subexpressions"]) == sines


def test_recomputation_comes_after_the_forward_part():
    """By the order of steps: a barrier stands between them and waits for the cotangent."""
    f = minijax.value_and_grad(deep(minijax))
    text = minijax.jit(f).lower(X).as_text("ir")
    barriers = [line for line in text.splitlines() if "optimization_barrier(" in line]
    assert len(barriers) == 3
    np.testing.assert_allclose(minijax.jit(f)(X)[1], f(X)[1], rtol=1e-6)


@pytest.mark.parametrize("n", [8, 32])
def test_parts_of_a_shared_gradient_are_added_up_as_they_come(n):
    """The gradient of weights is a sum over layers; its parts do not wait for the last of them."""
    def f(x, w):
        for _ in range(n):
            x = minijax.checkpoint(lambda x, w: minijax.numpy.tanh(x @ w))(x, w)
        return x.sum()

    def needs(argnums):
        compiled = minijax.jit(minijax.grad(f, argnums)).lower(x, w).compile()
        return compiled.memory_analysis().temp_size_in_bytes / x.nbytes
    x, w = np.ones((32, 32), np.float32), np.eye(32, dtype=np.float32) / 2
    assert needs((0, 1)) <= needs(0) + 4
    for a, b in zip(minijax.jit(minijax.grad(f, (0, 1)))(x, w), minijax.grad(f, (0, 1))(x, w)):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_scan_backwards_adds_up_in_its_carry():
    def f(n):
        def g(w):
            turn = lambda c, _: (minijax.numpy.tanh(c @ w), None)
            return minijax.lax.scan(turn, minijax.numpy.ones(64), None, length=n)[0].sum()
        compiled = minijax.jit(minijax.grad(g)).lower(np.eye(64, dtype=np.float32)).compile()
        return compiled.memory_analysis().temp_size_in_bytes
    rows = 2 * 64 * 4                    # at most two residuals a turn, no part of w's size
    assert f(200) - f(100) <= 100 * rows


# --- The barrier ----------------------------------------------------------------------------------

def test_optimization_barrier_like_jax():
    f = lambda lib: lambda x, y: lib.lax.optimization_barrier({"a": x, "b": [y, 2.0]})
    same(f, X, X)
    assert text(minijax, f, X, X) == text(jax, f, X, X)
    g = lambda lib: lib.grad(lambda x: lib.numpy.sum(lib.lax.optimization_barrier((x, x * x))[1]))
    same(g, X)
    same(lambda lib: lib.vmap(lambda x, y: lib.lax.optimization_barrier((x, y)), in_axes=(0, None)),
         X, X)
    assert minijax.lax.optimization_barrier([]) == []


# --- Static arguments and errors ------------------------------------------------------------------

@LIBRARIES
def test_static_arguments(lib):
    @partial(lib.checkpoint, static_argnums=(1, -1))
    def f(x, double, names):
        assert names == ["a list can't be hashed"]
        return lib.numpy.sin(x) * 2.0 if double else lib.numpy.sin(x)
    for double in (True, False, 1):
        np.testing.assert_allclose(lib.grad(f)(0.5, double, ["a list can't be hashed"]),
                                   np.cos(0.5) * (1 + double), rtol=1e-6)


def test_static_argument_names():
    """JAX 0.10 takes static_argnames, and traces the arguments all the same."""
    @partial(minijax.checkpoint, static_argnames=("double", "power"))
    def f(x, double, *, power=1):
        return minijax.numpy.sin(x) ** power * (2.0 if double else 1.0)
    assert minijax.grad(f)(0.0, True) == minijax.grad(f)(0.0, double=True) == 2.0
    assert minijax.grad(f)(0.0, False) == 1.0
    assert minijax.jit(minijax.grad(f), static_argnums=1)(0.0, False) == 1.0
    assert f(0.5, False, power=2) == minijax.numpy.sin(0.5) ** 2
    with pytest.raises(ValueError, match="no argument 'doble'"):
        minijax.checkpoint(f, static_argnames="doble")


@pytest.mark.parametrize("name", ["checkpoint", "remat"])
def test_signatures_are_those_of_jax(name):
    ours, theirs = [inspect.signature(getattr(lib, name)).parameters for lib in (minijax, jax)]
    assert list(ours) == list(theirs)
    for a, b in zip(ours.values(), theirs.values()):
        assert a.kind == b.kind and (a.name == "concrete" or a.default == b.default)


def test_one_trace_for_arguments_of_a_kind():
    calls = []
    f = minijax.checkpoint(lambda x, n: (calls.append(n), x * n)[1], static_argnums=1)
    assert [f(2.0, 3), f(3.0, 3), f(2.0, 3.0), f(2.0, True)] == [6.0, 9.0, 6.0, 2.0]
    assert calls == [3, 3.0, True] and type(calls[1]) is float
    minijax.clear_caches()
    f(2.0, 3)
    assert len(calls) == 4


BAD = {
    "prevent_cse": lambda lib: lib.checkpoint(lib.numpy.sin, prevent_cse=3),
    "concrete": lambda lib: lib.checkpoint(lib.numpy.sin, concrete=True),
    "no such argument": lambda lib: lib.checkpoint(lib.numpy.sin, static_argnums=3)(1.0),
    "if": lambda lib: lib.checkpoint(lambda x: x if x > 0 else -x)(1.0),
    "a string": lambda lib: lib.checkpoint(lib.numpy.sin)("x"),
    "no policy": lambda lib: lib.grad(lib.checkpoint(lib.numpy.sin, policy=3))(1.0),
    "policy's answer": lambda lib: lib.grad(lib.checkpoint(
        lib.numpy.sin, policy=lambda *_, **__: "yes"))(1.0),
    "both": lambda lib: lib.grad(lib.checkpoint(lib.numpy.sin, policy=(
        lib.checkpoint_policies.save_from_both_policies(lambda *_, **__: 1, lambda *_, **__: 0)
    )))(1.0),
}


@pytest.mark.parametrize("what", BAD)
def test_errors_are_of_jaxs_type(what):
    with pytest.raises(Exception) as theirs:
        BAD[what](jax)
    with pytest.raises(Exception) as ours:
        BAD[what](minijax)
    names = [c.__name__ for c in type(ours.value).__mro__]
    assert type(theirs.value).__name__ in names
    assert minijax.core.get_current_trace() is minijax.core.eval_trace


def test_messages():
    with pytest.raises(minijax.errors.TracerBoolConversionError) as caught:
        minijax.checkpoint(lambda x: x if x > 0 else -x)(1.0)
    assert "checkpoint(…, static_argnums=…)" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="prevent_cse must be a bool or a prefix"):
        minijax.checkpoint(lambda x, y: x * y, prevent_cse=(True,))(1.0, 2.0)
    with pytest.raises(TypeError, match="must return True .* got 'yes'"):
        BAD["policy's answer"](minijax)


def test_an_error_inside_leaves_nothing_behind():
    @minijax.checkpoint
    def f(x):
        raise KeyboardInterrupt
    for transform in (minijax.grad, minijax.vmap, minijax.jit, minijax.make_jaxpr):
        with pytest.raises(KeyboardInterrupt):
            transform(f)(X[0] if transform is minijax.grad else X)
        assert minijax.core.get_current_trace() is minijax.core.eval_trace
        assert minijax.core.user_source().code.co_name == (
            "test_an_error_inside_leaves_nothing_behind")


def test_every_equation_remembers_its_line():
    """An inner program that is run again keeps the places it was written at."""
    def f(x):
        return minijax.numpy.sin(x)
    program = minijax.make_jaxpr(minijax.grad(minijax.checkpoint(minijax.jit(f))))(1.0)
    backward = program.eqns[-1].params["jaxpr"]
    inner = [e for e in backward.eqns if e.primitive.name == "jit"][0].params["jaxpr"]
    assert {e.source_info.code.co_name for e in inner.eqns} == {"f"}


def test_effects_within_happen_once():
    """JAX has them again when it computes again."""
    seen = []

    def f(x):
        minijax.debug.callback(lambda v: seen.append(float(v)), x)
        return minijax.numpy.sin(minijax.numpy.sin(x))
    for wrap in (lambda g: g, minijax.jit):
        seen.clear()
        wrap(minijax.grad(minijax.checkpoint(f)))(1.0)
        minijax.effects_barrier()
        assert seen == [1.0]
