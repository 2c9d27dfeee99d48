"""Questions about an agent's runs that hooks answer: its prompts, the end of a run, a compaction."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from tui_agent.execution.contained_calls import Crash, asked
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import AgentEvent, Warned
from tui_agent.protocol.messages import UserMessage

from .stop_tokens import unless_cancelled

MAX_CONTINUATIONS = 8
"""Most times that hooks continue one run."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PromptCheck:
    """The answer about a message of the user."""

    refusal: str = ""
    """Reason why it is not sent; empty if it is."""
    by: str = ""
    """Name of the hook that refuses it."""
    notices: tuple[str, ...] = ()
    """Texts for the model that follow the message."""


class RunHooks(Protocol):
    """Hooks of one agent. One that raises has no answer, which is published."""

    async def check_prompt(self, message: UserMessage, /) -> PromptCheck:
        """Check a message of the user before it becomes part of the conversation."""
        ...

    async def before_end(self, answer: str, is_continued: bool, /) -> str | None:
        """Return why the run must not end yet, for the model; None: it may.

        Args:
            answer: the final answer.
            is_continued: True if a hook has already continued this run.
        """
        ...

    async def before_compaction(self, trigger: Literal["automatic", "manual"], focus: str, /) -> None:
        """Note that the conversation is about to be compacted."""
        ...

    async def after_compaction(self) -> str | None:
        """Return a text for the model that follows a compaction."""
        ...

    def for_sub_agent(self, agent_id: str, /) -> "RunHooks | None":
        """Return the hooks of a sub-agent."""
        ...


async def ask_run_hooks(
    publish: Callable[[AgentEvent], object],
    question: Callable[..., Awaitable[T]],
    *arguments: object,
    token: CancellationToken | None = None,
) -> T | None:
    """Return the answer of an agent's hooks; if they failed, publish a warning and return None.

    Raises:
        OperationCancelledError: `token` was set first.
    """
    asking = asked(question, *arguments, timeout=None)
    answer = await (asking if token is None else unless_cancelled(token, asking))
    if isinstance(answer, Crash):
        publish(Warned(code="hook_failed", text=f"A hook failed: {answer.text}"))
        return None
    return answer  # pyright: ignore[reportReturnType] — `asked` does not know the type
