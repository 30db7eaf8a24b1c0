# Exported from notebooks/02_trees.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: trees. Home: 02_trees. In JAX: jax/_src/tree_util.py and jaxlib's pytree.cc.

A pytree is a leaf, or a container of pytrees. `tree_flatten` takes it apart into the list of its
leaves and a `PyTreeDef`, the recipe that puts them together again. The recipe is a flat tuple of
nodes in postfix order, children before their parent, so most of what one wants to do with a
structure (rebuild, compare, hash, print, compose) is one loop over that tuple, without recursion.
"""

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any

__all__ = [
    "SequenceKey", "DictKey", "GetAttrKey", "FlattenedIndexKey", "keystr", "NodeKind", "LEAF",
    "take_apart", "put_together", "PyTreeDef", "count_leaves", "tree_flatten", "tree_unflatten",
    "tree_leaves", "tree_structure", "matching_children", "take_apart_like", "tree_map",
    "tree_reduce", "tree_reduce_associative", "tree_all", "subtree_start", "split_children",
    "treedef_tuple", "treedef_children", "treedef_is_leaf", "tree_transpose", "all_leaves",
    "is_tree_node", "tree_flatten_with_path", "tree_leaves_with_path", "tree_map_with_path",
    "flatten_one_level", "flatten_one_level_with_keys", "register_pytree_node",
    "register_pytree_with_keys", "register_pytree_node_class", "register_pytree_with_keys_class",
    "register_static", "register_dataclass", "static", "Partial", "prefix_errors",
    "equality_errors", "equality_errors_pytreedef", "broadcast_prefix", "tree_broadcast",
    "flatten_axes",
]


# --- An address for every leaf --------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The step into a list or tuple: `[idx]`."""
    idx: int

    def __str__(self):
        return f'[{self.idx!r}]'


