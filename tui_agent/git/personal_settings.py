"""The user's own settings of git, such as name and address, for commands that do not see the home."""

import os
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.secret_variables import is_secret_variable

from .git_bubblewrap import EVERYTHING
from .git_program import find_git, start_git, users_environment, usual_files

_SECONDS = 2.0
_LEFT_OUT = ("include", "includeif", "credential")
"""Sections that name other files or programs with passwords; what they include is listed itself."""


def plain_git_settings(root: Path) -> bytes:
    """Return the user's settings of git as a file's content, without those that hold secrets; may be empty. Blocks.

    Args:
        root: the workspace; settings may depend on the repository.
    """
    return _listed(root, tuple((file, _state(file)) for file in usual_files()))


@lru_cache(maxsize=8)
def _listed(root: Path, files: tuple[tuple[str, object], ...]) -> bytes:
    git = find_git(root)
    if git is None or not any(state for _, state in files):
        return b""
    # Git starts nothing for this, whatever the repository says.
    arguments = ("config", "--global", "--includes", "--list", "-z")
    environment = users_environment()
    directory, readable = str(root), (EVERYTHING,)
    listed = (
        start_git(git, arguments, environment=environment, seconds=_SECONDS, readable=readable, directory=directory)
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
