"""Request bodies, which reuse the JSON of earlier requests.

A request consists of tools, stable system parts, other system parts, and the conversation. Cache marks follow the first
two and are on the last two user turns, so that the next request finds the prefix of this one in the cache (S4-32).
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Literal, TypeAlias

from tui_agent.protocol.endpoint import BUILT_FIELDS
from tui_agent.protocol.messages import AssistantMessage, JsonObject, Message, ToolResultMessage
from tui_agent.protocol.provider import ModelRequest, SystemPart, ThinkingForm
from tui_agent.protocol.tool import ToolSpec

from .model_catalog import takes_xhigh
from .refused_fields import ANSWER_FORMAT, BETA_FIELD, CACHE_CONTROL, CACHE_LIFETIME, IS_ERROR, SYSTEM_BLOCKS
from .wire_blocks import answer_format, blocks_of, encode

CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'
"""Replacement for a block's closing brace: the prompt cache may end after this block."""
HOUR_MARK = b',"cache_control":{"type":"ephemeral","ttl":"1h"}}'
"""The same for a cache that is kept for an hour."""

_MARKED_TURNS = 2
"""User turns with a cache mark: the newest, and the one that was the newest in the request before."""

_Role: TypeAlias = Literal["user", "assistant"]

ThinkingMode: TypeAlias = Literal["default", "adaptive", "disabled"]
"""Reasoning setting of a request without a budget; with `default` the request has none, and the model decides."""

CacheSetting: TypeAlias = bool | Literal["1h"]
"""Use of the prompt cache: none, for five minutes, or for an hour."""

_ABOUT_ANSWER = ("max_tokens", "stream", "temperature")

_LEAST_BUDGET = 1_024
EFFORTS = ((2_048, "low"), (8_192, "medium"), (24_576, "high"), (40_960, "xhigh"))
"""Largest budget in tokens for each effort, for models that take no budget; `max` beyond."""

_CONVERSATIONS = 16
"""Conversations to remember: the main one and those of sub-agents."""


@dataclass(frozen=True, slots=True)
class _Rendered:
    """A message and its blocks as JSON."""

    message: Message
    role: _Role
    blocks: tuple[bytes, ...]

    @property
    def is_result(self) -> bool:
        return isinstance(self.message, ToolResultMessage)


@dataclass(slots=True)
class _Turn:
    """Adjacent messages of one role, which the API wants as one message."""

    role: _Role
    parts: list[_Rendered]
    covers: list[Message]
    """The messages of this turn, including those without any block."""

    def to_json(self, mark: bytes = b"") -> bytes:
        """Return the turn as JSON with a cache mark; tool results come first in it, as the API demands."""
        parts = sorted(self.parts, key=lambda part: not part.is_result) if len(self.parts) > 1 else self.parts
        blocks = [block for part in parts for block in part.blocks]
        if mark:
            blocks[-1] = with_mark(blocks[-1], mark)
        return b'{"role":"' + self.role.encode() + b'","content":[' + b",".join(blocks) + b"]}"