@dataclasses.dataclass(frozen=True)
class DictKey:
    """The step into a dict: `[key]`."""
    key: Any

    def __str__(self):
        return f'[{self.key!r}]'


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The step into an attribute: `.name`."""
    name: str

    def __str__(self):
        return f'.{self.name}'


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """The step to the n-th child of a container that was registered without keys."""
    key: int

    def __str__(self):
        return f'[<flat index {self.key}>]'


def _bare(key):
    fields = ('idx', 'key', 'name')
    return str(next((getattr(key, f) for f in fields if hasattr(key, f)), key))


def keystr(keys, *, simple: bool = False, separator: str = '') -> str:
    """Prints a key path as the Python that would reach the leaf, or bare when `simple`."""
    return separator.join(map(_bare if simple else str, keys))


# --- A registry of containers ---------------------------------------------------------------------

@dataclasses.dataclass(frozen=True, eq=False, slots=True)   # compared by identity: fast
class NodeKind:
    """How the containers of one type come apart and go together again.

        flatten           : container -> (children, aux)
        unflatten         : (aux, children) -> container
        flatten_with_keys : container -> ([(key, child), ...], aux)
        show              : (aux, printed children) -> str
    """
    type: type
    flatten: Callable
    unflatten: Callable
    flatten_with_keys: Callable
    show: Callable

    def __reduce__(self):   # a pickled treedef finds its kinds again by type
        return _kind_of_type, (self.type,)


_kinds: dict[type, NodeKind] = {}


def _register(nodetype, flatten, unflatten, flatten_with_keys, show=None):
    if nodetype in _kinds:
        raise ValueError(f'{nodetype} is already registered as a pytree node')
    show = show or functools.partial(_show_custom, nodetype.__name__)
    _kinds[nodetype] = NodeKind(nodetype, flatten, unflatten, flatten_with_keys, show)


def _show_custom(name, aux, children):
    return f"CustomNode({name}[{aux}], [{', '.join(children)}])"


def _kind_of_type(cls):
    """The kind of a container type, or None for a leaf; a namedtuple needs no registration."""
    kind = _kinds.get(cls)
    if kind is None and issubclass(cls, tuple) and hasattr(cls, '_fields'):
        return _namedtuple_kind(cls)
    return kind


# --- The containers of Python ---------------------------------------------------------------------

def _index_children(xs):
    return tuple((SequenceKey(i), x) for i, x in enumerate(xs)), None


_register(tuple, lambda xs: (xs, None), lambda _, xs: tuple(xs), _index_children,
          lambda _, xs: f'({xs[0]},)' if len(xs) == 1 else f"({', '.join(xs)})")
_register(list, lambda xs: (xs, None), lambda _, xs: list(xs), _index_children,
          lambda _, xs: f"[{', '.join(xs)}]")
_register(type(None), lambda _: ((), None), lambda _, xs: None, lambda _: ((), None),
          lambda _, xs: 'None')


def _flatten_dict(d):
    # sorted, so that two dicts which compare equal have one structure
    try:
        keys = tuple(sorted(d))
    except TypeError as err:
        raise ValueError(f'the keys of a dict in a pytree must sort, but {err}') from None
    return map(d.__getitem__, keys), keys


def _flatten_dict_with_keys(d):
    children, keys = _flatten_dict(d)
    return tuple((DictKey(k), child) for k, child in zip(keys, children)), keys


def _show_dict(keys, children):
    return '{' + ', '.join(f'{k!r}: {c}' for k, c in zip(keys, children)) + '}'


_register(dict, _flatten_dict, lambda keys, xs: dict(zip(keys, xs)),
          _flatten_dict_with_keys, _show_dict)


@functools.cache
def _namedtuple_kind(cls):
    def flatten_with_keys(x):
        return tuple((GetAttrKey(f), c) for f, c in zip(cls._fields, x)), None
    return NodeKind(cls, lambda x: (x, None), lambda _, xs: cls(*xs), flatten_with_keys,
                    lambda _, xs: f"CustomNode(namedtuple[{cls.__name__}], [{', '.join(xs)}])")


# --- Taking a tree apart --------------------------------------------------------------------------

LEAF = (None, 0, None)   # a node is (kind, number of children, aux); a leaf has no kind


def take_apart(tree, is_leaf=None):
    """The leaves of a tree, and its nodes `(kind, arity, aux)` in postfix order."""
    leaves, nodes, agenda = [], [], [tree]
    # parent first and last child first: postfix backwards, turned round at the end
    while agenda:
        x = agenda.pop()
        kind = _kinds.get(type(x))
        if kind is None and isinstance(x, tuple):
            kind = _kind_of_type(type(x))
        if kind is None or (is_leaf is not None and is_leaf(x)):
            leaves.append(x)
            nodes.append(LEAF)
        else:
            pair = kind.flatten(x)
            try:
                children, aux = pair
            except (TypeError, ValueError):
                raise ValueError(f"what flattens a {type(x).__name__} must return a pair "
                                 f"(children, aux data), got {pair!r:.80}") from None
            children = tuple(children)
            nodes.append((kind, len(children), aux))
            agenda += children
    leaves.reverse()
    nodes.reverse()
    return leaves, tuple(nodes)


# --- Putting it together --------------------------------------------------------------------------

def put_together(nodes, leaves, step=operator.attrgetter('unflatten')):
    """Runs a recipe on a stack: a leaf is pushed, a node takes its children off and pushes itself.

        step : kind -> (aux, children) -> what stands for the node; by default the container
    """
    stack = []
    push, next_leaf = stack.append, iter(leaves).__next__
    for kind, arity, aux in nodes:
        if kind is None:
            push(next_leaf())
        elif arity:
            children = tuple(stack[-arity:])
            del stack[-arity:]
            push(step(kind)(aux, children))
        else:
            push(step(kind)(aux, ()))
    return stack[0]


# --- The recipe as a value ------------------------------------------------------------------------

class PyTreeDef:
    """The structure of a pytree: its nodes `(kind, arity, aux)` in postfix order.

    Equal when the nodes are equal, and hashable. `nodes` is a plain tuple with the same
    equality, for those who need a key in a hurry (it hashes only if all aux data do).
    """
    __slots__ = ('nodes', 'num_leaves')

    def __init__(self, nodes, num_leaves=None):
        self.nodes = nodes
        self.num_leaves = count_leaves(nodes) if num_leaves is None else num_leaves

    @property
    def num_nodes(self):
        return len(self.nodes)

    def __eq__(self, other):
        return isinstance(other, PyTreeDef) and self.nodes == other.nodes

    def __hash__(self):
        try:
            return hash(self.nodes)
        except TypeError:   # aux data that do not hash, say a list, still compare
            return hash(tuple([node[:2] for node in self.nodes]))

    def __repr__(self):
        shown = put_together(self.nodes, '*' * self.num_leaves, operator.attrgetter('show'))
        return f'PyTreeDef({shown})'

    def unflatten(self, leaves):
        """Puts the tree together; ValueError if the number of leaves is not num_leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f'wrong number of leaves for {self}: '
                             f'expected {self.num_leaves}, got {len(leaves)}')
        return put_together(self.nodes, leaves)

    def flatten_up_to(self, tree):
        """The subtrees of `tree` at the places of our leaves; ValueError if it does not fit."""
        return take_apart_like(self.nodes, tree)

    def children(self):
        """The structures of the root's children."""
        return [PyTreeDef(nodes) for nodes in split_children(self.nodes)]

    def node_data(self):
        """The root's type and aux data, or None for a leaf."""
        kind, _, aux = self.nodes[-1]
        return None if kind is None else (kind.type, aux)

    def compose(self, inner):
        """The structure with `inner` in place of every leaf."""
        return PyTreeDef(tuple(n for node in self.nodes
                               for n in (inner.nodes if node[0] is None else (node,))))


