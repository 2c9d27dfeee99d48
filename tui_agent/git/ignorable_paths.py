"""A cheap answer to most questions about ignored files: a rule matches no path without the words of the rule.

Only git knows what a rule matches. Here a rule is only ruled out, so that tui-agent asks git about the other paths.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tui_agent.protocol.regular_file import read_regular_file

from .git_program import identity_of, users_config_dir, users_settings
from .repository_layout import data_directories, repository_roots

_MOST_PATHS = 64
"""Most paths that are compared with rules; git is faster with many."""
_SETTINGS = ("config", "config.worktree")
_NAMES_FILES = re.compile(rb"excludesfile|include", re.IGNORECASE)
"""Text without which a file of settings names neither rules nor other files of settings."""
_SPECIAL = re.compile(rb"[\[\\\0].*", re.DOTALL)
"""Rest of a rule from a character on after which its text need not be in the path."""
_BETWEEN = re.compile(rb"[*?/]+")

_Rules = tuple[frozenset[bytes], ...]
"""Of each rule the words, in lower case, that are in every path which it matches; of one that may match any, none."""


def may_be_ignored(workspace: str, paths: Sequence[str]) -> Sequence[str]:
    """Return the paths that git may ignore: all in doubt. Blocks.

    Args:
        workspace: absolute, links followed.
        paths: relative to it.
    """
    top = next(iter(repository_roots(workspace)), None)
    if top is None or len(paths) > _MOST_PATHS or (shared := _shared_rules(top)) is None:
        return paths
    known: dict[str, _Rules | None] = {}

    def is_possible(path: str) -> bool:
        name = f"{workspace}/{path}"
        words = os.fsencode(name).lower()
        for directory in _above(name, top):
            if directory not in known:
                known[directory] = _rules_in(f"{directory}/.gitignore")
        rules = (shared, *(known[directory] for directory in _above(name, top)))
        return any(some is None or any(all(word in words for word in rule) for rule in some) for some in rules)

    return [path for path in paths if is_possible(path)]


def _above(path: str, top: str) -> Iterator[str]:
    """Yield the directories above a path, up to the top of its repository."""
    while path not in (top, ""):
        path = path.rpartition("/")[0]
        yield path


def _shared_rules(top: str) -> _Rules | None:
    """Return the rules for a whole repository, its own and the user's; None if they are not certain."""
    places = data_directories(top)
    # git ignores a repository without a head, and takes the one around it.
    if not places or not os.path.lexists(f"{places[0]}/HEAD"):
        return None
    if any(_names_files(f"{place}/{name}") for place in places for name in _SETTINGS):
        return None
    settings, _ = users_settings()
    users = os.path.expanduser(settings.get("core.excludesfile", f"{users_config_dir()}/ignore"))
    # Conditions may include more for this repository; beginnings of a path other than `~` have meanings for git.
    if any(name.startswith("includeif.") for name in settings) or not (os.path.isabs(users) or not users):
        return None
    files = [*(f"{place}/info/exclude" for place in places), *filter(None, (users,))]
    rules = [_rules_in(file) for file in files]
    return None if None in rules else tuple(rule for some in rules for rule in some or ())


def _names_files(settings: str) -> bool:
    try:
        return bool(_NAMES_FILES.search(read_regular_file(settings)))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _rules_in(file: str) -> _Rules | None:
    """Return the rules of a file, none if it is missing; None if it cannot be read."""
    return _read_rules(file, identity_of(file)) if os.path.lexists(file) else ()


@lru_cache(maxsize=256)
def _read_rules(file: str, _: tuple[int, int, int]) -> _Rules | None:
    try:
        text = read_regular_file(file).removeprefix(b"\xef\xbb\xbf").lower()
    except OSError:
        return None
    # A rule that makes an exception ignores nothing.
    rules = (line for line in text.split(b"\n") if line.strip() and not line.startswith((b"#", b"!")))
    return tuple(dict.fromkeys(map(_words_of, rules)))


def _words_of(rule: bytes) -> frozenset[bytes]:
    return frozenset(filter(None, _BETWEEN.split(_SPECIAL.sub(b"", rule).strip())))
