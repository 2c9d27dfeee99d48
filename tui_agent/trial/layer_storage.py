"""Directories in which layers are stored: finding a place, holding it for a session, removing what is left over."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tui_agent.protocol.errors import ToolError

from .keeping import finish_keeping, is_kept_in_part
from .layer_limits import LayerLimits, usage

RECORD = "record.json"
"""File in a layer that waits for an answer."""
_FALLBACKS = ("/var/tmp", "/dev/shm")
"""Directories for layers if the usual one cannot hold them."""
_SESSIONS, _PROJECTS, _LOCK = "sessions", "projects", "lock"
_LAYERS, _TEMPORARY, _OTHER_TEMPORARY, _CACHE = "layers", "tmp", "var-tmp", "cache"
MOST_CACHED = LayerLimits(files=1_000_000)
"""Most of what the cache of a project holds; a larger one is emptied when the last program ends."""
_MOST_NAMES = 10
"""Most programs at the same time with one session."""


def storage_candidates(storage: Path, workspace: Path) -> list[Path]:
    """Return the directories to try, those on the workspace's file system first: keeping is then a rename. Blocks.

    Raises:
        OSError: the workspace cannot be looked up.
    """
    shared = [Path(parent, f"tui-agent-trials-{os.geteuid()}") for parent in _FALLBACKS if os.path.isdir(parent)]
    # Overlayfs cannot store changes inside of what it covers, and a command must not see them.
    outside = [path for path in (storage, *shared) if not Path(os.path.realpath(path)).is_relative_to(workspace)]
    device = os.stat(workspace).st_dev
    return sorted(outside, key=lambda path: (path.is_relative_to("/dev"), _device(path) != device))


def _device(path: Path) -> int:
    while not path.exists():
        path = path.parent
    return path.stat().st_dev


def make_private(directory: Path) -> None:
    """Create a directory of this user that no one else may read. Blocks.

    Raises:
        ToolError: it belongs to someone else, or cannot be created.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise ToolError(f"{directory} belongs to someone else")
        if stat.S_IMODE(status.st_mode) != 0o700:
            directory.chmod(0o700)
    except OSError as error:
        raise ToolError(f"{directory}: {error.strerror}") from error


class SessionStorage:
    """Directories of one session, locked so that no other program takes its layers for left over. Its methods block."""

    def __init__(self, base: Path, session: str, workspace: Path) -> None:
        """Create and lock them.

        Raises:
            ToolError: they cannot be created.
        """
        self.base = base
        for directory in (base, base / _SESSIONS, base / _PROJECTS):
            make_private(directory)
        # A name is enough to find the cache again; nothing is read from it.
        self._project = project = base / _PROJECTS / hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
        self.cache = project / _CACHE
        self.directory, self._lock = _hold(base / _SESSIONS, session)
        self.layers = self.directory / _LAYERS
        self.temporary = self.directory / _TEMPORARY
        self.other_temporary = self.directory / _OTHER_TEMPORARY
        for directory in (project, self.cache, self.layers, self.temporary, self.other_temporary):
            make_private(directory)
        # One thread, as removals at the same time only slow each other down.
        self._later = ThreadPoolExecutor(1, thread_name_prefix="layer-removal")
        self._cache_lock = os.open(project / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(self._cache_lock, fcntl.LOCK_SH)
        self.cache.mkdir(mode=0o700, exist_ok=True)
        for layer in self.layers.iterdir():
            is_finished(layer)

    def waiting(self) -> Iterator[Path]:
        """Yield the directories of layers that wait for an answer, after all work of `later` is done."""
        self._later.submit(int).result()
        for layer in sorted(self.layers.iterdir()):
            if (layer / RECORD).is_file():
                yield layer

    def later(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread, in the order of the calls; `close` waits for it, and after `close` it runs at once.

        What it raises in the thread is lost.
        """
        if self._lock >= 0:
            self._later.submit(work)
        else:
            work()

    def close(self) -> None:
        """Wait for the work of `later`, remove what waits for no answer, and release the lock; safe to call twice."""
        if self._lock >= 0:
            self._later.shutdown()
            clear_session(self.directory)
            os.close(self._lock)
            self._lock = -1
            self._limit_cache()

    def _limit_cache(self) -> None:
        """Empty the project's cache if it is too large and no other program uses it."""
        os.close(self._cache_lock)
        if (lock := _lock(self._project)) is not None:
            size, files = usage([self.cache], MOST_CACHED)
            if size > MOST_CACHED.size or files > MOST_CACHED.files:
                remove_tree(self.cache)
            os.close(lock)


def _hold(sessions: Path, session: str) -> tuple[Path, int]:
    """Return a directory of the session that no other program holds, and the lock on it."""
    name = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in session)[:80] or "session"
    for number in range(_MOST_NAMES):
        directory = sessions / (f"{name}.{number}" if number else name)
        while True:
            make_private(directory)
            if (lock := _lock(directory)) is None:
                break
            # Another program may have removed it between both steps.
            if (directory / _LOCK).exists():
                return directory, lock
            os.close(lock)
    raise ToolError(f"other programs hold the layers of session {session}")


def _lock(directory: Path) -> int | None:
    """Return a descriptor that locks a session's directory; None if another program does."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
        else:
            return descriptor
    return None


def clear_dead_sessions(base: Path) -> None:
    """Remove the layers of sessions that no program holds, but for those that wait for an answer. Blocks."""
    with contextlib.suppress(OSError):
        for directory in sorted((base / _SESSIONS).iterdir()):
            if (lock := _lock(directory)) is not None:
                clear_session(directory)
                os.close(lock)


def clear_session(directory: Path) -> None:
    """Remove a session's files, but for layers that wait for an answer, which also need its /tmp. Blocks.

    The keeping that a kill interrupted is finished or undone first, so that nothing stays half-kept.
    """
    layers = list((directory / _LAYERS).iterdir()) if (directory / _LAYERS).is_dir() else []
    left = [layer for layer in layers if is_finished(layer) and not _waits(layer)]
    for layer in left:
        remove_tree(layer)
    if len(left) == len(layers):
        remove_tree(directory)


def _waits(layer: Path) -> bool:
    """Return True if a layer waits for an answer, which needs its session."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        session = json.loads((layer / RECORD).read_text("utf-8"))["session"]
        return not session or os.path.lexists(session)
    return False


def is_finished(layer: Path) -> bool:
    """Finish or undo a keeping that was interrupted; return False if that fails and part of the layer stays half-kept.

    Blocks; never raises.
    """
    try:
        finish_keeping(layer)
        return not is_kept_in_part(layer)
    except OSError:
        return False


def remove_tree(top: Path) -> None:
    """Remove a directory that a command filled, whatever modes and depths it has; ignore a missing one.

    Blocks. No process of the command may live.
    """
    try:
        _remove(str(top))
    except FileNotFoundError:
        return
    except OSError:
        # Deeper than a path can name: these programs change into each directory. Files may have other names in the
        # workspace, so that their modes stay.
        opening = ("find", str(top), "-type", "d", "!", "-perm", "-700", "-execdir", "chmod", "u+rwx", "{}", ";")
        for argv in (opening, ("rm", "-rf", "--", str(top))):
            subprocess.run(argv, capture_output=True, check=False)
        shutil.rmtree(top, ignore_errors=True)


def _remove(top: str) -> None:
    pending = [top]
    while pending:
        directory = pending[-1]
        # A command may have taken the permission from itself.
        os.chmod(directory, 0o700)
        inside: list[str] = []
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inside.append(entry.path)
                else:
                    os.unlink(entry.path)
        pending += inside
        if not inside:
            os.rmdir(pending.pop())
