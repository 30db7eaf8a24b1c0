"""Wrong answers to the exercises of chapter 13: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "steps_left": [
        ("steps_left = 1", "steps_left = 2", "computed where it is read"),
        ("steps_left = 1", "steps_left = 3", "at another index"),
    ],
    "moved": [
        ("moved_by_rows = 2", "moved_by_rows = 4", "comes in once"),
        ("moved_before = 4", "moved_before = 3", "the quotient reads x and writes"),
        ("moved_before = 4", "moved_before = 6", "the mean reads x"),
    ],
    "drop_copies": [
        (" and step.body[1].buffer not in program.outputs", "", "result should stay|before a read|LoopIRError"),
        ("read.index == store.index == nest.order() and ", "", "a transpose is no copy"),
        ("original.get(buffer, buffer)", "buffer", "before a read|LoopIRError"),
        ("                continue\n", "", "only the sine should be left"),
    ],
}
