"""Paths that commands in the sandbox do not see: other users' homes, credentials, histories, sockets of other programs
(safety promise 10)."""

import os
import pwd
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_HOMES = ("/home", "/root")
"""Directories of homes, or homes."""
_HOME_NAMES = frozenset({"home", "homes", "Users", "users"})
"""Names of other directories of homes, recognised if the user's own home is in one."""

_IN_HOME = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".password-store",
    ".local/share/keyrings", ".config/gh", ".config/op", ".netrc", ".git-credentials", ".config/git/credentials",
    ".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
    ".vault-token", ".pgpass", ".my.cnf", ".mozilla", ".thunderbird", ".config/chromium", ".config/google-chrome",
    ".config/BraveSoftware", ".config/microsoft-edge", ".bash_history", ".zsh_history",
    ".local/share/fish/fish_history", ".python_history", ".psql_history", ".mysql_history", ".sqlite_history",
    ".node_repl_history", ".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".config/github-copilot",
    ".local/share/opencode", ".config/glab-cli", ".config/hub", ".terraform.d/credentials.tfrc.json",
    ".m2/settings.xml", ".gradle/gradle.properties", ".config/pip/pip.conf", ".pip/pip.conf",
    ".cache/huggingface/token", ".config/rclone", ".s3cfg", ".config/doctl", ".config/heroku", ".composer/auth.json",
    ".config/composer/auth.json", ".nuget/NuGet/NuGet.Config", ".config/containers/auth.json", ".config/sops",
    ".config/fly", ".fly", ".1password", ".local/share/atuin", ".boto", ".oci",
)  # fmt: skip
"""Credentials and histories in a home."""

_MOVED = {
    "XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_CACHE_HOME": ".cache", "GNUPGHOME": ".gnupg",
    "DOCKER_CONFIG": ".docker", "CARGO_HOME": ".cargo", "AZURE_CONFIG_DIR": ".azure", "GH_CONFIG_DIR": ".config/gh",
    "CLOUDSDK_CONFIG": ".config/gcloud", "PASSWORD_STORE_DIR": ".password-store", "CODEX_HOME": ".codex",
    "CLAUDE_CONFIG_DIR": ".claude", "GRADLE_USER_HOME": ".gradle", "HF_HOME": ".cache/huggingface",
    "COMPOSER_HOME": ".composer",
}  # fmt: skip
"""Directories in a home by the variable that replaces them."""

_NAMED_BY = (
    "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "KUBECONFIG", "HISTFILE", "NETRC", "PGPASSFILE", "BOTO_CONFIG",
    "NPM_CONFIG_USERCONFIG", "PIP_CONFIG_FILE", "GOOGLE_APPLICATION_CREDENTIALS", "TF_CLI_CONFIG_FILE", "HF_TOKEN_PATH",
    "RCLONE_CONFIG",
)  # fmt: skip
"""Variables that name files with credentials or histories."""

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
    own, others = _own_home(), homes_of_others()
    programs = [Path(os.path.realpath(entry)) for entry in search_path.split(os.pathsep) if os.path.isabs(entry)]
    used = {home for path in (own, *programs) if (home := _home_around(path, others)) is not None}
    homes = tuple(path for path in others if path not in used)
    shown = tuple(sorted(home for home in used if any(home.is_relative_to(parent) for parent in homes)))
    candidates = [home / name for home in sorted({own, _home_of_account(), *used}) for name in _IN_HOME]
    # A variable such as `HISTFILE=/` must not hide what contains the home.
    moved = [path for path in _moved(os.environ) if not own.is_relative_to(os.path.realpath(path))]
    found = _existing([*candidates, *moved, *map(Path, _OF_SYSTEM)])
    directories = tuple(path for path in found if path.is_dir())
    return PrivatePlaces(homes, shown, directories, tuple(path for path in found if path.is_file()))


def homes_of_others() -> tuple[Path, ...]:
    """Return the directories of homes, and homes of others; the user's own home may be in one of them."""
    own = _own_home()
    around = [own.parent] if own.parent.name in _HOME_NAMES else []
    found = dict.fromkeys([*map(Path, _HOMES), *around])
    return tuple(path for path in found if path != own and path.is_dir())


def sockets_of_others() -> list[Path]:
    """Return the sockets of programs that run outside the sandbox, by their path in the file system. Blocks.

    A program that listens at one does its work outside: a read-only mount does not prevent a connection.
    """
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    # The eighth column is the path, as the program gave it; those with @ are not in the file system.
    named = (columns[7] for line in lines if len(columns := line.split(None, 7)) > 7 and columns[7].startswith("/"))
    return sorted({path for name in named if _is_socket(path := Path(os.path.realpath(name)))})


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _own_home() -> Path:
    return Path(os.path.realpath(os.path.expanduser("~")))


def _home_of_account() -> Path:
    """Return the home that the system knows; it may be another one than `HOME` names."""
    try:
        return Path(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    except KeyError:
        return _own_home()


def _home_around(path: Path, parents: Iterable[Path]) -> Path | None:
    """Return the home that contains a path; None if none of the usual ones does."""
    for parent in parents:
        if path.is_relative_to(parent):
            names = path.relative_to(parent).parts
            return parent if parent.name == "root" else parent / names[0] if names else None
    return None


def _moved(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the credentials and histories that variables put into other directories."""
    for variable, usual in _MOVED.items():
        if os.path.isabs(new := environment.get(variable, "")):
            for name in _IN_HOME:
                if Path(name).is_relative_to(usual):
                    yield Path(new, Path(name).relative_to(usual))
    for variable in _NAMED_BY:
        yield from (Path(path) for path in environment.get(variable, "").split(os.pathsep) if os.path.isabs(path))


def _existing(paths: Iterable[Path]) -> list[Path]:
    """Return the targets of the paths that exist, without those inside another one."""
    found = {Path(os.path.realpath(path)) for path in paths if os.path.exists(path)}
    return sorted(path for path in found if found.isdisjoint(path.parents))
