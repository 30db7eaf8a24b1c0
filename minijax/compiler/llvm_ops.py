# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's elemental IR emitter.

The scalar operations of the loop IR as LLVM instructions. Operands are LLVM values; what kind of
number they are says a NumPy dtype, since LLVM knows neither signed integers nor booleans. In
registers a boolean has one bit, in memory one byte. A narrow number is an integer with its bits, a
complex number a structure of its parts.
"""

from contextlib import contextmanager
from functools import cache

import numpy as np
from llvmlite import ir

from minijax import dtypes
from minijax.compiler.llvm_math import (
    element_of, emit_vector, intrinsic, like, look_up, number_of, numbers_of,
)
from minijax.compiler.vector_math import FUNCTIONS
from minijax.loop_ir import COMPLEX, NARROW, bits_of

__all__ = [
    "INT8", "INT64", "BIT", "FLOAT", "DOUBLE", "BOOLEAN", "WIDE", "SINGLE", "llvm_type",
    "memory_type", "int64", "typed_constant", "constant", "is_float", "is_signed", "integer_type",
    "bits", "load", "store", "places_of_parts", "parts_of", "join", "load_where", "entry_alloca",
    "copy_bytes", "counted_loop", "WIDTH", "fill_lanes", "vector_at", "fold_lanes", "fold_halves",
    "load_vector", "lanes_of", "fold_one_by_one", "DATA_OFFSET", "FLAGS_OFFSET",
    "CONTIGUOUS_AND_ALIGNED", "NOT_CONTIGUOUS", "data_of", "field", "convert", "convert_float",
    "float_to_integer", "HALF", "INT16", "INT32", "widen", "narrow", "to_few_bits", "to_bfloat16",
    "to_tiny_float", "tiny_floats", "rounded_to_odd", "to_bool", "bitcast", "clamp_index",
    "emitters", "define", "emit_op", "define_arithmetic", "arithmetic_of_pairs", "is_widened",
    "define_comparison", "compare", "negative", "invert", "select", "real", "imag", "complex_of",
    "maximum", "minimum", "choose", "choose_pair", "is_nan", "is_finite", "absolute", "sign",
    "safe_divisor", "divide", "remainder", "in_width", "shift_left", "shift_right_logical",
    "shift_right_arithmetic", "popcount", "clz", "call", "declare", "call_libm", "define_llvm",
    "define_libm", "define_vector",
]


# --- Types and constants --------------------------------------------------------------------------

INT8, INT64 = ir.IntType(8), ir.IntType(64)
BIT = ir.IntType(1)
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()
BOOLEAN, WIDE, SINGLE = np.dtype(bool), np.dtype(np.int64), np.dtype(np.float32)


def llvm_type(dtype):
    """The LLVM type of a number in a register."""
    if is_float(dtype):
        return FLOAT if dtype.itemsize == 4 else DOUBLE
    if dtype in COMPLEX:
        return ir.LiteralStructType([FLOAT if dtype.itemsize == 8 else DOUBLE] * 2)
    return BIT if dtype.kind == "b" else ir.IntType(8 * dtype.itemsize)


def memory_type(dtype):
    """The LLVM type of a number in memory."""
    return ir.IntType(8) if dtype.kind == "b" else llvm_type(dtype)


def int64(number):
    return ir.Constant(INT64, number)


def typed_constant(value, dtype):
    """A NumPy number as an LLVM constant."""
    if dtype in COMPLEX:
        parts = float(value.real), float(value.imag)
        return ir.Constant.literal_struct([ir.Constant(llvm_type(dtype).elements[0], x)
                                           for x in parts])
    if dtype in NARROW:
        value = np.asarray(value, dtype).view(bits_of(dtype))
    return ir.Constant(llvm_type(dtype), float(value) if is_float(dtype) else int(value))


def constant(value, number):
    """A number of the type of an LLVM value, in each lane of a vector."""
    return number_of(value.type, number)


def is_float(dtype):
    """Whether numbers are LLVM floats or doubles."""
    return dtype.kind == "f" and dtype not in NARROW


def is_signed(dtype):
    return NARROW.get(dtype, dtype).kind == "i"


def integer_type(dtype):
    """The LLVM type of integers with all bits that the dtype has, which may be fewer than 8."""
    return ir.IntType(dtypes.iinfo(dtype).bits)


def bits(value):
    return element_of(value.type).width


# --- Memory ---------------------------------------------------------------------------------------

def load(builder, dtype, memory, index):
    """The number at memory[index]."""
    place = builder.gep(memory, [index], inbounds=True)
    if dtype in COMPLEX:          # part by part: LLVM makes vectors of numbers, not of structures
        return join(builder, [builder.load(part) for part in places_of_parts(builder, place)])
    value = builder.load(place)
    return builder.icmp_unsigned("!=", value, constant(value, 0)) if dtype.kind == "b" else value


def store(builder, dtype, memory, index, value):
    if dtype.kind == "b":
        value = builder.zext(value, memory_type(dtype))
    place = builder.gep(memory, [index], inbounds=True)
    if dtype in COMPLEX:
        for part, part_place in zip(parts_of(builder, value), places_of_parts(builder, place)):
            builder.store(part, part_place)
    else:
        builder.store(value, place)


def places_of_parts(builder, place):
    zero, one = (ir.Constant(ir.IntType(32), k) for k in range(2))
    return [builder.gep(place, [zero, part], inbounds=True) for part in (zero, one)]


def parts_of(builder, value):
    """The real and the imaginary part of a complex number."""
    return [builder.extract_value(value, k) for k in range(2)]


def join(builder, parts):
    """The complex number of these parts."""
    out = ir.Constant(ir.LiteralStructType([p.type for p in parts]), ir.Undefined)
    for k, part in enumerate(parts):
        out = builder.insert_value(out, part, k)
    return out


def load_where(builder, dtype, condition, memory, index):
    """memory[index] where a condition holds, else 0."""
    before = builder.block
    with builder.if_then(condition):
        value = load(builder, dtype, memory, index)
        inside = builder.block
    out = builder.phi(llvm_type(dtype))
    out.add_incoming(typed_constant(dtype.type(0), dtype), before)
    out.add_incoming(value, inside)
    return out


def entry_alloca(builder, llvm_type, count):
    """Room on the stack, made once a call: in the entry block, so loops do not make it again."""
    with builder.goto_entry_block():
        if count == 1:
            return builder.alloca(llvm_type)
        room = builder.alloca(ir.ArrayType(llvm_type, count))
        return builder.bitcast(room, llvm_type.as_pointer())


def copy_bytes(builder, target, source, size):
    """Copy so many bytes from one address to another."""
    pointer = INT8.as_pointer()
    operands = [builder.bitcast(target, pointer), builder.bitcast(source, pointer), size]
    kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, INT64, BIT])
    function = builder.module.declare_intrinsic("llvm.memmove", (pointer, pointer, INT64), kind)
    builder.call(function, [*operands, ir.Constant(BIT, 0)])


@contextmanager
def counted_loop(builder, count):
    """A loop of at least one turn, with its test at the end, as LLVM likes loops best.

    Yields (the turn's number, a list to which marks of the loop's last jump may be appended).
    """
    before, body = builder.block, builder.append_basic_block("loop")
    builder.branch(body)
    builder.position_at_end(body)
    turn, marks = builder.phi(INT64), []
    turn.add_incoming(int64(0), before)
    yield turn, marks
    following = builder.add(turn, int64(1), flags=("nuw", "nsw"))
    turn.add_incoming(following, builder.block)
    end = builder.append_basic_block("end")
    branch = builder.cbranch(builder.icmp_signed("<", following, count), body, end)
    for mark in marks:
        branch.set_metadata("llvm.loop", mark)
    builder.position_at_end(end)


# Numbers of a vector that a fold begins with: accumulators are used in such parts too.
WIDTH = 16


def fill_lanes(builder, dtype, count, memory, start):
    """Give accumulators their first value, an LLVM constant."""
    if dtype.kind == "b" or dtype in COMPLEX or count == 1:
        for k in range(count):
            store(builder, dtype, memory, int64(k), start)
        return
    width = min(WIDTH, count)
    many = ir.Constant(ir.VectorType(start.type, width), [start] * width)
    for k in range(0, count, width):
        builder.store(many, vector_at(builder, memory, k, many.type), align=dtype.itemsize)


def vector_at(builder, memory, first, vector_type):
    address = builder.gep(memory, [int64(first)], inbounds=True)
    return builder.bitcast(address, vector_type.as_pointer())


def fold_lanes(builder, dtype, count, memory, combine):
    """Combine accumulators in pairs, count/2 apart, count/4 apart, …: a tree."""
    # in memory, bits are bytes and no vector of bits, and there are no vectors of structures
    if dtype.kind == "b" or dtype in COMPLEX or count == 1:
        return fold_one_by_one(builder, dtype, count, memory, combine)
    width = min(WIDTH, count)
    parts = [load_vector(builder, dtype, memory, k, width) for k in range(0, count, width)]
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [combine(builder, dtype, x, y) for x, y in zip(parts[:half], parts[half:])]
    return fold_halves(builder, dtype, *parts, combine)


def fold_halves(builder, dtype, vector, combine):
    """Combine the halves of a vector, the halves of the result, …: one number."""
    width = vector.type.count
    while width > 1:
        width //= 2
        vector = combine(builder, dtype, *(lanes_of(builder, vector, first, width)
                                           for first in (0, width)))
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


def load_vector(builder, dtype, memory, first, width):
    """`width` numbers from memory[first] on, as a vector."""
    address = vector_at(builder, memory, first, ir.VectorType(llvm_type(dtype), width))
    return builder.load(address, align=dtype.itemsize)


def lanes_of(builder, vector, first, width):
    """A part of a vector."""
    places = numbers_of(ir.VectorType(INT32, width), range(first, first + width))
    return builder.shuffle_vector(vector, vector, places)


def fold_one_by_one(builder, dtype, count, memory, combine):
    while count > 1:
        count //= 2
        with counted_loop(builder, int64(count)) as (lane, _):
            other = builder.add(lane, int64(count))
            x, y = (load(builder, dtype, memory, i) for i in (lane, other))
            store(builder, dtype, memory, lane, combine(builder, dtype, x, y))
    return load(builder, dtype, memory, int64(0))


# --- Arrays of NumPy ------------------------------------------------------------------------------

# Where NumPy's C struct of an array has the address of its data and its flags (stable C interface).
DATA_OFFSET = object.__basicsize__
FLAGS_OFFSET = DATA_OFFSET + 48
CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100
NOT_CONTIGUOUS = "not in row-major order"


def data_of(builder, array, element_type):
    """(address of the elements, whether they do not lie in row-major order) of an array object."""
    data = field(builder, array, DATA_OFFSET, element_type.as_pointer())
    flags = field(builder, array, FLAGS_OFFSET, ir.IntType(32))
    wanted = ir.Constant(ir.IntType(32), CONTIGUOUS_AND_ALIGNED)
    return data, builder.icmp_unsigned("!=", builder.and_(flags, wanted), wanted)


def field(builder, obj, offset, field_type):
    address = builder.gep(builder.bitcast(obj, ir.IntType(8).as_pointer()), [int64(offset)])
    return builder.load(builder.bitcast(address, field_type.as_pointer()))


# --- Conversions ----------------------------------------------------------------------------------

def convert(builder, value, source, target):
    """A number of dtype `source` as one of dtype `target`."""
    if source == target:
        return value
    if source in NARROW:
        return convert(builder, widen(builder, value, source), NARROW[source], target)
    if target in NARROW:
        return narrow(builder, value, source, target)
    if target.kind == "b":
        return to_bool(builder, source, value)
    if is_float(source):
        return convert_float(builder, value, source, target)
    kind = like(value.type, llvm_type(target))
    if is_float(target):
        return (builder.sitofp if is_signed(source) else builder.uitofp)(value, kind)
    if bits(value) >= element_of(kind).width:
        return builder.trunc(value, kind) if bits(value) > element_of(kind).width else value
    return (builder.sext if is_signed(source) else builder.zext)(value, kind)


def convert_float(builder, value, source, target):
    if not is_float(target):
        return float_to_integer(builder, value, target)
    is_wider = target.itemsize > source.itemsize
    return (builder.fpext if is_wider else builder.fptrunc)(
        value, like(value.type, llvm_type(target)))


def float_to_integer(builder, value, target):
    """Round towards zero; saturate; NaN gives 0. LLVM has an instruction for just that."""
    out = like(value.type, integer_type(target))
    kind = "fptosi" if is_signed(target) else "fptoui"
    function = intrinsic(builder, f"llvm.{kind}.sat", (out, value.type), out, (value.type,))
    return builder.call(function, [value])


HALF, INT16, INT32 = ir.HalfType(), ir.IntType(16), ir.IntType(32)


def widen(builder, value, source):
    """A narrow number, given as an integer, as a wider one: a bfloat16 is half of a float."""
    if source == np.float16:
        half = builder.bitcast(value, like(value.type, HALF))
        return builder.fpext(half, like(value.type, FLOAT))
    if source == dtypes.bfloat16:
        number = builder.zext(value, like(value.type, INT32))
        return builder.bitcast(builder.shl(number, constant(number, 16)), like(value.type, FLOAT))
    if NARROW[source] == SINGLE:
        table = np.arange(256, dtype=np.uint8).view(source).astype(np.float32)
        return look_up(builder, table, builder.zext(value, like(value.type, INT64)))
    few = builder.trunc(value, like(value.type, integer_type(source)))
    return (builder.sext if is_signed(source) else builder.zext)(few, value.type)


def narrow(builder, value, source, target):
    """A number as the nearest narrow one, of two the even one, as an integer."""
    if NARROW[target] != SINGLE:
        return to_few_bits(builder, value, source, target)
    # a double that becomes a bfloat16 is rounded twice, as in XLA
    rounds_once = target != dtypes.bfloat16 and source.itemsize == 8 and is_float(source)
    single = rounded_to_odd(builder, value) if rounds_once \
        else convert(builder, value, source, SINGLE)
    if target == np.float16:
        half = builder.fptrunc(single, like(value.type, HALF))
        return builder.bitcast(half, like(value.type, INT16))
    number = builder.bitcast(single, like(value.type, INT32))
    if target == dtypes.bfloat16:
        return to_bfloat16(builder, number)
    return to_tiny_float(builder, number, target)


def to_few_bits(builder, value, source, target):
    """An integer of fewer than 8 bits: a float saturates, an integer wraps around."""
    if is_float(source):
        few = float_to_integer(builder, value, target)
    else:
        value = convert(builder, value, source, NARROW[target])
        few = builder.trunc(value, like(value.type, integer_type(target)))
    return builder.zext(few, like(few.type, INT8))


def to_bfloat16(builder, number):
    """The bfloat16 that is nearest to the float with these bits, as an integer."""
    last = builder.and_(builder.lshr(number, constant(number, 16)), constant(number, 1))
    rounded = builder.add(number, builder.add(last, constant(number, 0x7FFF)))
    # adding could make an infinity or a zero of a NaN
    sign = builder.and_(number, constant(number, 2 ** 31))
    quiet = builder.or_(sign, constant(number, 0x7FC00000))
    single = builder.bitcast(number, like(number.type, FLOAT))
    number = builder.select(is_nan(builder, SINGLE, single), quiet, rounded)
    return builder.trunc(builder.lshr(number, constant(number, 16)), like(number.type, INT16))


def to_tiny_float(builder, number, target):
    """The float of 8 bits or less that is nearest to the float with these bits, as an integer.

    16 bits are enough to round by, if the last one says whether others were set: those of a
    bfloat16, and what becomes of each of them is known.
    """
    rest = builder.and_(number, constant(number, 0xFFFF))
    is_inexact = builder.zext(builder.icmp_unsigned("!=", rest, constant(rest, 0)), number.type)
    place = builder.or_(builder.lshr(number, constant(number, 16)), is_inexact)
    return look_up(builder, tiny_floats(target), builder.zext(place, like(place.type, INT64)))


@cache
def tiny_floats(dtype):
    """The nearest number of a dtype to each bfloat16, both as their bits."""
    every = np.arange(2 ** 16, dtype=np.uint16).view(dtypes.bfloat16)
    with np.errstate(all="ignore"):
        return every.astype(dtype).view(np.uint8)


def rounded_to_odd(builder, value):
    """A double as a float that is odd if it is not exact: so rounding it again is rounding once."""
    single = builder.fptrunc(value, like(value.type, FLOAT))
    number = builder.bitcast(single, like(value.type, INT32))
    again = builder.fpext(single, value.type)
    is_too_large = builder.fcmp_ordered(">", call(builder, "llvm.fabs", again),
                                        call(builder, "llvm.fabs", value))
    is_inexact = builder.fcmp_ordered("one", again, value)
    number = builder.sub(number, builder.zext(is_too_large, number.type))
    return builder.bitcast(builder.or_(number, builder.zext(is_inexact, number.type)), single.type)


def to_bool(builder, dtype, x):
    if is_float(dtype):
        return builder.fcmp_unordered("!=", x, constant(x, 0.0))
    return builder.icmp_unsigned("!=", x, constant(x, 0))


def bitcast(builder, value, target):
    return builder.bitcast(value, like(value.type, llvm_type(target)))


def clamp_index(builder, dtype, x, low, high):
    """The index `x` as an int64, moved into low … high."""
    wide = convert(builder, x, dtype, WIDE)
    inside = minimum(builder, WIDE, maximum(builder, WIDE, wide, low), high)
    if is_signed(dtype) or dtype.itemsize < 8:
        return inside
    # a large unsigned number is above every bound, not negative
    return builder.select(builder.icmp_unsigned(">", x, high), high, inside)


# --- Emitters -------------------------------------------------------------------------------------

emitters = {}                     # operation -> emit(builder, dtype of the operands, *operands)


def define(name):
    """Decorator: enter emit(builder, dtype, *values) under the name of its operation."""
    def decorate(emit):
        emitters[name] = emit
        return emit
    return decorate


def emit_op(builder, name, dtype, result_dtype, args):
    """The instructions for an operation on operands of `dtype` (a select's: those it chooses)."""
    if name == "convert":
        return convert(builder, args[0], dtype, result_dtype)
    if name == "bitcast":
        return bitcast(builder, args[0], result_dtype)
    if dtype in NARROW and name != "select":        # what is added to memory
        wide = [widen(builder, x, dtype) for x in args]
        return narrow(builder, emitters[name](builder, NARROW[dtype], *wide), NARROW[dtype], dtype)
    return emitters[name](builder, dtype, *args)


def define_arithmetic(name, on_floats, on_integers):
    """An operation that is one instruction: the builder's methods of these names."""
    def emit(builder, dtype, x, y):
        if dtype in COMPLEX:                        # what is combined in memory
            return arithmetic_of_pairs(builder, on_floats, x, y)
        if is_float(dtype):
            # A product and a sum may be one instruction that rounds once, as in XLA; not of numbers
            # that are sixteen bits wide in truth, whose roundings LLVM would leave out as well.
            flags = () if is_widened(x) or is_widened(y) else ("contract",)
            return getattr(builder, on_floats)(x, y, flags=flags)
        return getattr(builder, on_integers)(x, y)
    define(name)(emit)


def arithmetic_of_pairs(builder, on_floats, x, y):
    """A sum, a difference or a product of complex numbers."""
    (a, b), (c, d) = parts_of(builder, x), parts_of(builder, y)
    if on_floats == "fmul":
        parts = (builder.fsub(builder.fmul(a, c), builder.fmul(b, d)),
                 builder.fadd(builder.fmul(a, d), builder.fmul(b, c)))
    else:
        parts = [getattr(builder, on_floats)(*pair) for pair in ((a, c), (b, d))]
    return join(builder, parts)


def is_widened(value):
    """Whether a float was a float16 just before."""
    return (getattr(value, "opname", None) == "fpext"
            and element_of(value.operands[0].type) == HALF)


for _name, _on_floats, _on_integers in (("add", "fadd", "add"), ("sub", "fsub", "sub"),
                                        ("mul", "fmul", "mul"), ("and", None, "and_"),
                                        ("or", None, "or_"), ("xor", None, "xor")):
    define_arithmetic(_name, _on_floats, _on_integers)


def define_comparison(name, sign):
    define(name)(lambda builder, dtype, x, y: compare(builder, dtype, sign, x, y))


for _name, _sign in dict(eq="==", ne="!=", lt="<", le="<=", gt=">", ge=">=").items():
    define_comparison(_name, _sign)


def compare(builder, dtype, sign, x, y):
    if is_float(dtype):
        # NaN differs from everything, also from itself
        return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, x, y)
    return (builder.icmp_signed if is_signed(dtype) else builder.icmp_unsigned)(sign, x, y)


