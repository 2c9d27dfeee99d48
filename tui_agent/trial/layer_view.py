"""The content of a layer, read from its storage without mounting it: whiteouts, opaque directories, kinds of files."""

import os
import stat
from pathlib import Path

from tui_agent.protocol.trial import FileKind

from .layer_root import LayerRoot

_PREFIXES = ("user.overlay.", "trusted.overlay.")
_KINDS: dict[int, FileKind] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


def status_of(path: str | Path) -> os.stat_result | None:
    """Return the `lstat` of a path; None if nothing is there.

    Raises:
        OSError: it cannot be looked up.
    """
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def kind_of(status: os.stat_result | None) -> FileKind:
    """Return the kind of what has a status."""
    return "absent" if status is None else _KINDS.get(stat.S_IFMT(status.st_mode), "special")


def identity_of(status: os.stat_result | None) -> tuple[int, ...]:
    """Return the facts by which a later look tells whether a file is still the same; empty if nothing is there."""
    if status is None:
        return ()
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def marks_of(path: str | Path) -> dict[str, bytes]:
    """Return what overlayfs noted at a file of an upper directory, such as `opaque` and `origin`.

    Raises:
        OSError: the attributes cannot be read.
    """
    names = os.listxattr(path, follow_symlinks=False)
    return {
        name.removeprefix(prefix): os.getxattr(path, name, follow_symlinks=False)
        for name in names
        for prefix in _PREFIXES
        if name.startswith(prefix)
    }


def remove_marks(path: str | Path) -> None:
    """Remove what overlayfs noted at a file.

    Raises:
        OSError: the attributes cannot be changed.
    """
    for name in os.listxattr(path, follow_symlinks=False):
        if name.startswith(_PREFIXES):
            os.removexattr(path, name, follow_symlinks=False)


def is_whiteout(path: str | Path, status: os.stat_result) -> bool:
    """Return True if a file of an upper directory says that the name is deleted: as a device 0/0, or by a mark."""
    if stat.S_ISCHR(status.st_mode):
        return status.st_rdev == 0
    return stat.S_ISREG(status.st_mode) and status.st_size == 0 and "whiteout" in marks_of(path)


class LayerView:
    """One covered directory as the layer shows it."""

    def __init__(self, root: LayerRoot) -> None:
        self._root = root

    def find(self, path: str) -> Path | None:
        """Return where the content of a path below the directory is stored; None if nothing is there.

        Raises:
            OSError: it cannot be looked up.
        """
        return self._find(path)[0]

    def names(self, path: str) -> set[str]:
        """Return the names in a directory of the layer; none if it is not one.

        Raises:
            OSError: it cannot be listed.
        """
        stored, is_hidden = self._find(path)
        if stored is None or kind_of(status_of(stored)) != "directory":
            return set()
        upper, lower = self._root.upper / path, self._root.place / path
        names = set(os.listdir(stored))
        if stored == upper:
            if not is_hidden and kind_of(status_of(lower)) == "directory":
                names |= set(os.listdir(lower))
            names = {name for name in names if not _is_deleted(upper / name)}
        return names

    def _find(self, path: str) -> tuple[Path | None, bool]:
        """Return the stored path, and True if nothing below it comes from the covered directory."""
        upper, is_hidden = self._root.upper, False
        for name in path.split("/") if path else ():
            upper /= name
            status = status_of(upper)
            if status is None:
                lower = self._root.place / path
                return (None if is_hidden or status_of(lower) is None else lower), is_hidden
            if not stat.S_ISDIR(status.st_mode):
                is_last = upper == self._root.upper / path
                return (upper if is_last and not is_whiteout(upper, status) else None), True
            is_hidden = is_hidden or marks_of(upper).get("opaque") == b"y"
        return upper, is_hidden


def _is_deleted(path: Path) -> bool:
    status = status_of(path)
    return status is not None and is_whiteout(path, status)
