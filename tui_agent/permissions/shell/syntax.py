"""Syntax of shell commands, as far as the text tells: plain data, independent of files and rules.

Words are stored after quote removal. Parts that only the running shell knows are marked by code points that no valid
command can contain (lone surrogates), so that every comparison with a literal text fails.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

UNKNOWN = "\ud800"
"""Mark in a word's value for text that only the running shell knows, which may also be several words or none."""
VARIABLE = "\ud801"
"""Mark for a plain `$name` or a `$(…)`; the names are in `Word.variables`, in order."""
SUM = "#sum"
"""Name of the result of `$((…))` among a word's variables: a number."""
PIPE = "\ud802"
"""Mark for the name of the pipe that a `<(…)` becomes."""

MARKS = frozenset((UNKNOWN, VARIABLE, PIPE))
"""Characters that no valid command can contain; a text without them is certain."""


class UnreadableError(Exception):
    """The text cannot be read with certainty; the message gives the user the reason."""


def names(text: str) -> frozenset[str]:
    """Return the blank-separated names of a table."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Variable:
    """A plain `$name` inside a word."""

    name: str
    """Also `1` for a function's argument, `@` for all, `x[@]` for all elements of an array."""
    quoted: bool
    """True inside double quotes, where the value is neither split nor expanded further. Lists are always split."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    value: str
    """The word after quote removal, before brace, tilde, variable and pathname expansion."""
    live: frozenset[int] = frozenset()
    """Offsets in `value` of unquoted characters that an expansion may interpret.

    An `UNKNOWN` among them may become a pattern.
    """
    variables: tuple[Variable, ...] = ()
    """Plain variables of the word, one for each `VARIABLE` in `value`, in order."""
    text: str = ""
    """Text as written, if the word was read from a text."""

    @property
    def is_fixed(self) -> bool:
        """True if no part depends on the running shell. It may still contain braces, globs and tildes."""
        return MARKS.isdisjoint(self.value)

    @property
    def is_literal(self) -> bool:
        """True if the word is the text that it becomes."""
        return self.is_fixed and not self.live


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=value` before a command, or alone."""

    name: str
    value: Word
    text: str
    """Text as written."""
    items: tuple[Word, ...] | None = None
    """Elements of an array, which are literal; None for another value."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection such as `>file`. Here-documents and here-strings are only input and are not listed."""

    operator: str
    target: Word
    text: str
    """Text as written."""

    @property
    def names_descriptor(self) -> bool:
        """True if it names no file, such as `2>&1` and `>&-`."""
        is_number = self.target.value.removesuffix("-").isdecimal() or self.target.value == "-"
        return self.operator in ("<&-", ">&-") or (self.operator in ("<&", ">&") and is_number)


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command with its words, without operators that join commands."""

    text: str
    """Text as written, with assignments and redirections."""
    words: tuple[Word, ...]
    """The command's name and its arguments; empty for bare assignments and redirections."""
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    heredoc: str | None = None
    """Body of a here-document or here-string that is its input; None without one."""
    nested: tuple["Statement", ...] = ()
    """Statements inside its words, assignments, redirections and here-document, which run before it."""

    @property
    def name(self) -> str:
        """The first word's value; empty without words."""
        return self.words[0].value if self.words else ""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Variables of an arithmetic expression of numbers, operators and plain names: as harmless as their values."""

    reads: frozenset[str] = frozenset()
    """Every name in the expression."""
    sets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A part that is not an ordinary command."""

    text: str
    reason: str
    """Description for the user."""
    unreadable: bool
    """True if the commands it runs are unknown, so that nothing ever allows it.

    False if it was read, but its effect depends on values that only the running shell knows.
    """
    arithmetic: Arithmetic | None = None
    """Variables of an arithmetic expression without anything else; harmless if each of them holds a number."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function; its body runs whenever its name is used."""

    name: str
    text: str
    body: "Statement"


@dataclass(frozen=True, slots=True)
class Sequence:
    """Statements one after the other."""

    parts: tuple["Statement", ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """`first && second || third`, from left to right."""

    first: "Statement"
    rest: tuple[tuple[str, "Statement"], ...]
    """Operator (`&&` or `||`) and statement, at least once."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`a | b`: each part in a shell of its own."""

    parts: tuple["Statement", ...]


@dataclass(frozen=True, slots=True)
class Subshell:
    """A statement in a shell of its own: a subshell, a substitution, a background job."""

    body: "Statement"
    name: str = ""
    """For a `$(…)`: the name of its output among the variables of the surrounding word."""


@dataclass(frozen=True, slots=True)
class Branches:
    """Statements that each may or may not run, in order: `if`, `case`, `while`, `until`."""

    parts: tuple["Statement", ...]
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class ForEach:
    """`for name in words; do body; done`."""

    variable: str
    words: tuple[Word, ...] | None
    """None for the shell's own arguments."""
    body: "Statement"
    text: str
    """Its first line, as written."""
    nested: tuple["Statement", ...] = ()


Statement: TypeAlias = (
    SimpleCommand | Unsupported | Definition | Sequence | Conditional | Pipeline | Subshell | Branches | ForEach
)


def parts_of(statement: Statement) -> tuple[Statement, ...]:
    """Return the statements directly inside a statement, in order."""
    match statement:
        case SimpleCommand():
            return statement.nested
        case Sequence() | Pipeline() | Branches():
            return statement.parts
        case Conditional():
            return (statement.first, *(part for _, part in statement.rest))
        case Subshell() | Definition():
            return (statement.body,)
        case ForEach():
            return (*statement.nested, statement.body)
        case Unsupported():
            return ()


def walk_statements(statement: Statement, *, is_same_shell: bool = False) -> Iterator[Statement]:
    """Yield a statement and everything inside it, or only the parts that run in the same shell."""
    stack: list[Statement] = [statement]
    while stack:
        current = stack.pop()
        yield current
        if not is_same_shell or current is statement or not isinstance(current, Subshell | Pipeline):
            stack.extend(parts_of(current))


def contents_of(statement: Statement) -> Statement:
    """Return the contents of a subshell if they are a single statement."""
    while isinstance(statement, Subshell) or (isinstance(statement, Sequence) and len(statement.parts) == 1):
        statement = statement.body if isinstance(statement, Subshell) else statement.parts[0]
    return statement
