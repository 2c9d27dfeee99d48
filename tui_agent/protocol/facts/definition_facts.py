"""Skills, command files and sub-agents as the screen knows them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.prompt_command import PromptCommand


@dataclass(frozen=True, slots=True)
class DefinitionFact:
    """One definition, or the reason why one is not used."""

    kind: str
    """`skill`, `command` or `sub-agent`."""
    name: str
    description: str = ""
    file: str = ""
    problem: str = ""
    """The reason with file and line; empty if it is used."""


class DefinitionService(Protocol):
    """The skills and command files of an engine, as the user types them."""

    @property
    def commands(self) -> tuple[PromptCommand, ...]:
        """The `/` commands for menus."""
        ...

    def facts(self) -> tuple[DefinitionFact, ...]:
        """Return all definitions for a page."""
        ...

    def knows(self, text: str, /) -> bool:
        """True if a text runs a command file or loads a skill."""
        ...

    def needs_own_run(self, text: str, /) -> bool:
        """True if a text cannot be a message to a run."""
        ...

    def expanded(self, text: str, /) -> str:
        """Return the message for a text that needs no run of its own; other texts as they are."""
        ...

    def run(self, text: str, message: Callable[[str], str | UserMessage], /) -> Awaitable[object]:
        """Run a text that `knows` to its end."""
        ...