@define("neg")
def negative(builder, dtype, x):
    return (builder.fneg if is_float(dtype) else builder.neg)(x)


@define("not")
def invert(builder, dtype, x):
    return builder.not_(x)


# --- Choices --------------------------------------------------------------------------------------

@define("select")
def select(builder, dtype, condition, if_true, if_false):
    if dtype in COMPLEX:
        pairs = zip(parts_of(builder, if_true), parts_of(builder, if_false))
        return join(builder, [builder.select(condition, x, y) for x, y in pairs])
    return builder.select(condition, if_true, if_false)


@define("real")
def real(builder, dtype, x):
    return builder.extract_value(x, 0)


@define("imag")
def imag(builder, dtype, x):
    return builder.extract_value(x, 1)


@define("complex")
def complex_of(builder, dtype, x, y):
    return join(builder, [x, y])


@define("max")
def maximum(builder, dtype, x, y):
    return choose(builder, dtype, ">", "llvm.maximum", x, y)


@define("min")
def minimum(builder, dtype, x, y):
    return choose(builder, dtype, "<", "llvm.minimum", x, y)


def choose(builder, dtype, sign, of_floats, x, y):
    if dtype in COMPLEX:
        return choose_pair(builder, dtype, sign, x, y)
    if is_float(dtype):
        return call(builder, of_floats, x, y)         # a NaN wins, and -0.0 is less than 0.0
    return builder.select(compare(builder, dtype, sign, x, y), x, y)


