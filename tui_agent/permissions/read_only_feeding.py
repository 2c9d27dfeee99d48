"""Commands that get their files from another command: `find … -exec`, `… | xargs`.

What comes in are paths that the first command came upon. That is safe to read only if no link among them leads out and
no name among them can pass for an option or for several words.
"""

import os
import re
from collections.abc import Sequence

from .path_resolution import is_within
from .read_only_check import own_name, read_only_use
from .read_only_find import find_roots, finds_only_files
from .shell_syntax import UNKNOWN, SimpleCommand, names

MAX_NAMES = 5_000
"""Most file names that are looked at before it counts as unsafe to pass them on."""

_FEEDABLE = names("cat egrep fgrep file grep head ls md5sum nl sha1sum sha256sum stat tail wc")
"""Commands that do nothing but read what they are given, in whatever number."""
_COUNTING = names("ls stat wc md5sum sha1sum sha256sum")
"""Those that do not show what is in a file."""
_UNSAFE_NAME = re.compile(r"-|.*[\s'\"\\]", re.DOTALL)
_LISTING = re.compile(r"-[rinwFEsSuUH]*l[rinwFEsSuUH]*\Z|--files\Z|--files-with-matches\Z")
_FILE = re.compile(rf".*/{UNKNOWN}\Z", re.DOTALL)


def found_words(words: Sequence[str]) -> list[str]:
    """The words of a command that `find` gives files to, with the directory in place of each file."""
    return [word[: -len(UNKNOWN)] if _FILE.match(word) else word for word in words]


def fed_words(words: Sequence[str], outer: SimpleCommand, feeder: Sequence[str], directory: str) -> list[str] | None:
    """The words of a command behind `xargs` without those that it reads; None if these are not sure to be harmless.

    Args:
        words: the inner command, with a mark for what is read.
        outer: the `xargs` command.
        feeder: the words of the command before it in the pipeline.
        directory: where it runs.
    """
    if not words or words[0] not in _FEEDABLE or not feeder:
        return None
    if any(re.match(r"-a|--arg-file", word.value) for word in outer.words[1:]):
        return None
    found = _listed_roots(feeder, shows=words[0] not in _COUNTING)
    if found is None:
        return None
    roots, may_be_links = found
    if not all(_has_plain_names(os.path.join(directory, root), may_be_links=may_be_links) for root in roots):
        return None
    return [word for word in words if word != UNKNOWN]


def _listed_roots(feeder: Sequence[str], *, shows: bool) -> tuple[tuple[str, ...], bool] | None:
    """Where the paths come from that a command prints, one a line, and whether links can be among them; None if it
    prints something else as well."""
    name = own_name(feeder[0])
    use = read_only_use(feeder, SimpleCommand("", ()))
    if use is None:
        return None
    given = set(feeder[1:])
    if name == "find" and given.isdisjoint(("-printf", "-ls")) and "-exec" not in given:
        return find_roots(feeder), not finds_only_files(feeder)
    lists = any(_LISTING.match(word) for word in given)
    if name in ("rg", "grep") and lists:
        return use.trees or use.paths, False
    if name == "git" and "ls-files" in given and not shows:
        return (".",), False
    return None


def _has_plain_names(root: str, *, may_be_links: bool) -> bool:
    """Whether no name below a directory can pass for anything else and, where links may be read, none leads out."""
    home = os.path.realpath(root)
    if may_be_links and home != os.path.abspath(root):
        return False
    waiting = [root]
    seen = 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MAX_NAMES or _UNSAFE_NAME.match(entry.name):
                        return False
                    if may_be_links and entry.is_symlink() and not is_within(os.path.realpath(entry.path), home):
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return True
