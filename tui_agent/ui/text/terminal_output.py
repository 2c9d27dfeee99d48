"""Output of programs as styled lines: their colours stay, readable in every theme; other controls are dropped. Pure.

The text of the lines is exactly `sanitise(settle(text))`; only sequences that select colours and attributes (SGR) add
styles to it. A style word such as `sgr-f1` names the attribute; `output_style` maps it to the theme.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from rich.color import Color as TerminalColour
from rich.style import Style
from textual.color import Color

from .line import Run
from .sanitiser import SEQUENCE, clean_pieces, sanitise, settled_line

SGR = "sgr-"
"""Prefix of the style words of this module."""
PICTURE = "picture"
"""Attribute of the pixels of a picture: their colours stay as they are, whatever the contrast."""
STATE_READ = 4_096
"""Most characters before a text that is not shown which are read for the colours it leaves behind."""
MAX_RUNS = 4_000
"""Most runs of one line; its rest has the style of the last one."""
_MAX_PARAMETERS = 64
_COLOURS = re.compile(r"(?:\x1b\[|\x9b)([0-9:;]*)m")
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike", 21: "underline"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}
LEAST_CONTRAST = 4.5
"""Least contrast of text with its ground; a colour with less is moved towards black or white."""
_STEPS = 20
_ROLES = ("text-disabled", "error", "success", "warning", "primary", "accent", "", "foreground")
"""Theme variables of the eight colours; cyan is a blend of two."""

Runs: TypeAlias = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Rendition:
    """Colours and attributes in force."""

    foreground: str = ""
    """Number from 0 to 255, or `#rrggbb`; empty for the default colour."""
    background: str = ""
    attributes: tuple[str, ...] = ()

    @property
    def style(self) -> str:
        """Its style words; empty for plain text."""
        words = [f"{SGR}{name}" for name in self.attributes]
        words += [f"{SGR}f{self.foreground}"] if self.foreground else []
        words += [f"{SGR}b{self.background}"] if self.background else []
        return " ".join(words)


PLAIN = Rendition()


class OutputReader:
    """Reads lines of output in order; a line begins with the colours that the one before left behind."""

    def __init__(self, style: str = "") -> None:
        """Begin without colours; `style` is the style beneath them."""
        self._style = style
        self._rendition = PLAIN

    def skip(self, text: str) -> None:
        """Take over the colours at the end of a text that is not shown."""
        for match in _COLOURS.finditer(text[-STATE_READ:]):
            self._rendition = _selected(self._rendition, match[1])

    def lines(self, text: str) -> Iterator[Runs]:
        """Yield the lines of a text. Consume all of them: the next text begins with their last colours."""
        for line in text.split("\n"):
            yield from self._line(line)

    def _line(self, line: str) -> list[Runs]:
        if "\r" in line:
            shown = settled_line(line)
            # What was overwritten may have set the colours of what is left.
            self.skip(line[: len(line.rstrip("\r")) - len(shown)])
            line = shown
        if "\x1b" not in line and "\x9b" not in line:
            return _cut([(sanitise(line), self._words)])
        pieces: list[str] = []
        styles: list[str] = []
        place = 0
        for match in SEQUENCE.finditer(line):
            pieces.append(line[place : match.start()])
            styles.append(self._words)
            place = match.end()
            if (colours := _COLOURS.fullmatch(match[0])) is not None:
                self._rendition = _selected(self._rendition, colours[1])
        pieces.append(line[place:])
        styles.append(self._words)
        if len(pieces) > MAX_RUNS:
            pieces[MAX_RUNS - 1 :] = ["".join(pieces[MAX_RUNS - 1 :])]
            styles = styles[:MAX_RUNS]
        return _cut(list(zip(clean_pieces(pieces), styles, strict=True)))

    @property
    def _words(self) -> str:
        return f"{self._style} {self._rendition.style}".strip()


def output_lines(text: str, style: str = "") -> list[Runs]:
    """Return the lines of a program's output as runs; `style` is the style beneath its colours."""
    return list(OutputReader(style).lines(text))


