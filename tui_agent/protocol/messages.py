"""Parts of a conversation: blocks, messages, usage.

A conversation alternates user → assistant → [tool results] → assistant (S4-84). Each tool result is one message; a
provider merges them as its API requires.
"""

import json
import math
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeGuard, cast

from pydantic import BaseModel, ConfigDict, Field

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object as a Python dict."""

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
"""Reason why the model stopped; `other` for reasons unknown to this version."""

TRUNCATED: frozenset[StopReason] = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
"""Reasons that leave a message unfinished: none of its calls runs, because their arguments may be incomplete."""


_random = random.Random(os.urandom(32))
# Asking the system for each id costs more than an event; a forked process must not repeat its parent's.
os.register_at_fork(after_in_child=lambda: _random.seed(os.urandom(32)))


def is_object(value: object) -> TypeGuard[JsonObject]:
    """True if a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """True if a JSON value is an array."""
    return isinstance(value, list)


def new_id(prefix: str) -> str:
    """Return a new identifier such as `run_1f3c…`, unique across processes."""
    return f"{prefix}_{_random.getrandbits(64):016x}"


def now_ms() -> int:
    """Return the wall-clock time in milliseconds since the epoch; for records, not for durations."""
    return time.time_ns() // 1_000_000


_field_sets: dict[frozenset[str], set[str]] = {}


class FrozenModel(BaseModel):
    """Base of all serialised data: frozen; readers ignore unknown fields."""

    # A later version may have written more fields. Building all validators at import would add a tenth of a second to
    # the start.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


_shapes: "dict[type[TrustedModel], _Shape]" = {}
_set = object.__setattr__


class TrustedModel(FrozenModel):
    """Base of data that the program itself makes, such as events. The constructor checks only the names of the fields;
    `model_validate` checks all."""

    # Validating a few dozen events in each turn took a fifth of the engine's time.
    def __init__(self, /, **data: Any) -> None:
        kind = type(self)
        shape = _shapes.get(kind) or _shape_of(kind)
        values = shape.values | data
        if len(values) > shape.size or not shape.required <= data.keys():
            raise TypeError(f"{kind.__name__} has the fields {', '.join(shape.values)}, got {', '.join(data)}")
        for name, make in shape.factories:
            if name not in data:
                values[name] = make()
        _set(self, "__dict__", values)
        _set(self, "__pydantic_fields_set__", shape.names)
        _set(self, "__pydantic_extra__", None)
        _set(self, "__pydantic_private__", None)

    # Validation makes objects without calling the constructor, as it does for classes that inherit pydantic's own.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]


class _Shape(NamedTuple):
    """The fields of a class."""

    values: dict[str, Any]
    """All fields, in order, with their defaults."""
    size: int
    required: frozenset[str]
    factories: tuple[tuple[str, Callable[[], Any]], ...]
    """Fields whose default is a new object each time."""
    names: set[str]
    """Shared by all objects, as by `share_field_sets`."""


def _shape_of(kind: type[TrustedModel]) -> _Shape:
    fields = kind.model_fields
    required = frozenset(name for name, field in fields.items() if field.is_required())
    made = tuple(
        (name, cast(Callable[[], Any], one.default_factory)) for name, one in fields.items() if one.default_factory
    )
    shape = _Shape({name: field.default for name, field in fields.items()}, len(fields), required, made, set(fields))
    _shapes[kind] = shape
    return shape


def share_field_sets(kept: FrozenModel) -> None:
    """Let an object that is kept, and those in it, share equal `model_fields_set` with others, to save memory."""
    # A set of its own for each object took a third of the memory of a long session. Copies get their own before it
    # changes.
    given = kept.__pydantic_fields_set__
    object.__setattr__(kept, "__pydantic_fields_set__", _field_sets.setdefault(frozenset(given), given))
    for value in kept.__dict__.values():
        if isinstance(value, FrozenModel):
            share_field_sets(value)
        elif isinstance(value, tuple):
            for item in cast(tuple[object, ...], value):
                if isinstance(item, FrozenModel):
                    share_field_sets(item)


def unbuilt_models() -> Iterator[type[FrozenModel]]:
    """Yield the kinds of data without a validator yet. `model_rebuild` builds one, which its first use would do."""
    kinds = [FrozenModel]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if not kind.__pydantic_complete__:
            yield kind


