"""A conversation drawn: who asks whom what a primitive means while a function runs."""

from typing import NamedTuple

from minijax.book.svg import ACCENT, Drawing, path, rect, text
from minijax.book.traces import ParentTrace, short
from minijax.core import eval_trace, name_of, set_current_trace

__all__ = ["draw_conversation", "overhear"]

TOP, STEP, LANE, MARGIN = 52, 25, 250, 90


class Message(NamedTuple):
    """A question or an answer between two neighbouring lanes."""
    lane: int                       # of the one who asks; the other is lane + 1
    text: str
    is_answer: bool


class Witness(ParentTrace):
    """Passes everything on to its parent, and notes what is said."""

    def __init__(self, parent, lane, messages):
        super().__init__(parent)
        self.lane, self.messages = lane, messages

    def process_primitive(self, primitive, args, params):
        self.note(f"{primitive}({', '.join(map(short, args))})", False)
        out = self.ask_parent(primitive, args, params)
        self.note(short(out), True)
        return out

    def note(self, text, is_answer):
        self.messages.append(Message(self.lane, text, is_answer))


def overhear(f, *args, through=None, enter=None):
    """The lanes and messages of a run of f, evaluated, or interpreted by `through` first.

    through(parent) -> a trace; enter(trace, x) -> the tracer that stands for the argument x.
    """
    messages = []
    if through is None:
        lanes, top, inputs = [name_of(f), "EvalTrace"], eval_trace, args
    else:
        middle = through(Witness(eval_trace, 1, messages))
        lanes, top = [name_of(f), type(middle).__name__, "EvalTrace"], middle
        inputs = [enter(middle, x) for x in args]
    with set_current_trace(Witness(top, 0, messages)):
        f(*inputs)
    return lanes, messages


def draw_conversation(f, *args, through=None, enter=None):
    """Draw the run of f that `overhear` describes: one lane for each party, time running down."""
    lanes, messages = overhear(f, *args, through=through, enter=enter)
    width, height = x_of(len(lanes) - 1) + MARGIN, TOP + STEP * len(messages) + 12
    parts = [part for lane, name in enumerate(lanes) for part in draw_lane(lane, name, height)]
    parts += [part for i, message in enumerate(messages)
              for part in draw_message(message, TOP + STEP * (i + 0.7))]
    return Drawing(parts, width, height, describe(lanes, messages),
                   f"Conversation({' | '.join(lanes)}: {len(messages)} messages)")


# --- Drawing --------------------------------------------------------------------------------------

def x_of(lane):
    return MARGIN + lane * LANE


def describe(lanes, messages):
    said = [f"{lanes[m.lane + m.is_answer]} {'answers' if m.is_answer else 'asks'} {m.text}"
            for m in messages]
    return f"A conversation between {', '.join(lanes)}: " + "; ".join(said) + "."


def draw_lane(lane, name, height):
    x = x_of(lane)
    yield rect(x - 66, 8, 132, 28, ACCENT)
    yield text(x, 27, name, 12.5)
    yield path(f"M{x} 36V{height - 4}")


def draw_message(message, y):
    """A question goes right and is solid, an answer goes left and is dashed."""
    left, right = x_of(message.lane), x_of(message.lane + 1)
    dash = ' stroke-dasharray="5 4"' if message.is_answer else ""
    head = f"M{left} {y:g}l8 -4v8z" if message.is_answer else f"M{right} {y:g}l-8 -4v8z"
    yield path(f"M{left} {y:g}H{right}", f'stroke="currentColor" stroke-opacity=".7"{dash}')
    yield path(head, 'stroke="none"')
    yield text((left + right) / 2, y - 4, message.text)
