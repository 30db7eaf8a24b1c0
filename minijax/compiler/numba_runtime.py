# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: XLA's elemental IR emitter.

The names of `runtime` for Numba. Each is an intrinsic: it writes the LLVM instructions for one
scalar operation. Importing this module imports Numba; only the first compilation does.
"""

import operator
import threading

import numpy as np
from llvmlite import ir
from numba.core import cgutils, compiler, types
from numba.core.imputils import lower_builtin
from numba.core.registry import cpu_target
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

from minijax.compiler import runtime, vector_math

__all__ = [
    "Memory", "MemoryModel", "DATA_OFFSET", "FLAGS_OFFSET", "CONTIGUOUS_AND_ALIGNED",
    "unbox_memory", "field", "GetItem", "SetItem", "lower_getitem", "lower_setitem", "load",
    "store", "names", "emitters", "define", "is_float", "is_signed", "constant", "bits", "load_if",
    "load_where", "lanes", "Lanes", "define_fold", "fold_lanes", "numba_type", "define_conversion",
    "float_to_integer", "to_bool", "define_bitcast", "clamp_index", "clamp", "select", "compare",
    "is_nan_value", "maximum", "minimum", "choose", "is_nan", "is_finite", "absolute", "sign",
    "safe_divisor", "divide_int", "remainder", "in_width", "shift_left", "shift_right_logical",
    "shift_right_arithmetic", "popcount", "clz", "call", "call_libm", "define_llvm", "define_libm",
    "LlvmValue", "LlvmMath", "define_vector", "define_trigonometric", "rsqrt", "NUMBA_DTYPES",
    "llvm_type", "compile_kernel", "compile_emitted",
]


# --- Memory: a bare pointer -----------------------------------------------------------------------

class Memory(types.Type):
    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(f"memory({dtype})")


@register_model(Memory)
class MemoryModel(models.PrimitiveModel):
    def __init__(self, manager, memory):
        super().__init__(manager, memory, manager.lookup(memory.dtype).get_data_type().as_pointer())


# Where NumPy's C struct of an array has the address of its data and its flags (stable C interface).
DATA_OFFSET, FLAGS_OFFSET = 16, 64
CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100


@unbox(Memory)
def unbox_memory(memory, obj, c):
    data = field(c.builder, obj, DATA_OFFSET, c.context.get_data_type(memory))
    flags = field(c.builder, obj, FLAGS_OFFSET, ir.IntType(32))
    wanted = ir.Constant(ir.IntType(32), CONTIGUOUS_AND_ALIGNED)
    is_error = c.builder.icmp_unsigned("!=", c.builder.and_(flags, wanted), wanted)
    with c.builder.if_then(is_error, likely=False):
        c.pyapi.err_set_string("PyExc_BufferError", "not in row-major order")
    return NativeValue(data, is_error=is_error)


def field(builder, obj, offset, llvm_type):
    address = builder.gep(builder.bitcast(obj, ir.IntType(8).as_pointer()),
                          [ir.Constant(ir.IntType(64), offset)])
    return builder.load(builder.bitcast(address, llvm_type.as_pointer()))


@infer_global(operator.getitem)
class GetItem(AbstractTemplate):
    def generic(self, args, kws):
        if isinstance(args[0], Memory):
            return signature(args[0].dtype, args[0], types.intp)


@infer_global(operator.setitem)
class SetItem(AbstractTemplate):
    def generic(self, args, kws):
        if isinstance(args[0], Memory):
            return signature(types.none, args[0], types.intp, args[0].dtype)


@lower_builtin(operator.getitem, Memory, types.intp)
def lower_getitem(context, builder, sig, args):
    return load(context, builder, sig.args[0], *args)


@lower_builtin(operator.setitem, Memory, types.intp, types.Any)
def lower_setitem(context, builder, sig, args):
    store(context, builder, sig.args[0].dtype, *args)
    return context.get_dummy_value()


def load(context, builder, memory_type, memory, index):
    model = context.data_model_manager[memory_type.dtype]
    return model.load_from_data_pointer(builder, builder.gep(memory, [index]))


def store(context, builder, dtype, memory, index, value):
    data = context.get_value_as_data(builder, dtype, value)
    builder.store(data, builder.gep(memory, [index]))


# --- Making intrinsics ----------------------------------------------------------------------------

names = {}                        # what kernels see
emitters = {}                     # name -> emit


def define(name, result=None, arity=1):
    """Decorator: emit(builder, type, *values) becomes the intrinsic `name` for one type."""
    def decorate(emit):
        def typed(*operands):
            out = operands[0] if result is None else result

            def generate(context, builder, sig, args):
                return emit(builder, sig.args[0], *args)
            return signature(out, *operands[:1] * arity), generate
        names[name] = (intrinsic(lambda tc, x: typed(x)) if arity == 1 else
                       intrinsic(lambda tc, x, y: typed(x, y)))
        emitters[name] = emit
        return emit
    return decorate


def is_float(t):
    return isinstance(t, types.Float)


def is_signed(t):
    return isinstance(t, types.Integer) and t.signed


def constant(value, number):
    return ir.Constant(value.type, number)


def bits(value):
    return value.type.width


# --- Memory inside a kernel -----------------------------------------------------------------------

@intrinsic
def load_if(typingcontext, condition, memory, index):
    def generate(context, builder, sig, args):
        return load_where(context, builder, memory, *args)
    return signature(memory.dtype, types.boolean, memory, types.intp), generate


def load_where(context, builder, memory_type, condition, memory, index):
    kind = context.get_value_type(memory_type.dtype)
    zero = ir.Constant(kind, 0.0 if is_float(memory_type.dtype) else 0)
    before = builder.block
    with builder.if_then(condition):
        value = load(context, builder, memory_type, memory, index)
        inside = builder.block
    out = builder.phi(kind)
    out.add_incoming(zero, before)
    out.add_incoming(value, inside)
    return out


@intrinsic
def lanes(typingcontext, count, start):
    if not isinstance(count, types.Literal):
        return None
    dtype = types.unliteral(start)        # else a lane that begins as False could be nothing else

    def generate(context, builder, sig, args):
        data_type = context.get_data_type(dtype)
        memory = cgutils.alloca_once(builder, data_type, size=count.literal_value)
        data = context.get_value_as_data(builder, dtype, args[1])
        with cgutils.for_range(builder, ir.Constant(ir.IntType(64), count.literal_value)) as loop:
            builder.store(data, builder.gep(memory, [loop.index]))
        return memory
    return signature(Lanes(dtype, count.literal_value), count, dtype), generate


names["local"] = lanes


class Lanes(Memory):
    """Accumulators on the stack."""

    def __init__(self, dtype, count):
        self.dtype, self.count = dtype, count
        types.Type.__init__(self, f"lanes({dtype}, {count})")


register_model(Lanes)(MemoryModel)


def define_fold(name, combine):
    @intrinsic
    def fold(typingcontext, accumulators):
        def generate(context, builder, sig, args):
            return fold_lanes(context, builder, accumulators.dtype, accumulators.count, args[0],
                              combine)
        return signature(accumulators.dtype, accumulators), generate
    names[name] = fold


def fold_lanes(context, builder, dtype, count, memory, combine):
    """Combine accumulators in pairs, count/2 apart, count/4 apart, …: a tree."""
    while count > 1:
        count //= 2
        with cgutils.for_range(builder, ir.Constant(ir.IntType(64), count)) as loop:
            other = builder.add(loop.index, ir.Constant(ir.IntType(64), count))
            x, y = (load(context, builder, Memory(dtype), memory, i) for i in (loop.index, other))
            store(context, builder, dtype, memory, loop.index, combine(builder, dtype, x, y))
    return load(context, builder, Memory(dtype), memory, ir.Constant(ir.IntType(64), 0))


names.update(load_if=load_if, lanes=lanes)


# --- Conversions ----------------------------------------------------------------------------------

def numba_type(name):
    """The Numba type of a short name: i32 is int32."""
    return getattr(types, {"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:])


def define_conversion(name, target):
    @intrinsic
    def convert(typingcontext, x):
        x = types.unliteral(x)

        def generate(context, builder, sig, args):
            if is_float(x):
                return float_to_integer(builder, args[0], target)
            return context.cast(builder, args[0], x, target)
        return signature(target, x), generate
    names[name] = convert


def float_to_integer(builder, value, target):
    """Round towards zero; saturate; NaN gives 0. LLVM has an instruction for just that."""
    out = ir.IntType(target.bitwidth)
    kind = "fptosi" if target.signed else "fptoui"
    function = builder.module.declare_intrinsic(
        f"llvm.{kind}.sat", (out, value.type), ir.FunctionType(out, [value.type]))
    return builder.call(function, [value])


for _name in "i8 i16 i32 i64 u8 u16 u32 u64".split():
    define_conversion(f"to_{_name}", numba_type(_name))


@define("to_bool", types.boolean)
def to_bool(builder, t, x):
    if is_float(t):
        return builder.fcmp_unordered("!=", x, constant(x, 0.0))
    return builder.icmp_unsigned("!=", x, constant(x, 0))


def define_bitcast(name, target):
    @intrinsic
    def bitcast(typingcontext, x):
        def generate(context, builder, sig, args):
            return builder.bitcast(args[0], context.get_value_type(target))
        return signature(target, x), generate
    names[name] = bitcast


for _name in "i8 i16 i32 i64 u8 u16 u32 u64 f32 f64".split():
    define_bitcast(f"bits_{_name}", numba_type(_name))


@intrinsic
def clamp_index(typingcontext, x, low, high):
    def generate(context, builder, sig, args):
        wide = context.cast(builder, args[0], x, types.int64)
        return clamp(builder, x, args[0], wide, *args[1:])
    return signature(types.int64, x, types.int64, types.int64), generate


def clamp(builder, t, x, wide, low, high):
    """The index `x`, `wide` as an int64, moved into low … high."""
    inside = minimum(builder, types.int64, maximum(builder, types.int64, wide, low), high)
    if is_signed(t) or t.bitwidth < 64:
        return inside
    # a large unsigned number is above every bound, not negative
    return builder.select(builder.icmp_unsigned(">", x, high), high, inside)


names["clamp_index"] = clamp_index


# --- Choices --------------------------------------------------------------------------------------

@intrinsic
def select(typingcontext, condition, if_true, if_false):
    def generate(context, builder, sig, args):
        return builder.select(*args)
    return signature(if_true, types.boolean, if_true, if_true), generate


names["select"] = select


def compare(builder, t, sign, x, y):
    if is_float(t):
        return builder.fcmp_ordered(sign, x, y)
    return (builder.icmp_signed if is_signed(t) else builder.icmp_unsigned)(sign, x, y)


def is_nan_value(builder, t, x):
    return builder.fcmp_unordered("uno", x, x)


@define("maximum", arity=2)
def maximum(builder, t, x, y):
    return choose(builder, t, ">", x, y)


@define("minimum", arity=2)
def minimum(builder, t, x, y):
    return choose(builder, t, "<", x, y)


def choose(builder, t, sign, x, y):
    # x if it wins or is NaN; a NaN y wins since it never loses
    wins = compare(builder, t, sign, x, y)
    if is_float(t):
        wins = builder.or_(wins, is_nan_value(builder, t, x))
    return builder.select(wins, x, y)


@define("is_nan", types.boolean)
def is_nan(builder, t, x):
    return is_nan_value(builder, t, x)


@define("is_finite", types.boolean)
def is_finite(builder, t, x):
    return builder.fcmp_ordered("<", call(builder, "llvm.fabs", x), constant(x, float("inf")))


# --- Integers -------------------------------------------------------------------------------------

@define("absolute")
def absolute(builder, t, x):
    if is_float(t):
        return call(builder, "llvm.fabs", x)
    return builder.select(compare(builder, t, "<", x, constant(x, 0)), builder.neg(x), x)


@define("sign")
def sign(builder, t, x):
    zero = constant(x, 0.0 if is_float(t) else 0)
    if not is_float(t) and not is_signed(t):
        return builder.zext(builder.icmp_unsigned("!=", x, zero), x.type)
    if not is_float(t):
        return builder.select(compare(builder, t, ">", x, zero), constant(x, 1),
                              builder.ashr(x, constant(x, bits(x) - 1)))
    one = call(builder, "llvm.copysign", constant(x, 1.0), x)
    return builder.select(builder.fcmp_ordered("one", x, zero), one, x)


def safe_divisor(builder, t, y):
    """y, or 1 where the hardware would trap: y is 0, or may be -1; and whether it was 0, or -1."""
    is_zero = builder.icmp_unsigned("==", y, constant(y, 0))
    is_minus_one = builder.icmp_unsigned("==", y, constant(y, -1)) if is_signed(t) else None
    unsafe = builder.or_(is_zero, is_minus_one) if is_signed(t) else is_zero
    return builder.select(unsafe, constant(y, 1), y), is_zero, is_minus_one


@define("divide_int", arity=2)
def divide_int(builder, t, x, y):
    safe, is_zero, is_minus_one = safe_divisor(builder, t, y)
    quotient = (builder.sdiv if is_signed(t) else builder.udiv)(x, safe)
    if is_signed(t):
        quotient = builder.select(is_minus_one, builder.neg(x), quotient)
    return builder.select(is_zero, constant(x, -1), quotient)


@define("remainder", arity=2)
def remainder(builder, t, x, y):
    if is_float(t):
        return builder.frem(x, y)
    safe, is_zero, _ = safe_divisor(builder, t, y)
    return builder.select(is_zero, x, (builder.srem if is_signed(t) else builder.urem)(x, safe))


def in_width(builder, y):
    return builder.icmp_unsigned("<", y, constant(y, bits(y)))


@define("shift_left", arity=2)
def shift_left(builder, t, x, n):
    return builder.select(in_width(builder, n), builder.shl(x, n), constant(x, 0))


@define("shift_right_logical", arity=2)
def shift_right_logical(builder, t, x, n):
    return builder.select(in_width(builder, n), builder.lshr(x, n), constant(x, 0))


@define("shift_right_arithmetic", arity=2)
def shift_right_arithmetic(builder, t, x, n):
    most = builder.select(in_width(builder, n), n, constant(x, bits(x) - 1))
    return builder.ashr(x, most)


@define("popcount")
def popcount(builder, t, x):
    return call(builder, "llvm.ctpop", x)


@define("clz")
def clz(builder, t, x):
    function = builder.module.declare_intrinsic(
        "llvm.ctlz", (x.type,), ir.FunctionType(x.type, [x.type, ir.IntType(1)]))
    return builder.call(function, [x, ir.Constant(ir.IntType(1), 0)])


for _name, _combine in {
        "add": lambda b, t, x, y: (b.fadd if is_float(t) else b.add)(x, y),
        "mul": lambda b, t, x, y: (b.fmul if is_float(t) else b.mul)(x, y),
        "max": maximum, "min": minimum,
        "and": lambda b, t, x, y: b.and_(x, y), "or": lambda b, t, x, y: b.or_(x, y),
        "xor": lambda b, t, x, y: b.xor(x, y)}.items():
    define_fold(f"fold_{_name}", _combine)


# --- Functions of floats --------------------------------------------------------------------------

def call(builder, name, *values):
    """A call of an LLVM intrinsic that is overloaded on its operands' one type."""
    t = values[0].type
    function = builder.module.declare_intrinsic(name, (t,), ir.FunctionType(t, [t] * len(values)))
    return builder.call(function, values)


