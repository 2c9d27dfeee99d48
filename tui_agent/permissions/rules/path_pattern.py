"""Patterns of `read(…)`, `edit(…)` and `write(…)` rules: anchored globs with the syntax of `.gitignore`."""

import os
import re
from dataclasses import dataclass
from functools import lru_cache

from pathspec import GitIgnoreSpec

from tui_agent.permissions.commands.invocation import FileFilter
from tui_agent.permissions.paths.path_resolution import TooMuchError, entries_below, is_within

MAX_ENTRIES = 1_000
"""Maximum number of directory entries to test for a match below a directory."""
MAX_NAMES = 20_000
"""The same limit for patterns that a name alone can match."""

_SIMPLE_NAME = re.compile(r"[\w.*?@+,=-]+\Z")
_PROBE = "\u2400-no-such-name-\u2400"
"""A file name that does not occur: a pattern that matches it matches everything."""
_GLOB = frozenset("*?[\\")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """One pattern with its base directories."""

    text: str
    bases: tuple[str, ...]
    """Absolute directories; the workspace counts both as named and with links followed."""

    def matches(self, path: str) -> bool:
        """True if the pattern matches an absolute path."""
        spec = _spec(self.text)
        for base in self.bases:
            if is_within(path, base) and path != base and spec.match_file(path[len(base) :].lstrip("/")):
                return True
        return False

    def matches_all_below(self, directory: str) -> bool:
        """True if the pattern matches everything in a directory, at any depth."""
        probe = os.path.join(directory, _PROBE)
        return self.matches(directory) or (self.matches(probe) and self.matches(os.path.join(probe, _PROBE)))

    def may_match_below(self, directory: str, includes: FileFilter | None = None) -> bool:
        """True if the pattern matches something in a directory, at any depth, or if the search exceeds its limit.

        Args:
            directory: absolute, without links.
            includes: filter for the files that count; None for all.
        """
        if includes is None and self.matches(os.path.join(directory, _PROBE)):
            return True
        anchor = self._anchor()
        for base in self.bases:
            start = os.path.join(base, anchor) if anchor else base
            if is_within(directory, start):
                return self._found_below(directory, directory, includes)
            if is_within(start, directory) and os.path.lexists(start):
                return self._found_below(start, directory, includes)
        return False

    def _anchor(self) -> str:
        """Return the literal directories before the pattern's first glob; empty if it matches at any depth."""
        parts = self.text.strip("/").split("/")
        if len(parts) == 1 and not self.text.startswith("/"):
            return ""
        spelled: list[str] = []
        for part in parts:
            if not _GLOB.isdisjoint(part):
                break
            spelled.append(part)
        return "/".join(spelled)

    def _found_below(self, start: str, top: str, includes: FileFilter | None) -> bool:
        if self.matches(start) and (includes is None or start == top):
            return True
        by_name = _name_pattern(self.text)

        def below(entry: os.DirEntry[str]) -> str:
            return entry.path[len(top) :].lstrip("/")

        def enters(entry: os.DirEntry[str]) -> bool:
            return includes is None or includes.enters(below(entry))

        def counts(entry: os.DirEntry[str]) -> bool:
            if includes is None or entry.is_dir(follow_symlinks=False):
                return enters(entry)
            return includes.includes(below(entry))

        try:
            return any(
                (by_name.fullmatch(entry.name) if by_name else self.matches(entry.path)) and counts(entry)
                for entry in entries_below(start, MAX_NAMES if by_name else MAX_ENTRIES, enters=enters)
            )
        except TooMuchError:
            return True


def path_pattern(text: str, workspace: str, root: str) -> PathPattern:
    """Parse a pattern.

    Args:
        text: `src/**` (from the workspace), `~/.ssh/**` (from the user's home), `//etc/**` (from the root).
        workspace: the workspace, links followed.
        root: the workspace as named.
    """
    if text.startswith("//"):
        return PathPattern(text[1:], ("/",))
    if text == "~" or text.startswith("~/"):
        home = os.path.expanduser("~")
        return PathPattern(text[1:] or "/**", tuple(dict.fromkeys((home, os.path.realpath(home)))))
    return PathPattern(text.removeprefix("./"), tuple(dict.fromkeys((workspace, root))))


@lru_cache(maxsize=1_024)
def _name_pattern(text: str) -> re.Pattern[str] | None:
    """Return an expression for file names if the pattern has one component and so matches by name alone, else None."""
    name = text.removeprefix("**/").rstrip("/")
    if not _SIMPLE_NAME.match(name):
        return None
    return re.compile(re.escape(name).replace("\\*", ".*").replace("\\?", "."), re.DOTALL)


@lru_cache(maxsize=1_024)
def _spec(text: str) -> GitIgnoreSpec:
    # Rules have no negation or comments: a leading `!` or `#` is part of a name.
    return GitIgnoreSpec.from_lines([f"\\{text}" if text.startswith(("!", "#")) else text])
