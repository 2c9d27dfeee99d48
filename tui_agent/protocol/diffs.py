"""Diffs as data: files, hunks and lines with their numbers; their text, and the only reader of such a text."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain
from typing import Any, Literal, NamedTuple

from pydantic_core import CoreSchema, core_schema

from .visible_text import SURROGATES_NOTE, escape_surrogates, unescape_surrogates

CONTEXT = 3
"""Unchanged lines before and after a change; changes closer to each other are one hunk."""
MOST_COMPARED = 6_000
"""Most lines, of both sides together, that are compared one by one; beyond, the middle is shown as replaced."""

NOTHING = "/dev/null"
"""Name of the missing side of a new or a deleted file."""

LineKind = Literal["same", "added", "removed"]
_SIGNS: dict[LineKind, str] = {"same": " ", "added": "+", "removed": "-"}
_NO_END = "\\ No newline at end of file"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
_LEFT_OUT = re.compile(r"… ([\d,]+) more lines")


class DiffLine(NamedTuple):
    """One line of a diff."""

    kind: LineKind
    text: str
    """The line without its end."""
    old: int | None = None
    """Line number in the old file, from 1."""
    new: int | None = None
    """Line number in the new file."""
    ends: bool = True
    """False if no line end follows it in its file."""

    @property
    def whole(self) -> str:
        """The line with its end."""
        return f"{self.text}\n" if self.ends else self.text


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Lines that follow one another, with at least one that changed."""

    old_start: int
    """Number of its first line in the old file; of an empty side, of the line before it."""
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[DiffLine, ...]
    """Fewer than the counts if the diff is cut."""
    heading: str = ""
    """The function or section that it is in."""

    @property
    def header(self) -> str:
        """The `@@` line: line numbers and counts in both files, and the heading."""
        spans = f"-{_span(self.old_start, self.old_count)} +{_span(self.new_start, self.new_count)}"
        return f"@@ {spans} @@{f' {self.heading}' if self.heading else ''}"

    @property
    def text(self) -> str:
        """The hunk as a diff writes it, without a final line end."""
        return "\n".join((self.header, *_written_lines(self.lines)))

    @property
    def old(self) -> tuple[str, ...]:
        """Its lines in the old file, with their ends."""
        return tuple(line.whole for line in self.lines if line.kind != "added")

    @property
    def new(self) -> tuple[str, ...]:
        """Its lines in the new file, with their ends."""
        return tuple(line.whole for line in self.lines if line.kind != "removed")

    @property
    def old_index(self) -> int:
        """Index of its first line among those of the old file, from 0."""
        return self.old_start - bool(self.old_count)

    @property
    def new_index(self) -> int:
        """Index of its first line among those of the new file, from 0."""
        return self.new_start - bool(self.new_count)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The changes of one file."""

    old_name: str = ""
    """Name as diffs write it, such as `a/src/x.py`; `NOTHING` for a new file, empty if it is not known."""
    new_name: str = ""
    hunks: tuple[DiffHunk, ...] = ()
    notes: tuple[str, ...] = ()
    """Facts that no line shows, such as other line ends; lines of a text from outside that belong to no diff."""
    left_out: int = 0
    """Number of lines that were cut from its text."""

    @property
    def path(self) -> str:
        """The new path, of a deleted file the old one."""
        if self.is_deleted:
            # Programs write a tab behind a name with blanks.
            return self.old_name.removeprefix("a/").removesuffix("\t")
        return self.new_name.removeprefix("b/").removesuffix("\t")

    @property
    def is_new(self) -> bool:
        """True if the file did not exist."""
        return self.old_name == NOTHING

    @property
    def is_deleted(self) -> bool:
        """True if the file does not exist any more."""
        return self.new_name == NOTHING

    @property
    def lines(self) -> Iterator[DiffLine]:
        """The lines of all hunks."""
        return (line for hunk in self.hunks for line in hunk.lines)

    @property
    def text(self) -> str:
        """The diff as programs read it: `notes`, names, hunks, and the number of lines `left_out` in a last line.

        Lone surrogates are escapes; `SURROGATES_NOTE` is then the first line.
        """
        notes = (f"# {note}" for note in self.notes)
        more = [f"… {self.left_out:,} more lines"] if self.left_out else []
        names = (f"--- {self.old_name}", f"+++ {self.new_name}")
        text = "\n".join((*notes, *names, *(hunk.text for hunk in self.hunks), *more)) + "\n"
        escaped = escape_surrogates(text)
        return text if escaped == text else f"{SURROGATES_NOTE}\n{escaped}"


class Diff(str):
    """The text of a diff, which journals and hooks have, together with its files, hunks and lines.

    A tool makes both at once (`of`); a text from a journal, another program or a server is read when it is first drawn.
    """

    _files: tuple[FileDiff, ...] | None
    _counts: tuple[int, int] | None
    _parts: "Sequence[Diff]"

    def __new__(cls, text: str = "", *, counts: tuple[int, int] | None = None) -> "Diff":
        """Return the diff with a text, empty if nothing differs; `counts` are for a text that is cut."""
        diff = super().__new__(cls, text)
        diff._files, diff._counts, diff._parts = None, counts, ()
        return diff

    @classmethod
    def of(cls, files: Iterable[FileDiff]) -> "Diff":
        """Return the diff of some files."""
        found = tuple(files)
        diff = cls("".join(file.text for file in found))
        diff._files = found
        return diff

    @classmethod
    def joined(cls, diffs: "Iterable[Diff]") -> "Diff":
        """Return several diffs as one, without empty ones and without a final line end."""
        parts = [diff for diff in diffs if diff]
        whole = cls("\n".join(diff.rstrip("\n") for diff in parts))
        whole._parts = parts
        return whole

    @property
    def files(self) -> tuple[FileDiff, ...]:
        """The files; text that belongs to no diff is in their notes."""
        if self._files is None:
            found = (part.files for part in self._parts) if self._parts else (_read(self),)
            self._files = tuple(chain.from_iterable(found))
        return self._files

    @property
    def hunks(self) -> tuple[DiffHunk, ...]:
        """The hunks of all files."""
        return tuple(hunk for file in self.files for hunk in file.hunks)

    @property
    def added(self) -> int:
        """Number of added lines."""
        return self._lines_counted[0]

    @property
    def removed(self) -> int:
        """Number of removed lines."""
        return self._lines_counted[1]

    @property
    def _lines_counted(self) -> tuple[int, int]:
        if self._counts is None:
            kinds = [line.kind for file in self.files for line in file.lines]
            self._counts = kinds.count("added"), kinds.count("removed")
        return self._counts

    def shortened(self, limit: int) -> "Diff":
        """Return the diff cut to the lines that fit in `limit` characters, with the counts of the whole.

        A last line beyond the limit has the number of lines left out. A diff that fits is returned unchanged.
        """
        if len(self) <= limit:
            return self
        kept = self[: self.rfind("\n", 0, limit) + 1]
        left = self.count("\n") - kept.count("\n")
        return Diff(f"{kept}… {left:,} more lines\n", counts=self._lines_counted)

    def __deepcopy__(self, memo: object) -> "Diff":
        """Return the diff, which is immutable."""
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        """Return the schema of a string."""

        def made(value: Any, check: Callable[[Any], str]) -> Diff:
            # A diff by a tool keeps its data; its text would have to be parsed again.
            return value if isinstance(value, Diff) else cls(check(value))

        return core_schema.no_info_wrap_validator_function(made, core_schema.str_schema())


NO_DIFF = Diff()
"""Nothing differs, or it is not known what."""


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their ends, which only LF makes."""
    *lines, last = text.split("\n")
    return [*(f"{line}\n" for line in lines), *([last] if last else [])]


