"""Walls of Landlock and seccomp around a command, where namespaces are refused: the workspace is read-only."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.walls import landlock_launcher
from tui_agent.walls.system_call_filter import filter_without_namespaces, is_known_machine
from tui_agent.walls.visible_places import VisiblePlaces

from .bubblewrap_walls import channels_below
from .confinement import Confinement
from .covered_places import LayerRoot

RULES, GIT_SETTINGS = "rules.json", "gitconfig"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class LandlockWalls:
    """The way to run a command under Landlock."""

    size: int
    """Most bytes of a file."""
    has_layer: bool = False

    def prepare(self, roots: Sequence[LayerRoot]) -> None:
        """Create nothing: there is no layer."""

    def seen_at(self, box: Confinement) -> tuple[str, str]:
        """Return the paths at which a command sees the cache and the temporary directory: nothing is moved."""
        return str(box.cache), str(box.temporary)

    def variables(self, layer: Path) -> dict[str, str]:
        """Return more variables of a command, which sees no settings in its home."""
        return {"GIT_CONFIG_GLOBAL": str(layer / GIT_SETTINGS)}

    def command_line(
        self,
        box: Confinement,
        roots: Sequence[LayerRoot],
        layer: Path,
        visible: VisiblePlaces,
        *,
        settings: int,
        status: int,
        calls: int,
        opened: Callable[[str], int],
    ) -> list[str]:
        """Return the start of the command line. Blocks; the arguments are those of `BubblewrapWalls`."""
        (layer / GIT_SETTINGS).write_bytes(os.pread(settings, os.fstat(settings).st_size, 0))
        seen = [*(root.place for root in roots), *map(Path, visible.shown.values())]
        closed = [*box.hidden, *(Path(os.path.realpath(path)) for path in box.unreadable())]
        # Reading a pipe takes something from the program for which it is.
        closed += [*map(Path, visible.channels), *(path for root in roots for path in channels_below(root.place))]
        readable = [path for place in seen for path in _without(place, closed)]
        rules = {
            "read": [*map(str, (*readable, *box.shown, layer / GIT_SETTINGS)), "/proc"],
            # Names of what is hidden may be listed, its contents are not there.
            "list": list(map(str, seen)),
            "write": list(map(str, (box.temporary, box.other_temporary, box.cache))),
            "devices": _DEVICES,
            "directory": str(box.workspace),
            "network": box.network,
            "size": self.size,
            "filter": filter_without_namespaces(network=box.network).hex(),
        }
        (layer / RULES).write_text(json.dumps(rules), "utf-8")
        return [sys.executable, "-I", "-S", "-B", landlock_launcher.__file__, str(layer / RULES), str(status)]


def landlock_problem() -> str:
    """Return why Landlock cannot build the walls; empty if it can."""
    if not is_known_machine():
        return "the system calls of this kind of machine are not known"
    if (version := landlock_launcher.landlock_abi()) >= landlock_launcher.LEAST_ABI:
        return ""
    offered = f"offers version {version} of Landlock" if version else "does not offer Landlock"
    return f"the kernel {offered}; the walls need version {landlock_launcher.LEAST_ABI} (Linux 6.12)"


def _without(place: Path, closed: Iterable[Path]) -> Iterator[Path]:
    """Yield what a directory contains but for some paths; the directory itself if none of them is inside."""
    inside = [path for path in closed if path.is_relative_to(place)]
    if not inside:
        yield place
    elif place not in inside and place.is_dir():
        for entry in sorted(place.iterdir()):
            if not entry.is_symlink():
                yield from _without(entry, inside)
