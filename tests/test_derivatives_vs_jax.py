"""Derivatives of and by complex numbers and integers: conventions, dtypes and errors are JAX's."""
import jax as real_jax
import numpy as np
import pytest

import minijax

rng = np.random.default_rng(0)
X = rng.normal(size=3).astype(np.float32)
Z, W = (rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))).astype(np.complex64)
M = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))).astype(np.complex64)
I = np.array([3, 4, 5], np.int32)
FLOAT0 = np.zeros(3, real_jax.dtypes.float0)


def same(ours, theirs):
    assert str(minijax.tree.structure(ours)) == str(real_jax.tree.structure(theirs))
    for a, b in zip(minijax.tree.leaves(ours), real_jax.tree.leaves(theirs)):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if b.dtype != real_jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def check(call):
    """call(library, its numpy) gives the same in both libraries, or raises an error of one type."""
    try:
        want = call(real_jax, real_jax.numpy)
    except Exception as error:
        kinds = tuple(c for c in type(error).__mro__ if c.__module__ == "builtins")
        with pytest.raises(kinds[0]):
            call(minijax, minijax.numpy)
        return
    same(call(minijax, minijax.numpy), want)


# --- Complex numbers ------------------------------------------------------------------------------

UNARY = """exp expm1 log log1p sqrt sin cos tan sinh cosh tanh arcsinh arccosh arctanh arcsin arccos
    arctan square reciprocal conj real imag abs angle sign exp2 log10 sinc sum prod mean var std
    max sort cumsum cumprod flip""".split()


def by_custom_jvp(j, n, z):
    f = j.custom_jvp(n.exp)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * f(*primals) * 2j))
    return f(z)


def by_custom_vjp(j, n, z):
    f = j.custom_vjp(lambda z: n.conj(z) * z)
    f.defvjp(lambda z: (f(z), z), lambda z, ct: (ct * n.conj(z) * 1j,))
    return f(z)


def by_linear_solve(j, n, z, w):
    return j.lax.custom_linear_solve(lambda v: z * v, w, lambda matvec, b: b / z,
                                     lambda vecmat, b: b / z)


COMPLEX = {
    **{name: (lambda j, n, z, name=name: getattr(n, name)(z), Z) for name in UNARY},
    "rsqrt": (lambda j, n, z: j.lax.rsqrt(z), Z),
    "logistic": (lambda j, n, z: j.lax.logistic(z), Z),
    "integer_pow": (lambda j, n, z: z ** -2 + z ** 3, Z),
    "pow": (lambda j, n, z, w: z ** w + z ** 2.5 + 2.0 ** w, Z, W),
    "real times complex": (lambda j, n, z, x: z * x - x, Z, X),
    "div": (lambda j, n, z, w: z / w, Z, W),
    "complex": (lambda j, n, x, z: j.lax.complex(x, z.real) * x, X, Z),
    "polar": (lambda j, n, x, z: x * n.exp(1j * z.real), X, Z),
    "astype": (lambda j, n, x: x.astype(n.complex64) * (1 + 2j), X),
    "dot": (lambda j, n, a, z: a @ z, M, Z),
    "dot, real": (lambda j, n, a, x: n.dot(a, x), M, X),
    "triu": (lambda j, n, a: n.triu(a, 1), M),
    "vdot": (lambda j, n, z, w: n.vdot(z, w), Z, W),
    "einsum": (lambda j, n, a: n.einsum("ij,kj->ik", a, n.conj(a)), M),
    "norm": (lambda j, n, z: n.sqrt(n.sum((z * n.conj(z)).real)), Z),
    "where": (lambda j, n, z: n.where(z.real > 0, z * z, z), Z),
    "select_n": (lambda j, n, z: j.lax.select_n(np.array([True, False, True]), z, z * z), Z),
    "gather": (lambda j, n, z: z[np.array([0, 0, 2])] * z[1], Z),
    "scatter": (lambda j, n, z: z.at[np.array([0, 1])].set(z[1:]).at[0].add(z[2]), Z),
    "concatenate": (lambda j, n, z: n.stack([z, z * 1j]).reshape(3, 2).T, Z),
    "trees": (lambda j, n, z, x: {"a": (z * x, z), "b": x * 2}, Z, X),
    "softmax": (lambda j, n, z: j.nn.softmax(z), Z),
    "logsumexp": (lambda j, n, z: j.nn.logsumexp(z), Z),
    "polyval": (lambda j, n, z: n.polyval(z, z), Z),
    "scan": (lambda j, n, z: j.lax.scan(lambda c, x: (c * x + 1j, c * c), z[0], z), Z),
    "cond": (lambda j, n, z: j.lax.cond(z[0].real > 0, lambda z: z * z, n.conj, z), Z),
    "fori_loop": (lambda j, n, z: j.lax.fori_loop(0, 3, lambda i, c: c * z + 1j, z), Z),
    "vmap, jit": (lambda j, n, z: j.vmap(j.jit(lambda a: n.sin(a) * n.conj(a)))(z), Z),
    "checkpoint": (lambda j, n, z: j.checkpoint(lambda a: n.sin(n.conj(a)) * a)(z), Z),
    "custom_jvp": (by_custom_jvp, Z),
    "custom_vjp": (by_custom_vjp, Z),
    "linear solve": (by_linear_solve, Z, W),
}