@dataclass(slots=True)
class WireConversation:
    """One conversation as the `messages` array of requests; each message is encoded only once.

    Turns that no later message can change are kept as bytes. Only the last turns are built anew for each request,
    because the cache marks move with the end of the conversation. Any other change than growth makes it start over.
    """

    mark: bytes = CACHE_MARK
    """Cache mark of the last user turns; empty for none."""
    without: frozenset[str] = frozenset()
    """Fields and kinds of blocks to leave out."""
    _closed: bytearray = field(default_factory=bytearray)
    """Complete turns, each followed by a comma."""
    _covered: list[Message] = field(default_factory=list[Message])
    """The messages in `_closed`."""
    _call_ids: set[str] = field(default_factory=set[str])
    """Ids of the calls in `_covered`."""
    _open: dict[str, _Rendered] = field(default_factory=dict[str, _Rendered])
    """Messages after `_covered`, by id."""

    def to_json(self, messages: Sequence[Message]) -> list[bytes | bytearray]:
        """Return the elements of the `messages` array with their commas, in pieces to be joined at once."""
        turns = self._open_turns(messages)
        users = [index for index, turn in enumerate(turns) if turn.role == "user"][-_MARKED_TURNS:]
        # Before the last two user turns no mark comes or goes, so these bytes are final.
        closing = users[0] if len(users) == _MARKED_TURNS else 0
        for turn in turns[:closing]:
            self._close(turn)
        tail = [
            turn.to_json(self.mark if index in users else b"") for index, turn in enumerate(turns[closing:], closing)
        ]
        return [self._closed, b",".join(tail)]

    def unsent(self, messages: Sequence[Message]) -> int:
        """Return the number of messages that are not kept as bytes yet."""
        return len(messages) - len(self._covered)

    def call_lookup(self) -> Callable[[str], bool]:
        """Return a function that returns True if a call in the last messages has the given id."""
        late = {call_id for part in self._open.values() for call_id in _call_ids(part.message)}
        return lambda call_id: call_id in late or call_id in self._call_ids

    def _open_turns(self, messages: Sequence[Message]) -> list[_Turn]:
        """Return the turns after those kept as bytes; all turns if the kept bytes no longer match the messages."""
        # By identity: messages never change, and comparing their texts would cost as much as encoding them.
        if len(messages) >= len(self._covered) and all(map(is_, self._covered, messages)):
            turns = list(self._turns(messages[len(self._covered) :]))
            # After a rewind the marks may belong into the kept bytes.
            fits = sum(turn.role == "user" for turn in turns) >= _MARKED_TURNS and turns[0].role == "user"
            if fits or not self._covered:
                return turns
        self._start_over()
        return list(self._turns(messages))

    def _turns(self, messages: Iterable[Message]) -> Iterator[_Turn]:
        """Yield the messages grouped by role; a message without blocks joins its neighbour's group."""
        turn: _Turn | None = None
        waiting: list[Message] = []
        for message in messages:
            part = self._render(message)
            if turn is None and not part.blocks:
                waiting.append(message)
            elif turn is None or (part.blocks and part.role != turn.role):
                if turn is not None:
                    yield turn
                turn = _Turn(part.role, [part], [*waiting, message])
                waiting = []
            else:
                turn.covers.append(message)
                if part.blocks:
                    turn.parts.append(part)
        if turn is not None:
            yield turn

    def _render(self, message: Message) -> _Rendered:
        known = self._open.get(message.id)
        # The id is not enough: a compaction shortens a result under its id.
        if known is not None and known.message is message:
            return known
        role: _Role = "assistant" if isinstance(message, AssistantMessage) else "user"
        rendered = _Rendered(message, role, tuple(encode(block) for block in self._blocks(message)))
        self._open[message.id] = rendered
        return rendered

    def _blocks(self, message: Message) -> list[JsonObject]:
        blocks = blocks_of(message)
        if IS_ERROR in self.without:
            for block in blocks:
                block.pop(IS_ERROR, None)
        return blocks

    def _close(self, turn: _Turn) -> None:
        self._closed += turn.to_json() + b","
        for message in turn.covers:
            self._covered.append(message)
            self._open.pop(message.id, None)
            self._call_ids.update(_call_ids(message))

    def _start_over(self) -> None:
        self._closed.clear()
        self._covered.clear()
        self._call_ids.clear()
        self._open.clear()


def countable(body: bytes) -> bytes:
    """Return the request for counting the tokens of a request: without the fields about the answer."""
    fields: JsonObject = json.loads(body)
    return encode({name: value for name, value in fields.items() if name not in _ABOUT_ANSWER})


def with_mark(block: bytes, mark: bytes) -> bytes:
    """Return the JSON of a block with a cache mark."""
    return block[:-1] + mark


