"""Primitives and interpreters as JAX's users define them: the same program with either library."""
import importlib
from functools import partial

import jax
import numpy as np
import pytest

import minijax

F = np.float32
X, Y, Z = (np.linspace(0.5, 2, 4, dtype=F) * k for k in (1, 2, -3))


def parts(lib):
    """The modules that such programs import."""
    name = lib.__name__
    return [importlib.import_module(f"{name}.{part}") for part in (
        "extend.core", "interpreters.ad", "interpreters.batching", "interpreters.mlir",
        "interpreters.xla")]


def scaled_sum(lib, name):
    """x scale + y, a primitive with a parameter, defined with every kind of rule."""
    core, ad, batching, mlir, _ = parts(lib)
    p = core.Primitive(name)

    def scaled(x, y, scale=2.0):
        return p.bind(x, y, scale=scale)

    p.def_impl(lambda x, y, *, scale: np.asarray(x) * F(scale) + np.asarray(y))

    @p.def_abstract_eval
    def abstract(x, y, *, scale):
        assert x.shape == y.shape
        return lib.core.ShapedArray(x.shape, x.dtype)

    def jvp(primals, tangents, *, scale):
        tangents = [lib.numpy.zeros_like(x) if type(t) is ad.Zero else t
                    for x, t in zip(primals, tangents)]
        return scaled(*primals, scale), scaled(*tangents, scale)

    def transpose(ct, x, y, *, scale):
        if type(ct) is ad.Zero:
            return None, None
        return (scaled(ct, lib.numpy.zeros_like(ct), scale) if ad.is_undefined_primal(x) else None,
                ct if ad.is_undefined_primal(y) else None)

    def batch(vals, dims, *, scale):
        size = next(x.shape[d] for x, d in zip(vals, dims) if d is not None)
        vals = [batching.bdim_at_front(x, d, size) for x, d in zip(vals, dims)]
        return scaled(*vals, scale), 0

    ad.primitive_jvps[p] = jvp
    ad.primitive_transposes[p] = transpose
    batching.primitive_batchers[p] = batch
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, *, scale: x * F(scale) + y, False))
    return scaled, p


@pytest.fixture
def names():
    """Fresh names, forgotten afterwards."""
    before = dict(minijax.core.primitives)
    yield iter(f"scaled_{i}" for i in range(9))
    for name in minijax.core.primitives.keys() - before.keys():
        del minijax.core.primitives[name]


USES = {
    "eager": lambda lib, f: f(X, Y),
    "jit": lambda lib, f: lib.jit(f)(X, Y),
    "grad": lambda lib, f: lib.grad(lambda x: lib.numpy.sum(f(lib.numpy.sin(x), x) ** 2))(X),
    "jit of grad": lambda lib, f: lib.jit(lib.grad(lambda x: lib.numpy.sum(f(x, Y) ** 2)))(X),
    "jvp": lambda lib, f: lib.jvp(f, (X, Y), (Y, X))[1],
    "vmap": lambda lib, f: lib.vmap(f, (0, None))(np.stack([X, Y]), Y),
    "vmap of grad of jit": lambda lib, f: lib.vmap(lib.grad(lambda x: lib.numpy.sum(
        lib.jit(f)(x, Y) ** 2)))(np.stack([X, Z])),
    "hessian": lambda lib, f: lib.hessian(lambda x: lib.numpy.sum(f(x, x * x) ** 2))(X),
    "scan": lambda lib, f: lib.lax.scan(lambda c, y: (f(c, y), c), X, np.stack([Y, Z]))[0],
}


@pytest.mark.parametrize("use", USES)
def test_a_primitive_of_ones_own(use, names):
    got = USES[use](minijax, scaled_sum(minijax, next(names))[0])
    want = USES[use](jax, scaled_sum(jax, "scaled")[0])
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert isinstance(got, minijax.Array)


