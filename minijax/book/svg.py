"""The pieces of the book's drawings: small SVG that follows the colours of the page."""

from html import escape

__all__ = ["Drawing", "PALETTE", "ACCENT", "rect", "text", "path", "paint_of", "text_width"]

ACCENT = "#e8930c"
# Orange, blue, green, purple: apart for colour-blind readers, and legible on white and on black.
PALETTE = (ACCENT, "#2f86d8", "#2a9d60", "#a45cc8")
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"


class Drawing:
    """A finished picture: its parts, its size, and the sentence that stands for it."""

    def __init__(self, parts, width, height, alt, plain=None):
        self.parts, self.width, self.height = list(parts), round(width), round(height)
        self.alt, self.plain = alt, plain or alt

    def __repr__(self):
        return self.plain

    def _repr_svg_(self):
        alt = escape(self.alt)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'role="img" aria-label="{alt}" fill="currentColor" font-family="{MONO}" '
                f'font-size="12" style="width:100%;max-width:{self.width}px;height:auto">'
                f"<title>{alt}</title>\n" + "\n".join(self.parts) + "\n</svg>")

    def _repr_html_(self):
        return f'<div class="drawing">{self._repr_svg_()}</div>'


def paint_of(colour=None):
    """Attributes of a shape: translucent fill and outline, of a colour or of the page's own."""
    if colour is None:
        return 'fill-opacity=".07" stroke="currentColor" stroke-opacity=".4"'
    return f'fill="{colour}" fill-opacity=".28" stroke="{colour}"'


def titled(tag, attributes, title):
    hint = f"<title>{escape(title)}</title>" if title else ""
    return f"<{tag} {attributes}>{hint}</{tag}>" if hint else f"<{tag} {attributes}/>"


def rect(x, y, width, height, colour=None, title="", radius=4):
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"'
    return titled("rect", f"{place} {paint_of(colour)}", title)


def path(d, attributes='fill="none" stroke="currentColor" stroke-opacity=".5"', title=""):
    return titled("path", f'd="{d}" {attributes}', title)


def text(x, y, string, size=12, opacity=1, anchor="middle", extra=""):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill-opacity="{opacity}" '
            f'text-anchor="{anchor}"{extra}>{escape(str(string))}</text>')


def text_width(string, size=12):
    """The width of monospaced text."""
    return 0.61 * size * len(str(string))
