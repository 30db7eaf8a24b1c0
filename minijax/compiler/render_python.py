# Exported from notebooks/11_jit.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 11_jit. In JAX: LLVM IR emission in XLA's CPU compiler.

Prints a loop IR as Python source: a function for each group of nests, and `main`, which calls them.
Each line stands under the equation it came from. A program `sin(x) + 1.0` of 8 numbers becomes

    @kernel("f32 f32")
    def kernel_0(A, C):
        for i0 in range(8):
            # b:f32[8] = sin a
            b = sin(A[i0])
            # c:f32[8] = add b 1.0:f32[]
            c = b + f32(1.0)
            C[i0] = c

where a capital letter is memory and a small one is a number.
"""

import keyword
import sys

import numpy as np

from minijax.compiler import runtime
from minijax.compiler.dead_steps import has_calls
from minijax.compiler.runtime import DTYPE_NAMES
from minijax.jaxpr import Printer, jaxprs_in_params, open_jaxpr, results_not_read
from minijax.loop_ir import (
    Axis, AxisValue, Branch, Buffer, COMPLEX, Call, Const, Dynamic, InBounds, Load, Loop, NARROW,
    Nest, Op, Product, Reduce, Remainder, Store, While, all_nodes, axes_in, buffer_of, buffers_read,
    buffers_written, identity, index_maps_of, nodes_read, parts_of, programs_in,
)
from minijax.lower_products import matrices, others_in
from minijax.pretty_printer import Group, layout

__all__ = [
    "index_text", "term_text", "INFIX", "COMPARISONS", "FUNCTION_NAMES", "op_text", "combined_text",
    "wrapped", "convert_text", "literal", "RESERVED", "Namer", "KernelLines", "NodeWriter",
    "NestWriter", "KernelWriter", "nothing", "count_uses", "comment_text", "MAX_LOCAL", "memory_of",
    "local_buffers", "free_axes", "MAX_KERNEL_NODES", "Rendered", "render", "names_in",
    "all_programs", "MainWriter", "ModuleWriter", "groups", "count_nodes",
]


# --- Index maps as text ---------------------------------------------------------------------------

def index_text(index, axis_name, node_name):
    parts = [term_text(atom, c, axis_name, node_name) for atom, c in index.terms.items()]
    if index.offset or not parts:
        parts.append(str(index.offset))
    return " + ".join(parts).replace("+ -", "- ")


def term_text(atom, coefficient, axis_name, node_name):
    if isinstance(atom, Axis):
        text = axis_name(atom)
    elif isinstance(atom, Dynamic):
        text = node_name(atom.node)
    else:
        sign = "%" if isinstance(atom, Remainder) else "//"
        text = f"(({index_text(atom.index, axis_name, node_name)}) {sign} {atom.divisor})"
    if coefficient == 1:
        return text
    return f"-{text}" if coefficient == -1 else f"{coefficient}*{text}"


# --- Scalar operations as text --------------------------------------------------------------------

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
         "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))

# Names of operations that Python or `runtime` calls otherwise.
FUNCTION_NAMES = {"abs": "absolute", "max": "maximum", "min": "minimum", "pow": "power",
                  "rem": "remainder", "real": "real_part", "imag": "imag_part",
                  "complex": "complex_of"}


def op_text(node, args):
    """The Python expression of an operation on operands given as text."""
    name, dtype = node.name, node.dtype
    is_float = dtype.kind == "f"
    if name == "convert":
        return convert_text(args[0], dtype, node.args[0].dtype)
    if name == "bitcast":
        return f"bits_{DTYPE_NAMES[dtype].rstrip('_')}({args[0]})"
    if name == "div" and not is_float:
        return f"divide_int({', '.join(args)})"
    if name == "neg":
        return wrapped(f"-{args[0]}", dtype)
    if name == "not":
        return f"not {args[0]}" if dtype == bool else wrapped(f"~{args[0]}", dtype)
    if name in COMPARISONS:
        return f"{args[0]} {INFIX[name]} {args[1]}"
    if name in INFIX:
        return wrapped(f"{args[0]} {INFIX[name]} {args[1]}", dtype)
    return f"{FUNCTION_NAMES.get(name, name)}({', '.join(args)})"


def combined_text(name, dtype, old, new):
    """What a store leaves that combines a value with the element that is there."""
    if dtype in NARROW:
        wide = NARROW[dtype]
        old, new = (convert_text(x, wide, dtype) for x in (old, new))
        return convert_text(op_text(Op(name, (), wide), [old, new]), dtype)
    return op_text(Op(name, (), dtype), [old, new])


def wrapped(text, dtype):
    # Numba computes with at least 64 bits of integers, so narrower results are cut back.
    if dtype.kind in "iu" and dtype.itemsize < 8:
        return f"{DTYPE_NAMES[dtype]}({text})"
    return text


def convert_text(text, dtype, source=None):
    if source in NARROW:
        text, wide = f"widen_{DTYPE_NAMES[source]}({text})", NARROW[source]
        return text if dtype == wide else convert_text(text, dtype, wide)
    if dtype.kind == "f" and dtype not in NARROW:
        return f"{DTYPE_NAMES[dtype]}({text})"
    return f"to_{DTYPE_NAMES[dtype].rstrip('_')}({text})"


def literal(const):
    """A typed constant: `f32(0.5)`, `i32(3)`, `True`."""
    value, dtype = const.value, const.dtype
    if dtype == bool:
        return str(bool(value))
    if dtype in NARROW:
        return convert_text(literal(Const(value, NARROW[dtype])), dtype)
    if dtype in COMPLEX:
        return f"complex_of({', '.join(literal(part) for part in parts_of(const))})"
    if dtype.kind != "f":
        return f"{DTYPE_NAMES[dtype]}({int(value)})"
    short = str(value)
    text = short if dtype.type(float(short)).tobytes() == value.tobytes() else repr(float(value))
    return f"{DTYPE_NAMES[dtype]}({text})"


# --- Names ----------------------------------------------------------------------------------------

RESERVED = frozenset([*keyword.kwlist, *(n for n in vars(runtime) if n.islower()), "main", "range"])


class Namer:
    """Names of one function; from the jaxpr, if its names are given.

    Without them names depend on structure only, so functions that do the same have the same text.
    """

    def __init__(self, jaxpr_names=None):
        self.jaxpr_names = jaxpr_names
        self.given, self.taken, self.counts = {}, set(RESERVED), {}

    def of_var(self, var, fallback):
        if self.jaxpr_names is None or var is None:
            return fallback
        name = self.jaxpr_names(var)
        return fallback if name == "_" else name

    def give(self, thing, wish):
        """The name of a thing; if it has none yet, the one wished for or one like it."""
        if thing not in self.given:
            self.given[thing] = self.unused(wish)
        return self.given[thing]

    def unused(self, wish):
        name = wish
        while name in self.taken:
            count = self.counts[wish] = self.counts.get(wish, -1) + 1
            name = f"{wish}_{count or ''}"
        self.taken.add(name)
        return name


# --- Kernels --------------------------------------------------------------------------------------

class KernelLines:
    """The lines of one function, the names in it, and the loops that are open."""

    def __init__(self, steps, eqns, jaxpr_names=None):
        self.steps, self.eqns = steps, eqns
        self.namer = Namer(jaxpr_names)
        self.jaxpr_names = jaxpr_names
        self.lines, self.depth = [], 1
        self.locals = local_buffers(steps)
        self.buffers = [b for b in dict.fromkeys(b for s in steps for b in memory_of(s))
                        if b not in self.locals]
        self.text = {}            # node -> expression or name
        self.last_eqn, self.open_axes = None, 0

    def write(self, line):
        self.lines.append("    " * self.depth + line)

    def comment(self, eqn):
        if self.jaxpr_names is None or eqn is None or eqn == self.last_eqn:
            return
        self.last_eqn = eqn
        self.write("# " + comment_text(self.eqns[eqn], self.jaxpr_names))

    def memory(self, buffer):
        return self.namer.give(buffer, self.namer.of_var(buffer.var, "M").upper())

    def index(self, index):
        return index_text(index, self.axis, lambda node: self.text[node])

    def axis(self, axis):
        return self.namer.given[axis]

    def open_loop(self, axis):
        # A name can be used again by a later loop, but not by one inside.
        self.namer.given[axis] = f"i{self.open_axes}"
        self.open_axes += 1
        if axis.size == 1:
            return
        self.write(f"for {self.namer.given[axis]} in range({axis.size}):")
        self.depth += 1

    def close_loops(self, axes):
        self.open_axes -= len(axes)
        self.depth -= sum(a.size != 1 for a in axes)


class NodeWriter(KernelLines):
    """Writes the nodes that compute or store one number."""

    def names_of(self, body):
        """The name of an equation's result for the last node that came from it."""
        return {node.eqn: node for node in body if node.eqn is not None and not
                isinstance(node, (Store, Const, Load, InBounds))}

    def wish(self, node, names):
        if isinstance(node, Load):
            return self.namer.of_var(node.buffer.var, "v")
        if node.eqn is None:
            return "t" if self.jaxpr_names else "v"
        name = self.namer.of_var(self.eqns[node.eqn].outvars[0], "v")
        return name if names.get(node.eqn) is node else f"{name}_1"

    def value(self, node, uses, names):
        text = self.expression(node)
        once = isinstance(node, (Load, AxisValue, InBounds)) and uses == 1
        if isinstance(node, Const) or once and not (isinstance(node, Load) and node.guard):
            self.text[node] = text
            return
        self.comment(node.eqn)
        self.text[node] = self.namer.give(node, self.wish(node, names))
        self.write(f"{self.text[node]} = {text}")

    def expression(self, node):
        if isinstance(node, Op):
            return op_text(node, [self.text[a] for a in node.args])
        if isinstance(node, Const):
            return literal(node)
        if isinstance(node, AxisValue):
            return convert_text(self.index(node.index), node.dtype)
        if isinstance(node, InBounds):
            return self.condition(node.guard)
        place = self.memory(node.buffer), self.index(node.index)
        if node.guard:
            return f"load_if({self.condition(node.guard)}, {place[0]}, {place[1]})"
        return f"{place[0]}[{place[1]}]"

    def condition(self, guard):
        """Whether 0 <= index < size, leaving out what always holds."""
        tests = []
        for index, size in guard:
            text, (low, high) = self.index(index), index.bounds()
            tests += [f"({text} >= 0)"] * (low < 0) + [f"({text} < {size})"] * (high >= size)
        return " & ".join(tests) or "True"

    def store(self, node):
        place = f"{self.memory(node.buffer)}[{self.index(node.index)}]"
        value = self.text[node.value]
        if node.combine not in (None, "replace"):
            value = combined_text(node.combine, node.value.dtype, place, value)
        self.write(f"{place} = {value}")


