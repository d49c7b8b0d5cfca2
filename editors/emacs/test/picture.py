"""Draws a terminal's screen as SVG: standard input is what `tmux capture-pane -e -p` says, the argument the file to write."""

import re
import sys
from html import escape

# Of a cell, in units of the picture.
WIDTH, HEIGHT = 8.4, 18
# The colours of the theme, of those that a terminal of 256 has, where the terminal's own are meant.
INK, PAPER = "#eeeeee", "#262626"
BASIC = ["#2e3436", "#cc0000", "#4e9a06", "#c4a000", "#3465a4", "#75507b", "#06989a", "#d3d7cf"]
BRIGHT = ["#555753", "#ef2929", "#8ae234", "#fce94f", "#729fcf", "#ad7fa8", "#34e2e2", "#eeeeec"]


def colour(index):
    """A colour of a terminal of 256."""
    if index < 16:
        return (BASIC + BRIGHT)[index]
    if index < 232:
        index -= 16
        levels = [0, 95, 135, 175, 215, 255]
        return "#%02x%02x%02x" % (levels[index // 36], levels[index // 6 % 6], levels[index % 6])
    return "#%02x%02x%02x" % ((8 + 10 * (index - 232),) * 3)


class Look:
    """How what follows is drawn."""

    def __init__(self):
        self.plain()

    def plain(self):
        self.ink, self.paper, self.bold, self.underline, self.turned = None, None, False, False, False

    def take(self, codes):
        """One `ESC [ … m`."""
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.plain()
            elif code in (1, 22):
                self.bold = code == 1
            elif code in (4, 24):
                self.underline = code == 4
            elif code in (7, 27):
                self.turned = code == 7
            elif code in (38, 48) and codes[:1] == [5]:
                value = colour(codes[1])
                codes = codes[2:]
                self.ink, self.paper = (value, self.paper) if code == 38 else (self.ink, value)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.ink = colour(code - 30 if code < 90 else code - 82)
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.paper = colour(code - 40 if code < 100 else code - 92)
            elif code in (39, 49):
                self.ink, self.paper = (None, self.paper) if code == 39 else (self.ink, None)

    def drawn(self):
        ink, paper = self.ink or INK, self.paper
        if self.turned:
            ink, paper = paper or PAPER, ink
        return ink, paper, self.bold, self.underline


def runs(line, look):
    """Column, text and look of each piece of a line that is drawn in one way."""
    column = 0
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b["):
            look.take(piece[2:-1])
        elif piece:
            yield column, piece, look.drawn()
            column += len(piece)


def svg(screen):
    lines = screen.rstrip("\n").split("\n")
    look = Look()
    drawn = [list(runs(line, look)) for line in lines]
    columns = max((at + len(text) for line in drawn for at, text, _ in line), default=0)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * WIDTH:.0f} {len(lines) * HEIGHT}" '
        'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14">',
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
    ]
    for row, line in enumerate(drawn):
        for at, text, (ink, paper, bold, underline) in line:
            x, y, width = at * WIDTH, row * HEIGHT, len(text) * WIDTH
            if paper not in (None, PAPER):
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HEIGHT}" fill="{paper}"/>')
            if text.strip():
                more = ' font-weight="bold"' if bold else ""
                more += ' text-decoration="underline"' if underline else ""
                out.append(
                    f'<text x="{x:.1f}" y="{y + 13}" textLength="{width:.1f}" fill="{ink}"{more} xml:space="preserve">{escape(text, quote=False)}</text>'
                )
    out.append("</svg>")
    return "\n".join(out) + "\n"


with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write(svg(sys.stdin.read()))
