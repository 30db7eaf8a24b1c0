"""Wrong answers to the exercises of chapter 19: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "logarithm": [
        ("known / k) / u[0]", "known) / u[0]", "1/3|that series again"),
        ("/ u[0])", "* 1.0)", "that series again"),
        ("u[k] - known", "u[k] + known", r"log\(1 \+ t\)"),
    ],
    "solve_ode": [
        ("/ (k + 1)", "/ k", "1/k!"),
        ("/ (k + 1)", "", "1/k!"),
        ("range(1, n)", "range(n)", "y_0 … y_4"),
        (", factorial_scaled=False", "", "1/k!|tan"),
    ],
    "mixed": [
        (") / 4", ") / 2", "is 4ab"),
        ("second(u - v)", "second(v - v)", "is 4ab"),
    ],
}
