"""Diffs of two texts in bounded time, with notes on line ends."""

from collections.abc import Iterator
from typing import Literal

from tui_agent.protocol.diffs import (
    Diff,
    FileDiff,
    common_lines,
    hunks_between,
    split_lines,
)


def diff_of(old: str, new: str, old_name: str, new_name: str) -> Diff:
    """Return the diff of two texts, empty if they are equal; different pairs of texts never have the same diff.

    If all lines of a text have the same ending, the lines show no CR; unless both texts use LF, a note above the file
    names says which ending they have. With mixed endings, a CR is part of its line.
    """
    ends = (_ends_of(old), _ends_of(new))
    keeps_cr = "mixed" in ends
    if not keeps_cr:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if old == new and (keeps_cr or ends[0] == ends[1]):
        return Diff()
    hunks = hunks_between(split_lines(old), split_lines(new))
    return Diff.of([FileDiff(old_name, new_name, hunks, tuple(_notes(*ends)))])


def counts_text(diff: Diff) -> str:
    """Return the numbers of changed lines, such as `+3 −1 lines`."""
    return f"+{diff.added} −{diff.removed} lines"


def replaced_lines(old: str, new: str) -> tuple[int, int]:
    """Return the number of lines removed and added, without the equal lines at both ends.

    An approximation of the counts of the diff, fast at any size.
    """
    before, after = old.splitlines(), new.splitlines()
    start, end = common_lines(before, after)
    return len(before) - start - end, len(after) - start - end


def unchanged_ranges(old: str, new: str) -> list[tuple[int, int]]:
    """Return the ranges of lines of `new` that its diff from `old` leaves unchanged, whatever the line endings are.

    Each is a first line, from 0, and the line after the last; lines were added, removed or replaced between any two.
    """
    before, after = (split_lines(f"{text}\n".replace("\r\n", "\n")) for text in (old, new))
    found: list[tuple[int, int]] = []
    start = 0
    for hunk in hunks_between(before, after):
        place = hunk.new_index
        for line in hunk.lines:
            if line.kind != "same":
                found.append((start, place))
                start = place + (line.kind == "added")
            place += line.kind != "removed"
    found.append((start, len(after)))
    return [(first, behind) for first, behind in found if first < behind]


_Ends = Literal["none", "LF", "CR LF", "mixed"]


def _ends_of(text: str) -> _Ends:
    """Return the kind of line endings in a text."""
    every, with_cr = text.count("\n"), text.count("\r\n")
    if not every:
        return "none"
    return "LF" if not with_cr else "CR LF" if with_cr == every else "mixed"


def _notes(before: _Ends, after: _Ends) -> Iterator[str]:
    """Yield notes on line endings; programs that apply the diff take them for comments."""
    if before != after and "none" not in (before, after):
        yield f"Line endings change from {before} to {after}"
    elif "CR LF" in (before, after):
        yield "Lines end in CR LF" if after != "none" else "Lines ended in CR LF"
    if "mixed" in (before, after):
        yield "A line that ends in CR LF shows its CR"
