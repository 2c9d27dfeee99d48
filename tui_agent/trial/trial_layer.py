"""One layer: the command line of a command in it, what the walls refused, and what it changed of the real files."""

import json
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.trial import KeepReport, KeepSelection, LayerChange, LayerChanges, Place, WalledCommand
from tui_agent.walls.visible_places import visible_places
from tui_agent.walls.wall_options import NETWORK_ERRORS, refusals

from .command_walls import BubblewrapWalls, LandlockWalls
from .confinement import Confinement, LayerRoot
from .keeping import finish_keeping, keep_changes
from .layer_files import identity_of, is_same_file, is_whiteout, kind_of, marks_of, status_of
from .layer_limits import WatchedCommand
from .layer_storage import RECORD, is_finished, remove_tree
from .repository_state import RepositoryState, repository_in
from .sorting import PathSorter

MEANWHILE = "it changed in the workspace since the command started"
_DELETED_MEANWHILE = "it was deleted in the workspace since the command started"
_UNKNOWN_MARKS = {"redirect": "a renamed directory", "metacopy": "a file without its content"}

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


def read_changes(roots: Sequence[LayerRoot], *, made_ns: int, sorter: PathSorter) -> LayerChanges:
    """Return the changes of a layer, sorted by path. The time depends on them, not on the workspace. Blocks.

    No process may write to the layer any more. If it cannot be read, the result has only a `problem`.

    Args:
        roots: the workspace first, then the repository if it is outside.
        made_ns: `st_ctime_ns` of a file that was created when the layer was made, on the layer's file system.
        sorter: decides which kind of change each path is.
    """
    try:
        return _read_changes(roots, made_ns, sorter)
    except (OSError, _UnreadableLayerError) as error:
        return LayerChanges(problem=f"the changes cannot be read: {error}")


def _read_changes(roots: Sequence[LayerRoot], made_ns: int, sorter: PathSorter) -> LayerChanges:
    found = [change for root in roots for change in _Walk(root, made_ns, root is not roots[0]).run()]
    places = [root.place for root in roots]
    repository = repository_in(roots)
    if repository is None or not found:
        kept, dropped = sorter.sort(found, places)
        return LayerChanges(_in_order(kept), dropped=dropped)
    state = RepositoryState(repository, found, made_ns)
    kept, dropped = sorter.sort(state.rest, places)
    for change in kept if state.words else ():
        change.with_repository = change.sort == "workspace" and state.is_tied(change)
    return LayerChanges(_in_order(kept), state.words, dropped, repository_changes=_in_order(state.files))


def _in_order(changes: Iterable[LayerChange]) -> tuple[LayerChange, ...]:
    return tuple(sorted(changes, key=lambda change: change.path))


class _UnreadableLayerError(Exception):
    """The layer has a form that is not understood."""


@dataclass(slots=True)
class _Directory:
    """One directory, of the layer or only of the workspace, that is still to be read."""

    path: str
    """Below the covered directory; empty or with a final `/`."""
    has_upper: bool
    """True if the layer has a directory there; otherwise everything in it is deleted."""
    has_lower: bool
    """True if the covered directory has a directory there."""
    is_hidden: bool
    """True if nothing of the covered directory shows through."""
    had_lower: bool = False
    """True if the covered directory had one when the command used it."""
    top: str = ""
    """Topmost directory that is deleted with it."""


