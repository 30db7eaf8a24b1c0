# Exported from notebooks/05_jaxpr.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: programs. Home: 05_jaxpr. In JAX: jax/_src/pretty_printer.py.

A document is a string, a list of documents, or one of the classes below. It says where lines may be
broken; `layout` breaks as few as it can. Source: P. Wadler, "A prettier printer" (1998).
"""

from typing import NamedTuple

__all__ = [
    "Text", "Break", "Group", "Indent", "join", "lines_of", "on_one_line", "text_of", "STYLES",
    "layout",
]


# --- Printing -------------------------------------------------------------------------------------

class Text(NamedTuple):
    """A string with a style, a key of STYLES, and a remark for the end of its line."""

    text: str
    style: str = "plain"
    remark: str = ""


class Break(NamedTuple):
    """A new line in a group that is broken, `text` in one that is not."""

    text: str = " "


class Group(NamedTuple):
    """`doc`, on one line if it fits there."""

    doc: object


class Indent(NamedTuple):
    """`doc`, whose new lines begin two spaces further to the right."""

    doc: object


def join(separator, docs):
    """The documents with a separator between each two."""
    return [part for doc in docs for part in (separator, doc)][1:]


def lines_of(doc, width):
    """The texts of each line."""
    lines, room, todo = [[]], width, [(doc, 0)]
    while todo:
        doc, indent = todo.pop()
        if isinstance(doc, list):
            todo.extend([(part, indent) for part in reversed(doc)])
        elif isinstance(doc, Indent):
            todo.append((doc.doc, indent + 2))
        elif isinstance(doc, Group):
            todo.append((on_one_line(doc.doc, room) or doc.doc, indent))
        elif isinstance(doc, Break):
            lines.append([" " * indent])
            room = width - indent
        else:
            lines[-1].append(doc)
            room -= len(text_of(doc))
    return lines


def on_one_line(doc, room):
    """The texts of a document without new lines; None if they have more than `room` characters."""
    texts, todo = [], [doc]
    while todo:
        doc = todo.pop()
        if isinstance(doc, list):
            todo.extend(reversed(doc))
        elif isinstance(doc, (Group, Indent)):
            todo.append(doc.doc)
        else:
            texts.append(doc.text if isinstance(doc, Break) else doc)
            room -= len(text_of(doc))
            if room < 0:
                return None
    return texts


def text_of(doc):
    return doc if isinstance(doc, str) else doc.text


STYLES = {"plain": "{}", "keyword": "\x1b[34;1m{}\x1b[39;22m", "type": "\x1b[35m{}\x1b[39m"}


def layout(doc, width=80, use_color=False, annotation_prefix=" # "):
    """A document as text in lines of `width` characters, where its breaks allow that.

    Remarks stand at the right, behind `annotation_prefix`. With `use_color` texts have their style,
    in the escape codes of terminals.
    """
    lines = lines_of(doc, width)
    lengths = [sum([len(text_of(part)) for part in line]) for line in lines]
    margin = "\n" + " " * max(lengths) + annotation_prefix
    for line, length in zip(lines, lengths):
        texts = [part for part in line if isinstance(part, Text)]
        remarks = "".join([margin + part.remark for part in texts if part.remark])
        line.append(remarks[1 + length:])               # the first one stands beside the texts
    styles = STYLES if use_color else dict.fromkeys(STYLES, "{}")
    shown = [[part if isinstance(part, str) else styles[part.style].format(part.text)
              for part in line] for line in lines]
    return "\n".join(map("".join, shown))
