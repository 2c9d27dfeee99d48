"""Reach of a `find` that changes files: does it match a file in a protected path?

The expression is evaluated to true, false or unknown, for directories and protected entries only. So `find . -name
'*.py' -exec sed -i …` runs without a question while `find . -name HEAD -exec rm …` asks.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from .commands.argv import is_known
from .path_facts import PathLookup
from .protected_paths import is_git_directory, protected_name
from .read_only_find import ASKING_ACTIONS, EXEC_ACTIONS, find_roots, is_test, takes_value, tests_begin
from .shell_syntax import MARKS, names

MAX_ENTRIES = 100_000
"""Maximum number of directory entries to check; with more, the policy asks."""

_WRITES_ONE = names("-fprint -fprint0 -fls")
_FOLLOWING = names("-L -H -follow")
_PRINTS = names("-print -print0")
_CHANGE = ("-exec", "rm", "{}", ";")
_BOTTOM_UP = names("-depth -d -delete")
_SET = re.compile(r"(\[!?[A-Za-z0-9]+\])")
_UNSURE_PATTERN = re.compile(r"[\[\\]")
_KINDS = names("f d l")
_APART = re.compile(r"[\s'\"\\]+")


def why_find_unsafe(
    words: Sequence[str], directory: str, path_lookup: PathLookup, budget: int = MAX_ENTRIES
) -> str | None:
    """Return why a `find` command (with its name) may change a protected file, or None. Blocks.

    Args:
        words: as the shell would pass them.
        directory: absolute working directory.
        path_lookup: looks the paths up.
        budget: number of directory entries to check; with more, the result is a reason.
    """
    follows = not _FOLLOWING.isdisjoint(words)
    # With followed links or an unknown test, everything below the roots counts as a match.
    parsed = None if follows else _read(words[tests_begin(words) :])
    search = _Search(
        path_lookup,
        parsed or _Expression(_Node("act"), MAX_ENTRIES),
        only_deletes=not follows and (EXEC_ACTIONS | ASKING_ACTIONS).isdisjoint(words),
        # find does not prune above the minimum depth.
        goes_down=not _BOTTOM_UP.isdisjoint(words) or "-mindepth" in words,
        left=budget,
    )
    known = (root for root in find_roots(words) if is_known(root))
    return next((why for root in known if (why := search.below(root, directory))), None)


def replace_print_with_exec(words: Sequence[str]) -> tuple[str, ...]:
    """Return a printing `find` as one that changes its matches, for a reader that changes the files it is passed."""
    begin = tests_begin(words)
    tests = list(words[begin:])
    for at in reversed([at for at, word in enumerate(tests) if word in _PRINTS]):
        tests[at : at + 1] = _CHANGE
    if _CHANGE[0] not in tests:
        tests = [*(("(", *tests, ")") if tests else ()), *_CHANGE]
    return (*words[:begin], *tests)


_Kind = Literal["and", "or", "list", "not", "test", "prune", "act", "true"]


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of an expression."""

    kind: _Kind
    parts: tuple["_Node", ...] = ()
    test: str = ""
    value: str = ""


@dataclass(slots=True)
class _Outcome:
    """Result of an expression for one path."""

    acts: bool = False
    """True if evaluation may have reached an action that changes files."""
    prunes: bool = False
    """True if evaluation certainly reached `-prune`."""


@dataclass(frozen=True, slots=True)
class _Expression:
    """The expression after the roots."""

    node: _Node
    deepest: int
    """Maximum depth of the search."""


@dataclass(frozen=True, slots=True)
class _Directory:
    """A directory still to be scanned."""

    place: str
    shown: str
    """Path as `find` prints it."""
    depth: int
    held: str | None
    """Reason why it is protected."""
    is_given: bool
    """True if a command may get the directory as a whole."""


