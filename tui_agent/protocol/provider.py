"""What a model is to the engine: a request goes in, a stream of small facts comes out."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from .messages import Message, StopReason, ThinkingBlock, ToolCall, Usage
from .tool import ToolSpec
from .value_checks import expect_choice, expect_kind, expect_number, expect_whole, refuse_unknown_fields


@dataclass(frozen=True, slots=True)
class SystemPart:
    """A piece of the system prompt; stable parts come first so that their prefix can be cached (S4-32)."""

    text: str
    stable: bool = True


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything one response is made from. Messages hold a valid conversation (S4-84)."""

    messages: Sequence[Message]
    """Never changes once the request is built; may be a view, so that a long conversation is not copied each step."""
    system: tuple[SystemPart, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    """Longest answer in tokens; None: the provider's own."""
    temperature: float | None = None
    thinking_tokens: int | None = None
    """Budget for reasoning in tokens; None: the model's own default."""
    cache: bool = True
    """Whether the provider may keep the beginning of the request for the next one, if it can (S4-41)."""
    conversation_id: str = ""


@dataclass(frozen=True, slots=True)
class StreamStarted:
    """The model began to answer."""

    model: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text."""

    text: str
    block: int = 0
    """Index of the content block it belongs to."""


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More reasoning."""

    text: str
    block: int = 0


@dataclass(frozen=True, slots=True)
class ThinkingEnded:
    """A reasoning block is complete, with its signature."""

    thinking: ThinkingBlock
    block: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A call began; its arguments follow."""

    call_id: str
    name: str
    block: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of a call's argument text."""

    call_id: str
    fragment: str
    block: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallEnded:
    """A call's block is complete and read; comes once a call (S1-21)."""

    call: ToolCall
    block: int = 0


@dataclass(frozen=True, slots=True)
class UsageReported:
    """Tokens so far; replaces what was reported before (S4-52)."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The model finished by itself; without it the stream was cut (P12)."""

    stop_reason: StopReason
    detail: str = ""
    """The model's own words on a refusal or an unknown reason."""


StreamEvent: TypeAlias = (
    StreamStarted
    | TextDelta
    | ThinkingDelta
    | ThinkingEnded
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallEnded
    | UsageReported
    | StreamEnded
)


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Facts about a model.

    Raises:
        ConfigurationError: a field is unknown, or its value is of the wrong kind or out of range.
    """

    name: str
    context_window: int = 200_000
    """Tokens."""
    max_output_tokens: int = 8_192
    input_price: float | None = None
    """Dollars for a million tokens read; None: not known."""
    output_price: float | None = None
    kind: Literal["language_model", "offline_demo"] = "language_model"

    def __post_init__(self) -> None:
        expect_kind("ModelInfo.name", self.name, str, "text")
        expect_whole("ModelInfo.context_window", self.context_window, 1)
        expect_whole("ModelInfo.max_output_tokens", self.max_output_tokens, 1)
        expect_number("ModelInfo.input_price", self.input_price, optional=True)
        expect_number("ModelInfo.output_price", self.output_price, optional=True)
        expect_choice("ModelInfo.kind", self.kind, ("language_model", "offline_demo"))

    def cost_of(self, usage: Usage) -> float | None:
        """Dollars for `usage`; None where the price is not known. Cache reads cost a tenth, cache writes 1.25 times."""
        if self.input_price is None or self.output_price is None:
            return None
        read = usage.input_tokens + usage.cache_read_tokens * 0.1 + usage.cache_write_tokens * 1.25
        return (read * self.input_price + usage.output_tokens * self.output_price) / 1_000_000


class ModelProvider(Protocol):
    """Streams one response. Holds the credentials; the loop never sees them (S4-7)."""

    @property
    def model(self) -> ModelInfo:
        """The model asked."""
        ...

    async def prepare(self) -> None:
        """Imports and connects what is heavy, off the event loop; may be called any number of times."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """One attempt at one response; retries are the loop's.

        Ends with `StreamEnded`. Closing the iterator (`aclosing`) ends the connection.

        Raises:
            ProviderError: and nothing else but cancellation.
        """
        ...

    async def aclose(self) -> None:
        """Closes connections; the provider cannot be used afterwards."""
        ...