def call_libm(builder, name, *values):
    """A call of the C library's function for doubles, or of its sibling for floats."""
    t = values[0].type
    symbol = name if isinstance(t, ir.DoubleType) else name + "f"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(t, [t] * len(values)), symbol)
    return builder.call(function, values)


def define_llvm(name, llvm_name):
    define(name)(lambda builder, t, x: call(builder, llvm_name, x))


def define_libm(name, c_name, arity=1):
    define(name, arity=arity)(lambda builder, t, *values: call_libm(builder, c_name, *values))


for _name, _llvm in dict(floor="llvm.floor", ceil="llvm.ceil", trunc="llvm.trunc",
                         round_even="llvm.rint", round_away="llvm.round", sqrt="llvm.sqrt").items():
    define_llvm(_name, _llvm)

class LlvmValue:
    """A float or integer in a register, with the operators that `vector_math` uses."""

    def __init__(self, m, value):
        self.m, self.value = m, value
        self.is_float = not isinstance(value.type, ir.IntType)

    def _arithmetic(self, other, on_floats, on_integers):
        builder = self.m.builder
        if self.is_float:
            # a product and a sum may become one instruction, which rounds once
            out = getattr(builder, on_floats)(self.value, other.value, flags=("contract",))
        else:
            out = getattr(builder, on_integers)(self.value, other.value)
        return LlvmValue(self.m, out)

    def __add__(self, other):
        return self._arithmetic(other, "fadd", "add")

    def __sub__(self, other):
        return self._arithmetic(other, "fsub", "sub")

    def __mul__(self, other):
        return self._arithmetic(other, "fmul", "mul")

    def __truediv__(self, other):
        return LlvmValue(self.m, self.m.builder.fdiv(self.value, other.value))

    def __neg__(self):
        return LlvmValue(self.m, self.m.builder.fneg(self.value))

    def __and__(self, other):
        return LlvmValue(self.m, self.m.builder.and_(self.value, other.value))

    def __xor__(self, other):
        return LlvmValue(self.m, self.m.builder.xor(self.value, other.value))

    def __rshift__(self, count):
        return LlvmValue(self.m, self.m.builder.ashr(self.value, constant(self.value, count)))

    def __lshift__(self, count):
        return LlvmValue(self.m, self.m.builder.shl(self.value, constant(self.value, count)))

    def _compare(self, sign, other):
        builder = self.m.builder
        compare = builder.fcmp_ordered if self.is_float else builder.icmp_signed
        return LlvmValue(self.m, compare(sign, self.value, other.value))

    def __lt__(self, other):
        return self._compare("<", other)

    def __gt__(self, other):
        return self._compare(">", other)

    def __eq__(self, other):
        return self._compare("==", other)

    __hash__ = None


