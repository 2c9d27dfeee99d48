"""Frames for the terminal: write what its screen does not show, and let it scroll rows that only moved.

Textual writes every row that a widget declares changed. While an answer arrives, that is the whole conversation for
each new line, although most rows have only moved up. The first frame is kept for the prelude of the next start.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip
from textual.widgets import TextArea

from tui_agent.prelude.kept_frame import StartFrame
from tui_agent.ui.base.app_type import AnyScreen

MIN_MOVED = 3
"""Least number of moved rows for which the terminal scrolls."""
FEW_ROWS = 8
"""Most changed rows for which both ways to write them are worked out and compared."""
MAX_GAP = 12
"""Most cells between two changed ones that are written, too, instead of a move to the second one."""
MAX_PLACES = 8
"""Most rows with equal pieces among which a moved one is sought."""

_RESET = "\x1b[0m"
_SEQUENCE = re.compile(r"\x1b\[(?:(?P<style>[\d;]*)m|\d+;\d+H)")
_COLOUR = re.compile(r"(?:^|;)([34]8);(?:2;\d+;\d+;\d+|5;\d+)(?=;|$)")
_LINES = {"4", "7", "9", "21", "53"}
"""Attributes that a blank shows in the colour of the text."""
_CERTAIN = re.compile("[ -~\x1b\u00a0-\u02ff\u2010-\u2027\u2500-\u25ff]*")
"""Text whose width terminals agree about, with the sequences of its styles."""

Piece = tuple[str, int]
"""Part of a row: its text with the sequences of its styles, and its width in cells."""
Row = dict[int, Piece]
"""Pieces of a row by their first column, in order."""
Cells = tuple[Sequence[str], Sequence[str]]
"""The characters of a row, empty where it is not known, and their styles."""


class FramePainter:
    """Knows the contents of the terminal's screen, and turns updates of Textual into the bytes that are missing."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._width = 0

    def forget(self) -> None:
        """Take the contents of the terminal for unknown: the next frames write all that they contain."""
        self._rows = []

    def frame(self, update: object) -> object:
        """Return an update that writes less and leaves the terminal with the same contents; all else as it is."""
        return _Frame(self, update) if isinstance(update, (ChopsUpdate, LayoutUpdate)) else update

    def paint(self, update: ChopsUpdate | LayoutUpdate, console: Console) -> str:
        """Return the terminal sequences of an update. The caller must write them."""
        # Unknown if an error ends this method.
        before, self._rows = self._rows, []
        if isinstance(update, LayoutUpdate):
            rows = [_whole_row(strips, console) for strips in update.strips]
            self._width = update.region.width
            self._rows = rows if update.region.offset == (0, 0) else []
            return _without_repetitions(_difference([{}] * len(rows), rows, update.region.y))
        if len(before) != len(update.chops):
            before = [Row() for _ in update.chops]
        rows = list(before)
        spans: dict[int, list[tuple[int, int]]] = {}
        for y, first, last in update.spans:
            spans.setdefault(y, []).append((first, last))
        for y, changed in spans.items():
            row = _updated_row(
                before[y], changed, zip(update.chop_ends[y], update.chops[y].items(), strict=False), console
            )
            if row != before[y]:
                rows[y] = row
        self._rows = rows
        scrolled = self._scrolled(before, rows)
        if scrolled is None or len(spans) <= FEW_ROWS:
            written = _difference(before, rows)
            if scrolled is None or _length(written) <= _length(scrolled):
                scrolled = written
        return _without_repetitions(scrolled)

    def _scrolled(self, before: list[Row], rows: list[Row]) -> list[str] | None:
        """Return the sequences that scroll moved rows and write the rest; None if too few rows have moved."""
        changed = [y for y, row in enumerate(rows) if row is not before[y]]
        if len(changed) < MIN_MOVED:
            return None
        new = {y: rows[y].items() - before[y].items() for y in changed}
        sought = set[tuple[int, Piece]]().union(*new.values())
        places: dict[tuple[int, Piece], list[int]] = {}
        for y, row in enumerate(before):
            for key in sought.intersection(row.items()):
                places.setdefault(key, []).append(y)
        moved: dict[int, list[int]] = {}
        for y, keys in new.items():
            for shift in {place - y for key in keys for place in places.get(key, ())[:MAX_PLACES]}:
                moved.setdefault(shift, []).append(y)
        shift = max(moved, key=lambda one: (len(moved[one]), -abs(one)), default=0)
        if not shift or len(moved[shift]) < max(MIN_MOVED, len(changed) // 2):
            return None
        first, last = min(moved[shift]), max(moved[shift])
        top, bottom = min(first, first + shift), max(last, last + shift)
        # What scrolls beside the moved pieces has to be written again, so it has to be known.
        if any(sum(cells for _, cells in rows[y].values()) != self._width for y in range(top, bottom + 1)):
            return None
        after = list(before)
        for y in range(top, bottom + 1):
            after[y] = before[y + shift] if top <= y + shift <= bottom else {}
        return [_scroll(top, bottom, shift), *_difference(after, rows)]


class _Frame(CompositorUpdate):
    """An update that becomes bytes when it is written, and only then."""

    def __init__(self, painter: FramePainter, update: ChopsUpdate | LayoutUpdate) -> None:
        self._painter = painter
        self._update = update

    def render_segments(self, console: Console) -> str:
        """Return the sequences for the terminal."""
        return self._painter.paint(self._update, console)


def _whole_row(strips: Iterable[Strip], console: Console) -> Row:
    row: Row = {}
    x = 0
    for strip in strips:
        row[x] = strip.render(console), strip.cell_length
        x += strip.cell_length
    return row


def _updated_row(
    old: Row,
    spans: Sequence[tuple[int, int]],
    pieces: Iterable[tuple[int, tuple[int, Strip | None]]],
    console: Console,
) -> Row:
    """Return a row with its new pieces, each given after its end; old ones that they overlap are no longer known."""
    new: Row = {}
    for end, (x, strip) in pieces:
        if strip is not None and any(x < last and end > first for first, last in spans):
            new[x] = strip.render(console), strip.cell_length
    if all(x in old and old[x][1] == cells for x, (_, cells) in new.items()):
        return {**old, **new}
    for x, (_, cells) in old.items():
        if not any(x < start + width and start < x + cells for start, (_, width) in new.items()):
            new[x] = old[x]
    return dict(sorted(new.items()))


def _scroll(top: int, bottom: int, shift: int) -> str:
    """Return the sequences that move the rows from `top` to `bottom` up by `shift` rows, or down if it is negative.

    A line feed in the last row of a region, and a reverse one in its first, scroll in every terminal.
    """
    place, step = (bottom, "\n") if shift > 0 else (top, "\x1bM")
    return f"{_RESET}\x1b[{top + 1};{bottom + 1}r\x1b[{place + 1};1H{step * abs(shift)}\x1b[r"


def _difference(before: list[Row], rows: list[Row], first: int = 0) -> list[str]:
    """Return the sequences that write the cells of rows that differ; `first` is the number of the first row."""
    texts: list[str] = []
    for y, (shown, row) in enumerate(zip(before, rows, strict=True), first + 1):
        if row is shown or row == shown:
            continue
        width = max(x + cells for x, (_, cells) in (*shown.items(), *row.items()))
        now = _row_cells(row, width)
        was = _row_cells(shown, width) if now is not None else None
        texts += _changed_pieces(shown, row, y) if now is None or was is None else _changed_cells(was, now, y)
    return texts


def _changed_pieces(shown: Row, row: Row, y: int) -> Iterable[str]:
    """Yield the sequences that write the pieces of a row that differ, where terminals may disagree about widths."""
    end, is_moved = -1, False
    for x, piece in row.items():
        if not is_moved and shown.get(x) == piece:
            continue
        # What follows is written, too, if the terminal may have drawn one of both texts wider or narrower.
        is_moved = is_moved or _cells(piece[0]) is None or (x in shown and _cells(shown[x][0]) is None)
        yield piece[0] if x == end else f"\x1b[{y};{x + 1}H{piece[0]}"
        # Behind such text, each piece begins at its own column, in this frame and in later ones.
        end = -1 if is_moved else x + piece[1]


def _changed_cells(was: Cells, now: Cells, y: int) -> Iterable[str]:
    """Yield the sequences that write the cells of a row that differ, and the few between them."""
    (old, old_styles), (text, styles) = was, now
    compared = enumerate(zip(old, text, old_styles, styles, strict=True))
    changed = [x for x, (one, sign, had, style) in compared if (one != sign or had != style) and sign]
    place = 0
    while place < len(changed):
        first = last = changed[place]
        while place < len(changed) and changed[place] <= last + MAX_GAP and "" not in text[last : changed[place]]:
            last = changed[place]
            place += 1
        yield f"\x1b[{y};{first + 1}H"
        style = None
        for x in range(first, last + 1):
            if style is None or (styles[x] != style and not (text[x] == " " and styles[x] == _ground(style))):
                style = styles[x]
                yield f"\x1b[{style or 0}m"
            yield text[x]
        yield _RESET


def _row_cells(row: Row, width: int) -> Cells | None:
    """Return the cells of a row; None if terminals may disagree about widths."""
    text, styles = [""] * width, [""] * width
    for x, (piece, _) in row.items():
        if (found := _cells(piece)) is None:
            return None
        text[x : x + len(found[0])], styles[x : x + len(found[0])] = found
    return text, styles


@lru_cache(maxsize=128)
def _cells(text: str) -> Cells | None:
    """Return the characters of a piece and the style of each; None if terminals may disagree about widths."""
    if not _CERTAIN.fullmatch(text):
        return None
    signs, styles = "", list[str]()
    style, place = "", 0
    for match in (*_SEQUENCE.finditer(text), None):
        run = text[place : len(text) if match is None else match.start()]
        blank = _ground(style)
        signs += run
        styles += [blank if sign == " " else style for sign in run]
        if match is not None:
            place, style = match.end(), "" if match["style"] in (None, "0") else match["style"]
    return signs, styles


@lru_cache(maxsize=256)
def _ground(style: str) -> str:
    """Return a style without what no blank shows: the colour of the text."""
    attributes, _, ground = _parts_of_style(style)
    return style if _LINES & {*attributes.split(";")} else ";".join(filter(None, (attributes, ground)))


def _length(texts: Iterable[str]) -> int:
    return sum(map(len, texts))


def _without_repetitions(texts: Iterable[str]) -> str:
    """Return joined texts whose sequences only change what differs from the style in force."""
    text = "".join(texts)
    parts: list[str] = []
    in_force = wanted = ""
    place = 0
    for match in _SEQUENCE.finditer(text):
        if place < match.start():
            if wanted != in_force:
                parts.append(_change_of_style(in_force, wanted))
                in_force = wanted
            parts.append(text[place : match.start()])
        place = match.end()
        if match["style"] is None:
            parts.append(match[0])
        else:
            wanted = "" if match["style"] == "0" else match["style"]
    return "".join((*parts, _RESET if in_force else "", text[place:]))


@lru_cache(maxsize=256)
def _change_of_style(before: str, now: str) -> str:
    """Return the sequence for a style where another one is in force."""
    (had, text, ground), (has, new_text, new_ground) = _parts_of_style(before), _parts_of_style(now)
    if had != has or (text and not new_text) or (ground and not new_ground):
        return f"\x1b[0;{now}m" if now else _RESET
    return f"\x1b[{';'.join(new for old, new in ((text, new_text), (ground, new_ground)) if new != old)}m"


def _parts_of_style(style: str) -> tuple[str, str, str]:
    """Return the attributes of a style, the colour of its text and that of its ground; those with a number of 24 bits.

    All other colours are among the attributes.
    """
    colours = {match[1]: match[0].strip(";") for match in _COLOUR.finditer(style)}
    return _COLOUR.sub("", style).strip(";"), colours.get("38", ""), colours.get("48", "")


def first_frame(screen: AnyScreen, composer: TextArea) -> StartFrame | None:
    """Return what the screen with the composer shows; None if something was typed or another screen covers it."""
    place, app = composer.content_region, screen.app
    if app.screen is not screen or composer.text or place.height != 1:
        return None
    # Textual offers neither in public.
    compositor: Any = getattr(screen, "_compositor")  # noqa: B009
    colours: ColorSystem = getattr(app.console, "_color_system") or ColorSystem.TRUECOLOR  # noqa: B009
    strips: list[Strip] = compositor.render_strips()
    cursor = [segment.style or Style() for segment in strips[place.y].crop(place.x, place.x + 1)]
    text, *under = (f"\x1b[{Strip.render_ansi(style, colours)}m" for style in (composer.rich_style, *cursor))
    rows = [strip.render(app.console) for strip in strips]
    return StartFrame(rows, screen.size.width, (place.y, place.x, place.width), text, "".join(under))
