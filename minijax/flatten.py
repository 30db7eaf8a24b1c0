# Exported from notebooks/10_numpy.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: api. Home: 10_numpy. In JAX: jax/_src/api_util.py.

Interpreters work on flat lists of arrays; users' functions take and return pytrees. Here are the
steps between the two, and the errors for arguments that don't fit.
"""

import inspect
import operator

from minijax.array import Array
from minijax.avals import typeof
from minijax.core import Tracer
from minijax.errors import see
from minijax.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

__all__ = [
    "check_array", "check_tree", "check_results", "FlatFunction", "fun_name", "FlatFunctionWithAux",
    "as_index_tuple", "see_numbers", "normalise_argnums", "split_args", "signature_of",
    "positional_names", "arg_label", "types_of_arguments",
]


# --- Flat functions -------------------------------------------------------------------------------

def check_array(x, where):
    """x, if it is an array or a number; else a TypeError that begins with where it is."""
    if not hasattr(x, "aval"):
        try:
            typeof(x)
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from None
    return x


def check_tree(tree, label):
    for path, x in tree_flatten_with_path(tree)[0]:
        check_array(x, label + (f" at {keystr(path)}" if path else ""))


def check_results(outs, tree, name):
    """TypeError, with its place in the tree, for a result of a function that is no array."""
    if not all([isinstance(x, (Array, Tracer)) for x in outs]):
        check_tree(tree, f"a result of {name}")


class FlatFunction:
    """f on flat arguments: `flat(*leaves)` -> list of leaves; afterwards `out_tree` is known."""

    def __init__(self, f, in_tree, with_kwargs=False):
        self.f, self.in_tree, self.with_kwargs = f, in_tree, with_kwargs
        self.out_tree = None
        self.__name__ = fun_name(f)

    def __call__(self, *leaves):
        args = tree_unflatten(self.in_tree, leaves)
        out = self.f(*args[0], **args[1]) if self.with_kwargs else self.f(*args)
        outs, self.out_tree = tree_flatten(out)
        check_results(outs, out, self.__name__)
        return outs


def fun_name(f):
    f = getattr(f, "func", f)
    return getattr(f, "__name__", type(f).__name__)


class FlatFunctionWithAux(FlatFunction):
    """f returns (out, aux); `flat(*leaves)` returns the leaves of out and the tracers of aux."""

    def __call__(self, *leaves):
        pair = self.f(*tree_unflatten(self.in_tree, leaves))
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError("with has_aux=True the function must return a pair (output, aux), got "
                            f"{type(pair).__name__}")
        outs, self.out_tree = tree_flatten(pair[0])
        check_results(outs, pair[0], self.__name__)
        leaves, self.aux_tree = tree_flatten(pair[1])
        # Only tracers have to be freed of this trace; aux may hold anything else, such as strings.
        self.is_traced = [isinstance(x, Tracer) for x in leaves]
        self.aux_leaves = [None if traced else x for x, traced in zip(leaves, self.is_traced)]
        return [*outs, *[x for x, traced in zip(leaves, self.is_traced) if traced]]

    def aux_of(self, outs):
        """aux, its tracers replaced by what the transformation made of them."""
        freed = iter(outs[self.out_tree.num_leaves:])
        return tree_unflatten(self.aux_tree, [next(freed) if traced else x for x, traced
                                              in zip(self.aux_leaves, self.is_traced)])


# --- Argument positions ---------------------------------------------------------------------------

def as_index_tuple(name, nums):
    """An int or a sequence of ints as a tuple; TypeError for anything else."""
    try:
        return (operator.index(nums),)
    except TypeError:
        pass
    try:
        return tuple(operator.index(n) for n in nums)
    except TypeError:
        raise TypeError(f"{name} must be an int or a tuple of ints, got {nums!r}\n"
                        + see_numbers(name)) from None


def see_numbers(name):
    return see("inputs-of-grad" if name == "argnums" else "static-arguments")


def normalise_argnums(name, argnums, n_args, error=ValueError):
    """Argument numbers counted from the left; `error` for one out of range."""
    out = []
    for n in argnums:
        if not -n_args <= n < n_args:
            raise error(f"{name}={n} is out of range: the function was called with {n_args} "
                        f"positional arguments\n{see_numbers(name)}")
        out.append(n % n_args)
    if len(set(out)) != len(out):
        raise ValueError(f"{name} names an argument twice: {tuple(argnums)}\n{see_numbers(name)}")
    return tuple(out)


def split_args(args, chosen):
    """The chosen arguments, and a function that puts such a tuple back among the others."""
    def rebuild(some):
        full = list(args)
        for i, x in zip(chosen, some):
            full[i] = x
        return full
    return [args[i] for i in chosen], rebuild


# --- Names of arguments ---------------------------------------------------------------------------

def signature_of(f):
    try:
        return inspect.signature(f)
    except (ValueError, TypeError):
        return None


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def positional_names(f):
    """Names of f's positional parameters, as far as a signature says."""
    signature = signature_of(f)
    if signature is None:
        return []
    return [p.name for p in signature.parameters.values() if p.kind in _POSITIONAL]


def arg_label(f, i):
    """How to call argument i of f in a message: `argument 'x' (number 0) of f`."""
    names = positional_names(f)
    name = f"'{names[i]}' (number {i})" if i < len(names) else f"number {i}"
    return f"argument {name} of {fun_name(f)}"


def types_of_arguments(fun, args, kwargs, leaves, type_of=typeof):
    """type_of(leaf) for all; the TypeError for one that is no array names the argument."""
    try:
        return [type_of(x) for x in leaves]
    except TypeError:
        for i, x in enumerate(args):
            check_tree(x, arg_label(fun, i))
        for name, x in kwargs.items():
            check_tree(x, f"argument {name!r} of {fun_name(fun)}")
        raise
