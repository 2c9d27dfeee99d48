"""Options of bubblewrap: what a confined command sees of the system; and the restrictions that one met."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from .visible_places import VisiblePlaces, homes_of_others, own_home, visible_places

PRIVATE = ("/tmp", "/var/tmp", "/run")
"""Directories of which a command sees none of the host's contents: sockets of other programs in them are ways out."""
NEW = ("/dev", "/proc")
"""More directories of that kind."""


_MOST_COPIED = 256 << 10
"""Largest setting that is copied."""


def system_options(
    visible: VisiblePlaces,
    *,
    network: bool,
    private: Iterable[str] = (),
    git_settings: int | None = None,
    opened: Callable[[str], int] | None = None,
) -> list[str]:
    """Return the options for everything but the workspace. Blocks.

    Args:
        visible: what is shown of the system and the home.
        network: True if the command may use the network.
        private: options that mount the private directories; none: they are new and empty.
        git_settings: descriptor of the user's settings of git; None: commands see none.
        opened: opens a file; with it, small settings of the system are copied, which is faster than many mounts.
    """
    options = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    options += ["--cap-drop", "ALL", *([] if network else ["--unshare-net"])]
    options += ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    options += [*private] or each("--tmpfs", PRIVATE)
    options += [word for link, target in visible.links.items() for word in ("--symlink", target, link)]
    # Later mounts cover earlier ones: first what hides most, then what shows parts of it again.
    for path, source in visible.shown.items():
        if opened is not None and _is_small_setting(path):
            options += ["--file", str(opened(source)), path]
        else:
            options += ["--ro-bind-try", source, path]
    options += covered(visible.channels)
    home = own_home()
    if not any(map(home.is_relative_to, (*visible.shown, *NEW))):
        options += ["--dir", str(home)]
        options += [] if git_settings is None else ["--file", str(git_settings), str(home / ".gitconfig")]
    return options


def writable_options(
    root: Path, search_path: str, *, hidden: Sequence[Path], shown: Iterable[Path], network: bool
) -> list[str]:
    """Return all options of a command that may change a directory, and nothing else. Blocks.

    Args:
        root: the directory in which it starts; absolute, links followed.
        search_path: the command's PATH.
        hidden: directories of tui-agent, which are empty for it.
        shown: directories inside hidden ones that it may read.
        network: True if it may use the network.
    """
    visible = visible_places(root, search_path, os.environ)
    # Inside our own directories, nothing may be changed.
    bind = "--ro-bind" if any(map(root.is_relative_to, hidden)) else "--bind"
    options = ["--unshare-user-try", *system_options(visible, network=network), bind, str(root), str(root)]
    seen = (root, *map(Path, visible.shown))
    options += hidden_options((path for path in hidden if path != root), shown, seen)
    return [*options, "--chdir", str(root)]


def hidden_options(hidden: Iterable[Path], shown: Iterable[Path], seen: Iterable[Path]) -> list[str]:
    """Return the options that empty directories, as far as something seen contains them, and end the set-up.

    Args:
        hidden: directories of tui-agent.
        shown: directories inside hidden ones that commands may read.
        seen: what the command sees.
    """
    emptied = [str(path) for path in hidden if path.is_dir() and any(path.is_relative_to(place) for place in seen)]
    readable = [word for path in shown for word in ("--ro-bind-try", str(path), str(path))]
    return [*each("--tmpfs", emptied), *readable, *each("--remount-ro", ["/", *emptied])]


def impossible_root(root: Path) -> str:
    """Return why no command can be confined with this working directory; empty if it can."""
    if any(path.is_relative_to(root) for path in (*map(Path, (*PRIVATE, *NEW)), own_home(), *homes_of_others())):
        return f"it does not work with {root} as the working directory"
    return ""


def _is_small_setting(path: str) -> bool:
    if not path.startswith("/etc/"):
        return False
    try:
        status = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_COPIED


def covered(files: Iterable[str]) -> list[str]:
    """Return the options that put an empty file over sockets and pipes."""
    return [word for path in files for word in ("--ro-bind", os.devnull, path)]


def is_channel(path: Path) -> bool:
    """Return True for a socket or a pipe."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)
    return False


def each(option: str, values: Iterable[str]) -> list[str]:
    """Return the option with each of the values."""
    return [word for value in values for word in (option, value)]


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
