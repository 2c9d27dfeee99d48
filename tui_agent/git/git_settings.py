"""Settings of git, as git reads them from files; and the user's own, for commands that do not see the home directory.

git itself lists the settings: a second parser would find other ones in a crafted file. git gets the file's content as
its input, which starts nothing and reads no other file. What git cannot list is unknown.
"""

import os
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.secret_variables import is_secret_variable

from .git_program import EVERYTHING, find_git, start_git, users_environment, usual_files

_SECONDS = 1.0
_LIST = ("config", "--file", "-", "--list", "-z", "--no-includes")

Settings = tuple[tuple[str, str, str, str], ...]
"""Section, name, key and value; the section and the key in lower case, the value of a key alone empty."""


def list_settings(content: bytes, folder: str) -> Settings | None:
    """Return the settings in a file's content as git reads them; None if git does not. Blocks for some milliseconds.

    The answer depends only on the content, so it is remembered.

    Args:
        folder: directory from which no git is started.
    """
    try:
        return _listed(content, folder, os.environ.get("PATH", ""))
    except _UnknownError:
        return None


class _UnknownError(Exception):
    """git did not list the settings; the next time it may."""


@lru_cache(maxsize=256)
def _listed(content: bytes, folder: str, _: str) -> Settings:
    git = find_git(Path(folder))
    environment = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    output = git and start_git(
        git, _LIST, environment=environment, stdin=content, seconds=_SECONDS, readable=(), without_walls=True
    )
    if output is None:
        raise _UnknownError
    return tuple(map(_setting, os.fsdecode(output).split("\0")[:-1]))


def _setting(record: str) -> tuple[str, str, str, str]:
    full, _, value = record.partition("\n")
    section, _, rest = full.partition(".")
    name, _, key = rest.rpartition(".")
    return section, name, key, value


_PLAIN_SECONDS = 2.0
_LEFT_OUT = ("include", "includeif", "credential")
"""Sections that name other files or programs with passwords; what they include is listed itself."""


def plain_git_settings(root: Path) -> bytes:
    """Return the user's settings of git as a file's content, without those that hold secrets; may be empty. Blocks.

    Args:
        root: the workspace; settings may depend on the repository.
    """
    return _listed_plainly(root, tuple((file, _state(file)) for file in usual_files()))


@lru_cache(maxsize=8)
def _listed_plainly(root: Path, files: tuple[tuple[str, object], ...]) -> bytes:
    git = find_git(root)
    if git is None or not any(state for _, state in files):
        return b""
    # Git starts nothing for this, whatever the repository says.
    arguments = ("config", "--global", "--includes", "--list", "-z")
    environment = users_environment()
    directory, readable = str(root), (EVERYTHING,)
    listed = (
        start_git(
            git, arguments, environment=environment, seconds=_PLAIN_SECONDS, readable=readable, directory=directory
        )
        or b""
    )
    return "".join(map(_lines, listed.decode("utf-8", "replace").split("\0"))).encode()


def _lines(entry: str) -> str:
    """Return the lines of a file for one setting; none if it holds a secret."""
    key, has_value, value = entry.partition("\n")
    section, _, rest = key.partition(".")
    name, _, variable = rest.rpartition(".")
    if not variable or section in _LEFT_OUT or is_secret_variable(key, f"{key}={value}"):
        return ""
    head = f"[{section} {_quoted(name)}]" if name else f"[{section}]"
    return f"{head}\n\t{variable}{f' = {_quoted(value)}' if has_value else ''}\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _state(file: str) -> object:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
