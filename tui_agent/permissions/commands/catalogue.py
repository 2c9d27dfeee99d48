"""Catalogue of commands: what their options and operands mean, one row a command in `facts/*.toml`.

A row lists what is known, never what is not: an option without an entry makes a command unknown, and the policy asks.
To add a read-only command, add a row with `reads` and `options`, and a line in the tests. Keys of a row:

    reads      what a read-only use does with its operands (below); without it no use is read-only
    writes     which operands are changed: ALL, FIRST, SECOND, LAST (if it is a directory, the files in it with the
               names of the other operands), MOVE (the same, and the others are changed, too), REST (all but the
               first) or TREES (files, and files below directories; without operands: the working directory)
    files      patterns for the names of the files that TREES changes below a directory; without it all
    suffix     it makes or removes files of the operands' names with this ending
    works_in   a rule for the command is not meant for operands outside the workspace
    spelled    a rule covers the command only if it spells out the last word of its name
    runs       its operands are another command: `transparent` (that command alone decides), `opaque`, `runner` (a
               rule for the program is meant to allow what it runs), `joined` (they are one text for a shell) or
               `remote` (the same on another machine)
    own_words  the number of operands before that command
    assigns    `NAME=value` before that command sets a variable
    open       that command gets more words at run time
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
value: `:` text, `=` text that follows without a blank, `<` a path that is read, `%` a list of paths that are read, `>`
a path that is changed, `|` a path of this machine that a container may change, `*` the target directory, `@` the
working directory, `$` a program, `<$` a file with one, `=$` a program that follows without a blank or that the option
itself stands for, `/` a place or file of settings, for which a rule is not meant if it is outside the workspace. `!`
after an option in `options` replaces the pattern; in `effects`, nothing is changed without it. `?` prevents a change,
`&` extends it to everything below a directory, `^` removes the operands. A rule covers an option with `;` only if it
spells it out. `-#` is a number such as `-5`, `+` any word that begins with it. `~`: options are never joined, and
`-x=y` is `-x y`.

A key with a text is a group of names, one with a list a table of pairs; several files may add to the same.

Harmless options never follow links out of the workspace (`grep -R`, `ls -L`, `du -L`), name files with lists of files
(`--files0-from`), start a program (`rg --pre`, `diff -l`) or write (`file -C`).
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, cast, get_args

from tui_agent.permissions.shell.syntax import names

Operands = Literal["NONE", "ANY", "TEXT", "PATHS", "LIST", "TREES", "ONE", "TWO", "PATTERN", "SEARCH"]
"""Meaning of the operands of a read-only command."""
Role = Literal["NONE", "ALL", "FIRST", "SECOND", "LAST", "MOVE", "REST", "TREES"]
"""Operands that a command changes."""
RunKind = Literal["transparent", "opaque", "runner", "joined", "remote"]
"""Way in which a command runs another one."""
ScriptOperands = Literal["NONE", "ALL", "REST"]
"""Operands that are programs."""
ValueKind = Literal[
    "", "optional", "text", "place", "read", "list", "script", "program", "code", "directory", "mount", "write", "into"
]
"""Value of an option; if a word may abbreviate several options, the last in this order counts."""

SHELLS = names("bash sh dash zsh ksh mksh ash rbash fish tcsh csh")
"""Interpreters of shell text, with a script after `-c`."""
INTERPRETERS = names(
    "python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua luajit Rscript julia tclsh awk gawk mawk "
    "nawk ts-node tsx osascript ghci scala groovy jshell irb pwsh powershell elixir erl guile racket sbcl"
)
"""Interpreters of other languages, whose effect their arguments do not show."""

_MARKS: dict[str, ValueKind] = {
    ":": "text", "=": "optional", "<": "read", "%": "list", ">": "write", "|": "mount", "*": "into", "@": "directory",
    "$": "code", "=$": "program", "<$": "script", "/": "place",
}  # fmt: skip
_FACTS = files("tui_agent.permissions.commands").joinpath("facts")
_CONSEQUENCES = "consequences.toml"
"""File without rows of commands."""
_MAX_GLOBAL_OPTIONS = 8
"""Maximum number of words before a subcommand."""
_OPTION = re.compile(r"(\+|..+?)([=<]\$|[:=<%>|*@$/]|)([!?&^;]*)", re.DOTALL)
_KEYS = names(
    "also like reads writes files suffix works_in spelled runs own_words assigns open scripts mentions options effects "
    "plain only words needs selects"
)


@dataclass(frozen=True, slots=True)
class ReadingConditions:
    """Conditions of a read-only use that its options alone do not tell."""

    only: re.Pattern[str] | None = None
    words: re.Pattern[str] | None = None
    needs: tuple[frozenset[str], ...] = ()
    selects: frozenset[str] = frozenset()

    def hold(self, words: Sequence[str], operands: Sequence[str], flags: Set[str]) -> bool:
        """True if a use with these words, operands and options only reads."""
        if self.only and not self.only.fullmatch("".join(f"{operand}\0" for operand in operands)):
            return False
        if self.words and not self.words.fullmatch("".join(f"{word}\0" for word in words)):
            return False
        if operands and self.selects and self.selects.isdisjoint(flags):
            return False
        return not any(needed.isdisjoint(flags) for needed in self.needs)


@dataclass(frozen=True, slots=True, eq=False)
class CommandFacts:
    """A parsed row."""

    name: str
    reads: Operands | None = None
    """None if no use is known to be read-only."""
    writes: Role = "NONE"
    runs: RunKind | None = None
    own_words: int = 0
    """Number of operands before the command that it runs."""
    assigns: bool = False
    is_open: bool = False
    """True if the command that it runs gets more words at run time."""
    options: Mapping[str, ValueKind] = field(default_factory=dict[str, ValueKind])
    """Kind of value by option, with its dashes."""
    harmless: frozenset[str] = frozenset()
    """Options that neither change nor run anything."""
    gives_pattern: frozenset[str] = frozenset()
    """Options that replace the pattern."""
    marks: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Options by the mark for their effect."""
    files: tuple[str, ...] = ()
    """Patterns for the names of files that it changes below a directory; empty for all."""
    suffix: str = ""
    """Ending of files that it makes or removes beside its operands."""
    works_in: bool = False
    """True if its operands are places that it works in."""
    has_effects: bool = False
    """True if the row tells what the command changes."""
    scripts: ScriptOperands = "NONE"
    mentions: bool = False
    """True if its other words may be paths that it changes."""
    plain: Mapping[str, re.Pattern[str]] = field(default_factory=dict[str, re.Pattern[str]])
    """Patterns of the programs that do no more than the command itself, by option; "" is for operands."""
    conditions: ReadingConditions = ReadingConditions()
    longer: tuple[str, ...] | None = ()
    """Options of one dash and several letters, which may be joined with others; None if no option ever is."""

    @property
    def needed(self) -> frozenset[str]:
        """Options one of which is needed for a change; empty if none is."""
        return self.marks.get("!", frozenset())

    @property
    def preventing(self) -> frozenset[str]:
        """Options that prevent a change."""
        return self.marks.get("?", frozenset())

    @property
    def whole(self) -> frozenset[str]:
        """Options that extend the change to everything below a directory."""
        return self.marks.get("&", frozenset())

    @property
    def removing(self) -> frozenset[str]:
        """Options that remove the operands."""
        return self.marks.get("^", frozenset())

    @property
    def spelled(self) -> frozenset[str]:
        """Options that a rule covers only if it spells them out; "" for the command itself."""
        return self.marks.get(";", frozenset())

    @property
    def unpacks(self) -> bool:
        """True if it removes the ending of its operands' names."""
        return self.name.startswith(("un", "gun", "bun", "lun"))

    @property
    def takes_number(self) -> bool:
        """True if a number such as `-5` is an option."""
        return "-#" in self.options

    @property
    def joins(self) -> bool:
        """True if several flags may follow one dash."""
        return self.longer is not None

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


