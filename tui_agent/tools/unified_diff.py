"""Unified diffs in bounded time: equal lines at both ends are skipped, large changes are shown as replaced."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tui_agent.protocol.visible_text import SURROGATES_NOTE, escape_surrogates

CONTEXT = 3
"""Unchanged lines shown before and after a change."""

_MOST_COMPARED = 6_000
"""Most lines, of both sides together, that are compared one by one; beyond, the middle is shown as replaced."""


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff."""

    text: str
    """Empty if nothing differs."""
    added: int = 0
    """Number of added lines."""
    removed: int = 0
    """Number of removed lines."""

    @property
    def counts(self) -> str:
        """The counts as text, such as `+3 −1 lines`."""
        return f"+{self.added} −{self.removed} lines"

    def shortened(self, limit: int) -> "Diff":
        """Return the diff cut after a line to about `limit` characters, with a note on the lines left out."""
        if len(self.text) <= limit:
            return self
        kept = self.text[: self.text.rfind("\n", 0, limit) + 1]
        left = self.text.count("\n") - kept.count("\n")
        return replace(self, text=f"{kept}… {left:,} more lines\n")


def diff_of(old: str, new: str, old_name: str, new_name: str) -> Diff:
    """Return the diff of two texts; different pairs of texts never have the same diff.

    If all lines of a text have the same ending, the lines show no CR; unless both texts use LF, a note above the file
    names says which ending they have. With mixed endings, a CR is part of its line. Lone surrogates, which stand for
    invalid bytes, are escapes, and another note says so.

    Args:
        old: text before the change.
        new: text after the change.
        old_name: name after `---`; `/dev/null` for a new file.
        new_name: name after `+++`.
    """
    ends = (_ends_of(old), _ends_of(new))
    keeps_cr = "mixed" in ends
    before, after = _lines(old, keeps_cr=keeps_cr), _lines(new, keeps_cr=keeps_cr)
    if before == after and (keeps_cr or ends[0] == ends[1]):
        return Diff("")
    hunks: list[str] = []
    if before != after:
        start = _common(before, after)
        end = _common(before[start:][::-1], after[start:][::-1])
        hunks = list(_hunks(before, after, start, end))
    removed = sum(line.startswith("-") for line in hunks)
    added = sum(line.startswith("+") for line in hunks)
    text = "\n".join((*_notes(*ends), f"--- {old_name}", f"+++ {new_name}", *hunks)) + "\n"
    whole = escape_surrogates(text)
    return Diff(text if whole == text else f"{SURROGATES_NOTE}\n{whole}", added, removed)


def replaced_lines(old: str, new: str) -> tuple[int, int]:
    """Return the number of lines removed and added, without the equal lines at both ends.

    An approximation of the counts of the diff, fast at any size.
    """
    before, after = old.splitlines(), new.splitlines()
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return len(before) - start - end, len(after) - start - end


def unchanged_ranges(old: str, new: str) -> list[tuple[int, int]]:
    """Return the ranges of lines of `new` that its diff from `old` leaves unchanged, whatever the line endings are.

    Each is a first line, from 0, and the line after the last; lines were added, removed or replaced between any two.
    """
    before, after = (text.replace("\r\n", "\n").split("\n") for text in (old, new))
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    old_part, new_part = before[start : len(before) - end], after[start : len(after) - end]
    found = [(0, start)]
    if len(old_part) + len(new_part) <= _MOST_COMPARED:
        blocks = difflib.SequenceMatcher(None, old_part, new_part).get_matching_blocks()
        found += [(start + block.b, start + block.b + block.size) for block in blocks]
    found.append((len(after) - end, len(after)))
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
        yield f"# Line endings change from {before} to {after}"
    elif "CR LF" in (before, after):
        yield "# Lines end in CR LF" if after != "none" else "# Lines ended in CR LF"
    if "mixed" in (before, after):
        yield "# A line that ends in CR LF shows its CR"


def _lines(text: str, *, keeps_cr: bool) -> list[str]:
    """Return the lines without their endings; a last line without one gets the mark that diffs show for it."""
    lines = (text if keeps_cr else text.replace("\r\n", "\n")).split("\n")
    last = lines.pop()
    if last:
        lines.append(f"{last}\n\\ No newline at end of file")
    return lines


def _common(one: list[str], other: list[str]) -> int:
    """Return the number of equal lines at the start."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _hunks(before: list[str], after: list[str], start: int, end: int) -> Iterator[str]:
    """Yield the lines below the two names; `start` lines at the top and `end` at the bottom are known to be equal."""
    first = max(0, start - CONTEXT)
    tail = max(0, end - CONTEXT)
    old = before[first : len(before) - tail]
    new = after[first : len(after) - tail]
    top, bottom = start - first, end - tail
    if len(old) + len(new) > _MOST_COMPARED:
        groups = [_whole_replaced(old, new, top, bottom)]
    else:
        groups = list(difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT))
    for group in groups:
        yield _header(group[0][1] + first, group[-1][2] + first, group[0][3] + first, group[-1][4] + first)
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[i1:i2])
            else:
                yield from (f"-{line}" for line in old[i1:i2])
                yield from (f"+{line}" for line in new[j1:j2])


def _whole_replaced(old: list[str], new: list[str], top: int, bottom: int) -> list[tuple[str, int, int, int, int]]:
    """Return one group that replaces everything between the equal lines."""
    old_end, new_end = len(old) - bottom, len(new) - bottom
    return [
        ("equal", 0, top, 0, top),
        ("replace", top, old_end, top, new_end),
        ("equal", old_end, len(old), new_end, len(new)),
    ]


def _header(old_start: int, old_end: int, new_start: int, new_end: int) -> str:
    return f"@@ -{_span(old_start, old_end)} +{_span(new_start, new_end)} @@"


def _span(start: int, end: int) -> str:
    """Format a span as in a unified diff, where an empty span has the number of the line before it."""
    length = end - start
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"
