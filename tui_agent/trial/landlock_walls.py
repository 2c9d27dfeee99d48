"""Walls of Landlock and seccomp around a command, where namespaces are refused: the workspace is read-only."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.git.personal_settings import plain_git_settings
from tui_agent.walls import landlock_launcher
from tui_agent.walls.system_call_filter import filter_without_namespaces, is_known_machine
from tui_agent.walls.visible_places import VisiblePlaces

from .bubblewrap_walls import channels_below
from .confinement import Confinement
from .covered_places import LayerRoot
from .layer_limits import WatchedCommand
from .trial_environment import trial_environment

RULES, GIT_SETTINGS = "rules.json", "gitconfig"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class LandlockWalls:
    """The way to run a command under Landlock."""

    has_layer: bool = False

    def prepare(self, roots: Sequence[LayerRoot]) -> None:
        """Create nothing: there is no layer."""

    def confined(
        self,
        box: Confinement,
        roots: Sequence[LayerRoot],
        layer: Path,
        visible: VisiblePlaces,
        command: WatchedCommand,
        environment: Mapping[str, str],
    ) -> tuple[list[str], dict[str, str]]:
        """Return the start of the command line, and the environment. Blocks; arguments as of `BubblewrapWalls`."""
        (layer / GIT_SETTINGS).write_bytes(plain_git_settings(box.workspace))
        seen = [*(root.place for root in roots), *map(Path, visible.shown.values())]
        closed = [*box.hidden, *(Path(os.path.realpath(path)) for path in box.unreadable())]
        # Reading a pipe takes something from the program for which it is.
        closed += [*map(Path, visible.channels), *(path for root in roots for path in channels_below(root.place))]
        readable = [path for place in seen for path in _without(place, closed)]
        rules = {
            "read": [*map(str, (*readable, *box.shown, layer / GIT_SETTINGS)), "/proc"],
            # Names of what is hidden may be listed, its contents are not there.
            "list": list(map(str, seen)),
            "write": list(map(str, (box.held.temporary, box.held.other_temporary, box.held.cache))),
            "devices": _DEVICES,
            "directory": str(box.workspace),
            "network": box.network,
            "size": box.limits.size,
            "filter": filter_without_namespaces(network=box.network).hex(),
        }
        (layer / RULES).write_text(json.dumps(rules), "utf-8")
        argv = [sys.executable, "-I", "-S", "-B", landlock_launcher.__file__, str(layer / RULES), str(command.status)]
        # Nothing is moved for the command, which sees no settings in its home.
        cache, temporary = str(box.held.cache), str(box.held.temporary)
        variables = trial_environment(environment, visible.shown, cache=cache, temporary=temporary, network=box.network)
        return argv, variables | {"GIT_CONFIG_GLOBAL": str(layer / GIT_SETTINGS)}


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
