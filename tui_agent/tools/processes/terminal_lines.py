"""Output as a terminal shows it in the end: of the frames of a progress display, only the last stays.

Only rows that a program overwrites become cells, because these take time; all others stay as their bytes. Colours stay
as sequences, for the screen. Memory is bounded, whatever the program writes.
"""

import re
import unicodedata
from functools import lru_cache
from typing import TypeAlias

REACH = 50
"""Newest rows that a program can still change."""

LONGEST_ROW = 64 * 1024
"""Longest row that a program can still change; a longer one is final up to there."""

_FARTHEST = 1_000
"""Most columns that one sequence moves to the right."""
_LONGEST_SEQUENCE = 512
_TAB = 8
_ACTING = re.compile(rb"\x1b(?!\[[0-9;:]*m)")
"""Matches a sequence that does more than to select colours."""
_UNENDED = re.compile(rb"\r+|\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x18\x1a\x1b\n\r]*\x1b?|[ -/]*)")
_TOKEN = re.compile(
    r"(?P<cleared>(?:[^\n\x00\x1b]*\r\x1b\[[02]?K)+)"
    r"|(?P<frames>(?:[ -~]*\r){2,})"
    r"|(?P<text>[^\x00-\x1f\x7f]+)"
    r"|(?P<colours>\x1b\[[0-9;:]*m)"
    r"|\x1b\[(?P<numbers>[0-?]*)[ -/]*(?P<action>[@-~])"
    r"|\x1b[\]PX^_][^\x07\x18\x1a\x1b\n\r]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*(?P<escape>[0-~])?"
    r"|(?P<nuls>\x00+)"
    r"|(?P<backspaces>\x08+)"
    r"|(?P<control>[\x01-\x1f\x7f])"
)
_COLOURS = re.compile(r"(\x1b\[[0-9;:]*m)")

_Row: TypeAlias = bytes | list[str]
"""Bytes of a row that nothing has overwritten, or its cells: each a character with the colours that begin there, empty
for the second half of a wide one."""