def _call_ids(message: Message) -> list[str]:
    return [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Settings that all requests of one provider share."""

    model: str
    max_tokens: int
    thinking: ThinkingMode = "default"
    thinking_form: ThinkingForm = "adaptive"
    cache: CacheSetting = True
    """Send cache marks; turn it off for servers that do not know the field."""
    drop: frozenset[str] = frozenset()
    """Fields to leave out because the endpoint refuses them."""
    betas: tuple[str, ...] = ()
    """Values of the header `anthropic-beta`."""
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    """More fields of each request, which replace those of the same name."""


class RequestBuilder:
    """Builder of request bodies, which caches the JSON of each conversation."""

    def __init__(self, settings: RequestSettings) -> None:
        self._settings = settings
        self._conversations: OrderedDict[str, WireConversation] = OrderedDict()
        self._tools: tuple[tuple[ToolSpec, ...], bytes, bytes] = ((), b"", b"")
        self._system: tuple[tuple[SystemPart, ...], bytes, bytes] = ((), b"", b"")

    def build(self, request: ModelRequest) -> bytes:
        """Return the body of a streaming request, as UTF-8 JSON."""
        drop = self._settings.drop
        mark = self._mark(request)
        limits = {name: value for name, value in self._limits(request).items() if name not in drop}
        fields = [_field("model", self._settings.model), *(_field(name, value) for name, value in limits.items())]
        tools = [self._tools_json(request.tools, mark)] if request.tools else []
        # Behind the mark, so that requests with and without searches share the tools in the cache.
        tools += [encode(_search_tool(request.web_searches))] if request.web_searches else []
        if tools and "tools" not in drop:
            fields.append(b'"tools":[' + b",".join(tools) + b"]")
        if SYSTEM_BLOCKS in drop:
            text = "\n\n".join(part.text for part in _in_order(request.system))
            fields += [_field("system", text)] if text else []
        elif (system := self._system_json(request.system, mark)) and "system" not in drop:
            fields.append(b'"system":[' + system + b"]")
        conversation = self._conversation(request.conversation_id)
        conversation.mark = mark
        messages = conversation.to_json(request.messages)
        return b"".join([b"{", b",".join(fields), b',"messages":[', *messages, b"]}"])

    def optional_fields(self, request: ModelRequest) -> frozenset[str]:
        """Return the fields and kinds of blocks that a request has and could do without."""
        found = {name for name in self._limits(request) if name not in BUILT_FIELDS}
        found |= {ANSWER_FORMAT} if self._answer_format(request) else set()
        found |= {BETA_FIELD} if self._settings.betas else set()
        mark = self._mark(request)
        found |= {CACHE_CONTROL} if mark else set()
        found |= {CACHE_LIFETIME} if mark == HOUR_MARK else set()
        found |= {SYSTEM_BLOCKS} if request.system else set()
        for message in request.messages:
            if isinstance(message, ToolResultMessage) and message.is_error:
                found.add(IS_ERROR)
        return frozenset(found - self._settings.drop)

    @property
    def settings(self) -> RequestSettings:
        """Settings of the next request; another value after `leave_out`."""
        return self._settings

    def leave_out(self, fields: frozenset[str]) -> None:
        """Build requests without these fields from now on, and with all others."""
        self._settings = replace(self._settings, drop=fields)
        # The kept bytes contain what is left out from now on.
        self._conversations.clear()

    def _mark(self, request: ModelRequest) -> bytes:
        """Return the cache mark of a request; empty for none."""
        settings = self._settings
        if not settings.cache or not request.cache or CACHE_CONTROL in settings.drop:
            return b""
        return HOUR_MARK if settings.cache == "1h" and CACHE_LIFETIME not in settings.drop else CACHE_MARK

    def unsent(self, request: ModelRequest) -> int:
        """Return the number of messages that `build` would have to encode."""
        return self._conversation(request.conversation_id).unsent(request.messages)

    def call_lookup(self, conversation_id: str) -> Callable[[str], bool]:
        """Return a function that returns True if a call in the last built conversation has the given id."""
        return self._conversation(conversation_id).call_lookup()

    def _limits(self, request: ModelRequest) -> JsonObject:
        """Return the fields that are neither prompt nor model."""
        fields: JsonObject = {"max_tokens": request.max_tokens or self._settings.max_tokens, "stream": True}
        if request.temperature is not None:
            fields["temperature"] = request.temperature
        # After the limit, which a budget for reasoning raises.
        fields |= self._thinking_fields(request.thinking_tokens, fields["max_tokens"])
        if answer := self._answer_format(request):
            fields["output_config"] = {**fields.get("output_config", {}), **answer}
        return fields | dict(self._settings.extra)

    def _answer_format(self, request: ModelRequest) -> JsonObject:
        is_dropped = ANSWER_FORMAT in self._settings.drop
        return {} if is_dropped else answer_format(self._settings.model, request.answer_schema)

    def _thinking_fields(self, budget: int | None, max_tokens: int) -> JsonObject:
        settings = self._settings
        if settings.thinking_form == "none":
            return {}
        if budget is None:
            return {} if settings.thinking == "default" else {"thinking": {"type": settings.thinking}}
        if settings.thinking_form == "budget":
            return {} if "thinking" in settings.drop else _budget_fields(budget, max_tokens)
        has_xhigh = takes_xhigh(settings.model)
        return _effort_fields(budget, can_stop=settings.thinking_form == "adaptive", has_xhigh=has_xhigh)

    def _tools_json(self, tools: tuple[ToolSpec, ...], mark: bytes) -> bytes:
        # The tools seldom change between requests, and their schemas are long.
        if self._tools[:2] != (tools, mark):
            encoded = [encode(tool.model_dump(mode="json")) for tool in tools]
            self._tools = (tools, mark, b",".join(_marked(encoded, len(encoded), mark)))
        return self._tools[2]

    def _system_json(self, system: tuple[SystemPart, ...], mark: bytes) -> bytes:
        if self._system[:2] != (system, mark):
            parts = _in_order(system)
            encoded = [encode({"type": "text", "text": part.text}) for part in parts]
            stable = sum(part.stable for part in parts)
            self._system = (system, mark, b",".join(_marked(encoded, stable, mark)))
        return self._system[2]

    def _conversation(self, conversation_id: str) -> WireConversation:
        conversation = self._conversations.get(conversation_id)
        if conversation is None:
            conversation = WireConversation(without=self._settings.drop)
            self._conversations[conversation_id] = conversation
            if len(self._conversations) > _CONVERSATIONS:
                self._conversations.popitem(last=False)
        self._conversations.move_to_end(conversation_id)
        return conversation


def _in_order(system: Iterable[SystemPart]) -> list[SystemPart]:
    """Return the parts with text, stable ones first."""
    return sorted((part for part in system if part.text.strip()), key=lambda part: not part.stable)


def _search_tool(most: int) -> JsonObject:
    """Return the endpoint's own tool, with which the model searches the web up to `most` times."""
    return {"type": "web_search_20250305", "name": "web_search", "max_uses": most}


def _marked(blocks: list[bytes], count: int, mark: bytes) -> list[bytes]:
    """Return the blocks with a cache mark, unless that is empty, on the last of the first `count`."""
    if count and mark:
        blocks[count - 1] = with_mark(blocks[count - 1], mark)
    return blocks


def _budget_fields(budget: int, max_tokens: int) -> JsonObject:
    """Return the fields for reasoning by budget; the API wants it to be smaller than the answer's limit."""
    if budget <= 0:
        return {"thinking": {"type": "disabled"}}
    # The API refuses smaller ones.
    budget = max(budget, _LEAST_BUDGET)
    return {
        "thinking": {"type": "enabled", "budget_tokens": budget},
        "max_tokens": max(max_tokens, budget + _LEAST_BUDGET),
    }


def _effort_fields(budget: int, *, can_stop: bool, has_xhigh: bool) -> JsonObject:
    """Return the fields for reasoning by effort, for models that do not take a budget."""
    if budget <= 0 and can_stop:
        return {"thinking": {"type": "disabled"}}
    effort = next((name for limit, name in EFFORTS if budget <= limit), "max")
    if effort == "xhigh" and not has_xhigh:
        effort = "high"
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}


def _field(name: str, value: object) -> bytes:
    return encode({name: value})[1:-1]
