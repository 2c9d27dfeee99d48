"""Small pictures of coloured half blocks: a cell of the terminal shows two pixels, one above the other."""

import base64
import binascii
import re

from .line import Line, Run
from .terminal_output import PICTURE, SGR

LARGEST = 64
"""Most pixels per side; larger ones are not from here."""

_THUMBNAIL = re.compile(r"(\d{1,3})x(\d{1,3}):([A-Za-z0-9+/=]+)\Z")
_STEP = 16
"""Colours are rounded to multiples of it, so that few styles are needed."""


def picture_rows(thumbnail: str, width: int) -> list[Line]:
    """Return the rows of a thumbnail as `ImageBlock.thumbnail` has it; none if it is damaged or wider than `width`."""
    match = _THUMBNAIL.match(thumbnail)
    if match is None:
        return []
    columns, rows = int(match[1]), int(match[2])
    try:
        pixels = base64.b64decode(match[3], validate=True)
    except (binascii.Error, ValueError):
        return []
    if len(pixels) != columns * rows * 3 or max(columns, rows) > LARGEST or not 0 < columns <= width:
        return []
    return [Line(_row(pixels, columns, rows, top)) for top in range(0, rows, 2)]


def _row(pixels: bytes, columns: int, rows: int, top: int) -> tuple[Run, ...]:
    """Return two rows of pixels as one of cells; equal neighbours are one run."""
    runs: list[Run] = []
    for column in range(columns):
        upper = _colour(pixels, top * columns + column)
        lower = f" {SGR}b{_colour(pixels, (top + 1) * columns + column)}" if top + 1 < rows else ""
        style = f"{SGR}{PICTURE} {SGR}f{upper}{lower}"
        if runs and runs[-1][1] == style:
            runs[-1] = (f"{runs[-1][0]}▀", style)
        else:
            runs.append(("▀", style))
    return tuple(runs)


def _colour(pixels: bytes, place: int) -> str:
    parts = (min(255, value // _STEP * _STEP + _STEP // 2) for value in pixels[place * 3 : place * 3 + 3])
    return "#" + "".join(f"{part:02x}" for part in parts)
