"""Index maps, and the makers of lowering rules."""
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minijax.loop_ir import (Axis, Const, Dynamic, Index, Op, Remainder, axis_index, body_of,
                             dynamic_index, flat_index, guard_of, identity, op, row_major,
                             strides_of, substitute_index, unflatten)


def value(index, at):
    """What an index map gives for values of its axes."""
    total = index.offset
    for atom, c in index.terms.items():
        if isinstance(atom, Axis):
            total += c * at[atom]
        else:
            inner = value(atom.index, at)
            quotient, remainder = divmod(inner, atom.divisor)
            total += c * (remainder if isinstance(atom, Remainder) else quotient)
    return total


def all_values(index, axes):
    """The values of an index map over all turns of its loops."""
    return [value(index, dict(zip(axes, turn)))
            for turn in itertools.product(*(range(a.size) for a in axes))]


# --- Arithmetic of index maps ------------------------------------------------------------------

@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-6, 12)), min_size=1, max_size=3),
       st.integers(-10, 10), st.integers(1, 12), st.integers(1, 6))
def test_quotients_and_remainders(terms, offset, n, m):
    axes = [Axis(size) for size, _ in terms]
    index = Index({a: c for a, (_, c) in zip(axes, terms)}, offset)
    values = all_values(index, axes)
    assert all_values(index // n, axes) == [v // n for v in values]
    assert all_values(index % n, axes) == [v % n for v in values]
    assert all_values((index // n) % m, axes) == [v // n % m for v in values]
    mixed = [v // n * m - v % n + 3 for v in values]
    assert all_values(index // n * m - index % n + 3, axes) == mixed
    low, high = (index // n).bounds()
    assert low <= min(v // n for v in values) and max(v // n for v in values) <= high


def test_exact_quotients_disappear():
    i, j = Axis(4), Axis(6)
    place = row_major([i, j])
    assert place // 6 == axis_index(i)
    assert place % 6 == axis_index(j)
    assert (place * 2) // 12 == axis_index(i)
    assert unflatten(place, (4, 6)) == [axis_index(i), axis_index(j)]
    assert unflatten(place, (2, 2, 6))[1:] == [axis_index(i) % 2, axis_index(j)]


@pytest.mark.parametrize("old, new", [((4, 6), (8, 3)), ((2, 3, 4), (6, 4)), ((5,), (1, 5)),
                                      ((), (1,))])
def test_a_reshape_is_an_index_map(old, new):
    axes = [Axis(n) for n in new]
    place = flat_index(unflatten(row_major(axes), old), old)
    assert all_values(place, axes) == list(range(int(np.prod(new))))


def test_strides_are_numpys():
    x = np.empty((3, 4, 5), np.int8)
    assert tuple(strides_of(x.shape)) == x.strides


def test_axes_of_one_turn_vanish():
    assert axis_index(Axis(1)) == Index({})
    assert row_major([Axis(1), Axis(1)]) == Index({})


def test_substitution_simplifies():
    i, j, k = Axis(12), Axis(3), Axis(4)
    index = Index({i: 1}) % 4
    assert substitute_index(index, {i: row_major([j, k])}) == axis_index(k)


def test_guards_that_always_hold_are_dropped():
    i = Axis(5)
    assert guard_of([(axis_index(i), 5)]) == ()
    assert len(guard_of([(axis_index(i), 4), (axis_index(i) - 1, 5), (axis_index(i), 9)])) == 2


def test_dynamic_indices():
    assert dynamic_index(Const(7, np.int32), 0, 4).offset == 4
    assert dynamic_index(Const(-7, np.int32), -1, 4).offset == -1
    node = Op("neg", (Const(1, np.int32),), np.int32)
    (atom, _), = dynamic_index(node, 2, 4).terms.items()
    assert isinstance(atom, Dynamic) and dynamic_index(node, 2, 4).bounds() == (2, 4)


# --- Nodes -------------------------------------------------------------------------------------

def test_bodies_are_in_order_and_long_ones_do_not_recurse():
    node = first = Const(1, np.float32)
    for _ in range(20_000):
        node = op("neg", node)
    body = body_of([node])
    assert body[0] is first and body[-1] is node and len(body) == 20_001


def test_shared_nodes_stand_once():
    x = Const(1, np.float32)
    y = op("mul", x, x)
    assert body_of([op("add", y, y)])[:2] == [x, y]


@pytest.mark.parametrize("dtype", "bool int8 uint8 int32 uint32 float32 float64".split())
@pytest.mark.parametrize("name, function", [("max", np.maximum), ("min", np.minimum),
                                            ("and", np.bitwise_and), ("or", np.bitwise_or),
                                            ("xor", np.bitwise_xor), ("add", np.add)])
def test_reductions_start_from_their_identity(name, function, dtype):
    if name in ("and", "or", "xor") and dtype.startswith("float"):
        return
    start = identity(name, np.dtype(dtype)).value
    for x in (0, 1, 100) if dtype != "bool" else (False, True):
        x = np.dtype(dtype).type(x)
        assert function(start, x) == x
