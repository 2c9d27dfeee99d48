"""Diffs as rows, everywhere on the screen: in one column, or with both sides beside each other if there is room.

Rows are laid out without the changed words and the colours of code; a row gets them when it is drawn.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property, partial
from itertools import zip_longest
from typing import TypeAlias

from tui_agent.protocol.diffs import DiffHunk, DiffLine, FileDiff, LineKind
from tui_agent.protocol.visible_text import escape_of

from .code_highlighter import MAX_PIECE_LINES, colour_lines, language_of
from .line import NARROWEST, Line, Run
from .sanitiser import WRAP_SIGN, sanitise, visible
from .styled_lines import hard_wrapped, runs_between, styled_over, styled_under, width_of_runs, wrapped

SPLIT_WIDTH = 110
"""Least cells for both sides beside each other."""
MAX_LINES = 20_000
"""Most lines drawn of a diff; a note names the number of others."""
LONGEST_COMPARED = 600
"""Most characters of a line that is compared with its counterpart."""
MAX_COMPARED = 60
"""Most changed lines in a row of which each is compared with its counterpart."""

_MARGIN_BESIDE = 6
"""Cells of a number and a sign beside most lines."""

Clean: TypeAlias = Callable[[str], str]
"""Makes one line safe to show."""
Span: TypeAlias = tuple[int, int]

_SIGNS: dict[LineKind, str] = {"same": " ", "added": "+", "removed": "-"}
_NO_END = "No newline at end of file"
_INNER_ENDS = {ord(end): escape_of(end) for end in "\r\x0b\x0c\x85"}
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_CHANGED = 0.6
"""Most of a line that is marked as changed words."""
_LEAST_ALIKE = 0.5
"""Least similarity of lines that are compared; less similar ones are simply other lines."""


def diff_rows(
    files: Sequence[FileDiff],
    width: int,
    *,
    clean: Clean = sanitise,
    named: bool | None = None,
    split: bool | None = None,
    most: int = MAX_LINES,
) -> list[Line]:
    """Return the rows of a diff, each at most `width` cells wide, and in a very narrow window about `NARROWEST`.

    Args:
        files: the changed files.
        width: cells of a row.
        clean: makes one line safe to show; `visible` shows every character.
        named: True to name the files; None: if there are several.
        split: True to show the sides beside each other; None: if there is room.
        most: lines to show; a note names the number of others.
    """
    several = len(files) > 1 if named is None else named
    rows: list[Line] = []
    left = most
    for file in files:
        if several and file.path:
            rows.extend([*([Line()] if rows else []), Line(((clean(file.path), "strong"),))])
        rows.extend(row for note in file.notes for row in _note_rows(clean(note).strip(), width))
        shown, left = _first_hunks(file.hunks, left)
        rows.extend(_Layout(file, shown, width, clean, split).rows(is_first=not rows))
        if file.left_out:
            rows.extend(_note_rows(f"… {file.left_out:,} more lines", width))
    if (hidden := line_count(files) - most) > 0:
        rows.extend(_note_rows(f"… {hidden:,} more lines", width))
    return rows


def line_count(files: Iterable[FileDiff]) -> int:
    """Return the number of lines of a diff, context included, without those that it leaves out."""
    return sum(len(hunk.lines) for file in files for hunk in file.hunks)


def _first_hunks(hunks: Sequence[DiffHunk], most: int) -> tuple[list[tuple[DiffHunk, Sequence[DiffLine]]], int]:
    """Return hunks with their first lines, at most `most` altogether, and how many more there could be."""
    shown: list[tuple[DiffHunk, Sequence[DiffLine]]] = []
    for hunk in hunks:
        if most > 0:
            shown.append((hunk, hunk.lines[:most]))
        most -= len(hunk.lines)
    return shown, max(0, most)


def _note_rows(note: str, width: int) -> list[Line]:
    return wrapped([(note, "muted")], width)


class _Layout:
    """The rows of one file."""

    def __init__(
        self,
        file: FileDiff,
        hunks: Sequence[tuple[DiffHunk, Sequence[DiffLine]]],
        width: int,
        clean: Clean,
        split: bool | None,
    ) -> None:
        self._file = file
        self._hunks = hunks
        self._width = width
        self._clean = clean
        lines = [line for _, shown in hunks for line in shown]
        if split is None:
            # One of its sides would be empty.
            is_whole = file.is_new or file.is_deleted
            split = width >= SPLIT_WIDTH and not is_whole and any(line.kind == "removed" for line in lines)
            # Beside each other, long lines would be broken, and what is the same would be read twice.
            split = split and max(len(line.text) for line in lines) + _MARGIN_BESIDE <= (width - 3) // 2
        self._beside = split
        numbers = ((line.old or 0, line.new or 0) if split else (line.new or line.old or 0,) for line in lines)
        # One width for the file, so that lines stay aligned where numbers get another digit.
        self._digits = len(str(max((max(pair) for pair in numbers), default=0)))

    def rows(self, *, is_first: bool) -> list[Line]:
        """Return the rows; `is_first` if nothing is above them."""
        rows: list[Line] = []
        for hunk, lines in self._hunks:
            if rows or not is_first or hunk.heading:
                head = (" " * max(0, self._digits - 1) + "⋯ ", "line-number")
                rows.extend(wrapped([head, (self._clean(hunk.heading), "muted")], self._width))
            shown = _ShownLines(lines, self._clean, self._file.path)
            rows.extend(self._rows_beside(shown) if self._beside else self._rows_below(shown))
        return rows

    def _rows_below(self, shown: "_ShownLines") -> Iterator[Line]:
        for index, line in enumerate(shown.lines):
            yield from self._line_rows(shown, index, line.new or line.old, self._width)
            if not line.ends:
                yield from _note_rows(_NO_END, self._width)

    def _line_rows(self, shown: "_ShownLines", index: int, number: int | None, width: int) -> list[Line]:
        """Return the rows of one line, after its number and sign."""
        line = shown.lines[index]
        kind = "" if line.kind == "same" else line.kind
        head: Run = (f"{number or '':>{self._digits}} ", f"line-number {kind}".strip())
        sign: Run = (f"{_SIGNS[line.kind]} ", kind)
        if width < self._digits + 3 + NARROWEST:
            head = ("", "")
        margin = len(head[0]) + len(sign[0])
        rows: list[Line] = []
        start = 0
        for row in hard_wrapped([(shown.texts[index], kind)], width - margin, whole_words=True):
            # Without a sign, the rest of a wrapped line would look like an unchanged line.
            prefix = (head, sign) if not rows else ((f"{WRAP_SIGN} ".rjust(margin), kind),)
            end = start + len(row.plain)
            paint = partial(shown.painted, index, start, end)
            rows.append(Line((*(run for run in prefix if run[0]), *row.runs), row.joint, margin, kind, paint))
            start = end
        return rows

    def _rows_beside(self, shown: "_ShownLines") -> Iterator[Line]:
        """Yield rows with the removed lines on the left and the added ones on the right."""
        half = (self._width - 3) // 2
        lines = shown.lines
        for before, after in shown.pairs:
            left = [] if before is None else self._line_rows(shown, before, lines[before].old, half)
            right = [] if after is None else self._line_rows(shown, after, lines[after].new, half)
            for one, other in zip_longest(left, right):
                yield _beside(one, other, half)
            if any(place is not None and not lines[place].ends for place in (before, after)):
                yield from _note_rows(_NO_END, self._width)


def _beside(left: Line | None, right: Line | None, half: int) -> Line:
    """Return two rows as one."""
    first = (*_filled(left, half), (" │ ", "rule"))
    start = sum(len(text) for text, _ in first)

    def painted(runs: Sequence[Run], place: int) -> Sequence[Run]:
        for row, begin in ((left, place), (right, place + start)):
            if row is not None and row.paint is not None:
                runs = row.paint(runs, begin + row.indent)
        return runs

    return Line((*first, *_filled(right, half)), fill=right.fill if right else "", paint=painted)


def _filled(row: Line | None, width: int) -> tuple[Run, ...]:
    """Return a row's runs, padded to `width` cells."""
    if row is None:
        return ((" " * width, ""),)
    missing = width - width_of_runs(row.runs)
    return (*row.runs, (" " * missing, row.fill)) if missing > 0 else row.runs


