"""The order in which a repository's files are kept, and git's own locks meanwhile."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from .keep_journal import OBJECT_PHASE, Action
from .keep_steps import NotKeptError

_OTHERS, _PACKED, _REMOVED_REFS, _REFS, _HEAD, _INDEX, _REMOVED_OBJECTS, _MODES = 20, 22, 23, 25, 27, 28, 29, 31
_LOCKED = ("HEAD", "index", "packed-refs")


def repository_phase(name: str, action: Action) -> int:
    """Return the place of a file in the order of steps: objects first, then refs, HEAD and index.

    Args:
        name: the file's path in the repository's directory.
        action: the step's.
    """
    if action == "mode":
        return _MODES
    is_removal = action in ("remove", "prune")
    if name.startswith("refs/"):
        return _REMOVED_REFS + (action == "prune") if is_removal else _REFS + (action == "put")
    if name.startswith("objects/"):
        return _REMOVED_OBJECTS + (action == "prune") if is_removal else OBJECT_PHASE - (action != "put")
    if name == "packed-refs":
        return _PACKED
    last = "" if name.startswith("logs/") else name.rpartition("/")[2]
    others = _OTHERS + (action in ("put", "prune"))
    return _HEAD if last == "HEAD" else _INDEX if last == "index" else others


def lock_paths(targets: Iterable[str]) -> list[str]:
    """Return the locks that git takes to change these files of repositories."""
    locks: dict[str, None] = {}
    for target in targets:
        name = os.path.basename(target)
        is_ref = "/refs/" in target and "/logs/" not in target and os.path.lexists(target)
        if name in _LOCKED or is_ref:
            locks[f"{target}.lock"] = None
    return list(locks)


def hold_locks(locks: Sequence[str], mark: str) -> None:
    """Take locks, or find them taken with the same mark.

    Raises:
        NotKeptError: another git holds one; none is held then.
        OSError: one cannot be made; none is held then.
    """
    try:
        for lock in locks:
            _hold_lock(lock, mark)
    except BaseException:
        release_locks(locks, mark)
        raise


def release_locks(locks: Sequence[str], mark: str) -> None:
    """Remove those locks that have the mark."""
    for lock in locks:
        with suppress(OSError):
            os.unlink(f"{lock}.{mark[:16]}")
        with suppress(OSError):
            if _is_ours(lock, mark):
                os.unlink(lock)


def _hold_lock(lock: str, mark: str) -> None:
    """Take a lock together with its content, so that a kill leaves no lock of unknown origin."""
    beside = f"{lock}.{mark[:16]}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, mark.encode())
        os.link(beside, lock)
    except FileExistsError:
        if not _is_ours(lock, mark):
            raise NotKeptError(f"another git works in the repository: {lock} exists") from None
    finally:
        os.close(descriptor)
        os.unlink(beside)


def _is_ours(lock: str, mark: str) -> bool:
    try:
        return Path(lock).read_bytes() == mark.encode()
    except OSError:
        return False
