"""Wrong answers to the exercises of chapter 11: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "temporaries": [
        ("[(2, 0), (2, 1)]", "[(3, 0), (2, 1)]", r"cos\(x\) \* 2 \+ 1: NumPy should make 2"),
        ("[(2, 0), (2, 1)]", "[(2, 0), (2, 0)]", "compiled, there should be 1"),
        ("[(2, 0), (2, 1)]", "[(2, 0), (2, 2)]", "compiled, there should be 1"),
    ],
    "square_lowering": [
        ('Op("mul", (load, load)', 'Op("add", (load, load)', "result 0|result, compiled"),
        ("axis = Axis(out.size)", "axis = Axis(out.shape[-1] if out.shape else 1)", "elements were written|compiled"),
    ],
    "rev_lowering": [
        ("axis_index(axis) * -1 + (n - 1)", "axis_index(axis)", "compiled"),
        ("axis_index(axis) * -1 + (n - 1)", "axis_index(axis) * -1 + n", "compiled|outside"),
        ("if k in dimensions else axis_index(axis)", "if True else axis_index(axis)", "compiled"),
    ],
    "drop_ones": [
        ("for one, other in (invars, invars[::-1])", "for other, one in (invars,)",
         "only sin and the product by 2"),
        ("one.val == 1 and", "", "only sin and the product by 2|values"),
        ("outvars = [current(atom) for atom in closed.jaxpr.outvars]", "outvars = closed.jaxpr.outvars",
         "results should be replaced"),
    ],
    "one_loop": [
        ("elif isinstance(node, Load) and node.buffer in stored:", "elif False:", "written before a read"),
        ("for b in program.outputs]", "for b in stored]", "should pass through memory"),
        ("[Nest([axis], body + stores)]", "program.steps", "should be one nest"),
    ],
}
