"""The modes of vim while typing: in normal mode, letters move the cursor and change the text.

Counts, the operators `d`, `c` and `y`, and the usual motions; keys that type nothing keep their meaning in both modes.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .paste_collapse import CollapsingPasteArea

Location: TypeAlias = tuple[int, int]
"""Row and column."""
VimMode: TypeAlias = Literal["insert", "normal"]

MOST = 999
"""Largest count."""
_TYPED_FIRST = "/!@"
"""Characters that begin a command or mention: in an empty field they are typed, also in normal mode."""


@dataclass(frozen=True, slots=True)
class Target:
    """The place to which a motion leads."""

    offset: int
    inclusive: bool = False
    """True if an operator also takes the character there."""
    linewise: bool = False
    """True if an operator takes whole lines."""


Motion: TypeAlias = Callable[[str, int], Target]
"""Returns where a motion leads from an offset of a text."""


class VimKeys:
    """The mode, and what was typed of a command so far."""

    def __init__(self, field: CollapsingPasteArea, earlier: Callable[[], object], later: Callable[[], object]) -> None:
        """Begin in insert mode; `earlier` and `later` move the cursor by a row, or recall another text."""
        self.mode: VimMode = "insert"
        """The present mode."""
        self._field = field
        self._earlier, self._later = earlier, later
        self._count = ""
        self._operator = ""
        self._prefix = ""
        """`g` or `r`, which need another key."""
        self._kept = ""
        """Text that was deleted or copied last; whole lines end in a line feed."""

    def insert(self) -> None:
        """Change to insert mode."""
        self.mode = "insert"
        self._forget()

    def press(self, key: str, character: str | None) -> bool:
        """Handle a key, with the character that it types, if any; return False if the key keeps its usual meaning."""
        if self.mode == "insert":
            return key == "escape" and self._leave_insert()
        if key == "escape":
            pending = bool(self._count or self._operator or self._prefix)
            self._forget()
            return pending
        # As in vim, it moves and deletes nothing.
        if key == "backspace":
            character = "h"
        if character is None or not character.isprintable():
            return False
        if character in _TYPED_FIRST and not any(self._field.rows):
            self.insert()
            return False
        self._type(" " if key == "space" else character)
        return True

    # --- reading a command --------------------------------------------------------------------------------------------

    def _type(self, letter: str) -> None:
        if self._prefix == "r":
            self._replace_letter(letter)
        elif self._prefix == "g":
            self._prefix = ""
            self._move_or_operate("gg" if letter == "g" else "")
        elif letter.isdecimal() and (letter != "0" or self._count):
            self._count += letter
            return
        elif letter in ("g", "r") and not (letter == "r" and self._operator):
            self._prefix = letter
            return
        elif letter in "dcy" and not self._operator:
            self._operator = letter
            return
        elif letter == self._operator:
            self._take_rows(*self._row_range(self._number - 1))
        elif letter in _MOTIONS or letter in "jk":
            self._move_or_operate(letter)
        elif not self._operator:
            self._command(letter)
        self._forget()

    @property
    def _number(self) -> int:
        return min(MOST, int(self._count or 1))

    def _forget(self) -> None:
        self._count = self._operator = self._prefix = ""

    def _command(self, letter: str) -> None:
        (row, column), rows = self._field.cursor_location, self._field.rows
        line = rows[row]
        match letter:
            case "i":
                self.insert()
            case "a":
                self._insert_at((row, min(len(line), column + 1)))
            case "I":
                self._insert_at((row, len(line) - len(line.lstrip())))
            case "A":
                self._insert_at((row, len(line)))
            case "o":
                self._field.change("\n", (row, len(line)), (row, len(line)))
                self.insert()
            case "O":
                self._field.change("\n", (row, 0), (row, 0))
                self._insert_at((row, 0))
            case "x" | "X" | "s":
                first = max(0, column - self._number) if letter == "X" else column
                last = column if letter == "X" else min(len(line), column + self._number)
                self._take((row, first), (row, last), "c" if letter == "s" else "d")
            case "D" | "C" | "Y":
                self._take((row, column), (row, len(line)), letter.lower())
            case "S":
                self._operator = "c"
                self._take_rows(row, row)
            case "p" | "P":
                self._put(before=letter == "P")
            case "u":
                for _ in range(self._number):
                    self._field.undo()
                self._clamp()
            case _:
                pass

    # --- motions ------------------------------------------------------------------------------------------------------

    def _move_or_operate(self, motion: str) -> None:
        """Move the cursor, or apply the operator from the cursor to where the motion leads."""
        if motion in ("j", "k"):
            self._by_rows(1 if motion == "j" else -1)
        elif motion:
            text, offset = "\n".join(self._field.rows), self._offset
            # As in vim, `cw` leaves the blanks behind the word.
            if motion == "w" and self._operator == "c" and not text[offset : offset + 1].isspace():
                motion = "e"
            target = Target(offset)
            for _ in range(self._number):
                target = _MOTIONS[motion](text, target.offset)
            self._go(text, offset, target, motion)

    def _go(self, text: str, offset: int, target: Target, motion: str) -> None:
        if not self._operator:
            self._field.move_cursor(_location(text, target.offset))
            self._clamp()
        elif target.linewise:
            first, last = sorted((_location(text, offset)[0], _location(text, target.offset)[0]))
            self._take_rows(first, last)
        else:
            start, end = sorted((offset, target.offset))
            end += target.inclusive
            if motion == "w" and "\n" in text[start:end]:
                # The last word of a line ends with the line.
                end = start + len(text[start:end].rstrip()) if text[start:end].strip() else text.index("\n", start)
            self._take(_location(text, start), _location(text, min(end, len(text))), self._operator)

    def _by_rows(self, direction: int) -> None:
        if self._operator:
            self._take_rows(*self._row_range(direction * self._number))
            return
        for _ in range(self._number):
            (self._earlier if direction < 0 else self._later)()
        self._clamp()

    def _row_range(self, more: int) -> tuple[int, int]:
        row, last = self._field.cursor_location[0], len(self._field.rows) - 1
        first, end = sorted((row, max(0, min(last, row + more))))
        return first, end

    @property
    def _offset(self) -> int:
        row, column = self._field.cursor_location
        return sum(len(line) + 1 for line in self._field.rows[:row]) + column

    # --- changes ------------------------------------------------------------------------------------------------------

    def _take(self, start: Location, end: Location, operator: str) -> None:
        """Delete, change or copy a part of the text."""
        rows = self._field.rows
        if start[0] == end[0]:
            self._kept = rows[start[0]][start[1] : end[1]]
        else:
            self._kept = "\n".join((rows[start[0]][start[1] :], *rows[start[0] + 1 : end[0]], rows[end[0]][: end[1]]))
        if operator == "y":
            self._field.move_cursor(start)
        else:
            self._field.change("", start, end)
        if operator == "c":
            self.insert()
        else:
            self._clamp()

    def _take_rows(self, first: int, last: int) -> None:
        """Delete, change or copy whole lines."""
        rows = self._field.rows
        self._kept = "".join(f"{line}\n" for line in rows[first : last + 1])
        match self._operator:
            case "y":
                self._field.move_cursor((first, self._field.cursor_location[1]))
            case "c":
                self._field.change("", (first, 0), (last, len(rows[last])))
                self.insert()
            # Lines go with the line feed behind them, the last ones with the one before them.
            case _ if last + 1 < len(rows):
                self._field.change("", (first, 0), (last + 1, 0))
            case _:
                start = (first - 1, len(rows[first - 1])) if first else (0, 0)
                self._field.change("", start, (last, len(rows[last])))
                self._field.move_cursor((max(0, first - 1), 0))
        self._clamp()

    def _put(self, *, before: bool) -> None:
        """Insert what was deleted or copied last, at or behind the cursor."""
        row, column = self._field.cursor_location
        line, text = self._field.rows[row], self._kept * self._number
        if not text:
            return
        if text.endswith("\n"):
            place = (row, 0) if before else (row, len(line))
            self._field.change(text if before else f"\n{text[:-1]}", place, place)
            self._field.move_cursor((row if before else row + 1, 0))
        else:
            place = (row, column if before else min(len(line), column + 1))
            self._field.change(text, place, place)
            row, column = self._field.cursor_location
            self._field.move_cursor((row, max(0, column - 1)))

    def _replace_letter(self, letter: str) -> None:
        (row, column), number = self._field.cursor_location, self._number
        if column + number <= len(self._field.rows[row]):
            self._field.change(letter * number, (row, column), (row, column + number))
            self._field.move_cursor((row, column + number - 1))

    def _insert_at(self, place: Location) -> None:
        self._field.move_cursor(place)
        self.insert()

    def _leave_insert(self) -> bool:
        self.mode = "normal"
        row, column = self._field.cursor_location
        self._field.move_cursor((row, max(0, column - 1)))
        return True

    def _clamp(self) -> None:
        """Put the cursor on a character: in normal mode it is never behind the last one."""
        row, column = self._field.cursor_location
        last = max(0, len(self._field.rows[row]) - 1)
        if self.mode == "normal" and column > last:
            self._field.move_cursor((row, last))


# --- motions over a text ----------------------------------------------------------------------------------------------


def _location(text: str, offset: int) -> Location:
    before = text[:offset]
    return before.count("\n"), offset - (before.rfind("\n") + 1)


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def _kind(character: str) -> int:
    """Return 0 for blanks, 1 for letters, digits and marks, 2 for the rest."""
    if character.isspace():
        return 0
    return 1 if character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M" else 2


def _next_word(text: str, offset: int) -> Target:
    place = offset
    while place < len(text) and _kind(text[place]) and _kind(text[place]) == _kind(text[offset]):
        place += 1
    while place < len(text) and not _kind(text[place]):
        place += 1
    return Target(place)


def _word_end(text: str, offset: int) -> Target:
    place = offset + 1
    while place < len(text) and not _kind(text[place]):
        place += 1
    while place + 1 < len(text) and _kind(text[place + 1]) == _kind(text[place]):
        place += 1
    return Target(max(0, min(place, len(text) - 1)), inclusive=True)


def _previous_word(text: str, offset: int) -> Target:
    place = max(0, offset - 1)
    while place and not _kind(text[place]):
        place -= 1
    while place and _kind(text[place - 1]) == _kind(text[place]):
        place -= 1
    return Target(place)


def _first_letter(text: str, offset: int) -> Target:
    start = _line_start(text, offset)
    line = text[start : _line_end(text, offset)]
    return Target(start + len(line) - len(line.lstrip()))


_MOTIONS: dict[str, Motion] = {
    "h": lambda text, offset: Target(max(_line_start(text, offset), offset - 1)),
    "l": lambda text, offset: Target(min(_line_end(text, offset), offset + 1)),
    " ": lambda text, offset: Target(min(_line_end(text, offset), offset + 1)),
    "0": lambda text, offset: Target(_line_start(text, offset)),
    "^": _first_letter,
    "$": lambda text, offset: Target(_line_end(text, offset)),
    "w": _next_word,
    "e": _word_end,
    "b": _previous_word,
    "gg": lambda text, offset: Target(0, linewise=True),
    "G": lambda text, offset: Target(_line_start(text, len(text)), linewise=True),
}
