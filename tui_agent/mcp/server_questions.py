"""Questions that a server asks the user through tui-agent."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui_agent.protocol.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Elicitation:
    """A question of a server to the user: a form, or an address to visit."""

    server: str
    message: str
    schema: JsonObject | None
    """Schema of the form; None for an address."""
    url: str = ""
    """The address; empty for a form."""


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """The user's answer."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


Elicit: TypeAlias = Callable[[Elicitation], Awaitable[ElicitationAnswer]]


@dataclass(frozen=True, slots=True)
class ServerQuestions:
    """The functions that answer questions; None: such questions are refused."""

    elicit: Elicit | None = None


NO_QUESTIONS = ServerQuestions()
"""Every question is refused."""
