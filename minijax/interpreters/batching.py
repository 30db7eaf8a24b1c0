# Exported from notebooks/04_vmap.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: batching. Home: 04_vmap. In JAX: jax/_src/interpreters/batching.py.

Run a function written for one example on a whole batch: the batch axis hides inside the tracer, and
each primitive's batch rule says where it is afterwards.
"""

from minijax.avals import typeof
from minijax.core import (
    Trace, Tracer, check_alive, extend_axis_env, get_current_trace, name_of, rule_for,
    set_current_trace, unzip2,
)
from minijax.leaks import leak_checked
from minijax.rules import AxisData, drop, move_batch_axis, not_mapped

__all__ = ["BatchTracer", "BatchTrace", "batch_flat", "batch_to_dims", "to_dim", "axis_of"]


# --- Tracer and trace -----------------------------------------------------------------------------

class BatchTracer(Tracer):
    """A batch `val` whose axis `batch_dim` the function does not see."""

    __slots__ = ("val", "batch_dim", "_aval")

    def __init__(self, trace, val, batch_dim):
        super().__init__(trace)
        self.val, self.batch_dim, self._aval = val, batch_dim, None

    @property
    def aval(self):
        if self._aval is None:           # worked out for those that are asked
            whole = typeof(self.val)
            self._aval = whole.update(shape=drop(whole.shape, self.batch_dim))
        return self._aval

    def __repr__(self):
        return f"VmapTracer(aval={self.aval}, batched={typeof(self.val)})"


class BatchTrace(Trace):
    """Applies batch rules on the parent trace; `axis` is the axis being mapped."""

    __slots__ = ("parent", "axis")
    doing = "batching"

    def __init__(self, parent, axis, name="<function>"):
        super().__init__(name)
        self.parent, self.axis = parent, axis

    def to_batch(self, x):
        # a rule may run functions of this vmap in a trace of their own: the axis is the same object
        if isinstance(x, BatchTracer) and x._trace.axis is self.axis:
            return x.val, x.batch_dim
        check_alive(x)
        return x, not_mapped

    def from_batch(self, x, dim):
        return x if dim is not_mapped else BatchTracer(self, x, dim)

    def process_primitive(self, primitive, args, params):
        vals, dims = unzip2([self.to_batch(a) for a in args])
        with set_current_trace(self.parent):
            if all([d is not_mapped for d in dims]) and not primitive.applies_functions:
                return primitive.bind(*vals, **params)
            out, out_dims = rule_for(primitive, "batch")(self.axis, vals, dims, **params)
        if primitive.multiple_results:
            return [self.from_batch(x, d) for x, d in zip(out, out_dims)]
        return self.from_batch(out, out_dims)


# --- The transformation of flat functions ---------------------------------------------------------

# batch_flat : ([a] -> [b]) -> axis -> [batch a] -> [dim] -> ([batch b], [dim])

@leak_checked
def batch_flat(f, axis, vals, dims):
    """Results of f on a batch, and where the batch axis of each is (None: the same for all)."""
    trace = BatchTrace(get_current_trace(), axis, name_of(f))
    args = [trace.from_batch(x, d) for x, d in zip(vals, dims)]
    try:
        with set_current_trace(trace), extend_axis_env(axis.name, axis.size):
            outs = f(*args)
        return unzip2([trace.to_batch(out) for out in outs])
    finally:
        trace.end()


def batch_to_dims(f, axis, vals, dims, out_dims):
    """As `batch_flat`, with the batch axis of each result moved to its place in `out_dims`."""
    outs, found = batch_flat(f, axis, vals, dims)
    return [to_dim(axis, x, dim, want) for x, dim, want in zip(outs, found, out_dims)]


def to_dim(axis, x, dim, want):
    if want is not_mapped:
        if dim is not_mapped:
            return x
        raise ValueError("vmap out_axes has None for a result that depends on the batch, "
                         f"{typeof(x).str_short()}: give the axis where the batch should be")
    rank = typeof(x).ndim + (dim is not_mapped)
    if not -rank <= want < rank:
        raise ValueError(f"vmap out_axes: axis {want} is out of range for a result of rank {rank}, "
                         "batch axis included")
    return move_batch_axis(axis, dim, want % rank, x)


def axis_of(size, name=None, spmd_name=None):
    return AxisData(size, name, spmd_name)
