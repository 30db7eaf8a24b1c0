"""Printed programs are JAX's, letter by letter, where the equations are."""

import jax
import numpy as np
import pytest
from jax._src.core import ClosedJaxpr, Jaxpr

import minijax
from minijax.pretty_printer import Break, Group, Indent, Text, join, layout

# Parameters for many devices, which exist in JAX only, and those that JAX keeps for itself.
FOREIGN = {"sharding", "out_sharding", "update_consts", "update_jaxpr"}

PROGRAMS = {}


def program(*args):
    return lambda make: PROGRAMS.setdefault(make.__name__, (make, args))


def without_foreign(jaxpr, memo):
    """A program of JAX's without parameters that are JAX's only."""
    if isinstance(jaxpr, ClosedJaxpr):
        return jaxpr.replace(jaxpr=without_foreign(jaxpr.jaxpr, memo))
    if type(jaxpr) is tuple:
        return tuple(without_foreign(item, memo) for item in jaxpr)
    if not isinstance(jaxpr, Jaxpr):
        return jaxpr
    if jaxpr not in memo:
        memo[jaxpr] = jaxpr.replace(eqns=[eqn.replace(params={
            k: without_foreign(v, memo) for k, v in eqn.params.items()
            if k not in FOREIGN or eqn.primitive.name == "jit"}) for eqn in jaxpr.eqns])
    return memo[jaxpr]


def printed(lib, make, args, **options):
    jaxpr = lib.make_jaxpr(make(lib))(*args)
    if lib is jax:
        options = {"use_color": False} | options
    return (without_foreign(jaxpr, {}) if lib is jax else jaxpr).pretty_print(**options)


v, m, i = np.ones(4, np.float32), np.ones((2, 4), np.float32), np.arange(4, dtype=np.int32)


@program(1.0)
def elementwise(lib):
    return lambda x: lib.numpy.sin(x) * 2.5 + x ** 3 - lib.lax.clamp(0.0, x, 1.0)


@program(v, m)
def one_line(lib):
    return lambda x, y: lib.lax.cos(x)


@program(np.float32(1))
def literals(lib):
    return lambda x: (x * 2.1, x * np.float32(2.1), x > 3, lib.lax.convert_element_type(x, "int32") + 1)


@program(v)
def constants(lib):
    table = np.arange(4, dtype=np.float32)
    return lambda x: (x * table, lib.numpy.zeros(3), 2.0)


@program(v, i)
def nothing(lib):
    return lambda x, y: ()


@program(*[v] * 40)
def long_signature(lib):
    return lambda *args: args[::-1]


@program(*[v] * 30)
def long_equation(lib):
    return lambda *args: lib.lax.concatenate(args, 0)


@program(v)
def structural(lib):
    lax = lib.lax

    def f(x):
        y = lax.broadcast_in_dim(x, (3, 4), (1,))
        z = lax.transpose(lax.reshape(y, (4, 3)), (1, 0))
        return lax.rev(lax.pad(lax.slice(z, (0, 1), (3, 3)), 0.0, [(1, 1, 0), (0, 0, 1)]), (0,))
    return f


@program(m)
def reductions(lib):
    lax = lib.lax
    return lambda x: (lib.numpy.sum(x), lib.numpy.max(x, 1), lax.argmax(x, 0, np.int32),
                      lax.cumsum(x), lax.sort(x), lax.top_k(x, 2))


@program(m)
def products(lib):
    return lambda x: (x @ x.T, lib.lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,)))),
                      lib.lax.dot_general(x, x, (((1,), (1,)), ((), ())),
                                          preferred_element_type=np.dtype("float32")))


@program(v, i)
def indexing(lib):
    return lambda x, k: (x[k], x.at[k].add(1.0), lib.lax.dynamic_slice(x, (k[0],), (2,)))


@program(v)
def no_inputs(lib):
    return lambda x: x * lib.lax.iota(np.float32, 4)


@program(v)
def calls_share_a_program(lib):
    jit, cos = lib.jit, lib.lax.cos

    @jit
    def g(x):
        return cos(x)

    @jit
    def f(x):
        return g(x) * g(cos(x))

    return lambda x: f(f(x))


@program(v)
def long_call(lib):
    @lib.jit
    def g(x):
        for _ in range(12):
            x = lib.lax.sin(x)
        return x
    return lambda x: lib.lax.neg(g(x))


@program(v)
def calls_of_one_name(lib):
    def f(function):
        @lib.jit
        def g(x):
            return function(function(x))
        return g
    sin, cos = f(lib.lax.sin), f(lib.lax.cos)
    return lambda x: sin(sin(cos(cos(x))))


@program(v)
def names_of_programs_are_taken(lib):
    def a(x):
        return lib.lax.sin(x)
    jitted = lib.jit(a)
    return lambda x: jitted(jitted(x))


@program(v)
def call_with_unread_result(lib):
    return lambda x: lib.jit(lambda x, y: (lib.lax.sin(x), lib.lax.cos(y), y))(x, x)[0]


@program(1.0)
def loops(lib):
    lax = lib.lax
    return lambda x: (lax.while_loop(lambda x: x < 3, lambda x: x + 1, x),
                      lax.fori_loop(0, 5, lambda k, x: x * 2, x))


@program(v)
def scanned(lib):
    def f(c, x):
        return c * lib.lax.sin(x), (x, lib.lax.stop_gradient(c))
    return lambda x: lib.lax.scan(f, np.float32(1), x)[0]


@program(v)
def gradient_of_scan(lib):
    return lib.grad(lambda x: lib.lax.scan(lambda c, x: (c * x, c), np.float32(1), x)[0])


