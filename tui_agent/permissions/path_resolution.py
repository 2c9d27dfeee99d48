"""Where a path really leads: links followed component by component, as the kernel would, without touching anything.

`..` is never removed by text before the links in front of it are followed. What does not exist yet is resolved up to
its longest existing parent.
"""

import os
from dataclasses import dataclass

from .tree_walk import TooMuchError, entries_below

MAX_LINKS = 40
"""Links followed before a path counts as a loop, as in the kernel."""
MAX_ENTRIES = 5_000
"""Most directory entries that are looked at for links."""
MAX_LENGTH = 4_096
"""Longest path that the kernel takes, in letters; what is longer is not followed."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What became of a path."""

    path: str
    """Absolute, without links."""
    passed: frozenset[str]
    """The top-level directories it went through, such as `/proc`, also those a link led into and out of."""
    is_certain: bool
    """False: a loop, or a directory that may not be looked into; the path may lead anywhere."""


def resolve(path: str, directory: str) -> Resolved:
    """Follows `path` from `directory`, which is absolute."""
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
            exists = ".." in waiting
            continue
        except (PermissionError, ValueError):
            return Resolved("/" + "/".join([*current, *_rest(waiting)]), frozenset(passed), is_certain=False)
        except OSError:
            continue
        links += 1
        if links > MAX_LINKS:
            return Resolved("/" + "/".join([*current, *_rest(waiting)]), frozenset(passed), is_certain=False)
        current.pop()
        if target.startswith("/"):
            current = []
        waiting.extend(target.split("/")[::-1])
    return Resolved("/" + "/".join(current), frozenset(passed), is_certain=True)


def is_within(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or below it, by components; both absolute and without links."""
    return path == directory or directory == "/" or path.startswith(directory + "/")


def links_stay_inside(root: str) -> bool:
    """Whether no link below a directory (absolute, without links) leads out of it; no also where there is too much."""
    try:
        links = (entry for entry in entries_below(root, MAX_ENTRIES, must_read=True) if entry.is_symlink())
        return all(is_within(os.path.realpath(link.path), root) for link in links)
    except (TooMuchError, OSError):
        return False


def _rest(waiting: list[str]) -> list[str]:
    return [name for name in reversed(waiting) if name not in ("", ".")]
