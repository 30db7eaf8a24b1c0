# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: XLA's elemental IR emitter.

The names of `runtime` for Numba. Each is an intrinsic: it writes the LLVM instructions for one
scalar operation. Importing this module imports Numba, which only the "python" renderer does.
"""

import operator

import numpy as np
from numba import njit
from numba.core import compiler, types
from numba.core.imputils import lower_builtin
from numba.core.registry import cpu_target
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

from minijax.compiler import llvm_ops, runtime
from minijax.compiler.llvm_ops import emitters
from minijax.compiler.machine import lock
from minijax.compiler.render_python import FUNCTION_NAMES
from minijax.compiler.runtime import DTYPE_NAMES
from minijax.loop_ir import BOOL, NARROW, OPS, bits_of

__all__ = [
    "Memory", "MemoryModel", "unbox_memory", "GetItem", "SetItem", "lower_getitem", "lower_setitem",
    "as_dtype", "names", "load_if", "lanes", "Lanes", "define_fold", "product", "define",
    "define_conversion", "real_part", "imag_part", "complex_of", "select", "clamp_index",
    "NUMBA_DTYPES", "compile_kernel",
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


@unbox(Memory)
def unbox_memory(memory, obj, c):
    data, is_error = llvm_ops.data_of(c.builder, obj, c.context.get_data_type(memory.dtype))
    with c.builder.if_then(is_error, likely=False):
        c.pyapi.err_set_string("PyExc_BufferError", llvm_ops.NOT_CONTIGUOUS)
    return NativeValue(data, is_error=is_error)


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
    return llvm_ops.load(builder, as_dtype(sig.args[0].dtype), *args)


@lower_builtin(operator.setitem, Memory, types.intp, types.Any)
def lower_setitem(context, builder, sig, args):
    llvm_ops.store(builder, as_dtype(sig.args[0].dtype), *args)
    return context.get_dummy_value()


def as_dtype(t):
    """The NumPy dtype of a Numba type."""
    return np.dtype(str(types.unliteral(t)))


# --- Lanes and guarded loads ----------------------------------------------------------------------

names = {}                        # what kernels see


@intrinsic
def load_if(typingcontext, condition, memory, index):
    def generate(context, builder, sig, args):
        return llvm_ops.load_where(builder, as_dtype(memory.dtype), *args)
    return signature(memory.dtype, types.boolean, memory, types.intp), generate


@intrinsic
def lanes(typingcontext, count, start):
    if not isinstance(count, types.Literal):
        return None
    number = count.literal_value
    start = types.unliteral(start)        # else a lane that begins as False could be nothing else

    def generate(context, builder, sig, args):
        dtype = as_dtype(start)
        memory = llvm_ops.entry_alloca(builder, llvm_ops.memory_type(dtype), number)
        with llvm_ops.counted_loop(builder, llvm_ops.int64(number)) as (lane, _):
            llvm_ops.store(builder, dtype, memory, lane, args[1])
        return memory
    return signature(Lanes(start, number), count, start), generate


class Lanes(Memory):
    """Accumulators on the stack."""

    def __init__(self, dtype, count):
        self.dtype, self.count = dtype, count
        types.Type.__init__(self, f"lanes({dtype}, {count})")


register_model(Lanes)(MemoryModel)


def define_fold(name):
    @intrinsic
    def fold(typingcontext, accumulators):
        def generate(context, builder, sig, args):
            return llvm_ops.fold_lanes(builder, as_dtype(accumulators.dtype), accumulators.count,
                                       args[0], emitters[name])
        return signature(accumulators.dtype, accumulators), generate
    names[f"fold_{name}"] = fold


names.update(load_if=load_if, lanes=lanes, local=lanes)
for _name in ("add", "mul", "max", "min", "and", "or", "xor"):
    define_fold(_name)


def product(sizes, adds, out, to, left, first, right, second):
    """A product by its definition."""
    rows, columns, terms = sizes
    for i in range(rows):
        for j in range(columns):
            x, y = first[0] + i * first[1], second[0] + j * second[2]
            place = to[0] + i * to[1] + j * to[2]
            total = left[x] * right[y]
            for k in range(1, terms):
                total += left[x + k * first[2]] * right[y + k * second[1]]
            out[place] = out[place] + total if adds else total


names["product"] = njit(product)


# --- Scalar operations ----------------------------------------------------------------------------

def define(name, emit, arity=1, result=None):
    """emit(builder, dtype, *values) becomes the intrinsic `name` for operands of one type."""
    def typed(*operands):
        def generate(context, builder, sig, args):
            return emit(builder, as_dtype(sig.args[0]), *args)
        return signature(result or operands[0], *operands[:1] * arity), generate
    names[name] = (intrinsic(lambda context, x: typed(x)) if arity == 1 else
                   intrinsic(lambda context, x, y: typed(x, y)))


def define_conversion(name, emit, to, source=None):
    """emit(builder, value, dtype, new dtype) becomes the intrinsic `name`."""
    target = NUMBA_DTYPES[DTYPE_NAMES[to]]

    @intrinsic
    def conversion(typingcontext, x):
        x = types.unliteral(x)

        def generate(context, builder, sig, args):
            return emit(builder, args[0], source or as_dtype(x), to)
        return signature(target, x), generate
    names[name] = conversion


@intrinsic
def real_part(typingcontext, x):
    return signature(x.underlying_float, x), lambda c, builder, sig, args: builder.extract_value(
        args[0], 0)


@intrinsic
def imag_part(typingcontext, x):
    return signature(x.underlying_float, x), lambda c, builder, sig, args: builder.extract_value(
        args[0], 1)


@intrinsic
def complex_of(typingcontext, x, y):
    whole = types.complex64 if x == types.float32 else types.complex128
    return signature(whole, x, x), lambda c, builder, sig, args: llvm_ops.join(builder, args)


@intrinsic
def select(typingcontext, condition, if_true, if_false):
    def generate(context, builder, sig, args):
        return builder.select(*args)
    return signature(if_true, types.boolean, if_true, if_true), generate


@intrinsic
def clamp_index(typingcontext, x, low, high):
    def generate(context, builder, sig, args):
        return llvm_ops.clamp_index(builder, as_dtype(x), *args)
    return signature(types.int64, x, types.int64, types.int64), generate


names.update(select=select, clamp_index=clamp_index, real_part=real_part, imag_part=imag_part,
             complex_of=complex_of)

NUMBA_DTYPES = dict(bool_=types.boolean, i8=types.int8, i16=types.int16, i32=types.int32,
                    i64=types.int64, u8=types.uint8, u16=types.uint16, u32=types.uint32,
                    u64=types.uint64, f32=types.float32, f64=types.float64,
                    c64=types.complex64, c128=types.complex128)
for _dtype in NARROW:                                            # Numba has their bits only
    NUMBA_DTYPES[DTYPE_NAMES[_dtype]] = getattr(types, bits_of(_dtype).name)

for _name, _emit in emitters.items():
    _arity, _result = OPS[_name]
    if _arity <= 2 and _name not in ("real", "imag", "complex"):
        define({"div": "divide_int"}.get(_name, FUNCTION_NAMES.get(_name, _name)), _emit, _arity,
               types.boolean if _result is BOOL else None)

for _dtype, _name in DTYPE_NAMES.items():
    define_conversion(f"to_{_name.rstrip('_')}", llvm_ops.convert, _dtype)
    define_conversion(f"bits_{_name.rstrip('_')}",
                      lambda builder, x, _, target: llvm_ops.bitcast(builder, x, target), _dtype)

for _dtype, _wide in NARROW.items():
    define_conversion(f"widen_{DTYPE_NAMES[_dtype]}", llvm_ops.convert, _wide, _dtype)

for _name in (*NUMBA_DTYPES, "inf", "nan"):
    names[_name] = getattr(runtime, _name)


# --- Compiling a kernel ---------------------------------------------------------------------------

def compile_kernel(function, dtypes):
    """Compile a generated function of memory of these dtypes; returns a callable of NumPy arrays.

    This is what numba.njit does at a call with new types, with two flags that njit does not offer:
    pointers don't alias, and no code that counts references.
    """
    flags = compiler.Flags()
    flags.error_model, flags.noalias, flags.nrt = "numpy", True, False
    flags.no_cfunc_wrapper, flags.no_rewrites = True, True
    args = tuple(Memory(NUMBA_DTYPES[name]) for name in dtypes)
    with lock:
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
        result = compiler.compile_extra(cpu_target.typing_context, cpu_target.target_context,
                                        function, args, types.none, flags, {})
    return result.entry_point
