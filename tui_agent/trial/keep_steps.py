"""The steps that keep a layer, and their journal, which is written before the first step.

Each step reaches its file through directories that are held open, never through a link.
"""

import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tui_agent.protocol.regular_file import sync_directory
from tui_agent.protocol.trial import REPOSITORY

from .layer_files import identity_of, is_same_file, kind_of, next_data, remove_marks, status_of

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
    """The journal of one layer. Its methods block."""

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
            # JSON escapes everything else, so that names with invalid bytes come back as they were.
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
        """Return the journal of a layer; None if keeping was not begun or the journal is not whole.

        Raises:
            OSError: it cannot be read.
        """
        name = next((name for name in (_UNDO, _FILE) if (directory / name).exists()), None)
        if name is None:
            return None
        try:
            # A journal that was cut off is not an error: no step is taken before it is whole.
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


_HOLD = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1024 * 1024
CHANGED = "it changed in the workspace since the question was asked; keep it from a new run"


class NotKeptError(Exception):
    """A path cannot be kept; the text says why."""


def hold_locks(journal: KeepJournal) -> None:
    """Take git's locks for the repository; those that the journal's mark names are ours already.

    Each is a link to the mark: unlike a file, a link appears together with its content. After an error, the locks taken
    before stay until `release_locks`.

    Raises:
        NotKeptError: another git holds one.
        OSError: one cannot be made.
    """
    for lock in journal.locks:
        try:
            os.symlink(journal.mark, lock)
        except FileExistsError:
            if not _is_ours(lock, journal.mark):
                raise NotKeptError(f"another git works in the repository: {lock} exists") from None


def release_locks(journal: KeepJournal) -> None:
    """Remove those locks that are ours; one that cannot be removed stays."""
    for lock in journal.locks:
        with suppress(OSError):
            if _is_ours(lock, journal.mark):
                os.unlink(lock)


def _is_ours(lock: str, mark: str) -> bool:
    try:
        return os.readlink(lock) == mark
    except OSError:
        return False


