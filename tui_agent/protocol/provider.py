"""Interface of a model provider: requests, stream events, model facts."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, get_args, runtime_checkable

from .messages import JsonObject, Message, StopReason, ThinkingBlock, ToolCall, Usage
from .tool import ToolSpec
from .value_checks import expect_choice, expect_kind, expect_number, expect_whole, refuse_unknown_fields

ThinkingForm: TypeAlias = Literal["budget", "adaptive", "always", "none"]
"""Form of a model's reasoning setting: a budget of tokens, an effort, an effort that cannot be turned off, or none."""


@dataclass(frozen=True, slots=True)
class SystemPart:
    """A part of the system prompt; stable parts come first, so that they can be cached as a prefix (S4-32)."""

    text: str
    stable: bool = True


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model. The messages are a valid conversation (S4-84)."""

    messages: Sequence[Message]
    """Conversation; does not change while the request is in use. May be a view, so that no step copies it."""
    system: tuple[SystemPart, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    """Maximum tokens of the answer; None for the provider's default."""
    temperature: float | None = None
    thinking_tokens: int | None = None
    """Maximum tokens of reasoning; None for the model's default."""
    cache: bool = True
    """True if the provider may cache the beginning of the request (S4-41)."""
    conversation_id: str = ""
    answer_schema: JsonObject | None = None
    """JSON schema that the final answer must match, for providers that can hold the model to it; None: any text."""
    web_searches: int = 0
    """Most searches that the endpoint may make for this answer; 0: it has no such tool."""


@dataclass(frozen=True, slots=True)
class StreamStarted:
    """The answer begins."""

    model: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next part of a text block."""

    text: str
    block: int = 0
    """Index of the content block."""


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """The next part of a reasoning block."""

    text: str
    block: int = 0


@dataclass(frozen=True, slots=True)
class ThinkingEnded:
    """A reasoning block is complete, with its signature."""

    thinking: ThinkingBlock
    block: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A call begins; its arguments follow."""

    call_id: str
    name: str
    block: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """The next part of a call's argument text."""

    call_id: str
    fragment: str
    block: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallEnded:
    """A call is complete and parsed; exactly once for each call (S1-21)."""

    call: ToolCall
    block: int = 0


@dataclass(frozen=True, slots=True)
class WebSource:
    """A page that the endpoint's search found, or that an answer cites."""

    url: str
    title: str = ""
    quote: str = ""
    """Text of the page that the answer cites."""


@dataclass(frozen=True, slots=True)
class WebSearched:
    """The endpoint searched the web for the model."""

    query: str
    sources: tuple[WebSource, ...] = ()
    error: str = ""
    """Code of the failure; empty without one."""
    block: int = 0


@dataclass(frozen=True, slots=True)
class Cited:
    """The text of a block rests on a page."""

    source: WebSource
    block: int = 0


@dataclass(frozen=True, slots=True)
class UsageReported:
    """Tokens so far; replaces the report before (S4-52)."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The answer is complete. A stream that ends without this event was cut off."""

    stop_reason: StopReason
    detail: str = ""
    """Text by the endpoint for a refusal or an unknown reason."""


StreamEvent: TypeAlias = (
    StreamStarted
    | TextDelta
    | ThinkingDelta
    | ThinkingEnded
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallEnded
    | WebSearched
    | Cited
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
    """Size of the window in tokens."""
    max_output_tokens: int = 8_192
    input_price: float | None = None
    """US dollars for a million input tokens; None if unknown."""
    output_price: float | None = None
    """US dollars for a million output tokens; None if unknown."""
    kind: Literal["language_model", "offline_demo"] = "language_model"
    cache_read_price: float | None = None
    """US dollars for a million tokens read from the prompt cache; None: a tenth of the input price."""
    cache_write_price: float | None = None
    """US dollars for a million tokens written to the prompt cache; None: 1.25 times the input price."""
    thinking: ThinkingForm = "budget"
    """Form of its reasoning setting."""

    def __post_init__(self) -> None:
        expect_kind("ModelInfo.name", self.name, str, "text")
        expect_whole("ModelInfo.context_window", self.context_window, 1)
        expect_whole("ModelInfo.max_output_tokens", self.max_output_tokens, 1)
        expect_number("ModelInfo.input_price", self.input_price, optional=True)
        expect_number("ModelInfo.output_price", self.output_price, optional=True)
        expect_choice("ModelInfo.kind", self.kind, ("language_model", "offline_demo"))
        expect_number("ModelInfo.cache_read_price", self.cache_read_price, optional=True)
        expect_number("ModelInfo.cache_write_price", self.cache_write_price, optional=True)
        expect_choice("ModelInfo.thinking", self.thinking, get_args(ThinkingForm))

    def cost_of(self, usage: Usage) -> float | None:
        """Return the cost of `usage` in US dollars; None if the price is unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        read_price = self.input_price * 0.1 if self.cache_read_price is None else self.cache_read_price
        write_price = self.input_price * 1.25 if self.cache_write_price is None else self.cache_write_price
        micro_dollars = (
            usage.input_tokens * self.input_price
            + usage.cache_read_tokens * read_price
            + usage.cache_write_tokens * write_price
            + usage.output_tokens * self.output_price
        )
        return micro_dollars / 1_000_000


@runtime_checkable
class TokenCounter(Protocol):
    """A provider whose endpoint may count the tokens of a request before it is sent."""

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return the input tokens of a request; None if the endpoint does not count.

        Raises:
            ProviderError: the provider cannot be used.
        """
        ...


class ModelProvider(Protocol):
    """A model endpoint. Holds the credentials, which the loop never sees (S4-7)."""

    @property
    def model(self) -> ModelInfo:
        """Facts about the model."""
        ...

    async def prepare(self) -> None:
        """Import and connect ahead of the first request, without blocking the event loop; may be called repeatedly.

        Raises:
            ProviderError: the provider cannot be used.
        """
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Request one response without retries; the loop retries.

        Ends with `StreamEnded`. Closing the iterator (`aclosing`) ends the connection.

        Raises:
            ProviderError: the request failed. No other exception but `CancelledError` is raised.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; the provider cannot be used afterwards."""
        ...
