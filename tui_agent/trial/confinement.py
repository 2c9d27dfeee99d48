"""Confinement of commands in a trial: covered directories, limits, and variables."""

import os
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.errors import ToolError
from tui_agent.walls.visible_places import own_home, repository_directories

from .layer_limits import LayerLimits
from .layer_storage import SessionStorage
from .sorting import PathSorter

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
    """Return the roots of a layer below its `directory`, one for each covered directory; creates nothing."""
    numbered = enumerate(places)
    return tuple(LayerRoot(place, directory / str(n) / "upper", directory / str(n) / "work") for n, place in numbered)


def covered_places(workspace: Path, folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return the workspace, added folders, and the repository's directories outside of them; parents come first.

    Blocks. None of them is inside another one.

    Raises:
        ToolError: an added folder or a directory of the repository contains the workspace.
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
        OSError: the list of mounts cannot be read.
    """
    prefix = f"{place}/".encode(errors="surrogateescape")
    found: list[str] = []
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            # The kernel writes blanks and line ends of a path as octal numbers.
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


CACHE = "/var/cache/tui-agent"
"""Path at which a command under bubblewrap sees the project's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Directories, and what a command may see."""

    workspace: Path
    """The working directory, links followed."""
    held: SessionStorage
    """The session's own directories, such as its /tmp."""
    network: bool
    hidden: tuple[Path, ...]
    """Directories of tui-agent, which are empty for commands."""
    shown: tuple[Path, ...]
    """Directories inside hidden ones that commands may read."""
    unreadable: Callable[[], Iterable[Path]]
    """Returns the paths that a rule denies to read, which are empty for commands."""
    limits: LayerLimits
    sorter: PathSorter
    stored: Path | None
    """The stored session, without which no answer comes any more; None if that is not known."""
    on_failure: Callable[[], None]
    """Called when the walls could not be set up, so that they are tested again."""


_CACHES = {
    "XDG_CACHE_HOME": "xdg",
    "PYTHONPYCACHEPREFIX": "pycache",
    "MYPY_CACHE_DIR": "mypy",
    "RUFF_CACHE_DIR": "ruff",
    "HYPOTHESIS_STORAGE_DIRECTORY": "hypothesis",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "PRE_COMMIT_HOME": "pre-commit",
    "GOCACHE": "go-build",
    "CCACHE_DIR": "ccache",
    "SCCACHE_DIR": "sccache",
    "GRADLE_USER_HOME": "gradle",
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "MPLCONFIGDIR": "matplotlib",
    "NUGET_HTTP_CACHE_PATH": "nuget",
}
"""Variables that name caches, and their directories in the project's cache. Stores of packages such as `GOMODCACHE`,
`CARGO_HOME` and `~/.m2` stay the user's: without a network, a new one would only be empty."""

_OFFLINE = {
    "npm_config_offline": "true",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_update_notifier": "false",
    "YARN_ENABLE_NETWORK": "0",
    "COREPACK_ENABLE_NETWORK": "0",
    "PIP_NO_INDEX": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_OFFLINE": "1",
    "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off",
    "GOTOOLCHAIN": "local",
    "COMPOSER_DISABLE_NETWORK": "1",
    "HF_HUB_OFFLINE": "1",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
}
"""Variables with which programs fail at once instead of trying a network for a minute."""


def trial_environment(
    environment: Mapping[str, str], shown: Container[str], *, cache: str, temporary: str, network: bool
) -> dict[str, str]:
    """Return the environment of a command in a trial.

    Args:
        environment: that of a confined command.
        shown: the paths of the system and the home that the command sees.
        cache: the project's cache, as the command sees it.
        temporary: the session's temporary directory, as the command sees it.
        network: True if the command may use the network.
    """
    # A layer is a file system of its own, and the repository may be around it.
    changed = {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "1", "TMPDIR": temporary}
    changed |= {name: f"{cache}/{directory}" for name, directory in _CACHES.items()}
    if (packages := str(own_home() / ".gradle/caches")) in shown:
        changed["GRADLE_RO_DEP_CACHE"] = packages
    if not network:
        changed |= _OFFLINE
        changed["MAVEN_ARGS"] = f"{environment.get('MAVEN_ARGS', '')} -o".strip()
    return {**environment, **changed}
