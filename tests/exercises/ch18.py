"""Wrong answers to the exercises of chapter 18: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "order_of_error": [
        ("order_of_error = 1000", "order_of_error = 1", "the largest error is"),
        ("order_of_error = 1000", "order_of_error = 10", "a thousand times smaller"),
    ],
    "my_exp2": [
        ("m.const(math.log(2))", "m.const(1.0)", "within 2 ulp"),
        ("exp_tail(m, r, r)", "r", "within 2 ulp"),
        ("* power_of_two(m, n)", "* np.exp2(k)", "should write instructions|exp2|ufunc"),
    ],
    "newton_step": [
        ("y * (1.5 - 0.5 * x * y * y)", "y * (1.5 + 0.5 * x * y * y)", "a step should leave"),
        ("y * (1.5 - 0.5 * x * y * y)", "y - (1 / y ** 2 - x)", "a step should leave"),
    ],
}
