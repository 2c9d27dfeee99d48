"""The parts of a change that the user can accept one by one, and the input that makes only those. Pure.

The parts are the hunks of the diff. A call whose input cannot be cut along them has none.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.diffs import Diff, DiffHunk, hunks_between, split_lines
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.ui.text.line import Run


@dataclass(frozen=True, slots=True)
class ChangePart:
    """One hunk, or a whole change without one."""

    hunks: tuple[DiffHunk, ...] = ()
    """The hunk, with its place in the file."""
    own: DiffHunk | None = None
    """The same change, with its place in the text that the call names; None if that is the file's."""
    path: str = ""
    """File of the hunks, for the colours of its language."""
    name: str = ""
    """Subject, if the parts are not those of one file."""
    facts: tuple[Run, ...] = ()
    """Facts that its lines do not show."""

    @property
    def text(self) -> str:
        """The hunks as a diff writes them."""
        return "\n".join(hunk.text for hunk in self.hunks)


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
    shown = whole_hunks(preview.diff)
    path = preview.diff.files[0].path if shown else ""
    match args:
        case {"old_string": str() as old, "new_string": str() as new}:
            own, name = hunks_between(split_lines(old), split_lines(new)), "new_string"
        case {"content": str() as content}:
            own, name = shown if shown is not None and _fit(shown, split_lines(content)) else (), "content"
        case _:
            return None
    hunks = shown if shown is not None and len(shown) == len(own) else own
    parts = [ChangePart((hunk,), one, path) for hunk, one in zip(hunks, own, strict=True)]
    return ChangeParts(tuple(parts), args, name) if len(parts) > 1 else None


def text_with(new: str, parts: Sequence[ChangePart], accepted: Collection[int]) -> str:
    """Return a new text with the old lines in place of the parts that are not accepted, by index."""
    lines = split_lines(new)
    for index in range(len(parts) - 1, -1, -1):
        if index not in accepted:
            hunk = parts[index].own or parts[index].hunks[0]
            lines[hunk.new_index : hunk.new_index + len(hunk.new)] = hunk.old
    return "".join(lines)


def applied(old: str, hunks: Sequence[DiffHunk]) -> str | None:
    """Return an old text with all hunks of its diff; None if they are not those of this text."""
    lines = split_lines(old)
    for hunk in reversed(hunks):
        start, before = hunk.old_index, hunk.old
        if start < 0 or tuple(lines[start : start + len(before)]) != before:
            return None
        lines[start : start + len(before)] = hunk.new
    return "".join(lines) if _fit(hunks, lines) else None


def whole_hunks(diff: Diff) -> tuple[DiffHunk, ...] | None:
    """Return the hunks of the diff of one file; None if the diff is cut or notes another encoding or line end."""
    if len(diff.files) != 1 or diff.files[0].notes or diff.files[0].left_out or not diff.files[0].new_name:
        return None
    # What begins with a note has a side that is not a text.
    return diff.hunks if diff.startswith("--- ") else None


def _fit(hunks: Iterable[DiffHunk], lines: Sequence[str]) -> bool:
    """Return True if the new text has each hunk at its place."""
    return all(
        hunk.new_index >= 0 and tuple(lines[hunk.new_index : hunk.new_index + len(hunk.new)]) == hunk.new
        for hunk in hunks
    )