class StepRunner:
    """Takes the steps of one journal."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._held: tuple[str, int] | None = None

    def run(self, step: Step) -> None:
        """Take one step, unless it was taken before.

        Raises:
            NotKeptError: the file is not the one that was seen.
            OSError: the system refuses it, or a directory on the way became a link.
        """
        try:
            with self._place(step.target) as path:
                if step.action in ("mode", "close"):
                    _set_mode(step, path)
                elif step.action == "watch":
                    _refuse_other(step, status_of(path))
                elif not _is_taken(step, path, now := status_of(path)):
                    self._replace(step, path, now)
        except (FileNotFoundError, NotADirectoryError):
            # Its directory went with a later step, before a kill.
            if step.action != "remove" or not (was_directory(step) or status_of(step.saved) is not None):
                raise

    def undo(self, step: Step) -> None:
        """Take a step of the repository's state back, if it was taken; objects stay: others may use them by now.

        Raises:
            OSError: the system refuses it.
        """
        if step.action in ("object", "watch") or status_of(os.path.dirname(step.target)) is None:
            return  # It was not taken, as its directory is missing.
        with self._place(step.target) as path:
            now = status_of(path)
            if step.action in ("mode", "close"):
                if step.seen and now is not None and now.st_ino == step.seen[1]:
                    os.chmod(path, stat.S_IMODE(step.seen[2]))
            elif _is_taken(step, path, now) or (now is None and _was_removed(step)):
                self._put_back(step, path, now)

    def close(self) -> None:
        """Close the directory that is held."""
        if self._held is not None:
            os.close(self._held[1])
            self._held = None

    @contextmanager
    def _place(self, target: str) -> Generator[Path, None, None]:
        """Yield a path to a target in its directory, which stays open for the next step."""
        parent, _, name = target.rpartition("/")
        if self._held is None or self._held[0] != parent:
            self.close()
            self._held = parent, _hold(parent)
        yield Path(f"/proc/self/fd/{self._held[1]}/{name}")

    def _replace(self, step: Step, path: Path, now: os.stat_result | None) -> None:
        """Save and remove what is there, and put in place what comes instead; a file replaces a file at once."""
        if kind_of(now) == "directory":
            if not was_directory(step):
                raise NotKeptError(CHANGED)
            try:
                os.rmdir(path)
            except OSError as error:
                if step.action == "remove" and not step.path:
                    return  # Not all that was in it is deleted.
                raise NotKeptError("the directory is not empty in the workspace") from error
        elif now is not None or not (was_directory(step) or _was_removed(step)):
            _refuse_other(step, now)
            if now is not None:
                _save(step, path)
                if step.action != "put":
                    os.unlink(path)
        if step.action == "directory":
            # Files are still to be put into it; its own mode comes last.
            os.mkdir(path, 0o700)
        elif step.action != "remove":
            _make_ready(step)
            self._move(step.source, path)

    def _put_back(self, step: Step, path: Path, now: os.stat_result | None) -> None:
        if step.action == "directory":
            with suppress(OSError):
                os.rmdir(path)
        if status_of(step.saved) is not None:
            self._move(step.saved, path)
        elif step.action == "put" and now is not None and (not step.seen or was_directory(step)):
            os.unlink(path)
        if was_directory(step):
            with suppress(FileExistsError):
                os.mkdir(path, stat.S_IMODE(step.seen[2]))

    def _move(self, source: str, path: Path) -> None:
        """Put a stored file in place at once; between file systems, by a copy beside it."""
        try:
            os.rename(source, path)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            beside = path.with_name(f".{path.name[:40]}.{self._mark[:16]}.tmp")
            try:
                _copy(Path(source), beside)
                os.rename(beside, path)
            except OSError:
                with suppress(OSError):
                    os.unlink(beside)
                raise
            os.unlink(source)


def _set_mode(step: Step, path: Path) -> None:
    # O_PATH needs no permission on the file, which may have the mode 000; `fchmod` refuses it, the path below does not.
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        now = os.fstat(descriptor)
        is_other = (now.st_dev, now.st_ino) != step.seen[:2] if step.seen else not stat.S_ISDIR(now.st_mode)
        if is_other:
            raise NotKeptError(CHANGED)
        if kind_of(now) in ("file", "directory"):
            os.chmod(f"/proc/self/fd/{descriptor}", step.mode)
    finally:
        os.close(descriptor)


def _save(step: Step, path: Path) -> None:
    """Keep the old file, by a second name for it if the file system allows that."""
    if status_of(step.saved) is not None:
        return
    try:
        os.link(path, step.saved, follow_symlinks=False)
    except OSError:
        unfinished = Path(step.saved + ".tmp")
        _copy(path, unfinished)
        os.rename(unfinished, step.saved)


def _make_ready(step: Step) -> None:
    """Take the notes of overlayfs from a stored file, and give it its mode."""
    source = Path(step.source)
    parent = stat.S_IMODE(os.lstat(source.parent).st_mode)
    # Also in a directory of the layer that the command closed, a name has to be removed.
    os.chmod(source.parent, parent | 0o700)
    if stat.S_ISREG(os.lstat(source).st_mode):
        os.chmod(source, step.mode | 0o600)
        remove_marks(source)
        os.chmod(source, step.mode)


def _hold(directory: str) -> int:
    """Open a directory for looking up names, part by part, following no link."""
    held = os.open("/", _HOLD)
    for name in directory.split("/"):
        if name:
            try:
                deeper = os.open(name, _HOLD, dir_fd=held)
            finally:
                os.close(held)
            held = deeper
    return held


def _is_taken(step: Step, path: Path, now: os.stat_result | None) -> bool:
    """Return True if a step was taken before a kill."""
    if step.action == "remove":
        return now is None or (status_of(step.saved) is not None and not _is_as_seen(step, now))
    if step.action == "directory":
        return kind_of(now) == "directory"
    if step.action == "object" and now is not None:
        return True
    return status_of(step.source) is None or (
        now is not None and not _is_as_seen(step, now) and _is_equal(step, path, now)
    )


def _is_equal(step: Step, path: Path, now: os.stat_result) -> bool:
    """Return True if a file in the workspace is a finished copy of the stored one."""
    has_mode = stat.S_ISLNK(now.st_mode) or stat.S_IMODE(now.st_mode) == step.mode
    return has_mode and is_same_file(step.source, os.lstat(step.source), path, now)


def was_directory(step: Step) -> bool:
    """Return True if a directory was in the workspace."""
    return len(step.seen) > 0 and stat.S_ISDIR(step.seen[2])


def _was_removed(step: Step) -> bool:
    """Return True if a kill came after the old file was removed and before its directory was made."""
    return step.action == "directory" and status_of(step.saved) is not None


def _is_as_seen(step: Step, now: os.stat_result | None) -> bool:
    # The second name that saves a file changes the time of its status.
    return identity_of(now)[:5] == step.seen[:5]


def _refuse_other(step: Step, now: os.stat_result | None) -> None:
    if not _is_as_seen(step, now):
        raise NotKeptError(CHANGED)


def _copy(source: Path, to: Path) -> None:
    """Copy a file with its holes, or a link; mode, times and attributes too. What was there is replaced."""
    with suppress(FileNotFoundError):
        os.unlink(to)
    status = os.lstat(source)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(source), to)
        shutil.copystat(source, to, follow_symlinks=False)
        return
    if not stat.S_ISREG(status.st_mode):
        raise NotKeptError("it is neither a file nor a link")
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(source, _READ), "rb", 0) as reading, open(os.open(to, new, 0o600), "wb", 0) as writing:
        at = 0
        while (at := next_data(reading.fileno(), at, status.st_size)) < status.st_size:
            block = os.pread(reading.fileno(), _BLOCK, at)
            if not block:
                break
            at += os.pwrite(writing.fileno(), block, at)
        writing.truncate(status.st_size)
        shutil.copystat(source, to, follow_symlinks=False)
        # The layer is removed afterwards: by then the copy has to be on the disk.
        os.fsync(writing.fileno())