class TextBlock(FrozenModel):
    """Plain text."""

    type: Literal["text"] = "text"
    text: str


class ImageBlock(FrozenModel):
    """An image, base64-encoded."""

    type: Literal["image"] = "image"
    media_type: str
    data: str
    thumbnail: str = ""
    """A small copy for the screen, never sent to the model: width, `x`, height, `:`, and its RGB bytes in base64; empty
    if there is none."""
    name: str = ""
    """Name of the file that the user attached; empty if it is not known."""


class DocumentBlock(FrozenModel):
    """A file, or a part of one: a PDF, or text that the user attached to a message."""

    type: Literal["document"] = "document"
    media_type: Literal["application/pdf", "text/plain"]
    data: str
    """A PDF in base64, or the text itself."""
    name: str = ""
    """Name of the file, with the lines if it is a part: `src/price.py:10-40`."""
    pages: int = 0
    """Pages of a PDF; 0 if they are not known."""

    @property
    def is_text(self) -> bool:
        """True if `data` is plain text."""
        return self.media_type == "text/plain"

    @property
    def label(self) -> str:
        """The document in one line, in place of its content."""
        if self.is_text:
            return f"[{self.name}]"
        pages = {0: "", 1: ", 1 page"}.get(self.pages, f", {self.pages:,} pages")
        return f"[PDF {self.name}{pages}]"


class ThinkingBlock(FrozenModel):
    """The model's reasoning, with the signature that must be sent back unchanged."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str = ""
    redacted: str | None = None
    """Encrypted reasoning that must be sent back unchanged; `thinking` is then empty."""


class ToolCall(FrozenModel):
    """One call by the model; its result has the same `id` (S4-87)."""

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: JsonObject = Field(default_factory=dict)
    """Parsed arguments; empty when `malformed` is set."""
    malformed: str | None = None
    """Error if the arguments are not a valid JSON object, else None."""
    cut: bool = False
    """True if the message hit the output limit: the arguments may be incomplete, and the call never runs."""


TERMINAL_OUTPUT = "terminal_output"
"""Key in the details of a result: true if its text is the output of a program, with its colours."""

UserBlock = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]
AssistantBlock = Annotated[TextBlock | ThinkingBlock | ToolCall, Field(discriminator="type")]


class Usage(FrozenModel):
    """Tokens of one response, or a sum of several."""

    input_tokens: int = 0
    """Input tokens, without cache reads and writes."""
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
        """All input tokens of this response, cache included: the fill of the model's window."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


UserKind = Literal["prompt", "steer", "follow_up", "notice", "command"]
"""Source of a user message. A `notice` is by tui-agent, not by the user; a `command` contains the output of a command
that the user ran."""


class UserMessage(FrozenModel):
    """A message to the model by the user or, as `notice`, by tui-agent."""

    role: Literal["user"] = "user"
    content: tuple[UserBlock, ...]
    id: str = Field(default_factory=lambda: new_id("msg"))
    kind: UserKind = "prompt"
    timestamp: int = Field(default_factory=now_ms)
    """Time of creation in milliseconds since the epoch."""

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return joined_text(self.content)

    @property
    def is_from_user(self) -> bool:
        """True if the user wrote it, False for notices and outputs of commands."""
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
    """The one result of one call (S0-41)."""

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

    @property
    def is_terminal_output(self) -> bool:
        """True if the text is the output of a program; a model gets it without control sequences."""
        return self.details is not None and self.details.get(TERMINAL_OUTPUT) is True


Message = Annotated[UserMessage | AssistantMessage | ToolResultMessage, Field(discriminator="role")]


DroppedContent = Literal["media", "thinking"]
"""Parts of messages that can be dropped: pictures and PDF files, or reasoning."""


def has_content(message: Message, kind: DroppedContent) -> bool:
    """True if a message has parts that `without` drops."""
    return any(_is_of_kind(block, kind) for block in message.content)


def without(message: Message, kind: DroppedContent) -> Message:
    """Return the message without its pictures and PDF files, each replaced by a line of text, or without reasoning.

    Reasoning alone becomes a text, because no message may be empty.
    """
    kept = [_dropped_line(block) if _is_of_kind(block, kind) else block for block in message.content]
    content = tuple(block for block in kept if block is not None) or (TextBlock(text=NO_ANSWER),)
    return message.model_copy(update={"content": content})