def choose_pair(builder, dtype, sign, x, y):
    """One of two complex numbers: real parts are compared first; one with NaN wins."""
    (a, b), (c, d) = parts_of(builder, x), parts_of(builder, y)
    wins = builder.and_(builder.fcmp_ordered("==", a, c), builder.fcmp_ordered(sign, b, d))
    wins = builder.or_(builder.fcmp_ordered(sign, a, c), wins)
    wins = builder.and_(wins, builder.fcmp_ordered("ord", c, d))
    wins = builder.or_(wins, builder.fcmp_unordered("uno", a, b))
    return join(builder, [builder.select(wins, p, q) for p, q in ((a, c), (b, d))])


@define("is_nan")
def is_nan(builder, dtype, x):
    return builder.fcmp_unordered("uno", x, x)


@define("is_finite")
def is_finite(builder, dtype, x):
    return builder.fcmp_ordered("<", call(builder, "llvm.fabs", x), constant(x, float("inf")))


define("clamp_index")(clamp_index)


# --- Integers -------------------------------------------------------------------------------------

@define("abs")
def absolute(builder, dtype, x):
    if is_float(dtype):
        return call(builder, "llvm.fabs", x)
    return builder.select(compare(builder, dtype, "<", x, constant(x, 0)), builder.neg(x), x)


