"""Changed files of a session or of a work tree, and the differences of one, as plain data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tui_agent.protocol.diffs import NO_DIFF, Diff
from tui_agent.protocol.events import FileState

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
