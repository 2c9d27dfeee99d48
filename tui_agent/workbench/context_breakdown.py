"""Token use of the model's window, part by part."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tui_agent.context.compaction import condensed
from tui_agent.context.history import ConversationHistory
from tui_agent.context.tokens import estimate_content, estimate_message, estimate_text
from tui_agent.protocol.messages import AssistantMessage, ToolCall, ToolResultMessage
from tui_agent.protocol.tool import Tool


@dataclass(frozen=True, slots=True)
class CallShare:
    """Tokens of one call and its result."""

    call_id: str
    tool_name: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextBreakdown:
    """Tokens by part, estimated from characters; see `scaled_to`."""

    layers: tuple[tuple[str, int], ...]
    """Name and tokens of each layer of the system prompt, in order."""
    tools: tuple[tuple[str, int], ...]
    """Name and tokens of each tool's definition, in order."""
    user: int
    """User messages."""
    assistant: int
    """The model's text and thinking, without its calls."""
    condensed: int
    """Messages that replace condensed parts."""
    calls: tuple[CallShare, ...]
    """Each call with its result, largest first."""
    known_total: int = 0
    """The whole, if it is known better than as the sum of the parts."""

    @property
    def by_tool(self) -> tuple[tuple[str, int], ...]:
        """Tokens of the calls and results of each tool, largest first."""
        sums: Counter[str] = Counter()
        for call in self.calls:
            sums[call.tool_name] += call.tokens
        return tuple(sums.most_common())

    @property
    def total(self) -> int:
        """Tokens of the whole context."""
        if self.known_total:
            return self.known_total
        parts = sum(tokens for _, tokens in (*self.layers, *self.tools))
        return parts + self.user + self.assistant + self.condensed + sum(call.tokens for call in self.calls)

    def scaled_to(self, tokens: int) -> "ContextBreakdown":
        """Return the parts with `tokens` as their sum, which is what the status line shows; unchanged for 0."""
        if not tokens or not self.total:
            return self
        share = tokens / self.total

        def scaled(parts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
            return tuple((name, round(size * share)) for name, size in parts)

        return ContextBreakdown(
            layers=scaled(self.layers),
            tools=scaled(self.tools),
            user=round(self.user * share),
            assistant=round(self.assistant * share),
            condensed=round(self.condensed * share),
            calls=tuple(replace(call, tokens=round(call.tokens * share)) for call in self.calls),
            known_total=tokens,
        )


def context_breakdown(history: ConversationHistory, tools: Iterable[Tool] = ()) -> ContextBreakdown:
    """Estimate the tokens of everything that the next request sends; linear time."""
    spoken: Counter[str] = Counter()
    names: dict[str, str] = {}
    sizes: Counter[str] = Counter()
    for message in history.messages():
        match message:
            case AssistantMessage():
                spoken["assistant"] += estimate_content(
                    block for block in message.content if not isinstance(block, ToolCall)
                )
                for call in message.tool_calls:
                    names[call.id] = call.name
                    sizes[call.id] += estimate_content((call,))
            case ToolResultMessage():
                names.setdefault(message.call_id, message.tool_name)
                sizes[message.call_id] += estimate_message(message)
            case _:
                spoken["user" if condensed(message) is None else "condensed"] += estimate_message(message)
    return ContextBreakdown(
        layers=tuple((layer.name, estimate_text(layer.text)) for layer in history.registry.layers("system")),
        tools=tuple((tool.name, estimate_text(tool.spec.model_dump_json())) for tool in tools),
        user=spoken["user"],
        assistant=spoken["assistant"],
        condensed=spoken["condensed"],
        calls=tuple(CallShare(call_id, names[call_id], size) for call_id, size in sizes.most_common()),
    )
