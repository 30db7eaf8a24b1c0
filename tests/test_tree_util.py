"""Trees against the installed jax.tree_util: order, printing, paths, error types."""

import collections
import copy
import dataclasses
import pickle

import jax
import jax.tree_util as jtu
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from minijax import tree, tree_util as mtu
from minijax.book.trees import draw_tree
from minijax.tree_code import builder, reader
from minijax.tree_util import tree_flatten, tree_structure

Point = collections.namedtuple('Point', 'x y')


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = dataclasses.field(default='dense', metadata={'static': True})


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten(self):
        return (self.a, self.b), 'pair'

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)

    def __eq__(self, other):
        return (self.a, self.b) == (other.a, other.b)


class Keyed(Pair):
    def tree_flatten_with_keys(self):
        return ((jtu.GetAttrKey('a'), self.a), (jtu.GetAttrKey('b'), self.b)), 'pair'


@dataclasses.dataclass(frozen=True)
class Setting:
    value: int


for lib in (jtu, mtu):
    lib.register_dataclass(Layer)
    lib.register_pytree_node_class(Pair)
    lib.register_pytree_with_keys_class(Keyed)
    lib.register_static(Setting)


# --- Random trees ---------------------------------------------------------------------------

def pad(xs):
    return (xs + [None, 1])[:2]


MAKERS = (
    list, tuple,
    lambda xs: dict(zip('bca', xs)),
    lambda xs: dict(zip((3, 1, 2), xs)),
    lambda xs: collections.OrderedDict(zip('bca', xs)),
    lambda xs: collections.defaultdict(list, zip('bca', xs)),
    lambda xs: Point(*pad(xs)),
    lambda xs: Layer(*pad(xs), name=f'layer{len(xs)}'),
    lambda xs: Pair(*pad(xs)),
    lambda xs: Keyed(*pad(xs)))


def containers(children):
    return st.builds(lambda make, xs: make(xs),
                     st.sampled_from(MAKERS), st.lists(children, max_size=3))


leaf = st.sampled_from([0, 1, 2, 3, None, Setting(3)])
trees = st.recursive(leaf, containers, max_leaves=12)


def paths(lib, t, **how):
    return [(lib.keystr(path, **how), x) for path, x in lib.tree_flatten_with_path(t)[0]]


@given(trees)
@settings(max_examples=150, deadline=None)
def test_flatten_agrees_with_jax(t):
    leaves, treedef = mtu.tree_flatten(t)
    jleaves, jtreedef = jtu.tree_flatten(t)
    assert leaves == jleaves
    assert repr(treedef) == repr(jtreedef)
    assert (treedef.num_leaves, treedef.num_nodes) == (jtreedef.num_leaves, jtreedef.num_nodes)
    assert treedef.unflatten(leaves) == t
    assert list(map(repr, treedef.children())) == list(map(repr, jtreedef.children()))
    assert mtu.treedef_is_leaf(treedef) == jtu.treedef_is_leaf(jtreedef)
    assert hash(mtu.tree_structure(copy.deepcopy(t))) == hash(treedef)
    assert mtu.tree_flatten_with_path(t)[1] == treedef == pickle.loads(pickle.dumps(treedef))


@given(trees)
@settings(max_examples=100, deadline=None)
def test_paths_agree_with_jax(t):
    assert paths(mtu, t) == paths(jtu, t)
    assert paths(mtu, t, simple=True, separator='/') == paths(jtu, t, simple=True, separator='/')


@given(trees)
@settings(max_examples=100, deadline=None)
def test_is_leaf_agrees_with_jax(t):
    def stop(x):
        return x is None or isinstance(x, (dict, Point))
    assert mtu.tree_leaves(t, stop) == jtu.tree_leaves(t, stop)
    assert repr(mtu.tree_structure(t, stop)) == repr(jtu.tree_structure(t, stop))
    assert paths_with(mtu, t, stop) == paths_with(jtu, t, stop)


def paths_with(lib, t, stop):
    return [(lib.keystr(p), x) for p, x in lib.tree_leaves_with_path(t, stop)]