def count_leaves(nodes) -> int:
    """How many of the nodes are leaves."""
    return sum(node[0] is None for node in nodes)


def tree_flatten(tree, is_leaf=None):
    """Takes a pytree apart into the list of its leaves and its `PyTreeDef`.

    `is_leaf(subtree)` may stop the descent early. Raises ValueError for a dict whose keys do
    not sort.
    """
    leaves, nodes = take_apart(tree, is_leaf)
    return leaves, PyTreeDef(nodes, len(leaves))


def tree_unflatten(treedef, leaves):
    """Puts a tree together from its structure and its leaves; the inverse of `tree_flatten`."""
    return treedef.unflatten(leaves)


def tree_leaves(tree, is_leaf=None) -> list:
    """The leaves of a tree, in the order of `tree_flatten`."""
    return take_apart(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None) -> PyTreeDef:
    """The structure of a tree without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


# --- One function on every leaf -------------------------------------------------------------------

def matching_children(node, x):
    """The children of `x` if it is a container like `node`; ValueError if not."""
    kind, arity, aux = node
    if _kind_of_type(type(x)) is not kind:
        raise ValueError(f'expected {kind.type.__name__}, got {type(x).__name__}')
    children, x_aux = kind.flatten(x)
    children = tuple(children)
    if len(children) != arity or x_aux != aux:
        raise ValueError(f'expected a {kind.type.__name__} of {arity} children with {aux}, '
                         f'got one of {len(children)} with {x_aux}')
    return children


def take_apart_like(nodes, tree):
    """The subtrees of `tree` where the recipe has leaves; ValueError if the containers differ."""
    subtrees, agenda = [], [tree]
    for node in reversed(nodes):
        x = agenda.pop()
        if node[0] is None:
            subtrees.append(x)
        else:
            agenda += matching_children(node, x)
    subtrees.reverse()
    return subtrees


def tree_map(f, tree, *rest, is_leaf=None):
    """Applies `f` leaf by leaf and rebuilds the tree; `tree` must be a prefix of each of `rest`.

    Raises ValueError that names the key path where a tree of `rest` differs.
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    others = [_flatten_like('tree_map', tree, treedef, r, is_leaf) for r in rest]
    return treedef.unflatten(map(f, leaves, *others))


def _flatten_like(name, tree, treedef, other, is_leaf):
    try:
        return treedef.flatten_up_to(other)
    except ValueError:
        for error in prefix_errors(tree, other, is_leaf):
            raise error(f'{name} tree') from None
        raise