class NestWriter(NodeWriter):
    """Writes loop nests."""

    def nest(self, nest):
        for axis in nest.axes:
            self.open_loop(axis)
        self.body(nest.body)
        self.close_loops(nest.axes)

    def product(self, step):
        """One line: sizes, whether to add to what is there, and each matrix' memory and places."""
        self.open_loop(step.axes[0])
        self.body(others_in(step))
        self.comment(step.body[-1].eqn)
        left, right, out = matrices(step)
        adds = step.body[-1].combine == "add"
        parts = [f"{self.memory(x.buffer)}, ({self.index(x.place)}, {x.strides[0]}, {x.strides[1]})"
                 for x in (out, left, right)]
        self.write(f"product({(*out.sizes, left.sizes[1])}, {adds}, {', '.join(parts)})")
        self.close_loops(step.axes[:1])

    def body(self, body):
        uses = count_uses(body)
        names = self.names_of(body)
        for node in body:
            if isinstance(node, Store):
                self.comment(node.eqn)
                self.store(node)
            elif isinstance(node, Reduce):
                self.comment(node.eqn)
                self.reduce(node, names)
            else:
                self.value(node, uses[node], names)

    def reduce(self, node, names):
        start = literal(identity(node.name, node.dtype))
        total = self.text[node] = self.namer.give(node, self.wish(node, names))
        if node.lanes == 1:
            self.write(f"{total} = {start}")
            for axis in node.axes:
                self.open_loop(axis)
            self.accumulate(node, total)
            self.close_loops(node.axes)
            return
        lanes = self.namer.unused(f"{total}_lanes")
        self.write(f"{lanes} = lanes({node.lanes}, {start})")
        *outer, inner = [a for a in node.axes if a.size != 1]
        for axis in outer:
            self.open_loop(axis)
        self.laned_loop(node, inner, lanes)
        self.close_loops(outer)
        self.write(f"{total} = fold_{node.name}({lanes})")

    def laned_loop(self, node, axis, lanes):
        """The innermost loop in pieces of as many elements as there are lanes."""
        name = self.namer.given[axis] = f"i{self.open_axes}"
        self.open_axes += 1
        self.write(f"for {name}_0 in range(0, {axis.size}, {node.lanes}):")
        self.depth += 1
        self.write(f"for lane in range(min({node.lanes}, {axis.size} - {name}_0)):")
        self.depth += 1
        self.write(f"{name} = {name}_0 + lane")
        self.accumulate(node, f"{lanes}[lane]")
        self.depth -= 2
        self.open_axes -= 1

    def accumulate(self, node, total):
        for axis in node.axes:      # axes of size 1 have no loop
            self.namer.given.setdefault(axis, "0")
        self.body(node.body)
        self.comment(node.eqn)
        value = op_text(Op(node.name, (), node.dtype), [total, self.text[node.value]])
        self.write(f"{total} = {value}")


