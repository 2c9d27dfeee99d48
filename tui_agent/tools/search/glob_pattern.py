"""File name patterns with `*`, `?`, `[…]`, `{a,b}`, and `**` for directories; matching takes linear time."""

import fnmatch
import posixpath
import re
from dataclasses import dataclass, replace

from tui_agent.protocol.errors import ToolError
from tui_agent.tools.text_match import plain_form

_MOST_ALTERNATIVES = 256
_WILD = re.compile(r"[*?\[]")
_ANY_DEPTH = "**"


@dataclass(frozen=True, slots=True)
class GlobPattern:
    """A compiled pattern for relative paths that use `/`."""

    alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]
    """Segments of each alternative; None stands for any number of directories."""
    choices: tuple[str, ...] = ()
    """Paths that the pattern may be literally: itself, and what its braces expand to."""

    @classmethod
    def parse(cls, pattern: str) -> "GlobPattern":
        """Compile a pattern that is anchored at the directory it is used in.

        Raises:
            ToolError: it contains `..`, or its braces expand to too many alternatives.
        """
        # Braces may also be part of a name.
        choices = tuple(dict.fromkeys((*_without_braces(pattern), pattern)))
        return cls(tuple(_segments(plain_form(choice)) for choice in choices), choices)

    @classmethod
    def parse_filter(cls, pattern: str) -> "GlobPattern":
        """Compile a pattern that matches names at any depth if it has no slash.

        Raises:
            ToolError: as for `parse`.
        """
        if "/" in pattern:
            return cls.parse(pattern)
        found = cls.parse(f"{_ANY_DEPTH}/{pattern}")
        return replace(found, choices=(*found.choices, *cls.parse(pattern).choices))

    @property
    def bases(self) -> tuple[str, ...]:
        """Directories below which files may match, from the leading names without wildcards; empty for the start."""
        found: list[str] = []
        for choice in self.choices:
            names = [name for name in choice.split("/") if name not in ("", ".")]
            plain = next((place for place, name in enumerate(names) if _WILD.search(name)), None)
            if plain is not None:
                found.append("/".join(names[:plain]))
        return tuple(dict.fromkeys(found))

    @property
    def folders(self) -> tuple[str, ...]:
        """Directories of the paths that the pattern may be; empty for the start."""
        return tuple(dict.fromkeys(posixpath.dirname(posixpath.normpath(choice)) for choice in self.choices))

    def matches(self, path: str) -> bool:
        """Return True if a file's relative path matches, or one that looks equal to it."""
        parts = plain_form(path).split("/")
        return any(_matches(segments, parts) for segments in self.alternatives)


def _segments(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if ".." in names:
        raise ToolError("a pattern cannot contain ..; name the directory in path")
    if names and names[-1] == _ANY_DEPTH:
        names.append("*")
    return tuple(None if name == _ANY_DEPTH else _segment(name) for name in names)


def _segment(name: str) -> re.Pattern[str]:
    """Return the expression for one name, which may be the pattern itself: routes of web frameworks have brackets."""
    return re.compile(f"{fnmatch.translate(name)}|{re.escape(name)}\\Z")


def _matches(segments: tuple[re.Pattern[str] | None, ...], parts: list[str]) -> bool:
    """Match by following all reachable positions in the pattern at once, so that no pattern takes exponential time."""
    reached = _with_skips(segments, {0})
    for part in parts:
        further: set[int] = set()
        for place in reached:
            segment = segments[place] if place < len(segments) else _NOTHING
            if segment is None:
                further.add(place)
            elif segment.match(part):
                further.add(place + 1)
        reached = _with_skips(segments, further)
        if not reached:
            return False
    return len(segments) in reached


_NOTHING = re.compile(r"(?!)")


def _with_skips(segments: tuple[re.Pattern[str] | None, ...], places: set[int]) -> set[int]:
    """Add the position after each `**`, which may match no directory at all."""
    for place in sorted(places):
        behind = place
        while behind < len(segments) and segments[behind] is None:
            behind += 1
            places.add(behind)
    return places


def _without_braces(pattern: str) -> list[str]:
    """Return the alternatives that the braces of a pattern expand to, innermost braces first."""
    waiting, done = [pattern], list[str]()
    while waiting:
        text = waiting.pop(0)
        found = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if found is None:
            done.append(text)
            continue
        waiting += [text[: found.start()] + choice + text[found.end() :] for choice in found.group(1).split(",")]
        if len(waiting) + len(done) > _MOST_ALTERNATIVES:
            raise ToolError(f"the braces of the pattern expand to more than {_MOST_ALTERNATIVES} alternatives")
    return done