@dataclass(slots=True)
class _Search:
    """Walk over the roots, one after the other."""

    path_lookup: PathLookup
    expression: _Expression
    only_deletes: bool
    goes_down: bool
    """True if the walk enters pruned directories, too."""
    left: int
    """Number of entries that may still be checked."""

    def below(self, root: str, directory: str) -> str | None:
        """Return why the walk from a root reaches a protected file, or None."""
        facts = self.path_lookup.look(root, directory)
        held = self.path_lookup.why_protected(facts)
        is_directory = os.path.isdir(facts.resolved)
        outcome = self._judge(os.path.basename(root.rstrip("/")) or "/", root, "d" if is_directory else "f")
        if held and outcome.acts:
            return held
        waiting: list[_Directory] = []
        if is_directory and (self.goes_down or not outcome.prunes):
            waiting.append(_Directory(facts.resolved, root, 0, held, outcome.acts and not self.only_deletes))
        while waiting:
            why = self._look_into(waiting.pop(), waiting)
            if why:
                return why
        return None

    def _look_into(self, found: _Directory, waiting: list[_Directory]) -> str | None:
        is_deep = found.depth >= self.expression.deepest
        if is_deep and not found.is_given:
            return None
        try:
            with os.scandir(found.place) as entries:
                listed = list(entries)
        except OSError:
            return None
        self.left -= len(listed)
        if self.left < 0:
            return "there are too many files to check"
        held = found.held
        if held is None and any(entry.name == "HEAD" for entry in listed) and is_git_directory(found.place):
            held = f"{found.place} is a repository's data"
        for entry in listed:
            why = held or self._why_protected(entry)
            if why and found.is_given:
                return f"it finds {found.shown}, which contains {entry.name}: {why}"
            if is_deep or not (why or entry.is_dir(follow_symlinks=False)):
                continue
            path = f"{found.shown}{entry.name}" if found.shown.endswith("/") else f"{found.shown}/{entry.name}"
            outcome = self._judge(entry.name, path, _kind(entry))
            if why and outcome.acts:
                return f"it finds {path}: {why}"
            if entry.is_dir(follow_symlinks=False) and (self.goes_down or not outcome.prunes):
                given = outcome.acts and not self.only_deletes
                waiting.append(_Directory(entry.path, path, found.depth + 1, why, given))
        return None

    def _why_protected(self, entry: os.DirEntry[str]) -> str | None:
        if why := protected_name(entry.name) or _protected_piece(entry.name):
            return why
        if entry.path in self.path_lookup.absolute_private_paths:
            return "it is private"
        # Deleting a link leaves its target alone; a command may follow it.
        if entry.is_symlink() and not self.only_deletes:
            return self.path_lookup.why_protected(self.path_lookup.look(entry.path))
        return None

    def _judge(self, name: str, path: str, kind: str) -> _Outcome:
        outcome = _Outcome()
        _evaluate(self.expression.node, name, path, kind, outcome, is_sure=True)
        return outcome


def _protected_piece(name: str) -> str | None:
    """Return why a name is protected once `xargs` or the shell splits it at blanks and quotes."""
    pieces = _APART.split(name)
    return next((why for piece in pieces if (why := protected_name(piece))), None) if len(pieces) > 1 else None


def _kind(entry: os.DirEntry[str]) -> str:
    """Return the letter of `-type`, or an empty string for a rare type."""
    if entry.is_symlink():
        return "l"
    return "d" if entry.is_dir(follow_symlinks=False) else "f" if entry.is_file(follow_symlinks=False) else ""


def _evaluate(node: _Node, name: str, path: str, kind: str, outcome: _Outcome, *, is_sure: bool) -> bool | None:
    """Return the value of an expression, or None if it is unknown."""
    match node.kind:
        case "true":
            return True
        case "act":
            outcome.acts = True
            return None  # The exit status of a command is unknown.
        case "prune":
            outcome.prunes = outcome.prunes or is_sure
            return True
        case "test":
            return _passes(node, name, path, kind)
        case "not":
            value = _evaluate(node.parts[0], name, path, kind, outcome, is_sure=is_sure)
            return None if value is None else not value
        case "list":
            values = [_evaluate(part, name, path, kind, outcome, is_sure=is_sure) for part in node.parts]
            return values[-1]
        case "and" | "or":
            ends_with = node.kind == "or"
            unsure = False
            for part in node.parts:
                value = _evaluate(part, name, path, kind, outcome, is_sure=is_sure and not unsure)
                if value is ends_with:
                    return value
                unsure = unsure or value is None
            return None if unsure else not ends_with