@dataclass(slots=True)
class _Walk:
    """Walk through the upper directory of one root."""

    root: LayerRoot
    made_ns: int
    is_outside: bool
    _waiting: list[_Directory] = field(default_factory=list[_Directory])

    def run(self) -> Iterator[LayerChange]:
        """Yield every difference between the layer and the covered directory."""
        has_lower = kind_of(status_of(self.root.place)) == "directory"
        is_hidden = marks_of(self.root.upper).get("opaque") == b"y"
        self._waiting.append(_Directory("", True, has_lower, is_hidden, had_lower=True))
        while self._waiting:
            yield from self._read(self._waiting.pop())

    def _read(self, directory: _Directory) -> Iterator[LayerChange]:
        upper, lower = f"{self.root.upper}/{directory.path}", f"{self.root.place}/{directory.path}"
        # Something was added to it, or deleted from it, since the layer was made.
        is_changed = directory.has_lower and os.lstat(lower).st_mtime_ns > self.made_ns
        with _readable(upper) if directory.has_upper else nullcontext():
            stored: dict[str, os.stat_result] = {}
            if directory.has_upper:
                with os.scandir(upper) as entries:
                    stored = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
            names = {*stored, *(os.listdir(lower) if directory.is_hidden and directory.has_lower else ())}
            for name in names:
                yield from self._compare(directory, name, stored.get(name), is_changed)

    def _compare(
        self, directory: _Directory, name: str, status: os.stat_result | None, is_changed: bool
    ) -> Iterator[LayerChange]:
        """Yield the difference at one name, and queue what is below it."""
        path = directory.path + name
        upper, target = f"{self.root.upper}/{path}", f"{self.root.place}/{path}"
        lower = status_of(target) if directory.has_lower else None
        status = None if status is not None and is_whiteout(upper, status) else status
        old, new = kind_of(lower), kind_of(status)
        marks = {} if new in ("absent", "link") else marks_of(upper)
        for mark, what in _UNKNOWN_MARKS.items():
            if mark in marks:
                raise _UnreadableLayerError(f"{path} is {what}")
        if "directory" in (old, new):
            is_kept = new == "directory"
            is_hidden = directory.is_hidden or not is_kept or marks.get("opaque") == b"y"
            top = "" if is_kept else directory.top or path
            self._waiting.append(_Directory(f"{path}/", is_kept, old == "directory", is_hidden, "origin" in marks, top))
        is_same = is_same_file(upper, status, target, lower)
        # Of a directory with something in it, the changes below say enough.
        if new == "directory":
            is_shown = _modes_differ(status, lower) if is_same else lower is not None or _is_empty(upper)
        elif new == "absent":
            is_shown = old != "absent" and (old != "directory" or not os.listdir(target))
        else:
            is_shown = not is_same or (new == "file" and _modes_differ(status, lower))
        if is_shown:
            # A file may also come from elsewhere, by a rename; a directory may not.
            is_lost = is_changed or new == "directory" or (directory.had_lower and not directory.has_lower)
            is_deleted = lower is None and "origin" in marks and is_lost
            conflict = _DELETED_MEANWHILE if is_deleted else self._conflict(lower, new)
            yield self._found(path, status, lower, conflict, is_mode=is_same, top=directory.top)

    def _conflict(self, lower: os.stat_result | None, new: str) -> str:
        """Return why a path may not be replaced without an answer."""
        # The times of a directory that stays one change with its entries, which have conflicts of their own.
        is_both = lower is not None and stat.S_ISDIR(lower.st_mode) and new == "directory"
        is_later = lower is not None and not is_both and lower.st_ctime_ns > self.made_ns
        return MEANWHILE if is_later else ""

    def _found(
        self,
        path: str,
        status: os.stat_result | None,
        lower: os.stat_result | None,
        conflict: str,
        *,
        is_mode: bool,
        top: str,
    ) -> LayerChange:
        kind = "deleted" if status is None else "added" if lower is None else "changed"
        target = Path(f"{self.root.place}/{path}")
        return LayerChange(
            path=str(target) if self.is_outside else path,
            target=target,
            kind="mode" if is_mode else kind,
            sort="workspace",
            old=kind_of(lower),
            new=kind_of(status),
            source=Path(f"{self.root.upper}/{path}"),
            size=status.st_size if status is not None and stat.S_ISREG(status.st_mode) else 0,
            mode=stat.S_IMODE(status.st_mode) if status is not None else 0,
            conflict=conflict,
            seen=identity_of(lower),
            top=self.root.place / top if top else None,
        )


