"""Walls around a command: of bubblewrap over a layer or over the workspace read-only, or of Landlock and seccomp."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.git.git_settings import plain_git_settings
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.programs import find_program
from tui_agent.walls import landlock_launcher
from tui_agent.walls.bubblewrap import Bubblewrap
from tui_agent.walls.system_call_filter import filter_for_namespaces, filter_without_namespaces, is_known_machine
from tui_agent.walls.visible_places import VisiblePlaces
from tui_agent.walls.wall_options import covered, each, hidden_options, is_channel, system_options

from .confinement import CACHE, Confinement, LayerRoot, mounts_inside, trial_environment
from .layer_limits import WatchedCommand

_PRIVATE = ("/tmp", "/var/tmp")
"""Directories of which the session has its own."""
MOUNTED = "merged"
"""Directory in a layer's root at which the second way mounts it; `LOWER` beside it is a link to what it covers, because
options of a mount give some characters of a path a meaning."""
LOWER = "lower"
_MOUNT_LAYERS = f"""cd -- "$1" || exit 97
for root in [0-9]*/; do
  mount -t overlay trial -o "lowerdir=${{root}}{LOWER},upperdir=${{root}}upper,workdir=${{root}}work,userxattr" \
    "${{root}}{MOUNTED}" || exit 97
done
shift
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class BubblewrapWalls:
    """One working way to run a command under bubblewrap."""

    program: Bubblewrap
    has_layer: bool
    unshare: tuple[str, ...] = ()
    """Start of the command line that mounts the layer before bubblewrap; empty: bubblewrap does it."""

    def prepare(self, roots: Sequence[LayerRoot]) -> None:
        """Create the directories that mounting a layer needs. Blocks.

        Raises:
            OSError: one exists or cannot be created.
        """
        for root in roots:
            for directory in (root.upper.parent, root.upper, root.work):
                directory.mkdir(mode=0o700)
            # The directory itself has the mode that the command sees.
            root.upper.chmod(root.place.stat().st_mode & 0o7777)
            if self.unshare:
                (root.upper.parent / MOUNTED).mkdir(mode=0o700)
                (root.upper.parent / LOWER).symlink_to(root.place)

    def confined(
        self,
        box: Confinement,
        roots: Sequence[LayerRoot],
        layer: Path,
        visible: VisiblePlaces,
        command: WatchedCommand,
        environment: Mapping[str, str],
    ) -> tuple[list[str], dict[str, str]]:
        """Return the start of the command line, and the environment. Blocks.

        Args:
            box: the session's confinement.
            roots: the covered directories.
            layer: the layer's directory.
            visible: what is shown of the system and the home.
            command: holds the files that bubblewrap reads.
            environment: the environment of a confined command.

        Raises:
            OSError, ToolError: no command can run, with the reason.
        """
        own_user = ("--unshare-user", "--uid", str(os.geteuid()), "--gid", str(os.getegid()))
        # In the namespace of `unshare` the command would be root.
        options = [*own_user] if "--user" in self.unshare else ["--unshare-user-try"]
        places = [root.place for root in roots]
        seen = [*places, *map(Path, visible.shown)]
        options += system_options(
            visible,
            network=box.network,
            private=_private_options(box, [*seen, *box.hidden]),
            git_settings=command.file_with(plain_git_settings(box.workspace)),
            opened=command.opened,
        )
        for root in roots:
            options += self._over(root)
            options += [word for path in mounts_inside(root.place) for word in ("--ro-bind-try", str(path), str(path))]
        options += _emptied(box.unreadable(), seen)
        own = [path for path in box.hidden if any(path.is_relative_to(place) for place in seen)]
        if inner := next((place for place in places if any(place.is_relative_to(path) for path in own)), None):
            raise ToolError(f"{inner} is inside a directory of tui-agent")
        options += hidden_options(own, box.shown, seen)
        argv = [str(self.program.path), *options, "--chdir", str(box.workspace)]
        argv += ["--json-status-fd", str(command.status)]
        if is_known_machine():
            argv += ["--seccomp", str(command.file_with(filter_for_namespaces()))]
        if self.unshare:
            argv = [*self.unshare, "sh", "-c", _MOUNT_LAYERS, "sh", str(layer), *argv]
        variables = trial_environment(environment, visible.shown, cache=CACHE, temporary="/tmp", network=box.network)
        return [*argv, "--", *_limiter(box)], variables

    def _over(self, root: LayerRoot) -> list[str]:
        place = str(root.place)
        if not self.has_layer:
            return ["--ro-bind", place, place, *covered(map(str, channels_below(root.place)))]
        if self.unshare:
            return ["--bind", str(root.upper.parent / MOUNTED), place]
        return ["--overlay-src", place, "--overlay", str(root.upper), str(root.work), place]


def _limiter(box: Confinement) -> list[str]:
    """Return the command line that sets the kernel's limits inside the walls, where no other process counts."""
    prlimit = find_program("prlimit", box.workspace)
    limits = box.limits
    words = [f"--nproc={limits.processes}", f"--fsize={limits.size}", "--core=0", "--"]
    return [] if prlimit is None else [str(prlimit), *words]


def _private_options(box: Confinement, mounted: Iterable[Path]) -> list[str]:
    """Return the options for the session's temporary directories and the project's cache.

    Whatever is mounted below them is inside an empty directory that is a mount of its own: a command could otherwise
    replace a directory on the way to a mount by a link, which bubblewrap would follow for the next command.
    """
    held = box.held
    options = ["--bind", str(held.temporary), "/tmp", "--bind", str(held.other_temporary), "/var/tmp"]
    options += ["--tmpfs", "/run", "--bind", str(held.cache), CACHE]
    between: set[str] = set()
    for place in map(str, mounted):
        for private, real in zip(_PRIVATE, (held.temporary, held.other_temporary), strict=True):
            if not place.startswith(f"{private}/"):
                continue
            first, _, rest = place[len(private) + 1 :].partition("/")
            if (real / first).is_symlink():
                raise ToolError(f"a command put a link at {private}/{first}, where a mount has to be; delete it")
            between |= {f"{private}/{first}"} if rest else set()
    return [*options, *each("--tmpfs", sorted(between))]


def _emptied(paths: Iterable[Path], seen: Sequence[Path]) -> list[str]:
    """Return the options that empty what a rule says no one may read, as far as a command would see it."""
    options: list[str] = []
    for path in paths:
        real = Path(os.path.realpath(path))
        if not real.exists() or not any(real.is_relative_to(place) for place in seen):
            continue
        if any(place.is_relative_to(real) for place in seen):
            raise ToolError(f"a rule denies reading {real}, and a trial needs it")
        options += ["--tmpfs", str(real), "--remount-ro", str(real)] if real.is_dir() else covered([str(real)])
    return options


def channels_below(top: Path) -> list[Path]:
    """Return the sockets and pipes below a directory: a read-only mount does not prevent writing to them. Blocks."""
    found: list[Path] = []
    for directory, _, names in os.walk(top):
        found += [path for name in names if is_channel(path := Path(directory, name))]
    return found


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
            # Landlock follows a link that is named: what it leads to would become readable.
            if not entry.is_symlink():
                yield from _without(entry, inside)
