# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's and LLVM's loop vectorizers.

Loops in which a vector takes the place of a number: so many turns at once as it has lanes. LLVM can
find such loops by itself, but that takes it long; here it is told.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir

from minijax.compiler.llvm_math import VectorConstant, intrinsic, like, number_of, numbers_of
from minijax.compiler.llvm_ops import (
    BIT, INT64, constant, copy_bytes, emitters, entry_alloca, fold_halves, int64, is_signed, join,
    memory_type, parts_of,
)
from minijax.compiler.plan import ONE_BY_ONE, is_short_reduction
from minijax.loop_ir import COMPLEX, Load, Op, Quotient, Reduce, Store, dynamic_nodes, index_maps_of

__all__ = [
    "VECTOR_LANES", "HALF_VECTOR", "LEAST_TURNS", "FEW_VECTORS", "MAX_GATHERS", "Lanes",
    "vector_axis", "lanes_for_turns", "is_in_vectors", "Turns", "stride_of", "splat", "matched",
    "turns_of_lanes", "is_vector", "is_pair", "lanes_type", "numbers_in", "vector_of",
    "first_lanes", "vector_load", "vector_store", "vector_address", "store_bytes", "load_pairs",
    "store_pairs", "parts_at", "twice", "in_turn", "chosen", "fold_vector",
]


# --- Which loops ----------------------------------------------------------------------------------

# Lanes of an elementwise loop: a vector of float32 in the widest registers there are; or half of
# one, if that is enough. Loops of fewer turns than the least are left to LLVM, which unrolls them.
VECTOR_LANES, HALF_VECTOR, LEAST_TURNS = 16, 8, 6

# So many vectors are written one after the other, without a loop: then registers can keep them.
FEW_VECTORS = 2

# Elements that lie apart are loaded one by one. More such loads than these are left to LLVM.
MAX_GATHERS = 4


class Lanes(NamedTuple):
    """The loop whose turns the lanes of a vector stand for."""

    axis: object
    width: int
    count: object             # how many lanes are turns; None if that is not known
    mask: object = None       # which lanes they are; None for all


def vector_axis(nest, may_gather):
    """The innermost loop of a nest if its turns can be the lanes of vectors, else None."""
    axis = nest.axes[-1] if nest.axes else None
    if axis is None or axis.size < LEAST_TURNS:
        return None
    return axis if is_in_vectors(nest.body, axis, MAX_GATHERS if may_gather else 0) else None


def lanes_for_turns(axis):
    """How many turns of a loop one vector stands for."""
    return VECTOR_LANES if axis.size > HALF_VECTOR else HALF_VECTOR


def is_in_vectors(body, axis, gathers=0):
    """Whether one vector can stand for some turns of a loop over `axis` around a body.

    What the turns write of a buffer must lie side by side, and no turn may touch what another one
    writes. What they read is one element for all or also lies side by side, but for `gathers`.
    """
    return Turns(axis, body, gathers).are_alike(body)


class Turns:
    """The turns of a loop, and which of the nodes in it differ from turn to turn."""

    def __init__(self, axis, body, gathers):
        self.axis, self.varying, self.gathers = axis, set(), gathers
        stores = [n for n in body if isinstance(n, Store)]
        self.written = {n.buffer: n.index for n in stores}
        self.is_simple = len(self.written) == len(stores)

    def are_alike(self, body):
        return self.is_simple and all(map(self.is_alike, body))

    def is_alike(self, node):
        strides = [stride_of(index, self.axis) for index in index_maps_of(node)]
        chosen = [n for index in index_maps_of(node) for n in dynamic_nodes(index)]
        is_plain = None not in strides and self.varying.isdisjoint(chosen)
        if not is_plain or any(strides) or not self.varying.isdisjoint(node.args):
            self.varying.add(node)
        if isinstance(node, Op):
            return node.name not in ONE_BY_ONE or node not in self.varying
        if isinstance(node, Load):
            is_plain &= strides[0] in ((1,) if any(strides) else (0,))
            self.gathers -= not is_plain
            can_be_read = is_plain or node.dtype not in COMPLEX and self.gathers >= 0
            return can_be_read and self.written.get(node.buffer, node.index) == node.index
        if isinstance(node, Reduce):
            if not is_short_reduction(node) or not self.are_alike(node.body):
                return False
            self.varying.update({node} if node.value in self.varying else ())
            return True
        return is_plain and strides == [1] if isinstance(node, Store) else True


