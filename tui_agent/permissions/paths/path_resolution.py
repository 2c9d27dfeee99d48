"""Resolution of paths: follows links component by component as the kernel does, without opening anything.

`..` is never removed before the links ahead of it are followed. A path that does not exist yet is resolved up to its
longest existing parent.
"""

import os
from dataclasses import dataclass

from .tree_walk import TooMuchError, entries_below

MAX_LINKS = 40
"""Maximum number of links before a path counts as a loop, as in the kernel."""
MAX_ENTRIES = 5_000
"""Maximum number of directory entries to check for links."""
MAX_LENGTH = 4_096
"""Maximum length of a path in characters, as in the kernel; a longer one is not followed."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Result of resolving a path."""

    path: str
    """Absolute path without links."""
    passed: frozenset[str]
    """Top-level directories on the way, such as `/proc`, including those that a link entered and left."""
    is_certain: bool
    """False for a loop or an unreadable directory: the path may lead anywhere."""


def resolve(path: str, directory: str) -> Resolved:
    """Resolve `path` from `directory`, which is absolute."""
    absolute = path if path.startswith("/") else f"{directory}/{path}"
    if len(absolute) > MAX_LENGTH:
        return Resolved(absolute, frozenset(), is_certain=False)
    waiting = absolute.split("/")[::-1]
    current: list[str] = []
    passed: set[str] = set()
    links = 0
    exists = True
    while waiting:
        name = waiting.pop()
        if name in ("", "."):
            continue
        if name == "..":
            if current:
                current.pop()
            continue
        current.append(name)
        if len(current) == 1:
            passed.add(f"/{name}")
        if not exists:
            continue
        try:
            target = os.readlink("/" + "/".join(current))
        except FileNotFoundError:
            # Below a missing name there are no links; but a later `..` may lead back to existing directories.
            exists = ".." in waiting
            continue
        except (PermissionError, ValueError):
            return Resolved("/" + "/".join([*current, *_rest(waiting)]), frozenset(passed), is_certain=False)
        except OSError:
            continue  # Not a link.
        links += 1
        if links > MAX_LINKS:
            return Resolved("/" + "/".join([*current, *_rest(waiting)]), frozenset(passed), is_certain=False)
        current.pop()
        if target.startswith("/"):
            current = []
        waiting.extend(target.split("/")[::-1])
    return Resolved("/" + "/".join(current), frozenset(passed), is_certain=True)


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


def _rest(waiting: list[str]) -> list[str]:
    return [name for name in reversed(waiting) if name not in ("", ".")]
