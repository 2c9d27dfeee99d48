"""What one can go back to, what that would do, and what became of it: plain data, for whoever shows it."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tui_agent.protocol.events import FileState

Scope: TypeAlias = Literal["both", "files", "conversation"]
"""What goes back."""

StepKind: TypeAlias = Literal["restore", "delete", "create", "stuck"]
"""What would happen to a file: its old content comes back, it goes, it is there again; or nothing can be done."""


@dataclass(frozen=True, slots=True)
class RewindPoint:
    """A moment one can go back to: before something was said, or before an earlier going back."""

    seq: int
    """Things become what they were right after this event."""
    time: int
    """Milliseconds since the epoch."""
    text: str
    """What was said; of an earlier going back, what that was to."""
    is_turn: bool = True
    """False: going there undoes an earlier going back."""
    files: int = 0
    """Files that were changed since."""
    added: int = 0
    """Lines, of all changes since together."""
    removed: int = 0


@dataclass(frozen=True, slots=True)
class FileStep:
    """What would happen to one file."""

    path: Path
    shown: str
    """Its name for texts."""
    kind: StepKind
    now: FileState | None
    """What it is; None: there is none. It is left alone if it is something else by the time it is its turn."""
    target: FileState | None
    """What it would be."""
    diff: str = ""
    """What would change; for a file somebody else changed, what would be lost."""
    added: int = 0
    removed: int = 0
    problem: str = ""
    """Why it is left alone unless the person says so, or why nothing can be done."""

    @property
    def is_conflict(self) -> bool:
        """Whether somebody else changed it, so that going back would lose that."""
        return bool(self.problem) and self.kind != "stuck"


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """All that going back would do."""

    to_seq: int
    text: str
    """What it goes back to."""
    steps: tuple[FileStep, ...]
    call_id: str | None = None
    """Set: only what this call changed is taken back, and the conversation stays."""
    messages: int = 0
    """Messages that would no longer be part of the conversation."""
    draft: str = ""
    """What was said then, to be said again or otherwise."""
    notes: tuple[str, ...] = ()
    """What else one has to know, a sentence each."""
    cut_off: tuple[str, ...] = ()
    """Calls that ended with the program: what they changed is not known, and stays."""

    def chosen(self, scope: Scope, overwritten: AbstractSet[Path] = frozenset()) -> tuple[FileStep, ...]:
        """The steps that would be done, where files somebody else changed are taken only if they are named."""
        if scope == "conversation":
            return ()
        steps = (step for step in self.steps if step.kind != "stuck")
        return tuple(step for step in steps if not step.is_conflict or step.path in overwritten)


@dataclass(frozen=True, slots=True)
class RewindOutcome:
    """What became of it."""

    done: tuple[str, ...] = ()
    """Files that are as they were."""
    left: tuple[str, ...] = ()
    """Files somebody else changed, left as they are."""
    failed: tuple[str, ...] = ()
    """Files that could not be changed, each with the reason."""
    draft: str = ""
    """Text for the composer."""
