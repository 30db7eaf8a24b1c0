# Exported from notebooks/15_custom_rules.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: custom batching as users give it. Home: 15_custom_rules. In JAX: jax/custom_batching.py.

A function decorated with `custom_vmap` says what it does on a batch.
"""

from minijax.array import as_array
from minijax.avals import typeof
from minijax.control_flow import map as loop_map
from minijax.core import Tracer
from minijax.custom_derivatives import CustomFunction, value_for_rule
from minijax.flatten import FlatFunction, fun_name
from minijax.higher_order.custom_vmap import custom_vmap_call_p
from minijax.higher_order.programs import closed_program, merge, tracked, untracked
from minijax.jaxpr import ClosedJaxpr
from minijax.rules import moveaxis, not_mapped
from minijax.tracebacks import api_boundary
from minijax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = [
    "custom_vmap", "flat_vmap_rule", "check_vmap_rule", "check_batch_axes", "sequential_vmap",
]


# --- custom_vmap ----------------------------------------------------------------------------------

class custom_vmap(CustomFunction):
    """Decorate a function that will bring its own batched form; see `def_vmap`.

    Reverse-mode differentiation goes through the function itself; to have a rule for that as well,
    put custom_vjp outside. Calling the function before it has a rule raises AttributeError.
    """

    kind = "custom_vmap"

    def __init__(self, fun):
        super().__init__(fun)
        self.vmap_rule = None

    def def_vmap(self, vmap_rule):
        """Set the rule: vmap_rule(axis_size, in_batched, *args) -> (output, out_batched).

        Batched arguments and outputs have the batch along axis 0; `in_batched` is a list with a
        tree of booleans for each argument, `out_batched` such a tree for the output.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args, **kwargs):
        if self.vmap_rule is None:
            raise AttributeError("No batching rule defined for custom_vmap function "
                                 f"{fun_name(self.fun)} using def_vmap")
        leaves, in_tree = tree_flatten(self.resolve(args, kwargs))
        leaves = [x if isinstance(x, Tracer) else as_array(x) for x in leaves]
        flat = FlatFunction(self.fun, in_tree)
        program, consts = closed_program(flat, [typeof(x) for x in leaves], fun_name(self.fun))
        outs = custom_vmap_call_p.bind(
            *consts, *leaves, call=ClosedJaxpr(program),
            rule=flat_vmap_rule(self.vmap_rule, len(consts), in_tree, flat.out_tree))
        return tree_unflatten(flat.out_tree, outs)


def flat_vmap_rule(rule, num_consts, in_tree, out_tree):
    """The rule of a call: (axis, batches, their dims) -> (results, their dims)."""
    name = fun_name(rule)

    def flat_rule(axis, vals, dims):
        if any(d is not not_mapped for d in dims[:num_consts]):
            raise ValueError(f"the custom_vmap function with rule {name} closes over a batched "
                             "value, of which the rule is not told: pass it as an argument")
        vals, dims = vals[num_consts:], dims[num_consts:]
        fronted = [value_for_rule(x) if d is not_mapped else moveaxis(x, d, 0)
                   for x, d in zip(vals, dims)]
        in_batched = tree_unflatten(in_tree, [d is not not_mapped for d in dims])
        out, out_batched = rule(axis.size, list(in_batched), *tree_unflatten(in_tree, fronted))
        outs, tree = tree_flatten(out)
        batched, batched_tree = tree_flatten(out_batched)
        check_vmap_rule(name, tree, batched_tree, out_tree)
        check_batch_axes(name, axis.size, outs, batched)
        return outs, [0 if flag else not_mapped for flag in batched]
    flat_rule.__name__ = name
    return flat_rule


def check_vmap_rule(name, tree, batched_tree, out_tree):
    if tree != batched_tree:
        raise ValueError(f"custom vmap rule {name} must return an output and booleans of the same "
                         f"structure; got output {tree} and booleans {batched_tree}")
    if tree != out_tree:
        raise ValueError(f"custom vmap rule {name} must return an output of the structure of the "
                         f"original function's output; expected {out_tree}, got {tree}")


def check_batch_axes(name, size, outs, batched):
    for x, flag in zip(outs, batched):
        if flag and typeof(x).shape[:1] != (size,):
            raise ValueError(f"custom vmap rule {name} says that an output of type "
                             f"{typeof(x).str_short()} is batched: its axis 0 should have the "
                             f"size of the batch, {size}")


def sequential_vmap(f):
    """Decorate a function that vmap is to call for one example after the other, in a loop."""
    f = custom_vmap(f)

    @f.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = tree_flatten(args)
        is_mapped = tree_leaves(in_batched)

        def one(rows):
            return f(*tree_unflatten(tree, merge(is_mapped, rows, untracked(is_mapped, leaves))))

        outs = loop_map(one, tracked(is_mapped, leaves))
        return outs, tree_map(lambda _: True, outs)
    return f
