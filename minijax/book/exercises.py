"""Exercises: a stub that says "not yet", a check that judges the answer, and a rule on trial.

An exercise stands in a chapter as three cells: its statement, its stub and its check. The check
prints "not yet" as long as the stub is there, so that the unsolved chapter runs from top to bottom.
"""

from contextlib import contextmanager

from minijax.checkers import check_rule
from minijax.core import bump_rules_epoch

__all__ = ["NotYet", "not_yet", "check", "rule_on_trial", "judge_rule"]


# --- Not yet --------------------------------------------------------------------------------------

class NotYet(Exception):
    """What the stub of an exercise raises; its message is the first hint."""


class _NotYetValue:
    """Stands for an answer that is not there: whoever uses it gets NotYet."""

    def __init__(self, hint=""):
        self.hint = hint

    def _ask(self, *args, **kwargs):
        raise NotYet(self.hint)

    def __call__(self, *args, **kwargs):
        """The same with a hint: `answer = not_yet("count the multiplications")`."""
        if self is not_yet and len(args) == 1 and isinstance(args[0], str):
            return _NotYetValue(args[0])
        self._ask()

    def __getattr__(self, name):
        # Python and IPython look for special methods to print or copy a value; those may be absent.
        if name.startswith("_") and name != "__array__":
            raise AttributeError(name)
        self._ask()

    def __repr__(self):
        return "not yet"


for _name in """__bool__ __int__ __float__ __complex__ __index__ __len__ __iter__ __getitem__
        __array__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __neg__ __abs__ __contains__
        __enter__ __exit__
        __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __pow__ __rpow__
        __matmul__ __rmatmul__""".split():
    setattr(_NotYetValue, _name, _NotYetValue._ask)
_NotYetValue.__hash__ = object.__hash__

not_yet = _NotYetValue()


# --- Checking an answer ---------------------------------------------------------------------------

@contextmanager
def check(name, praise=""):
    """`with check("name"):` judges an answer by the assertions of its block.

    Prints "not yet: name" if the block meets a stub, "✓ name" if it passes. A wrong answer is an
    AssertionError that names the exercise; any other error goes through, with a note that does.
    """
    try:
        yield
    except NotYet as stub:
        print(joined(f"not yet: {name}", str(stub)))
    except AssertionError as wrong:
        raise AssertionError(joined(name, str(wrong) or "this is not right yet")) from None
    except Exception as error:
        error.add_note(f"(raised while checking the exercise {name!r})")
        raise
    else:
        print(joined(f"✓ {name}", praise))


def joined(head, tail):
    return f"{head}: {tail}" if tail else head


# --- Rules on trial -------------------------------------------------------------------------------

@contextmanager
def rule_on_trial(primitive, kind, rule):
    """Inside, `rule` is the primitive's only rule of that kind; afterwards all is as it was."""
    before = primitive.rules.get(kind)
    primitive.def_rule(kind, rule)
    try:
        yield
    finally:
        if before is None:
            primitive.rules.pop(kind, None)
            bump_rules_epoch()
        else:
            primitive.def_rule(kind, before)


def judge_rule(primitive, kind, rule, *samples, **options):
    """Let the rule checker judge a reader's rule; each sample is (args, params), or just args.

    Options are the checker's, such as `symbolic_zeros=False` for a jvp rule written longhand.
    Raises NotYet for a stub and AssertionError, saying what is off, for a wrong rule.
    """
    with rule_on_trial(primitive, kind, rule):
        for sample in samples:
            args, params = sample if is_pair(sample) else (sample, {})
            check_rule(primitive, kind, args, params, **options)


def is_pair(sample):
    return len(sample) == 2 and isinstance(sample[0], (tuple, list)) and isinstance(sample[1], dict)