def outcome(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as err:
        return type(err)


@given(trees, trees)
@settings(max_examples=200, deadline=None)
def test_two_trees_agree_with_jax(t, u):
    assert (mtu.tree_structure(t) == mtu.tree_structure(u)) == (
        jtu.tree_structure(t) == jtu.tree_structure(u))
    for f in ('tree_map', 'tree_broadcast'):
        args = (lambda x, y: (x, y),) if f == 'tree_map' else ()
        assert outcome(getattr(mtu, f), *args, t, u) == outcome(getattr(jtu, f), *args, t, u)
    theirs = outcome(jtu.tree_structure(t).flatten_up_to, u)
    assert outcome(mtu.tree_structure(t).flatten_up_to, u) == theirs


@given(trees, trees)
@settings(max_examples=100, deadline=None)
def test_equality_errors_agree_with_jax(t, u):
    ours = [mtu.keystr(path) for path, *_ in mtu.equality_errors(t, u)]
    theirs = [jtu.keystr(path) for path, *_ in jax._src.tree_util.equality_errors(t, u)]
    assert bool(ours) == (mtu.tree_structure(t) != mtu.tree_structure(u))
    assert len(ours) == len(theirs)
    if 'Point' not in repr((t, u)):   # JAX names every field of a namedtuple after the first
        assert ours == theirs


@given(trees, trees)
@settings(max_examples=50, deadline=None)
def test_compose_and_tuple(t, u):
    a, b = mtu.tree_structure(t), mtu.tree_structure(u)
    ja, jb = jtu.tree_structure(t), jtu.tree_structure(u)
    assert repr(a.compose(b)) == repr(ja.compose(jb))
    assert mtu.treedef_tuple([a, b]) == mtu.tree_structure((t, u))
    composed = a.compose(b)
    assert composed.num_leaves == a.num_leaves * b.num_leaves


# --- What JAX says, one at a time -----------------------------------------------------------

@pytest.mark.parametrize('bad', [
    lambda lib: lib.tree_flatten({1: 2, 'a': 3}),
    lambda lib: lib.tree_leaves_with_path({1: 2, 'a': 3}),
    lambda lib: lib.tree_flatten(collections.defaultdict(int, {1: 2, 'a': 3})),
    lambda lib: lib.tree_unflatten(lib.tree_structure((1, 2)), [1]),
    lambda lib: lib.tree_unflatten(lib.tree_structure((1, 2)), [1, 2, 3]),
    lambda lib: lib.tree_structure((1, 2)).unflatten(3),
    lambda lib: lib.tree_map(max, (1, 2), (1, 2, 3)),
    lambda lib: lib.tree_map(max, None, 1),
    lambda lib: lib.tree_map_with_path(lambda *_: 0, [1], (1,)),
    lambda lib: lib.tree_broadcast({'a': 1}, {'b': 1}),
    lambda lib: lib.tree_reduce(max, ()),
    lambda lib: lib.tree_reduce_associative(max, ()),
    lambda lib: lib.tree_transpose(
        lib.tree_structure((1, 2)), lib.tree_structure([1]), ((1, 2), 3)),
    lambda lib: lib.flatten_one_level(3),
    lambda lib: lib.flatten_one_level_with_keys(3),
    lambda lib: lib.register_pytree_node(dict, lambda d: ((), d), lambda d, _: d),
    lambda lib: lib.register_static(Setting),
    lambda lib: lib.register_dataclass(Layer, data_fields=['w']),
    lambda lib: lib.register_dataclass(int),
    lambda lib: lib.register_dataclass(Layer, data_fields=['w'], meta_fields=['name']),
    lambda lib: lib.register_dataclass(Layer, ['w', 'b', 'name'], ['name']),
])
def test_same_error_type(bad):
    with pytest.raises(Exception) as theirs:
        bad(jtu)
    with pytest.raises(theirs.type):
        bad(mtu)


@pytest.mark.parametrize('ok', [
    lambda lib: lib.tree_transpose(
        lib.tree_structure((1, 2)), lib.tree_structure({'a': 0, 'b': 0}),
        ({'a': 1, 'b': 2}, {'a': 3, 'b': 4})),
    lambda lib: lib.tree_transpose(lib.tree_structure([0, 0]), None, [(1, 2, 3), (4, 5, 6)]),
    lambda lib: lib.tree_reduce(lambda a, b: a - b, [1, (2, {'a': 3})]),
    lambda lib: lib.tree_reduce(lambda a, b: a - b, [1, (2, {'a': 3})], 10),
    lambda lib: lib.tree_reduce(lambda a, b: a or b, [], None),
    lambda lib: lib.tree_reduce_associative(lambda a, b: (a, b), [1, 2, 3, 4, 5]),
    lambda lib: lib.tree_reduce_associative(lambda a, b: (a, b), [], identity=None),
    lambda lib: lib.tree_all([True, (1, None)]),
    lambda lib: lib.tree_all([True, (0, None)]),
    lambda lib: lib.all_leaves([1, 2]),
    lambda lib: lib.all_leaves([1, (2,)]),
    lambda lib: lib.all_leaves([1, None]),
    lambda lib: lib.all_leaves([1, (2,)], is_leaf=lambda x: isinstance(x, tuple)),
    lambda lib: [lib.is_tree_node(t) for t in (int, tuple, Point, Layer, type(None), str)],
    lambda lib: lib.flatten_one_level({'b': [1], 'a': 2}),
    lambda lib: list(lib.flatten_one_level(Layer(1, 2))[0]),
    lambda lib: lib.flatten_one_level(Layer(1, 2))[1],
    lambda lib: lib.tree_structure(Layer(1, 2)).node_data(),
    lambda lib: lib.tree_structure(Point(1, 2)).node_data(),
    lambda lib: lib.tree_structure(1).node_data(),
    lambda lib: lib.tree_map(lambda x, y: y, {'a': 1, 'b': 2}, {'b': (3, 4), 'a': None}),
    lambda lib: lib.tree_map(lambda x: x, None, is_leaf=lambda x: x is None),
    lambda lib: lib.tree_map_with_path(
        lambda p, x, y: (lib.keystr(p), x, y), {'a': [1, 2]}, {'a': [3, 4]}),
    lambda lib: [lib.keystr(p) for p, _ in lib.tree_leaves_with_path(
        {'a': [1, 2], 'b': 3}, lambda p, x: len(p) == 1, is_leaf_takes_path=True)],
    lambda lib: repr(lib.tree_leaves_with_path([{'k': 1}, Layer(2, Pair(3, 4))])),
    lambda lib: repr(lib.tree_structure(lib.Partial(max, 1, key=2))),
    lambda lib: lib.tree_map(lambda x: x + 1, lib.Partial(max, 1, 7))(5),
    lambda lib: lib.tree_leaves(lib.Partial(lib.Partial(max, 1), 2)),
    lambda lib: lib.Partial(lib.Partial(max, 1), 2)(),
])
def test_same_answer(ok):
    assert ok(mtu) == ok(jtu)


def test_the_tree_namespace_has_jax_names():
    public = {n for n in dir(jax.tree) if not n.startswith('_')}
    assert public <= set(dir(tree))
    assert {n for n in dir(jtu) if not n.startswith('_')} - set(dir(mtu)) <= {
        'KeyEntry', 'KeyPath', 'default_registry'}


def test_static_fields():
    for lib, t in ((mtu, tree), (jtu, jax.tree)):
        @lib.register_dataclass
        @dataclasses.dataclass
        class Model:
            x: int
            act: str = t.static(default='relu')
        assert lib.tree_leaves(Model(1)) == [1]
        assert repr(lib.tree_structure(Model(1))) == "PyTreeDef(CustomNode(Model[('relu',)], [*]))"


def test_keys_match_patterns_and_hash():
    match mtu.tree_leaves_with_path({'a': [5]})[0][0]:
        case (mtu.DictKey(key='a'), mtu.SequenceKey(idx=i)):
            assert i == 0
    assert len({mtu.SequenceKey(1), mtu.SequenceKey(1), mtu.DictKey(1)}) == 2


# --- Where trees differ ---------------------------------------------------------------------

@pytest.mark.parametrize('prefix, full, said', [
    ({'a': (1, 2)}, {'a': (1, 2, 3)}, ["['a']", 'tuple of 2', 'tuple of 3', 'lengths']),
    ([{'a': 1}], [{'b': 1}], ['[0]', "['a']", "['b']"]),
    ((1, [2]), (1, (2,)), ['[1]', 'list', 'tuple']),
    (Layer(1, 2, 'u'), Layer(1, 2, 'v'), ["('u',)", "('v',)"]),
    (Point(1, (2,)), Point(1, 2), ['.y', 'int']),
])
def test_messages_name_the_path(prefix, full, said):
    with pytest.raises(ValueError) as err:
        mtu.tree_map(lambda x, y: x, prefix, full)
    for word in ['tree_map', *said]:
        assert word in str(err.value)


def test_equality_errors_of_treedefs():
    a, b = mtu.tree_structure({'a': (1, 2)}), mtu.tree_structure({'a': [1, 2]})
    [(path, thing1, thing2, why)] = mtu.equality_errors_pytreedef(a, b)
    assert (mtu.keystr(path), why) == ("['a']", 'their types differ')
    assert 'tuple' in thing1 and 'list' in thing2


def test_every_difference_is_reported():
    errors = mtu.prefix_errors(((1, 2), [3], 4), ((1, 2, 3), 3, 4))
    assert [str(e('in_axes')).split(':')[0] for e in errors] == [
        'pytree structure error at in_axes[0]', 'pytree structure error at in_axes[1]']


@pytest.mark.parametrize('axes', [
    0, None, (0, None), (0, {'a': None, 'b': 1}), (None, {'a': 0, 'b': (1, 2)})])
def test_flatten_axes_agrees_with_jax(axes):
    args = (1, {'a': [2, None], 'b': (3, 4)})
    theirs = jax._src.api_util.flatten_axes('in_axes', jtu.tree_structure(args), axes)
    assert mtu.flatten_axes('in_axes', mtu.tree_structure(args), axes) == theirs


@pytest.mark.parametrize('axes, said', [
    ((0,), ['vmap in_axes', 'tuple of 1 child', 'tuple of 2 children']),
    ((0, {'a': 0}), ['vmap in_axes[1]', "only one of them has ['b']"]),
    ((0, (0, 0)), ['vmap in_axes[1]', 'tuple', 'dict']),
    (((0, 0), 0), ['vmap in_axes[0]', 'a leaf']),
])
def test_flatten_axes_blames_the_argument(axes, said):
    treedef = mtu.tree_structure((1, {'a': 2, 'b': 3}))
    with pytest.raises(ValueError) as err:
        mtu.flatten_axes('vmap in_axes', treedef, axes, tupled_args=True)
    for word in said:
        assert word in str(err.value)


# --- Details --------------------------------------------------------------------------------

def test_key_order_of_a_dict_does_not_matter():
    assert mtu.tree_structure({'a': 1, 'b': 2}) == mtu.tree_structure({'b': 2, 'a': 1})
    assert mtu.tree_leaves({'b': 2, 'a': 1}) == [1, 2]


def test_equal_keys_of_other_types_survive():
    # 1 == True == 1.0: whatever is shared or cached, the keys that come back are the ones given
    for key in (1, True, 1.0):
        [back] = mtu.tree_map(abs, {key: 3})
        assert type(back) is type(key)


def test_arrays_and_subclasses_are_leaves():
    class MyList(list):
        pass
    for x in (np.ones(3), MyList([1, 2]), 'text', {1, 2}):
        assert mtu.tree_leaves(x) == [x] if not isinstance(x, np.ndarray) else True
        assert repr(mtu.tree_structure(x)) == 'PyTreeDef(*)'


def test_flatten_functions_may_return_iterators():
    class Bag:
        def __init__(self, *xs):
            self.xs = xs
    mtu.register_pytree_node(Bag, lambda b: (iter(b.xs), None), lambda _, xs: Bag(*xs))
    assert mtu.tree_leaves((Bag(1, (2, 3)), 4)) == [1, 2, 3, 4]
    assert mtu.tree_map(lambda x, y: x + y, Bag(1, 2), Bag(10, 20)).xs == (11, 22)
    assert [mtu.keystr(p) for p, _ in mtu.tree_leaves_with_path(Bag(1))] == ['[<flat index 0>]']


def test_a_namedtuple_can_be_registered():
    Mine = collections.namedtuple('Mine', 'x y')
    mtu.tree_flatten(Mine(1, 2))
    mtu.register_pytree_node(Mine, lambda m: ((m.x,), m.y), lambda y, xs: Mine(*xs, y))
    assert mtu.tree_leaves(Mine(1, 2)) == [1]


def test_deep_trees_need_no_recursion():
    deep = 0
    for _ in range(10_000):
        deep = [deep]
    leaves, treedef = mtu.tree_flatten(deep)
    assert leaves == [0] and treedef.num_nodes == 10_001
    assert mtu.tree_leaves(treedef.unflatten([7])) == [7]
    assert treedef.flatten_up_to(deep) == [0]
    assert repr(treedef).count('[') == 10_000 and hash(treedef) == hash(mtu.tree_structure(deep))


def test_metadata_need_not_hash():
    for lib in (mtu, jtu):
        a, b = (lib.tree_structure(Layer(1, 2, [])) for _ in range(2))
        assert hash(a) == hash(b) and a == b


def test_a_drawing_shows_leaves_and_recipe_in_the_colours_of_the_page():
    svg = draw_tree(*mtu.tree_flatten({'key': (np.ones((3, 4)), '<leaf>'), 'n': None}))._repr_svg_()
    assert svg.count('3×4</text>') == 2 and '&lt;leaf&gt;' in svg and "&#x27;key&#x27;" in svg
    assert svg.index('>tuple 2<') < svg.index('>None 0<') < svg.index('>dict 2<')
    assert 'role="img" aria-label="A tree' in svg
    assert 'fill="currentColor"' in svg and 'black' not in svg


# --- Recipes as programs --------------------------------------------------------------------------

CODED = [3, (), [1], (1, [2, {"b": 3, "a": (4,)}], None), {2: 1, 1: [2]}, {"it's": {"a\nb": 1}},
         Point(1, {"x": 2}), [Point(1, 2), (3,)]]


@pytest.mark.parametrize("tree", CODED, ids=repr)
def test_builder_is_unflatten(tree):
    leaves, treedef = tree_flatten(tree)
    build = builder(treedef)
    assert build(leaves) == tree and type(build(leaves)) is type(tree)
    assert tree_structure(build(leaves)) == treedef


@pytest.mark.parametrize("tree", CODED[:6], ids=repr)
def test_reader_reads_its_own_structure_only(tree):
    leaves, treedef = tree_flatten(tree)
    assert reader(treedef)(tree) == leaves
    for other in [(), [1, 2], {"a": 1}, {"it's": {"a": 1}}, (1, [2, {"b": 3, "c": (4,)}], None)]:
        if tree_structure(other) != treedef and treedef != tree_structure(0):
            assert reader(treedef)(other) is None


def test_reader_refuses_other_containers():
    point = Point(1, 2)
    assert reader(tree_structure(point))(point) is None
    assert reader(tree_structure({"a": 1}))(collections.OrderedDict(a=1)) is None
    assert reader(tree_structure((1, 2)))(point) is None


def test_deep_and_large_recipes_fall_back():
    tree = [0]
    for _ in range(500):
        tree = [tree]
    assert builder(tree_structure(tree))([0]) == tree
    large = list(range(3000))
    assert builder(tree_structure(large))(large) == large
    assert reader(tree_structure(large))(large) is None
