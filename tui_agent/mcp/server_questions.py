"""Questions of a server to the user and to the model, and the functions that answer them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui_agent.protocol.messages import UserBlock
from tui_agent.protocol.server_question import FieldValue, ServerQuestion


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The user's answer: accept, with the values of a form; decline; or cancel, without a choice."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, FieldValue] | None = None


@dataclass(frozen=True, slots=True)
class SampledMessage:
    """One message of a request to the model."""

    role: Literal["user", "assistant"]
    blocks: tuple[UserBlock, ...]


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A request of a server to the model."""

    server: str
    messages: tuple[SampledMessage, ...]
    system: str
    max_tokens: int
    temperature: float | None


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """The model's answer."""

    text: str
    model: str
    stop_reason: str


Ask: TypeAlias = Callable[[ServerQuestion], Awaitable[QuestionAnswer]]
Sample: TypeAlias = Callable[[SamplingRequest], Awaitable[SamplingAnswer]]


@dataclass(frozen=True, slots=True)
class ServerQuestions:
    """The functions that answer questions; None: such questions are refused."""

    ask: Ask | None = None
    """Asks the user."""
    sample: Sample | None = None
    """Asks the model, after the user. Raises `ToolError` if the user or the model refuses."""
    extend_call: Callable[[str, float], object] = lambda call_id, seconds: None
    """Gives a call more seconds, while it waits for the user."""


NO_QUESTIONS = ServerQuestions()
"""Every question is refused."""
