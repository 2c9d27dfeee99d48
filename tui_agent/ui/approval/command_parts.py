"""The parts of a command, one below the other, each with its verdict and the operator before it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.permissions import DecisionPart, Verdict
from tui_agent.ui.text.argument_rows import VERDICT_SIGNS, exact_rows, marked_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import visible
from tui_agent.ui.text.styled_lines import prefixed_lines, width_of_runs, wrapped

from .approval_reasons import part_note

MAX_SPLIT = 12
"""Most parts of a command that is shown part by part instead of as a whole."""

_GAP = "   "
"""Least blanks between a part and its note."""
_RUNS = "runs"
"""Operator of a part that the part before runs."""
_AGAIN = "again"
"""Operator of another finding on an earlier part."""
_STRICTNESS: tuple[Verdict, ...] = ("allow", "ask", "deny")
_OPERATORS = {"|": " | ", "&&": " && ", "||": " || ", ";": "; "}


def is_split(command: str, parts: Sequence[DecisionPart]) -> bool:
    """True if the parts with their operators are the whole command, byte for byte, so that they can stand for it."""
    own = [part for part in parts if part.operator not in (_RUNS, _AGAIN)]
    if not 2 <= len(own) <= MAX_SPLIT or "\n" in command or not all(part.text for part in own):
        return False
    joined = [(_OPERATORS.get(part.operator, "\n") if number else "") + part.text for number, part in enumerate(own)]
    return "".join(joined) == command


def split_rows(parts: Sequence[DecisionPart], width: int) -> list[Line]:
    """Return a command as its parts, each with what it runs besides itself."""
    return _rows(_joined(parts, with_inner=True), width, "bash")


def part_rows(command: str, parts: Sequence[DecisionPart], width: int) -> list[Line]:
    """Return the parts below a command, with a heading; nothing for a single part that is the command."""
    if len(parts) < 2 and not any(part_note(part) and part.text != command for part in parts):
        return []
    own = [entry for entry in _joined(parts) if entry.text]
    asking = sum(entry.decision != "allow" for entry in own)
    heading = count_text(len(own), "part")
    if 0 < asking < len(own):
        heading += f", {asking} not allowed yet"
    return [Line(((heading, "muted"),)), *_rows(_joined(parts), width)]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One part as it is shown."""

    operator: str
    text: str
    decision: Verdict
    note: str

    def joined_with(self, inner: "_Entry") -> "_Entry":
        """Return the part with the stricter verdict and the notes of both."""
        stricter = max(self.decision, inner.decision, key=_STRICTNESS.index)
        return replace(self, decision=stricter, note=", ".join(dict.fromkeys(filter(None, (self.note, inner.note)))))


def _joined(parts: Sequence[DecisionPart], *, with_inner: bool = False) -> list[_Entry]:
    """Return the parts, each with all findings on it and, if wanted, with what it runs besides itself."""
    entries: list[_Entry] = []
    for part in parts:
        entry = _entry(part)
        same = next((place for place, one in enumerate(entries) if one.text == part.text), None)
        if part.operator == _AGAIN and same is not None:
            entries[same] = entries[same].joined_with(entry)
        elif part.operator == _RUNS and with_inner and entries:
            entries[-1] = entries[-1].joined_with(entry)
        else:
            entries.append(entry)
    return entries


def _entry(part: DecisionPart) -> _Entry:
    operator = {_RUNS: "↳", _AGAIN: ""}.get(part.operator, part.operator)
    return _Entry(operator, part.text, part.decision, visible(part_note(part)).replace("\n", " "))


def _rows(entries: Sequence[_Entry], width: int, language: str = "") -> list[Line]:
    """Return the rows of parts, with operators and notes in columns; on a ground if there is a language."""
    room = max((cell_len(entry.operator) for entry in entries), default=0)
    # The ground begins with a blank.
    margin = room + 1 if room and not language else room
    left = width - 2 - margin
    texts = [exact_rows(entry.text, left, language) if language else marked_rows(entry.text, left) for entry in entries]
    cells = [width_of_runs(text[0].runs) if len(text) == 1 else left for text in texts]
    room_for_notes = [left - len(_GAP) - cell_len(entry.note) if entry.note else left for entry in entries]
    # The widest part with its note beside it decides where all notes begin.
    column = max((one for one, most in zip(cells, room_for_notes, strict=True) if one <= most), default=0)
    rows: list[Line] = []
    for entry, text in zip(entries, texts, strict=True):
        sign, style = VERDICT_SIGNS[entry.decision]
        first: list[Run] = [(f"{sign} ", style), (entry.operator.ljust(margin), "key")]
        rows += prefixed_lines(_with_note(text, entry, left, column), first, ((" " * (2 + margin), ""),))
    return rows


def _with_note(rows: list[Line], entry: _Entry, width: int, column: int) -> list[Line]:
    """Return the rows of a part with its note behind the column, or below it where the row is too narrow."""
    note = entry.note
    if not entry.text:
        return wrapped([(note, "muted")], width)
    blanks = column - width_of_runs(rows[0].runs)
    if len(rows) == 1 and blanks >= 0 and column + len(_GAP) + cell_len(note) <= width:
        behind: list[Run] = [(" " * blanks, rows[0].fill)] if blanks else []
        behind += [(_GAP + note, "muted")] if note else []
        return [replace(rows[0], runs=(*rows[0].runs, *behind), fill="")]
    if not note or entry.decision == "allow":
        return rows  # What is allowed is not worth a row.
    return [*rows, *(row.prefixed(("  ", "")) for row in wrapped([(note, "muted")], width - 2))]
