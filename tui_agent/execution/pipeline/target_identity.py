"""Identity of the files at a call's targets, by device and inode: the user approves those files, not their names.

A target that does not exist yet is identified by the nearest directory above it.
"""

import os
from collections.abc import Collection, Iterable
from dataclasses import replace

from tui_agent.protocol.tool import JudgedTarget

Identity = tuple[int, int]
"""Device and inode."""


def with_identities(paths: Iterable[str]) -> tuple[JudgedTarget, ...]:
    """Return resolved paths with the identities of what is there now."""
    return tuple(JudgedTarget(path, _path_identities(path)) for path in paths)


def replaced_paths(targets: Iterable[JudgedTarget]) -> list[str]:
    """Return the paths at which there is something else now, or nothing."""
    return [
        path for target in targets for path, device, inode in target.identities if identity_of(path) != (device, inode)
    ]


def without_paths(targets: Iterable[JudgedTarget], paths: Collection[str]) -> tuple[JudgedTarget, ...]:
    """Return the targets without the identities at `paths`, so that any file is accepted there."""
    return tuple(
        replace(target, identities=tuple(known for known in target.identities if known[0] not in paths))
        for target in targets
    )


def identity_of(path: str) -> Identity | None:
    """Return the identity of what is at a path, links not followed; None if there is nothing or it is unreadable."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _path_identities(path: str) -> tuple[tuple[str, int, int], ...]:
    """Return the identities of the target, if it exists, and of the nearest directory above it."""
    found_at = [(path, identity_of(path))]
    directory: str = os.path.dirname(path)
    while (found := identity_of(directory)) is None and directory not in ("", "/"):
        directory = os.path.dirname(directory)
    found_at.append((directory, found))
    return tuple((name, *identity) for name, identity in dict(found_at).items() if identity is not None)