def common_lines(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Return the numbers of equal lines at the start and, of the others, at the end."""
    start = _equal(one, other)
    return start, _equal(one[start:][::-1], other[start:][::-1])


def hunks_between(before: Sequence[str], after: Sequence[str]) -> tuple[DiffHunk, ...]:
    """Return the hunks between two texts, given as `split_lines` returns them; empty if they are equal.

    If more than `MOST_COMPARED` lines must be compared, one hunk replaces all of them, so that the time is bounded.
    """
    start, end = common_lines(before, after)
    if start == len(before) == len(after):
        return ()
    first, tail = max(0, start - CONTEXT), max(0, end - CONTEXT)
    old, new = before[first : len(before) - tail], after[first : len(after) - tail]
    if len(old) + len(new) > MOST_COMPARED:
        old_end, new_end = len(old) - (end - tail), len(new) - (end - tail)
        top = start - first
        replaced = [("equal", 0, top, 0, top), ("replace", top, old_end, top, new_end)]
        groups = [[*replaced, ("equal", old_end, len(old), new_end, len(new))]]
    else:
        groups = SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT)
    return tuple(_hunk(group, old, new, first) for group in groups)


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of equal lines at the start."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _hunk(
    group: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str], first: int
) -> DiffHunk:
    """Return the hunk of a group of opcodes for texts of which `first` lines at the top are left out."""
    lines: list[DiffLine] = []

    def add(kind: LineKind, part: Sequence[str], i: int | None, j: int | None) -> None:
        for place, line in enumerate(part, first + 1):
            number = None if i is None else i + place, None if j is None else j + place
            lines.append(DiffLine(kind, line.removesuffix("\n"), *number, line.endswith("\n")))

    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            add("same", old[i1:i2], i1, j1)
        else:
            add("removed", old[i1:i2], i1, None)
            add("added", new[j1:j2], None, j1)
    (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
    # An empty side has the number of the line before it.
    return DiffHunk(first + i1 + (i2 > i1), i2 - i1, first + j1 + (j2 > j1), j2 - j1, tuple(lines))


def _span(start: int, count: int) -> str:
    return f"{start}" if count == 1 else f"{start},{count}"


def _written_lines(lines: Iterable[DiffLine]) -> Iterator[str]:
    for line in lines:
        yield _SIGNS[line.kind] + line.text
        if not line.ends:
            yield _NO_END


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Draft:
    """A file while its lines are read."""

    old: str = ""
    new: str = ""
    notes: list[str] = field(default_factory=list[str])
    hunks: list[DiffHunk] = field(default_factory=list[DiffHunk])
    left_out: int = 0
    is_escaped: bool = False
    """True if lone surrogates are escapes."""

    @property
    def file(self) -> FileDiff:
        """The file as data."""
        return FileDiff(self.old, self.new, tuple(self.hunks), tuple(self.notes), self.left_out)

    def decoded(self, line: str) -> str:
        """Return a line of the diff with the surrogates that it has in the file."""
        return unescape_surrogates(line) if self.is_escaped else line


def _read(text: str) -> Iterator[FileDiff]:
    """Yield the files of a unified diff; no line of the text is lost."""
    lines = text.removesuffix("\n").split("\n") if text else []
    draft, waiting = _Draft(), list[str]()
    is_escaped = False
    place = 0
    while place < len(lines):
        line = lines[place]
        if (match := _HUNK.match(line)) is not None:
            if not draft.hunks:
                draft.notes, waiting = [*waiting, *draft.notes], []
            place = _read_hunk(lines, place + 1, match, draft)
            continue
        place += 1
        if line == SURROGATES_NOTE:
            is_escaped = True
        elif line.startswith("--- ") or (line.startswith("+++ ") and (draft.new or not draft.old)):
            if draft.old or draft.new or draft.hunks:
                yield draft.file
            draft, waiting = _Draft(notes=waiting, is_escaped=is_escaped), []
            is_escaped = False
            name = draft.decoded(line[4:])
            draft.old, draft.new = (name, "") if line[0] == "-" else ("", name)
        elif line.startswith("+++ "):
            draft.new = draft.decoded(line[4:])
        elif (draft.hunks or draft.new) and (cut := _LEFT_OUT.fullmatch(line)) is not None:
            draft.left_out += int(cut[1].replace(",", ""))
        elif line:
            # After hunks, a note is usually about the next file.
            (draft.notes if draft.new and not draft.hunks else waiting).append(line.removeprefix("# "))
    if draft.old or draft.new or draft.hunks:
        yield draft.file
    if waiting:
        yield FileDiff(notes=tuple(waiting))


def _read_hunk(lines: Sequence[str], place: int, match: re.Match[str], draft: _Draft) -> int:
    """Read the lines of a hunk into a draft; return the index of the line after them."""
    old, new = int(match[1]), int(match[3])
    old_count, new_count = int(match[2] or 1), int(match[4] or 1)
    old_end, new_end = old + old_count, new + new_count
    found: list[DiffLine] = []
    while place < len(lines):
        line = draft.decoded(lines[place])
        sign, text = line[:1], line[1:]
        if sign == "\\" and found:
            found[-1] = found[-1]._replace(ends=False)
        elif sign == "-" and old < old_end:
            found.append(DiffLine("removed", text, old))
            old += 1
        elif sign == "+" and new < new_end:
            found.append(DiffLine("added", text, None, new))
            new += 1
        elif sign in ("", " ") and old < old_end and new < new_end:
            found.append(DiffLine("same", text, old, new))
            old, new = old + 1, new + 1
        else:
            break
        place += 1
    heading = draft.decoded(match[5])
    draft.hunks.append(DiffHunk(int(match[1]), old_count, int(match[3]), new_count, tuple(found), heading))
    return place
