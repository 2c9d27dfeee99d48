"""Commands that would let walls work on this machine."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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
