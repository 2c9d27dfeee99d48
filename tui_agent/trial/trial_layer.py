"""One layer: the command line that runs a command in it, what the walls refused, and its changes."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.git.personal_settings import plain_git_settings
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.programs import find_program
from tui_agent.protocol.trial import KeepReport, KeepSelection, LayerChanges, Place, WalledCommand
from tui_agent.walls.refusals import NETWORK_ERRORS, refusals
from tui_agent.walls.system_call_filter import filter_for_namespaces
from tui_agent.walls.visible_places import own_home, visible_places

from .bubblewrap_walls import BubblewrapWalls
from .confinement import Confinement
from .covered_places import LayerRoot
from .keeping import finish_keeping, keep_changes
from .landlock_walls import LandlockWalls
from .layer_changes import read_changes
from .layer_files import identity_of, status_of
from .layer_limits import LayerLimits, LayerWatch, WallsStatus
from .layer_storage import RECORD, is_finished, remove_tree
from .trial_environment import trial_environment

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
        self._roots = (*roots,)
        self._made_ns = made_ns
        self._box = box
        self._walls = walls
        self._status: WallsStatus | None = None
        self._watch: LayerWatch | None = None
        self._files: list[int] = []
        self._changes: LayerChanges | None = None
        self._problem = ""

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
        box, walls, limits = self._box, self._walls, self._box.limits
        visible = visible_places(box.workspace, environment.get("PATH", os.defpath), environment)
        gradle = str(own_home() / ".gradle/caches")
        cache, temporary = walls.seen_at(box)
        variables = trial_environment(
            environment,
            cache=cache,
            temporary=temporary,
            network=box.network,
            gradle_home=gradle if gradle in visible.shown else "",
        )
        self._status = status = WallsStatus()
        try:
            settings, calls = map(self._file_with, (plain_git_settings(box.workspace), filter_for_namespaces()))
            start = walls.command_line(
                box,
                self._roots,
                self._directory,
                visible,
                settings=settings,
                status=status.writing,
                calls=calls,
                opened=self._opened,
            )
        except (OSError, ToolError) as error:
            self.end()
            raise ToolError(f"The command was not run: no trial can be set up here: {error}") from error
        watched = [root.upper for root in self._roots if walls.has_layer]
        self._watch = LayerWatch(status, [*watched, box.temporary, box.other_temporary], limits)
        limiter = () if isinstance(walls, LandlockWalls) else _limiter(box.workspace, limits)
        variables |= walls.variables(self._directory)
        return WalledCommand((*start, *limiter, *argv), variables, (status.writing, *self._files))

    def started(self, output: bytes, returncode: int | None) -> str:
        """Return why the walls could not be set up, so that the command did not run; empty if it ran."""
        if self._status is None or returncode is None or returncode <= 0 or self._status.has_started():
            return ""
        self._box.on_failure()
        return output.decode("utf-8", "replace").strip() or f"the walls ended with code {returncode}"

    def refused(self, output: str) -> str:
        """Return in words what the walls refused, by the messages in the output of a failed command."""
        box = self._box
        writes = _OUTSIDE if self.place == "trial" else _NOTHING
        network = () if box.network else NETWORK_ERRORS
        shown = [root.place for root in self._roots]
        return refusals(output, (*network, writes, *_ERRORS), box.workspace, [*shown, *box.shown])

    def changes(self, *, again: bool = False) -> LayerChanges:
        """Return what the command changed; `again`: compared with the workspace as it is now."""
        if self._changes is None or (again and _is_outdated(self._changes)):
            self.end()
            if self._problem or self.place == "read_only":
                self._changes = LayerChanges(problem=self._problem)
            else:
                self._changes = read_changes(self._roots, made_ns=self._made_ns, sorter=self._box.sorter)
        return self._changes

    def keep(self, selection: KeepSelection) -> KeepReport:
        """Apply a part of the changes to the workspace."""
        return keep_changes(self._directory, self.changes(), selection)

    def finish(self) -> KeepReport | None:
        """Finish a keeping that a kill interrupted, and return what was kept; None if none had begun."""
        return finish_keeping(self._directory)

    def record(self, result: str) -> None:
        """Store the call's result with the layer, so that the question survives the end of the program."""
        roots = [str(root.place) for root in self._roots]
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

    def end(self) -> None:
        """Wait until all processes of the command have ended, and close the files for it; safe to call twice."""
        if self._watch is not None:
            self._watch.stop()
            self._problem = self._watch.problem
            self._watch = None
        if self._status is not None:
            if not self._status.wait_for_all():
                self._problem = "some of its processes still run"
            self._status.close()
        while self._files:
            os.close(self._files.pop())

    def _opened(self, path: str) -> int:
        """Return a descriptor of a file, which lasts until the end."""
        self._files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        return self._files[-1]

    def _file_with(self, content: bytes) -> int:
        """Return a descriptor for reading some bytes, which lasts until the end."""
        self._files.append(os.memfd_create("trial", os.MFD_CLOEXEC))
        os.write(self._files[-1], content)
        return os.lseek(self._files[-1], 0, os.SEEK_SET) or self._files[-1]


def _is_outdated(changes: LayerChanges) -> bool:
    """Return True if a changed path is not in the workspace as it was when the layer was read. Blocks."""
    every = (*changes.changes, *changes.repository_changes)
    return any(identity_of(status_of(change.target)) != change.seen for change in every)


def _limiter(workspace: Path, limits: LayerLimits) -> tuple[str, ...]:
    """Return the command line that sets the kernel's limits inside the walls, where no other process counts."""
    prlimit = find_program("prlimit", workspace)
    if prlimit is None:
        return ()
    return (str(prlimit), f"--nproc={limits.processes}", f"--fsize={limits.size}", "--core=0", "--")
