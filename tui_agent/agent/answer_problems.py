"""Problems with the model's answers: one sentence each for every front end, and repair of a conversation it refuses.

`providers/provider_failures.py` has the messages about requests that failed. After each change to the conversation the
request is sent again. Changes are published, so that the journal repeats them.
"""

from collections.abc import Awaitable, Callable, Sequence

from tui_agent.execution.contained_calls import Crash
from tui_agent.execution.pipeline.tool_execution import ToolExecution
from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.events import ContentDropped, Warned
from tui_agent.protocol.messages import AssistantMessage, DroppedContent, Message, StopReason, has_content, without
from tui_agent.protocol.provider import ModelProvider
from tui_agent.protocol.tool import ToolResult

from .agent_state import AgentState
from .run_report import Ending

FALLBACK_ATTEMPTS = 3
"""Attempts that an overloaded model gets if another one can answer."""

_UNAVAILABLE = 503


class ModelFallback:
    """The fallback of one run. The next run asks the chosen model again."""

    def __init__(self, agent: AgentState) -> None:
        self._agent = agent
        self._replaced: tuple[ModelProvider, ModelProvider] | None = None
        """The chosen model and the fallback in its place."""
        self._was_tried = False

    def takes_over(self, problem: ProviderError, attempt: int) -> bool:
        """Use the fallback from now on if the model stays overloaded; return False if it recovers or no other is set.

        Args:
            problem: the failure of the last attempt.
            attempt: the number of that attempt in its step, from 1.
        """
        agent, make = self._agent, self._agent.config.fallback_provider
        is_overloaded = problem.kind == "overloaded" or problem.status == _UNAVAILABLE
        if make is None or self._was_tried or not is_overloaded:
            return False
        # Most overloads pass within seconds, and another model knows nothing of the cached prompt.
        if attempt < FALLBACK_ATTEMPTS and agent.config.retry.wait_before(attempt + 1, problem) is not None:
            return False
        # Once a run: two overloaded models would otherwise replace each other for ever.
        self._was_tried = True
        try:
            other = make()
        except (ConfigurationError, ProviderError) as error:
            self._warn(f"The fallback model cannot be used: {error}")
            return False
        name = agent.provider.model.name
        # The same model under another endpoint is not a second chance.
        if other.model.name == name:
            return False
        self._replaced, agent.provider = (agent.provider, other), other
        agent.publish_context_usage()
        self._warn(
            f"{name} is overloaded: {other.model.name} answers until this run ends, and the next message asks {name} "
            "again."
        )
        return True

    def end(self) -> None:
        """Use the chosen model again, unless the user chose another one meanwhile."""
        replaced, self._replaced = self._replaced, None
        if replaced is not None and self._agent.provider is replaced[1]:
            self._agent.provider = replaced[0]
            self._agent.publish_context_usage()

    def _warn(self, text: str) -> None:
        self._agent.publisher.publish(Warned(code="model_fallback", text=text))


LENGTH_HINT = " If the conversation is too long for this server, /compact may help."
"""Added to a refusal without a known cause if the conversation is large."""

UNCLAIMED_RESULT = 2_000
"""Most characters of the result in the notice about a call that no response contains."""

_LARGE = 0.5
"""Share of the window from which the size of a request may be the reason for a refusal."""

_REFUSES_THINKING = 2
"""Refusals of earlier reasoning after which requests are sent without any."""

_MEDIA_DROPPED = (
    "The model's server refused a picture or PDF file. It left the conversation; the model reads a line of text in its "
    "place, and the session continues."
)
_THINKING_DROPPED = (
    "The model's server refused the reasoning in earlier answers. It left the conversation; their text and calls stay, "
    "and the session continues."
)