# --- Folds ----------------------------------------------------------------------------------------

_NO_INITIALIZER = object()


def tree_reduce(function, tree, initializer=_NO_INITIALIZER, is_leaf=None):
    """Folds the leaves from the left; TypeError if there are none and no initializer."""
    start = () if initializer is _NO_INITIALIZER else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


def tree_reduce_associative(operation, tree, *, identity=_NO_INITIALIZER, is_leaf=None):
    """Folds the leaves pairwise, a balanced tree of operations; TypeError as for `tree_reduce`."""
    leaves = tree_leaves(tree, is_leaf)
    if not leaves and identity is _NO_INITIALIZER:
        raise TypeError('a reduction of no leaves needs an identity')
    return _reduce_pairwise(operation, leaves) if leaves else identity


def _reduce_pairwise(operation, xs):
    if len(xs) == 1:
        return xs[0]
    half = len(xs) // 2
    return operation(_reduce_pairwise(operation, xs[:half]), _reduce_pairwise(operation, xs[half:]))


def tree_all(tree, *, is_leaf=None) -> bool:
    """Whether every leaf is true."""
    return all(tree_leaves(tree, is_leaf))


# --- Trees of trees -------------------------------------------------------------------------------

def subtree_start(nodes, end):
    """Where the subtree that ends just before `end` begins in a postfix tuple."""
    missing = 1
    while missing:
        end -= 1
        missing += nodes[end][1] - 1
    return end


def split_children(nodes) -> list:
    """The recipes of the root's children."""
    parts, end = [], len(nodes) - 1
    while end > 0:
        start = subtree_start(nodes, end)
        parts.append(nodes[start:end])
        end = start
    return parts[::-1]


def treedef_tuple(treedefs) -> PyTreeDef:
    """The structure of a tuple whose elements have these structures."""
    treedefs = tuple(treedefs)
    nodes = [node for treedef in treedefs for node in treedef.nodes]
    root = (_kinds[tuple], len(treedefs), None)
    return PyTreeDef((*nodes, root), sum(t.num_leaves for t in treedefs))


def treedef_children(treedef) -> list:
    """The structures of the root's children."""
    return treedef.children()


def treedef_is_leaf(treedef) -> bool:
    """Whether the structure is a single node (as JAX's: None and empty containers count)."""
    return treedef.num_nodes == 1


def tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose):
    """Turns an outer tree of inner trees into an inner tree of outer trees.

    `inner_treedef` may be None: it is then read off the first inner tree. TypeError if the
    tree is not of that form.
    """
    flat, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    m, n = outer_treedef.num_leaves, inner_treedef.num_leaves
    if treedef.num_leaves != m * n:
        raise TypeError(f'expected {outer_treedef.compose(inner_treedef)}, got {treedef}')
    columns = [outer_treedef.unflatten(flat[j::n]) for j in range(n)]
    return inner_treedef.unflatten(columns)


# --- Leaf or container ----------------------------------------------------------------------------

def all_leaves(iterable, is_leaf=None) -> bool:
    """Whether every element of an iterable is a leaf."""
    return all(_is_leaf(x, is_leaf) for x in iterable)


def is_tree_node(typ: type) -> bool:
    """Whether values of this type are containers and not leaves."""
    return _kind_of_type(typ) is not None


def _is_leaf(x, is_leaf=None):
    return _kind_of_type(type(x)) is None or (is_leaf is not None and bool(is_leaf(x)))


# --- Paths ----------------------------------------------------------------------------------------

def tree_flatten_with_path(tree, is_leaf=None, is_leaf_takes_path=False):
    """Like `tree_flatten`, with each leaf in a pair `(key path, leaf)`."""
    stop = is_leaf if is_leaf_takes_path or is_leaf is None else lambda _, x: is_leaf(x)
    pairs, nodes, agenda = [], [], [((), tree)]
    while agenda:
        path, x = agenda.pop()
        kind = _kind_of_type(type(x))
        if kind is None or (stop is not None and stop(path, x)):
            pairs.append((path, x))
            nodes.append(LEAF)
        else:
            keyed, aux = flatten_one_level_with_keys(x)
            nodes.append((kind, len(keyed), aux))
            agenda += [((*path, key), child) for key, child in keyed]
    return pairs[::-1], PyTreeDef(tuple(nodes[::-1]), len(pairs))


