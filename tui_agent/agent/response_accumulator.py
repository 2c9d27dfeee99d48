"""The pure fold of a provider's stream into one assistant message (S4-14, S4-47 … S4-55).

Each attempt has a new `StepState` with all of its data, so that nothing leaks into the next attempt (S4-86).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import get_args

from tui_agent.execution.json_coercion import NOT_JSON_TEXT, is_json_value, replace_lone_surrogates
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.events import MessageDelta
from tui_agent.protocol.messages import (
    TRUNCATED,
    AssistantBlock,
    AssistantMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    new_id,
    parse_tool_call,
)
from tui_agent.protocol.provider import (
    Cited,
    StreamEnded,
    StreamEvent,
    StreamStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    UsageReported,
    WebSearched,
    WebSource,
)
from tui_agent.protocol.value_checks import shown_value


@dataclass(slots=True)
class GrowingText:
    """Streamed text in whole characters: half a surrogate pair can be neither stored nor sent."""

    block: int
    half: str = ""
    """The first half of a character; the other half may come with the next piece."""
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The whole text; a half without its other half is replaced."""
        return "".join((*self.pieces, replace_lone_surrogates(self.half)))

    def add(self, piece: str) -> str:
        """Add a piece and return the text to show."""
        piece = self.half + piece
        # A server may cut between the two halves of a pair; the second comes with the next piece.
        self.half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        shown = replace_lone_surrogates(piece.removesuffix(self.half))
        self.pieces.append(shown)
        return shown


@dataclass(slots=True)
class OpenText(GrowingText):
    """A text block that is being streamed."""


@dataclass(slots=True)
class OpenThinking(GrowingText):
    """A reasoning block that is being streamed."""

    finished: ThinkingBlock | None = None


@dataclass(slots=True)
class OpenCall:
    """A call whose arguments are being streamed."""

    call_id: str
    """The id that the engine uses: the provider's, or a new one if the provider's is missing or not unique."""
    provider_id: str
    name: str
    fragments: list[str] = field(default_factory=list[str])
    finished: ToolCall | None = None


OpenBlock = OpenText | OpenThinking | OpenCall


def _no_id_is_taken(_: str) -> bool:
    return False


@dataclass(slots=True)
class StepState:
    """The part of one answer that has arrived in one attempt."""

    is_taken: Callable[[str], bool] = _no_id_is_taken
    """Tests if the conversation has used a call id before; some servers count from zero in each answer."""
    message_id: str = field(default_factory=lambda: new_id("msg"))
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    stop_reason: StopReason | None = None
    """None until the model reports why it stopped."""
    detail: str = ""
    blocks: list[OpenBlock] = field(default_factory=list[OpenBlock])
    """Blocks in the order they began."""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(block.text for block in self.blocks if isinstance(block, OpenText))

    @property
    def calls(self) -> list[OpenCall]:
        """The calls so far, finished or not, in order."""
        return [block for block in self.blocks if isinstance(block, OpenCall)]

    @property
    def is_empty(self) -> bool:
        """True if the answer has neither text nor calls."""
        return not self.text.strip() and not self.calls


def accumulate(state: StepState, event: StreamEvent) -> MessageDelta | ToolCall | None:
    """Fold one event of the stream into the state.

    Returns:
        A delta to show, a call whose block is complete, or None. Each call is returned exactly once.

    Raises:
        ProviderError: it is not an event of a stream, or a field is of the wrong kind; it is not retried.
    """
    _refuse_wrong_kinds(event)
    match event:
        case TextDelta(text=text):
            return _add_text(state, text, event.block)
        case ThinkingDelta(text=text):
            shown = _open_thinking(state, event.block).add(text)
            return MessageDelta(message_id=state.message_id, kind="thinking", delta=shown) if shown else None
        case ThinkingEnded(thinking=thinking):
            _open_thinking(state, event.block).finished = _whole_thinking(thinking)
        case ToolCallStarted():
            _begin_call(state, event.call_id, event.name)
        case ToolCallDelta():
            return _add_fragment(state, event)
        case ToolCallEnded(call=call):
            return _end_call(state, call)
        case UsageReported(usage=usage):
            state.usage = usage
        case StreamStarted():
            # Foreign text: half a pair could not be written to the journal.
            state.model = replace_lone_surrogates(event.model)
            state.usage = event.usage
        case StreamEnded():
            state.stop_reason = event.stop_reason
            state.detail = replace_lone_surrogates(event.detail)
        case WebSearched() | Cited():
            # Only the tool `web_search` asks for searches, and takes these events itself.
            pass
    return None


