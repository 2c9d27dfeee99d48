"""Walls around a git that only reads: it sees the system's programs and one repository, all read-only, no network."""

import os
import subprocess
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.programs import find_program

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store")
_SETTINGS = ("gitconfig", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "localtime", "alternatives")
"""Files in `/etc` that git and the loader of programs read."""
_PROBE_SECONDS = 10


def walls_around(git: Path, directory: Path, places: Sequence[str], files: Iterable[str]) -> tuple[str, ...] | None:
    """Return the command line that confines a git; None if bubblewrap is missing or does not work here. Blocks.

    Args:
        git: the program.
        directory: its working directory.
        places: directories that it may read.
        files: files of the user's settings, which may be missing.
    """
    bwrap = find_program("bwrap", directory)
    if bwrap is None or "/" in places:
        return None
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for path in _SYSTEM:
        options += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind-try", path, path]
    options += _bound(f"/etc/{name}" for name in _SETTINGS)
    options += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    if not _works(bwrap, bwrap.stat().st_mtime_ns, tuple(options)):
        return None
    programs = {str(git.parent), os.path.dirname(os.path.realpath(git))}
    options += _bound(path for path in sorted(programs) if not path.startswith(tuple(f"{one}/" for one in _SYSTEM)))
    options += [*_bound(files), *_bound(sorted({*places}))]
    return (str(bwrap), *options, "--chdir", str(directory), "--")


def _bound(paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind-try", path, path)]


@lru_cache(maxsize=4)
def _works(bwrap: Path, _: int, options: tuple[str, ...]) -> bool:
    """Return True if this bubblewrap, last changed at a time, can run a program."""
    argv = (str(bwrap), *options, "--", "/bin/sh", "-c", ":")
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PROBE_SECONDS, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
