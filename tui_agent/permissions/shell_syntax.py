"""What a shell command is made of, as far as its text can tell: plain data, without files and without opinions.

Words come after quote removal. Parts of a word that only the running shell knows are marked by code points that no
valid command can hold (lone surrogates), so that every comparison with a literal text fails by itself.
"""

from dataclasses import dataclass
from typing import TypeAlias

from .shell_arithmetic import Arithmetic

UNKNOWN = "\ud800"
"""Stands in a word's value for text that only the running shell knows; it may also be several words, or none."""
VARIABLE = "\ud801"
"""Stands for a plain `$name` or a `$(…)`; the names are in `Word.variables`, in order."""
SUM = "#sum"
"""The name that the result of `$((…))` has among the variables of a word: a number."""
PIPE = "\ud802"
"""Stands for the name of a pipe that a `<(…)` becomes."""

MARKS = frozenset((UNKNOWN, VARIABLE, PIPE))
"""Letters that no valid command can hold; a text without them is certain."""


def names(text: str) -> frozenset[str]:
    """The blank-separated names of a table."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Variable:
    """A plain `$name` inside a word."""

    name: str
    quoted: bool
    """Inside double quotes, where its value is neither split nor expanded further."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    value: str
    """The word after quote removal, before brace, tilde, variable and pathname expansion."""
    live: frozenset[int] = frozenset()
    """Places in `value` whose character is not quoted and may mean something to an expansion; such an `UNKNOWN` may
    become a pattern."""
    variables: tuple[Variable, ...] = ()
    """The plain variables of the word, one for each `VARIABLE` in `value`, in order."""
    text: str = ""
    """As written, where it was read from a text."""

    @property
    def is_fixed(self) -> bool:
        """Whether no part of it depends on the running shell; braces, globs and tildes may still be in it."""
        return MARKS.isdisjoint(self.value)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=value` before a command, or alone."""

    name: str
    value: Word
    text: str
    """As written."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """`>file` and its kin; here-documents and here-strings are only input and are not listed."""

    operator: str
    target: Word
    text: str
    """As written."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command with its words, without any operator that joins commands."""

    text: str
    """As written, with its assignments and redirections."""
    words: tuple[Word, ...]
    """The command's name and its arguments; empty for bare assignments and redirections."""
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    heredoc: str | None = None
    """The body of a here-document or here-string that is its input; None without one."""
    nested: tuple["Statement", ...] = ()
    """What runs inside its words, assignments, redirections and here-document, before it."""

    @property
    def name(self) -> str:
        """The first word's value; empty without words."""
        return self.words[0].value if self.words else ""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A piece that is not an ordinary command."""

    text: str
    reason: str
    """What it is, for the person who is asked."""
    unreadable: bool
    """True: what runs is not known, so that nothing ever allows it. False: the text was read, and what it does depends
    on values that only the running shell knows."""
    arithmetic: Arithmetic | None = None
    """It is arithmetic, with nothing in it but these variables: harmless where each of them holds a number."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function; its body runs whenever its name is used, anywhere."""

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
    """Something in a shell of its own: a subshell, a substitution, a job in the background."""

    body: "Statement"
    name: str = ""
    """For a `$(…)`: the name that its output has among the variables of the word around it."""


@dataclass(frozen=True, slots=True)
class Branches:
    """Statements of which each may run or not, in order: `if`, `case`, `while`, `until`."""

    parts: tuple["Statement", ...]
    repeats: bool = False
    is_other: bool = False
    """It runs only where what stands before it in its sequence did not: `else`, `elif`."""


@dataclass(frozen=True, slots=True)
class ForEach:
    """`for name in words; do body; done`."""

    variable: str
    words: tuple[Word, ...] | None
    """None: the shell's own arguments."""
    body: "Statement"
    text: str
    """Its first line, as written."""
    nested: tuple["Statement", ...] = ()


Statement: TypeAlias = (
    SimpleCommand | Unsupported | Definition | Sequence | Conditional | Pipeline | Subshell | Branches | ForEach
)
