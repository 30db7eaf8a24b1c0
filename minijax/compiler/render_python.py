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

from minijax.compiler import runtime
from minijax.compiler.runtime import DTYPE_NAMES
from minijax.jaxpr import Names, Var, eqn_lines
from minijax.loop_ir import (
    Axis, AxisValue, Call, Const, Dynamic, InBounds, Load, Op, Reduce, Remainder, Store, all_nodes,
    buffer_of, buffers_read, buffers_written, identity, nodes_read,
)

__all__ = [
    "index_text", "term_text", "INFIX", "COMPARISONS", "FUNCTION_NAMES", "op_text", "wrapped",
    "convert_text", "literal", "RESERVED", "Namer", "KernelLines", "NodeWriter", "KernelWriter",
    "count_uses", "comment_text", "MAX_KERNEL_NODES", "Rendered", "render", "names_in",
    "ModuleWriter", "groups",
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
                  "rem": "remainder"}


def op_text(node, args):
    """The Python expression of an operation on operands given as text."""
    name, dtype = node.name, node.dtype
    is_float = dtype.kind == "f"
    if name == "convert":
        return convert_text(args[0], dtype)
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


def wrapped(text, dtype):
    # Numba computes with at least 64 bits of integers, so narrower results are cut back.
    if dtype.kind in "iu" and dtype.itemsize < 8:
        return f"{DTYPE_NAMES[dtype]}({text})"
    return text


def convert_text(text, dtype):
    if dtype.kind == "f":
        return f"{DTYPE_NAMES[dtype]}({text})"
    return f"to_{DTYPE_NAMES[dtype].rstrip('_')}({text})"


def literal(const):
    """A typed constant: `f32(0.5)`, `i32(3)`, `True`."""
    value, dtype = const.value, const.dtype
    if dtype == bool:
        return str(bool(value))
    if dtype.kind != "f":
        return f"{DTYPE_NAMES[dtype]}({int(value)})"
    short = str(value)
    text = short if dtype.type(float(short)).tobytes() == value.tobytes() else repr(float(value))
    return f"{DTYPE_NAMES[dtype]}({text})"


# --- Names ----------------------------------------------------------------------------------------

RESERVED = frozenset([*keyword.kwlist, *(n for n in vars(runtime) if n.islower()), "main", "range"])


class Namer:
    """Names of one function. `readable` ones come from the jaxpr; others depend on structure only,

    so that two functions that do the same have the same text.
    """

    def __init__(self, jaxpr_names=None):
        self.jaxpr_names = jaxpr_names
        self.given, self.taken, self.counts = {}, set(RESERVED), {}

    def of_var(self, var, fallback):
        if self.jaxpr_names is None or var is None:
            return fallback
        return self.jaxpr_names(var)

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

    def __init__(self, nests, eqns, jaxpr_names=None, read=frozenset()):
        self.nests, self.eqns = nests, eqns
        self.namer = Namer(jaxpr_names)
        self.jaxpr_names, self.read = jaxpr_names, read
        self.lines, self.depth = [], 1
        self.buffers = list(dict.fromkeys(
            b for nest in nests for b in [*buffers_read(nest), *buffers_written(nest)]))
        self.text = {}            # node -> expression or name
        self.last_eqn = None

    def write(self, line):
        self.lines.append("    " * self.depth + line)

    def comment(self, eqn):
        if self.jaxpr_names is None or eqn is None or eqn == self.last_eqn:
            return
        self.last_eqn = eqn
        self.write("# " + comment_text(self.eqns[eqn], self.jaxpr_names, self.read))

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
            value = op_text(Op(node.combine, (), node.value.dtype), [place, value])
        self.write(f"{place} = {value}")


class KernelWriter(NodeWriter):
    """Writes one function that runs a list of nests."""

    def function(self, name):
        for nest in self.nests:
            self.last_eqn, self.open_axes = None, 0
            for axis in nest.axes:
                self.open_loop(axis)
            self.body(nest.body)
            self.close_loops(nest.axes)
        args = [self.memory(b) for b in self.buffers]
        dtypes = " ".join(DTYPE_NAMES[b.dtype] for b in self.buffers)
        return "\n".join([f'@kernel("{dtypes}")', f"def {name}({', '.join(args)}):", *self.lines])

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


def count_uses(body):
    uses = dict.fromkeys(body, 0)
    for node in body:
        for read in nodes_read(node):
            uses[read] = uses.get(read, 0) + 1
    return uses