def plain_output(text: str) -> str:
    """Return the text of a program's output as it is shown, without colours."""
    return "\n".join("".join(piece for piece, _ in line) for line in output_lines(text))


def _cut(runs: Iterable[Run]) -> list[Runs]:
    """Return runs of a line as lines; other line ends than a line feed have become line feeds in them."""
    lines: list[list[Run]] = [[]]
    for text, style in runs:
        for number, piece in enumerate(text.split("\n")):
            if number:
                lines.append([])
            if piece:
                _append(lines[-1], piece, style)
    return [tuple(line) for line in lines]


def _append(runs: list[Run], text: str, style: str) -> None:
    if runs and runs[-1][1] == style:
        runs[-1] = (runs[-1][0] + text, style)
    else:
        runs.append((text, style))


# Programs repeat a few sequences many thousand times.
@lru_cache(maxsize=1024)
def _selected(rendition: Rendition, parameters: str) -> Rendition:
    """Return the rendition after a sequence with these parameters; unknown ones change nothing."""
    if ":" in parameters:
        return _selected_in_groups(rendition, parameters)
    numbers = [_number(part) for part in parameters.split(";")[:_MAX_PARAMETERS]]
    place = 0
    while place < len(numbers):
        number = numbers[place]
        if number in (38, 48):
            colour, used = _colour(numbers[place + 1 :])
            rendition = _coloured(rendition, number, colour)
            place += 1 + used
        else:
            rendition = _changed(rendition, number)
            place += 1
    return rendition


def _selected_in_groups(rendition: Rendition, parameters: str) -> Rendition:
    """Return the rendition after a sequence with sub-parameters, such as `38:2::255:0:0` or `4:3`."""
    for group in parameters.split(";")[:_MAX_PARAMETERS]:
        head, *rest = group.split(":")
        number = _number(head)
        if number in (38, 48) and rest:
            values = [_number(part) for part in rest]
            # A colour space may precede red, green and blue.
            colour, _ = _colour([2, *values[-3:]] if values[0] == 2 and len(values) > 4 else values)
            rendition = _coloured(rendition, number, colour)
        else:
            rendition = _changed(rendition, 24 if number == 4 and rest[:1] == ["0"] else number)
    return rendition


def _number(text: str) -> int:
    """Return a parameter; an empty one is 0, one that is too long is -1."""
    return (int(text) if len(text) < 4 else -1) if text else 0


def _colour(values: Sequence[int]) -> tuple[str | None, int]:
    """Return an extended colour and the number of values that name it; None if it is not a colour."""
    if values[:1] == [5] and len(values) > 1:
        return (str(values[1]) if 0 <= values[1] < 256 else None), 2
    if values[:1] == [2] and len(values) > 3:
        red, green, blue = values[1:4]
        known = all(0 <= value < 256 for value in (red, green, blue))
        return (f"#{red:02x}{green:02x}{blue:02x}" if known else None), 4
    return None, len(values)


def _coloured(rendition: Rendition, number: int, colour: str | None) -> Rendition:
    if colour is None:
        return rendition
    return replace(rendition, foreground=colour) if number == 38 else replace(rendition, background=colour)


def _changed(rendition: Rendition, number: int) -> Rendition:
    """Return the rendition after one simple parameter. Hidden and blinking text stays as it is."""
    if number == 0:
        return PLAIN
    if (attribute := _ATTRIBUTES.get(number)) is not None:
        kept = (*(name for name in rendition.attributes if name != attribute), attribute)
        return replace(rendition, attributes=kept)
    if (ended := _ENDS.get(number)) is not None:
        return replace(rendition, attributes=tuple(name for name in rendition.attributes if name not in ended))
    if 30 <= number <= 37 or 90 <= number <= 97:
        return replace(rendition, foreground=str(number - 30 if number < 40 else number - 82))
    if 40 <= number <= 47 or 100 <= number <= 107:
        return replace(rendition, background=str(number - 40 if number < 50 else number - 92))
    if number == 39:
        return replace(rendition, foreground="")
    return replace(rendition, background="") if number == 49 else rendition