def test_rules_may_be_missing(names):
    core, *_ = parts(minijax)
    p = core.Primitive(next(names))
    with pytest.raises(NotImplementedError, match="impl"):
        p.bind(X)
    p.def_impl(lambda x: np.asarray(x))
    assert isinstance(p.bind(X), minijax.Array)
    with pytest.raises(NotImplementedError, match="abstract_eval"):
        minijax.jit(p.bind)(X)
    p.def_abstract_eval(lambda x: x)
    for use, kind in ((lambda: minijax.jit(p.bind)(X), "lowering"),
                      (lambda: minijax.jvp(p.bind, (X,), (X,)), "jvp"),
                      (lambda: minijax.vmap(p.bind)(X), "batch")):
        with pytest.raises(NotImplementedError, match=kind):
            use()


def test_several_results_and_an_implementation_by_lowering(names):
    def define(lib, name):
        core, _, _, mlir, xla = parts(lib)
        p = core.Primitive(name)
        p.multiple_results = True
        p.def_abstract_eval(lambda x: [x, x])
        mlir.register_lowering(p, mlir.lower_fun(lambda x: [lib.numpy.sin(x), x + 1]))
        p.def_impl(partial(xla.apply_primitive, p))
        return p
    ours, theirs = define(minijax, next(names)), define(jax, "two_results")
    for run in (lambda lib, p: p.bind(lib.numpy.asarray(X)), lambda lib, p: lib.jit(p.bind)(X)):
        for a, b in zip(run(minijax, ours), run(jax, theirs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_lower_fun_of_a_function_with_calls_and_constants(names):
    core, _, _, mlir, _ = parts(minijax)
    p = core.Primitive(next(names))
    p.def_abstract_eval(lambda x: x)
    inner = minijax.jit(lambda x: x * Y)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: inner(x) + minijax.jit(inner)(Z), False))
    np.testing.assert_allclose(minijax.jit(lambda x: p.bind(x * 2))(X), X * 2 * Y + Z * Y, rtol=1e-6)


def test_a_platform_that_is_not_here_is_ignored(names):
    core, _, _, mlir, _ = parts(minijax)
    p = core.Primitive(next(names))
    mlir.register_lowering(p, "a rule for another machine", platform="tpu")
    assert "lowering" not in p.rules


def test_a_name_of_the_librarys_stays_the_librarys():
    before = minijax.core.primitives["mul"]
    parts(minijax)[0].Primitive("mul")
    assert minijax.core.primitives["mul"] is before
    assert float(minijax.grad(lambda x: x * x)(3.0)) == 6.0


# --- Tables ---------------------------------------------------------------------------------------

def test_tables_are_views(names):
    _, p = scaled_sum(minijax, next(names))
    _, ad, batching, *_ = parts(minijax)
    for table, kind in ((ad.primitive_jvps, "jvp"), (ad.primitive_transposes, "transpose"),
                        (batching.fancy_primitive_batchers, "batch")):
        assert table[p] is p.rules[kind] and p in table and p in list(table)
        assert len(table) == len(list(table)) > 30
        del table[p]
        assert p not in table and kind not in p.rules
        for missing in (lambda: table[p], lambda: table.__delitem__(p)):
            with pytest.raises(KeyError):
                missing()
        assert table.get(p) is None


def test_batch_rules_of_the_library_can_be_called_as_in_jax():
    """JAX's table can be written only, these days; other tables of its can be read."""
    rule = parts(minijax)[2].primitive_batchers[minijax.lax.neg_p]
    out, dim = rule((minijax.numpy.ones((2, 3)),), (1,))
    assert out.shape == (2, 3) and dim == 1


def test_a_rule_put_into_a_table_counts_at_once(names):
    scaled, p = scaled_sum(minijax, next(names))
    _, ad, *_ = parts(minijax)
    slope = minijax.jit(lambda x: minijax.jvp(scaled, (x, x), (x, x))[1])
    np.testing.assert_allclose(slope(X), 3 * X)
    ad.primitive_jvps[p] = lambda primals, tangents, *, scale: (scaled(*primals), 7 * tangents[0])
    np.testing.assert_allclose(slope(X), 7 * X)


