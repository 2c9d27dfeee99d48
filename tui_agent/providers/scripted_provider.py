"""A model that plays a script, for tests, examples and front ends.

```python
provider = ScriptedProvider(
    [
        reply("Let me look.", call("read", path="a.py")),
        "It says hello.",
    ]
)
```
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import NoneType
from typing import TypeAlias, get_args

from tui_agent.protocol.errors import ProviderError, ProviderErrorKind
from tui_agent.protocol.messages import JsonObject, StopReason, ThinkingBlock, ToolCall, Usage, parse_tool_call
from tui_agent.protocol.provider import (
    ModelInfo,
    ModelRequest,
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
)
from tui_agent.protocol.value_checks import expect_choice, expect_items, expect_kind


@dataclass(frozen=True, slots=True)
class Say:
    """A block of text."""

    text: str
    piece: int | None = None
    """Characters per delta; None: all at once."""


@dataclass(frozen=True, slots=True)
class Think:
    """A block of reasoning."""

    text: str
    signature: str = "signature"
    redacted: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call."""

    name: str
    arguments: JsonObject
    call_id: str | None = None
    """Id of the call; None: `call_1`, `call_2` and so on, counted by the provider."""
    raw: str | None = None
    """Argument text instead of `arguments`, such as invalid JSON."""
    cut: bool = False
    """True if the output limit cut the call."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause of the stream until the test sets `gate`."""

    gate: asyncio.Event
    reached: asyncio.Event | None = None
    """Set when the stream reaches the pause."""


@dataclass(frozen=True, slots=True)
class Fail:
    """A failure in the middle of the stream."""

    error: ProviderError


Part: TypeAlias = Say | Think | Call | Wait | Fail


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    parts: tuple[Part, ...]
    stop_reason: StopReason | None = None
    """None: `tool_use` if there are calls, else `end_turn`."""
    usage: Usage = field(default_factory=lambda: Usage(input_tokens=10, output_tokens=5))


Step: TypeAlias = Reply | Part | str | Callable[[ModelRequest], "Reply | Part | str"]
"""One answer, or a function that returns it for a request; plain text is an answer of one block."""


def reply(*parts: Part | str, stop_reason: StopReason | None = None, usage: Usage | None = None) -> Reply:
    """Return an answer of several blocks; plain text is a text block.

    Default of `stop_reason`: `tool_use` if there are calls, else `end_turn`; of `usage`: 10 input and 5 output tokens.

    Raises:
        ConfigurationError: a part, the reason or the usage is of the wrong kind.
    """
    expect_items("the parts of a reply", parts, _expect_part, "blocks")
    if stop_reason is not None:
        expect_choice("stop_reason", stop_reason, get_args(StopReason))
    expect_kind("the usage of a reply", usage, (Usage, NoneType), "a Usage or None")
    blocks = tuple(Say(part) if isinstance(part, str) else part for part in parts)
    return Reply(blocks, stop_reason, usage) if usage is not None else Reply(blocks, stop_reason)


def call(name: str, /, **arguments: object) -> Call:
    """Return a tool call with these arguments.

    To set the id or invalid argument text, create a `tui_agent.providers.Call`.

    Raises:
        ConfigurationError: the name is not text.
    """
    expect_kind("the name of a call", name, str, "text")
    return Call(name, arguments)


def fail(
    kind: ProviderErrorKind = "overloaded",
    message: str = "the scripted model failed",
    *,
    status: int | None = None,
    retry_after: float | None = None,
) -> Fail:
    """Return an error for this position in the stream; the arguments are those of `ProviderError`.

    Raises:
        ConfigurationError: the kind is not one of `ProviderError`'s.
    """
    return Fail(ProviderError(message, kind=kind, status=status, retry_after=retry_after))