class LlvmMath:
    """The operations of `vector_math` as LLVM instructions."""

    def __init__(self, builder, dtype):
        self.builder, self.format = builder, vector_math.FORMATS[np.dtype(dtype)]
        width = 8 * self.format.dtype.itemsize
        self.exponent_bits = width - 1 - self.format.mantissa_bits
        self.float = ir.FloatType() if width == 32 else ir.DoubleType()
        self.int = ir.IntType(width)

    def const(self, number):
        # llvmlite writes float constants exactly only if they are floats of that format
        return LlvmValue(self, ir.Constant(self.float, float(self.format.dtype.type(number))))

    def integer(self, number):
        return LlvmValue(self, ir.Constant(self.int, number))

    def bits(self, x):
        return LlvmValue(self, self.builder.bitcast(x.value, self.int))

    def float_of_bits(self, n):
        return LlvmValue(self, self.builder.bitcast(n.value, self.float))

    def to_float(self, n):
        return LlvmValue(self, self.builder.sitofp(n.value, self.float))

    def select(self, condition, if_true, if_false):
        return LlvmValue(self, self.builder.select(condition.value, if_true.value, if_false.value))

    def absolute(self, x):
        return LlvmValue(self, call(self.builder, "llvm.fabs", x.value))

    def rounding_error(self, x, y):
        negated = (-(x * y)).value
        return LlvmValue(self, self.builder.fma(x.value, y.value, negated))

    def copysign(self, size, sign):
        return LlvmValue(self, call(self.builder, "llvm.copysign", size.value, sign.value))


