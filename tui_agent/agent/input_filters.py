"""Input filters: they pass, annotate or reject a message of the user before it joins the conversation."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tui_agent.execution.contained_calls import Crash, asked
from tui_agent.protocol.events import AgentEvent, InputRejected, InputSource, InputWarned
from tui_agent.protocol.messages import TextBlock, UserMessage
from tui_agent.protocol.value_checks import expect_choice, expect_kind, refuse_unknown_fields


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class InputVerdict:
    """The verdict of a filter.

    Raises:
        ConfigurationError: a field is unknown or of the wrong kind: an action such as "block" would let all pass.
    """

    action: Literal["pass", "warn", "reject"] = "pass"
    """`warn`: `text` is appended to the message for the model; `reject`: the message is not sent."""
    text: str = ""
    """The note, or the reason for the rejection."""

    def __post_init__(self) -> None:
        expect_choice("InputVerdict.action", self.action, ("pass", "warn", "reject"))
        expect_kind("InputVerdict.text", self.text, str, "text")


class InputFilter(Protocol):
    """One filter; an agent calls its filters in the order of the configuration."""

    @property
    def name(self) -> str:
        """Its name in events."""
        ...

    def check(self, message: UserMessage) -> InputVerdict | Awaitable[InputVerdict]:
        """Check one message. An exception rejects it: a message that could not be checked does not pass."""
        ...


async def filtered(
    filters: Sequence[InputFilter], message: UserMessage, source: InputSource, publish: Callable[[AgentEvent], None]
) -> UserMessage | str:
    """Return the message with the notes of all filters, or the reason of the first filter that rejects it."""
    notes: list[TextBlock] = []
    for input_filter in filters:
        verdict = await asked(input_filter.check, message, timeout=None)
        if isinstance(verdict, Crash):
            verdict = InputVerdict("reject", f"filter {input_filter.name} failed: {verdict.text}")
        if not isinstance(verdict, InputVerdict):
            verdict = InputVerdict("reject", f"filter {input_filter.name} answered {verdict!r}")
        match verdict.action:
            case "pass":
                pass
            case "warn":
                publish(InputWarned(filter=input_filter.name, text=verdict.text, source=source))
                notes.append(TextBlock(text=f"[Note by {input_filter.name}: {verdict.text}]"))
            case "reject":
                reason = verdict.text or f"filter {input_filter.name} refused it"
                publish(InputRejected(filter=input_filter.name, reason=reason, source=source))
                return reason
    return message.model_copy(update={"content": (*message.content, *notes)}) if notes else message