def tree_leaves_with_path(tree, is_leaf=None, is_leaf_takes_path=False) -> list:
    """The pairs `(key path, leaf)` of a tree."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f, tree, *rest, is_leaf=None, is_leaf_takes_path=False):
    """Like `tree_map` for a function `f(key path, leaf, *leaves of rest)`."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    stop = None if is_leaf_takes_path else is_leaf
    others = [_flatten_like('tree_map_with_path', tree, treedef, r, stop) for r in rest]
    return treedef.unflatten(f(*pair, *xs) for pair, *xs in zip(pairs, *others))


def flatten_one_level(tree):
    """The children of a container and its aux data; ValueError for a leaf."""
    children, aux = _kind_of_container(tree).flatten(tree)
    return tuple(children), aux


def flatten_one_level_with_keys(tree):
    """The pairs `(key, child)` of a container and its aux data; ValueError for a leaf."""
    keyed, aux = _kind_of_container(tree).flatten_with_keys(tree)
    return tuple(keyed), aux


def _kind_of_container(tree):
    kind = _kind_of_type(type(tree))
    if kind is None:
        raise ValueError(f'{type(tree)} is not a pytree node')
    return kind


# --- Containers of your own -----------------------------------------------------------------------

def register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    """Makes a type a container.

        flatten_func           : container -> (children, aux), aux hashable
        unflatten_func         : (aux, children) -> container
        flatten_with_keys_func : container -> ([(key, child), ...], aux)

    Raises ValueError if the type is already one. Subclasses are not included.
    """
    with_keys = flatten_with_keys_func or functools.partial(_number_children, flatten_func)
    _register(nodetype, flatten_func, unflatten_func, with_keys)


def _number_children(flatten, x):
    children, aux = flatten(x)
    return tuple((FlattenedIndexKey(i), child) for i, child in enumerate(children)), aux


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None):
    """Makes a type a container from its flattening with keys; see `register_pytree_node`."""
    flatten = flatten_func or functools.partial(_drop_keys, flatten_with_keys)
    _register(nodetype, flatten, unflatten_func, flatten_with_keys)


def _drop_keys(flatten_with_keys, x):
    keyed, aux = flatten_with_keys(x)
    return tuple(child for _, child in keyed), aux


def register_pytree_node_class(cls):
    """Class decorator: a container by its methods `tree_flatten` and `tree_unflatten`."""
    register_pytree_node(cls, operator.methodcaller('tree_flatten'), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls):
    """Class decorator: like `register_pytree_node_class`, by `tree_flatten_with_keys`."""
    flatten = operator.methodcaller('tree_flatten') if hasattr(cls, 'tree_flatten') else None
    register_pytree_with_keys(cls, operator.methodcaller('tree_flatten_with_keys'),
                              cls.tree_unflatten, flatten)
    return cls


