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

Action = Literal["watch", "remove", "directory", "object", "put", "mode", "close"]
"""Action of a step: only compare a file, remove a file or an empty directory, create a directory, put an object of a
repository, whose content is in its name, or another file or link in its place, set the permission bits of a file, or
those of a directory."""

_FILE, _UNDO = "keep.json", "undo.json"


class Step(NamedTuple):
    """One change of the workspace. It can be repeated: what is done already is recognised."""

    action: Action
    unit: str
    """Path by which a problem is reported, which then keeps out the other steps of the unit; empty for a step that
    others may need, too."""
    path: str
    """Path by which the change is reported; empty for one that is not."""
    target: str
    source: str = ""
    """Stored file that is put in place."""
    seen: tuple[int, ...] = ()
    """Identity of the old file; empty if there was none."""
    mode: int = 0
    saved: str = ""
    """File that receives the old one."""


@dataclass(slots=True)
class KeepJournal:
    """The journal of one layer."""

    directory: Path
    steps: Sequence[Step] = ()
    locks: Sequence[str] = ()
    """Files by which git keeps others from changing the repository."""
    mark: str = field(default_factory=lambda: secrets.token_hex(16))
    """Target of the locks, which are links, and part of the names of temporary files."""
    problems: dict[str, str] = field(default_factory=dict[str, str])
    """Reasons why units are not kept."""
    is_done: bool = False
    name: str = _FILE

    def write(self) -> None:
        """Write the journal, whole or not at all, so that it survives a loss of power.

        Raises:
            OSError: it cannot be written.
        """
        content = {name: getattr(self, name) for name in ("steps", "locks", "mark", "problems", "is_done")}
        path = self.directory / self.name
        # A new one that is cut off was not begun: a second name would cost another write of the file system's journal.
        written = path.with_name(f"{_FILE}.tmp") if path.exists() else path
        try:
            with open(written, "w", encoding="ascii") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            written.unlink(missing_ok=True)
            raise
        if written != path:
            written.rename(path)
        sync_directory(self.directory)

    @property
    def is_undone(self) -> bool:
        """True if the repository's steps are to be undone."""
        return self.name == _UNDO

    def turn(self) -> None:
        """Note that the repository's steps are undone from now on: a new name needs no space on a full disk.

        Raises:
            OSError: it cannot be renamed.
        """
        # Half of a repository is useless; a later start must not finish what this one has begun to undo.
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
        try:
            content: dict[str, Any] = json.loads((directory / name).read_bytes())
        except ValueError:
            return None
        rows: list[Any] = content.pop("steps")
        try:
            steps = [(step := Step(*row))._replace(seen=tuple(step.seen)) for row in rows]
            journal = cls(directory, steps, name=name, **content)
        except TypeError as error:
            raise OSError(f"another version of tui-agent wrote {directory / name}") from error
        if name == _UNDO:
            journal.problems.setdefault(REPOSITORY, "an error interrupted it")
        return journal