@lru_cache(maxsize=256)
def _matching_row(words: tuple[str, ...]) -> tuple[CommandFacts, Sequence[str]] | None:
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


def parse_row(name: str, row: Mapping[str, Any], base: CommandFacts | None = None) -> CommandFacts:
    """Parse a row; `base` is the parsed row named by `like`.

    Raises:
        ValueError: an unknown key, or an unknown value of one.
    """
    if unknown := row.keys() - _KEYS:
        raise ValueError(f"[{name}] has unknown keys: {', '.join(sorted(unknown))}")
    own = CommandFacts(name)
    base = base or own
    harmless, effects = row.get("options", "").split(), row.get("effects", "").split()
    joins, marked = base.joins and "~" not in harmless, dict[str, set[str]]()
    added = dict(_options(harmless, marked, joins=joins))
    gives_pattern = frozenset(marked.pop("!", ()))
    options: dict[str, ValueKind] = {**base.options, **added, **dict(_options(effects, marked, joins=False))}
    if row.get("spelled"):
        marked.setdefault(";", set()).add("")
    longer = {option[1:] for option in options if len(option) > 2 and option[1] != "-"}
    return CommandFacts(
        name,
        _choice(name, row.get("reads"), get_args(Operands)),
        _choice(name, row.get("writes"), get_args(Role)) or "NONE",
        _choice(name, row.get("runs"), get_args(RunKind)),
        row.get("own_words", 0),
        row.get("assigns", False),
        row.get("open", False),
        options,
        base.harmless | added.keys(),
        base.gives_pattern | gives_pattern,
        {mark: base.marks.get(mark, frozenset()).union(marked.get(mark, ())) for mark in "!?&^;"},
        tuple(row.get("files", "").split()) or base.files,
        row.get("suffix", base.suffix),
        row.get("works_in", base.works_in),
        base.has_effects or not row.keys().isdisjoint(("writes", "effects", "scripts", "suffix")),
        _choice(name, row.get("scripts"), get_args(ScriptOperands)) or base.scripts,
        row.get("mentions", base.mentions),
        {**base.plain, **{option: re.compile(text, re.DOTALL) for option, text in row.get("plain", {}).items()}},
        _conditions(row) or base.conditions,
        tuple(sorted(longer, key=len, reverse=True)) if joins else None,
    )