def define_vector(name, only_float32=False):
    function = getattr(vector_math, name)

    def emit(builder, t, x):
        if only_float32 and t != types.float32:
            return call_libm(builder, name, x)
        m = LlvmMath(builder, np.float32 if t == types.float32 else np.float64)
        return function(m, LlvmValue(m, x)).value
    define(name)(emit)


def define_trigonometric(name):
    """Sine or cosine: of a float32 by way of float64, of a float64 the C library's."""
    function = getattr(vector_math, name)

    def emit(builder, t, x):
        if t != types.float32:
            return call_libm(builder, name, x)
        m = LlvmMath(builder, np.float64)
        wide = LlvmValue(m, builder.fpext(x, m.float))
        return builder.fptrunc(function(m, wide).value, x.type)
    define(name)(emit)


for _name in ("exp", "expm1", "log", "log1p", "tanh", "logistic"):
    define_vector(_name)
define_vector("erf", only_float32=True)
define_trigonometric("sin")
define_trigonometric("cos")

for _name in ("exp2 tan asin acos atan sinh cosh asinh acosh atanh erfc lgamma cbrt").split():
    define_libm(_name, _name)

define_libm("atan2", "atan2", arity=2)
define_libm("power", "pow", arity=2)
define_libm("nextafter", "nextafter", arity=2)