_KINDS: dict[type, tuple[tuple[str, type], ...]] = {
    StreamStarted: (("model", str), ("usage", Usage)),
    TextDelta: (("text", str),),
    ThinkingDelta: (("text", str),),
    ThinkingEnded: (("thinking", ThinkingBlock),),
    ToolCallStarted: (("call_id", str), ("name", str)),
    ToolCallDelta: (("call_id", str), ("fragment", str)),
    ToolCallEnded: (("call", ToolCall),),
    WebSearched: (("query", str), ("sources", tuple)),
    Cited: (("source", WebSource),),
    UsageReported: (("usage", Usage),),
    StreamEnded: (("stop_reason", str), ("detail", str)),
}
"""Types of the fields of each stream event; a provider may be any program, so they are checked."""

_STOP_REASONS: tuple[str, ...] = get_args(StopReason)


def _refuse_wrong_kinds(event: StreamEvent) -> None:
    """Refuse an object that is not an event of a stream, or has a field of the wrong kind.

    Raises:
        ProviderError: see `accumulate`.
    """
    # Looked up by its class: this runs for each piece of text.
    fields = _KINDS.get(type(event))
    if fields is None:
        raise _broken_stream(f"{shown_value(event)} is not a StreamEvent, such as TextDelta(…)")
    for name, kind in fields:
        value: object = getattr(event, name)
        if not isinstance(value, kind):
            words = "text" if kind is str else f"a {kind.__name__}"
            raise _broken_stream(f"{type(event).__name__}.{name} must be {words}, got {shown_value(value)}")
    if isinstance(event, StreamEnded) and event.stop_reason not in _STOP_REASONS:
        reasons = ", ".join(_STOP_REASONS)
        raise _broken_stream(f"StreamEnded.stop_reason must be one of {reasons}, got {shown_value(event.stop_reason)}")


def _broken_stream(why: str) -> ProviderError:
    return ProviderError(f"The provider's stream cannot be read: {why}.", kind="bad_response")


def finalize_unended_tool_calls(state: StepState) -> tuple[ToolCall, ...]:
    """Finish the calls whose end never arrived, once the stream has ended, and return them in order (S4-54)."""
    ended: list[ToolCall] = []
    for call in state.calls:
        if call.finished is None:
            call.finished = parse_tool_call(call.call_id, call.name, "".join(call.fragments))
            ended.append(call.finished)
    return tuple(ended)


def build_message(state: StepState) -> AssistantMessage:
    """Return the complete answer (S4-55). Calls of a truncated answer are marked so that they never run."""
    stop_reason = state.stop_reason or "other"
    content: list[AssistantBlock] = []
    for block in state.blocks:
        built = _built(block)
        if isinstance(built, ToolCall) and stop_reason in TRUNCATED:
            built = built.model_copy(update={"cut": True})
        if built is not None:
            content.append(built)
    if state.calls and stop_reason in ("end_turn", "stop_sequence", "other"):
        # Some servers report an ordinary end although they made calls.
        stop_reason = "tool_use"
    return _message(state, content, stop_reason)


def build_partial(state: StepState) -> AssistantMessage | None:
    """Return the usable part of an answer that broke off: text, finished calls, and signed reasoning with them.

    None if no part of it can be shown or sent back.
    """
    content: list[AssistantBlock] = []
    for block in state.blocks:
        built = _built(block)
        signed = isinstance(built, ThinkingBlock) and (built.signature or built.redacted)
        if built is not None and (signed or isinstance(built, TextBlock | ToolCall)):
            content.append(built)
    # Reasoning alone cannot be sent back: servers refuse an answer without text or calls.
    if all(isinstance(block, ThinkingBlock) for block in content):
        return None
    return _message(state, content, "other")


