"""A drawing of what the compiler's passes did: which equation went into which loop."""

from minijax.book.svg import Drawing, PALETTE, path, rect, text, text_width
from minijax.compiler.render_python import comment_text, names_in
from minijax.loop_ir import Call, Loop, Nest, Product, all_nodes, programs_in

__all__ = ["draw_fusion", "equations_of", "step_name"]

ROW, TOP, GAP = 22, 30, 120


def draw_fusion(executable, title=""):
    """Equations on the left, the steps of the fused program on the right, a line for each part.

    An equation without a line left no code behind: it became arithmetic on indices.
    """
    program, names = executable.program, names_in(executable.optimised.jaxpr)
    labels = [shortened(comment_text(eqn, names)) for eqn in program.eqns]
    steps = [(step_name(s), equations_of(s)) for s in program.steps]
    left = max([text_width(label) for label in labels], default=0) + 12
    right = left + GAP
    parts = [text(4, 16, title, 13, 0.9, "start")] if title else []
    rows = max(len(labels), 1.5 * len(steps))
    for number, (name, numbers) in enumerate(steps):
        parts += draw_step(number, name, numbers, (number + 0.5) * rows / len(steps), left, right)
    parts += [text(left - 6, TOP + ROW * k + 4, label, 12, 0.9, "end")
              for k, label in enumerate(labels)]
    width = right + max(text_width(name) for name, _ in steps) + 24
    return Drawing(parts, width, TOP + ROW * rows, describe(labels, steps, title))


def draw_step(number, name, equations, row, left, right):
    """A box for a step, and a curve from each of its equations."""
    colour, y = PALETTE[number % len(PALETTE)], TOP + ROW * (row - 0.5)
    curves = [path(f"M {left} {TOP + ROW * k} C {left + GAP / 2} {TOP + ROW * k}, "
                   f"{right - GAP / 2} {y}, {right} {y}",
                   f'fill="none" stroke="{colour}" stroke-width="2" stroke-opacity=".7"')
              for k in sorted(equations)]
    width = text_width(name) + 16
    return [*curves, rect(right, y - 13, width, 26, colour),
            text(right + 8, y + 4, name, 12, 1, "start")]


def equations_of(step):
    """The numbers of the equations that a step carries out."""
    if isinstance(step, Nest):
        return {n.eqn for n in all_nodes(step.body)} - {None}
    inside = set().union(*(equations_of(s) for p in programs_in(step) for s in p.steps))
    return inside | ({step.eqn} - {None})


def step_name(step):
    """What kind of step it is, and how many turns its loops make."""
    if isinstance(step, Product):
        return f"product {' × '.join(str(a.size) for a in step.axes if a.size != 1)}"
    if isinstance(step, Nest):
        return f"loop {' × '.join(str(a.size) for a in step.axes) or 'once'}"
    if isinstance(step, Call):
        return f"call {step.name}"
    if isinstance(step, Loop):
        return f"{step.axis.size} rows, {len(step.body.steps)} loops each"
    return type(step).__name__.lower()


def shortened(label, longest=52):
    return label if len(label) <= longest else label[:longest - 1] + "…"


def describe(labels, steps, title):
    told = "; ".join(f"{name}: {counted(len(numbers), 'equation')}" for name, numbers in steps)
    return (f"{title or 'Fusion'}: {counted(len(labels), 'equation')} in "
            f"{counted(len(steps), 'step')}. {told}.")


def counted(n, noun):
    return f"{n} {noun}{'' if n == 1 else 's'}"
