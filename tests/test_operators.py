"""Python's operators and NumPy's methods, on arrays and on tracers, against JAX's."""
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax.numpy as mnp
from minijax.array import Array

jax.config.update("jax_platforms", "cpu")

X = np.array([1.5, -2.0, 3.25], np.float32)
I = np.array([3, -4, 5], np.int32)
B = np.array([True, False, True])


def assert_same(ours, theirs, what=""):
    if isinstance(theirs, (tuple, list)):
        assert type(ours) is type(theirs) and len(ours) == len(theirs), what
        for a, b in zip(ours, theirs):
            assert_same(a, b, what)
        return
    assert isinstance(ours, Array), f"{what}: a {type(ours).__name__}"
    got = (ours.shape, ours.dtype, ours.weak_type and ours.dtype != bool)
    assert got == (theirs.shape, theirs.dtype, theirs.weak_type and theirs.dtype != bool), what
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-6, err_msg=what)


# --- Binary operators -------------------------------------------------------------------------

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "divmod": divmod,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}
BITWISE = {"&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
           ">>": operator.rshift}
OTHERS = [X, I, 2, 2.5, np.float32(2), np.int32(2)]


@pytest.mark.parametrize("symbol", [*OPERATORS, *BITWISE])
def test_binary_operator_on_both_sides(symbol):
    op = (OPERATORS | BITWISE)[symbol]
    x, others = (X, OTHERS) if symbol in OPERATORS else (I, [I, 2, np.int32(2)])
    for other in others:
        for reflected in (False, True):
            def apply(x, other=other):
                return op(other, x) if reflected else op(x, other)
            what = f"{symbol} of {type(other).__name__}, reflected: {reflected}"
            expected = apply(jnp.asarray(x))
            assert_same(apply(mnp.asarray(x)), expected, what)
            assert_same(minijax.jit(apply)(mnp.asarray(x)), expected, what + ", jit")


def test_numpy_array_on_the_left_gives_an_array():
    for op in OPERATORS.values():
        out = op(X, mnp.asarray(X))
        assert isinstance(out[0] if isinstance(out, tuple) else out, Array)
    assert isinstance(X @ mnp.asarray(X), Array)
    assert isinstance(np.float32(2) * mnp.asarray(X), Array)
    jaxpr = minijax.make_jaxpr(lambda x: np.float32(2) * x + X)(X)
    assert [e.primitive.name for e in jaxpr.eqns] == ["mul", "add"]


def test_numpy_functions_of_an_array_give_numpy_arrays():
    assert type(np.exp(mnp.asarray(X))) is np.ndarray
    assert type(np.add(X, mnp.asarray(X))) is np.ndarray


@pytest.mark.parametrize("other", [[1., 2., 3.], (1., 2., 3.), {1: 2}, None, "a", object()])
def test_other_types_are_refused(other):
    x = mnp.asarray(X)
    for op in OPERATORS.values():
        for args in ((x, other), (other, x)):
            if op in (operator.eq, operator.ne) and not isinstance(other, (list, tuple, dict)):
                assert op(*args) is (op is operator.ne)
            elif not (op is operator.mod and args[0] == "a"):     # text formats any mapping
                with pytest.raises(TypeError):
                    op(*args)


def test_scalar_array_does_not_repeat_a_list():
    with pytest.raises(TypeError, match="unsupported operand type"):
        mnp.asarray(2) * [1, 2]


def test_object_with_its_own_operators_wins():
    class Mine:
        def __radd__(self, other):
            return "mine"
    assert mnp.asarray(X) + Mine() == "mine"


def test_jax_array_protocol():
    class Wrapped:
        def __jax_array__(self):
            return mnp.asarray(X)
    assert_same(mnp.asarray(X) + Wrapped(), jnp.asarray(X) + jnp.asarray(X))
    assert_same(mnp.sin(Wrapped()), jnp.sin(X))


def test_unary_operators():
    for op in (operator.neg, operator.pos, abs, lambda x: round(x, 1), round):
        assert_same(op(mnp.asarray(X)), op(jnp.asarray(X)))
    assert_same(~mnp.asarray(I), ~jnp.asarray(I))
    assert_same(~mnp.asarray(B), ~jnp.asarray(B))


