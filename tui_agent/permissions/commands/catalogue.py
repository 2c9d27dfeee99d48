"""Catalogue of commands: what their options and operands mean, one row a command in `facts/*.toml`.

A row lists what is known, never what is not: an option without an entry makes a command unknown, and the policy asks.
To add a read-only command, add a row with `reads` and `options`, and a line in the tests. Keys of a row:

    reads      what a read-only use does with its operands (below); without it no use is read-only
    writes     which operands are changed: ALL, FIRST, SECOND, LAST (if it is a directory, the files in it with the
               names of the other operands), MOVE (the same, and the others are changed, too), REST (all but the
               first), TREES (files, and files below directories; without operands: the working directory) or
               BELOW (paths, and some files below those that are directories)
    files      patterns for the names of the files that TREES changes below a directory; without it all
    everywhere options with which it also changes files below the working directory that its words do not name
    suffix     it makes or removes files of the operands' names with this ending
    unpacks    it removes this ending
    beside     options with which it changes only what its operands name, so that it may run beside other calls
    works_in   a rule for the command is not meant for operands outside the workspace
    spelled    a rule covers the command only if it spells out the last word of its name
    runs       its operands are another command: `transparent` (that command alone decides), `opaque`, `runner` (a
               rule for the program is meant to allow what it runs), `joined` (they are one text for a shell) or
               `remote` (the same on another machine)
    own_words  the number of operands before that command
    assigns    `NAME=value` before that command sets a variable
    is_open    that command gets more words at run time
    scripts    operands that are programs: ALL, or REST (all but the first)
    mentions   its other words may be paths that it changes
    options    options that neither change nor run anything
    effects    other options
    plain      patterns of the values that make an option with a program harmless, by option; "" is for operands
    like       a row whose options hold here, too
    also       other names of the command
    only       pattern for the operands of a read-only use, each followed by `\\0`
    words      the same for all words
    needs      options of a read-only use: one of each text
    selects    options one of which a read-only use with operands needs
    descends   options with which it reads everything below its operands
    lists      options with which it shows the names in trees, but no contents; `always` if it needs none

Values of `reads`:

    NONE      no operands
    ANY       any words, options or not; they are only text
    TEXT      words that are only text
    PATHS     files or directories, read
    LIST      the same; without operands: the working directory
    TREES     directories, read with everything below them (without operands: the working directory)
    ONE, TWO  at most this many paths
    PATTERN   a pattern, then paths; an option marked `!` replaces the pattern
    SEARCH    a pattern, then trees

Options are written as on the command line: `-alh` is three flags that may be joined. A mark after an option tells its
value: `:` text, `::` two words, `=` text that follows without a blank, `<` a path that is read, `%` a list of paths
that are read, `>` a path that is changed, `|` a path of this machine that a container may change, `*` the target
directory, `@` the working directory, `$` a program, `<$` a file with one, `=$` a program that follows without a blank
or that the option itself stands for, `/` a place or file of settings, for which a rule is not meant if it is outside
the workspace, `.` an ending that the names of other changed files get. `!` after an option in `options` replaces the
pattern; in `effects`, nothing is changed without it. `?` prevents a change, `&` extends it to everything below a
directory, `^` removes the operands. A rule covers an option with `;` only if it spells it out. `-#` is a number such as
`-5`, `+` any word that begins with it. `~`: options are never joined, and `-x=y` is `-x y`.

A key with a text is a group of names, one with a list a table of pairs; several files may add to the same.

Harmless options never follow links out of the workspace (`grep -R`, `ls -L`, `du -L`), name files with lists of files
(`--files0-from`), start a program (`rg --pre`, `diff -l`) or write (`file -C`).
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, cast, get_args

from tui_agent.permissions.shell.syntax import names

Operands = Literal["NONE", "ANY", "TEXT", "PATHS", "LIST", "TREES", "ONE", "TWO", "PATTERN", "SEARCH"]
"""Meaning of the operands of a read-only command."""
Role = Literal["NONE", "ALL", "FIRST", "SECOND", "LAST", "MOVE", "REST", "TREES", "BELOW"]
"""Operands that a command changes, or that are programs."""
RunKind = Literal["transparent", "opaque", "runner", "joined", "remote"]
"""Way in which a command runs another one."""
ValueKind = Literal[
    "",
    "optional",
    "text",
    "ending",
    "pair",
    "place",
    "read",
    "list",
    "script",
    "program",
    "code",
    "directory",
    "mount",
    "write",
    "into",
]
"""Value of an option; if a word may abbreviate several options, the last in this order counts."""

SHELLS = names("bash sh dash zsh ksh mksh ash rbash fish tcsh csh")
"""Interpreters of shell text, with a script after `-c`."""
INTERPRETERS = names(
    "python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua luajit Rscript julia tclsh awk gawk mawk "
    "nawk ts-node tsx osascript ghci scala groovy jshell irb pwsh powershell elixir erl guile racket sbcl"
)
"""Interpreters of other languages, whose effect their arguments do not show."""

_KINDS: dict[str, ValueKind] = {
    ":": "text", "=": "optional", "<": "read", "%": "list", ">": "write", "|": "mount", "*": "into", "@": "directory",
    "$": "code", "=$": "program", "<$": "script", "/": "place", "::": "pair", ".": "ending",
}  # fmt: skip
"""Kinds of values by the mark for them."""
_EFFECTS = {"!": "needed", "?": "preventing", "&": "whole", "^": "removing", ";": "spelled"}
"""Fields by the mark of their options."""
_CHOICES = {"reads": get_args(Operands), "writes": get_args(Role), "runs": get_args(RunKind), "scripts": get_args(Role)}
_OWN = names("also reads writes runs own_words assigns is_open")
"""Keys that a row does not take from another."""
_FACTS = files("tui_agent.permissions.commands").joinpath("facts")
_CONSEQUENCES = "consequences.toml"
"""File without rows of commands."""
_MAX_GLOBAL_OPTIONS = 8
"""Maximum number of words before a subcommand."""
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_MODULE = re.compile(r"-[bBdEhiIOPqRsSuvx]*m(.*)", re.DOTALL)
"""An option of Python with the name of a module, or before it."""
_OPTION = re.compile(r"(\+|..+?)([=<]\$|::|[:=<%>|*@$/.]|)([!?&^;]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ReadingFacts:
    """Keys of a row about its read-only uses."""

    only: re.Pattern[str] | None = None
    words: re.Pattern[str] | None = None
    needs: tuple[frozenset[str], ...] = ()
    selects: frozenset[str] = frozenset()
    descends: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    gives_pattern: frozenset[str] = frozenset()
    """Options that replace the pattern."""

    def allows(self, words: Sequence[str], operands: Sequence[str], flags: Set[str]) -> bool:
        """True if a use with these words, operands and harmless options only reads."""
        for pattern, given in ((self.only, operands), (self.words, words)):
            if pattern and not pattern.fullmatch("".join(f"{word}\0" for word in given)):
                return False
        is_selected = not operands or not self.selects or not self.selects.isdisjoint(flags)
        return is_selected and not any(needed.isdisjoint(flags) for needed in self.needs)


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """Keys of a row about its changes, and options by the mark for their effect."""

    needed: frozenset[str] = frozenset()
    """Options one of which is needed for a change; empty if none is."""
    preventing: frozenset[str] = frozenset()
    """Options that prevent a change."""
    whole: frozenset[str] = frozenset()
    """Options that extend the change to everything below a directory."""
    removing: frozenset[str] = frozenset()
    """Options that remove the operands."""
    spelled: frozenset[str] = frozenset()
    """Options that a rule covers only if it spells them out; "" for the command itself."""
    files: tuple[str, ...] = ()
    everywhere: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    suffix: str = ""
    unpacks: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CommandFacts:
    """A parsed row: its keys, with sets for lists of names."""

    name: str
    reads: Operands | None = None
    """None if no use is known to be read-only."""
    writes: Role = "NONE"
    runs: RunKind | None = None
    own_words: int = 0
    assigns: bool = False
    is_open: bool = False
    options: Mapping[str, ValueKind] = field(default_factory=dict[str, ValueKind])
    """Kind of value by option, with its dashes."""
    harmless: frozenset[str] = frozenset()
    """Options that neither change nor run anything."""
    works_in: bool = False
    has_effects: bool = False
    """True if the row tells what the command changes."""
    scripts: Role = "NONE"
    mentions: bool = False
    plain: Mapping[str, re.Pattern[str]] = field(default_factory=dict[str, re.Pattern[str]])
    reading: ReadingFacts = ReadingFacts()
    changes: ChangeFacts = ChangeFacts()
    joins: bool = True
    """True if several flags may follow one dash."""
    longer: tuple[str, ...] = ()
    """Options of one dash and several letters, without their dash, the longest first."""

    def is_plain(self, option: str, program: str) -> bool:
        """True if a program in an option, or in an operand (""), does no more than the command itself."""
        return option in self.plain and self.plain[option].fullmatch(program) is not None


def facts_of(*words: str) -> CommandFacts | None:
    """Return the row of a command by its name, or of a subcommand by its words, or None."""
    name = " ".join(words)
    # A program whose name contains a blank is not a subcommand.
    return _catalogue().rows.get(name) if name.count(" ") == len(words) - 1 else None


@lru_cache(maxsize=256)
def canonical_name(word: str) -> str:
    """Return a command's name without its directory, and its usual name if it has several."""
    name = word.rsplit("/", 1)[-1]
    return _catalogue().aliases.get(name, name)


