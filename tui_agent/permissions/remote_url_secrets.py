"""Whether git's settings hold an address with a secret in it, which `git remote -v` would show."""

import os
import re

from tui_agent.protocol.regular_file import read_regular_file

from .protected_paths import git_directories
from .repository_settings import repository_roots

_SECRET = re.compile(rb"://(?:[^\s/@:\"]*:[^\s/@\"]+|[^\s/@:\"]{20,})@")
"""A password behind a name, or a name that is as long as a token."""


def find_remote_url_secret(directory: str) -> str | None:
    """The file whose settings hold an address with a secret, for the repository around a directory; None if none does.

    Args:
        directory: absolute, links followed.
    """
    places = [place for top in repository_roots(directory) for place in git_directories(top)]
    files = [os.path.join(place, name) for place in places for name in ("config", "config.worktree")]
    # Settings of the person and of the system may put a secret into the addresses of the repository.
    person = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    files += [os.path.expanduser("~/.gitconfig"), os.path.join(person, "git", "config"), "/etc/gitconfig"]
    return next((file for file in files if _holds_secret(file)), None)


def _holds_secret(file: str) -> bool:
    try:
        return bool(_SECRET.search(read_regular_file(file)))
    except OSError:
        return False
