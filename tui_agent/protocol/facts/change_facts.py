"""Changed files and their differences, and rewind points, plans and outcomes, as plain data."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tui_agent.protocol.diffs import NO_DIFF, Diff
from tui_agent.protocol.events import FileState

Scope: TypeAlias = Literal["both", "files", "conversation"]
"""Parts that a rewind restores."""

StepKind: TypeAlias = Literal["restore", "delete", "create", "stuck"]
"""Effect on a file: restore its old content, delete it, create it again; or `stuck` if it cannot be restored."""


@dataclass(frozen=True, slots=True)
class RewindPoint:
    """A moment to rewind to: before a user message, or before an earlier rewind."""

    seq: int
    """Number of the last event that a rewind to this moment keeps."""
    time: int
    """Milliseconds since the epoch."""
    text: str
    """The user message; for an earlier rewind, the text of the moment it went to."""
    is_turn: bool = True
    """True for a user message, False for an earlier rewind, which a rewind to this moment undoes."""
    files: int = 0
    """Number of files changed since."""
    added: int = 0
    """Lines added by all changes since."""
    removed: int = 0
    """Lines removed by all changes since."""


@dataclass(frozen=True, slots=True)
class FileStep:
    """The effect of a rewind on one file."""

    path: Path
    shown: str
    """Name of the file in messages."""
    kind: StepKind
    now: FileState | None
    """Present state; None: the file does not exist. If it has changed by the time of the rewind, it is left alone."""
    target: FileState | None
    """State after the rewind; None: the file does not exist then."""
    diff: Diff = NO_DIFF
    """Diff from the present to the target state; for a conflict, the change that would be lost."""
    problem: str = ""
    """Reason why the file is left alone unless the user includes it, or why it cannot be restored."""

    @property
    def is_conflict(self) -> bool:
        """True if a rewind would lose a change that someone else made to the file."""
        return bool(self.problem) and self.kind != "stuck"


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """All effects of a rewind."""

    to_seq: int
    text: str
    """Name of the moment."""
    steps: tuple[FileStep, ...]
    call_id: str | None = None
    """Call whose changes are undone, with the conversation unchanged; None: a rewind to a moment."""
    is_undo: bool = False
    """True if it undoes changes of single files, which `text` names."""
    messages: int = 0
    """Number of messages that the conversation would lose."""
    draft: str = ""
    """The user message of that moment, for the composer."""
    notes: tuple[str, ...] = ()
    """Remarks for the user, a sentence each."""
    cut_off: tuple[str, ...] = ()
    """Interrupted calls, whose changes are unknown and stay."""

    uncovered: tuple[str, ...] = ()
    """Directories that undone commands named and changed, and of which nothing was saved."""

    def chosen(self, scope: Scope, overwritten: AbstractSet[Path] = frozenset()) -> tuple[FileStep, ...]:
        """Return the steps to carry out, with those in conflict that the user includes."""
        if scope == "conversation":
            return ()
        steps = (step for step in self.steps if step.kind != "stuck")
        return tuple(step for step in steps if not step.is_conflict or step.path in overwritten)


@dataclass(frozen=True, slots=True)
class RewindOutcome:
    """Result of a rewind."""

    done: tuple[str, ...] = ()
    """Files that were restored."""
    left: tuple[str, ...] = ()
    """Files that were left alone."""
    failed: tuple[str, ...] = ()
    """Files that could not be restored, each with the reason."""
    draft: str = ""
    """Text for the composer."""


DiffView: TypeAlias = Literal["session", "tree"]
"""Earlier state that files are compared with: that before the session, or the last commit."""

FileChange: TypeAlias = Literal["changed", "added", "deleted", "renamed", "untracked"]
"""Change of a file. `untracked`: git does not know it, so all of it is new."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs from its earlier state."""

    path: Path
    """Absolute path."""
    shown: str
    """Its name in messages."""
    change: FileChange
    view: DiffView
    old_path: Path | None = None
    """Former path of a renamed file."""
    old_shown: str = ""
    """Its name in messages."""
    old_mode: int = 0
    """Mode in git of the earlier state, such as `0o100644`; 0 if git has none."""
    before: FileState | None = None
    """State before the session; None if the file did not exist, and in the view of the work tree."""
    counts: tuple[int, int] | None = None
    """Lines added and removed; None if they are not counted yet, or cannot be."""
    note: str = ""
    """Fact about the change that its differences do not show."""
    problem: str = ""
    """Reason why the change cannot be undone here."""


@dataclass(frozen=True, slots=True)
class ChangedFileList:
    """The changed files of one view."""

    view: DiffView
    files: tuple[ChangedFile, ...] = ()
    note: str = ""
    """Reason why it is empty or not complete."""
    kept: int = 0
    """Number of files that the user kept, which are not listed as long as they stay the same."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A branch or commit that can be reviewed."""

    name: str
    text: str
    """First line of the commit's message."""
    kind: Literal["branch", "commit"]


@dataclass(frozen=True, slots=True)
class FileDifference:
    """The differences of one file, as they are shown. Undoing them refuses if the file has changed since."""

    file: ChangedFile
    diff: Diff = NO_DIFF
    """Whole diff from the earlier to the present state; empty if it is not known."""
    before: FileState | None = None
    now: FileState | None = None
    notes: tuple[str, ...] = ()
    """Facts that the diff does not show: another mode, a binary file, a change by someone else."""
    problem: str = ""
    """Reason why nothing of it can be undone here."""
    has_parts: bool = False
    """True if its hunks can be undone one by one."""