class KernelWriter(NestWriter):
    """Writes one function that runs a list of steps without calls.

    `turns` has for each loop around the function a buffer with the number of its turn.
    """

    def function(self, name, turns=()):
        turns = dict(turns)
        for axis, buffer in turns.items():
            self.namer.given[axis] = self.namer.unused("turn")
            self.write(f"{self.axis(axis)} = {self.memory(buffer)}[0]")
        for b in self.locals:
            self.declare(self.memory(b), b)
        for step in self.steps:
            self.step(step)
        buffers = [*self.buffers, *turns.values()]
        args = [self.memory(b) for b in buffers]
        dtypes = " ".join(DTYPE_NAMES[b.dtype] for b in buffers)
        return "\n".join([f'@kernel("{dtypes}")', f"def {name}({', '.join(args)}):", *self.lines])

    def declare(self, name, buffer):
        if buffer.size:
            zero = literal(Const(0, buffer.dtype))
            self.write(f"{name} = local({buffer.size}, {zero})")

    def step(self, step):
        self.last_eqn = None
        write = {Nest: self.nest, Product: self.product, Branch: self.branch, Loop: self.loop,
                 While: self.loop}
        write[type(step)](step)

    def program(self, program):
        around, self.eqns = self.eqns, program.eqns
        for step in program.steps:
            self.step(step)
        self.eqns = around

    def loop(self, step):
        self.comment(step.eqn)
        carries = [self.begin_carry(*carry) for carry in step.carries]
        if isinstance(step, Loop):
            self.open_loop(step.axis)
        else:
            self.write("while True:")
            self.depth += 1
            self.program(step.condition)
            self.write(f"if not {self.memory(step.condition.outputs[0])}[0]:")
            self.write("    break")
        self.program(step.body)
        for next_turn, _ in carries:
            next_turn()
        if isinstance(step, Loop):
            self.close_loops([step.axis])
        else:
            self.depth -= 1
        for _, end in carries:
            end()

    def branch(self, step):
        self.comment(step.eqn)
        *others, last = enumerate(step.branches)
        for k, program in others:
            self.case(f"{'elif' if k else 'if'} {self.memory(step.index)}[0] < {k + 1}:", program)
        self.case("else:" if others else "if True:", last[1])

    def case(self, head, program):
        self.write(head)
        self.depth += 1
        self.program(program)
        if not program.steps:
            self.write("pass")
        self.depth -= 1

    # carries: each method returns what to write at the end of a turn, and after the last

    def begin_carry(self, start, now, following):
        if now.size <= MAX_LOCAL:
            return self.begin_small_carry(start, now, following)
        if now is not start:
            self.copy(self.memory(now), self.memory(start), now.size)
        if following is now:
            return nothing, nothing
        return self.begin_large_carry(now, following)

    def begin_small_carry(self, start, now, following):
        """A carry in memory of the function's own, which compilers keep in registers."""
        first, result = self.memory(start), self.memory(now)
        name = self.namer.given[now] = self.namer.unused(result)
        self.declare(name, now)
        self.copy(name, first, now.size)

        def next_turn():
            if following is not now:
                self.copy(name, self.memory(following), now.size)

        def end():
            self.namer.given[now] = result
            self.copy(result, name, now.size)
        return next_turn, end

    def begin_large_carry(self, now, following):
        """Two names that change places after each turn."""
        memory = self.memory(now), self.memory(following)
        names = [self.namer.unused(name) for name in memory]
        self.namer.given[now], self.namer.given[following] = names
        self.write(f"{', '.join(names)} = {', '.join(memory)}")

        def next_turn():
            self.write(f"{', '.join(names)} = {', '.join(reversed(names))}")

        def end():
            self.namer.given[now], self.namer.given[following] = memory
            self.copy(memory[0], names[0], now.size)
        return next_turn, end

    def copy(self, target, source, size):
        axis = Axis(size)
        if size == 1:
            self.write(f"{target}[0] = {source}[0]")
        elif size:
            self.open_loop(axis)
            self.write(f"{target}[{self.axis(axis)}] = {source}[{self.axis(axis)}]")
            self.close_loops([axis])