class EmptyAnswerError(ProviderError):
    """The answer has no text and no call, at most reasoning."""

    def __init__(self, stop_reason: StopReason | None = None, detail: str = "") -> None:
        """
        Args:
            stop_reason: why the model stopped.
            detail: the provider's explanation of it; empty if there is none.
        """
        why = f": {' '.join(detail.split()).rstrip('.')}" if detail.strip() else ""
        once, twice = f"The model gave an empty answer{why}", f"The model gave an empty answer twice{why}"
        advice = "send another message"
        if stop_reason == "max_tokens":
            once = twice = "The model reached its output limit before it said anything"
            advice = "raise `max_tokens`, or let it think less with /effort"
        super().__init__(f"{twice}. The conversation is kept; {advice}.", kind="bad_response", summary=once)


def missing_stop_reason() -> ProviderError:
    """Return the error of an answer that ended without a stop reason."""
    summary = "The model's answer broke off without a reason"
    return ProviderError(f"{summary}. The conversation is kept; try again.", kind="stream_cut", summary=summary)


def full_window() -> ProviderError:
    """Return the error of an answer that the end of the model's context window cut off."""
    summary = "The conversation is longer than the model's context window"
    advice = "remove its largest messages or start a new one"
    return ProviderError(
        f"{summary}. The conversation is kept; {advice}.", kind="context_exceeded", status=200, summary=summary
    )


def ending_of(answer: AssistantMessage, detail: str) -> Ending | None:
    """Return why a run must end after this answer; None if it may continue.

    Args:
        answer: the complete answer.
        detail: the provider's explanation of the stop reason; empty if there is none.
    """
    match answer.stop_reason:
        # Repeating a request that the model declined gives the same answer and costs the same.
        case "refusal":
            why = f": {' '.join(detail.split()).rstrip('.')}" if detail.strip() else ""
            error = f"The model declined to answer{why}. The conversation is kept; rephrase your request."
            return Ending("error", error=error)
        case _:
            return None


def output_limit_text(answer: AssistantMessage) -> str:
    """Return the warning about an answer that reached the output limit."""
    rest = (
        "Its calls that have not started do not run; the model is asked to repeat them."
        if answer.tool_calls
        else "The text so far is kept; ask the model to continue."
    )
    return f"The answer was cut off at the model's output limit. {rest}"


def unfinished_text(detail: str) -> str:
    """Return the warning about an answer that ended for an unknown reason."""
    reason = f": {' '.join(detail.split()).rstrip('.')}" if detail.strip() else ""
    return f"The model stopped before the usual end of an answer{reason}. The answer may not be whole."


def unclaimed_text(execution: ToolExecution) -> str:
    """Return the notice about a call that ran although no response contains it."""
    name, summary = execution.tool.name, execution.tool.summarise(execution.arguments)
    answer = execution.answer
    result = (
        answer.text if isinstance(answer, ToolResult | Crash) else "It was stopped and may have done part of its work."
    )
    if len(result) > UNCLAIMED_RESULT:
        result = f"{result[:UNCLAIMED_RESULT]} [… {len(result) - UNCLAIMED_RESULT} more characters]"
    return (
        "A response of yours broke off after it had made a call that ran all the same. No later call has its result, "
        "even if you made the same call again. What it changed is still changed. "
        f"The call: {f'{name} {summary}'.strip()}\nIts result: {result}"
    )


