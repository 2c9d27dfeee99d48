"""What a running call reports, told in order and never after its end (C40–C42).

Without update hooks a report is told at once. With them it passes through a queue of its call, because a hook may have
to be awaited while the tool's own reporting never waits (S2-26).

Where guardrails may withhold the result, what the reports hold of it waits, too, and is told with the result or never;
where a hook is there to hide something of the result, it is not told at all (P72).
"""

import asyncio
import contextlib
import json
import logging
import threading
from collections import deque
from typing import Literal, TypeAlias

from pydantic import ValidationError

from tui_agent.execution.hook_bus import HookBus
from tui_agent.execution.hook_dispatch import allows_update, observe_update
from tui_agent.execution.json_coercion import plain, with_json_details
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.envelope import event_classes
from tui_agent.protocol.events import AgentEvent, ToolData, ToolOutput, ToolProgress, ToolUpdated, Warned
from tui_agent.protocol.messages import ImageBlock, JsonObject, TextBlock, ToolCall
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import ContentUpdate, DataUpdate, OutputUpdate, ProgressUpdate, ToolResult, ToolUpdate

DOMAIN_EVENTS = frozenset(
    {
        "background.ended",
        "background.output",
        "background.started",
        "file.changed",
        "mcp.status",
        "plan.proposed",
        "plan.resolved",
        "question.answered",
        "question.asked",
        "subagent.ended",
        "subagent.started",
        "todo.updated",
    }
)
"""Kinds of `context.emit` that are told as the event of that name, once their data was validated (engine §5.2)."""

MAX_HELD_CHARACTERS = 1_000_000
"""Characters of reports that wait for their result; of more, the oldest are dropped."""

Reporting: TypeAlias = Literal["live", "held", "dropped"]
"""What becomes of reports with content: told at once, held until the result has passed, or never told."""

_CONTENT_OF_FACTS: dict[str, JsonObject] = {"file.changed": {"diff": ""}, "subagent.ended": {"text": ""}}
"""Event fields that carry content, with their value while a guardrail holds the content back. The event itself is
published at once: files have changed, and the user must see a question to answer it."""

_log = logging.getLogger(__name__)


