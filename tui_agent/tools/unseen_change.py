"""Changes of a file that the model has not seen: found before a call changes the file, and reported with its result."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent.protocol.errors import ToolError

from .file_versions import FileVersion, FileVersions
from .text_format import SAMPLE_SIZE, format_of, is_binary
from .unified_diff import diff_of, unchanged_ranges

CHANGES_SHOWN = 6_000
"""Most characters of a diff in a message."""


@dataclass(frozen=True, slots=True)
class UnseenChange:
    """The difference between the version of a file that the model knows and the present one."""

    path: Path
    now: FileVersion
    words: str
    """Description for the model: a diff, or sizes."""
    is_whole: bool
    """True if the description shows every changed line."""
    unchanged: Sequence[tuple[int, int]]
    """Ranges of unchanged lines of the present version, from 0: first line, and the line after the last."""
    is_own: bool
    """True if only commands of the model made the change."""

    def meets(self, places: Iterable[tuple[int, int]]) -> bool:
        """Return True if one of these places, each a first and a last line, is not within unchanged lines."""
        starts = [start for start, _ in self.unchanged]

        def is_within(first: int, last: int) -> bool:
            index = bisect_right(starts, first) - 1
            return index >= 0 and last < self.unchanged[index][1]

        return not self.is_own and not all(is_within(*place) for place in places)

    def count_as_seen(self, versions: FileVersions) -> None:
        """Record that the model was shown the description."""
        versions.remember(self.path, replace(self.now, is_partly_seen=not self.is_whole))


class UnseenChangeError(ToolError):
    """A refusal because of an unseen change; its text describes the change."""

    def __init__(self, text: str, unseen: UnseenChange) -> None:
        super().__init__(f"{text}; {unseen.words}")
        self.unseen = unseen


def find_unseen_change(versions: FileVersions, path: Path, now: FileVersion, text: str) -> UnseenChange | None:
    """Return how the present version of a file, which has a hash, differs from the one that the model knows.

    None if it does not, or the model knows none.
    """
    seen = versions.last_seen(path)
    if seen is None or seen.is_same_as(now):
        return None
    is_own = versions.is_own(path, now)
    old = _text_of(seen.content)
    if old is None:
        words = f"it had {seen.size:,} bytes and now has {now.size:,}"
        return UnseenChange(path, now, words, is_whole=False, unchanged=(), is_own=is_own)
    diff = diff_of(old, text, "as read", "on disk")
    words = f"what changed:\n{diff.shortened(CHANGES_SHOWN)}".rstrip("\n")
    is_whole = len(diff) <= CHANGES_SHOWN
    return UnseenChange(path, now, words, is_whole=is_whole, unchanged=unchanged_ranges(old, text), is_own=is_own)


def _text_of(content: bytes | None) -> str | None:
    """Return the text of a content; None if it is not known, or not text."""
    if content is None or is_binary(content):
        return None
    try:
        return format_of(content[:SAMPLE_SIZE]).decode(content)
    except ToolError:
        return None