@program(2.0, v)
def gradient_of_weak_carries(lib):
    def final(x, rows):
        turn = lambda c, r: (lib.lax.sin(c) * 0.5, c)
        last, each = lib.lax.scan(turn, x, rows)
        return last + lib.numpy.sum(each)
    return lib.grad(final, (0, 1))


@program(2.0)
def known_scalars_converted(lib):
    lax = lib.lax

    def there_and_back(x):
        return lax.convert_element_type(lax.convert_element_type(x, "float16"), "float32")
    return lambda x: (lax.convert_element_type(2.0, "int32"), lib.grad(there_and_back)(x),
                      lib.jvp(there_and_back, (x,), (1.0,)), lib.grad(lib.numpy.sum)(x))


@program(2.0)
def branches(lib):
    lax = lib.lax
    return lambda x: (
        lax.cond(x > 0, lax.sin, lambda x: lax.cos(lax.exp(lax.neg(x))), x),
        lax.switch(lax.convert_element_type(x, "int32"), [lax.exp, lax.tan, lambda x: x], x))


@program(2.0)
def custom_rules(lib):
    @lib.custom_jvp
    def f(x):
        return lib.lax.sin(x)

    @f.defjvp
    def f_jvp(primals, tangents):
        return f(*primals), tangents[0]

    @lib.custom_vjp
    def g(x):
        return lib.lax.cos(x)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * x,))
    return lambda x: (f(g(x)), lib.grad(f)(x), lib.grad(g)(x))


@program(2.0)
def checkpoints(lib):
    def f(x):
        return lib.lax.sin(lib.lax.sin(x))
    return lib.value_and_grad(lib.checkpoint(f))


@program(v)
def vmapped(lib):
    return lib.vmap(lib.jit(lambda x: lib.lax.cond(x > 0, lib.lax.sin, lib.lax.cos, x)))


@program(v)
def jvps(lib):
    return lambda x: lib.jvp(lambda x: lib.lax.sin(x) * x, (x,), (x,))


@program(v)
def scopes(lib):
    def f(x):
        with lib.named_scope("outer"):
            y = lib.lax.sin(x)
            with lib.named_scope("inner"):
                z = lib.lax.cos(y)
        return lib.jit(lambda x: lib.lax.mul(x, z))(y)
    return f


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_printed_as_jax_prints_it(name):
    make, args = PROGRAMS[name]
    for width in (20, 50, 80, 110):
        assert printed(minijax, make, args, width=width) == printed(jax, make, args, width=width)
    assert printed(minijax, make, args) == str(minijax.make_jaxpr(make(minijax))(*args))


OPTIONS = [{"source_info": True}, {"name_stack": True}, {"print_shapes": False}, {"print_effects": True},
           {"source_info": True, "name_stack": True, "annotation_prefix": " %% "},
           {"width": 30}, {"width": 300, "source_info": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["scopes", "scanned", "calls_share_a_program"])
def test_options_of_pretty_print(name, options):
    make, args = PROGRAMS[name]
    assert printed(minijax, make, args, **options) == printed(jax, make, args, **options)


def test_effects_stand_behind_the_results():
    def make(lib):
        return lambda x: lib.debug.print("{}", x)
    got, want = (printed(lib, make, (1.0,), print_effects=True) for lib in (minijax, jax))
    assert got.endswith("in () : { Debug } }") and want.endswith("in () : { Debug } }")


def test_colors_on_one_line():
    make, args = PROGRAMS["one_line"]
    got = printed(minijax, make, args, use_color=True)
    assert got == printed(jax, make, args, use_color=True) and "\x1b[34;1mlambda " in got


def test_all_parameters_are_printed_if_asked_for():
    jaxpr = minijax.make_jaxpr(minijax.jit(lambda x: x * 2.0))(1.0)
    assert "inline" not in str(jaxpr)
    assert "inline=False" in jaxpr.pretty_print(custom_pp_eqn_rules=False)


def test_an_equation_prints_alone_as_in_jax():
    ours, theirs = (lib.make_jaxpr(lambda x: (lib.lax.sin(x), lib.lax.iota("int32", 2)))(1.0).eqns
                    for lib in (minijax, jax))
    assert repr(ours[0]) == repr(theirs[0]) == "a:f32[] = sin b"
    assert repr(ours[1]) == "a:i32[2] = iota[dimension=0 dtype=int32 shape=(2,)]"


def test_programs_within_programs_are_printed_in_linear_time():
    f = minijax.lax.sin
    for _ in range(40):
        f = minijax.jit(lambda x, f=f: f(f(x)))
    assert str(minijax.make_jaxpr(f)(1.0)).count("sin") == 2


# --- Layout ---------------------------------------------------------------------------------------

def test_an_inner_group_may_fit_where_the_outer_one_does_not():
    inner = Group(["(", Indent([Break(""), join([",", Break()], "abc")]), Break(""), ")"])
    doc = Group(["f", inner, Break("; "), "g", inner])
    assert layout(doc, 20) == "f(a, b, c)\ng(a, b, c)"
    assert layout(doc, 22) == "f(a, b, c); g(a, b, c)"
    assert layout(doc, 5) == "f(\n  a,\n  b,\n  c\n)\ng(\n  a,\n  b,\n  c\n)"


def test_remarks_stand_in_one_column():
    doc = [Text("a", remark="one"), Break(), Text("long", remark="two"), Text("er", remark="three")]
    assert layout(doc) == "a      # one\nlonger # two\n       # three"
