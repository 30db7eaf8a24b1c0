# Exported from notebooks/02_trees.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: trees. Home: 02_trees. In JAX: jaxlib's pytree.cc, which is C++ for this reason.

A recipe as straight-line Python. `reader` and `builder` write, for one structure, the function that
takes its trees apart and the one that puts them together, without a loop over nodes.
"""

from minijax.tree_util import PyTreeDef

__all__ = ["builder", "MAX_NODES", "PLAIN", "reader"]


# --- A recipe as a program ------------------------------------------------------------------------

def builder(treedef: PyTreeDef):
    """The function of a list of leaves that builds this tree: `treedef.unflatten`, unrolled."""
    names, stack, leaf = {}, [], 0
    for kind, arity, aux in treedef.nodes:
        children = [stack.pop() for _ in range(arity)][::-1]
        if kind is None:
            stack.append(f"x[{leaf}]")
            leaf += 1
        else:
            stack.append(_container(kind, aux, children, names))
    return _define(treedef, names, f"def build(x):\n    return {stack[0]}\n", "build",
                   treedef.unflatten)


def _container(kind, aux, children, names):
    inside = "".join(f"{c}, " for c in children)
    if kind.type is tuple:
        return f"({inside})"
    if kind.type is list:
        return f"[{inside}]"
    if kind.type is dict:
        return "{" + ", ".join(f"{_named(k, names)}: {c}" for k, c in zip(aux, children)) + "}"
    return f"{_named(kind.unflatten, names)}({_named(aux, names)}, ({inside}))"


def _named(value, names):
    """The text of a string, or a name for any other value."""
    if type(value) is str:
        return repr(value)
    name = f"c{len(names)}"
    names[name] = value
    return name


MAX_NODES = 2000        # beyond that the source is not worth its compilation


def _define(treedef, names, source, name, otherwise):
    if treedef.num_nodes > MAX_NODES:
        return otherwise
    try:
        exec(source, names)
    except (MemoryError, RecursionError, SyntaxError):      # nested too deeply for Python's parser
        return otherwise
    return names[name]


PLAIN = (tuple, list, dict, type(None))


def reader(treedef: PyTreeDef):
    """The function of a tree that lists what stands at the places of leaves, or returns None.

    None means that the tree is not built like this one. Whether what stands there is a leaf is left
    to the caller. Recipes with other containers than those of Python are always refused.
    """
    if not all(kind is None or kind.type in PLAIN for kind, _, _ in treedef.nodes):
        return _refuse
    names, lines, leaves, agenda = {}, [], [], ["t"]
    for kind, arity, aux in reversed(treedef.nodes):
        x = agenda.pop()
        if kind is None:
            leaves.append(x)
        else:
            agenda += _open(x, kind.type, arity, aux, lines, names)
    inside = "".join(f"        {line}\n" for line in lines)
    source = (f"def read(t):\n    try:\n{inside}        return [{', '.join(reversed(leaves))}]\n"
              "    except KeyError:\n        return None\n")
    return _define(treedef, names, source, "read", _refuse)


def _open(x, cls, arity, aux, lines, names):
    """Write lines that check one container and name its children."""
    if cls is type(None):
        lines.append(f"if {x} is not None: return None")
        return []
    lines.append(f"if type({x}) is not {cls.__name__} or len({x}) != {arity}: return None")
    children = [f"{x}_{i}" for i in range(arity)]
    if cls is dict:
        lines += [f"{c} = {x}[{_named(k, names)}]" for c, k in zip(children, aux)]
    elif children:
        lines.append(f"{', '.join(children)}, = {x}")
    return children


def _refuse(tree):
    return None