def register_static(cls):
    """Class decorator: a container without leaves, all of it part of the structure."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls


# --- Dataclasses ----------------------------------------------------------------------------------

def register_dataclass(nodetype, data_fields=None, meta_fields=None, drop_fields=()):
    """Makes a dataclass a container: data fields are children, meta fields part of the structure.

    Without lists of fields, those marked `static` in their metadata are the meta fields.
    Raises TypeError if only one list is given, or none for a type that is no dataclass, and
    ValueError if the lists overlap or do not cover the fields of `__init__`.
    """
    data, meta = _data_and_meta_fields(nodetype, data_fields, meta_fields)
    _check_fields(nodetype, data, meta, set(drop_fields))

    def flatten(x):
        return [getattr(x, f) for f in data], tuple([getattr(x, f) for f in meta])

    def flatten_with_keys(x):
        children, aux = flatten(x)
        return tuple((GetAttrKey(f), c) for f, c in zip(data, children)), aux

    def unflatten(aux, children):
        return nodetype(**dict(zip(meta, aux)), **dict(zip(data, children)))

    _register(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def _data_and_meta_fields(nodetype, data_fields, meta_fields):
    if (data_fields is None) != (meta_fields is None):
        raise TypeError('register_dataclass needs both data_fields and meta_fields, or neither')
    if data_fields is not None:
        return tuple(data_fields), tuple(meta_fields)
    if not dataclasses.is_dataclass(nodetype):
        raise TypeError(f'register_dataclass needs data_fields and meta_fields: '
                        f'{nodetype} is not a dataclass')
    fields = dataclasses.fields(nodetype)
    static = {f.name for f in fields if f.metadata.get('static', False)}
    return (tuple(f.name for f in fields if f.name not in static),
            tuple(f.name for f in fields if f.name in static))


def _check_fields(nodetype, data, meta, dropped):
    if overlap := set(data) & set(meta):
        raise ValueError(f'fields {sorted(overlap)} of {nodetype} are both data and meta')
    if dataclasses.is_dataclass(nodetype):
        init = {f.name for f in dataclasses.fields(nodetype) if f.init} - dropped
        if wrong := init ^ {*data, *meta}:
            raise ValueError(f'data_fields and meta_fields must be the fields of __init__ of '
                             f'{nodetype}; missing or unexpected: {sorted(wrong)}')


def static(*, metadata=None, **kwargs):
    """A dataclass field that `register_dataclass` takes as part of the structure."""
    return dataclasses.field(metadata={'static': True, **(metadata or {})}, **kwargs)


# --- Ordered and default dicts --------------------------------------------------------------------

def _flatten_ordered_dict(d):
    return tuple((DictKey(k), x) for k, x in d.items()), tuple(d)


def _flatten_default_dict(d):
    keys = tuple(sorted(d))
    return tuple((DictKey(k), d[k]) for k in keys), (d.default_factory, keys)


register_pytree_with_keys(
    collections.OrderedDict, _flatten_ordered_dict,
    lambda keys, xs: collections.OrderedDict(zip(keys, xs)))
register_pytree_with_keys(
    collections.defaultdict, _flatten_default_dict,
    lambda aux, xs: collections.defaultdict(aux[0], zip(aux[1], xs)))


# --- Functions with data inside -------------------------------------------------------------------

class Partial(functools.partial):
    """A `functools.partial` that is a pytree: the arguments are children, the function is aux."""

    def __new__(cls, func, /, *args, **kw):
        # functools would merge a partial of a partial and so change the tree
        func = _Callable(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, func, *args, **kw)


@dataclasses.dataclass(frozen=True)
class _Callable:
    fun: Callable

    def __call__(self, *args, **kw):
        return self.fun(*args, **kw)


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, xs: Partial(func, *xs[0], **xs[1]))


# --- Where two trees differ -----------------------------------------------------------------------

def _differences(path, t1, t2, is_leaf, prefix):
    stops = _is_leaf(t1, is_leaf), not prefix and _is_leaf(t2, is_leaf)
    if stops[0] and (prefix or stops[1]):
        return   # a leaf is a prefix of anything
    if any(stops) or type(t1) is not type(t2):
        yield path, _describe(t1), _describe(t2), 'their types differ'
        return
    keyed1, aux1 = flatten_one_level_with_keys(t1)
    keyed2, aux2 = flatten_one_level_with_keys(t2)
    if len(keyed1) != len(keyed2) or aux1 != aux2:
        yield path, _describe(t1), _describe(t2), _why(t1, keyed1, keyed2, aux1, aux2)
        return
    for (key, child1), (_, child2) in zip(keyed1, keyed2):
        yield from _differences((*path, key), child1, child2, is_leaf, prefix)


def prefix_errors(prefix_tree, full_tree, is_leaf=None) -> list:
    """Where `prefix_tree` is no prefix of `full_tree`: a list of functions name -> ValueError."""
    def error(path, thing1, thing2, why):
        return lambda name: ValueError(
            f'pytree structure error at {name}{keystr(path)}: '
            f'a {thing1}, but a {thing2} in the full tree; {why}')
    return [error(*d) for d in _differences((), prefix_tree, full_tree, is_leaf, True)]


def equality_errors(tree1, tree2, is_leaf=None):
    """Yields `(key path, what tree1 has, what tree2 has, why they differ)`."""
    return _differences((), tree1, tree2, is_leaf, False)


def equality_errors_pytreedef(treedef1, treedef2):
    """Like `equality_errors`, from the structures alone."""
    return equality_errors(_hollow(treedef1), _hollow(treedef2))


class _PytreeLeaf:
    def __repr__(self):
        return 'pytree leaf'


def _hollow(treedef):
    return treedef.unflatten([_PytreeLeaf()] * treedef.num_leaves)


def _describe(x):
    if isinstance(x, _PytreeLeaf):
        return 'leaf'
    if _is_leaf(x) or x is None:
        return type(x).__name__
    n = len(flatten_one_level(x)[0])
    return f"{type(x).__name__} of {n} {'child' if n == 1 else 'children'}"


def _why(t1, keyed1, keyed2, aux1, aux2):
    if isinstance(t1, (list, tuple)):
        return 'their lengths differ'
    keys1, keys2 = [str(k) for k, _ in keyed1], [str(k) for k, _ in keyed2]
    lonely = [k for k in keys1 + keys2 if (k in keys1) != (k in keys2)]
    if lonely:
        return f"only one of them has {', '.join(lonely)}"
    return f'their metadata differ: {aux1} and {aux2}'


# --- Prefixes -------------------------------------------------------------------------------------

def _leaf_counts(prefix, full):
    """How many leaves of `full` lie under each leaf of `prefix`; None if it is no prefix."""
    counts, end = [], len(full)
    for node in reversed(prefix):
        start = subtree_start(full, end) if node[0] is None else end - 1
        if node[0] is None:
            counts.append(count_leaves(full[start:end]))
        elif full[start] != node:
            return None
        end = start
    return counts[::-1]


def _broadcast_leaves(leaves, prefix_treedef, full_treedef):
    if prefix_treedef.nodes == (LEAF,):
        return leaves * full_treedef.num_leaves
    counts = _leaf_counts(prefix_treedef.nodes, full_treedef.nodes)
    if counts is None:
        return None
    return [leaf for leaf, count in zip(leaves, counts) for _ in range(count)]


def broadcast_prefix(prefix_tree, full_tree, is_leaf=None) -> list:
    """The leaves of a prefix, each repeated for every leaf of the subtree below it.

    Raises ValueError that names the key path where the prefix does not fit.
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    full = _broadcast_leaves(leaves, treedef, tree_structure(full_tree))
    if full is None:
        error, *_ = prefix_errors(prefix_tree, full_tree, is_leaf)
        raise error('broadcast_prefix prefix_tree')
    return full


def tree_broadcast(prefix_tree, full_tree, is_leaf=None):
    """The tree like `full_tree` whose leaves are those of the prefix above them."""
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_structure(full_tree).unflatten(leaves)


def _is_none(x):
    return x is None


def flatten_axes(name, treedef, axis_tree, *, tupled_args=False) -> list:
    """One axis for each leaf of `treedef`, from a prefix of axes in which None is a leaf.

    `name` is the argument to blame (`'vmap in_axes'`); with `tupled_args` the structure is
    that of a tuple of arguments. Raises ValueError that names it and the key path.
    """
    axes, axes_treedef = tree_flatten(axis_tree, _is_none)
    full = _broadcast_leaves(axes, axes_treedef, treedef)
    if full is None:
        errors = prefix_errors(axis_tree, _hollow(treedef), _is_none)
        hint = ' (a tuple with one entry for each argument)' if tupled_args else ''
        details = ''.join(f'\n  {error(name)}' for error in errors)
        raise ValueError(
            f'{name} must be a tree prefix of the value it describes{hint}:{details}')
    return full