class UpdateChannel:
    """The way of one call's reports; `report` may be called from any thread."""

    def __init__(self, call: ToolCall, hooks: HookBus, publisher: Publisher, reporting: Reporting = "live") -> None:
        self.late = 0
        """Reports that came after the end and were dropped (C42)."""
        self.hooked = not hooks.events.isdisjoint({"before_update", "after_update"})
        """Whether reports wait for hooks, so that `pump` must run."""
        self.drained = asyncio.Event()
        """Set once `pump` told everything there will be."""
        self.held: deque[ToolUpdate] = deque()
        """Reports that wait for their call's result, oldest first."""
        self._held_size = 0
        self._reporting = reporting
        self._call = call
        self._hooks = hooks
        self._publisher = publisher
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: deque[ToolUpdate] = deque()
        self._arrived = asyncio.Event()
        self._told = 0
        self._bytes = {"stdout": 0, "stderr": 0}
        self._last = False
        self._closed = False

    def report(self, update: ToolUpdate) -> None:
        """Takes one report; never waits."""
        if threading.get_ident() != self._thread:
            # A thread may outlive everything: what it reports then is late (C42).
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._take, update)
        else:
            self._take(update)

    async def pump(self) -> None:
        """Tells reports as they come, until `finish` was called and the queue is empty."""
        while not self._last or self._waiting:
            await self._arrived.wait()
            self._arrived.clear()
            await self.drain()
        self.drained.set()

    def finish(self) -> None:
        """Lets `pump` end once it told what there is."""
        self._last = True
        self._arrived.set()

    async def drain(self) -> None:
        """Tells everything that waits; not to be called while `pump` runs."""
        while self._waiting:
            await self._pass(self._waiting[0])
            self._waiting.popleft()

    def held_content(self, metrics: dict[str, Metric]) -> ToolResult:
        """What the held reports and the metrics say, each stream put together, as a guardrail can look at it."""
        texts: dict[str, str] = {}
        images: list[ImageBlock] = []
        for update in self.held:
            kind = update.stream if isinstance(update, OutputUpdate) else type(update).__name__
            texts[kind] = f"{texts.get(kind, '')}{_content_of(update)}"
            if isinstance(update, ContentUpdate):
                images += [block for block in update.partial.content if isinstance(block, ImageBlock)]
        measured = (f"{name}: {metric.value}" for name, metric in metrics.items())
        return ToolResult(content=(TextBlock(text="\n".join([*texts.values(), *measured])), *images))

    async def publish_held(self) -> None:
        """Tells what was held: the result has passed."""
        while self.held:
            await self._pass(self.held.popleft())

    def close(self) -> None:
        """Drops everything that comes from now on."""
        self._closed = True
        self._waiting.clear()

    def _take(self, update: ToolUpdate) -> None:
        if self._closed:
            self.late += 1
            _log.debug("late report of call %s dropped (%d so far)", self._call.id, self.late)
            return
        update = _owned(update)
        if self._reporting != "live":
            fact = _without_content(update)
            if fact is None:
                self._hold(update)
                return
            update = fact
        if self.hooked:
            self._waiting.append(update)
            self._arrived.set()
        else:
            self._publish_one(update)

    def _hold(self, update: ToolUpdate) -> None:
        if self._reporting == "dropped":
            return
        self.held.append(update)
        self._held_size += len(_content_of(update))
        while self._held_size > MAX_HELD_CHARACTERS and self.held:
            self._held_size -= len(_content_of(self.held.popleft()))

    async def _pass(self, update: ToolUpdate) -> None:
        if not isinstance(update, ContentUpdate):
            self._publish_one(update)
            return
        text = update.partial.text
        if await allows_update(self._hooks, self._call, text, self._publisher):
            self._publish_one(update)
            await observe_update(self._hooks, self._call, text, self._publisher)

    def _publish_one(self, update: ToolUpdate) -> None:
        call_id = self._call.id
        match update:
            case ContentUpdate(partial=partial):
                self._told += 1
                self._publisher.publish(ToolUpdated(call_id=call_id, partial=partial, n=self._told))
            case ProgressUpdate(text=text, fraction=fraction):
                self._publisher.publish(ToolProgress(call_id=call_id, text=text, fraction=fraction))
            case OutputUpdate(chunk=chunk, stream=stream, bytes_total=total):
                # A tool that leaves some of its output out says how much there was.
                so_far = self._bytes[stream] = total or self._bytes[stream] + len(chunk.encode("utf-8", "replace"))
                self._publisher.publish(ToolOutput(call_id=call_id, stream=stream, chunk=chunk, bytes_total=so_far))
            case DataUpdate():
                self._publisher.publish(self._data_event(update))

    def _data_event(self, update: DataUpdate) -> AgentEvent:
        if update.kind not in DOMAIN_EVENTS:
            return ToolData(call_id=self._call.id, kind=update.kind, data=update.data)
        kind = event_classes()[update.kind]
        own_id = {"call_id": self._call.id} if "call_id" in kind.model_fields else {}
        try:
            return kind.model_validate({**own_id, **update.data})
        except ValidationError as error:
            text = f"Tool {self._call.name} reported a {update.kind} that cannot be read: {error.errors()[0]['msg']}"
            return Warned(code="bad_tool_data", text=text, context={"call_id": self._call.id, "kind": update.kind})


def _owned(update: ToolUpdate) -> ToolUpdate:
    """The report, with data that are JSON and that the tool cannot change any more."""
    match update:
        case ContentUpdate(partial=partial) if partial.details is not None:
            return ContentUpdate(partial=with_json_details(partial))
        case DataUpdate(kind=kind, data=data):
            return DataUpdate(kind=kind, data=plain(data))
        case _:
            return update


def _without_content(update: ToolUpdate) -> DataUpdate | None:
    """The fact that a report tells, without the content it may hold; None: it is nothing but content."""
    if not isinstance(update, DataUpdate) or update.kind not in DOMAIN_EVENTS or update.kind == "background.output":
        return None
    content = _CONTENT_OF_FACTS.get(update.kind, {})
    return DataUpdate(kind=update.kind, data={**update.data, **content})


def _content_of(update: ToolUpdate) -> str:
    match update:
        case OutputUpdate(chunk=chunk):
            return chunk
        case ProgressUpdate(text=text):
            return f"{text}\n"
        case ContentUpdate(partial=partial):
            return f"{partial.text}\n{json.dumps(partial.details, ensure_ascii=False)}\n"
        case DataUpdate(data=data):
            return f"{json.dumps(data, ensure_ascii=False)}\n"
