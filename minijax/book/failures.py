"""Show a failure in a notebook: the error's type and message, without a traceback."""

import re
import textwrap
from contextlib import contextmanager

__all__ = ["fails"]


@contextmanager
def fails(error, match=None):
    """`with fails(TypeError, "dtype"):` runs a block that must raise, and prints what it raised.

    Raises AssertionError if the block raises nothing or if the regular expression `match` is not
    found in the message. An error of another type goes through as it is.
    """
    try:
        yield
    except error as raised:
        if match is not None and not re.search(match, str(raised)):
            raise AssertionError(f"the message should match {match!r}, but is: {raised}") from None
        print(describe_error(raised))
    else:
        raise AssertionError(f"this should raise {error_name(error)}, but raised nothing")


def error_name(error):
    return " or ".join(e.__name__ for e in (error if isinstance(error, tuple) else (error,)))


def describe_error(raised, width=88):
    """`Type: message` in lines of at most `width` columns, without places on this machine."""
    text = hide_places(f"{type(raised).__name__}: {raised}")
    return "\n".join(piece for line in text.splitlines()
                     for piece in textwrap.wrap(line, width, subsequent_indent="  ",
                                                replace_whitespace=False) or [""])


_CELL = re.compile(r"(/[^/\s:'\"]+)*/ipykernel_\d+/\d+\.py")
_FOLDERS = re.compile(r"(?<![\w.])(/[^/\s:'\"]+)+/(?=[\w-]+\.py\b)")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


def hide_places(text):
    """Names of folders and addresses differ from run to run: leave them out of stored outputs."""
    return _ADDRESS.sub("0x…", _FOLDERS.sub("", _CELL.sub("<cell>", text)))
