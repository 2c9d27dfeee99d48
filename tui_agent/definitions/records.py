"""Records of what Markdown files define: skills, commands and sub-agents, and the problems of such files.

All texts are in memory and have their control characters as escapes, so that trust in them cannot become outdated.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

Kind: TypeAlias = Literal["skill", "command", "agent"]
Origin: TypeAlias = Literal["user", "project"]

SHORT_DESCRIPTION = 200
"""Characters of a description in a list."""


@dataclass(frozen=True, slots=True)
class Source:
    """The file that a definition was read from."""

    path: Path
    origin: Origin
    shown: str
    """The path for messages: relative to the repository, or with `~`."""
    digest: str
    """SHA-256 of the content."""
    notes: tuple[str, ...] = ()
    """Messages about parts of the file that have no effect here, each with the path."""


@dataclass(frozen=True, slots=True)
class _Definition:
    """Fields of all kinds."""

    name: str
    """For a command without the slash; folders precede it, such as `frontend:test`."""
    description: str
    body: str
    """Instructions, the template of a prompt, or the system prompt of a sub-agent."""
    source: Source
    hint: str = ""
    """Its arguments for the menu, such as `[issue]`."""
    tools: tuple[str, ...] | None = None
    """Patterns for the names of the only tools of its run; None: no limit, for a sub-agent those of its parent."""
    model: str = ""
    """Model of its run; empty: the model in use, for a sub-agent that of its parent."""


@dataclass(frozen=True, slots=True)
class Skill(_Definition):
    """A skill (agentskills.io): instructions that the model loads when needed, or with which a user starts a run."""

    kind: ClassVar[Kind] = "skill"
    for_model: bool = True
    """False if only the user may load it."""
    for_user: bool = True
    """False if only the model may load it."""

    @property
    def folder(self) -> Path:
        """The skill's folder, with its other files."""
        return self.source.path.parent


@dataclass(frozen=True, slots=True)
class CommandFile(_Definition):
    """A `/` command: a template of a prompt."""

    kind: ClassVar[Kind] = "command"


@dataclass(frozen=True, slots=True)
class AgentFile(_Definition):
    """A kind of sub-agent."""

    kind: ClassVar[Kind] = "agent"
    max_steps: int | None = None
    """Most steps of a run; None: as many as any sub-agent."""


Definition: TypeAlias = Skill | CommandFile | AgentFile


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a file, or a definition in it, is not used."""

    kind: Kind
    file: str
    """The path for messages."""
    reason: str
    line: int = 0
    """Line of the file; 0: none in particular."""
    name: str = ""
    """Name of the definition, if another one of that name is used instead."""
    is_link: bool = False
    """True if the file is a link to a place where it must not lead."""

    @property
    def place(self) -> str:
        """The file with the line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def text(self) -> str:
        """The problem with its file and line."""
        return f"{self.place}: not used: {self.reason}"


Found: TypeAlias = Definition | Problem


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions in force, with at most one of each kind and name, and the problems of all others."""

    skills: tuple[Skill, ...] = ()
    commands: tuple[CommandFile, ...] = ()
    agents: tuple[AgentFile, ...] = ()
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, found: Iterable[Found], reserved: Iterable[str] = ()) -> "Definitions":
        """Choose the definitions in force: the first of a kind and name, but no command with a reserved name."""
        chosen: dict[tuple[Kind, str], Definition] = {}
        problems: list[Problem] = []
        built_in = frozenset(reserved)
        sorted_kinds = sorted(found, key=lambda one: isinstance(one, CommandFile))
        # Skills come first: in other agents, too, one hides a command file of its name.
        typed = {one.name: one for one in sorted_kinds if isinstance(one, Skill) and one.for_user}
        for one in sorted_kinds:
            if isinstance(one, Problem):
                problems.append(one)
                continue
            kind, reason = one.kind, ""
            if kind == "command" and one.name in built_in:
                reason = f"/{one.name} is a built-in command"
            elif kind == "command" and one.name in typed:
                reason = f"the skill {typed[one.name].source.shown} has the name {one.name}, too"
            elif (other := chosen.setdefault((kind, one.name), one)) is not one:
                reason = f"{other.source.shown} has a {kind} of the name {one.name}, too, and comes first"
            problems += [Problem(kind, one.source.shown, reason, name=one.name)] if reason else []
        used = [_without_name(one, built_in) for one in chosen.values()]
        return cls(
            tuple(one for one in used if isinstance(one, Skill)),
            tuple(one for one in used if isinstance(one, CommandFile)),
            tuple(one for one in used if isinstance(one, AgentFile)),
            tuple(problems),
        )


def _without_name(one: Definition, built_in: frozenset[str]) -> Definition:
    """Return a definition; a skill with the name of a built-in command notes that the name does not load it."""
    if not isinstance(one, Skill) or not one.for_user or one.name not in built_in:
        return one
    loads = "only the model loads it" if one.for_model else "nothing loads it"
    note = f"{one.source.shown}: /{one.name} is a built-in command, so {loads}"
    return replace(one, source=replace(one.source, notes=(*one.source.notes, note)))


def is_allowed(tool: str, patterns: Sequence[str] | None) -> bool:
    """True if a tool may be used: None allows all, an empty list nothing.

    `*` in a pattern is any text, and a first `!` forbids; patterns that only forbid allow all others.
    """
    if not patterns:
        return patterns is None
    allowing = [pattern for pattern in patterns if not pattern.startswith("!")]
    is_forbidden = any(fnmatchcase(tool, pattern[1:]) for pattern in patterns if pattern.startswith("!"))
    return not is_forbidden and (not allowing or any(fnmatchcase(tool, pattern) for pattern in allowing))


def shortened(text: str, limit: int = SHORT_DESCRIPTION) -> str:
    """Return a text on one line of at most `limit` characters, with `…` at the end if it is cut."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