def comment_text(eqn, names, read):
    text = " ".join(line.strip() for line in eqn_lines(eqn, names, read))
    return text if len(text) <= 96 else text[:93] + "…"


# --- Programs -------------------------------------------------------------------------------------

# Numba's time grows faster than a function's length, so long programs become several functions.
MAX_KERNEL_NODES = 400


class Rendered:
    """Python source, and by name its kernels' structural texts and nests, and call steps' functions."""

    def __init__(self, source, keys, nests, functions):
        self.source, self.keys, self.nests, self.functions = source, keys, nests, functions


def render(program, jaxpr):
    """The source of a module with one function a group of nests and an entry `main`."""
    return ModuleWriter(program, *names_in(jaxpr)).module()


def names_in(jaxpr):
    """The names that a printed jaxpr gives its variables, and the set of those that are read."""
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, Var)}
    read.update(v for v in jaxpr.outvars if isinstance(v, Var))
    names, arguments = Names(), {*jaxpr.constvars, *jaxpr.invars}
    for v in [*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)]:
        if v in read or v in arguments:
            names(v)
    return names, read


class ModuleWriter:
    def __init__(self, program, names, read):
        self.program, self.names, self.read = program, names, read
        self.namer = Namer(names)
        self.kernels, self.keys, self.nests, self.functions, self.main = [], {}, {}, {}, []
        self.allocated = set(program.inputs)

    def module(self):
        args = [self.name(b) for b in self.program.inputs]
        for group in groups(self.program.steps):
            if isinstance(group, Call):
                self.call(group)
            else:
                self.kernel(group)
        self.allocate(self.program.outputs)
        outs = ", ".join(self.name(b) for b in self.program.outputs)
        main = [f"def main({', '.join(args)}):", *self.main, f"    return [{outs}]"]
        texts = [*self.kernels, "\n".join(main)]
        source = "\n\n\n".join([self.imports(texts), *texts]) + "\n"
        return Rendered(source, self.keys, self.nests, self.functions)

    def name(self, buffer):
        return self.namer.give(buffer, self.namer.of_var(buffer.var, "t"))

    def imports(self, texts):
        words = set("".join(c if c.isalnum() or c == "_" else " " for t in texts for c in t
                            ).split())
        used = sorted(n for n in words & set(vars(runtime)) if n in RESERVED)
        return ("from minijax.compiler.runtime import " + ", ".join(used)) if used else ""

    def kernel(self, nests):
        name = f"kernel_{len(self.kernels)}"
        writer = KernelWriter(nests, self.program.eqns, self.names, self.read)
        self.kernels.append(writer.function(name))
        self.keys[name] = KernelWriter(nests, self.program.eqns).function("kernel")
        self.nests[name] = nests, writer.buffers
        self.allocate(writer.buffers)
        self.main.append(f"    {name}({', '.join(map(self.name, writer.buffers))})")

    def allocate(self, buffers):
        for b in buffers:
            if b not in self.allocated:
                self.allocated.add(b)
                self.main.append(f"    {self.name(b)} = empty({b.shape}, {DTYPE_NAMES[b.dtype]})")

    def call(self, step):
        self.allocate(map(buffer_of, step.inputs))
        name = "".join(c if c.isalnum() else "_" for c in step.name)
        function = self.namer.unused(f"{name}_{len(self.functions)}")
        self.functions[function] = step.function
        if step.eqn is not None:
            comment = comment_text(self.program.eqns[step.eqn], self.names, self.read)
            self.main.append(f"    # {comment}")
        outs = ", ".join(map(self.name, step.outputs))
        ins = ", ".join(map(self.input, step.inputs))
        target, wrap = (f"[{outs}]", "as_buffers") if step.many else (outs, "as_buffer")
        self.main.append(f"    {target} = {wrap}({function}({ins}))")
        self.allocated.update(step.outputs)

    def input(self, given):
        if isinstance(given, tuple):
            return f"{self.name(given[0])}.transpose{given[1]}"
        return self.name(given)


def groups(steps):
    """Calls, and lists of nests that follow one another and fit into one function."""
    nests, nodes = [], 0
    for step in steps:
        size = 0 if isinstance(step, Call) else sum(1 for _ in all_nodes(step.body))
        if nests and (isinstance(step, Call) or nodes + size > MAX_KERNEL_NODES):
            yield nests
            nests, nodes = [], 0
        if isinstance(step, Call):
            yield step
        else:
            nests.append(step)
            nodes += size
    if nests:
        yield nests