def _passes(node: _Node, name: str, path: str, kind: str) -> bool | None:
    match node.test:
        case "-name" | "-iname" | "-path" | "-wholename" | "-ipath" | "-iwholename":
            compared = name if node.test.endswith("-name") or node.test == "-iname" else path
            folds = node.test.startswith("-i")
            if not MARKS.isdisjoint(node.value) or _UNSURE_PATTERN.search(_SET.sub("", node.value)):
                return None
            if not (compared.isascii() and node.value.isascii()):
                return None  # Case folding and `?` depend on the locale.
            return _pattern(node.value, folds).match(compared) is not None
        case "-type":
            wanted = node.value.split(",")
            return kind in wanted if kind and _KINDS.issuperset(wanted) else None
        case "-false":
            return False
        case _:
            return None


@cache
def _pattern(text: str, folds: bool) -> re.Pattern[str]:
    parts: list[str] = []
    for piece in _SET.split(text):
        if _SET.fullmatch(piece):
            parts.append(piece.replace("[!", "[^"))
        else:
            parts.extend({"*": ".*", "?": "."}.get(letter) or re.escape(letter) for letter in piece)
    return re.compile("".join(parts) + r"\Z", re.DOTALL | (re.IGNORECASE if folds else 0))


def _read(words: Sequence[str]) -> _Expression | None:
    """Parse the expression of a `find` command, or return None if part of it is unknown."""
    reader = _Reader(list(words))
    try:
        node = reader.several()
    except (IndexError, RecursionError):
        return None
    depths = reader.depths
    deepest = max(map(int, depths), default=MAX_ENTRIES) if all(map(str.isdecimal, depths)) else MAX_ENTRIES
    return _Expression(node, deepest) if reader.at == len(words) and reader.is_known else None


@dataclass(slots=True)
class _Reader:
    """Recursive-descent parser of an expression."""

    words: list[str]
    at: int = 0
    is_known: bool = True
    depths: list[str] = field(default_factory=list[str])
    """Values of `-maxdepth`."""

    def several(self) -> _Node:
        """Parse expressions joined by commas."""
        return self._joined("list", (",",), lambda: self._joined("or", ("-o", "-or"), self._all))

    def _joined(self, kind: _Kind, between: tuple[str, ...], part: Callable[[], _Node]) -> _Node:
        parts = [part()]
        while self._next() in between:
            self.at += 1
            parts.append(part())
        return _Node(kind, tuple(parts)) if len(parts) > 1 else parts[0]

    def _all(self) -> _Node:
        parts: list[_Node] = []
        while self._next() not in ("", ")", ",", "-o", "-or"):
            if self._next() in ("-a", "-and"):
                self.at += 1
            parts.append(self._one())
        return _Node("and", tuple(parts)) if parts else _Node("true")

    def _one(self) -> _Node:
        word = self.words[self.at]
        self.at += 1
        if word in ("!", "-not"):
            return _Node("not", (self._one(),))
        if word == "(":
            inside = self.several()
            self.at += 1
            return inside
        if word in EXEC_ACTIONS | ASKING_ACTIONS:
            while self.words[self.at] != ";" and not (self.words[self.at] == "+" and self.words[self.at - 1] == "{}"):
                self.at += 1
            self.at += 1
            return _Node("act")
        if word == "-delete":
            return _Node("act")
        if word == "-prune":
            return _Node("prune")
        if word in _WRITES_ONE or word == "-fprintf":
            self.at += 1 if word in _WRITES_ONE else 2
            return _Node("true")
        if takes_value(word):
            self.at += 1
            self.depths.extend([self.words[self.at - 1]] if word == "-maxdepth" else ())
            known = word in ("-maxdepth", "-mindepth", "-printf", "-regextype")
            return _Node("true") if known else _Node("test", test=word, value=self.words[self.at - 1])
        self.is_known = self.is_known and is_test(word)
        return _Node("true") if word.startswith(("-print", "-true", "-depth", "-ls")) else _Node("test", test=word)

    def _next(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""
