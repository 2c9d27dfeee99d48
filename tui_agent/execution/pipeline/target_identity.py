"""What stands where a call leads, by device and inode: a person's answer counts for that, not for a name (safety 6).

Of a target that does not exist yet, the nearest directory that does is what can be recognised.
"""

import os
from collections.abc import Collection, Iterable
from dataclasses import replace

from tui_agent.protocol.tool import JudgedTarget

Identity = tuple[int, int]
"""Device and inode."""


def with_identities(paths: Iterable[str]) -> tuple[JudgedTarget, ...]:
    """Resolved paths with what stands there now."""
    return tuple(JudgedTarget(path, _path_identities(path)) for path in paths)


def replaced_paths(targets: Iterable[JudgedTarget]) -> list[str]:
    """The places where something else stands now, or nothing."""
    return [
        place
        for target in targets
        for place, device, inode in target.identities
        if identity_of(place) != (device, inode)
    ]


def without_paths(targets: Iterable[JudgedTarget], places: Collection[str]) -> tuple[JudgedTarget, ...]:
    """The same targets, where it does not matter any more what stands at `places`."""
    return tuple(
        replace(target, identities=tuple(known for known in target.identities if known[0] not in places))
        for target in targets
    )


def identity_of(path: str) -> Identity | None:
    """What stands at a path, links not followed; None: nothing, or nobody may look."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _path_identities(path: str) -> tuple[tuple[str, int, int], ...]:
    """The target, if it exists, and the nearest directory above it."""
    places = [(path, identity_of(path))]
    directory: str = os.path.dirname(path)
    while (found := identity_of(directory)) is None and directory not in ("", "/"):
        directory = os.path.dirname(directory)
    places.append((directory, found))
    return tuple((place, *known) for place, known in dict(places).items() if known is not None)
