# Exported from notebooks/18_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 18_machine. In JAX: XLA's polynomial approximations for LLVM.

The operations of `vector_math` as LLVM instructions: the same functions that compute with NumPy's
arrays write themselves down when they are given these.
"""

import zlib
from functools import lru_cache

import numpy as np
from llvmlite import ir

from minijax.compiler import vector_math

__all__ = [
    "element_of", "like", "VectorConstant", "number_of", "numbers_of", "intrinsic", "type_name",
    "LlvmValue", "LlvmMath", "TABLE_TYPES", "constant_array", "look_up", "emit_vector",
    "call_function",
]


# --- Numbers in registers -------------------------------------------------------------------------

def element_of(kind):
    """The type of a vector's lanes; other types are their own."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


def like(kind, element):
    """The type of as many lanes as `kind` has, of the type `element`."""
    return ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element


class VectorConstant(ir.FormattedConstant):
    """A vector that LLVM has a word for; llvmlite would write down each lane."""

    def __init__(self, kind, text):
        self.type, self.constant = kind, text


def number_of(kind, number):
    """A constant, which all lanes of a vector share."""
    if not isinstance(kind, ir.VectorType):
        return ir.Constant(kind, number)
    one = ir.Constant(kind.element, number)
    return VectorConstant(kind, f"splat ({one.type} {one.get_reference()})")


@lru_cache(1000)
def numbers_of(kind, numbers):
    """A vector of integers. llvmlite takes long to write one down, and they come again."""
    return ir.Constant(kind, [ir.Constant(kind.element, n) for n in numbers])


def intrinsic(builder, name, overloads, result, operands):
    """One of LLVM's own functions, whose full name has the types that it is meant for."""
    full = ".".join([name, *map(type_name, overloads)])
    known = builder.module.globals.get(full)
    return known or ir.Function(builder.module, ir.FunctionType(result, operands), full)


def type_name(kind):
    element = element_of(kind)
    lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
    return lanes + ("p0" if element.is_pointer else element.intrinsic_name)


class LlvmValue:
    """A float, an integer or a bit in a register, with the operators that `vector_math` uses."""

    __hash__ = None

    def __init__(self, builder, value):
        self.builder, self.value = builder, value
        self.is_float = not isinstance(element_of(value.type), ir.IntType)

    def _apply(self, name, other):
        return LlvmValue(self.builder, getattr(self.builder, name)(self.value, other.value))

    def __add__(self, other):
        return self._apply("fadd" if self.is_float else "add", other)

    def __sub__(self, other):
        return self._apply("fsub" if self.is_float else "sub", other)

    def __mul__(self, other):
        return self._apply("fmul" if self.is_float else "mul", other)

    def __truediv__(self, other):
        return self._apply("fdiv", other)

    def __neg__(self):
        return LlvmValue(self.builder, self.builder.fneg(self.value))

    def __and__(self, other):
        return self._apply("and_", other)

    def __or__(self, other):
        return self._apply("or_", other)

    def __xor__(self, other):
        return self._apply("xor", other)

    def __rshift__(self, count):
        return self._shift("ashr", count)

    def __lshift__(self, count):
        return self._shift("shl", count)

    def _shift(self, name, count):
        return self._apply(name, LlvmValue(self.builder, number_of(self.value.type, count)))

    def __lt__(self, other):
        return self._compare("<", other)

    def __gt__(self, other):
        return self._compare(">", other)

    def __eq__(self, other):
        return self._compare("==", other)

    def _compare(self, sign, other):
        compare = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_signed
        return LlvmValue(self.builder, compare(sign, self.value, other.value))


# --- The operations -------------------------------------------------------------------------------

