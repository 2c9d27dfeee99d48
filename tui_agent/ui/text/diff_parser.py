"""Unified diffs, read: which lines went and came, with what changed inside of them."""

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
"""Lines read of a diff; a note tells how many more there are."""
LONGEST_COMPARED = 600
"""Characters of a line in which changes are looked for."""
MAX_COMPARED = 60
"""Changed lines in a row of which each is compared with its counterpart."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff, without its sign."""

    kind: DiffKind
    text: str
    """Made safe; a hunk's is what the diff says of where it is."""
    old: int | None = None
    """Its number before, from 1."""
    new: int | None = None
    """Its number afterwards."""
    changes: tuple[Span, ...] = ()
    """Characters that differ from the line's counterpart; empty where all of it counts."""


def read_diff(text: str, clean: Callable[[str], str] = sanitise) -> list[DiffLine]:
    """The lines of a unified diff. Anything that is none becomes notes, so that nothing shown is lost.

    Args:
        text: The diff as it came.
        clean: Makes one line safe to show.
    """

    def whole(line: str) -> str:
        # These characters end a line elsewhere, but not in a diff.
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
    """How many lines came and went."""
    return sum(line.kind == "added" for line in lines), sum(line.kind == "removed" for line in lines)


_INNER_ENDS = {ord(end): escape_of(end) for end in "\r\x0b\x0c\x85"}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_LEAST_ALIKE = 0.5
"""Lines less alike than this are simply other lines."""


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
    """Lines in which each that went is compared with the one that came in its place."""
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
    """Lines that went and came, each of the former with what differs in its counterpart."""
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
    """What differs in two lines; None where they are too long or too different to say."""
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
    """Characters of some tokens."""
    first = sum(map(len, tokens[:start]))
    return first, first + sum(map(len, tokens[start:end]))