@dataclass(frozen=True, slots=True)
class Palette:
    """The sixteen colours of a theme."""

    colours: tuple[Color, ...]

    @classmethod
    def of_theme(cls, variables: Mapping[str, str]) -> "Palette":
        """Return the palette of a theme with these style variables."""
        eight = [Color.parse(variables[role]) if role else Color(0, 0, 0) for role in _ROLES]
        eight[6] = eight[4].blend(eight[2], 0.5)
        bright = list(eight)
        bright[0] = Color.parse(variables["text-muted"])
        return cls((*eight, *bright))

    def colour(self, name: str) -> Color:
        """Return a colour by its number from 0 to 255 or as `#rrggbb`."""
        if name.startswith("#"):
            return Color.parse(name)
        number = int(name)
        return self.colours[number] if number < 16 else Color.from_rich_color(TerminalColour.from_ansi(number))


def output_style(words: Sequence[str], palette: Palette | None, text: Color, ground: Color) -> Style:
    """Return the colours of `sgr-` words.

    Args:
        words: the words, such as `sgr-f1`; others are ignored.
        palette: the colours of the theme; None: the terminal shows its own.
        text: colour of the text without them.
        ground: colour behind it.
    """
    names = [word.removeprefix(SGR) for word in words if word.startswith(SGR)]
    attributes = Style(
        bold="bold" in names or None,
        italic="italic" in names or None,
        underline="underline" in names or None,
        strike="strike" in names or None,
    )
    front = next((name[1:] for name in names if name[0] == "f" and name[1:2] in _COLOUR_BEGINS), "")
    back = next((name[1:] for name in names if name[0] == "b" and name[1:2] in _COLOUR_BEGINS), "")
    if PICTURE in names:
        return Style(color=_own(front) if front else None, bgcolor=_own(back) if back else None)
    if palette is None:
        # A terminal's own colours are known to the terminal alone, so it draws dim and reversed text as well.
        # Text in the colour of its ground would be invisible.
        hidden = front == back
        return attributes + Style(
            color=_own(front) if front and not hidden else None,
            bgcolor=_own(back) if back and not hidden else None,
            dim="dim" in names or None,
            reverse="reverse" in names or None,
        )
    behind = palette.colour(back) if back else ground
    colour = palette.colour(front) if front else text
    if "dim" in names:
        colour = colour.blend(behind, 0.35)
    if "reverse" in names:
        colour, behind = behind, colour
    colour = readable(colour, behind)
    if not front and not {"dim", "reverse"}.intersection(names) and not back:
        return attributes
    is_ground = not back and "reverse" not in names
    return attributes + Style(color=colour.rich_color, bgcolor=None if is_ground else behind.rich_color)


def readable(colour: Color, ground: Color) -> Color:
    """Return a colour, moved towards black or white until it has `LEAST_CONTRAST` with the ground."""
    if contrast(colour, ground) >= LEAST_CONTRAST:
        return colour
    black, white = Color(0, 0, 0), Color(255, 255, 255)
    end = black if contrast(black, ground) > contrast(white, ground) else white
    blends = (colour.blend(end, step / _STEPS) for step in range(1, _STEPS + 1))
    return next((blend for blend in blends if contrast(blend, ground) >= LEAST_CONTRAST), end)


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colours as WCAG defines it, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


_COLOUR_BEGINS = frozenset("#0123456789")


def _own(name: str) -> TerminalColour:
    return TerminalColour.parse(name) if name.startswith("#") else TerminalColour.from_ansi(int(name))


def _luminance(colour: Color) -> float:
    red, green, blue = (_linear(value / 255) for value in (colour.r, colour.g, colour.b))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
