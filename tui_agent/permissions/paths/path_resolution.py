"""Resolution of paths: follows links component by component as the kernel does, without opening anything.

`..` is never removed before the links ahead of it are followed. A path that does not exist yet is resolved up to its
longest existing parent.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_LINKS = 40
"""Maximum number of links before a path counts as a loop, as in the kernel."""
MAX_ENTRIES = 5_000
"""Maximum number of directory entries to check for links."""
MAX_LENGTH = 4_096
"""Maximum length of a path in characters, as in the kernel; a longer one is not followed."""


class TooMuchError(Exception):
    """A directory holds more entries than the limit."""


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
    """As for `Resolved`."""
    is_inside: bool
    """True if the path is certainly in the workspace, compared by components."""
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
    """Absolute path without links."""
    is_certain: bool
    """False if the path may lead anywhere: for a loop, an unreadable directory, and a way through `/proc`, whose links
    are those of another process."""


def resolve(path: str, directory: str) -> Resolved:
    """Resolve `path` from `directory`, which is absolute."""
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


def links_stay_inside(root: str) -> bool:
    """True if no link below a directory (absolute, without links) leads out of it.

    False if the directory has too many entries.
    """
    try:
        links = (entry for entry in entries_below(root, MAX_ENTRIES, must_read=True) if entry.is_symlink())
        return all(is_within(os.path.realpath(link.path), root) for link in links)
    except (TooMuchError, OSError):
        return False


def entries_below(
    root: str,
    limit: int,
    *,
    enters: Callable[[os.DirEntry[str]], bool] | None = None,
    must_read: bool = False,
) -> Iterator[os.DirEntry[str]]:
    """Yield the entries below an absolute directory, in no order; none if it is a file. Links are not followed. Blocks.

    Args:
        root: absolute.
        limit: maximum number of entries.
        enters: True for a yielded directory that is to be entered; None to enter all.
        must_read: an unreadable directory is an error; else it is skipped.

    Raises:
        TooMuchError: there are more entries.
        OSError: `must_read`, and a directory cannot be read.
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
                    if entry.is_dir(follow_symlinks=False) and (enters is None or enters(entry)):
                        waiting.append(entry.path)
        except (NotADirectoryError, ValueError):
            continue  # A file, or a text that cannot be a path on this file system.
        except OSError:
            if must_read:
                raise