def _add_text(state: StepState, text: str, index: int) -> MessageDelta | None:
    if not text:
        return None
    last = state.blocks[-1] if state.blocks else None
    if not isinstance(last, OpenText) or last.block != index:
        last = OpenText(index)
        state.blocks.append(last)
    shown = last.add(text)
    return MessageDelta(message_id=state.message_id, kind="text", delta=shown) if shown else None


def _open_thinking(state: StepState, index: int) -> OpenThinking:
    last = state.blocks[-1] if state.blocks else None
    if not isinstance(last, OpenThinking) or last.block != index or last.finished is not None:
        last = OpenThinking(index)
        state.blocks.append(last)
    return last


def _begin_call(state: StepState, provider_id: str, name: str) -> OpenCall:
    # A result is matched by id alone, so an id must be one of a kind in the whole conversation.
    unusable = not provider_id or replace_lone_surrogates(provider_id) != provider_id or state.is_taken(provider_id)
    doubled = any(call.call_id == provider_id for call in state.calls)
    call = OpenCall(new_id("call") if unusable or doubled else provider_id, provider_id, replace_lone_surrogates(name))
    state.blocks.append(call)
    return call


def _add_fragment(state: StepState, event: ToolCallDelta) -> MessageDelta | None:
    unfinished = [call for call in state.calls if call.finished is None]
    named = [call for call in unfinished if call.provider_id == event.call_id]
    if not unfinished or not event.fragment:
        return None
    # Servers that send no ids stream one call at a time.
    call = (named or unfinished)[-1]
    call.fragments.append(event.fragment)
    shown = replace_lone_surrogates(event.fragment)
    return MessageDelta(message_id=state.message_id, kind="toolcall", delta=shown, call_id=call.call_id)


def _end_call(state: StepState, ended: ToolCall) -> ToolCall | None:
    """Finish the call with that id, else the first open one (S4-51); ignore a second end of the same call."""
    unfinished = [call for call in state.calls if call.finished is None]
    named = [call for call in unfinished if call.provider_id == ended.id]
    # A second end of one call must not make it run twice.
    if not named and ended.id and any(call.provider_id == ended.id for call in state.calls):
        return None
    call = next(iter(named or unfinished), None) or _begin_call(state, ended.id, ended.name)
    call.finished = ended.model_copy(update={"id": call.call_id, "name": replace_lone_surrogates(ended.name)})
    if not is_json_value(ended.arguments):
        call.finished = call.finished.model_copy(update={"arguments": {}, "malformed": NOT_JSON_TEXT})
    return call.finished


def _whole_thinking(thinking: ThinkingBlock) -> ThinkingBlock:
    """Return reasoning unchanged, so that its signature stays valid, except for text that cannot be encoded."""
    texts = {name: replace_lone_surrogates(text) for name, text in thinking if isinstance(text, str)}
    return thinking.model_copy(update=texts)


def _built(block: OpenBlock) -> AssistantBlock | None:
    """Return the finished block; None if it is empty or an open call."""
    match block:
        case OpenText(text=text):
            return TextBlock(text=text) if text.strip() else None
        case OpenThinking(text=text):
            return block.finished or (ThinkingBlock(thinking=text) if text.strip() else None)
        case OpenCall():
            return block.finished


def _message(state: StepState, content: list[AssistantBlock], stop_reason: StopReason) -> AssistantMessage:
    return AssistantMessage(
        id=state.message_id,
        content=tuple(content),
        model=state.model,
        usage=state.usage,
        stop_reason=stop_reason,
    )


async def read_stream(stream: AsyncIterator[StreamEvent], take: Callable[[StreamEvent], object]) -> None:
    """Read a provider's stream to its end, call `take` with each event, and close it in any case.

    Raises:
        Exception: anything that the stream or `take` raises.
    """
    try:
        async for event in stream:
            take(event)
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
