# Exported from notebooks/11_jit.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: loop IR. Home: 11_jit. In JAX: lowering to MLIR (jax/_src/interpreters/mlir.py).

What a lowering rule builds: a list of steps that read and write buffers. A step is a loop nest or a
call of a library function. Memory is flat: an array is a row of elements, and an index map says
which of them a loop touches. So a transpose, a slice or a broadcast is arithmetic on indices, not a
copy.
"""

from functools import partial
from math import gcd, prod

import numpy as np

from minijax import dtypes
from minijax.array import Array
from minijax.core import eval_trace, rule_for, set_current_trace
from minijax.jaxpr import Literal

__all__ = [
    "Axis", "Quotient", "Remainder", "Dynamic", "Index", "atom_bounds", "axis_index", "ZERO",
    "strides_of", "flat_index", "linear_sum", "unflatten", "row_major", "substitute_index",
    "substitute_atom", "axes_in", "dynamic_nodes", "Buffer", "Node", "Const", "AxisValue",
    "InBounds", "Load", "Op", "Reduce", "Store", "index_maps_of", "guard_of", "nodes_read",
    "all_nodes", "SAME", "BOOL", "OTHER", "NARROW", "COMPLEX", "MOVES", "OF_COMPLEX", "OPS",
    "IDENTITIES", "identity", "op", "const_like", "convert", "wide", "bits_of", "parts_of", "join",
    "Nest", "Product", "is_fusible", "Call", "Loop", "While", "Branch", "Program", "buffer_of",
    "programs_in", "with_programs", "buffers_read", "buffers_written", "inputs_of", "NATIVE",
    "LoweringContext", "lowered_atom", "read", "guarded", "dynamic_index", "body_of",
    "lower_elementwise", "in_wide", "in_pairs", "lower_moving", "elementwise_step", "lower_view",
    "view_step", "store_part", "lower_reduction", "combined_step", "reduce_elements", "runs_along",
    "reduce_in_register", "reduce_in_memory", "LANES", "FEW_LANES", "lanes_for", "library_step",
    "on_buffers", "on_arrays",
]


# --- Index maps -----------------------------------------------------------------------------------

class Axis:
    """A loop variable, 0 … size - 1. Each loop has its own; the renderer names it."""

    __slots__ = ("size",)

    def __init__(self, size):
        self.size = size


class Quotient:
    """index // divisor, rounded down: an atom of other index maps."""

    __slots__ = ("index", "divisor", "key")

    def __init__(self, index, divisor):
        self.index, self.divisor = index, divisor
        self.key = (type(self).__name__, index.key(), divisor)

    def __eq__(self, other):
        return isinstance(other, Quotient) and self.key == other.key

    def __hash__(self):
        return hash(self.key)


class Remainder(Quotient):
    """index % divisor, never negative: an atom of other index maps."""

    __slots__ = ()


class Dynamic:
    """An index that the program computes: the value of `node`, known to lie in low … high."""

    __slots__ = ("node", "low", "high")

    def __init__(self, node, low, high):
        self.node, self.low, self.high = node, low, high

    def __eq__(self, other):
        return isinstance(other, Dynamic) and self.node is other.node

    def __hash__(self):
        return id(self.node)


