"""Each higher-order construct inside each other one, under transformations, against real JAX."""
import os
from itertools import product

import jax
import numpy as np
import pytest
from nesting import HOLDERS, nested
from programs import TRANSFORMATIONS, transformed

import minijax

X = np.array([0.3, 0.7, 1.1], np.float32)
PAIRS = list(product(HOLDERS, repeat=2))
TOWERS = [(), *((t,) for t in TRANSFORMATIONS), *product(TRANSFORMATIONS, repeat=2)]

# Every pair under one tower, a different one for its neighbours; `make fuzz` takes every tower.
if int(os.environ.get("MINIJAX_FUZZ_EXAMPLES", 0)) < 1000:
    CASES = [(*pair, TOWERS[(7 * k + k // len(HOLDERS)) % len(TOWERS)])
             for k, pair in enumerate(PAIRS)]
else:
    CASES = [(*pair, tower) for pair in PAIRS for tower in TOWERS]


def outcome(lib, outer, inner, names):
    try:
        return transformed(lib, nested(outer, inner), names)(lib.numpy.asarray(X))
    except Exception as error:
        return error


def runs_a_loop_backwards(outer, inner, names):
    """Whether a loop of unknown length is differentiated in reverse, which none can be."""
    found = "while" in (outer, inner) and outer != "condition"
    return found and ("grad" in names or (outer, inner) == ("grad", "while"))


@pytest.mark.parametrize("outer, inner, names", CASES,
                         ids=lambda x: x if isinstance(x, str) else "∘".join(x) or "value")
def test_equals_jax(outer, inner, names):
    ours = outcome(minijax, outer, inner, names)
    if runs_a_loop_backwards(outer, inner, names):
        forward_only = "custom_vjp" in (outer, inner) and isinstance(ours, TypeError)
        assert forward_only or isinstance(ours, ValueError) and "lax.scan" in str(ours), ours
        return
    with jax.disable_jit():                            # loops and branches as Python runs them
        theirs = outcome(jax, outer, inner, names)
    if "stop_gradient" in str(theirs) and not isinstance(ours, Exception):
        pytest.skip("JAX has no gradient of batched branches in a rule: see test_reported_faults")
    if isinstance(theirs, Exception):                  # custom_vjp has no forward mode
        assert "custom_vjp" in (outer, inner) and isinstance(ours, TypeError), (ours, theirs)
        return
    assert not isinstance(ours, Exception), ours
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    scale = max(1.0, float(np.max(np.abs(theirs))))
    np.testing.assert_allclose(ours, theirs, rtol=5e-4, atol=5e-5 * scale)


def test_most_cases_compare_numbers():
    refused = [case for case in CASES if runs_a_loop_backwards(*case)]
    assert 10 * len(refused) < len(CASES)