def test_in_place_operators_rebind():
    x = y = mnp.asarray(X)
    x += 1
    assert x is not y
    np.testing.assert_array_equal(y, X)
    np.testing.assert_array_equal(x, X + 1)


def test_contains():
    assert 3 in mnp.asarray(I)
    assert 7 not in mnp.asarray(I)


ERRORS = {
    "minus of bool": lambda np_, x: -np_.asarray(B),
    "subtraction of bools": lambda np_, x: np_.asarray(B) - np_.asarray(B),
    "not of floats": lambda np_, x: ~x,
    "shift of floats": lambda np_, x: x << 1,
    "negative power of integers": lambda np_, x: np_.asarray(I) ** -1,
    "unequal sizes": lambda np_, x: x + np_.ones(4),
    "unequal ranks": lambda np_, x: x + np_.ones((2, 4)),
    "matmul with a scalar": lambda np_, x: x @ 2,
    "integer too large": lambda np_, x: np_.asarray(I) + 2**40,
    "no flat": lambda np_, x: x.flat,
    "mT of a vector": lambda np_, x: x.mT,
    "item of many": lambda np_, x: x.item(),
    "axis out of range": lambda np_, x: x.sum(axis=1),
    "reshape to another size": lambda np_, x: x.reshape(2, 2),
    "view of an odd size": lambda np_, x: x[:1].view("float16").view("int8")[:3].view("float16"),
    "hash": lambda np_, x: hash(x),
    "assignment": lambda np_, x: x.__setitem__(0, 1.0),
}


@pytest.mark.parametrize("what", ERRORS)
def test_errors_are_of_jaxs_type(what):
    with pytest.raises(Exception) as theirs:
        ERRORS[what](jnp, jnp.asarray(X))
    kinds = (TypeError, ValueError, NotImplementedError, OverflowError)
    kind = next(k for k in kinds if isinstance(theirs.value, k))
    with pytest.raises(kind):
        ERRORS[what](mnp, mnp.asarray(X))


# --- Methods ----------------------------------------------------------------------------------

M = np.array([[3., 1., 2.], [0., -1., 5.]], np.float32)

