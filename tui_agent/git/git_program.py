"""The only module that starts git for tui-agent itself, and the environment of every git.

It runs behind walls wherever they work: a program that a repository names can start, but it can neither change
anything, nor read a secret, nor reach a network.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.programs import find_program, outside_search_path
from tui_agent.walls.bubblewrap import PROBE_SECONDS, found_bubblewraps

EVERYTHING = "*"
"""Place of a git that lists the user's own settings, which may include any file."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store")
_SYSTEM_SETTINGS = (
    "gitconfig",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "passwd",
    "group",
    "localtime",
    "alternatives",
)
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
        directory: its working directory, absolute; a bubblewrap inside it is not used.
        readable: files and directories that it may read, `EVERYTHING` for all; those that are missing are left out.
        writable: directories that it may change.
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
    """Return the first bubblewrap that works here and is not inside `directory`; None if none does. Blocks."""
    found = (one.path for one in found_bubblewraps(Path(directory)))
    return next((bwrap for bwrap in found if _can_run(bwrap, _changed(bwrap))), None)


def _changed(program: Path) -> int:
    try:
        return program.stat().st_mtime_ns
    except OSError:
        return 0


def _system() -> list[str]:
    options: list[str] = []
    for path in _SYSTEM:
        options += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind-try", path, path]
    return options + _bound(f"/etc/{name}" for name in _SYSTEM_SETTINGS)


def _installation(git: Path) -> list[str]:
    """Return the directories of a git that is not among the system's programs."""
    real = Path(os.path.realpath(git))
    found = [str(git.parent), str(real.parent), *(str(real.parent.parent / part) for part in _PARTS)]
    return [path for path in dict.fromkeys(found) if not path.startswith(tuple(f"{one}/" for one in _SYSTEM))]


def _bound(paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind-try", path, path)]


@lru_cache(maxsize=4)
def _can_run(bwrap: Path, _: int) -> bool:
    """Return True if this bubblewrap, last changed at a time, can run a program."""
    argv = (str(bwrap), *_ALONE, "--die-with-parent", *_system(), *_DEVICES, "--", "true")
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PROBE_SECONDS, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


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
_WITHOUT_PROMPT = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
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
_USERS_FILES = ("core.excludesfile", "core.attributesfile")
_SECONDS = 1.0


def find_git(folder: Path) -> Path | None:
    """Return the path of git; None if none is outside of `folder` and of the working directory. Blocks."""
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
    readable: Iterable[str],
    stdin: bytes = b"",
    directory: str = "/",
    without_walls: bool = False,
) -> bytes | None:
    """Run git behind walls and return its output; None if it may not run, fails, or takes too long. Blocks.

    Args:
        environment: variables beside a search path and a language.
        seconds: most seconds that it may take.
        readable: files and directories that it may read behind walls.
        directory: its working directory; in `/` it finds no repository.
        without_walls: True if it may run where no walls work.
    """
    walls = walls_around(git, directory, readable)
    if walls is None and not without_walls:
        return None
    bare = {"PATH": os.defpath, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    # `/` itself may be a repository.
    alone = {"GIT_DIR": os.devnull} if directory == "/" else {}
    try:
        done = subprocess.run(
            (*(walls or ()), str(git), *arguments),
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


def writing_git(
    arguments: Sequence[str], readable: Iterable[str], writable: Sequence[str], directory: str, *, outlives: bool
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return command line and environment of a git that changes a repository, behind walls where they work. Blocks.

    Args:
        readable: files and directories that it may read.
        writable: directories that it may change.
        directory: its working directory behind walls; the caller sets it otherwise.
        outlives: True to let it finish if this process is killed.
    """
    git = find_git(_working_directory()) or Path("git")
    walls = walls_around(git, directory, (*readable, *users_files()), writable, outlives=outlives)
    environment = with_settings(users_environment(), (*settings_of_every_git(), *_WRITING)) | _WITHOUT_PROMPT
    # A filter of the user would fetch the contents of large files; their pointers stay as they are.
    ours = {"PATH": os.environ.get("PATH", os.defpath), "GIT_LFS_SKIP_SMUDGE": "1"}
    return (*(walls or ()), str(git), *arguments), environment | ours


def fetching_git(arguments: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return command line and environment of a git that fetches from the network. Blocks.

    It has no walls and the user's variables, because it may need credentials.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = with_settings(kept, (*settings_of_every_git(), *_WRITING)) | _WITHOUT_PROMPT
    return (str(find_git(_working_directory()) or "git"), *arguments), environment


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
    """Return a note that names the setting of ours that made git refuse something; empty if its output shows none."""
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
        else _users(git, tuple(sorted(environment.items())), tuple(map(identity_of, usual_files())))
    )


def users_files() -> list[str]:
    """Return the files of the user that git reads for itself: settings, ignored files, attributes. Blocks."""
    settings, files = users_settings()
    named = [os.path.expanduser(settings[name]) for name in _USERS_FILES if settings.get(name)]
    usual = [f"{users_config_dir()}/{name}" for name in ("ignore", "attributes", "config")]
    return [path for path in (*files, *named, *usual) if os.path.isabs(path)]


def identity_of(path: str) -> tuple[int, int, int]:
    """Return inode, size and modification time of a file, links followed; zeros if it cannot be looked up."""
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
    # It looks at no repository.
    readable, settings = (EVERYTHING,), dict(environment)
    output = (
        start_git(git, arguments, environment=settings, seconds=_SECONDS, readable=readable, without_walls=True) or b""
    )
    origins, records = (os.fsdecode(output).split("\0")[start::2] for start in (0, 1))
    settings = {name: value for name, _, value in (record.partition("\n") for record in records)}
    files = (origin.removeprefix("file:") for origin in origins if origin.startswith("file:/"))
    return settings, tuple(dict.fromkeys(files))