class TerminalLines:
    """Rows of one output. Bytes go in, and come out once nothing can change their row any more."""

    def __init__(self) -> None:
        self._held = b""
        """End of the output that its continuation may change: an incomplete character or sequence."""
        self._rows: list[_Row] = [b""]
        self._row = 0
        self._column = -1
        """Column of the cursor; -1: behind the last character of the last row."""
        self._saved: tuple[int, int] | None = None
        """Row and column of the cursor that a program wants back."""
        self._colours = self._lasting = ""
        """Colours that begin at the next character, and those in force."""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the output; return those that are final now."""
        data = self._held + data
        self._held = data[_end_of_whole(data) :]
        return self._take(data[: len(data) - len(self._held)])

    def pending(self) -> bytes:
        """Return the rows that may still change, as they are now."""
        rows = list(map(_shown, self._rows))
        while len(rows) > self._row + 1 and not rows[-1]:
            rows.pop()
        return b"\n".join(rows)

    def close(self) -> bytes:
        """Return the rest, which is final now."""
        return self._take(self._held) + self.pending() + self._colours.encode()

    def _take(self, data: bytes) -> bytes:
        if self._column < 0:
            data = data.replace(b"\r\n", b"\n")
            if (place := _first_action(data)) < 0:
                return self._append(data)
            start = data.rfind(b"\n", 0, place) + 1
            return self._append(data[:start]) + self._act_on(data[start:])
        return self._act_on(data)

    def _act_on(self, data: bytes) -> bytes:
        for match in _TOKEN.finditer(data.decode("utf-8", "surrogateescape")):
            self._act(match)
        return self._final()

    def _append(self, data: bytes) -> bytes:
        """Add text to the last row."""
        first, *more = data.rsplit(b"\n", REACH)
        last = self._rows[-1]
        text = self._colours.encode() + first
        self._rows[-1] = last + text if isinstance(last, bytes) else _encoded(last) + text
        self._colours = ""
        # Only the last ones can still be in force, and a flood must not be searched as a whole.
        for found in _COLOURS.findall(data[-_LONGEST_SEQUENCE:].decode("utf-8", "replace")) if b"\x1b" in data else ():
            self._lasting = _with_colours(self._lasting, found)
        self._rows += more
        self._row = len(self._rows) - 1
        return self._final()

    def _final(self) -> bytes:
        """Take out the rows that are out of reach."""
        count = max(0, len(self._rows) - REACH)
        final = b"".join(_shown(row) + b"\n" for row in self._rows[:count])
        del self._rows[:count]
        self._row -= count
        if self._saved is not None:
            self._saved = (max(0, self._saved[0] - count), self._saved[1])
        if len(self._rows[self._row]) > LONGEST_ROW:
            final += self.pending()
            self._rows.clear()
            self._rows.append(b"")
            self._row, self._column, self._saved = 0, -1, None
        return final

    def _act(self, match: re.Match[str]) -> None:
        found = match[0]
        match match.lastgroup:
            case "text":
                self._write(found)
            case "cleared":
                self._go_to(0)
                self._erase(2)
            case "frames":
                # A progress bar writes thousands of frames: only what is seen of them in the end is drawn.
                first, *frames, _ = found.split("\r")
                self._write(first)
                self._go_to(0)
                self._write(_overlaid(frames))
                self._go_to(0)
            case "colours":
                self._colours = _with_colours(self._colours, found)
                self._lasting = _with_colours(self._lasting, found)
            case "action":
                self._move(match["action"], match["numbers"])
            case "escape" if found in ("\x1b7", "\x1b8"):
                self._save(back=found == "\x1b8")
            case "escape" if found == "\x1bM":
                self._go_by(-1)
            case "escape" if found == "\x1bc":
                self._begin_row()
            case "backspaces":
                self._cells()
                self._go_to(self._column - len(found))
            case "nuls":
                self._end_row()
            case "control":
                self._control(found)
            case _:
                return

    def _control(self, control: str) -> None:
        match control:
            case "\n":
                self._end_row()
            case "\r":
                self._go_to(0)
            case "\t" if self._column >= 0:
                self._go_to(self._column + _TAB - self._column % _TAB)
            case "\a":
                return
            case _:
                self._write(control)

    def _move(self, action: str, numbers: str) -> None:
        if numbers and not numbers[0].isdigit():
            return
        # More digits are beyond any screen, and converting thousands of them takes long.
        number = int(numbers[:6]) if numbers[:6].isdigit() else 0
        count = max(1, number)
        match action:
            case "A" | "B" | "E" | "F":
                self._go_by(count if action in "BE" else -count)
                self._go_to(0 if action in "EF" else self._column)
            case "C" | "D":
                self._cells()
                self._go_to(self._column + (min(count, _FARTHEST) if action == "C" else -count))
            case "s" | "u" if not numbers:
                self._save(back=action == "u")
            case "X" | "P" | "@":
                self._shift(action, count)
            case "G" | "`":
                self._go_to(min(count, _FARTHEST) - 1)
            case "K":
                self._erase(number)
            case "J" if number == 0:
                self._erase(0)
                del self._rows[self._row + 1 :]
            case "H" | "f" | "d" | "J":
                # A screen of its own is not the place where lines were before: nothing of them gets lost.
                self._begin_row()
            case _:
                return

    def _go_to(self, column: int) -> None:
        # A program may name any column, and cells up to it would be filled.
        self._column = min(max(0, column), LONGEST_ROW)
        self._colours = self._lasting

    def _go_by(self, rows: int) -> None:
        """Move the cursor down, or up; no farther than there are rows within reach."""
        self._cells()
        last = len(self._rows) - 1
        self._row = min(max(self._row + rows, last + 1 - REACH, 0), last)

    def _erase(self, part: int) -> None:
        """Erase the row from the cursor on, up to it, or as a whole."""
        cells = self._cells()
        end = len(cells) if part else self._column
        if part == 1:
            end = self._column + 1
            cells[:end] = [" "] * min(end, len(cells))
        elif part in (0, 2):
            del cells[0 if part == 2 else end :]

    def _shift(self, action: str, count: int) -> None:
        """Blank cells from the cursor on, delete them, or insert blank ones."""
        cells, start = self._cells(), self._column
        if action == "@":
            cells[start:start] = [" "] * min(count, _FARTHEST, max(0, LONGEST_ROW - len(cells)))
            return
        there = cells[start : start + count]
        cells[start : start + count] = [] if action == "P" else [" "] * len(there)

    def _save(self, *, back: bool) -> None:
        """Keep the place of the cursor, or go back to it."""
        self._cells()
        if not back:
            self._saved = (self._row, self._column)
        elif self._saved is not None:
            row, column = self._saved
            self._go_by(row - self._row)
            self._go_to(column)

    def _begin_row(self) -> None:
        """Go to a new row below all others."""
        self._row, self._saved = len(self._rows) - 1, None
        if self._rows[-1]:
            self._end_row()
        self._column = -1

    def _end_row(self) -> None:
        self._row += 1
        self._column = 0
        if self._row == len(self._rows):
            self._rows.append(b"")
            self._column = -1

    def _cells(self) -> list[str]:
        """Return the row of the cursor as cells."""
        row = self._rows[self._row]
        if isinstance(row, bytes):
            row = self._rows[self._row] = _cells_of(row.decode("utf-8", "surrogateescape"))
            self._colours = self._colours if row else self._lasting
        if self._column < 0:
            self._column = len(row)
        return row

    def _write(self, text: str) -> None:
        """Write text without control characters at the cursor."""
        if not text:
            return
        row = self._rows[self._row]
        if self._column < 0 and isinstance(row, bytes):
            self._rows[self._row] = row + f"{self._colours}{text}".encode("utf-8", "surrogateescape")
        else:
            row, new = self._cells(), _cells_of(text)
            start = self._column
            end = self._column = start + len(new)
            row += " " * (start - len(row))
            if start < len(row) and not row[start]:
                row[start - 1] = " "
            if end < len(row) and not row[end]:
                row[end] = " "
            new[0] = self._colours + new[0]
            row[start:end] = new
        self._colours = ""


def _end_of_whole(data: bytes) -> int:
    """Return the length of `data` without an incomplete character or sequence at its end."""
    start = max(data.rfind(b"\x1b", -_LONGEST_SEQUENCE), 0)
    # The end of a string is a sequence itself.
    for place in (data.rfind(b"\x1b", max(0, start - _LONGEST_SEQUENCE), start), start, len(data.rstrip(b"\r"))):
        if place >= 0 and data[place:] and _UNENDED.fullmatch(data, place):
            return place
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            return len(data) - back if back < 2 + (byte >= 0xE0) + (byte >= 0xF0) else len(data)
        if byte < 0x80:
            break
    return len(data)


def _first_action(data: bytes) -> int:
    """Return the place of the first byte that does more than to add text to the last row; -1 without any."""
    places = [place for place in map(data.find, (b"\0", b"\b", b"\r")) if place >= 0]
    if b"\x1b" in data and (match := _ACTING.search(data)):
        places.append(match.start())
    return min(places, default=-1)


def _with_colours(before: str, found: str) -> str:
    """Return the colours in force after one more sequence."""
    ends = found in ("\x1b[m", "\x1b[0m") or len(before) > _LONGEST_SEQUENCE
    return found if ends else before + found


def _overlaid(frames: list[str]) -> str:
    """Return what is seen of frames of plain characters that all begin in the first column."""
    seen = ""
    for frame in reversed(frames):
        if len(frame) > len(seen):
            seen += frame[len(seen) :]
    return seen


def _shown(row: _Row) -> bytes:
    return row if isinstance(row, bytes) else _encoded(row).rstrip(b" ")


def _encoded(cells: list[str]) -> bytes:
    return "".join(cells).encode("utf-8", "surrogateescape")


def _cells_of(text: str) -> list[str]:
    if text.isascii() and text.isprintable():
        return list(text)
    cells: list[str] = []
    colours = ""
    for number, piece in enumerate(_COLOURS.split(text)):
        if number % 2:
            colours += piece
            continue
        for character in piece:
            width = _width(character)
            if character == "\t":
                cells += " " * (_TAB - len(cells) % _TAB)
            elif width == 0 and cells:
                # The second half of a wide character is empty.
                cells[-1 if cells[-1] else -2] += character
            else:
                cells += [colours + character, *([""] if width == 2 else [])]
                colours = ""
    return [*cells[:-1], cells[-1] + colours] if cells else []


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
