"""Words about the changes of a command: the note in its result, and the plain preview of the question."""

from collections.abc import Iterable

from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.tool import Preview
from tui_agent.protocol.trial import REPOSITORY, KeptChanges, ProposedChanges, ProposedFile

_NAMED = 8
"""Most paths that a note names one by one."""


def changes_note(proposed: ProposedChanges, kept: KeptChanges, reason: str) -> str:
    """Return what became of the changes: `kept: a.py, b.py; discarded: c.py (reason)`, and each problem."""
    parts: list[str] = []
    if kept.kept:
        parts.append(f"kept: {_named(proposed, kept.kept)}")
    if kept.discarded or not kept.kept:
        why = f" ({reason.rstrip('.')})" if reason else ""
        parts.append(f"discarded: {_named(proposed, kept.discarded)}{why}")
    never = [f"{file.path} is never kept: {file.note}" for file in proposed.files if file.sort == "refused"]
    lines = ["; ".join(parts), *kept.problems[:_NAMED], *never[:_NAMED]]
    return "\n".join(lines)


def count_files(proposed: ProposedChanges, paths: Iterable[str]) -> int:
    """Return the number of changed files that paths of a proposal stand for, the repository's own not counted."""
    trees = {tree.path: tree.files for tree in proposed.trees}
    return sum(trees.get(path, 1) for path in paths if path != REPOSITORY)


def _named(proposed: ProposedChanges, paths: tuple[str, ...]) -> str:
    trees = {tree.path: f"{tree.path} ({_files(tree.files)})" for tree in proposed.trees}
    names = [trees.get(path, path) for path in paths if path != REPOSITORY]
    if len(names) > _NAMED:
        names = [_files(count_files(proposed, paths))]
    if REPOSITORY in paths:
        names.append(
            f"in the repository: {'; '.join(proposed.repository)}" if proposed.repository else "the repository"
        )
    return ", ".join(names) or "everything"


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def preview_of(proposed: ProposedChanges) -> Preview:
    """Return the changes as one diff with notes, for front ends that know no more."""
    notes = [line for file in proposed.files if (line := _note_of(file))]
    notes += [f"{tree.path}: {_files(tree.files)}" for tree in proposed.trees]
    notes += [f"in the repository: {line}" for line in proposed.repository]
    return Preview(
        kind="diff",
        text=Diff.joined(file.diff for file in proposed.files),
        note="\n".join(notes),
    )


def _note_of(file: ProposedFile) -> str:
    """Return what the diff of a file does not show; empty if it shows all."""
    said = [
        file.runs_later,
        file.note,
        f"in conflict: {file.conflict}" if file.conflict else "",
        "cut" if file.has_more else "",
    ]
    words = "; ".join(filter(None, said))
    if file.sort == "refused":
        return f"never kept: {file.path} ({words})"
    if file.sort == "protected":
        return f"protected: {file.path} {file.kind}{f' ({words})' if words else ''}"
    if words or not file.diff:
        return f"{file.path} {file.kind}{f' ({words})' if words else ''}"
    return ""
