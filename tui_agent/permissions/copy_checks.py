"""What protected place a directory brings along when its contents are copied into one that is there already."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .protected_paths import protected_name
from .writer_options import ParsedArguments, is_remote

MAX_ENTRIES = 20_000
"""Most directory entries of a source that are looked at; beyond, a person is asked."""

_WHOLE_NAMES = frozenset(("", ".", ".."))


@dataclass(frozen=True, slots=True)
class Copy:
    """A directory, perhaps, whose contents go into another one."""

    source: str
    into: str
    left_out: frozenset[str] = frozenset()
    """Names that are not copied, as they were given: those that begin with `/` only at the top."""


def copies_of(name: str, found: ParsedArguments, words: Sequence[str]) -> tuple[Copy, ...]:
    """What `cp`, `rsync` and their kin copy, if it is a directory.

    Args:
        name: of the command.
        found: its words, sorted.
        words: the same as they stand.
    """
    if is_remote(found.target) or name not in ("cp", "rsync", "scp", "ditto"):
        return ()
    left_out = _left_out(words) if name == "rsync" else frozenset[str]()
    return tuple(
        Copy(source, _into(name, found, source), left_out) for source in found.sources if not is_remote(source)
    )


def why_copy_unsafe(source: str, into: str, left_out: frozenset[str]) -> str | None:
    """Why a copy may change something protected; None if it brings nothing of that kind to where it would count.
    Blocks.

    Args:
        source: absolute.
        into: where its contents go, absolute; what is not there yet becomes a directory of its own.
        left_out: names that are not copied.
    """
    waiting = [""]
    seen = 0
    while waiting:
        below = waiting.pop()
        if not os.path.isdir(os.path.join(into, below)):
            continue
        try:
            with os.scandir(os.path.join(source, below)) as entries:
                listed = list(entries)
        except OSError:
            continue
        seen += len(listed)
        if seen > MAX_ENTRIES:
            return "there is more in it than can be looked through"
        for entry in listed:
            path = os.path.join(below, entry.name)
            if entry.name in left_out or f"/{path}" in left_out:
                continue
            if why := protected_name(entry.name):
                return f"it brings {path}: {why}"
            if entry.is_dir(follow_symlinks=True):
                waiting.append(path)
    return None


def _into(name: str, found: ParsedArguments, source: str) -> str:
    last = source.rstrip("/").rpartition("/")[2]
    if found.has("--parents") or (name == "rsync" and found.has("-R", "--relative")):
        return f"{found.target}/{source.lstrip('/')}"
    is_contents = last in _WHOLE_NAMES or name == "ditto" or (name == "rsync" and source.endswith("/"))
    if is_contents or (name == "cp" and found.has("-T", "--no-target-directory")):
        return found.target
    return f"{found.target}/{last}"


def _left_out(words: Sequence[str]) -> frozenset[str]:
    """What `rsync` is told to leave out by name, unless something else could bring it back."""
    if any(word.startswith(("--include", "--filter", "--files-from", "-f")) for word in words):
        return frozenset()
    given = [after for before, after in pairwise(words) if before == "--exclude"]
    given += [word.partition("=")[2] for word in words if word.startswith("--exclude=")]
    return frozenset(name.rstrip("/") for name in given)