METHODS = {
    "all": lambda x: x.all(),
    "any": lambda x: x.any(axis=0),
    "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(),
    "argsort": lambda x: x.argsort(),
    "argsort axis": lambda x: x.argsort(axis=0),
    "astype": lambda x: x.astype("int32"),
    "astype type": lambda x: x.astype(int),
    "at": lambda x: x.at[0].add(1.0),
    "byteswap": lambda x: x.astype("int32").byteswap(),
    "clip": lambda x: x.clip(0, 2),
    "clip keyword": lambda x: x.clip(max=2),
    "compress": lambda x: x.compress(np.array([True, False, True]), axis=1),
    "conj": lambda x: x.conj(),
    "copy": lambda x: x.copy(),
    "cumprod": lambda x: x.cumprod(0),
    "cumsum": lambda x: x.cumsum(axis=1),
    "diagonal": lambda x: x.diagonal(),
    "dot": lambda x: x.dot(x.T),
    "flatten": lambda x: x.flatten(),
    "flatten F": lambda x: x.flatten("F"),
    "getitem": lambda x: x[1, :2],
    "imag": lambda x: x.imag,
    "matmul": lambda x: x @ x.T,
    "max": lambda x: x.max(0, keepdims=True),
    "mean": lambda x: x.mean(),
    "min": lambda x: x.min(initial=-3.0),
    "mT": lambda x: x.mT,
    "prod": lambda x: x.prod(axis=(0, 1)),
    "ptp": lambda x: x.ptp(),
    "ravel": lambda x: x.ravel(),
    "real": lambda x: x.real,
    "repeat": lambda x: x.repeat(2, axis=1),
    "reshape": lambda x: x.reshape(3, 2),
    "reshape tuple": lambda x: x.reshape((3, -1)),
    "reshape flat": lambda x: x.reshape(-1),
    "reshape F": lambda x: x.reshape(3, 2, order="F"),
    "round": lambda x: (x / 3).round(2),
    "searchsorted": lambda x: x[0].sort().searchsorted(1.5),
    "sort": lambda x: x.sort(),
    "squeeze": lambda x: x[None].squeeze(),
    "squeeze axis": lambda x: x[None].squeeze(0),
    "std": lambda x: x.std(ddof=1),
    "sum": lambda x: x.sum(-1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "T": lambda x: x.T,
    "take": lambda x: x.take(np.array([0, 2]), axis=1),
    "trace": lambda x: x.trace(),
    "transpose": lambda x: x.transpose(),
    "transpose args": lambda x: x[None].transpose(2, 0, 1),
    "transpose tuple": lambda x: x[None].transpose((2, 0, 1)),
    "var": lambda x: x.var(axis=0),
    "view": lambda x: x.view("int32"),
    "view narrower": lambda x: x.view("uint8"),
    "view wider": lambda x: x[:, :2].view("complex64"),
}
NEED_VALUES = {"nonzero": lambda x: x.nonzero()}


@pytest.mark.parametrize("name", [*METHODS, *NEED_VALUES])
def test_method(name):
    method = (METHODS | NEED_VALUES)[name]
    expected = method(jnp.asarray(M))
    assert_same(method(mnp.asarray(M)), expected, name)
    if name in METHODS:
        assert_same(minijax.jit(method)(mnp.asarray(M)), expected, name + " under jit")


def test_methods_to_python_and_numpy():
    x = mnp.asarray(X)
    assert x[0].item() == 1.5 and x.item(1) == -2.0
    assert x.tobytes() == X.tobytes() and x.tolist() == X.tolist()
    assert [float(v) for v in x] == X.tolist()
    assert x.to_device(None) is x


@pytest.mark.parametrize("method", ["item", "tobytes", "tolist"])
def test_a_traced_value_has_no_python_value(method):
    with pytest.raises(minijax.errors.ConcretizationTypeError):
        minijax.jit(lambda x: getattr(x, method)())(X[0])


def test_arrays_and_tracers_have_jaxs_operators_and_methods():
    jax_only = {"__cuda_array_interface__", "addressable_data", "addressable_shards", "clone",
                "committed", "delete", "device", "device_buffer", "device_buffers", "devices",
                "format", "global_shards", "is_fully_addressable", "is_fully_replicated",
                "is_ready",
                "on_device_size_in_bytes", "platform", "sharding", "traceback",
                "unsafe_buffer_pointer", "__array_module__", "__array_namespace__",
                "__numpy_dtype__", "__hex__", "__oct__", "__del__", "__annotations__",
                "__dict__", "__getstate__"}
    theirs = {n for n in dir(jnp.asarray(X)) if not n.startswith("_") or n.endswith("__")}
    assert theirs - jax_only - set(dir(mnp.asarray(X))) == set()


# --- Programs ---------------------------------------------------------------------------------

PROGRAMS = {
    "Python float": (lambda x: x * 2.0, (M,)),
    "Python int": (lambda x: x * 2, (M,)),
    "number on the left": (lambda x: 2.0 * x, (M,)),
    "NumPy scalar": (lambda x: x * np.float32(2.0), (M,)),
    "weak scalar argument": (lambda x, y: x + y, (M, 1.0)),
    "integers and a float": (lambda x: x * 2.5, (I,)),
    "integer power": (lambda x: x ** 2, (M,)),
    "float power": (lambda x: x ** 2.0, (M,)),
    "power of two": (lambda x: 2 ** x, (M,)),
    "division of integers": (lambda x: x / 3, (I,)),
    "minus": (lambda x: -x, (M,)),
    "abs": (lambda x: abs(x), (M,)),
    "comparison": (lambda x: x > 0, (M,)),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_programs_print_as_jaxs(what):
    f, args = PROGRAMS[what]
    expected = str(jax.make_jaxpr(f)(*args)).split()
    assert str(minijax.make_jaxpr(f)(*args)).split() == expected