def _modes_differ(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    return one is not None and other is not None and stat.S_IMODE(one.st_mode) != stat.S_IMODE(other.st_mode)


def _is_empty(upper: str) -> bool:
    """Return True if a directory that the command made has no entries but whiteouts."""
    with _readable(upper), os.scandir(upper) as entries:
        return all(is_whiteout(entry.path, entry.stat(follow_symlinks=False)) for entry in entries)


@contextmanager
def _readable(path: str) -> Generator[None, None, None]:
    """Make a directory of the layer readable for a moment: a command may have taken the permission away."""
    mode = stat.S_IMODE(os.lstat(path).st_mode)
    if mode & 0o700 == 0o700:
        yield
        return
    os.chmod(path, mode | 0o700)
    try:
        yield
    finally:
        os.chmod(path, mode)


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
        self._is_released = False
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
        self._is_released = False
        self._command = WatchedCommand([*watched, held.temporary, held.other_temporary], box.limits)
        try:
            start, variables = walls.confined(box, self.roots, self._directory, visible, self._command, environment)
        except (OSError, ToolError) as error:
            self.end()
            raise ToolError(f"The command was not run: no trial can be set up here: {error}") from error
        # Nothing leaves a namespace of processes, and `end` waits for its last one.
        ends_all = isinstance(walls, BubblewrapWalls)
        return WalledCommand((*start, *argv), variables, tuple(self._command.descriptors), ends_all)

    def started(self, output: bytes, returncode: int | None) -> str:
        """Return why the walls could not be set up, so that the command did not run; empty if it ran.

        If there is a reason, the walls are tested again before the next layer.

        Args:
            output: what the command line printed.
            returncode: its exit code; None or negative: it was killed, and the walls count as set up.
        """
        if self._command is None or returncode is None or returncode <= 0 or self._command.has_started():
            return ""
        # Walls that worked at the start may fail later, for example after a change of the system's settings.
        self._box.on_failure()
        return output.decode("utf-8", "replace").strip() or f"the walls ended with code {returncode}"

    def refused(self, output: str) -> str:
        """Return in words what the walls refused, by messages in the output of a failed command; empty for nothing."""
        box = self._box
        writes = _OUTSIDE if self.place == "trial" else _NOTHING
        network = () if box.network else NETWORK_ERRORS
        shown = [root.place for root in self.roots]
        return refusals(output, (*network, writes, *_ERRORS), box.workspace, [*shown, *box.shown])

    def changes(self, *, again: bool = False) -> LayerChanges:
        """Wait for the command's processes and return what it changed; a layer without a copy has no changes.

        If nothing of it can be kept, such as after a limit, the result has only a `problem`.

        Args:
            again: True to compare again if the workspace has changed at one of these paths; False: the first result.
        """
        if self._changes is None or (again and _is_outdated(self._changes)):
            if (problem := self.end()) or self.place == "read_only":
                self._changes = LayerChanges(problem=problem)
            else:
                self._changes = read_changes(self.roots, made_ns=self._made_ns, sorter=self._box.sorter)
        return self._changes

    def keep(self, selection: KeepSelection, result: str = "") -> KeepReport:
        """Apply a part of the changes to the workspace, and return what was kept and what was not.

        Args:
            result: the call's result, which is recorded first; the workspace is then compared again. Empty: neither.

        Raises:
            OSError: the record or the journal cannot be written; nothing was changed.
        """
        if result:
            self.record(result)
        return keep_changes(self._directory, self.changes(again=bool(result)), selection, self._box.held.later)

    def finish(self) -> KeepReport | None:
        """Finish a keeping that a kill interrupted, and return what was kept; None if none had begun.

        Raises:
            OSError: the journal cannot be read or written.
        """
        return finish_keeping(self._directory)

    def record(self, result: str) -> None:
        """Store the call's result with the layer, so that the question survives the end of the program.

        Raises:
            OSError: it cannot be written.
        """
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
        """Have the layer removed; blocks only until its processes have ended."""
        self.end()
        self._box.held.later(partial(_remove, self._directory))

    def end(self) -> str:
        """Wait until all processes of the command have ended; return why nothing of it can be kept, else empty."""
        if self._command is None:
            return ""
        problem = self._command.end()
        if not self._is_released:
            self._is_released = True
            self._box.held.later(self._command.release)
        return problem


def _remove(layer: Path) -> None:
    # A kill in between leaves a layer that no question waits for.
    with suppress(FileNotFoundError):
        (layer / RECORD).unlink()
    if is_finished(layer):
        remove_tree(layer)


def _is_outdated(changes: LayerChanges) -> bool:
    """Return True if a changed path is not in the workspace as it was when the layer was read. Blocks."""
    every = (*changes.changes, *changes.repository_changes)
    return any(identity_of(status_of(change.target)) != change.seen for change in every)
