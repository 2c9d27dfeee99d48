"""Parser of unified diffs: removed and added lines, with the changed characters inside them."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Literal

from tui_agent.protocol.visible_text import SURROGATES_NOTE, escape_of, unescape_surrogates

from .sanitiser import sanitise, visible

DiffKind = Literal["same", "added", "removed", "hunk", "file", "note"]
"""`hunk` begins another part of a file, `file` another file; a `note` is about the line above."""

Span = tuple[int, int]

MAX_LINES = 20_000
"""Most lines read of a diff; a note names the number of others."""
LONGEST_COMPARED = 600
"""Most characters of a line that is compared with its counterpart."""
MAX_COMPARED = 60
"""Most changed lines in a row of which each is compared with its counterpart."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff, without its sign."""

    kind: DiffKind
    text: str
    """Text, safe to show; for a hunk, its position in the file."""
    old: int | None = None
    """Line number in the old file, from 1."""
    new: int | None = None
    """Line number in the new file."""
    changes: tuple[Span, ...] = ()
    """Characters that differ from the line's counterpart; empty if the whole line does."""


def read_diff(text: str, clean: Callable[[str], str] = sanitise) -> list[DiffLine]:
    """Return the lines of a unified diff. Other lines become notes, so that no text is lost.

    Args:
        text: the diff.
        clean: makes one line safe to show.
    """

    def whole(line: str) -> str:
        # Other functions treat these characters as line ends; a diff does not.
        return clean(line.translate(_INNER_ENDS))

    raw = text.split("\n")
    if raw and not raw[-1]:
        raw.pop()
    lines = list(_with_changes(list(_read(islice(raw, MAX_LINES), clean if clean is visible else whole))))
    if len(raw) > MAX_LINES:
        lines.append(DiffLine("note", f"… {len(raw) - MAX_LINES:,} more lines"))
    return lines


def is_cut(text: str) -> bool:
    """Return True if `read_diff` would leave lines of a diff out."""
    return text.removesuffix("\n").count("\n") >= MAX_LINES


def diff_counts(lines: Sequence[DiffLine]) -> tuple[int, int]:
    """Return the numbers of added and removed lines."""
    return sum(line.kind == "added" for line in lines), sum(line.kind == "removed" for line in lines)


_INNER_ENDS = {ord(end): escape_of(end) for end in "\r\x0b\x0c\x85"}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_LEAST_ALIKE = 0.5
"""Least similarity of lines that are compared; less similar ones are simply other lines."""


def _read(raw: Iterator[str], clean: Callable[[str], str]) -> Iterator[DiffLine]:
    old = new = old_left = new_left = 0
    before = ""
    notes: list[DiffLine] = []
    begins_with_halves = has_halves = False
    for coded in raw:
        in_hunk = old_left > 0 or new_left > 0
        if not in_hunk and coded == SURROGATES_NOTE:
            begins_with_halves = True
            continue
        if not in_hunk and coded.startswith("--- "):
            begins_with_halves, has_halves = False, begins_with_halves
        line = unescape_surrogates(coded) if has_halves else coded
        sign, text = line[:1], clean(line[1:])
        if sign == "\\":
            yield DiffLine("note", text.strip())
        elif old_left > 0 and new_left > 0 and sign in ("", " "):
            yield DiffLine("same", text, old, new)
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
        elif old_left > 0 and sign == "-":
            yield DiffLine("removed", text, old=old)
            old, old_left = old + 1, old_left - 1
        elif new_left > 0 and sign == "+":
            yield DiffLine("added", text, new=new)
            new, new_left = new + 1, new_left - 1
        elif (hunk := _HUNK.match(line)) is not None:
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            yield DiffLine("hunk", clean(hunk[5]), old, new)
        elif line.startswith("# "):
            notes.append(DiffLine("note", text.strip()))
        elif line.startswith("+++ "):
            yield DiffLine("file", before if line == "+++ /dev/null" else _path(clean(line[4:])))
            yield from notes
            notes = []
        elif line.startswith("--- "):
            before = clean(line[4:]).removeprefix("a/").removesuffix("\t")
        elif line:
            yield DiffLine("note", clean(line))


def _path(name: str) -> str:
    return name.removeprefix("b/").removesuffix("\t")


def _with_changes(lines: list[DiffLine]) -> Iterator[DiffLine]:
    """Yield the lines, with each removed one compared with the one added in its place."""
    place = 0
    while place < len(lines):
        removed = _run(lines, place, "removed")
        added = _run(lines, place + len(removed), "added")
        if not removed or not added or len(removed) > MAX_COMPARED or len(added) > MAX_COMPARED:
            yield from (*removed, *added)
            place += len(removed) + len(added)
            if not removed and not added:
                yield lines[place]
                place += 1
            continue
        yield from _compared(removed, added)
        place += len(removed) + len(added)


def _compared(removed: Sequence[DiffLine], added: Sequence[DiffLine]) -> list[DiffLine]:
    """Return removed and added lines, each of them with the characters that differ from its counterpart."""
    lines = [*removed, *added]
    nearest = 0
    for number, before in enumerate(removed):
        spare = len(added) - nearest - (len(removed) - number)
        for other in range(nearest, min(len(added), nearest + max(0, spare) + 1)):
            spans = _changes(before.text, added[other].text)
            if spans is not None:
                lines[number] = replace(before, changes=spans[0])
                lines[len(removed) + other] = replace(added[other], changes=spans[1])
                nearest = other + 1
                break
    return lines


def _run(lines: Sequence[DiffLine], place: int, kind: DiffKind) -> list[DiffLine]:
    end = place
    while end < len(lines) and lines[end].kind == kind:
        end += 1
    return list(lines[place:end])


def _changes(before: str, after: str) -> tuple[tuple[Span, ...], tuple[Span, ...]] | None:
    """Return the differences of two lines; None if they are too long or too different."""
    if max(len(before), len(after)) > LONGEST_COMPARED:
        return None
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.quick_ratio() < _LEAST_ALIKE or matcher.ratio() < _LEAST_ALIKE:
        return None
    removed: list[Span] = []
    added: list[Span] = []
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag != "equal":
            removed.append(_span(old, old_from, old_to))
            added.append(_span(new, new_from, new_to))
    return tuple(span for span in removed if span[0] < span[1]), tuple(span for span in added if span[0] < span[1])


def _span(tokens: Sequence[str], start: int, end: int) -> Span:
    """Return the characters of some tokens."""
    first = sum(map(len, tokens[:start]))
    return first, first + sum(map(len, tokens[start:end]))
