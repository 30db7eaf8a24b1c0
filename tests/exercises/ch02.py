"""Wrong answers to the exercises of chapter 2, and what the check has to say about each."""

wrong = {
    'tree_dot': [
        # forgets to add up the entries of each leaf
        ('np.sum(x * y)', 'x * y', 'one number, not an array|could not be broadcast'),
        # a norm of a, whatever b is
        ('np.sum(x * y)', 'np.sum(x * x)', 'expected .* from all leaves'),
        ('''def tree_dot(a, b):
    return sum(np.sum(x * y) for x, y in zip(tree.leaves(a), tree.leaves(b)))
''', 'a tuple and a list are different structures'),
        ('''def tree_dot(a, b):
    if isinstance(a, np.ndarray) or np.isscalar(a):
        return np.sum(a * b)
    pairs = zip(a.values(), b.values()) if isinstance(a, dict) else zip(a, b)
    return sum(tree_dot(x, y) for x, y in pairs)
''', r'another order|values\(\)'),
    ],
    'broken_leaves': [
        # an infinity is not finite either
        ('not np.all(np.isfinite(leaf))', 'np.any(np.isnan(leaf))', 'one leaf has a nan, one an'),
        # broken only if every entry is
        ('not np.all(np.isfinite(leaf))', 'not np.any(np.isfinite(leaf))', 'two paths'),
        ('tree_util.keystr(path)', 'path', 'strings by keystr'),
        ('tree_util.keystr(path)', "tree_util.keystr(path, simple=True, separator='/')",
         'strings by keystr'),
        ('if not np.all', 'if np.all', 'nothing is broken'),
    ],
    'ravel': [
        # the leaves keep the shape of the vector
        ('part.reshape(leaf.shape)', 'part', 'the shape of each leaf'),
        # remembers the tree and ignores the vector
        ('np.split(vector, cuts)', 'leaves', 'unravel has to read its argument'),
        # the list of parts is not the tree
        ('treedef.unflatten([part', '([part', 'restore the structure'),
        # one number a leaf
        ('np.concatenate([leaf.ravel() for leaf in leaves])',
         'np.array([leaf.ravel()[0] for leaf in leaves])', r'shape \(8,\)'),
        ('.ravel() for leaf in leaves', '.ravel() for leaf in leaves[::-1]', 'keys are sorted'),
    ],
    'register_interval': [
        # the unit as a third child
        ('(hi, interval.hi)), interval.unit)', "(hi, interval.hi), ('unit', interval.unit)), None)",
         'lo and hi, and nothing else'),
        # the unit lost
        ('interval.hi)), interval.unit)', 'interval.hi)), None)', 'lo, hi and unit survive'),
        # the wrong type comes back
        ('cls(*ends, unit)', 'Interval(*ends, unit)', 'the type that was registered'),
        # no addresses
        ('''def register_interval(cls):
    tree_util.register_pytree_node(
        cls, lambda x: ((x.lo, x.hi), x.unit), lambda unit, ends: cls(*ends, unit))
''', r'\.lo and \.hi, not'),
        # hides the unit in the function: structures can't tell
        ('''def register_interval(cls):
    unit = []
    def flatten(x):
        unit[:] = [x.unit]
        return ((tree_util.GetAttrKey('lo'), x.lo), (tree_util.GetAttrKey('hi'), x.hi)), None
    tree_util.register_pytree_with_keys(cls, flatten, lambda _, ends: cls(*ends, *unit))
''', 'the unit belongs into aux'),
    ],
    'to_source': [
        # every leaf the first
        ("f'x[{i}]'", "'x[0]'", 'your source is'),
        # the container instead of its text
        ('kind.show', 'kind.unflatten', 'return text'),
        # (1) is not a tuple
        ('''def to_source(treedef):
    names = [f'x[{i}]' for i in range(treedef.num_leaves)]
    def step(kind):
        if kind.type is tuple:
            return lambda aux, children: f"({', '.join(children)})"
        return kind.show
    return tree_util.put_together(treedef.nodes, names, step)
''', r'for \(1,\) your source is \(x\[0\]\)'),
    ],
}