def test_makers(names):
    for lib in minijax, jax:
        core, ad, batching, mlir, _ = parts(lib)
        p = core.Primitive(next(names))
        p.def_impl(lambda x: np.asarray(x) * F(3))
        p.def_abstract_eval(lambda x: x)
        ad.deflinear2(p, lambda ct, x: [p.bind(ct)])
        batching.defvectorized(p)
        assert float(lib.grad(lambda x: p.bind(x) ** 2)(F(1))) == 18
        np.testing.assert_array_equal(lib.vmap(p.bind)(X), 3 * X)
        q = core.Primitive(next(names))
        q.def_impl(lambda x: np.exp(np.asarray(x)))
        ad.defjvp2(q, lambda t, out, x: t * out)
        np.testing.assert_allclose(lib.jvp(q.bind, (F(1),), (F(2),))[1], 2 * np.exp(F(1)), rtol=1e-6)


# --- Interpreters ---------------------------------------------------------------------------------

INVERSE = {"exp": "log", "tanh": "arctanh", "sinh": "arcsinh", "neg": "negative"}


def evaluate(lib, jaxpr, consts, *args, log=None):
    core = parts(lib)[0]
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
    read = lambda v: v.val if type(v) is core.Literal else env[v]
    for eqn in jaxpr.eqns:
        if log is not None:
            log.append((eqn.primitive.name, [v.aval.shape for v in eqn.outvars]))
        outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))
    return [read(v) for v in jaxpr.outvars]


def invert(lib, f):
    """The inverse of a chain of invertible functions, by walking its jaxpr backwards."""
    def inverse(y):
        closed = lib.make_jaxpr(f)(y)
        env = {closed.jaxpr.outvars[0]: y}
        for eqn in closed.jaxpr.eqns[::-1]:
            if eqn.primitive.name not in INVERSE:
                raise NotImplementedError(eqn.primitive.name)
            step = getattr(lib.numpy, INVERSE[eqn.primitive.name])
            env[eqn.invars[0]] = step(env[eqn.outvars[0]])
        return env[closed.jaxpr.invars[0]]
    return inverse


@pytest.mark.parametrize("lib", [minijax, jax], ids=["minijax", "jax"])
def test_an_evaluating_interpreter(lib):
    np_ = lib.numpy
    f = lambda x, y: np_.tanh(np_.dot(x, y) + X[0]) * np_.sum(y)
    closed, log = lib.make_jaxpr(f)(X, Y), []
    assert list(closed.literals) == list(closed.consts)
    assert closed.replace(jaxpr=closed.jaxpr.replace(eqns=[])).jaxpr.eqns == []
    assert closed.replace().consts == closed.consts and closed.replace().jaxpr is closed.jaxpr
    (out,) = evaluate(lib, closed.jaxpr, closed.literals, X, Y, log=log)
    np.testing.assert_allclose(out, f(X, Y), rtol=1e-6)
    assert ("tanh", [()]) in log
    np.testing.assert_allclose(lib.core.eval_jaxpr(closed.jaxpr, closed.consts, X, Y)[0], out)
    np.testing.assert_allclose(parts(lib)[0].jaxpr_as_fun(closed)(X, Y)[0], out)


@pytest.mark.parametrize("lib", [minijax, jax], ids=["minijax", "jax"])
def test_an_inverting_interpreter(lib):
    f = lambda x: lib.numpy.exp(lib.numpy.tanh(lib.numpy.sinh(x)))
    g = invert(lib, f)
    np.testing.assert_allclose(g(f(F(0.5))), 0.5, rtol=1e-5)
    np.testing.assert_allclose(lib.jit(lib.vmap(lib.grad(g)))(np.array([1.5], F)),
                               1 / lib.vmap(lib.grad(f))(g(np.array([1.5], F))), rtol=1e-4)
    with pytest.raises(NotImplementedError, match="cos"):
        invert(lib, lib.numpy.cos)(F(0))
    assert "log" in str(lib.make_jaxpr(g)(F(1.5)))


