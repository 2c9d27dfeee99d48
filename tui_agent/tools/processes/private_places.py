"""Paths that commands in the sandbox do not see: other users' homes, credentials, histories (safety promise 10)."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_HOMES = ("/home", "/root")
"""Directories of homes, or homes."""

_IN_HOME = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".password-store",
    ".local/share/keyrings", ".config/gh", ".config/op", ".netrc", ".git-credentials", ".config/git/credentials",
    ".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
    ".vault-token", ".pgpass", ".my.cnf", ".mozilla", ".thunderbird", ".config/chromium", ".config/google-chrome",
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history",
)  # fmt: skip
"""Credentials and histories in a home."""

_OF_SYSTEM = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
              "/etc/ssl/private", "/var/mail", "/var/spool/mail", "/var/spool/cron", "/var/backups")  # fmt: skip
"""Files of other users, most of them unreadable without privileges anyway."""


@dataclass(frozen=True, slots=True)
class PrivatePlaces:
    """Existing paths to hide; links are resolved, and nothing here is inside an emptied directory."""

    homes: tuple[Path, ...]
    """Directories of other users' homes, to be emptied."""
    shown: tuple[Path, ...]
    """Homes inside them that commands need: the user's own, and those of programs on PATH."""
    directories: tuple[Path, ...]
    """Directories with credentials."""
    files: tuple[Path, ...]
    """Files with credentials or histories."""


def private_places(search_path: str) -> PrivatePlaces:
    """Return the paths to hide from commands. Blocks.

    Args:
        search_path: the commands' PATH.
    """
    own = Path(os.path.realpath(os.path.expanduser("~")))
    programs = [Path(os.path.realpath(entry)) for entry in search_path.split(os.pathsep) if os.path.isabs(entry)]
    used = {home for path in (own, *programs) if (home := _home_around(path)) is not None}
    homes = tuple(path for path in map(Path, _HOMES) if path.is_dir() and path not in used)
    shown = tuple(sorted(home for home in used if any(home.is_relative_to(parent) for parent in homes)))
    candidates = [home / name for home in sorted({own, *used}) for name in _IN_HOME]
    found = _existing([*candidates, *map(Path, _OF_SYSTEM)])
    directories = [path for path in found if path.is_dir()]
    return PrivatePlaces(homes, shown, tuple(directories), tuple(path for path in found if path not in directories))


def _home_around(path: Path) -> Path | None:
    """Return the home that contains a path; None if none of the usual ones does."""
    for parent in map(Path, _HOMES):
        if path.is_relative_to(parent):
            names = path.relative_to(parent).parts
            return parent if parent.name == "root" else parent / names[0] if names else None
    return None


def _existing(paths: Iterable[Path]) -> list[Path]:
    """Return the targets of the paths that exist, without those inside another one."""
    found = {Path(os.path.realpath(path)) for path in paths if os.path.exists(path)}
    return sorted(path for path in found if found.isdisjoint(path.parents))