def _conditions(row: Mapping[str, Any]) -> ReadingConditions | None:
    only, words = (re.compile(row[key], re.DOTALL) if key in row else None for key in ("only", "words"))
    needs = tuple(names(text) for text in row.get("needs", ()))
    found = ReadingConditions(only, words, needs, names(row.get("selects", "")))
    return found if found != ReadingConditions() else None


def _options(tokens: list[str], marked: dict[str, set[str]], *, joins: bool) -> Iterator[tuple[str, ValueKind]]:
    """Yield the options of a row with their kinds of value, and collect those with other marks."""
    for token in tokens:
        if token == "~":
            continue
        parts = _OPTION.fullmatch(token)
        bare, mark, others = parts.groups() if parts else (token, "", "")
        kind = _MARKS.get(mark, "")
        is_one = bare.startswith("--") or kind or not joins
        for option in [bare] if is_one else [f"-{letter}" for letter in bare[1:]]:
            for other in others:
                marked.setdefault(other, set()).add(option)
            yield option, kind


def _choice(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if value is not None and value not in allowed:
        raise ValueError(f"[{name}] has an unknown value: {value}")
    return value


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

    def parsed(name: str) -> CommandFacts:
        if name not in rows:
            like = written[name].get("like")
            rows[name] = parse_row(name, written[name], parsed(like) if like else None)
        return rows[name]

    for name, row in written.items():
        facts = parsed(name)
        for other in row.get("also", ()):
            rows[other] = facts
            aliases[other] = name
    return _Catalogue(rows, aliases, groups, pairs)
