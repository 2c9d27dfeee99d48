"""The directories that a layer covers, and the mounts inside of them, which an overlay does not show."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.errors import ToolError
from tui_agent.walls.visible_places import repository_directories

_MOST_MOUNTS = 50
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class LayerRoot:
    """One directory that a layer covers: the workspace, an added folder, or a repository outside of them."""

    place: Path
    """The directory, links followed."""
    upper: Path
    """Directory of the changed files, as overlayfs stores them."""
    work: Path
    """Directory that overlayfs needs beside it."""


def layer_roots(directory: Path, places: Sequence[Path]) -> tuple[LayerRoot, ...]:
    """Return where a layer stores the changes of each covered directory."""
    numbered = enumerate(places)
    return tuple(LayerRoot(place, directory / str(n) / "upper", directory / str(n) / "work") for n, place in numbered)


def covered_places(workspace: Path, folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return the workspace, added folders, and the repository's directories outside of them; parents come first.

    Blocks. None of them is inside another one.
    """
    found: list[Path] = [workspace]
    others = [*map(Path, map(os.path.realpath, folders)), *repository_directories(workspace)]
    for place in sorted(dict.fromkeys(others), key=lambda path: len(path.parts)):
        if place.is_dir() and not any(place.is_relative_to(known) for known in found):
            found.append(place)
    if any(workspace.is_relative_to(place) for place in found[1:]):
        raise ToolError(f"an added folder contains the workspace {workspace}")
    return tuple(found)


def mounts_inside(place: Path) -> tuple[Path, ...]:
    """Return the topmost mounts below a directory. Blocks.

    Raises:
        ToolError: there are too many of them.
    """
    prefix = f"{place}/".encode(errors="surrogateescape")
    found: list[str] = []
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            path = _ESCAPE.sub(_character, line.split(b" ", 5)[4].decode("utf-8", "surrogateescape"))
            if os.fsencode(path).startswith(prefix):
                found.append(path)
    topmost: list[Path] = []
    for path in map(Path, sorted(set(found))):
        if not any(path.is_relative_to(known) for known in topmost):
            topmost.append(path)
    if len(topmost) > _MOST_MOUNTS:
        raise ToolError(f"{place} contains {len(topmost)} mounts, more than a trial can show")
    return tuple(topmost)


def _character(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))