class _ShownLines:
    """The lines of one hunk, safe to show, with their changed words and the colours of code on demand."""

    def __init__(self, lines: Sequence[DiffLine], clean: Clean, path: str) -> None:
        self.lines = lines
        # Other functions treat some characters as line ends; a diff does not.
        self.texts = [clean(line.text if clean is visible else line.text.translate(_INNER_ENDS)) for line in lines]
        self._path = path
        self._words: dict[int, Sequence[Span]] = {}
        self._colours: dict[tuple[int, int], Sequence[Sequence[Run]]] = {}

    @property
    def pairs(self) -> Iterator[tuple[int | None, int | None]]:
        """Indexes of the old and the new line of each row; None for a side that has none."""
        for first, added, end in self._runs:
            if self.lines[first].kind == "same":
                yield from ((index, index) for index in range(first, end))
            else:
                yield from zip_longest(range(first, added), range(added, end))

    def painted(self, index: int, start: int, end: int, runs: Sequence[Run], place: int) -> Sequence[Run]:
        """Return the runs of a row with the colours of a line.

        Args:
            index: the line.
            start: its first character in the row.
            end: the character after its last one in the row.
            runs: the row.
            place: index in the row of the character at `start`.
        """
        runs = styled_under(runs, place, runs_between(self._coloured(index), start, end))
        for first, behind in self._changed(index):
            if first < end and behind > start:
                word = f"{self.lines[index].kind}-word"
                runs = styled_over(runs, place + max(first, start) - start, place + min(behind, end) - start, word)
        return runs

    @cached_property
    def _runs(self) -> list[tuple[int, int, int]]:
        """Runs of unchanged lines, and of removed and then added ones: first index, that of the first added, end."""
        found: list[tuple[int, int, int]] = []
        first = 0
        while first < len(self.lines):
            added = end = first
            for kind in ("same",) if self.lines[first].kind == "same" else ("removed", "added"):
                added = end
                while end < len(self.lines) and self.lines[end].kind == kind:
                    end += 1
            found.append((first, added, end))
            first = end
        return found

    @cached_property
    def _sides(self) -> tuple[list[int], list[int]]:
        """The indexes of the old and of the new lines."""
        old = [index for index, line in enumerate(self.lines) if line.kind != "added"]
        return old, [index for index, line in enumerate(self.lines) if line.kind != "removed"]

    def _coloured(self, index: int) -> Sequence[Run]:
        """Return a line with the colours of code; of its side, only the lines around it are read."""
        number = 0 if self.lines[index].kind == "removed" else 1
        side = self._sides[number]
        piece, place = divmod(bisect_left(side, index), MAX_PIECE_LINES)
        key = number, piece
        if key not in self._colours:
            part = side[piece * MAX_PIECE_LINES : (piece + 1) * MAX_PIECE_LINES]
            self._colours[key] = colour_lines(language_of(self._path), [self.texts[one] for one in part])
        return self._colours[key][place]

    def _changed(self, index: int) -> Sequence[Span]:
        """Return the characters of a line that differ from its counterpart; empty if the whole line does."""
        if self.lines[index].kind == "same":
            return ()
        if index not in self._words:
            first, added, end = next(run for run in self._runs if run[2] > index)
            # Also for lines without a counterpart, so that each run is compared once.
            self._words.update(dict.fromkeys(range(first, end), ()))
            if max(added - first, end - added) <= MAX_COMPARED:
                self._words.update(_compared(self.texts, first, added, end))
        return self._words[index]