class LlvmMath:
    """What `vector_math` calls an `m`: writes instructions where a builder stands."""

    def __init__(self, builder, format, kind):
        self.builder, self.format = builder, format
        self.float = like(kind, ir.FloatType() if format.dtype == np.float32 else ir.DoubleType())
        self.int = like(kind, ir.IntType(8 * format.dtype.itemsize))

    def value(self, value):
        return LlvmValue(self.builder, value)

    def const(self, number):
        # llvmlite writes float constants exactly only if they are floats of that format
        return self.value(number_of(self.float, float(self.format.dtype.type(number))))

    def integer(self, number):
        return self.value(number_of(self.int, number))

    def bits(self, x):
        return self.value(self.builder.bitcast(x.value, self.int))

    def float_of_bits(self, n):
        return self.value(self.builder.bitcast(n.value, self.float))

    def to_float(self, n):
        return self.value(self.builder.sitofp(n.value, self.float))

    def select(self, condition, if_true, if_false):
        return self.value(self.builder.select(condition.value, if_true.value, if_false.value))

    def lookup(self, table, index):
        """table[index]. Vectors seldom need more than the first number: a branch has the others."""
        builder = self.builder
        if not isinstance(self.int, ir.VectorType):
            return self.value(look_up(builder, table, index.value))
        others = builder.icmp_unsigned("!=", index.value, number_of(self.int, 0))
        any_of = intrinsic(builder, "llvm.vector.reduce.or", (others.type,), ir.IntType(1),
                           (others.type,))
        before = builder.block
        with builder.if_then(builder.call(any_of, [others]), likely=False):
            found, inside = look_up(builder, table, index.value), builder.block
        out = builder.phi(self.float)
        out.add_incoming(self.const(table[0]).value, before)
        out.add_incoming(found, inside)
        return self.value(out)

    def product_error(self, x, y):
        # one rounding, of the sum: what is left of the product is exact
        return self.call("llvm.fma", x, y, -(x * y))

    def multiply_add(self, x, y, z):
        # one instruction if the machine has it, else two
        return self.call("llvm.fmuladd", x, y, z)

    def absolute(self, x):
        return self.call("llvm.fabs", x)

    def copysign(self, size, sign):
        return self.call("llvm.copysign", size, sign)

    def nearest(self, x):
        return self.call("llvm.rint", x)

    def sqrt(self, x):
        return self.call("llvm.sqrt", x)

    def call(self, name, *operands):
        """An LLVM intrinsic, of which there is one for each type of float."""
        kinds = (self.float,) * len(operands)
        function = intrinsic(self.builder, name, (self.float,), self.float, kinds)
        return self.value(self.builder.call(function, [x.value for x in operands]))


TABLE_TYPES = {np.dtype(np.float64): ir.DoubleType(), np.dtype(np.float32): ir.FloatType(),
               np.dtype(np.uint8): ir.IntType(8)}


def constant_array(module, table):
    """The numbers of a NumPy array in a module, where they stand once."""
    name = f"table_{zlib.crc32(table.tobytes()):08x}"
    if name in module.globals:
        return module.globals[name]
    kind = ir.ArrayType(TABLE_TYPES[table.dtype], len(table))
    out = ir.GlobalVariable(module, kind, name)
    out.initializer = ir.Constant(kind, bytearray(table) if table.itemsize == 1 else table.tolist())
    out.global_constant, out.linkage = True, "internal"
    return out


def look_up(builder, table, index):
    """table[index], for each lane of an int64 or a vector of them."""
    memory = constant_array(builder.module, table)
    element = memory.type.pointee.element
    if not isinstance(index.type, ir.VectorType):
        place = builder.gep(memory, [ir.Constant(index.type, 0), index], inbounds=True)
        return builder.load(place)
    start = memory.ptrtoint(index.type.element)
    starts = VectorConstant(index.type, f"splat ({start.type} {start.get_reference()})")
    places = builder.add(starts, builder.mul(index, number_of(index.type, table.itemsize)))
    places = builder.inttoptr(places, like(index.type, element.as_pointer()))
    kind = like(index.type, element)
    operands = [places, ir.Constant(ir.IntType(32), table.itemsize),
                number_of(like(index.type, ir.IntType(1)), 1),
                number_of(kind, 0 if table.itemsize == 1 else 0.0)]
    function = intrinsic(builder, "llvm.masked.gather", (kind, places.type), kind,
                         [x.type for x in operands])
    return builder.call(function, operands)


def emit_vector(builder, name, *values):
    """The instructions of a function of FUNCTIONS, of LLVM floats or doubles."""
    kind = values[0].type
    is_double = isinstance(element_of(kind), ir.DoubleType)
    format = vector_math.format_for(name, np.float64 if is_double else np.float32)
    m = LlvmMath(builder, format, kind)
    is_wider = kind != m.float
    wide = [builder.fpext(v, m.float) for v in values] if is_wider else values
    out = vector_math.FUNCTIONS[name](m, *map(m.value, wide)).value
    return builder.fptrunc(out, kind) if is_wider else out


def call_function(builder, name, *values):
    """A call of such a function, which stands in the module once for each type."""
    kind, module = values[0].type, builder.module
    full = f"{name}_{type_name(kind)}"
    if full not in module.globals:
        operands = (kind,) * len(values)
        function = ir.Function(module, ir.FunctionType(kind, operands), full)
        function.linkage = "internal"
        for attribute in ("noinline", "nounwind", "readnone"):
            function.attributes.add(attribute)
        inside = ir.IRBuilder(function.append_basic_block("entry"))
        inside.ret(emit_vector(inside, name, *function.args))
    return builder.call(module.globals[full], values)
