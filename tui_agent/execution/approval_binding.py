"""Binding of an approval to its call: the call's digest, and the files at its targets.

The user approves files, not their names: each is identified by device and inode. A target that does not exist yet is
identified by the nearest directory above it.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterable
from dataclasses import replace

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.tool import JudgedTarget
from tui_agent.protocol.trial import Place, ProposedChanges

Identity = tuple[int, int]
"""Device and inode."""


def call_digest(
    tool_name: str,
    arguments: JsonObject,
    targets: Iterable[str] = (),
    schema: JsonObject | None = None,
    scripts: Iterable[str] = (),
    place: Place = "outside",
) -> str:
    """Return a hash that is the same exactly if tool, arguments, resolved targets, scripts and place are the same.

    Args:
        tool_name: the tool's name.
        arguments: arguments in effect; the order of keys does not matter.
        targets: resolved paths that the call would touch; their order does not matter.
        schema: input schema of the tool, which counts as another tool if it changes; None: any tool of that name.
        scripts: paths of files that the call runs; their contents count. Blocks for the time to read them.
        place: place in which the call runs.

    Returns:
        64 hexadecimal digits.
    """
    bound = [tool_name, arguments, sorted(targets), *([] if schema is None else [schema])]
    bound += [{"place": place}] if place != "outside" else []
    bound += [[(path, _content_mark(path)) for path in sorted(scripts)]] if scripts else []
    canonical = json.dumps(bound, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def changes_digest(call: str, changes: ProposedChanges) -> str:
    """Return a hash that is the same exactly if the digest of the call and everything it proposes are the same."""
    return hashlib.sha256(f"{call} {changes.model_dump_json()}".encode("utf-8", "surrogatepass")).hexdigest()


def _content_mark(path: str) -> str:
    """Return a hash of a file's content; of one that is large or unreadable, its times and size."""
    try:
        return hashlib.sha256(read_regular_file(path)).hexdigest()
    except OSError:
        pass
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


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
