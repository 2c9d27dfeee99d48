"""Patterns for paths: those of searches, and the `.gitignore` files that apply to one."""

import fnmatch
import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from tui_agent.protocol.errors import ToolError
from tui_agent.tools.pinned_directory import ResolvedPath, open_regular_file_at, pinned_directory
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


GIT_NAME = ".git"
"""Name of git's own directory, or of the file that points to it; never searched."""

RULES_NAME = ".gitignore"
"""Name of a rule file."""

# A repository from elsewhere must not make every listing slow.
_RULES_LIMIT = 1024 * 1024
_MOST_RULES = 2_000
_LONGEST_RULE = 500
_MOST_CROSSINGS = 2
"""Most wildcards in a pattern that match across directories: more would make matching slow."""
_CROSSING = re.compile(r"\.\+")
_EARLY_STAR = re.compile(r"\[\^/\]\*((?:\\.|\[\^/\](?!\*)|\[(?!\^/\])(?:\\.|[^\]\\])+\]|[^\[\]\\/()])+)(?=\[\^/\]\*)")
"""A star and the text after it, up to another star in the same name."""


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of a `.gitignore` file."""

    regex: re.Pattern[str]
    leaves_out: bool
    """False for a line that begins with `!`."""

    def fits(self, path: str) -> bool:
        """Return True if the rule matches this very path, not only a directory above it.

        pathspec's expressions also match everything below a directory, while git judges each level by itself. They end
        at the slash of the directory they match; those without an anchor match any path, or any directory.
        """
        found = self.regex.search(path)
        if found is None or found.end() == len(path):
            return found is not None
        anywhere = not self.regex.pattern.startswith("^")
        return anywhere and ("/" not in self.regex.pattern or path.endswith("/"))


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """One `.gitignore` file."""

    base: str
    """Path of its directory, with a slash at the end."""
    rules: tuple[IgnoreRule, ...]
    """The last rule that matches decides."""

    def verdict(self, path: str, *, is_directory: bool) -> bool | None:
        """Return True if the file excludes a path below its directory, False if it includes it, None if no rule
        matches."""
        below = path[len(self.base) :] + ("/" if is_directory else "")
        return next((rule.leaves_out for rule in reversed(self.rules) if rule.fits(below)), None)


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rule files that apply in one directory, the nearest last; the nearest one with a matching rule decides."""

    files: tuple[IgnoreFile, ...] = ()

    def leaves_out(self, path: str, *, is_directory: bool) -> bool:
        """Return True if a path is excluded. It must be below the directory of each file, in no excluded directory."""
        for rules in reversed(self.files):
            verdict = rules.verdict(path, is_directory=is_directory)
            if verdict is not None:
                return verdict
        return False

    def inside(self, held: int, directory: str) -> "IgnoreRules":
        """Return the rules that apply in a directory, including its own file; a nested repository starts without any.

        Args:
            held: descriptor of the directory.
            directory: its path.
        """
        outer = () if _has_repository(held) else self.files
        own = _rule_file(held, directory)
        return IgnoreRules((*outer, own) if own else outer)


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The directory of a search and the rules for files it leaves out."""

    place: ResolvedPath
    """The directory the search begins in."""
    rules: IgnoreRules | None
    """Rules from above that directory; None: the directory itself is ignored, so a search in it covers everything."""
    in_repository: bool

    @classmethod
    def of(cls, place: ResolvedPath, workspace: Path) -> "SearchScope":
        """Return the scope of a search in a directory; reads the rule files above it. Blocks.

        Raises:
            ToolError: the directory was replaced since the call was judged.
            OSError: a directory on the way is missing, or became a symbolic link.
        """
        root = place.path
        repository = next((path for path in (root, *root.parents) if _holds_repository(path, place)), None)
        top = repository or (workspace if root.is_relative_to(workspace) else root)
        rules = IgnoreRules()
        for directory in _from_to(top, root):
            if directory != top and rules.leaves_out(str(directory), is_directory=True):
                return cls(place, None, repository is not None)
            if directory != root:
                with pinned_directory(directory, place=place) as held:
                    rules = rules.inside(held, str(directory))
        return cls(place, rules, repository is not None)


def _holds_repository(directory: Path, place: ResolvedPath) -> bool:
    """Return True if a repository begins in a directory."""
    with pinned_directory(directory, place=place) as held:
        return _has_repository(held)


def _has_repository(held: int) -> bool:
    """Return True if a repository begins in a held directory."""
    try:
        os.stat(GIT_NAME, dir_fd=held, follow_symlinks=False)
    except OSError:
        return False
    return True


def _from_to(top: Path, root: Path) -> Iterator[Path]:
    """Yield `top` and each directory on the way down to `root`, both included."""
    yield top
    for name in root.relative_to(top).parts:
        top /= name
        yield top


def _rule_file(held: int, directory: str) -> IgnoreFile | None:
    """Return the rule file of a directory, if it has a readable one; like git, ignore one that is a link."""
    try:
        with open_regular_file_at(held, RULES_NAME, RULES_NAME) as (descriptor, status):
            if status.st_size > _RULES_LIMIT:
                return None
            with open(descriptor, encoding="utf-8", errors="replace", closefd=False) as file:
                lines = file.read(_RULES_LIMIT).split("\n")
    except (OSError, ToolError):
        return None
    rules = (rule for line in lines if len(line) <= _LONGEST_RULE and (rule := _rule(line)))
    return IgnoreFile(os.path.join(directory, ""), tuple(islice(rules, _MOST_RULES)))


def _rule(line: str) -> IgnoreRule | None:
    """Return the rule of a line; None for a blank line, a comment, an invalid pattern, and one too slow to match."""
    bare = line.rstrip()
    try:
        # `build/**` matches what is in the directory; pathspec matches the directory itself, too.
        regex, leaves_out = GitIgnoreSpecPattern.pattern_to_regex(f"{bare}/*" if bare.endswith("/**") else line)
        if regex is None or leaves_out is None or len(_CROSSING.findall(regex)) > _MOST_CROSSINGS:
            return None
        # If another star follows, the first possible end of a star is as good as any: no need to backtrack.
        return IgnoreRule(re.compile(_EARLY_STAR.sub(r"(?>[^/]*?\1)", regex)), leaves_out)
    except (ValueError, re.error):
        return None
