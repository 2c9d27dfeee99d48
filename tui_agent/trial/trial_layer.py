"""One layer: the command line that runs a command in it, what the walls refused, and its changes."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.trial import KeepReport, KeepSelection, LayerChanges, Place, WalledCommand
from tui_agent.walls.refusals import NETWORK_ERRORS, refusals
from tui_agent.walls.visible_places import visible_places

from .bubblewrap_walls import BubblewrapWalls
from .confinement import Confinement
from .covered_places import LayerRoot
from .keeping import finish_keeping, keep_changes
from .landlock_walls import LandlockWalls
from .layer_changes import read_changes
from .layer_files import identity_of, status_of
from .layer_limits import WatchedCommand
from .layer_storage import RECORD, is_finished, remove_tree

Walls = BubblewrapWalls | LandlockWalls

_READ_ONLY_ERRORS = ("Read-only file system", "EROFS", "read-only file system")
_OUTSIDE = ("it cannot write outside of the workspace", _READ_ONLY_ERRORS)
_NOTHING = ("it can write in $TMPDIR only", (*_READ_ONLY_ERRORS, "Permission denied", "EACCES", "PermissionError"))
_ERRORS = (
    (
        "a directory that is already in the workspace cannot be renamed, only copied",
        ("Invalid cross-device link", "EXDEV", "cross-device link", "Cross-device link"),
    ),
    (
        "files of another owner or group cannot be changed, and no owner can",
        ("Value too large for defined data type", "EOVERFLOW", "changing ownership of", "changing group of"),
    ),
    ("mounts and paths that a rule denies to read cannot be moved", ("Device or resource busy", "EBUSY")),
    ("commands have no privileges in it", ("Operation not permitted", "EPERM")),
    ("sockets of other programs are absent", (".sock: ", "/agent.", "daemon running?", "Error connecting to agent")),
    ("its limit for the size of a file was reached", ("File size limit exceeded", "File too large", "EFBIG")),
)
"""Restrictions, and the messages of programs that meet them."""


class TrialLayer:
    """A copy-on-write view of the workspace for one command, or walls without one. Its methods block."""

    def __init__(
        self, directory: Path, call_id: str, roots: Sequence[LayerRoot], made_ns: int, box: Confinement, walls: Walls
    ) -> None:
        self.id = directory.name
        self._directory = directory
        self._call_id = call_id
        self.roots = (*roots,)
        """The covered directories."""
        self._made_ns = made_ns
        self._box = box
        self._walls = walls
        self._command: WatchedCommand | None = None
        self._changes: LayerChanges | None = None

    @property
    def place(self) -> Place:
        """`trial`, or `read_only` for walls without a layer."""
        return "trial" if self._walls.has_layer else "read_only"

    def walled(self, argv: Sequence[str], environment: Mapping[str, str]) -> WalledCommand:
        """Return the command line that runs `argv` in the layer, and watch its limits from now on.

        Raises:
            ToolError: no command can run in it, with the reason.
        """
        self.end()
        box, walls, held = self._box, self._walls, self._box.held
        visible = visible_places(box.workspace, environment.get("PATH", os.defpath), environment)
        watched = [root.upper for root in self.roots if walls.has_layer]
        self._command = WatchedCommand([*watched, held.temporary, held.other_temporary], box.limits)
        try:
            start, variables = walls.confined(box, self.roots, self._directory, visible, self._command, environment)
        except (OSError, ToolError) as error:
            self.end()
            raise ToolError(f"The command was not run: no trial can be set up here: {error}") from error
        return WalledCommand((*start, *argv), variables, tuple(self._command.descriptors))

    def started(self, output: bytes, returncode: int | None) -> str:
        """Return why the walls could not be set up, so that the command did not run; empty if it ran."""
        if self._command is None or returncode is None or returncode <= 0 or self._command.has_started():
            return ""
        self._box.on_failure()
        return output.decode("utf-8", "replace").strip() or f"the walls ended with code {returncode}"

    def refused(self, output: str) -> str:
        """Return in words what the walls refused, by the messages in the output of a failed command."""
        box = self._box
        writes = _OUTSIDE if self.place == "trial" else _NOTHING
        network = () if box.network else NETWORK_ERRORS
        shown = [root.place for root in self.roots]
        return refusals(output, (*network, writes, *_ERRORS), box.workspace, [*shown, *box.shown])

    def changes(self, *, again: bool = False) -> LayerChanges:
        """Return what the command changed; `again`: compared with the workspace as it is now."""
        if self._changes is None or (again and _is_outdated(self._changes)):
            if (problem := self.end()) or self.place == "read_only":
                self._changes = LayerChanges(problem=problem)
            else:
                self._changes = read_changes(self.roots, made_ns=self._made_ns, sorter=self._box.sorter)
        return self._changes

    def keep(self, selection: KeepSelection) -> KeepReport:
        """Apply a part of the changes to the workspace."""
        return keep_changes(self._directory, self.changes(), selection)

    def finish(self) -> KeepReport | None:
        """Finish a keeping that a kill interrupted, and return what was kept; None if none had begun."""
        return finish_keeping(self._directory)

    def record(self, result: str) -> None:
        """Store the call's result with the layer, so that the question survives the end of the program."""
        roots = [str(root.place) for root in self.roots]
        values = {"call": self._call_id, "result": result, "made_ns": self._made_ns, "roots": roots}
        values["session"] = str(self._box.stored or "")
        temporary = self._directory / f"{RECORD}.new"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            json.dump(values, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._directory / RECORD)

    def discard(self) -> None:
        """Remove the layer."""
        self.end()
        # A kill in between leaves a layer that no question waits for.
        with suppress(FileNotFoundError):
            (self._directory / RECORD).unlink()
        if is_finished(self._directory):
            remove_tree(self._directory)

    def end(self) -> str:
        """Wait until all processes of the command have ended, and return why nothing of it can be kept, if so."""
        return "" if self._command is None else self._command.end()


def _is_outdated(changes: LayerChanges) -> bool:
    """Return True if a changed path is not in the workspace as it was when the layer was read. Blocks."""
    every = (*changes.changes, *changes.repository_changes)
    return any(identity_of(status_of(change.target)) != change.seen for change in every)