@define("sign")
def sign(builder, dtype, x):
    zero = constant(x, 0.0 if is_float(dtype) else 0)
    if not is_float(dtype) and not is_signed(dtype):
        return builder.zext(builder.icmp_unsigned("!=", x, zero), x.type)
    if not is_float(dtype):
        return builder.select(compare(builder, dtype, ">", x, zero), constant(x, 1),
                              builder.ashr(x, constant(x, bits(x) - 1)))
    one = call(builder, "llvm.copysign", constant(x, 1.0), x)
    return builder.select(builder.fcmp_ordered("one", x, zero), one, x)


def safe_divisor(builder, dtype, y):
    """y, or 1 where the hardware would trap: y is 0, or may be -1; and whether it was 0, or -1."""
    is_zero = builder.icmp_unsigned("==", y, constant(y, 0))
    signed = is_signed(dtype)
    is_minus_one = builder.icmp_unsigned("==", y, constant(y, -1)) if signed else None
    unsafe = builder.or_(is_zero, is_minus_one) if signed else is_zero
    return builder.select(unsafe, constant(y, 1), y), is_zero, is_minus_one


@define("div")
def divide(builder, dtype, x, y):
    if is_float(dtype):
        return builder.fdiv(x, y)
    safe, is_zero, is_minus_one = safe_divisor(builder, dtype, y)
    quotient = (builder.sdiv if is_signed(dtype) else builder.udiv)(x, safe)
    if is_signed(dtype):
        quotient = builder.select(is_minus_one, builder.neg(x), quotient)
    return builder.select(is_zero, constant(x, -1), quotient)