NAMES = {
    "core": "AbstractValue ShapedArray Trace Tracer ensure_compile_time_eval eval_context eval_jaxpr",
    "extend.core": """ClosedJaxpr Effect Jaxpr JaxprEqn JaxprTypeError Literal Primitive Var check_jaxpr
        concrete_or_error jaxpr_as_fun jaxprs_in_params mapped_aval new_jaxpr_eqn no_effects primitives
        set_current_trace subjaxprs unmapped_aval valid_jaxtype""",
    "interpreters.ad": """JVPTrace JVPTracer UndefinedPrimal Zero add_jaxvals add_jaxvals_p add_tangents
        defbilinear defjvp defjvp2 deflinear deflinear2 get_primitive_transpose instantiate_zeros is_undefined_primal
        primitive_jvps primitive_transposes zeros_like_aval""",
    "interpreters.batching": """bdim_at_front broadcast defbroadcasting defreducer defvectorized
        fancy_primitive_batchers primitive_batchers""",
    "interpreters.mlir": "LoweringRuleContext lower_fun register_lowering",
    "interpreters.xla": "apply_primitive",
    "extend.core.primitives": """add_p mul_p scatter_add_p jit_p cond_p while_p scan_p select_n_p
        add_jaxvals_p remat_p linear_solve_p""",
    "stages": "ArgInfo Compiled Lowered Traced Wrapped",
    "test_util": "check_grads check_jvp check_vjp",
    "lax": "linear_solve_p platform_dependent",
    "flatten_util": "ravel_pytree",
    "typing": "ArrayLike DTypeLike",
}


@pytest.mark.parametrize("module", NAMES)
def test_names_are_those_of_jax(module):
    for name in NAMES[module].split():
        for lib in "jax", "minijax":
            assert hasattr(importlib.import_module(f"{lib}.{module}"), name), f"{lib}.{module}.{name}"


def test_primitives_have_jaxs_names():
    for name in ("add_jaxvals_p", "remat_p", "linear_solve_p", "jit_p", "scatter_add_p"):
        ours, theirs = (importlib.import_module(f"{lib}.extend.core").primitives for lib in ("minijax", "jax"))
        assert getattr(ours, name).name == getattr(theirs, name).name


@pytest.mark.parametrize("lib", [jax, minijax])
def test_effects_may_depend_on_types(lib, names):
    core = parts(lib)[0]
    loud = core.Effect("Loud") if lib is minijax else type("Loud", (core.Effect,), {})()
    p = core.Primitive(next(names))

    @p.def_effectful_abstract_eval
    def abstract(x):
        return x, {loud} if x.shape else set()

    both = lib.make_jaxpr(lambda x: (p.bind(x), p.bind(x[0]))[1])(X)
    assert [bool(e.effects) for e in both.eqns if e.primitive is p] == [True, False]
    assert both.effects == {loud} and p.get_bind_params({"k": 1}) == {"k": 1}


def test_small_tools():
    core = parts(minijax)[0]
    aval = minijax.core.ShapedArray((2, 3), F)
    assert core.mapped_aval(2, 0, aval).shape == (3,) and core.unmapped_aval(4, 1, aval).shape == (2, 4, 3)
    assert core.valid_jaxtype(1.0) and not core.valid_jaxtype("text")
    closed = minijax.make_jaxpr(minijax.jit(lambda x: minijax.jit(lambda y: y + 1)(x)))(1.0)
    (inner,) = core.subjaxprs(closed.jaxpr)
    assert isinstance(inner, core.Jaxpr) and [e.primitive for e in inner.eqns] == [core.primitives.jit_p]
    core.check_jaxpr(closed.jaxpr)
    with pytest.raises(AttributeError):
        core.primitives.no_such_p
    assert "add_p" in dir(core.primitives)
    with minijax.core.eval_context():
        assert minijax.core.get_current_trace() is minijax.core.eval_trace
