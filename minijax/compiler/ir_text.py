# Exported from notebooks/11_jit.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 11_jit. In JAX: lowered.as_text() (StableHLO).

The text of a loop IR, for reading.
"""

from minijax.avals import short_dtype_name
from minijax.compiler.render_python import index_text, names_in
from minijax.loop_ir import (
    AxisValue, Branch, Call, Const, InBounds, Loop, Nest, OPS, OTHER, Op, Product, Reduce, Store,
    While,
)

__all__ = ["program_text"]


# --- Programs as text -----------------------------------------------------------------------------

def program_text(program, jaxpr):
    """All steps, one node a line; buffers have the names of the jaxpr's variables."""
    return "\n".join(_Writer(program, jaxpr).lines())


class _Writer:
    def __init__(self, program, jaxpr):
        self.program, self.names = program, names_in(jaxpr)
        self.buffers, self.axes, self.nodes = {}, {}, {}

    def lines(self):
        yield f"inputs {' '.join(map(self.typed, self.program.inputs))}"
        yield from self.steps(self.program.steps)
        yield f"results {' '.join(map(self.buffer, self.program.outputs))}"

    def buffer(self, b):
        if b not in self.buffers:
            name = self.names(b.var) if b.var else "_"
            self.buffers[b] = f"t{len(self.buffers)}" if name == "_" else name
        return self.buffers[b]

    def typed(self, b):
        shape = ",".join(map(str, b.shape))
        return f"{self.buffer(b)}:{short_dtype_name(b.dtype)}[{shape}]"

    def steps(self, steps):
        for step in steps:
            write = {Nest: self.nest, Product: self.nest, Call: self.call, Loop: self.loop,
                     While: self.loop, Branch: self.branch}[type(step)]
            yield from write(step)

    def loop(self, step):
        """`following` is what a turn makes of a carry; in place it has the carry's own name."""
        if isinstance(step, Loop):
            self.axes[step.axis] = f"i{len(self.axes)}"
            yield f"loop {self.axes[step.axis]}<{step.axis.size}:"
        else:
            yield "loop while it holds:"
        for start, now, following in step.carries:
            yield (f"    carry {self.typed(now)} from {self.buffer(start)}, "
                   f"then {self.buffer(following)}")
        if isinstance(step, While):
            yield f"    condition {self.buffer(step.condition.outputs[0])}:"
            yield from self.inside(step.condition, "        ")
        yield from self.inside(step.body, "    ")
        if isinstance(step, Loop):
            del self.axes[step.axis]

    def branch(self, step):
        yield f"branch on {self.buffer(step.index)} to {' '.join(map(self.typed, step.outputs))}:"
        for k, program in enumerate(step.branches):
            yield f"    case {k}:"
            yield from self.inside(program, "        ")

    def inside(self, program, indent):
        return (indent + line for line in self.steps(program.steps))

    def call(self, step):
        inputs = [f"{self.buffer(i[0])}.transpose{i[1]}" if isinstance(i, tuple) else self.buffer(i)
                  for i in step.inputs]
        yield f"call {' '.join(map(self.typed, step.outputs))} = {step.name}({', '.join(inputs)})"

    def nest(self, nest):
        self.nodes, around = {}, dict(self.axes)
        kind = "product" if isinstance(nest, Product) else "nest"
        yield f"{kind} {self.loops(nest.axes)}:"
        yield from self.body(nest.body, "    ")
        self.axes = around

    def loops(self, axes):
        for axis in axes:
            self.axes[axis] = f"i{len(self.axes)}"
        return ", ".join(f"{self.axes[a]}<{a.size}" for a in axes) or "once"

    def body(self, body, indent):
        for node in body:
            self.nodes[node] = f"%{len(self.nodes)}"
            if isinstance(node, Reduce):
                loops = self.loops(node.axes)
                lanes = f" in {node.lanes} lanes" if node.lanes > 1 else ""
                yield f"{indent}{self.nodes[node]} = reduce {node.name} over {loops}{lanes}:"
                yield from self.body(node.body, indent + "    ")
            elif isinstance(node, Store):
                combine = f" {node.combine}=" if node.combine else " ="
                place = f"{self.buffer(node.buffer)}[{self.index(node.index)}]"
                yield f"{indent}{place}{combine} {self.nodes[node.value]}"
            else:
                yield f"{indent}{self.nodes[node]} = {self.value(node)}"

    def value(self, node):
        if isinstance(node, Op):
            dtype = f":{short_dtype_name(node.dtype)}" if OPS[node.name][1] is OTHER else ""
            return " ".join([node.name + dtype, *(self.nodes[a] for a in node.args)])
        if isinstance(node, Const):
            return f"{node.value}:{short_dtype_name(node.dtype)}"
        if isinstance(node, AxisValue):
            return f"index:{short_dtype_name(node.dtype)} {self.index(node.index)}"
        if isinstance(node, InBounds):
            return f"within {self.guard(node.guard)}"
        guard = f" if {self.guard(node.guard)}" if node.guard else ""
        return f"{self.buffer(node.buffer)}[{self.index(node.index)}]{guard}"

    def guard(self, guard):
        return " and ".join(f"0 <= {self.index(i)} < {n}" for i, n in guard)

    def index(self, index):
        return index_text(index, self.axes.get, lambda node: self.nodes[node])