@define("rem")
def remainder(builder, dtype, x, y):
    if is_float(dtype):
        return builder.frem(x, y)
    safe, is_zero, _ = safe_divisor(builder, dtype, y)
    rest = (builder.srem if is_signed(dtype) else builder.urem)(x, safe)
    return builder.select(is_zero, x, rest)


def in_width(builder, y):
    return builder.icmp_unsigned("<", y, constant(y, bits(y)))


@define("shift_left")
def shift_left(builder, dtype, x, n):
    return builder.select(in_width(builder, n), builder.shl(x, n), constant(x, 0))


@define("shift_right_logical")
def shift_right_logical(builder, dtype, x, n):
    return builder.select(in_width(builder, n), builder.lshr(x, n), constant(x, 0))


@define("shift_right_arithmetic")
def shift_right_arithmetic(builder, dtype, x, n):
    most = builder.select(in_width(builder, n), n, constant(x, bits(x) - 1))
    return builder.ashr(x, most)


@define("popcount")
def popcount(builder, dtype, x):
    return call(builder, "llvm.ctpop", x)


@define("clz")
def clz(builder, dtype, x):
    function = intrinsic(builder, "llvm.ctlz", (x.type,), x.type, (x.type, BIT))
    return builder.call(function, [x, ir.Constant(BIT, 0)])


