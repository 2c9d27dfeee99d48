"""The journal of keeping: which steps take the kept changes to the workspace, written before the first of them."""

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tui_agent.protocol.regular_file import sync_directory
from tui_agent.protocol.trial import REPOSITORY

Action = Literal["remove", "prune", "directory", "put", "mode", "watch"]
"""Action of a step: remove a file, remove a directory if it is empty, create a directory, put a file or link in its
place, set permission bits, or only compare a file."""

OBJECT_PHASE = 1
"""Place of a repository's objects in the order of steps."""

_FILE, _UNDO = "keep.json", "undo.json"
_SAVED = "kept"


class Step(NamedTuple):
    """One change of the workspace. It can be repeated: what is done already is recognised."""

    action: Action
    phase: int
    """Place in the order of the steps."""
    path: str
    """Path by which the change is reported; empty for a step that belongs to others."""
    target: str
    source: str = ""
    """Stored file that is put in place."""
    seen: tuple[int, ...] = ()
    """Identity of the old file; empty if there was none."""
    mode: int = 0
    saved: str = ""
    """File that receives the old one."""
    is_repository: bool = False
    """True if it belongs to the repository's state."""

    @property
    def is_object(self) -> bool:
        """True if it puts an object of the repository, whose content is in its name."""
        return self.is_repository and self.action == "put" and self.phase == OBJECT_PHASE


@dataclass(slots=True)
class KeepJournal:
    """The journal of one layer."""

    directory: Path
    steps: Sequence[Step] = ()
    locks: Sequence[str] = ()
    """Files by which git keeps others from changing the repository."""
    mark: str = field(default_factory=lambda: secrets.token_hex(16))
    """Content of the locks, and part of the names of temporary files."""
    problems: dict[str, str] = field(default_factory=dict[str, str])
    is_done: bool = False
    name: str = _FILE

    @property
    def saved(self) -> Path:
        """Directory of the old files."""
        return self.directory / _SAVED

    def write(self) -> None:
        """Write the journal, whole or not at all, so that it survives a loss of power.

        Raises:
            OSError: it cannot be written.
        """
        content = {"steps": list(self.steps), "locks": list(self.locks), "mark": self.mark}
        content |= {"problems": self.problems, "is_done": self.is_done}
        temporary = self.directory / f"{_FILE}.tmp"
        with open(temporary, "w", encoding="ascii") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        if self.name == _FILE:
            (self.directory / _UNDO).unlink(missing_ok=True)
        temporary.rename(self.directory / self.name)
        sync_directory(self.directory)

    def remove(self) -> None:
        """Remove it, so that nothing is repeated.

        Raises:
            OSError: it cannot be removed.
        """
        (self.directory / self.name).unlink()

    def turn(self) -> None:
        """Note that the repository's steps are undone from now on: a new name needs no space on a full disk.

        Raises:
            OSError: it cannot be renamed.
        """
        if self.name == _FILE:
            (self.directory / _FILE).rename(self.directory / _UNDO)
            self.name = _UNDO

    @classmethod
    def read(cls, directory: Path) -> "KeepJournal | None":
        """Return the journal of a layer; None if keeping was not begun.

        Raises:
            OSError: it cannot be read.
        """
        name = next((name for name in (_UNDO, _FILE) if (directory / name).exists()), None)
        if name is None:
            return None
        content: dict[str, Any] = json.loads((directory / name).read_bytes())
        rows: list[Any] = content["steps"]
        steps = [(step := Step(*row))._replace(seen=tuple(step.seen)) for row in rows]
        problems = ({REPOSITORY: "an error interrupted it"} if name == _UNDO else {}) | content["problems"]
        return cls(directory, steps, content["locks"], content["mark"], problems, content["is_done"], name)
