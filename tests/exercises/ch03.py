"""Wrong answers to the exercises of chapter 3: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "tanh_rule": [
        ("add(x_dot, neg(mul(x_dot, mul(y, y))))", "add(x_dot, mul(x_dot, mul(y, y)))", "tangent"),
        ("mul(x_dot, mul(y, y))", "mul(x_dot, y)", "tangent"),
        ("return y, ", "return x, ", "tanh"),
    ],
    "div_shares": [
        ("div(t, y)", "div(t, x)", "share of x should be"),
        ("div(t, y)", "div(1.0, y)", "share of x should be"),
        ("neg(mul(t, div(x, mul(y, y))))", "mul(t, div(x, mul(y, y)))", "share of y should be"),
        ("div(x, mul(y, y))", "div(x, y)", "share of y should be"),
    ],
    "taylor": [
        ("f(x) / factorial", "f(x)", "divide by n!"),
        ("range(n + 1)", "range(n)", "5 coefficients"),
    ],
    "Dual": [
        ("self.velocity * other.value + self.value * other.velocity",
         "self.velocity * other.velocity", "velocity should be"),
        ("__radd__, __rmul__ = __add__, __mul__", "", "unsupported operand|on the left"),
        ("np.cos(x.value) * x.velocity", "np.cos(x.value)", "three times"),
    ],
}