# --- Functions of floats --------------------------------------------------------------------------

def call(builder, name, *values):
    """A call of an LLVM intrinsic that is overloaded on its operands' one type."""
    t = values[0].type
    function = intrinsic(builder, name, (t,), t, (t,) * len(values))
    return builder.call(function, values)


def declare(module, name, function_type):
    """A function from outside of the module, by the name of its symbol."""
    return module.globals.get(name) or ir.Function(module, function_type, name)


def call_libm(builder, name, *values):
    """A call of the C library's function for doubles, or of its sibling for floats."""
    t = values[0].type
    symbol = name if isinstance(t, ir.DoubleType) else name + "f"
    function = declare(builder.module, symbol, ir.FunctionType(t, [t] * len(values)))
    return builder.call(function, values)


def define_llvm(name, llvm_name):
    define(name)(lambda builder, dtype, x: call(builder, llvm_name, x))


def define_libm(name, c_name):
    define(name)(lambda builder, dtype, *values: call_libm(builder, c_name, *values))


for _name, _llvm in dict(floor="llvm.floor", ceil="llvm.ceil", trunc="llvm.trunc",
                         round_even="llvm.rint", round_away="llvm.round", sqrt="llvm.sqrt").items():
    define_llvm(_name, _llvm)


define_libm("lgamma", "lgamma")
define_libm("nextafter", "nextafter")


def define_vector(name):
    """A function of `vector_math`."""
    define(name)(lambda builder, dtype, *values: emit_vector(builder, name, *values))


for _name in FUNCTIONS:
    define_vector(_name)
