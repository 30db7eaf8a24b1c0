"""Show a failure in a notebook: the error's type and message, without a traceback."""

import re
import textwrap
from contextlib import contextmanager

from minijax.errors import see
from minijax.tracebacks import linked_section

__all__ = ["fails"]


@contextmanager
def fails(error, match=None, section=None):
    """`with fails(TypeError, "dtype"):` runs a block that must raise, and prints what it raised.

    Raises AssertionError if the block raises nothing, if the regular expression `match` is not
    found in the message, or if the error does not link this `section` of ref_errors. An error of
    another type goes through as it is.
    """
    try:
        yield
    except error as raised:
        if match is not None and not re.search(match, str(raised)):
            raise AssertionError(f"the message should match {match!r}, but is: {raised}") from None
        print(describe_error(raised))
        if section is not None:
            print_link(raised, section)
    else:
        raise AssertionError(f"this should raise {error_name(error)}, but raised nothing")


def print_link(raised, section):
    """Print the link that stands in a note; one in the message has been printed already."""
    if linked_section(raised) != section:
        raise AssertionError(f"the error should link {section}, but links {linked_section(raised)}")
    if see(section) not in str(raised):
        print(see(section))


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
_ADDRESS = re.compile(r"\b(0x|id=)[0-9a-f]{6,}\b")


def hide_places(text):
    """Names of folders and addresses differ from run to run: leave them out of stored outputs."""
    return _ADDRESS.sub(r"\1…", _FOLDERS.sub("", _CELL.sub("<cell>", text)))
