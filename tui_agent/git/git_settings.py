"""Settings in a file, as git reads them.

git itself lists the settings: a second parser would find other ones in a crafted file. git gets the file's content as
its input, which starts nothing and reads no other file. What git cannot list is unknown.
"""

import os
from functools import lru_cache
from pathlib import Path

from .git_program import find_git, start_git

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
