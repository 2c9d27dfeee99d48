"""Colours of programs' output in the colours of the theme: always readable on the ground they are shown on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.color import Color as TerminalColour
from rich.style import Style
from textual.color import Color

from .terminal_output import SGR

LEAST_CONTRAST = 4.5
"""Least contrast of text with its ground; a colour with less is moved towards black or white."""
_STEPS = 20
_LEVELS = (0, 95, 135, 175, 215, 255)
_ROLES = ("text-disabled", "error", "success", "warning", "primary", "accent", "", "foreground")
"""Theme variables of the eight colours; cyan is a blend of two."""


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
        if number < 16:
            return self.colours[number]
        if number >= 232:
            grey = 8 + 10 * (number - 232)
            return Color(grey, grey, grey)
        number -= 16
        return Color(_LEVELS[number // 36], _LEVELS[number // 6 % 6], _LEVELS[number % 6])


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
    if palette is None:
        # A terminal's own colours are known to the terminal alone, so it draws dim and reversed text as well.
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
