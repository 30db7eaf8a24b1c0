"""Wrong answers to the exercises of chapter 13: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "steps_left": [
        ("steps_left = 1", "steps_left = 2", "computed where it is read"),
        ("steps_left = 1", "steps_left = 3", "at another index"),
    ],
}
