"""The restrictions that a failed command met, found by the messages in its output."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from .visible_places import visible_places
from .wall_options import NEW

NETWORK_ERRORS = (
    (
        "there is no network",
        (
            "Network is unreachable", "Temporary failure in name resolution", "Could not resolve host", "ENOTFOUND",
            "EAI_AGAIN", "ENETUNREACH", "Name or service not known", "nodename nor servname", "dns error",
            "Temporary failure resolving", "failed to lookup address", "no such host", "Connection refused",
            "ECONNREFUSED", "Couldn't connect to server",
        ),
    ),
)  # fmt: skip
"""Restriction, and the messages of programs that meet it."""

_ABSENT = "of the home, /tmp and the rest of the system only programs, tools and caches are there"
_NOT_THERE = re.compile(r"No such file or directory|ENOENT|FileNotFound|[Nn]ot found|does not exist|cannot find")
_NAMED_PATH = re.compile(r"(?<![\w.~/-])/[\w.@+~-]+(?:/[\w.@+~-]+)*")
_MOST_NAMED_PATHS = 50


def refusals(
    output: str, errors: Iterable[tuple[str, tuple[str, ...]]], root: Path, shown: Iterable[Path], absent: str = _ABSENT
) -> str:
    """Return the restrictions that a failed command met, in words; empty if it met none. Blocks.

    Args:
        output: what the command printed.
        errors: restrictions, and the messages of programs that meet them.
        root: the workspace.
        shown: more paths that the command saw.
        absent: the restriction if a message about a missing file names one that only a command outside would find.
    """
    found = [words for words, messages in errors if any(message in output for message in messages)]
    if _names_absent(output, root, shown):
        found.append(absent)
    return ", ".join(dict.fromkeys(found))


def _names_absent(output: str, root: Path, shown: Iterable[Path]) -> bool:
    lines = (line for line in output.splitlines() if _NOT_THERE.search(line))
    paths = {match for line in lines for match in _NAMED_PATH.findall(line)}
    missed = [path for path in sorted(paths)[:_MOST_NAMED_PATHS] if os.path.lexists(path)]
    if not missed:
        return False
    visible = visible_places(root, os.environ.get("PATH", os.defpath), os.environ)
    seen = [*map(Path, (*visible.shown, *visible.links, *NEW)), root, *shown]
    return any(not any(map(Path(os.path.realpath(path)).is_relative_to, seen)) for path in missed)