def stride_of(index, axis):
    """By how much an index map grows from turn to turn of a loop; None if that differs."""
    if any(isinstance(a, Quotient) and stride_of(a.index, axis) != 0 for a in index.terms):
        return None
    return index.terms.get(axis, 0)


# --- Vectors --------------------------------------------------------------------------------------

def splat(builder, value, width):
    """A vector with a number in all lanes; vectors stay."""
    if is_vector(value):
        return value
    if is_pair(value):
        return join(builder, [splat(builder, part, width) for part in parts_of(builder, value)])
    kind = ir.VectorType(value.type, width)
    if isinstance(value, ir.Constant):
        return number_of(kind, value.constant)
    nothing, zero = VectorConstant(kind, "poison"), ir.IntType(32)(0)
    first = builder.insert_element(nothing, value, zero)
    return builder.shuffle_vector(first, nothing, numbers_of(like(kind, zero.type), (0,) * width))


def matched(builder, values):
    """The values, all as vectors if one of them is."""
    width = next((lanes_type(v).count for v in values if is_vector(v)), None)
    return values if width is None else [splat(builder, v, width) for v in values]


def turns_of_lanes(builder, first, stride, width):
    """first, first + stride, …: what an index is in each lane."""
    steps = numbers_of(ir.VectorType(INT64, width), tuple(k * stride for k in range(width)))
    return builder.add(splat(builder, first, width), steps)


def is_vector(value):
    return isinstance(lanes_type(value), ir.VectorType)


def is_pair(value):
    return isinstance(value.type, ir.LiteralStructType)


def lanes_type(value):
    """The type of a value, or of its parts if it is a pair."""
    kind = getattr(value, "type", None)
    return kind.elements[0] if isinstance(kind, ir.LiteralStructType) else kind


def numbers_in(builder, vector):
    """The numbers of a vector."""
    return [builder.extract_element(vector, ir.IntType(32)(k)) for k in range(vector.type.count)]


def vector_of(builder, numbers):
    """A vector of numbers, one for each lane."""
    out = VectorConstant(ir.VectorType(numbers[0].type, len(numbers)), "poison")
    for k, number in enumerate(numbers):
        out = builder.insert_element(out, number, ir.IntType(32)(k))
    return out


def first_lanes(builder, count, width):
    """The mask of the first `count` lanes; count: a Python integer or an int64."""
    if isinstance(count, int):
        return numbers_of(ir.VectorType(BIT, width), tuple(int(k < count) for k in range(width)))
    lanes = turns_of_lanes(builder, int64(0), 1, width)
    return builder.icmp_signed("<", lanes, splat(builder, count, width))


def vector_load(builder, dtype, memory, index, width, mask):
    """The numbers from memory[index] on, and 0 where a mask does not hold."""
    if dtype in COMPLEX:
        return load_pairs(builder, dtype, memory, index, width, mask)
    kind = ir.VectorType(memory_type(dtype), width)
    address = vector_address(builder, memory, index, kind)
    if mask is None:
        value = builder.load(address, align=dtype.itemsize)
    else:
        operands = [address, ir.Constant(ir.IntType(32), dtype.itemsize), mask, number_of(kind, 0)]
        function = intrinsic(builder, "llvm.masked.load", (kind, address.type), kind,
                             [x.type for x in operands])
        value = builder.call(function, operands)
    if dtype.kind == "b":
        return builder.icmp_unsigned("!=", value, constant(value, 0))
    return value


