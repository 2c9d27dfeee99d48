"""The words of a conversation: blocks, messages, usage.

A conversation alternates user → assistant → [tool results] → assistant (S4-84). Tool results are held one message
a call; a provider merges them as its API needs.
"""

import json
import math
import os
import random
import time
from typing import Annotated, Any, Literal, TypeAlias, TypeGuard

from pydantic import BaseModel, ConfigDict, Field

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object as Python holds it."""

StopReason = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "other",
]
"""Why the model stopped; `other` is a reason this version does not know."""

TRUNCATED: frozenset[StopReason] = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
"""The model did not finish: no call of such a message is run (C29, P11)."""


_chance = random.Random(os.urandom(32))
# Asking the system for each id costs more than an event; a forked process must not repeat its parent's.
os.register_at_fork(after_in_child=lambda: _chance.seed(os.urandom(32)))


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def new_id(prefix: str) -> str:
    """A fresh identifier such as `run_1f3c…`, unique across processes."""
    return f"{prefix}_{_chance.getrandbits(64):016x}"


def now_ms() -> int:
    """Wall-clock time in milliseconds; for records only, never for durations."""
    return time.time_ns() // 1_000_000


class FrozenModel(BaseModel):
    """Base of everything that crosses a border: frozen, and readers ignore what they do not know."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class TextBlock(FrozenModel):
    """Plain text."""

    type: Literal["text"] = "text"
    text: str


class ImageBlock(FrozenModel):
    """An image, base64-encoded."""

    type: Literal["image"] = "image"
    media_type: str
    data: str


class ThinkingBlock(FrozenModel):
    """The model's reasoning, with the signature the API wants back unchanged."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str = ""
    redacted: str | None = None
    """Encrypted reasoning that must be sent back as it came; `thinking` is then empty."""


class ToolCall(FrozenModel):
    """One call the model asks for; `id` flows unchanged to its result (S4-87)."""

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: JsonObject = Field(default_factory=dict)
    """Parsed arguments; empty when `malformed` is set."""
    malformed: str | None = None
    """Why the arguments could not be read as a JSON object, if they could not (C20)."""
    cut: bool = False
    """The message hit the output limit: the arguments may be incomplete and never run (C29)."""


UserBlock = Annotated[TextBlock | ImageBlock, Field(discriminator="type")]
AssistantBlock = Annotated[TextBlock | ThinkingBlock | ToolCall, Field(discriminator="type")]


class Usage(FrozenModel):
    """Tokens of one response, or a sum of several."""

    input_tokens: int = 0
    """Tokens read, without those from or into the cache."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def context_tokens(self) -> int:
        """Everything the model read for this response: what fills its window."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


UserKind = Literal["prompt", "steer", "follow_up", "notice", "command"]
"""How a user message came in; a `notice` is the system's own, never blamed on the person (C10); a `command` holds
what a command of the person's gave."""


class UserMessage(FrozenModel):
    """What a person (or, as `notice`, the system) says to the model."""

    role: Literal["user"] = "user"
    content: tuple[UserBlock, ...]
    id: str = Field(default_factory=lambda: new_id("msg"))
    kind: UserKind = "prompt"
    timestamp: int = Field(default_factory=now_ms)
    """Milliseconds since the epoch, at creation."""

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return joined_text(self.content)

    @property
    def is_from_user(self) -> bool:
        """Whether a person wrote it: no notice of the system's, and not what a command gave."""
        return self.kind not in ("notice", "command")


class AssistantMessage(FrozenModel):
    """One complete model response."""

    role: Literal["assistant"] = "assistant"
    content: tuple[AssistantBlock, ...]
    id: str = Field(default_factory=lambda: new_id("msg"))
    model: str = ""
    usage: Usage = Usage()
    stop_reason: StopReason = "end_turn"
    timestamp: int = Field(default_factory=now_ms)

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return joined_text(self.content)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in content order (S2-3)."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))


class ToolResultMessage(FrozenModel):
    """The one answer to one call (S0-41)."""

    role: Literal["tool_result"] = "tool_result"
    call_id: str
    tool_name: str
    content: tuple[UserBlock, ...]
    is_error: bool = False
    details: JsonObject | None = None
    """Structured data for the screen, never sent to the model (S2-25)."""
    id: str = Field(default_factory=lambda: new_id("msg"))
    timestamp: int = Field(default_factory=now_ms)

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return joined_text(self.content)


Message = Annotated[UserMessage | AssistantMessage | ToolResultMessage, Field(discriminator="role")]


def user_message(text: str, kind: UserKind = "prompt") -> UserMessage:
    """A user message with one text block."""
    return UserMessage(content=(TextBlock(text=text),), kind=kind)


def joined_text(content: tuple[FrozenModel, ...]) -> str:
    """The text blocks of `content`, joined by newlines."""
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


MAX_NESTING = 100
"""Most lists and objects that may stand in one another in arguments; what nests deeper cannot be told or kept."""

TOO_DEEP = f"arguments are nested more than {MAX_NESTING} levels deep"
"""What is said of such arguments."""


def nests_deeper(value: object, levels: int = MAX_NESTING) -> bool:
    """Whether lists and objects stand in one another more than `levels` deep."""
    if is_object(value):
        return levels <= 0 or any(nests_deeper(inner, levels - 1) for inner in value.values())
    if is_array(value):
        return levels <= 0 or any(nests_deeper(inner, levels - 1) for inner in value)
    return False


def parse_tool_call(call_id: str, name: str, raw: str) -> ToolCall:
    """Reads a call's argument text; never raises (C20, P08, P09).

    Empty or blank text is a call without arguments; a JSON string that itself holds an object is unwrapped; anything
    else that is no JSON object leaves `arguments` empty and says why in `malformed`.
    """
    if not raw.strip():
        return ToolCall(id=call_id, name=name)
    try:
        value: object = _read(raw)
        if isinstance(value, str):
            value = _read(value) if value.strip() else {}
    except (ValueError, RecursionError) as error:
        return ToolCall(id=call_id, name=name, malformed=f"arguments are not valid JSON: {error}")
    if value is None:
        value = {}
    if not is_object(value):
        kind = type(value).__name__
        return ToolCall(id=call_id, name=name, malformed=f"arguments must be a JSON object, got {kind}")
    if nests_deeper(value):
        return ToolCall(id=call_id, name=name, malformed=TOO_DEEP)
    if not _is_encodable(value):
        return ToolCall(id=call_id, name=name, malformed="arguments hold half a surrogate pair, which is no text")
    return ToolCall(id=call_id, name=name, arguments=value)


def _read(text: str) -> Any:
    """The value of a JSON text; Python's reader also takes words and numbers that no other reader knows."""
    return json.loads(text, parse_constant=_unknown_number, parse_float=_finite_number)


def _is_encodable(value: JsonObject) -> bool:
    """Whether all of it can be kept and sent; JSON can name halves of characters, which UTF-8 has no bytes for."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _unknown_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON value")


def _finite_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large a number")
    return number
