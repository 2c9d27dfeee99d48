"""The parts of a change that the user can accept one by one, and the input that makes only those. Pure.

The parts are the hunks of the diff. A call whose input cannot be cut along them has none.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.ui.text.line import Run

CONTEXT = 3
"""Unchanged lines around a change, as in diffs; changes closer to each other are one part."""
MAX_LINES = 6_000
"""Most lines, old and new together, that are compared."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class ChangePart:
    """One hunk."""

    header: str
    """Its place in the file, as diffs write it."""
    lines: tuple[str, ...]
    """Lines with their signs, without line ends."""
    new_start: int
    """Index of its first line in the new text, from 0."""
    old: tuple[str, ...]
    """Its lines in the old text, with line ends."""
    new: tuple[str, ...]
    """Its lines in the new text, with line ends."""

    name: str = ""
    """Subject, if the parts are not those of one file."""
    facts: tuple[Run, ...] = ()
    """Facts that its lines do not show."""

    @property
    def text(self) -> str:
        """The hunk as a diff writes it."""
        return "\n".join((self.header, *self.lines))


@dataclass(frozen=True, slots=True)
class ChangeParts:
    """The parts of one call."""

    parts: tuple[ChangePart, ...]
    _args: JsonObject
    _name: str
    """The argument with the new text."""

    @property
    def initial(self) -> frozenset[int]:
        """Indexes of the parts that are accepted at first: all."""
        return frozenset(range(len(self.parts)))

    def input_with(self, accepted: Collection[int]) -> JsonObject:
        """Return the input that makes only the accepted parts, by index."""
        text = text_with(str(self._args[self._name]), self.parts, accepted)
        return {**self._args, self._name: text}

    def decision(self, accepted: Collection[int]) -> ApprovalDecision:
        """Return the answer that lets the accepted parts through; the model reads which ones are left out."""
        count = len(self.parts)
        left_out = [part for index, part in enumerate(self.parts) if index not in accepted]
        if not left_out:
            return ApprovalDecision(decision="approve")
        if len(left_out) == count:
            return ApprovalDecision(decision="deny", note=f"I accept none of the {count} parts of this change.")
        texts = "\n".join(part.text for part in left_out)
        note = f"I left out {len(left_out)} of the {count_text(count, 'part')} of this change:\n{texts}"
        return ApprovalDecision(decision="approve", input=self.input_with(accepted), note=note)


def change_parts(request: ApprovalRequest) -> ChangeParts | None:
    """Return the parts of a request; None if there are fewer than two, or the input cannot be cut along them."""
    preview, args = request.preview, request.args
    if preview is None or preview.kind != "diff":
        return None
    shown = read_hunks(preview.text)
    match args:
        case {"old_string": str() as old, "new_string": str() as new}:
            found = _with_headers(_compare(old, new), shown)
            name = "new_string"
        case {"content": str() as content}:
            found = shown if shown is not None and _fit(shown, split_lines(content)) else ()
            name = "content"
        case _:
            return None
    return ChangeParts(tuple(found), args, name) if len(found) > 1 else None


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their ends, which only LF makes."""
    return _LINE.findall(text)


def text_with(new: str, parts: Sequence[ChangePart], accepted: Collection[int]) -> str:
    """Return a new text with the old lines in place of the parts that are not accepted, by index."""
    lines = split_lines(new)
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if index not in accepted:
            lines[part.new_start : part.new_start + len(part.new)] = part.old
    return "".join(lines)


def applied(old: str, parts: Sequence[ChangePart]) -> str | None:
    """Return an old text with all parts of its diff; None if they are not the parts of this text."""
    lines = split_lines(old)
    for part in reversed(parts):
        match = _HUNK.match(part.header)
        start = int(match[1]) - bool(part.old) if match else -1
        if start < 0 or tuple(lines[start : start + len(part.old)]) != part.old:
            return None
        lines[start : start + len(part.old)] = part.new
    return "".join(lines) if _fit(parts, lines) else None


def _compare(old_text: str, new_text: str) -> list[ChangePart]:
    """Return the hunks between two texts."""
    old, new = split_lines(old_text), split_lines(new_text)
    if len(old) + len(new) > MAX_LINES:
        return []
    parts: list[ChangePart] = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        lines: list[str] = []
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                lines += _signed(" ", old[a1:a2])
            else:
                lines += (*_signed("-", old[a1:a2]), *_signed("+", new[b1:b2]))
        header = f"@@ -{i1 + 1},{i2 - i1} +{j1 + 1},{j2 - j1} @@"
        parts.append(ChangePart(header, tuple(lines), j1, tuple(old[i1:i2]), tuple(new[j1:j2])))
    return parts


def _signed(sign: str, lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        yield sign + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _NO_END


def _with_headers(parts: list[ChangePart], shown: Sequence[ChangePart] | None) -> list[ChangePart]:
    """Return parts of a replaced text with their places in the file, if the diff has the same parts."""
    if shown is None or len(shown) != len(parts):
        return parts
    return [
        ChangePart(place.header, part.lines, part.new_start, part.old, part.new)
        for part, place in zip(parts, shown, strict=True)
    ]


def read_hunks(diff: str) -> list[ChangePart] | None:
    """Return the hunks of the diff of one file; None if the diff is cut or notes another encoding or line end."""
    head, *lines = diff.removesuffix("\n").split("\n")
    if not head.startswith("--- ") or not lines or not lines[0].startswith("+++ "):
        return None
    hunks: list[tuple[str, list[str]]] = []
    for line in lines[1:]:
        if _HUNK.match(line):
            hunks.append((line, []))
        elif hunks and line[:1] in (" ", "-", "+", "\\"):
            hunks[-1][1].append(line)
        else:
            return None
    return [_part(header, body) for header, body in hunks]


def _part(header: str, body: Sequence[str]) -> ChangePart:
    old: list[str] = []
    new: list[str] = []
    sides: tuple[list[str], ...] = ()
    for line in body:
        if line == _NO_END:
            for side in sides:
                side[-1] = side[-1].removesuffix("\n")
            continue
        sides = {"-": (old,), "+": (new,)}.get(line[0], (old, new))
        for side in sides:
            side.append(line[1:] + "\n")
    match = _HUNK.match(header)
    start = int(match[3]) if match else 0
    # An empty side has the number of the line before it.
    return ChangePart(header, tuple(body), start - 1 if new else start, tuple(old), tuple(new))


def _fit(parts: Iterable[ChangePart], lines: Sequence[str]) -> bool:
    """Return True if the new text has each part at its place."""
    return all(
        part.new_start >= 0 and tuple(lines[part.new_start : part.new_start + len(part.new)]) == part.new
        for part in parts
    )