def vector_store(builder, dtype, memory, index, value, mask):
    if dtype in COMPLEX:
        store_pairs(builder, dtype, memory, index, value, mask)
        return
    if dtype.kind == "b":
        value = builder.zext(value, ir.VectorType(memory_type(dtype), value.type.count))
    address = vector_address(builder, memory, index, value.type)
    if mask is None:
        builder.store(value, address, align=dtype.itemsize)
        return
    if dtype.itemsize < 4:
        store_bytes(builder, dtype, address, value, mask)
        return
    operands = [value, address, ir.Constant(ir.IntType(32), dtype.itemsize), mask]
    function = intrinsic(builder, "llvm.masked.store", (value.type, address.type), ir.VoidType(),
                         [x.type for x in operands])
    builder.call(function, operands)


def vector_address(builder, memory, index, kind):
    # not `inbounds`: lanes that a mask leaves out may lie anywhere
    return builder.bitcast(builder.gep(memory, [index]), kind.as_pointer())


def store_bytes(builder, dtype, address, value, mask):
    """Copy the first lanes, those of the mask, to memory, by way of the stack.

    Where a mask has one lane, of numbers that were four bytes wide just before, LLVM 22 makes of a
    masked store a plain one that is too wide.
    """
    room = entry_alloca(builder, value.type, 1)
    builder.store(value, room)
    if isinstance(mask, ir.Constant):
        size = int64(dtype.itemsize * sum(lane.constant for lane in mask.constant))
    else:
        flags = ir.IntType(mask.type.count)
        count = intrinsic(builder, "llvm.ctpop", (flags,), flags, [flags])
        lanes = builder.zext(builder.call(count, [builder.bitcast(mask, flags)]), INT64)
        size = builder.mul(lanes, int64(dtype.itemsize))
    copy_bytes(builder, address, room, size)


def load_pairs(builder, dtype, memory, index, width, mask):
    both = vector_load(builder, *parts_at(builder, dtype, memory, index), 2 * width,
                       twice(builder, mask))
    return join(builder, [chosen(builder, both, both, range(k, 2 * width, 2)) for k in range(2)])


def store_pairs(builder, dtype, memory, index, value, mask):
    re, im = parts_of(builder, value)
    both = chosen(builder, re, im, in_turn(re.type.count, re.type.count))
    vector_store(builder, *parts_at(builder, dtype, memory, index), both, twice(builder, mask))


def parts_at(builder, dtype, memory, index):
    """The dtype of the parts of complex numbers, their memory, and a number's place there."""
    part = np.finfo(dtype).dtype
    numbers = builder.bitcast(memory, memory_type(part).as_pointer())
    return part, numbers, builder.mul(index, int64(2))


def twice(builder, mask):
    """The mask of both parts of each number."""
    return None if mask is None else chosen(builder, mask, mask, in_turn(mask.type.count, 0))


def in_turn(width, second):
    """0, second, 1, second + 1, …"""
    return [lane for k in range(width) for lane in (k, second + k)]


def chosen(builder, x, y, numbers):
    """A vector of the lanes with these numbers; those of y are counted after those of x."""
    places = ir.VectorType(ir.IntType(32), len(numbers))
    return builder.shuffle_vector(x, y, numbers_of(places, tuple(numbers)))


def fold_vector(builder, name, dtype, vector):
    """Combine lanes in pairs, half of the lanes apart, then a quarter, …: a tree.

    For integers and bits, of which every order gives the same, LLVM has operations.
    """
    if dtype.kind not in "biu":
        return fold_halves(builder, dtype, vector, emitters[name])
    kind = ("s" if is_signed(dtype) else "u") + name if name in ("max", "min") else name
    function = intrinsic(builder, f"llvm.vector.reduce.{kind}", (vector.type,),
                         vector.type.element, (vector.type,))
    return builder.call(function, [vector])