def nothing():
    """What a carry in place needs between turns."""


def count_uses(body):
    uses = dict.fromkeys(body, 0)
    for node in body:
        for read in nodes_read(node):
            uses[read] = uses.get(read, 0) + 1
    return uses


def comment_text(eqn, names):
    text = layout(Group(names.equation(eqn)), width=sys.maxsize)
    return text if len(text) <= 96 else text[:93] + "…"


# --- Loops and branches ---------------------------------------------------------------------------

# Memory that only the inside of a step uses is the function's own, up to this number of elements.
MAX_LOCAL = 64


def memory_of(step):
    """The buffers that a step uses, also those that only its inside knows."""
    yield from [*buffers_read(step), *buffers_written(step)]
    for program in programs_in(step):
        for inner in program.steps:
            yield from memory_of(inner)
        yield from program.outputs


def local_buffers(steps):
    """The small buffers that only the inside of steps uses."""
    outside = {b for s in steps for b in [*buffers_read(s), *buffers_written(s)]}
    return {b: None for s in steps for b in memory_of(s)
            if b not in outside and b.size <= MAX_LOCAL}


def free_axes(steps):
    """The loop variables that steps use and whose loops are not among them."""
    bound, used = set(), {}
    for step in steps:
        inner = free_axes([s for p in programs_in(step) for s in p.steps])
        if isinstance(step, Nest):
            nodes = list(all_nodes(step.body))
            bound.update(step.axes, *(n.axes for n in nodes if isinstance(n, Reduce)))
            inner = {a: None for n in nodes for i in index_maps_of(n) for a in axes_in(i)}
        elif isinstance(step, Loop):
            bound.add(step.axis)
        used.update(inner)
    return {axis: None for axis in used if axis not in bound}


