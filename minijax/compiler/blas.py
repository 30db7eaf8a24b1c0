# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's calls of Eigen and oneDNN for products.

Products of matrices as calls of BLAS out of machine code. The code knows the functions by names,
which `machine` resolves when it links, so it can be kept on disk.
"""

import numpy as np
from llvmlite import ir

from minijax.compiler.llvm_ops import INT64, typed_constant
from minijax.compiler.render_llvm import STEP_WRITERS, as_int64, loops, place_of
from minijax.loop_ir import Product, buffers_written
from minijax.lower_products import matrices, others_in

__all__ = ["product", "multiply", "multiply_vector", "leading", "LETTERS", "FortranCall"]


# --- Products -------------------------------------------------------------------------------------

# For Fortran, memory that holds a matrix row by row holds its transpose. So out = left · right is
# asked for as outᵀ = rightᵀ · leftᵀ; a matrix that lies column by column is transposed by a flag.

def product(writer, step):
    """Write a call of BLAS for each turn of a product's first loop."""
    batch, *inside = step.axes
    writer.is_short = True
    with writer.inside_loop(buffers_written(step)), loops(writer, [batch]):
        writer.axes.update(dict.fromkeys([*inside, *step.body[-2].axes], 0))
        writer.body(others_in(step))
        left, right, out = matrices(step)
        call = FortranCall(writer, out.buffer.dtype)
        beta = 0 if step.body[-1].combine in (None, "replace") else 1
        if 1 in out.sizes:
            multiply_vector(call, left, right, out, beta)
        else:
            multiply(call, left, right, out, beta)


def multiply(call, left, right, out, beta):
    (rows, columns), terms = out.sizes, left.sizes[1]
    flags = [call.constant("N" if x.in_rows() else "T") for x in (right, left)]
    call("gemm", *flags, *map(call.constant, (columns, rows, terms, 1.0)),
         call.address(right), call.constant(leading(right)),
         call.address(left), call.constant(leading(left)),
         call.constant(float(beta)), call.address(out), call.constant(leading(out)))


def multiply_vector(call, left, right, out, beta):
    """A matrix times a vector: the left or the right operand is a vector if the result is one."""
    if out.sizes[1] == 1:
        matrix, vector, step, is_transposed = left, right, right.strides[0], left.in_rows()
    else:
        matrix, vector, step, is_transposed = right, left, left.strides[1], not right.in_rows()
    sizes = reversed(matrix.sizes) if matrix.in_rows() else matrix.sizes
    call("gemv", call.constant("T" if is_transposed else "N"), *map(call.constant, (*sizes, 1.0)),
         call.address(matrix), call.constant(leading(matrix)),
         call.address(vector), call.constant(step),
         call.constant(float(beta)), call.address(out), call.constant(1))


def leading(matrix):
    """The distance between rows, or columns, that lie one after the other."""
    (rows, columns), (down, along) = matrix.sizes, matrix.strides
    if matrix.in_rows():
        return down if rows > 1 else columns
    return along if columns > 1 else rows


# What BLAS puts in front of a name, for numbers of a dtype.
LETTERS = {np.dtype(t): letter for letter, t in dict(s="f4", d="f8", c="c8", z="c16").items()}


class FortranCall:
    """Writes a call of a function that gets the address of everything, also of numbers."""

    def __init__(self, writer, dtype):
        self.writer, self.builder, self.dtype = writer, writer.builder, dtype

    def __call__(self, name, *operands):
        module = self.builder.module
        name = f"minijax_{LETTERS[self.dtype]}{name}"
        found = module.globals.get(name) or ir.Function(
            module, ir.FunctionType(ir.VoidType(), [x.type for x in operands]), name)
        self.builder.call(found, operands)

    def constant(self, value):
        """The address of a constant: a letter, a number of the matrices' dtype, or an integer.

        An integer has 64 bits. A library of 32-bit integers reads the lower half, which is first.
        """
        if isinstance(value, str):
            found = ir.Constant(ir.IntType(8), ord(value))
        elif isinstance(value, float):
            found = typed_constant(value, self.dtype)
        else:
            found = ir.Constant(INT64, value)
        module, name = self.builder.module, f"number.{found.type}.{value}"
        variable = module.globals.get(name) or ir.GlobalVariable(module, found.type, name)
        variable.global_constant, variable.initializer, variable.linkage = True, found, "internal"
        return variable

    def address(self, matrix):
        """Where a matrix begins."""
        place = as_int64(place_of(self.writer, matrix.place))
        return self.builder.gep(self.writer.memory[matrix.buffer], [place], inbounds=True)


STEP_WRITERS[Product] = product
