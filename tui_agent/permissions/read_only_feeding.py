"""Commands that get their files from another command: `find … -exec`, `… | xargs`.

What comes in are paths that the first command came upon. That is safe to read only if no link among them leads out and
no name among them can pass for an option or for several words.
"""

import os
import re
from collections.abc import Sequence

from .path_resolution import is_within
from .read_only_check import own_name, read_only_use
from .read_only_find import EXEC_ACTIONS, find_roots, finds_only_files
from .read_only_git import git_words
from .read_only_options import sort_options
from .read_only_table import read_only_command
from .shell_syntax import UNKNOWN, SimpleCommand, names

MAX_NAMES = 5_000
"""Most file names that are looked at before it counts as unsafe to pass them on."""

_FEEDABLE = names("cat egrep fgrep file grep head ls md5sum nl sha1sum sha256sum stat tail wc")
"""Commands that do nothing but read what they are given, in whatever number."""
_COUNTING = names("ls stat wc md5sum sha1sum sha256sum")
"""Those that do not show what is in a file."""
_UNSAFE_NAME = re.compile(r"-|.*[\s'\"\\]", re.DOTALL)
_PRINTS_MORE = EXEC_ACTIONS | names("-printf -ls")
"""What makes `find` print something else than the paths it comes upon."""
_LISTS = names("-l --files-with-matches --files")
"""Options with which `grep` and `rg` print nothing but paths."""
_LISTS_ALL_THE_SAME = names(
    "-r -i -w -x -F -E -P -G -s -S -u -I -H -U -a -e -g -t -T -0 -Z --null --recursive --ignore-case --smart-case "
    "--case-sensitive --word-regexp --line-regexp --fixed-strings --extended-regexp --perl-regexp --regexp --glob "
    "--iglob --type --type-not --include --exclude --exclude-dir --hidden --no-ignore --max-depth --sort "
    "--no-messages --no-config"
)
"""Options beside which they still do."""
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
    if name == "find" and _PRINTS_MORE.isdisjoint(feeder):
        return find_roots(feeder), not finds_only_files(feeder)
    if name in ("rg", "grep") and _only_lists(name, feeder):
        roots = use.trees or use.paths
        return (roots, False) if roots else None
    words = git_words(feeder) if name == "git" else None
    if words is not None and words.words[:1] == ("ls-files",) and words.directory is None and not shows:
        return (".",), False
    return None


def _only_lists(name: str, feeder: Sequence[str]) -> bool:
    command = read_only_command(name)
    options = sort_options(command, feeder[1:]) if command else None
    if options is None or "-" in options.operands or not options.has(*_LISTS):
        return False
    if name == "rg" and options.has("-r"):
        return False  # There it stands for another text in place of what was found.
    return all(option in _LISTS or option in _LISTS_ALL_THE_SAME for option in options.given)


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
