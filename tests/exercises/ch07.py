"""Wrong answers to chapter 7's exercises: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "div_backwards": [
        ("div(u, y)", "div(y, u)", "should equal"),
        ("div(u, y)", "u", "should equal"),
        ("[div(u, y), None]", "[div(u, y)]", "cotangents"),
        ("[div(u, y), None]", "[None, div(u, y)]", "returns no cotangent|not linear"),
    ],
    "axes_backwards": [
        ("tuple(np.argsort(permutation))", "permutation", "cotangent of the operand"),
        ("transpose(u, tuple(np.argsort(permutation)))", "u", "cotangent of the operand"),
    ],
    "matmul_cotangents": [
        ("U @ Y.T, X.T @ U", "U @ Y, X.T @ U", "cotangent of X should be"),
        ("U @ Y.T, X.T @ U", "U @ Y.T, U @ X.T", "cotangent of Y should be"),
        ("U @ Y.T, X.T @ U", "X.T @ U, U @ Y.T", "cotangent of X should be"),
    ],
    "hvp": [
        ("(v,))[1]", "(v,))[0]", "H v should be"),
        ("jax.jvp(jax.grad(f), (x,), (v,))[1]", "jax.jvp(f, (x,), (v,))[1]", "vector of 3 numbers"),
        ("jax.jvp(jax.grad(f), (x,), (v,))[1]", "jax.hessian(f)(x) @ v", "should cost a few"),
    ],
    "Node": [
        ("[(self, other.value), (other, self.value)]", "[(self, self.value), (other, other.value)]",
         "slope of a b by a"),
        ("slopes.get(parent, 0.0) + slopes[n] * local", "slopes[n] * local",
         "two readers should add"),
        ('''
class Node:
    def __init__(self, value, parents=()):
        self.value, self.parents = value, list(parents)

    def __add__(self, other):
        return Node(self.value + other.value, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other):
        return Node(self.value * other.value, [(self, other.value), (other, self.value)])


def slopes_of(node):
    slopes, waiting = {node: 1.0}, [node]
    seen = {node}
    while waiting:
        n = waiting.pop()
        for parent, local in n.parents:
            slopes[parent] = slopes.get(parent, 0.0) + slopes[n] * local
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return slopes
''', "is the order right"),
    ],
}