def random_like(y):
    y, normal = np.asarray(y), np.random.default_rng(1).normal
    if y.dtype.kind == "c":
        return (normal(size=y.shape) + 1j * normal(size=y.shape)).astype(y.dtype)
    return normal(size=y.shape).astype(y.dtype)


def derivatives(lib, f, args, tangents, cts, forward):
    """[value, jvp, the linearized function, vjp], in one program."""
    def run(args):
        value, f_vjp = lib.vjp(f, *args)
        if not forward:
            return value, f_vjp(cts)
        pushed = lib.jvp(f, tuple(args), tuple(tangents))[1]
        return value, f_vjp(cts), pushed, lib.linearize(f, *args)[1](*tangents)
    return lib.jit(run)([lib.numpy.asarray(x) for x in args])


@pytest.mark.parametrize("name", COMPLEX)
def test_vjp_and_jvp_of_complex_functions(name):
    f, *args = COMPLEX[name]
    of = lambda lib: lambda *args: f(lib, lib.numpy, *args)
    tangents = [random_like(x) for x in args]
    cts = minijax.tree.map(random_like, of(minijax)(*map(minijax.numpy.asarray, args)))
    ours, theirs = (derivatives(lib, of(lib), args, tangents, cts, name != "custom_vjp")
                    for lib in (minijax, real_jax))
    same(ours, theirs)


def scalar_of(name):
    def scalar(lib):
        f = COMPLEX[name][0]
        return lambda *args: lib.numpy.sum(f(lib, lib.numpy, *args))
    return scalar


TRANSFORMATIONS = ["grad", "jacrev", "jacfwd", "hessian"]


@pytest.mark.parametrize("name", ["sin", "real", "abs", "conj", "integer_pow", "astype", "scan"])
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("holomorphic", [False, True])
def test_complex_gradients(name, transformation, holomorphic):
    """What is permitted with and without holomorphic=True, and what comes out."""
    if name == "scan":
        scalar = lambda lib: lambda z: COMPLEX["scan"][0](lib, lib.numpy, z)[0]
    else:
        scalar = scalar_of(name)
    check(lambda lib, n: lib.jit(getattr(lib, transformation)(
        scalar(lib), holomorphic=holomorphic))(n.asarray(COMPLEX[name][1])))


LINEAR = [
    (lambda n, z: n.conj(z) * (1 + 2j), Z, Z),
    (lambda n, z: z * (1 + 2j) + n.sum(z), Z, Z),
    (lambda n, x: x * (1 + 2j), X, Z),
    (lambda n, z: z.imag * 2, Z, X),
    (lambda n, i: i * 3, I, I),
    (lambda n, z: {"a": z * 2}, Z, {"a": Z}),
    (lambda n, x: n.sin(x), X, X),
    (lambda n, x: x * 3, X, I),
    (lambda n, x: x * 3, X, X[:2]),
    (lambda n, i: i * 3.0, I, X),
]


@pytest.mark.parametrize("f, x, ct", LINEAR)
def test_linear_transpose(f, x, ct):
    check(lambda lib, n: lib.linear_transpose(lambda x: f(n, x), n.asarray(x))(
        lib.tree.map(n.asarray, ct)))


# --- Integers, argument numbers, aux --------------------------------------------------------------

D = {"i": I, "x": X}
MIXED = lambda n: lambda x: (x * 2, n.floor(x).astype(int))