@define("rsqrt")
def rsqrt(builder, t, x):
    return builder.fdiv(constant(x, 1.0), call(builder, "llvm.sqrt", x))


# --- Compiling a kernel ---------------------------------------------------------------------------

NUMBA_DTYPES = dict(bool_=types.boolean, i8=types.int8, i16=types.int16, i32=types.int32,
                    i64=types.int64, u8=types.uint8, u16=types.uint16, u32=types.uint32,
                    u64=types.uint64, f32=types.float32, f64=types.float64)

for _name in ("bool_ i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 inf nan").split():
    names[_name] = getattr(runtime, _name)


def llvm_type(dtype):
    """The LLVM type of a value in a register."""
    if dtype.kind == "f":
        return ir.FloatType() if dtype.itemsize == 4 else ir.DoubleType()
    return ir.IntType(1 if dtype == bool else 8 * dtype.itemsize)


_lock = threading.RLock()


def compile_kernel(function, dtypes):
    """Compile a generated function of memory of these dtypes; returns a callable of NumPy arrays.

    This is what numba.njit does at a call with new types, with two flags that njit does not offer:
    pointers don't alias, and no code that counts references.
    """
    flags = compiler.Flags()
    flags.error_model, flags.noalias, flags.nrt = "numpy", True, False
    flags.no_cfunc_wrapper, flags.no_rewrites = True, True
    args = tuple(Memory(NUMBA_DTYPES[name]) for name in dtypes)
    with _lock:
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
        result = compiler.compile_extra(cpu_target.typing_context, cpu_target.target_context,
                                        function, args, types.none, flags, {})
    return result.entry_point


def compile_emitted(emit, dtypes):
    """Compile a kernel whose body is written by emit(context, builder, addresses)."""
    def typed(typingcontext, *memories):
        def generate(context, builder, sig, args):
            emit(context, builder, args)
            return context.get_dummy_value()
        return signature(types.none, *memories), generate

    # An intrinsic must have a parameter for each operand, so both functions are written out.
    params = ", ".join(f"m{k}" for k in range(len(dtypes)))
    source = (f"body = intrinsic(lambda typingcontext, {params}: typed(typingcontext, {params}))\n"
              f"def kernel({params}):\n    body({params})\n")
    namespace = {"intrinsic": intrinsic, "typed": typed}
    exec(source, namespace)
    return compile_kernel(namespace["kernel"], dtypes)
