"""The only module that starts git for tui-agent itself, and the environment of every git.

git applies the settings of the repository around its directory: see `read_only_git.py` for when it may.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.programs import find_program, outside_search_path

READ_ONLY_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("log.showSignature", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    # Every directory that git may take for a repository is checked before.
    ("safe.bareRepository", "all"),
    # Git would show names from a file anywhere; an empty name means none.
    ("mailmap.file", ""),
)
"""Settings of a git that only reads: it starts no program that settings can turn off."""
OFFLINE = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}
"""Fetching objects that a partial clone lacks would run programs that the repository's settings name."""

_NO_BACKGROUND = (("gc.auto", "0"), ("maintenance.auto", "false"))
"""Git's background maintenance would be killed with each command and start again with the next."""
_WRITING = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("commit.gpgSign", "false"),
    ("advice.detachedHead", "false"),
    ("core.quotePath", "true"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
)
_UNLESS_CHOSEN = (("safe.bareRepository", "explicit"), ("protocol.ext.allow", "never"))
"""Files of any directory would be a repository's data, with settings that start programs; an address would be one."""
_REFUSALS = {
    "safe.bareRepository": ("safe.bareRepository is 'explicit'", "Name the repository: `git --git-dir=DIR …`"),
    "protocol.ext.allow": ("transport 'ext' not allowed", "Use another address"),
}
"""git's words when such a setting refuses something, and what to do."""
_KEPT = re.compile(
    r"(?:HOME|USER|LOGNAME|TZ|TMPDIR|XDG_CONFIG_HOME|GIT_CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM|COUNT|(?:KEY|VALUE)_\d+))\Z"
)
_SECONDS = 1.0


def find_git(folder: Path) -> Path | None:
    """Return git, if one outside of a folder and of the working directory is installed."""
    git = find_program("git", folder)
    return git if git is None or find_program("git", _working_directory()) == git else None


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except OSError:
        return Path("/")  # It was removed.


def start_git(
    git: Path,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    seconds: float,
    stdin: bytes = b"",
    directory: str = "/",
    walls: Sequence[str] = (),
) -> bytes | None:
    """Run git and return its output; None if it fails or takes too long. Blocks.

    Args:
        git: the program.
        arguments: its command line.
        environment: variables beside a search path and a language.
        seconds: its time limit.
        stdin: its input.
        directory: its working directory.
        walls: command line of a program that confines it; git's follows.
    """
    bare = {"PATH": os.defpath, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    # `/` itself may be a repository.
    alone = {"GIT_DIR": os.devnull} if directory == "/" else {}
    try:
        done = subprocess.run(
            (*walls, str(git), *arguments),
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env=bare | alone | dict(environment),
            timeout=seconds,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def bare_environment(workspace: Path) -> dict[str, str]:
    """Return the environment of a git that only reads: no secret, no option, no program of the workspace."""
    kept = users_environment()
    kept["PATH"] = outside_search_path(os.environ.get("PATH", os.defpath), workspace) or os.defpath
    settings = (*settings_of_every_git(), *READ_ONLY_SETTINGS, ("safe.bareRepository", "explicit"))
    return with_settings(kept, settings) | OFFLINE


def writing_git(arguments: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return command line and environment of a git that changes a repository of tui-agent's own, or fetches into it.

    It has the user's variables, because a fetch may need credentials. Blocks.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = with_settings(kept, (*settings_of_every_git(), *_WRITING))
    return (str(find_git(_working_directory()) or "git"), *arguments), environment | {
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def with_settings(environment: Mapping[str, str], settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the environment with git settings added; git gives them precedence over those of any file."""
    count = environment.get("GIT_CONFIG_COUNT", "0")
    first = int(count) if count.isdecimal() else 0
    changed = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings, start=first):
        changed |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return dict(environment) | changed


def settings_of_every_git() -> tuple[tuple[str, str], ...]:
    """Return the settings for every git, ours and that of commands; some only if the user chose no other value."""
    chosen, _ = users_settings()
    return *_NO_BACKGROUND, *((name, value) for name, value in _UNLESS_CHOSEN if name.lower() not in chosen)


def refusal_note(output: str) -> str:
    """Return whose setting made git refuse something, by its output; empty if none of ours did."""
    for name, value in settings_of_every_git():
        words, advice = _REFUSALS.get(name, ("", ""))
        if words and words in output:
            return f"tui-agent sets {name}={value} for git. {advice}; or the user sets {name} in their own git settings"
    return ""


def users_environment() -> dict[str, str]:
    """Return the variables by which git finds the user's own settings."""
    return {name: value for name, value in os.environ.items() if _KEPT.match(name)}


def users_config_dir() -> str:
    """Return the directory of the user's files for git."""
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git")


def usual_files() -> tuple[str, ...]:
    """Return the files in which git looks for settings of the user and the system; any may be missing."""
    named = os.environ.get("GIT_CONFIG_GLOBAL", "")
    return (os.path.expanduser("~/.gitconfig"), f"{users_config_dir()}/config", "/etc/gitconfig", named)


def users_settings() -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the settings of the user and the system, by their names in lower case, and the files that have them.

    Blocks for some milliseconds if one of the usual files has changed.
    """
    environment = users_environment()
    git = find_git(_working_directory())
    return (
        ({}, ())
        if git is None
        else _users(git, tuple(sorted(environment.items())), tuple(map(_identity, usual_files())))
    )


def _identity(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=8)
def _users(
    git: Path, environment: tuple[tuple[str, str], ...], _: tuple[tuple[int, int, int], ...]
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    arguments = ("config", "--list", "-z", "--show-origin", "--includes")
    output = start_git(git, arguments, environment=dict(environment), seconds=_SECONDS) or b""
    origins, records = (os.fsdecode(output).split("\0")[start::2] for start in (0, 1))
    settings = {name: value for name, _, value in (record.partition("\n") for record in records)}
    files = (origin.removeprefix("file:") for origin in origins if origin.startswith("file:/"))
    return settings, tuple(dict.fromkeys(files))