def is_trusted_name(name: str) -> bool:
    """True if a command's name means the system's program or a shell built-in, not some file."""
    return "/" not in name or name.rpartition("/")[0] in ("/bin", "/usr/bin")


def read_only_command(*words: str) -> CommandFacts | None:
    """Return the row of a command that has read-only uses, or None."""
    found = facts_of(*words)
    return found if found is not None and found.reads is not None else None


def matching_row(words: Sequence[str]) -> tuple[CommandFacts, Sequence[str]] | None:
    """Return the row with the most words that a command (with its name) begins with, and its other words."""
    return _matching_row(tuple(words))


def without_interpreter(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a module that Python runs as a program: `python3 -Im pytest -x` is `pytest -x`."""
    at = 1 if words and _PYTHON.fullmatch(canonical_name(words[0])) else len(words)
    while at < len(words) and words[at].startswith("-"):
        if module := _MODULE.fullmatch(words[at]):
            return [*filter(None, module.groups()), *words[at + 1 :]] or words
        at += 2 if words[at] in ("-X", "-W") else 1
    return words


@lru_cache(maxsize=256)
def _matching_row(words: tuple[str, ...]) -> tuple[CommandFacts, Sequence[str]] | None:
    words = tuple(without_interpreter(words))
    name = canonical_name(words[0])
    is_fixed = name in words_by_program("own_values")
    at = subcommand_at(words) if is_fixed else 1
    while at < min(len(words), _MAX_GLOBAL_OPTIONS):
        for end in (at + 2, at + 1):
            if end <= len(words) and (row := facts_of(name, *words[at:end])) is not None:
                return row, words[end:] if is_fixed else [*words[end:], *words[1:at]]
        if is_fixed or not any(word.startswith("-") for word in words[max(at - 1, 1) : at + 1]):
            break
        at += 1
    row = facts_of(name)
    return (row, words[1:]) if row is not None else None


def subcommand_at(words: Sequence[str]) -> int:
    """Return the index of the first word behind a program's own options; 1 if the facts do not tell their values."""
    values = words_by_program("own_values").get(words[0].rpartition("/")[2]) if words else None
    at = 1
    while values is not None and at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in values else 1
    return at


def writer(*words: str) -> CommandFacts | None:
    """Return the row of a command whose changes are known, or None."""
    found = facts_of(*words)
    return found if found is not None and found.has_effects and not found.mentions else None


def wrapper(*words: str) -> CommandFacts | None:
    """Return the row of a command that runs another one, or None."""
    found = facts_of(*words)
    return found if found is not None and found.runs is not None else None


def all_facts() -> Mapping[str, CommandFacts]:
    """Return every row by name, other names included."""
    return _catalogue().rows


@cache
def group(name: str) -> frozenset[str]:
    """Return a group of names, which several files may list."""
    return _catalogue().groups[name]


@cache
def words_by_program(name: str) -> Mapping[str, frozenset[str]]:
    """Return a table of pairs of programs and words."""
    found: dict[str, frozenset[str]] = {}
    for programs, words in pairs(name):
        found |= {program: found.get(program, frozenset()) | names(words) for program in programs.split()}
    return found


def pairs(name: str) -> Sequence[tuple[str, ...]]:
    """Return a table of pairs of texts."""
    return _catalogue().pairs[name]


def extended(base: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with everything that it takes from another, named by `like`."""
    taken = {key: value for key, value in base.items() if key not in _OWN}
    joined = {key: f"{taken[key]} {row.get(key, '')}" for key in ("options", "effects") if key in taken}
    return {**taken, **row, **joined, "plain": {**taken.get("plain", {}), **row.get("plain", {})}}


def parse_row(name: str, row: Mapping[str, Any]) -> CommandFacts:
    """Parse a row.

    Raises:
        ValueError: an unknown key, or an unknown value of one.
    """
    found = {key: value for key, value in row.items() if key not in ("also", "like", "effects")}
    parts = {part: {known.name for known in fields(part)} for part in (CommandFacts, ReadingFacts, ChangeFacts)}
    unknown = found.keys() - set[str]().union(*parts.values())
    unknown |= {found[key] for key, allowed in _CHOICES.items() if key in found and found[key] not in allowed}
    if unknown:
        raise ValueError(f"[{name}] has unknown keys or values: {', '.join(sorted(unknown))}")
    harmless, effects = row.get("options", "").split(), row.get("effects", "").split()
    joins, gives_pattern = "~" not in harmless, set[str]()
    marked = {mark: {""} if mark == ";" and found.pop("spelled", False) else set[str]() for mark in _EFFECTS}
    safe = dict(_options(harmless, marked | {"!": gives_pattern}, joins=joins))
    options: dict[str, ValueKind] = {**safe, **dict(_options(effects, marked, joins=False))}
    longer = {option[1:] for option in options if len(option) > 2 and option[1] != "-"}
    found |= {key: re.compile(found[key], re.DOTALL) for key in ("only", "words") if key in found}
    found |= {key: names(found.get(key, "")) for key in ("everywhere", "beside", "selects", "descends", "lists")}
    found |= {key: frozenset(marked[mark]) for mark, key in _EFFECTS.items()}
    found |= {
        "options": options, "harmless": frozenset(safe), "gives_pattern": frozenset(gives_pattern), "joins": joins,
        "longer": tuple(sorted(longer, key=len, reverse=True)), "files": tuple(row.get("files", "").split()),
        "needs": tuple(map(names, row.get("needs", ()))),
        "plain": {option: re.compile(text, re.DOTALL) for option, text in row.get("plain", {}).items()},
        "has_effects": not row.keys().isdisjoint(("writes", "effects", "scripts", "suffix")),
    }  # fmt: skip
    own, reading, changes = ({key: found[key] for key in found.keys() & known} for known in parts.values())
    return CommandFacts(name, **own, reading=ReadingFacts(**reading), changes=ChangeFacts(**changes))


def _options(tokens: list[str], marked: dict[str, set[str]], *, joins: bool) -> Iterator[tuple[str, ValueKind]]:
    """Yield the options of a row with their kinds of value, and collect those with other marks."""
    for token in tokens:
        parts = _OPTION.fullmatch(token) if token != "~" else None
        if parts is None:
            continue
        bare, mark, others = parts.groups()
        is_one = bare.startswith("--") or mark or not joins
        for option in [bare] if is_one else [f"-{letter}" for letter in bare[1:]]:
            for other in others:
                marked[other].add(option)
            yield option, _KINDS.get(mark, "")


@cache
def consequence_rows() -> dict[str, Any]:
    """Return the rows of `facts/consequences.toml`."""
    return tomllib.loads(_FACTS.joinpath(_CONSEQUENCES).read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class _Catalogue:
    rows: dict[str, CommandFacts]
    aliases: dict[str, str]
    """Usual names by other names."""
    groups: dict[str, frozenset[str]]
    pairs: dict[str, list[tuple[str, ...]]]


@cache
def _catalogue() -> _Catalogue:
    """Read every row. Blocks for about ten milliseconds, once."""
    written: dict[str, dict[str, Any]] = {}
    groups: dict[str, frozenset[str]] = {}
    pairs: dict[str, list[tuple[str, ...]]] = {}
    for file in _FACTS.iterdir():
        found = tomllib.loads(file.read_text("utf-8")) if file.name.endswith(".toml") else {}
        for name, entry in found.items() if file.name != _CONSEQUENCES else ():
            match entry:
                case str():
                    groups[name] = groups.get(name, frozenset()) | names(entry)
                case list():
                    pairs.setdefault(name, []).extend(map(tuple, cast(list[list[str]], entry)))
                case _:
                    written[name] = entry
    rows: dict[str, CommandFacts] = {}
    aliases: dict[str, str] = {}

    def whole(row: dict[str, Any]) -> dict[str, Any]:
        return extended(whole(written[row["like"]]), row) if "like" in row else row

    for name, row in written.items():
        rows[name] = parse_row(name, whole(row))
        for other in row.get("also", ()):
            rows[other], aliases[other] = rows[name], name
    return _Catalogue(rows, aliases, groups, pairs)