# --- Programs -------------------------------------------------------------------------------------

# Numba's time grows faster than a function's length, so long programs become several functions.
MAX_KERNEL_NODES = 400


class Rendered:
    """Python source, and by name its kernels' structural texts and call steps' functions."""

    def __init__(self, source, keys, functions):
        self.source, self.keys, self.functions = source, keys, functions


def render(program, jaxpr):
    """The source of a module with one function a group of nests and an entry `main`."""
    return ModuleWriter(program, names_in(jaxpr)).module()


def names_in(jaxpr):
    """A printer that knows the names of a program's variables, `_` of those that nobody reads."""
    printer = Printer()
    for inner in all_programs(jaxpr):
        printer.drop(results_not_read(inner))
    printer.program(jaxpr)
    return printer


def all_programs(jaxpr):
    """A jaxpr and those inside its equations."""
    yield jaxpr
    for eqn in jaxpr.eqns:
        for _, inner in jaxprs_in_params(eqn.params) if eqn.primitive.higher_order else ():
            yield from all_programs(open_jaxpr(inner))


class MainWriter:
    """Writes the lines of `main`. A subclass says how steps without calls become functions."""

    def __init__(self, program):
        self.program, self.lines, self.depth = program, [], 1
        self.functions = {}       # library functions, by their names in main
        self.turns = {}           # axis of a loop in main -> buffer with the number of the turn
        self.allocated = set(program.inputs)

    def main(self):
        args = ", ".join(map(self.name, self.program.inputs))
        self.steps(self.program)
        self.allocate(self.program.outputs)
        outs = ", ".join(map(self.name, self.program.outputs))
        return "\n".join([f"def main({args}):", *self.lines, f"    return [{outs}]"])

    def write(self, line):
        self.lines.append("    " * self.depth + line)

    def comment(self, eqn):
        """Say which equation the next lines come from."""

    def step(self, step):
        write = {Call: self.call, Branch: self.branch, Loop: self.loop, While: self.loop}
        write[type(step)](step)

    def allocate(self, buffers):
        for b in buffers:
            if b not in self.allocated:
                self.allocated.add(b)
                self.write(f"{self.name(b)} = empty({b.shape}, {DTYPE_NAMES[b.dtype]})")

    def call(self, step):
        self.allocate(map(buffer_of, step.inputs))
        name = "".join(c if c.isalnum() else "_" for c in step.name)
        function = f"{name}_{len(self.functions)}"
        self.functions[function] = step.function
        self.comment(step.eqn)
        outs = ", ".join(map(self.name, step.outputs))
        ins = ", ".join(map(self.input, step.inputs))
        target, wrap = (f"[{outs}]", "as_buffers") if step.many else (outs, "as_buffer")
        self.write(f"{target} = {wrap}({function}({ins}))")
        self.allocated.update(step.outputs)

    def input(self, given):
        if isinstance(given, tuple):
            return f"{self.name(given[0])}.transpose{given[1]}"
        return self.name(given)

    # loops around calls: each turn makes new arrays, since a call may return what it was given

    def loop(self, step):
        following = {f for _, _, f in step.carries}
        self.allocate([*(start for start, _, _ in step.carries),
                       *(b for b in step.body.outputs if b not in following)])
        self.comment(step.eqn)
        for start, now, _ in step.carries:
            self.write(f"{self.name(now)} = {self.name(start)}")
            self.allocated.add(now)
        if isinstance(step, Loop):
            turn = self.turns.setdefault(step.axis, Buffer((), np.dtype(np.int64)))
            self.write(f"for {self.name(turn)} in turns({step.axis.size}):")
            self.allocated.add(turn)
            self.inside(step.body, step.carries)
        else:
            flag = step.condition.outputs[0]
            self.write("while True:")
            self.inside(step.condition, last=[f"if not {self.name(flag)}:", "    break"])
            self.inside(step.body, step.carries)

    def inside(self, program, carries=(), last=()):
        """The indented lines of a program inside a step."""
        around, self.allocated, self.depth = self.allocated, set(self.allocated), self.depth + 1
        self.steps(program)
        self.allocate(program.outputs)
        for _, now, following in carries:
            self.write(f"{self.name(now)} = {self.name(following)}")
        for line in last if program.steps or last else ["pass"]:
            self.write(line)
        self.allocated, self.depth = around, self.depth - 1

    def branch(self, step):
        self.allocate([step.index, *step.outputs])
        self.comment(step.eqn)
        *others, last = enumerate(step.branches)
        for k, program in others:
            self.write(f"{'elif' if k else 'if'} {self.name(step.index)} < {k + 1}:")
            self.inside(program)
        self.write("else:" if others else "if True:")
        self.inside(last[1])


