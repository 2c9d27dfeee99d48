"""Search for URLs with embedded secrets in git's settings, which `git remote -v` would show."""

import os
import re

from tui_agent.permissions.paths.protected_paths import git_directories
from tui_agent.protocol.regular_file import read_regular_file

from .repository_settings import repository_roots

_SECRET = re.compile(rb"://(?:[^\s/@:\"]*:[^\s/@\"]+|[^\s/@:\"]{20,})@")
"""A URL with a password, or with a user name as long as a token."""


def find_remote_url_secret(directory: str) -> str | None:
    """Return the settings file with a secret in a URL, for the repository around a directory, or None.

    Args:
        directory: absolute, links followed.
    """
    places = [place for top in repository_roots(directory) for place in git_directories(top)]
    files = [os.path.join(place, name) for place in places for name in ("config", "config.worktree")]
    # `insteadOf` in the user's or the system's settings may put a secret into the repository's URLs.
    user = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    files += [os.path.expanduser("~/.gitconfig"), os.path.join(user, "git", "config"), "/etc/gitconfig"]
    return next((file for file in files if _holds_secret(file)), None)


def _holds_secret(file: str) -> bool:
    try:
        return bool(_SECRET.search(read_regular_file(file)))
    except OSError:
        return False