class Index:
    """offset + Σ coefficient · atom, where an atom is an Axis, Quotient, Remainder or Dynamic.

    Sums and multiples stay in this form; quotients and remainders leave it only where they must.
    """

    __slots__ = ("terms", "offset", "_key")

    def __init__(self, terms, offset=0):
        self.terms = {atom: c for atom, c in terms.items() if c} if 0 in terms.values() else terms
        self.offset = offset
        self._key = None

    def key(self):
        if self._key is None:
            self._key = (frozenset(self.terms.items()), self.offset)
        return self._key

    def __eq__(self, other):
        return isinstance(other, Index) and self.key() == other.key()

    def __hash__(self):
        return hash(self.key())

    def __add__(self, other):
        if isinstance(other, int):
            return Index(self.terms, self.offset + other)
        terms = dict(self.terms)
        for atom, c in other.terms.items():
            terms[atom] = terms.get(atom, 0) + c
        return Index(terms, self.offset + other.offset)

    def __mul__(self, factor):
        return Index({atom: c * factor for atom, c in self.terms.items()}, self.offset * factor)

    def __sub__(self, other):
        return self + (-other if isinstance(other, int) else other * -1)

    def __floordiv__(self, n):
        whole, rest = self.split(n)
        low, high = rest.bounds()
        if low // n == high // n:
            return whole + low // n
        g = gcd(n, *rest.terms.values())
        if g == n:
            return whole + rest // n
        reduced = Index({a: c // g for a, c in rest.terms.items()}, rest.offset // g)
        return whole + Index({Quotient(reduced, n // g): 1})

    def __mod__(self, n):
        _, rest = self.split(n)
        low, high = rest.bounds()
        if low // n == high // n:
            return rest - low // n * n
        return Index({Remainder(rest, n): 1})

    def split(self, n):
        """(whole, rest) with self = n · whole + rest, where rest has no term that n divides."""
        whole = {a: c // n for a, c in self.terms.items() if c % n == 0}
        rest = {a: c for a, c in self.terms.items() if c % n}
        return Index(whole, self.offset // n), Index(rest, self.offset % n)

    def bounds(self):
        """The least and the greatest value that the index can take."""
        low = high = self.offset
        for atom, c in self.terms.items():
            first, last = atom_bounds(atom)
            low += c * (first if c > 0 else last)
            high += c * (last if c > 0 else first)
        return low, high


def atom_bounds(atom):
    if isinstance(atom, Axis):
        return 0, max(atom.size - 1, 0)
    if isinstance(atom, Dynamic):
        return atom.low, atom.high
    if isinstance(atom, Remainder):
        return 0, atom.divisor - 1
    low, high = atom.index.bounds()
    return low // atom.divisor, high // atom.divisor


def axis_index(axis):
    """The index map that is one loop variable."""
    return Index({axis: 1} if axis.size != 1 else {})


ZERO = Index({})


def strides_of(shape):
    """Distances in memory between neighbours along each axis of a row-major array."""
    strides = [1] * len(shape)
    for k in reversed(range(len(shape) - 1)):
        strides[k] = strides[k + 1] * shape[k + 1]
    return strides


def flat_index(indices, shape):
    """The place in memory of an element of a row-major array of this shape."""
    return linear_sum([(index, stride) for index, stride in zip(indices, strides_of(shape))])


def linear_sum(pairs, offset=0):
    """offset + Σ index · factor over pairs of both."""
    terms = {}
    for index, factor in pairs:
        offset += index.offset * factor
        for atom, c in index.terms.items():
            terms[atom] = terms.get(atom, 0) + c * factor
    return Index(terms, offset)


def unflatten(index, shape):
    """The index along each axis of the element at a place in memory: `flat_index` undone."""
    if len(shape) == 1:
        return [index]
    outer = [index // stride for stride in strides_of(shape)]
    return [o if k == 0 else o % n for k, (o, n) in enumerate(zip(outer, shape))]


def row_major(axes):
    """The place in memory that loops over `axes` visit, one element after the other."""
    if len(axes) == 1:
        return axis_index(axes[0])
    return flat_index([axis_index(a) for a in axes], [a.size for a in axes])


def substitute_index(index, axis_values, node_values=None):
    """The index map with other index maps in place of axes, and other nodes in Dynamic atoms."""
    return linear_sum([(substitute_atom(atom, axis_values, node_values), c)
                       for atom, c in index.terms.items()], index.offset)


def substitute_atom(atom, axis_values, node_values):
    if isinstance(atom, Axis):
        found = axis_values.get(atom)
        return axis_index(atom) if found is None else found
    if isinstance(atom, Dynamic):
        node = (node_values or {}).get(atom.node, atom.node)
        return Index({Dynamic(node, atom.low, atom.high): 1})
    inner = substitute_index(atom.index, axis_values, node_values)
    return inner % atom.divisor if isinstance(atom, Remainder) else inner // atom.divisor


def axes_in(index):
    """The loop variables that an index map depends on."""
    for atom in index.terms:
        if isinstance(atom, Axis):
            yield atom
        elif isinstance(atom, Quotient):
            yield from axes_in(atom.index)


def dynamic_nodes(index):
    """The nodes whose values an index map reads."""
    for atom in index.terms:
        if isinstance(atom, Dynamic):
            yield atom.node
        elif isinstance(atom, Quotient):
            yield from dynamic_nodes(atom.index)


# --- Buffers --------------------------------------------------------------------------------------

class Buffer:
    """Memory for the elements of one array, in row-major order."""

    __slots__ = ("shape", "dtype", "var")

    def __init__(self, shape, dtype, var=None):
        self.shape, self.dtype, self.var = shape, dtype, var

    size = property(lambda self: prod(self.shape))


# --- Nodes: what a loop's body computes -----------------------------------------------------------

# A body is a list of nodes in which each stands after those it reads. A node equals only itself.

class Node:
    """A value, or an effect on memory. `eqn` is the number of the equation it came from."""

    __slots__ = ("dtype", "eqn")

    args = ()                     # the nodes whose values it reads


class Const(Node):
    """A number of a dtype, as a NumPy scalar."""

    __slots__ = ("value",)

    def __init__(self, value, dtype):
        self.value = np.asarray(value).astype(dtype)[()]
        self.dtype, self.eqn = np.dtype(dtype), None


class AxisValue(Node):
    """An index as a number of the program."""

    __slots__ = ("index",)

    def __init__(self, index, dtype, eqn=None):
        self.index, self.dtype, self.eqn = index, np.dtype(dtype), eqn


class InBounds(Node):
    """Whether 0 <= index < size holds for each (index, size) of the guard."""

    __slots__ = ("guard",)

    def __init__(self, guard, eqn=None):
        self.guard, self.dtype, self.eqn = guard, np.dtype(bool), eqn


class Load(Node):
    """The element of a buffer at an index; 0 where a guard, as in InBounds, does not hold."""

    __slots__ = ("buffer", "index", "guard")

    def __init__(self, buffer, index, guard=(), eqn=None):
        self.buffer, self.index, self.guard = buffer, index, guard
        self.dtype, self.eqn = buffer.dtype, eqn


class Op(Node):
    """A scalar operation of OPS on earlier nodes."""

    __slots__ = ("name", "args")

    def __init__(self, name, args, dtype, eqn=None):
        self.name, self.args, self.dtype, self.eqn = name, args, np.dtype(dtype), eqn


class Reduce(Node):
    """Loops over `axes` that combine the values of `value`, the last node of `body`.

    lanes = 1: one accumulator, in the loops' order. lanes = n: element i of the innermost loop goes
    to accumulator i mod n, and then accumulators are combined in pairs, n/2 apart, n/4 apart, … .
    """

    __slots__ = ("name", "axes", "body", "value", "lanes")

    def __init__(self, name, axes, body, value, lanes, eqn=None):
        self.name, self.axes, self.body, self.value = name, axes, body, value
        self.lanes, self.dtype, self.eqn = lanes, value.dtype, eqn


class Store(Node):
    """buffer[index] = value, into memory that nothing was written to before.

    With `combine`, the buffer is full already: the value is combined with the element that is
    there, or, if combine is "replace", takes its place.
    """

    __slots__ = ("buffer", "index", "value", "combine", "args")

    def __init__(self, buffer, index, value, combine=None, eqn=None):
        self.buffer, self.index, self.value, self.combine = buffer, index, value, combine
        self.args, self.dtype, self.eqn = (value,), None, eqn


def index_maps_of(node):
    """The index maps that a node itself uses."""
    if isinstance(node, Load):
        return [node.index, *(index for index, _ in node.guard)]
    if isinstance(node, InBounds):
        return [index for index, _ in node.guard]
    return [node.index] if isinstance(node, (AxisValue, Store)) else []


def guard_of(pairs):
    """A guard without the conditions that hold for every value of the loops."""
    return tuple((index, size) for index, size in pairs
                 if not (index.bounds()[0] >= 0 and index.bounds()[1] < size))


def nodes_read(node):
    """The nodes of the same body whose values a node reads, as operands or in index maps."""
    yield from node.args
    for index in index_maps_of(node):
        yield from dynamic_nodes(index)


def all_nodes(body):
    """The nodes of a body and of the loops inside it."""
    for node in body:
        if isinstance(node, Reduce):
            yield from all_nodes(node.body)
        yield node


# --- Scalar operations ----------------------------------------------------------------------------

# Their meaning is JAX's, for every dtype: integers wrap, division by zero does not trap.

SAME, BOOL, OTHER = "same", "bool", "other"        # the dtype of the result

# Narrow numbers, which are floats of 16 bits or less and integers of fewer than 8, and complex ones
# are only moved, chosen, converted and taken apart: rules compute with the wider numbers, or the
# two parts, that they are converted to. What stores and reductions do, and so products of matrices,
# complex numbers take part in as they are.
NARROW = dtypes.computed_in       # narrow dtype -> the dtype that is computed in
COMPLEX = frozenset((np.dtype(np.complex64), np.dtype(np.complex128)))
MOVES = frozenset("select convert bitcast real imag complex".split())
OF_COMPLEX = MOVES | {"add", "mul", "max", "min"}

OPS = {
    **dict.fromkeys(("neg abs sign not floor ceil trunc round_even round_away sqrt rsqrt cbrt exp "
                     "exp2 expm1 log log1p log2 sin cos tan asin acos atan sinh cosh tanh asinh "
                     "acosh atanh erf erfc erf_inv lgamma logistic popcount clz").split(),
                    (1, SAME)),
    **dict.fromkeys(("add sub mul div rem max min pow atan2 and or xor shift_left "
                     "shift_right_logical shift_right_arithmetic nextafter").split(), (2, SAME)),
    **dict.fromkeys("eq ne lt le gt ge".split(), (2, BOOL)),
    "is_finite": (1, BOOL), "is_nan": (1, BOOL),
    "select": (3, SAME),                           # condition, if true, if false
    "convert": (1, OTHER), "bitcast": (1, OTHER),
    "real": (1, OTHER), "imag": (1, OTHER), "complex": (2, OTHER),
    "clamp_index": (3, OTHER),                     # value, low, high -> int64
}


# What a reduction starts from, given the dtype.
IDENTITIES = {
    "add": lambda dtype: 0, "mul": lambda dtype: 1, "or": lambda dtype: 0, "xor": lambda dtype: 0,
    "and": lambda dtype: True if dtype == bool else -1,
    "max": dtypes.lowest, "min": dtypes.highest,
}


def identity(name, dtype):
    if name == "and" and dtype != bool:
        return Const(np.invert(np.zeros((), dtype)), dtype)
    return Const(IDENTITIES[name](dtype), dtype)


def op(name, *args):
    """A node for an operation whose result has its operands' dtype, or is a bool."""
    _, result = OPS[name]
    return Op(name, args, bool if result is BOOL else args[-1].dtype)


def const_like(node, value):
    return Const(value, node.dtype)


def convert(node, dtype):
    """A node for the conversion of a value to another dtype, if it has another."""
    dtype = np.dtype(dtype)
    if node.dtype == dtype:
        return node
    if dtype in COMPLEX:
        part = np.finfo(dtype).dtype
        return join(*(convert(x, part) for x in parts_of(node)))
    if node.dtype in COMPLEX:
        re, im = parts_of(node)
        is_bool = dtype == bool
        return op("or", convert(re, bool), convert(im, bool)) if is_bool else convert(re, dtype)
    return Op("convert", (node,), dtype)


def wide(node):
    """The value as a number that can be computed with: float32 for a narrow float."""
    return convert(node, NARROW.get(node.dtype, node.dtype))


def bits_of(dtype):
    """The dtype of unsigned integers that take as much memory."""
    return np.dtype(f"u{dtype.itemsize}")


def parts_of(node):
    """The real and the imaginary part of a value."""
    if node.dtype not in COMPLEX:
        return node, Const(0, node.dtype)
    part = np.finfo(node.dtype).dtype
    if isinstance(node, Const):
        return Const(node.value.real, part), Const(node.value.imag, part)
    if isinstance(node, Op) and node.name == "complex":
        return node.args
    return Op("real", (node,), part), Op("imag", (node,), part)


def join(re, im):
    """A node for re + i im."""
    return Op("complex", (re, im), np.result_type(re.dtype, np.complex64))


# --- Steps and programs ---------------------------------------------------------------------------

class Nest:
    """Loops over `axes`, outermost first, around a body."""

    __slots__ = ("axes", "body", "_order")

    def __init__(self, axes, body):
        self.axes, self.body, self._order = list(axes), body, None

    def order(self):
        """The index map of loops that go through a whole array in the order of memory."""
        if self._order is None:
            self._order = row_major(self.axes)
        return self._order

    def count(self):
        """How often the body runs."""
        return prod([a.size for a in self.axes])


class Product(Nest):
    """out[b, m, n] = Σ lhs[b, m, k] · rhs[b, k, n]: a nest that stays whole, for BLAS to run.

    Its axes are those of b, m and n. The body's last nodes are a Reduce over k, whose value is the
    product of two loads, and a Store. `lower_products.matrices` is what BLAS sees of it.
    """

    __slots__ = ()


def is_fusible(step):
    """Whether a step is loops around a body that others may join, cut or change."""
    return isinstance(step, Nest) and not isinstance(step, Product)


class Call:
    """outputs = function(*inputs): a step that a NumPy library does, between nests.

    An input is a buffer, or a pair of one and a permutation of its axes: a strided view.
    The function returns a list if `many`, else the only output.
    """

    __slots__ = ("name", "function", "inputs", "outputs", "eqn", "many")

    def __init__(self, name, function, inputs, outputs, eqn=None, many=False):
        self.name, self.function, self.eqn, self.many = name, function, eqn, many
        self.inputs, self.outputs = list(inputs), list(outputs)


class Loop:
    """Runs the program `body` once for each turn of `axis`, which its index maps may use.

    A carry is a triple (start, now, following) of buffers. `now` begins as a copy of `start`; a
    turn reads `now` and fills `following`; then the two change places. `now` ends as the result.
    If `now` is `start`, it has its first value already; if `following` is `now`, turns update it in
    place. The other outputs of the body are filled a part in each turn, or a whole in every one.
    """

    __slots__ = ("axis", "body", "carries", "eqn")

    def __init__(self, axis, body, carries=(), eqn=None):
        self.axis, self.body, self.carries, self.eqn = axis, body, list(carries), eqn


class While:
    """Runs `body` as long as the program `condition` puts True into its only output.

    Both read the carries, which are those of a Loop.
    """

    __slots__ = ("condition", "body", "carries", "eqn")

    def __init__(self, condition, body, carries, eqn=None):
        self.condition, self.body, self.carries, self.eqn = condition, body, list(carries), eqn


class Branch:
    """Runs one of the programs `branches`, which all fill `outputs`.

    `index` holds its number; too small a number means the first, too large a one the last.
    """

    __slots__ = ("index", "branches", "outputs", "eqn")

    def __init__(self, index, branches, outputs, eqn=None):
        self.index, self.branches, self.outputs, self.eqn = index, branches, list(outputs), eqn


class Program:
    """Steps in order, between the buffers of a program's arguments and those of its results."""

    __slots__ = ("inputs", "steps", "outputs", "eqns")

    def __init__(self, inputs, steps, outputs, eqns):
        self.inputs, self.steps, self.outputs, self.eqns = inputs, steps, outputs, eqns


def buffer_of(call_input):
    return call_input[0] if isinstance(call_input, tuple) else call_input


def programs_in(step):
    """The programs that a step contains."""
    if isinstance(step, Loop):
        return [step.body]
    if isinstance(step, While):
        return [step.condition, step.body]
    return step.branches if isinstance(step, Branch) else []


def with_programs(step, programs):
    """The step with other programs in place of those that it contains."""
    if isinstance(step, Loop):
        return Loop(step.axis, *programs, step.carries, step.eqn)
    if isinstance(step, While):
        return While(*programs, step.carries, step.eqn)
    return Branch(step.index, programs, step.outputs, step.eqn)


def buffers_read(step):
    """The buffers that a step reads and does not fill itself."""
    if isinstance(step, Nest):
        return [n.buffer for n in all_nodes(step.body)
                if isinstance(n, Load) or isinstance(n, Store) and n.combine]
    if isinstance(step, Call):
        return [buffer_of(b) for b in step.inputs]
    if isinstance(step, Branch):
        return [step.index, *(b for branch in step.branches for b in branch.inputs)]
    inside = {now for _, now, _ in step.carries}
    return [*(start for start, _, _ in step.carries),
            *(b for p in programs_in(step) for b in p.inputs if b not in inside)]


def buffers_written(step):
    if isinstance(step, Nest):
        return [n.buffer for n in step.body if isinstance(n, Store)]
    if isinstance(step, (Call, Branch)):
        return step.outputs
    following = {b for _, _, b in step.carries}
    return [*(now for _, now, _ in step.carries),
            *(b for b in step.body.outputs if b not in following)]


def inputs_of(steps, outputs):
    """The buffers that a program of these steps gets from outside, in the order of use."""
    written, inputs = set(), {}
    for step in steps:
        inputs.update((b, None) for b in buffers_read(step) if b not in written)
        written.update(buffers_written(step))
    inputs.update((b, None) for b in outputs if b not in written)
    return list(inputs)


# --- Lowering: what rules see ---------------------------------------------------------------------

# A lowering rule gets a context and one value for each operand: a Buffer, or a Const for a literal.

# Dtypes that generated loops compute with: all but float0, whose numbers have no bytes. Arrays of
# those go through library steps.
NATIVE = frozenset(dtypes.all_dtypes)


class LoweringContext:
    """Collects the steps of a program; knows the equation that is being lowered.

    The body of a loop has a context of its own, whose `outer` is that of the program around it.
    """

    def __init__(self, outer=None):
        self.outer = outer
        self.steps, self.eqns, self.carried = [], [], set()
        self.eqn = None           # the equation, and its number
        self.number = None

    def lower(self, jaxpr, values):
        """Append the steps of a jaxpr's equations; `values` are those of its constvars and invars.

        Returns the values of its results, each a Buffer or a Const.
        """
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], values, strict=True))
        caller = self.eqn, self.number
        for eqn in jaxpr.eqns:
            self.eqn, self.number = eqn, len(self.eqns)
            self.eqns.append(eqn)
            operands = [lowered_atom(env, atom) for atom in eqn.invars]
            outs = rule_for(eqn.primitive, "lowering")(self, *operands, **eqn.params)
            outs = outs if eqn.primitive.multiple_results else [outs]
            env.update(zip(eqn.outvars, outs, strict=True))
        self.eqn, self.number = caller
        return [lowered_atom(env, atom) for atom in jaxpr.outvars]

    def lower_closed(self, closed, values):
        """As `lower`, for a program in a program, whose constants come from outside all loops."""
        consts = [self.constant(c) for c in closed.consts]
        return self.lower(closed.jaxpr, [*consts, *values])

    def constant(self, value):
        """A constant of the program: a number where it is used, or memory that is filled once."""
        array = np.asarray(value)
        if array.ndim == 0 and array.dtype in NATIVE:
            return Const(array[()], array.dtype)
        if self.outer is not None:
            return self.outer.constant(value)
        out = Buffer(array.shape, array.dtype)
        self.emit(Call("constant", lambda: array, [], [out], self.number))
        return out

    def home_of(self, buffer):
        """The context of the outermost program that has the buffer, or gets it from outside."""
        made_here = buffer in self.carried or any(buffer in buffers_written(s) for s in self.steps)
        return self if made_here or self.outer is None else self.outer.home_of(buffer)

    def program(self, outputs):
        """The program of all steps so far; its inputs are the buffers that they don't fill."""
        return Program(inputs_of(self.steps, outputs), self.steps, outputs, self.eqns)

    avals_in = property(lambda self: [v.aval for v in self.eqn.invars])
    avals_out = property(lambda self: [v.aval for v in self.eqn.outvars])

    def is_native(self):
        """Whether loops can do the work: all dtypes are of the NATIVE ones."""
        return all(a.dtype in NATIVE for a in self.avals_in + self.avals_out)

    def result(self, number=0):
        """A new buffer for a result of the equation."""
        var = self.eqn.outvars[number]
        return Buffer(var.aval.shape, var.aval.dtype, var)

    def emit(self, step):
        self.steps.append(step)

    def nest(self, axes, body, kind=Nest):
        """Append a nest, unless it is empty; its nodes come from the current equation."""
        if any(a.size == 0 for a in axes):
            return
        for node in all_nodes(body):
            node.eqn = self.number
        self.emit(kind(axes, body))

    def as_buffer(self, value):
        """The value in memory: a literal is stored first."""
        if isinstance(value, Buffer):
            return value
        if value.dtype not in NATIVE:       # float0, which no loop can store
            return self.constant(value.value)
        out = Buffer((), value.dtype)
        self.nest([], [value, Store(out, ZERO, value)])
        return out

    def call(self, name, function, values, many=False):
        """Append a call of function(*arrays) -> array, or list; return its output buffers."""
        outputs = [self.result(k) for k in range(len(self.eqn.outvars))]
        inputs = [self.as_buffer(v) for v in values]
        self.emit(Call(name, function, inputs, outputs, self.number, many))
        return outputs


def lowered_atom(env, atom):
    if isinstance(atom, Literal):
        return Const(np.asarray(atom.val)[()], atom.aval.dtype)
    return env[atom]


def read(value, index):
    """The node for an operand's element: its only one, if it has only one."""
    if isinstance(value, Const):
        return value
    return Load(value, ZERO if value.size == 1 else index)


def guarded(value, guard, otherwise):
    """A node for `value` where a guard holds, and `otherwise` where it does not."""
    return op("select", InBounds(guard), value, otherwise) if guard else value


def dynamic_index(value, low, high):
    """The index map of an index known at run time, moved into low … high."""
    if isinstance(value, Const):
        return ZERO + min(max(int(value.value), low), high)
    bounds = Const(low, np.int64), Const(high, np.int64)
    return Index({Dynamic(Op("clamp_index", (wide(value), *bounds), np.int64), low, high): 1})


def body_of(roots):
    """The nodes that `roots` need, each after those it reads; found without recursion."""
    order, done, stack = [], set(), list(reversed(roots))
    while stack:
        node = stack[-1]
        missing = [n for n in nodes_read(node) if id(n) not in done] if id(node) not in done else []
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if id(node) not in done:
            done.add(id(node))
            order.append(node)
    return order


# --- Makers of lowering rules ---------------------------------------------------------------------

def lower_elementwise(primitive, scalar, of_pairs=None):
    """One loop over all elements: `scalar` is one of OPS, or scalar(*nodes, **params) -> node.

    If there are complex operands, of_pairs(*values, **params) computes with pairs (real, imaginary)
    in their place, and returns a node or a pair. Without it, they go through a library step.
    """
    function = partial(op, scalar) if isinstance(scalar, str) else scalar

    def lowering(ctx, *values, **params):
        is_complex = any(v.dtype in COMPLEX for v in values)
        if not ctx.is_native() or is_complex and of_pairs is None:
            return library_step(ctx, *values, **params)
        compute = partial(in_pairs, of_pairs) if is_complex else partial(in_wide, function)
        return elementwise_step(ctx, partial(compute, **params), *values)
    primitive.def_lowering(lowering)


def in_wide(function, *nodes, **params):
    """function of numbers that can be computed with."""
    return function(*map(wide, nodes), **params)


def in_pairs(function, *nodes, **params):
    """function of the parts of complex numbers."""
    values = [parts_of(n) if n.dtype in COMPLEX else n for n in nodes]
    out = function(*values, **params)
    return join(*out) if isinstance(out, tuple) else out


def lower_moving(primitive, function):
    """A loop over all elements: function(*nodes, **params) is one of the operands, bit for bit."""
    def lowering(ctx, *values, **params):
        if not ctx.is_native():
            return library_step(ctx, *values, **params)
        return elementwise_step(ctx, partial(function, **params), *values)
    primitive.def_lowering(lowering)


def elementwise_step(ctx, function, *values):
    """Append a loop over all elements that stores function(*nodes)."""
    out = ctx.result()
    axis = Axis(out.size)
    value = function(*[read(v, axis_index(axis)) for v in values])
    store = Store(out, axis_index(axis), convert(value, out.dtype))
    ctx.nest([axis], body_of([store]))
    return out


def lower_view(primitive, index_map):
    """A result that only rearranges its operand.

    index_map(out_indices, shape, **params) -> the operand's index along each axis.
    """
    def lowering(ctx, x, **params):
        if not ctx.is_native():
            return library_step(ctx, x, **params)
        return view_step(ctx, partial(index_map, **params), x)
    primitive.def_lowering(lowering)


def view_step(ctx, index_map, x, number=0):
    """Append loops that store the operand's element at index_map(out_indices, shape)."""
    out = ctx.result(number)
    axes = [Axis(n) for n in out.shape]
    shape = () if isinstance(x, Const) else x.shape
    value = read(x, flat_index(index_map([axis_index(a) for a in axes], shape), shape))
    ctx.nest(axes, body_of([Store(out, row_major(axes), value)]))
    return out


def store_part(ctx, out, x, start, combine=None):
    """Write an operand into a part of `out` that begins at the index maps `start`."""
    axes = [Axis(n) for n in x.shape]
    place = flat_index([axis_index(a) + s for a, s in zip(axes, start)], out.shape)
    ctx.nest(axes, body_of([Store(out, place, Load(x, row_major(axes)), combine)]))


def lower_reduction(primitive, name):
    """Combine all elements along params["axes"] by the operation `name` of IDENTITIES."""
    def lowering(ctx, x, *, axes, **params):
        if not ctx.is_native():
            return library_step(ctx, x, axes=axes, **params)
        x, out = ctx.as_buffer(x), ctx.result()
        if x.dtype in NARROW and x.size:        # rounded once, at the end
            total = Buffer(out.shape, NARROW[x.dtype])
            reduce_elements(ctx, name, total, x, axes, wide)
            combined_step(ctx, out, lambda total: convert(total, out.dtype), [total])
        elif x.dtype in COMPLEX and name == "add":
            totals = [Buffer(out.shape, np.finfo(x.dtype).dtype) for _ in range(2)]
            for k, total in enumerate(totals):
                reduce_elements(ctx, name, total, x, axes, lambda element: parts_of(element)[k])
            combined_step(ctx, out, join, totals)
        else:
            reduce_elements(ctx, name, out, x, axes, lambda element: element)
        return out
    primitive.def_lowering(lowering)


def combined_step(ctx, out, function, buffers):
    """Append a loop that fills `out` with function(*elements) of other buffers."""
    axis = Axis(out.size)
    value = function(*[Load(b, axis_index(axis)) for b in buffers])
    ctx.nest([axis], body_of([Store(out, axis_index(axis), value)]))


def reduce_elements(ctx, name, out, x, axes, part):
    """Append loops that combine part(element) of all elements along `axes`."""
    loops = [Axis(n) for n in x.shape]
    inner = [a for k, a in enumerate(loops) if k in axes]
    outer = [a for k, a in enumerate(loops) if k not in axes]
    value = part(Load(x, row_major(loops)))
    if all(a.size == 1 for a in inner):
        ctx.nest(outer, body_of([Store(out, row_major(outer), value)]))
    elif runs_along(inner, loops):
        reduce_in_register(ctx, name, out, outer, inner, value)
    else:
        reduce_in_memory(ctx, name, out, outer, loops, value)


def runs_along(inner, loops):
    """Whether reduced elements lie side by side, or nearly: then a register can take them up."""
    long = [a for a in loops if a.size != 1]
    if not long or long[-1] in inner or prod(a.size for a in loops) == 0:
        return True
    last = max(k for k, a in enumerate(long) if a in inner)
    return prod(a.size for a in long[last + 1:]) <= 4 and prod(a.size for a in inner) >= 4 * LANES


def reduce_in_register(ctx, name, out, outer, inner, load):
    """For each result, loops over its elements, which lie side by side."""
    if any(a.size == 0 for a in inner):
        value = identity(name, out.dtype)
    else:
        value = Reduce(name, inner, body_of([load]), load, lanes_for(inner))
    ctx.nest(outer, [value, Store(out, row_major(outer), value)])


def reduce_in_memory(ctx, name, out, outer, loops, load):
    """All results at once: go through the operand in memory order, add each row to the results."""
    axes = [Axis(a.size) for a in outer]
    start = identity(name, out.dtype)
    ctx.nest(axes, [start, Store(out, row_major(axes), start)])
    ctx.nest(loops, body_of([Store(out, row_major(outer), load, combine=name)]))


# Accumulators of a long loop, and of one that is not so long: a vector unit adds 16 float32 at a
# time, and can start the next four such additions before the first is done.
LANES, FEW_LANES = 64, 16


def lanes_for(axes):
    """Many accumulators for long loops, so that a vector unit can fill them; one for short ones."""
    innermost = next((a.size for a in reversed(axes) if a.size != 1), 1)
    return LANES if innermost >= 4 * LANES else FEW_LANES if innermost >= FEW_LANES else 1


def library_step(ctx, *values, **params):
    """The lowering rule of primitives that generated loops have no form for."""
    primitive = ctx.eqn.primitive
    run = on_arrays if primitive.higher_order else on_buffers
    many = primitive.multiple_results
    outs = ctx.call(primitive.name, run(primitive, params, ctx.avals_in), values, many)
    return outs if many else outs[0]


def on_buffers(primitive, params, avals):
    impl = primitive.rules["impl"]
    return lambda *arrays: impl(*arrays, **params)


def on_arrays(primitive, params, avals):
    """Programs in programs take and return Arrays; whatever runs inside is evaluated at once."""
    impl, weak = primitive.rules["impl"], [a.weak_type for a in avals]

    def run(*arrays):
        with set_current_trace(eval_trace):
            outs = impl(*map(Array, arrays, weak), **params)
        return [o._value for o in outs] if primitive.multiple_results else outs._value
    return run