class ScriptedProvider:
    """Provider that plays one step per request. Implements `protocol.provider.ModelProvider`."""

    def __init__(self, steps: Iterable[Step] = (), *, model: ModelInfo | None = None) -> None:
        """Store the script; without facts about the model, it is named `scripted-model`.

        Raises:
            ConfigurationError: `steps` is not a list of answers, or `model` is not a ModelInfo.
        """
        expect_kind("ScriptedProvider.model", model, (ModelInfo, NoneType), "a ModelInfo or None")
        self.model: ModelInfo = model or ModelInfo("scripted-model")
        self.requests: list[ModelRequest] = []
        self.closed_early = 0
        """Number of streams that were closed before their end."""
        self.prepared = 0
        self.closed = False
        self._steps: list[Step] = list(expect_items("ScriptedProvider.steps", steps, _expect_step, _STEPS))
        self._calls = 0

    @property
    def left(self) -> int:
        """Number of steps not played yet."""
        return len(self._steps)

    def add(self, *steps: Step) -> None:
        """Append to the script.

        Raises:
            ConfigurationError: a step is not an answer.
        """
        self._steps += expect_items("the steps", steps, _expect_step, _STEPS)

    async def prepare(self) -> None:
        self.prepared += 1

    async def aclose(self) -> None:
        self.closed = True

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Play the next step.

        Raises:
            ProviderError: the script contains it, or has no step left.
        """
        self.requests.append(request)
        answer = self._next(request)
        ended = False
        try:
            yield StreamStarted(self.model.name, Usage(input_tokens=answer.usage.input_tokens))
            for block, part in enumerate(answer.parts):
                if isinstance(part, Wait):
                    if part.reached is not None:
                        part.reached.set()
                    await part.gate.wait()
                elif isinstance(part, Fail):
                    ended = True
                    raise part.error
                else:
                    for event in self._events(block, part):
                        yield event
            ended = True
            yield UsageReported(answer.usage)
            yield StreamEnded(answer.stop_reason or _stop_reason(answer))
        finally:
            self.closed_early += not ended

    def _next(self, request: ModelRequest) -> Reply:
        if not self._steps:
            raise ProviderError("the script has no answer left", kind="unavailable")
        step = self._steps.pop(0)
        if not callable(step):
            return step if isinstance(step, Reply) else reply(step)
        answer = step(request)
        _expect_answer("what a function of the script returns", answer)
        return answer if isinstance(answer, Reply) else reply(answer)

    def _events(self, block: int, part: Say | Think | Call) -> Iterator[StreamEvent]:
        match part:
            case Say(text, piece):
                for start in range(0, len(text), piece or max(len(text), 1)):
                    yield TextDelta(text[start : start + (piece or len(text))], block)
            case Think(text, signature, redacted):
                if text:
                    yield ThinkingDelta(text, block)
                thinking = ThinkingBlock(thinking=text, signature=signature, redacted=redacted)
                yield ThinkingEnded(thinking, block)
            case Call():
                yield from self._call_events(block, part)

    def _call_events(self, block: int, part: Call) -> Iterator[StreamEvent]:
        self._calls += 1
        call_id = part.call_id or f"call_{self._calls}"
        raw = json.dumps(part.arguments) if part.raw is None else part.raw
        yield ToolCallStarted(call_id, part.name, block)
        yield ToolCallDelta(call_id, raw, block)
        made = ToolCall(id=call_id, name=part.name, cut=True) if part.cut else parse_tool_call(call_id, part.name, raw)
        yield ToolCallEnded(made, block)


_STEPS = 'a list of answers, such as [reply("…", call("…")), "…"]'


def _expect_part(name: str, part: object) -> None:
    expect_kind(name, part, (str, Say, Think, Call, Wait, Fail), "text or a block, such as call(…)")


def _expect_answer(name: str, answer: object) -> None:
    expect_kind(name, answer, (str, Reply, Say, Think, Call, Wait, Fail), "text, reply(…), call(…) or fail(…)")


def _expect_step(name: str, step: object) -> None:
    # A class is callable, and never meant.
    if isinstance(step, type) or not callable(step):
        _expect_answer(name, step)


def _stop_reason(answer: Reply) -> StopReason:
    return "tool_use" if any(isinstance(part, Call) for part in answer.parts) else "end_turn"