class ModuleWriter(MainWriter):
    """Writes a module: kernels with the loops of steps, and `main`."""

    def __init__(self, program, names):
        super().__init__(program)
        self.names = names
        self.namer = Namer(names)
        self.texts, self.keys = [], {}
        self.eqns = program.eqns

    def module(self):
        texts = [self.main()]
        texts = [*self.texts, *texts]
        source = "\n\n\n".join([self.imports(texts), *texts]) + "\n"
        return Rendered(source, self.keys, self.functions)

    def comment(self, eqn):
        if eqn is not None:
            self.write("# " + comment_text(self.eqns[eqn], self.names))

    def name(self, buffer):
        return self.namer.give(buffer, self.namer.of_var(buffer.var, "t"))

    def imports(self, texts):
        words = set("".join(c if c.isalnum() or c == "_" else " " for t in texts for c in t
                            ).split())
        used = sorted(n for n in words & set(vars(runtime)) if n in RESERVED)
        return ("from minijax.compiler.runtime import " + ", ".join(used)) if used else ""

    def steps(self, program):
        around, self.eqns = self.eqns, program.eqns
        for group in groups(program.steps):
            self.kernel(group) if isinstance(group, list) else self.step(group)
        self.eqns = around

    def kernel(self, steps):
        name = f"kernel_{len(self.texts)}"
        writer = KernelWriter(steps, self.eqns, self.names)
        turns = {axis: self.turns[axis] for axis in free_axes(steps)}
        self.texts.append(writer.function(name, turns))
        self.keys[name] = KernelWriter(steps, self.eqns).function("kernel", turns)
        self.allocate(writer.buffers)
        buffers = [*writer.buffers, *turns.values()]
        self.write(f"{name}({', '.join(map(self.name, buffers))})")


def groups(steps):
    """Steps with calls, and lists of others that follow one another and fit into one function."""
    group, nodes = [], 0
    for step in steps:
        size = count_nodes(step)
        if group and (has_calls(step) or nodes + size > MAX_KERNEL_NODES):
            yield group
            group, nodes = [], 0
        if has_calls(step):
            yield step
        else:
            group.append(step)
            nodes += size
    if group:
        yield group


def count_nodes(step):
    if isinstance(step, Nest):
        return sum(1 for _ in all_nodes(step.body))
    return sum(count_nodes(s) for p in programs_in(step) for s in p.steps)