def _compared(texts: Sequence[str], first: int, added: int, end: int) -> Iterator[tuple[int, Sequence[Span]]]:
    """Yield the lines that differ from a counterpart in a part only: index, and the characters that differ."""
    nearest = added
    for removed in range(first, added):
        spare = end - nearest - (added - removed)
        for other in range(nearest, min(end, nearest + max(0, spare) + 1)):
            spans = _changes(texts[removed], texts[other])
            if spans is not None:
                yield removed, spans[0]
                yield other, spans[1]
                # Pairs keep the order of the lines: two that moved past each other are only other lines.
                nearest = other + 1
                break


def _changes(before: str, after: str) -> tuple[Sequence[Span], Sequence[Span]] | None:
    """Return the differences of two lines; None if they are too long or too different."""
    if max(len(before), len(after)) > LONGEST_COMPARED:
        return None
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    # Its heuristic would take frequent signs of a long line for junk.
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    # The cheap upper bound first: `ratio` is quadratic.
    if matcher.quick_ratio() < _LEAST_ALIKE or matcher.ratio() < _LEAST_ALIKE:
        return None
    removed: list[Span] = []
    added: list[Span] = []
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag != "equal":
            removed.append(_span(old, old_from, old_to))
            added.append(_span(new, new_from, new_to))
    removed, added = ([span for span in spans if span[0] < span[1]] for spans in (removed, added))
    # Where most of a line differs, the marks would only say that it is another line.
    return (removed, added) if _share(removed, before) <= _MOST_CHANGED >= _share(added, after) else None


def _share(spans: Sequence[Span], text: str) -> float:
    """Return the share of a line's characters that changed, without blanks."""
    changed = sum(len("".join(text[first:end].split())) for first, end in spans)
    return changed / max(1, len("".join(text.split())))


def _span(tokens: Sequence[str], start: int, end: int) -> Span:
    """Return the characters of some tokens."""
    first = sum(map(len, tokens[:start]))
    return first, first + sum(map(len, tokens[start:end]))
