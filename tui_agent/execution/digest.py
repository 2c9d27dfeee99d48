"""Digest of a call: one hash of the tool, its arguments and the paths they resolve to, which an approval covers."""

import hashlib
import json
import os
from collections.abc import Iterable

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.trial import Place, ProposedChanges


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
