"""minijax.nn against jax.nn: values, dtypes, gradients, and the inputs that are known to go
wrong."""
import numpy as np
import pytest
from numpy_against_jax import OURS, agree, agree_transformed

X = np.array([-200., -3.5, -1., -0.3, 0., 0.2, 0.5, 1., 3., 6., 7., 80., 1000.], np.float32)
ACTIVATIONS = ["identity", "relu", "relu6", "leaky_relu", "elu", "celu", "selu", "sigmoid",
               "hard_sigmoid",
               "sparse_sigmoid", "log_sigmoid", "soft_sign", "hard_tanh", "softplus", "sparse_plus",
               "squareplus", "silu", "swish", "hard_silu", "hard_swish", "mish", "gelu"]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    agree(lambda m: getattr(m.nn, name)(X), rtol=1e-5)
    agree(lambda m: getattr(m.nn, name)(np.array([np.nan, np.inf, -np.inf], np.float32)))
    agree(lambda m: m.vmap(m.grad(getattr(m.nn, name)))(X), rtol=1e-4)
    agree(lambda m: m.jit(getattr(m.nn, name))(X), rtol=1e-5)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("x", [1.5, 2, True, np.float16(1.5), np.array([1, -2], np.int8), [1.0]],
                         ids=repr)
def test_types_of_arguments(name, x):
    agree(lambda m: getattr(m.nn, name)(x), rtol=2e-3)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_second_derivatives(name):
    x = np.array([-2.3, -0.4, 0.7, 2.1], np.float32)
    agree(lambda m: m.vmap(m.grad(m.grad(getattr(m.nn, name))))(x), rtol=1e-4, atol=1e-5)


def test_parameters():
    for f in (lambda m: m.nn.leaky_relu(X, 0.2), lambda m: m.nn.elu(X, 2.0),
              lambda m: m.nn.celu(X, 2.0),
              lambda m: m.nn.gelu(X, approximate=False), lambda m: m.nn.squareplus(X, 0),
              lambda m: m.vmap(m.grad(lambda x: m.nn.gelu(x, approximate=False)))(X[:11])):
        agree(f, rtol=1e-4)


def test_gradients_at_the_corners():
    assert float(OURS.grad(OURS.nn.relu)(0.0)) == 0
    assert float(OURS.grad(OURS.nn.relu6)(6.0)) == 0
    assert float(OURS.grad(OURS.nn.sigmoid)(-200.0)) == 0
    assert float(OURS.grad(OURS.nn.elu)(1000.0)) == 1


def test_glu():
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    agree_transformed(lambda m, x: m.nn.glu(x), x)
    agree(lambda m: m.nn.glu(x[:, :2], axis=1))
    agree(lambda m: m.nn.glu(x, axis=0))


M = np.array([[1., 2., 3.], [-1000., 0., 1000.], [5., 5., 5.]], np.float32)
WHERE = np.array([[True, True, False], [True, False, True], [True, True, True]])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name):
    agree_transformed(lambda m, x: getattr(m.nn, name)(x), M)
    agree(lambda m: getattr(m.nn, name)(M, axis=0), rtol=1e-5)
    agree(lambda m: getattr(m.nn, name)(M, axis=(0, 1)), rtol=1e-5)
    agree(lambda m: getattr(m.nn, name)(M, where=WHERE), rtol=1e-5)
    agree(lambda m: getattr(m.nn, name)(1.0))
    agree(lambda m: getattr(m.nn, name)(np.array([1, 2])))
    agree(lambda m: m.grad(lambda x: getattr(m.nn, name)(x)[0, 1])(M), rtol=1e-5)
    agree(lambda m: m.grad(lambda x: getattr(m.nn, name)(x, where=WHERE)[0, 1])(M), rtol=1e-5)


def test_logsumexp():
    agree_transformed(lambda m, x: m.nn.logsumexp(x, axis=-1), M)
    for kwargs in (dict(), dict(axis=0), dict(axis=(0, 1), keepdims=True),
                   dict(b=np.array([1., 0., 2.])),
                   dict(axis=1, b=-2.0), dict(axis=1, b=-2.0, return_sign=True),
                   dict(axis=1, where=WHERE),
                   dict(return_sign=True)):
        agree(lambda m: m.nn.logsumexp(M, **kwargs), rtol=1e-5)
    agree(lambda m: m.nn.logsumexp(np.array([1 + 2j, 3j], np.complex64)), rtol=1e-5)
    agree(lambda m: m.nn.logsumexp(np.array([1, 2])))
    agree(lambda m: m.nn.logmeanexp(M, axis=1, where=WHERE), rtol=1e-5)


def test_logsumexp_of_infinities():
    inf = np.inf
    for values in ([-inf, -inf], [inf, 1.0], [inf, inf], [-inf, 1.0], [np.nan, 1.0]):
        agree(lambda m: m.nn.logsumexp(np.array(values, np.float32)))
    assert float(OURS.nn.logsumexp(np.array([-inf, -inf], np.float32))) == -inf
    agree(lambda m: m.grad(m.nn.logsumexp)(np.array([-inf, 1.0], np.float32)))


def test_masked_mean_has_no_gradient_outside():
    mask = np.array([True, False])
    gradient = OURS.grad(lambda x: OURS.np.mean(x, where=mask))(np.array([0., 100.], np.float32))
    np.testing.assert_array_equal(np.asarray(gradient), [1, 0])


def test_guarded_functions():
    np_ = OURS.np
    safe_sqrt = lambda x: np_.where(x > 0, np_.sqrt(np_.where(x > 0, x, 1.0)), 0.0)
    assert float(OURS.grad(safe_sqrt)(0.0)) == 0
    assert float(OURS.grad(np_.sinc)(0.0)) == 0


def test_standardize():
    agree_transformed(lambda m, x: m.nn.standardize(x), M[::2] + M[0], rtol=1e-3, atol=2e-4)
    x = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4) ** 2
    for kwargs in (dict(), dict(axis=0), dict(mean=0.5), dict(variance=2.0),
                   dict(algorithm="stable"),
                   dict(algorithm="slow"), dict(epsilon=1.0)):
        agree(lambda m: m.nn.standardize(x, **kwargs), rtol=1e-4)


def test_one_hot():
    for args, kwargs in ((([0, 2, 1], 3), {}), (([[0], [5]], 3), dict(axis=0)),
                         ((1, 2), dict(dtype=int)),
                         (([-1, 3], 3), {}), (([0, 1], 2), dict(axis=1, dtype=bool)),
                         (([0], 2), dict(axis=5))):
        agree(lambda m: m.nn.one_hot(np.array(args[0]), args[1], **kwargs))
    agree(lambda m: m.jit(lambda n: m.nn.one_hot(np.array([1]), n))(3))


def test_log1mexp():
    agree(lambda m: m.nn.log1mexp(np.array([1e-4, 0.1, 0.6, 0.7, 5., 40.], np.float32)), rtol=1e-5)
    agree(lambda m: m.vmap(m.grad(m.nn.log1mexp))(np.array([1e-4, 0.1, 0.7, 5.], np.float32)),
          rtol=1e-4)