class RequestRepair:
    """The repairs of one turn, each made at most once."""

    def __init__(self, agent: AgentState, compact: Callable[[], Awaitable[bool]]) -> None:
        """
        Args:
            agent: the agent with the conversation.
            compact: compacts the conversation; returns False if that failed.
        """
        self.has_compacted = False
        """True once the conversation was compacted in this turn, or could not be."""
        self.thinks = True
        """False if this turn's requests ask for no reasoning."""
        self._agent = agent
        self._compact = compact
        self._media_drops = 0
        self._has_dropped_thinking = False
        self._has_tried = False
        self._originals: dict[str, Message] = {}
        """Messages whose pictures are left out to find out if the server refuses them."""

    def prepare(self) -> None:
        """Drop earlier reasoning if the server has refused it `_REFUSES_THINKING` times."""
        # After two refusals the server refuses always; asking it again would cost a request in each turn.
        if self._agent.thinking_refusals >= _REFUSES_THINKING:
            self._drop("thinking", self._all_with("thinking"))

    async def after(self, problem: ProviderError) -> bool:
        """Change the conversation after a failed request; return True if it is worth another request."""
        # The trial was refused as well, so the pictures were not the reason.
        self.undo_trial()
        if self._is_too_long(problem):
            if not self.has_compacted:
                self.has_compacted = True
                if await self._compact():
                    return True
            # Of a request that is too large in bytes, pictures are the part that can still go.
            if problem.kind != "too_large":
                return False
        elif problem.kind != "invalid_request" and problem.subject != "media":
            return False
        if problem.subject == "thinking":
            return self._drop_thinking()
        if problem.subject == "media" or problem.kind == "too_large":
            return self._drop_media()
        return self._try_without_new_media()

    def accepted(self) -> None:
        """Keep a change that was made to find out if it helps: it did."""
        tried, self._originals = tuple(self._originals), {}
        if tried:
            self._agent.publisher.publish(ContentDropped(kind="media", message_ids=tried))
            self._warn(_MEDIA_DROPPED)

    def undo_trial(self) -> None:
        """Undo a change that was made to find out if it helps, and did not."""
        self._agent.history.replace_messages(self._originals)
        self._originals = {}

    @property
    def is_large(self) -> bool:
        """True if the size of the conversation may be the reason for a refusal."""
        return self._agent.history.estimated_tokens() >= _LARGE * self._agent.provider.model.context_window

    def _is_too_long(self, problem: ProviderError) -> bool:
        if problem.kind in ("context_exceeded", "too_large"):
            return True
        return problem.kind == "invalid_request" and problem.subject == "size" and self.is_large

    def _drop_thinking(self) -> bool:
        """Drop earlier reasoning; if the server misses it, ask for none until the turn ends."""
        found = self._all_with("thinking")
        if found and not self._has_dropped_thinking:
            self._has_dropped_thinking = True
            self._agent.thinking_refusals += 1
            self._drop("thinking", found)
            self._warn(_THINKING_DROPPED)
            return True
        could_think = self.thinks and self._agent.config.thinking_tokens != 0
        self.thinks = False
        return could_think

    def _drop_media(self) -> bool:
        """Drop the newest pictures and PDF files, then all others."""
        found = self._all_with("media")
        if not found or self._media_drops == 2:
            return False
        self._media_drops += 1
        # The newest are most likely the reason; the older ones were accepted before.
        chosen = found if self._media_drops == 2 else self._new_with("media") or found[-1:]
        self._drop("media", chosen)
        self._warn(_MEDIA_DROPPED)
        return True

    def _try_without_new_media(self) -> bool:
        """Leave out the pictures that no request had before, until the server has answered."""
        found = self._new_with("media")
        if not found or self._has_tried:
            return False
        self._has_tried = True
        self._originals = {message.id: message for message in found}
        self._replace("media", found)
        return True

    def _all_with(self, kind: DroppedContent) -> list[Message]:
        return [message for message in self._agent.history.messages() if has_content(message, kind)]

    def _new_with(self, kind: DroppedContent) -> list[Message]:
        """Return the messages after the last answer that have parts of a kind."""
        found: list[Message] = []
        for message in self._agent.history.messages():
            if isinstance(message, AssistantMessage):
                found.clear()
            elif has_content(message, kind):
                found.append(message)
        return found

    def _drop(self, kind: DroppedContent, messages: Sequence[Message]) -> None:
        if messages:
            self._replace(kind, messages)
            ids = tuple(message.id for message in messages)
            self._agent.publisher.publish(ContentDropped(kind=kind, message_ids=ids))

    def _replace(self, kind: DroppedContent, messages: Sequence[Message]) -> None:
        self._agent.history.replace_messages({message.id: without(message, kind) for message in messages})

    def _warn(self, text: str) -> None:
        self._agent.publisher.publish(Warned(code="content_dropped", text=text))