CALLS = {
    "grad of int": lambda j, n: j.grad(lambda i: 1.0 * n.sum(i))(I),
    "grad, allow_int": lambda j, n: j.grad(lambda i: 1.0 * n.sum(i), allow_int=True)(I),
    "grad of bool": lambda j, n: j.grad(lambda b: 1.0 * b, allow_int=True)(True),
    "value_and_grad, allow_int, aux": lambda j, n: j.value_and_grad(
        lambda d, x: (n.sum(d["i"] * d["x"]) * x, d), (0, 1), True, allow_int=True)(D, 2.0),
    "grad, holomorphic, allow_int": lambda j, n: j.grad(
        lambda x, i: x * i, (0, 1), holomorphic=True, allow_int=True)(1j, 2),
    "jacrev of int": lambda j, n: j.jacrev(lambda i: 1.0 * i)(I),
    "jacrev, allow_int": lambda j, n: j.jacrev(lambda i: 1.0 * i, allow_int=True)(n.asarray(I)),
    "jacrev, allow_int, trees": lambda j, n: j.jacrev(
        lambda d, x: {"o": d["i"] * d["x"], "p": x}, (0, 1), allow_int=True)(
            j.tree.map(n.asarray, D), 2.0),
    "jacrev, allow_int, aux": lambda j, n: j.jacrev(
        lambda d: (d["i"] * d["x"], d), has_aux=True, allow_int=True)(j.tree.map(n.asarray, D)),
    "jacrev to int": lambda j, n: j.jacrev(MIXED(n), allow_int=True)(n.asarray(X)),
    "jacfwd of int": lambda j, n: j.jacfwd(lambda i: 1.0 * i)(I),
    "jacfwd to int": lambda j, n: j.jacfwd(MIXED(n))(n.asarray(X)),
    "jacfwd, aux": lambda j, n: j.jacfwd(lambda x, y: (x * y, {"a": x}), (0, 1), True)(X, 3.0),
    "jacfwd, list": lambda j, n: j.jacfwd(lambda x, y: x * y, [0, 1])(X, 3.0),
    "jacrev, from the right": lambda j, n: j.jacrev(lambda x, y: x * y, -1)(X, 3.0),
    "grad, no such argument": lambda j, n: j.grad(lambda x, y: x * y, 2)(1.0, 3.0),
    "jacrev, no such argument": lambda j, n: j.jacrev(lambda x, y: x * y, 2)(1.0, 3.0),
    "jacfwd, no such argument": lambda j, n: j.jacfwd(lambda x, y: x * y, 2)(1.0, 3.0),
    "jacfwd, no pair": lambda j, n: j.jacfwd(lambda x: x, has_aux=True)(1.0),
    "jacrev of a string": lambda j, n: j.jacrev(lambda x: x)("a"),
    "hessian of int": lambda j, n: j.hessian(lambda i: 1.0 * n.sum(i))(I),
    "hessian, aux": lambda j, n: j.hessian(
        lambda x, y: (n.sum(x * x * y), {"a": x}), (0, 1), True)(X, 3.0),
    "hessian, trees": lambda j, n: j.hessian(
        lambda d: {"o": d["a"] ** 2 * n.sum(d["b"]), "p": d["b"]})({"a": 2.0, "b": X}),
    "jvp of int along float": lambda j, n: j.jvp(lambda i: i * 2, (I,), (X,)),
    "jvp of int along int": lambda j, n: j.jvp(lambda i: i * 2, (I,), (I,)),
    "jvp of int along float0": lambda j, n: j.jvp(lambda i: i * 2, (I,), (FLOAT0,)),
    "jvp of Python int": lambda j, n: j.jvp(lambda i: i * 2, (2,), (1.0,)),
    "jvp of float along int": lambda j, n: j.jvp(lambda i: i * 2, (2.0,), (1,)),
    "jvp of complex along float": lambda j, n: j.jvp(lambda i: i * 2, (Z,), (X,)),
    "jvp, other shape": lambda j, n: j.jvp(lambda i: i * 2, (X,), (1.0,)),
    "linearize along int": lambda j, n: j.linearize(lambda i: i * 2, X)[1](I),
    "linearize of int along int": lambda j, n: j.linearize(lambda i: i * 2, I)[1](I),
    "linearize of int along float0": lambda j, n: j.linearize(lambda i: i * 2, I)[1](FLOAT0),
    "linearize, other shape": lambda j, n: j.linearize(lambda i: i * 2, X)[1](1.0),
    "linearize, other tree": lambda j, n: j.linearize(lambda i: i * 2, X)[1](X, X),
    "vjp of int": lambda j, n: j.vjp(lambda i: i * 2.0, I)[1](X),
    "vjp of int, float0": lambda j, n: j.vjp(lambda i: i * 2, I)[1](FLOAT0),
    "vjp of int, int": lambda j, n: j.vjp(lambda i: i * 2, I)[1](I),
    "vjp of float, int": lambda j, n: j.vjp(lambda i: i * 2, X)[1](I),
    "vjp of float, complex": lambda j, n: j.vjp(lambda i: i * 2, X)[1](Z),
    "vjp, other shape": lambda j, n: j.vjp(lambda i: i * 2, X)[1](1.0),
    "vjp, other tree": lambda j, n: j.vjp(lambda i: i * 2, X)[1]((X,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments(name):
    check(CALLS[name])


def test_a_tangent_of_another_dtype_is_named():
    with pytest.raises(TypeError, match=r"primal int32\[3\] wants float0\[3\], got float32\[3\]"):
        minijax.jvp(lambda i: i, (I,), (X,))


@pytest.mark.parametrize("result", [np.ones(4, np.float32), np.ones(3, np.int32), [X, X]],
                         ids=["shape", "dtype", "tree"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_callback_that_breaks_its_promise(result, compiled):
    def call(lib):
        f = lambda x: lib.pure_callback(lambda x: result, lib.ShapeDtypeStruct((3,), np.float32), x)
        return (lib.jit(f) if compiled else f)(X)
    for lib in minijax, real_jax:
        with pytest.raises(lib.errors.JaxRuntimeError):
            call(lib)
