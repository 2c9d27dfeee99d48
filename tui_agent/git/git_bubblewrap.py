"""Walls around every git that tui-agent starts: no network, no home, nothing to read but what one command needs."""

import os
import subprocess
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.walls.bubblewrap import PROBE_SECONDS, found_bubblewraps

EVERYTHING = "*"
"""Place of a git that lists the user's own settings, which may include any file."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store")
_SETTINGS = ("gitconfig", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "localtime", "alternatives")
"""Files in `/etc` that git and the loader of programs read."""
_PARTS = ("bin", "lib", "lib64", "libexec", "share")
"""Directories of an installation of git."""
_DEVICES = [word for name in ("null", "urandom") for word in ("--dev-bind", f"/dev/{name}", f"/dev/{name}")]
_ALONE = ("--unshare-all", "--new-session", "--cap-drop", "ALL")


def walls_around(
    git: Path, directory: str, readable: Iterable[str] = (), writable: Sequence[str] = (), *, outlives: bool = False
) -> tuple[str, ...] | None:
    """Return the command line that confines a git; None if bubblewrap does not work here. Blocks.

    Args:
        readable: files and directories that it may read; those that are missing are left out.
        outlives: True to let it finish if this process is killed.
    """
    places = sorted({*readable}, key=len)
    sees_everything = EVERYTHING in places
    bwrap = None if "/" in (*places, *writable) else find_bubblewrap(directory)
    if bwrap is None:
        return None
    options = [*_ALONE, *(() if outlives else ("--die-with-parent",))]
    options += ["--ro-bind", "/", "/"] if sees_everything else [*_system(), *_bound(_installation(git))]
    options += _DEVICES
    options += [] if sees_everything else ["--dir", "/tmp", *_bound(places)]
    options += [word for place in writable for word in ("--bind", place, place)]
    # Else a program could fill the memory.
    return (str(bwrap), *options, "--remount-ro", "/", "--chdir", directory, "--")


def find_bubblewrap(directory: str) -> Path | None:
    """Return the first bubblewrap that works here, but none of a directory; None if none does. Blocks."""
    found = (one.path for one in found_bubblewraps(Path(directory)))
    return next((bwrap for bwrap in found if _works(bwrap, _changed(bwrap))), None)


def _changed(program: Path) -> int:
    try:
        return program.stat().st_mtime_ns
    except OSError:
        return 0


def _system() -> list[str]:
    options: list[str] = []
    for path in _SYSTEM:
        options += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind-try", path, path]
    return options + _bound(f"/etc/{name}" for name in _SETTINGS)


def _installation(git: Path) -> list[str]:
    """Return the directories of a git that is not among the system's programs."""
    real = Path(os.path.realpath(git))
    found = [str(git.parent), str(real.parent), *(str(real.parent.parent / part) for part in _PARTS)]
    return [path for path in dict.fromkeys(found) if not path.startswith(tuple(f"{one}/" for one in _SYSTEM))]


def _bound(paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind-try", path, path)]


@lru_cache(maxsize=4)
def _works(bwrap: Path, _: int) -> bool:
    """Return True if this bubblewrap, last changed at a time, can run a program."""
    argv = (str(bwrap), *_ALONE, "--die-with-parent", *_system(), *_DEVICES, "--", "true")
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PROBE_SECONDS, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