NO_ANSWER = "(no answer)"
"""Text of an answer whose reasoning was dropped and that has nothing else."""


def _is_of_kind(block: UserBlock | AssistantBlock, kind: DroppedContent) -> bool:
    if kind == "thinking":
        return isinstance(block, ThinkingBlock)
    return isinstance(block, ImageBlock) or (isinstance(block, DocumentBlock) and not block.is_text)


def _dropped_line(block: UserBlock | AssistantBlock) -> TextBlock | None:
    """Return the line in place of a part; None for reasoning."""
    if isinstance(block, ImageBlock):
        what = f"image {block.name or block.media_type}"
    elif isinstance(block, DocumentBlock):
        what = block.label.strip("[]")
    else:
        return None
    return TextBlock(text=f"[{what} was removed, because the model's server refused it]")


def user_message(text: str, kind: UserKind = "prompt") -> UserMessage:
    """Return a user message with one text block."""
    return UserMessage(content=(TextBlock(text=text),), kind=kind)


_UNCLAIMED = "msg_unclaimed"


def unclaimed_notice(call_id: str, text: str) -> UserMessage:
    """Return a notice about a call that ran although no response contains it; its id names the call."""
    return UserMessage(id=f"{new_id(_UNCLAIMED)}_{call_id}", content=(TextBlock(text=text),), kind="notice")


def unclaimed_call(message_id: str) -> str | None:
    """Return the call of the notice with this id; None if it is another message."""
    found = message_id.split("_", 3)
    return found[3] if len(found) > 3 and message_id.startswith(f"{_UNCLAIMED}_") else None


LOST_MESSAGE = "(A part of this conversation is not available here.)"
"""Text of the notice in place of a lost user message."""


def lost_message_notice(answer: AssistantMessage, message_id: str) -> UserMessage:
    """Return a notice in place of the lost user message before an answer."""
    return UserMessage(
        id=message_id, content=(TextBlock(text=LOST_MESSAGE),), kind="notice", timestamp=answer.timestamp
    )


def joined_text(content: tuple[FrozenModel, ...]) -> str:
    """Return the text blocks of `content`, joined by newlines."""
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


MAX_NESTING = 100
"""Maximum nesting of lists and objects in arguments; deeper values cannot be published or saved."""

TOO_DEEP = f"arguments are nested more than {MAX_NESTING} levels deep"
"""Error for arguments that are nested deeper."""


def nests_deeper(value: object, levels: int = MAX_NESTING) -> bool:
    """True if lists and objects are nested more than `levels` deep."""
    if is_object(value):
        return levels <= 0 or any(nests_deeper(inner, levels - 1) for inner in value.values())
    if is_array(value):
        return levels <= 0 or any(nests_deeper(inner, levels - 1) for inner in value)
    return False


def parse_tool_call(call_id: str, name: str, raw: str) -> ToolCall:
    """Parse the argument text of a call; never raises.

    Empty or blank text is a call without arguments; a JSON string that contains an object is unwrapped. Anything else
    that is not a JSON object leaves `arguments` empty and sets `malformed` to the error.
    """
    if not raw.strip():
        return ToolCall(id=call_id, name=name)
    try:
        value: object = _read(raw)
        if isinstance(value, str):
            # Some models encode their arguments twice.
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
    # Only an escape can express half a pair in plain text.
    if not (raw.isascii() and "\\u" not in raw) and not _is_encodable(value):
        return ToolCall(id=call_id, name=name, malformed="arguments contain half a surrogate pair (invalid text)")
    return ToolCall(id=call_id, name=name, arguments=value)


def _read(text: str) -> Any:
    """Parse a JSON text strictly: by default Python also accepts NaN, Infinity and floats that overflow."""
    return json.loads(text, parse_constant=_unknown_number, parse_float=_finite_number)


def _is_encodable(value: JsonObject) -> bool:
    """True if the value can be encoded as UTF-8; JSON escapes can express lone surrogates, which UTF-8 cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _unknown_number(constant: str) -> float:
    raise ValueError(f"{constant} is not a JSON value")


def _finite_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text} is too large")
    return number
