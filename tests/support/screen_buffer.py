"""A small terminal emulator: the screen after a program wrote to it.

It supports the sequences of full-screen programs (cursor moves, erasing, the alternate screen, text of any width,
cell styles) and ignores the rest; like a plain terminal it answers no queries.
"""

import re

from rich.cells import get_character_cell_size

_TOKEN = re.compile(
    r"\x1b\[(?P<args>[0-?]*)(?P<mid>[ -/]*)(?P<final>[@-~])"
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"
    r"|(?P<back>\x1bM)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`a-~]"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)",
    re.DOTALL,
)

ALTERNATE_SCREEN = "1049"
SHOWN_CURSOR = "25"
_TO_PUT_BACK = {
    ALTERNATE_SCREEN: "the alternate screen",
    "1000": "mouse clicks",
    "1002": "mouse drags",
    "1003": "mouse moves",
    "1004": "focus reports",
    "1006": "mouse coordinates",
    "1015": "mouse coordinates",
    "2004": "bracketed paste",
    "2026": "synchronised output",
    "2048": "size reports",
}
"""Modes that a program must reset."""

Cell = tuple[str, str]
"""A character (empty in the second half of a wide one), and the colours and weight it was drawn with."""
_EMPTY: Cell = (" ", "")


class ScreenBuffer:
    """Screen as rows of cells."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.modes = {SHOWN_CURSOR}
        """Numbers of the active private modes."""
        self.keyboard_protocols = 0
        """Depth of the kitty keyboard protocol's stack: pushes minus pops."""
        self._cells = self._blank()
        self._row = 0
        self._column = 0
        self._margins = (0, rows - 1)
        """First and last row of the part that scrolls."""
        self._look = ""
        self._rest = ""
        self._main: tuple[list[list[Cell]], int, int] | None = None
        self._changes = 0
        self._lines: tuple[int, list[str]] = (-1, [])
        """The rows as texts after a number of changes: a thread may write while another reads them again and again."""

    @property
    def lines(self) -> list[str]:
        """One text for each row, without trailing blanks."""
        changes, lines = self._lines
        if changes != self._changes:
            changes = self._changes
            lines = ["".join([character for character, _ in row]).rstrip() for row in self._cells]
            self._lines = changes, lines
        return lines

    @property
    def text(self) -> str:
        """The whole screen as text."""
        return "\n".join(self.lines)

    @property
    def row(self) -> int:
        """Row of the cursor, from 0."""
        return self._row

    @property
    def left_behind(self) -> list[str]:
        """Return the modes and settings that a program should have restored but did not."""
        found = [name for number, name in _TO_PUT_BACK.items() if number in self.modes]
        found += ["the keyboard protocol"] if self.keyboard_protocols > 0 else []
        return found + (["a hidden cursor"] if SHOWN_CURSOR not in self.modes else [])

    def look_of(self, text: str, at: int = 0) -> str | None:
        """Return the style of one character of a text, for comparisons only; None if the text is not on the screen."""
        for row in self._cells:
            place = "".join(character or "\0" for character, _ in row).find(text)
            if place >= 0:
                return row[place + at][1]
        return None

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; the screen is empty until the program draws."""
        self.columns, self.rows = columns, rows
        self._cells = self._blank()
        self._row = self._column = 0
        self._margins = (0, rows - 1)
        self._changes += 1

    def feed(self, data: str) -> None:
        """Process output of the program."""
        data = self._rest + data
        place = 0
        while place < len(data):
            match = _TOKEN.match(data, place)
            if match is None:
                if data[place] == "\x1b" and len(data) - place < 4096:
                    break
                place += 1
                continue
            self._act(match)
            place = match.end()
        self._rest = data[place:]
        self._changes += 1

    def _blank(self) -> list[list[Cell]]:
        return [[_EMPTY] * self.columns for _ in range(self.rows)]

    def _act(self, match: re.Match[str]) -> None:
        if match["text"]:
            for character in match["text"]:
                self._put(character)
        elif match["control"]:
            self._control(match["control"])
        elif match["back"]:
            self._previous_line()
        elif match["final"] and not match["mid"]:
            self._sequence(match["final"], match["args"])

    def _sequence(self, final: str, arguments: str) -> None:
        if arguments[:1] == "?" and final in "hl":
            for number in arguments[1:].split(";"):
                self._set_mode(number, on=final == "h")
        elif final == "u" and arguments[:1] in (">", "<"):
            self.keyboard_protocols += 1 if arguments[0] == ">" else -1
        elif arguments[:1] in ("?", ">", "=", "<"):
            return
        elif final == "m":
            kept, style = ("", arguments.lstrip("0;")) if arguments[:1] in ("", "0") else (self._look, arguments)
            self._look = f"{kept};{style}" if style else kept
        else:
            self._command(final, [int(part) for part in re.split("[;:]", arguments) if part.isdigit()])

    def _set_mode(self, number: str, *, on: bool) -> None:
        if number == ALTERNATE_SCREEN and on and self._main is None:
            self._main = self._cells, self._row, self._column
            self._cells = self._blank()
        elif number == ALTERNATE_SCREEN and not on and self._main is not None:
            (self._cells, self._row, self._column), self._main = self._main, None
            self._fit()
        (self.modes.add if on else self.modes.discard)(number)

    def _fit(self) -> None:
        """Fit the cells into the current size, which may have changed on the alternate screen."""
        rows = [[*row, *[_EMPTY] * self.columns][: self.columns] for row in self._cells]
        self._cells = [*rows, *self._blank()][: self.rows]
        self._row, self._column = min(self._row, self.rows - 1), min(self._column, self.columns - 1)

    def _put(self, character: str) -> None:
        width = get_character_cell_size(character)
        if width == 0 or width > self.columns:
            return
        if self._column + width > self.columns:
            self._column = 0
            self._next_line()
        self._cells[self._row][self._column] = (character, self._look)
        if width == 2:
            self._cells[self._row][self._column + 1] = ("", self._look)
        self._column += width

    def _control(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\n":
            self._next_line()
        elif control == "\b":
            self._column = max(self._column - 1, 0)

    def _next_line(self) -> None:
        first, last = self._margins
        if self._row == last:
            self._cells[first : last + 1] = [*self._cells[first + 1 : last + 1], [_EMPTY] * self.columns]
        elif self._row < self.rows - 1:
            self._row += 1

    def _previous_line(self) -> None:
        first, last = self._margins
        if self._row == first:
            self._cells[first : last + 1] = [[_EMPTY] * self.columns, *self._cells[first:last]]
        elif self._row > 0:
            self._row -= 1

    def _command(self, final: str, numbers: list[int]) -> None:
        first = numbers[0] if numbers else 0
        count = max(first, 1)
        if final in "Hf":
            self._row = min(count, self.rows) - 1
            self._column = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.columns) - 1
        elif final == "A":
            self._row = max(self._row - count, 0)
        elif final == "B":
            self._row = min(self._row + count, self.rows - 1)
        elif final == "C":
            self._column = min(self._column + count, self.columns - 1)
        elif final == "D":
            self._column = max(self._column - count, 0)
        elif final == "G":
            self._column = min(count, self.columns) - 1
        elif final == "d":
            self._row = min(count, self.rows) - 1
        elif final == "r":
            self._margins = (count - 1, (numbers[1] if len(numbers) > 1 else self.rows) - 1)
            self._row = self._column = 0
        elif final == "K":
            self._erase_in_line(first)
        elif final == "J":
            self._erase_rows(first)

    def _erase_in_line(self, part: int) -> None:
        row = self._cells[self._row]
        start = self._column if part == 0 else 0
        end = self._column + 1 if part == 1 else self.columns
        row[start:end] = [_EMPTY] * (min(end, self.columns) - start)

    def _erase_rows(self, part: int) -> None:
        if part != 2 and part != 3:
            self._erase_in_line(part)
        rows = {0: range(self._row + 1, self.rows), 1: range(self._row), 2: range(self.rows)}.get(part, range(0))
        for row in rows:
            self._cells[row] = [_EMPTY] * self.columns


def visible(sign: str, look: object) -> dict[str, str]:
    """Return what a cell shows of the sequences in force; no blank shows the colour of text."""
    found = {match[1] or match[0]: match[0] for match in re.finditer(r"([34]8);2;\d+;\d+;\d+|\d+", str(look))}
    return {name: value for name, value in found.items() if sign != " " or name != "38"}
