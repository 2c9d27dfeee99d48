"""Protected paths that a recursive copy brings into an existing directory."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .commands.argv import Arguments, is_remote
from .protected_paths import protected_name

MAX_ENTRIES = 20_000
"""Maximum number of directory entries of a source to check; with more, the policy asks."""

_WHOLE_NAMES = frozenset(("", ".", ".."))


@dataclass(frozen=True, slots=True)
class Copy:
    """A source that may be a directory, and the path its contents go to."""

    source: str
    into: str
    left_out: frozenset[str] = frozenset()
    """Names that are not copied, as written; one with a leading `/` applies only at the top."""


def copies_of(name: str, found: Arguments, words: Sequence[str]) -> tuple[Copy, ...]:
    """Return the sources that `cp`, `rsync` and the like copy, with their targets.

    Args:
        name: the command's name.
        found: its words, sorted.
        words: its words in order.
    """
    if is_remote(found.target) or name not in ("cp", "rsync", "scp", "ditto"):
        return ()
    left_out = _left_out(words) if name == "rsync" else frozenset[str]()
    return tuple(
        Copy(source, _into(name, found, source), left_out) for source in found.sources if not is_remote(source)
    )


def why_copy_unsafe(source: str, into: str, left_out: frozenset[str]) -> str | None:
    """Return why a copy may change a protected path, or None. Blocks.

    Args:
        source: absolute.
        into: absolute target of its contents; parts that do not exist yet cannot hold anything protected.
        left_out: names that are not copied.
    """
    waiting = [""]
    seen = 0
    while waiting:
        below = waiting.pop()
        if not os.path.isdir(os.path.join(into, below)):
            continue  # A new directory becomes a copy of its own and overwrites nothing.
        try:
            with os.scandir(os.path.join(source, below)) as entries:
                listed = list(entries)
        except OSError:
            continue
        seen += len(listed)
        if seen > MAX_ENTRIES:
            return "it contains too many files to check"
        for entry in listed:
            path = os.path.join(below, entry.name)
            if entry.name in left_out or f"/{path}" in left_out:
                continue
            if why := protected_name(entry.name):
                return f"it would copy {path}: {why}"
            if entry.is_dir(follow_symlinks=True):
                waiting.append(path)
    return None


def _into(name: str, found: Arguments, source: str) -> str:
    # `cp a/. b` and `rsync a/ b` copy the contents, `cp a b` and `rsync a b` the directory itself.
    last = source.rstrip("/").rpartition("/")[2]
    if found.has("--parents") or (name == "rsync" and found.has("-R", "--relative")):
        return f"{found.target}/{source.lstrip('/')}"
    is_contents = last in _WHOLE_NAMES or name == "ditto" or (name == "rsync" and source.endswith("/"))
    if is_contents or (name == "cp" and found.has("-T", "--no-target-directory")):
        return found.target
    return f"{found.target}/{last}"


def _left_out(words: Sequence[str]) -> frozenset[str]:
    """Return the names that `rsync` excludes, or none if another option could include them again."""
    if any(word.startswith(("--include", "--filter", "--files-from", "-f")) for word in words):
        return frozenset()
    given = [after for before, after in pairwise(words) if before == "--exclude"]
    given += [word.partition("=")[2] for word in words if word.startswith("--exclude=")]
    return frozenset(name.rstrip("/") for name in given)
