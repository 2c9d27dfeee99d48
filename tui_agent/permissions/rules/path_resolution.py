"""Resolution of paths: follows links component by component as the kernel does, without opening anything.

`..` is never removed before the links ahead of it are followed. A path that does not exist yet is resolved up to its
longest existing parent.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_LINKS = 40
"""Maximum number of links before a path counts as a loop, as in the kernel."""
MAX_LENGTH = 4_096
"""Maximum length of a path in characters, as in the kernel; a longer one is not followed."""


class TooMuchError(Exception):
    """A directory holds more entries than the limit."""


class WorkspaceRoots:
    """The workspace, and the folders that were added to it: files in them are read and changed under the same rules."""

    def __init__(self, workspace: str | os.PathLike[str], folders: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.named = os.path.abspath(workspace)
        """The workspace as named, absolute."""
        self.workspace = os.path.realpath(workspace)
        self.folders: tuple[str, ...] = ()
        for folder in folders:
            self.add(folder)

    def add(self, folder: str | os.PathLike[str]) -> None:
        """Add a folder; its links are followed now. One that was added already changes nothing."""
        self.folders = tuple(dict.fromkeys((*self.folders, os.path.realpath(folder))))

    @property
    def bases(self) -> tuple[str, ...]:
        """The directories from which the patterns of rules start."""
        return tuple(dict.fromkeys((self.workspace, self.named, *self.folders)))

    def hold(self, path: str) -> bool:
        """True if a path, with every link followed, is one of these directories or below one."""
        return is_within(path, self.workspace) or any(is_within(path, folder) for folder in self.folders)

    def below(self, path: str) -> str:
        """Return a path relative to the directory that holds it, beginning with `/`; other paths unchanged."""
        return path[len(next((top for top in self.bases if is_within(path, top)), "")) :]


@dataclass(frozen=True, slots=True)
class PathFacts:
    """One path as a call names it and as it resolves."""

    given: str
    """Path as the call names it."""
    lexical: str
    """Absolute path by text alone, as the author of a rule sees it."""
    resolved: str
    """Absolute path, links followed."""
    is_certain: bool
    is_inside: bool
    """True if the path is certainly in the workspace or an added folder, compared by components."""
    is_device: bool
    """True for `/dev/null` and for the command's own streams."""
    private: str | None
    """Reason why only the user may decide: our own settings and sessions, other processes' secrets."""
    is_readable: bool
    """True if reading needs no answer: in the workspace and not private, or below a path opened for reading."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Result of resolving a path."""

    path: str
    is_certain: bool
    """False if the path may lead anywhere: for a loop, an unreadable directory, and a way through `/proc`, whose links
    are those of another process."""


def resolve(path: str, directory: str) -> Resolved:
    """Resolve `path` from `directory`, which is absolute. Blocks; never raises: see `Resolved.is_certain`."""
    absolute = path if path.startswith("/") else f"{directory}/{path}"
    if len(absolute) > MAX_LENGTH:
        return Resolved(absolute, is_certain=False)
    waiting = absolute.split("/")[::-1]
    current: list[str] = []
    links = 0
    exists = is_known = is_certain = True
    while waiting:
        name = waiting.pop()
        if name in ("", "."):
            continue
        if name == ".." and is_known:
            current = current[:-1]
            continue
        current.append(name)
        is_certain = is_certain and current != ["proc"]
        if not exists or not is_known:
            continue
        try:
            target = os.readlink("/" + "/".join(current))
        except FileNotFoundError:
            # Below a missing name there are no links; but a later `..` may lead back to existing directories.
            exists = ".." in waiting
            continue
        except (PermissionError, ValueError):
            is_known = False
            continue
        except OSError:
            continue  # Not a link.
        links += 1
        if links > MAX_LINKS:
            is_known = False
            continue
        current = [] if target.startswith("/") else current[:-1]
        waiting.extend(target.split("/")[::-1])
    return Resolved("/" + "/".join(current), is_certain and is_known)


def is_within(path: str, directory: str) -> bool:
    """True if `path` is `directory` or below it, by components; both absolute and without links."""
    return path == directory or directory == "/" or path.startswith(directory + "/")


def entries_below(root: str, limit: int) -> Iterator[os.DirEntry[str]]:
    """Yield the entries below an absolute directory, in no order; none if it is a file. Links are not followed. Blocks.

    Raises:
        TooMuchError: there are more entries than the limit.
    """
    waiting = [root]
    left = limit
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        raise TooMuchError(root)
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (OSError, ValueError):
            continue  # A file, a directory that cannot be read, or a text that cannot be a path on this file system.
