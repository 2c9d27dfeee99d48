"""Request bodies, which reuse the JSON of earlier requests.

A request consists of tools, stable system parts, other system parts, and the conversation. Cache marks follow the first
two and are on the last two user turns, so that the next request finds the prefix of this one in the cache (S4-32).
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.provider import ModelRequest, SystemPart
from tui_agent.protocol.tool import ToolSpec

from .model_table import ThinkingForm
from .wire_blocks import encode
from .wire_conversation import WireConversation, with_mark

ThinkingMode: TypeAlias = Literal["default", "adaptive", "disabled"]
"""Reasoning setting of a request without a budget; with `default` the request has none, and the model decides."""

_LEAST_BUDGET = 1_024
_EFFORTS = ((2_048, "low"), (8_192, "medium"), (24_576, "high"))
"""Largest budget in tokens for each effort, for models that take no budget; `max` beyond."""

_CONVERSATIONS = 16
"""Conversations to remember: the main one and those of sub-agents."""


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Settings that all requests of one provider share."""

    model: str
    max_tokens: int
    thinking: ThinkingMode = "default"
    thinking_form: ThinkingForm = "adaptive"
    cache: bool = True
    """Send cache marks; turn it off for servers that do not know the field."""


class RequestBuilder:
    """Builder of request bodies, which caches the JSON of each conversation."""

    def __init__(self, settings: RequestSettings) -> None:
        self._settings = settings
        self._conversations: OrderedDict[str, WireConversation] = OrderedDict()
        self._tools: tuple[tuple[ToolSpec, ...], bool, bytes] = ((), True, b"")
        self._system: tuple[tuple[SystemPart, ...], bool, bytes] = ((), True, b"")

    def build(self, request: ModelRequest) -> bytes:
        """Return the body of a streaming request, as UTF-8 JSON."""
        limits, cache = self._limits(request), self._settings.cache and request.cache
        fields = [_field("model", self._settings.model), *(_field(name, value) for name, value in limits.items())]
        if request.tools:
            fields.append(b'"tools":[' + self._tools_json(request.tools, cache) + b"]")
        system = self._system_json(request.system, cache)
        if system:
            fields.append(b'"system":[' + system + b"]")
        conversation = self._conversation(request.conversation_id)
        conversation.marks = cache
        messages = conversation.to_json(request.messages)
        return b"".join([b"{", b",".join(fields), b',"messages":[', *messages, b"]}"])

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
        budget = request.thinking_tokens
        if budget is None:
            if self._settings.thinking != "default":
                fields["thinking"] = {"type": self._settings.thinking}
        elif self._settings.thinking_form == "budget":
            fields |= _budget_fields(budget, fields["max_tokens"])
        else:
            fields |= _effort_fields(budget, can_stop=self._settings.thinking_form == "adaptive")
        return fields

    def _tools_json(self, tools: tuple[ToolSpec, ...], cache: bool) -> bytes:
        if self._tools[:2] != (tools, cache):
            encoded = [encode(tool.model_dump(mode="json")) for tool in tools]
            self._tools = (tools, cache, b",".join(_marked(encoded, len(encoded) if cache else 0)))
        return self._tools[2]

    def _system_json(self, system: tuple[SystemPart, ...], cache: bool) -> bytes:
        if self._system[:2] != (system, cache):
            parts = sorted((part for part in system if part.text.strip()), key=lambda part: not part.stable)
            encoded = [encode({"type": "text", "text": part.text}) for part in parts]
            stable = sum(part.stable for part in parts) if cache else 0
            self._system = (system, cache, b",".join(_marked(encoded, stable)))
        return self._system[2]

    def _conversation(self, conversation_id: str) -> WireConversation:
        conversation = self._conversations.get(conversation_id)
        if conversation is None:
            conversation = self._conversations[conversation_id] = WireConversation()
            if len(self._conversations) > _CONVERSATIONS:
                self._conversations.popitem(last=False)
        self._conversations.move_to_end(conversation_id)
        return conversation


def _marked(blocks: list[bytes], count: int) -> list[bytes]:
    """Return the blocks with a cache mark on the last of the first `count`."""
    if count:
        blocks[count - 1] = with_mark(blocks[count - 1])
    return blocks


def _budget_fields(budget: int, max_tokens: int) -> JsonObject:
    """Return the fields for reasoning by budget; the API wants it to be smaller than the answer's limit."""
    if budget <= 0:
        return {"thinking": {"type": "disabled"}}
    budget = max(budget, _LEAST_BUDGET)
    return {
        "thinking": {"type": "enabled", "budget_tokens": budget},
        "max_tokens": max(max_tokens, budget + _LEAST_BUDGET),
    }


def _effort_fields(budget: int, *, can_stop: bool) -> JsonObject:
    """Return the fields for reasoning by effort, for models that do not take a budget."""
    if budget <= 0 and can_stop:
        return {"thinking": {"type": "disabled"}}
    effort = next((name for limit, name in _EFFORTS if budget <= limit), "max")
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}


def _field(name: str, value: object) -> bytes:
    return encode({name: value})[1:-1]
