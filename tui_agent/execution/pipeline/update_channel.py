"""Channel for the reports of a running call, which are published in order and never after its end.

Without update hooks a report is published at once. With them it passes through a queue, because a hook may have to be
awaited while the tool's own reporting never waits (S2-26).

If guardrails may withhold the result, reports with content are held and published with the result or never. If a hook
hides parts of the result, they are dropped.
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
from tui_agent.protocol.messages import JsonObject, TextBlock, ToolCall, UserBlock
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
"""Kinds of `context.emit` that are published as the event of that name, once their data was validated."""

MAX_HELD_CHARACTERS = 1_000_000
"""Characters of reports that are held for a result; beyond that, the oldest are dropped."""

Reporting: TypeAlias = Literal["live", "held", "dropped"]
"""Treatment of reports with content: published at once, held until the result has passed, or dropped."""

_CONTENT_OF_FACTS: dict[str, JsonObject] = {"file.changed": {"diff": ""}, "subagent.ended": {"text": ""}}
"""Event fields that carry content, with their value while a guardrail holds the content back. The event itself is
published at once: files have changed, and the user must see a question to answer it."""

_log = logging.getLogger(__name__)


class UpdateChannel:
    """Channel of one call's reports; `report` may be called from any thread."""

    def __init__(self, call: ToolCall, hooks: HookBus, publisher: Publisher, *, holds: bool = False) -> None:
        """
        Args:
            call: the call.
            hooks: those of updates see each report; `after_tool` hooks that hide parts of results drop them.
            publisher: publishes the reports.
            holds: True if a guardrail may still object to the result.
        """
        hides = "after_tool" in hooks.events and any(hook.hides for hook in hooks.hooks("after_tool"))
        self.reporting: Reporting = "dropped" if hides else "held" if holds else "live"
        """Treatment of the reports, given that a hook or guardrail may still object to the result."""
        self.late = 0
        """Number of reports that came after the end and were dropped."""
        # Read once: a hook that is added while the tool runs would see half of its reports.
        self.hooked = not hooks.events.isdisjoint({"before_update", "after_update"})
        """True if reports wait for hooks, so that `pump` must run."""
        self.drained = asyncio.Event()
        """Set once `pump` has published the last report."""
        self.held: deque[ToolUpdate] = deque()
        """Reports held for their call's result, oldest first."""
        self._held_size = 0
        self.call = call
        self._hooks = hooks
        self._publisher = publisher
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: deque[ToolUpdate] = deque()
        self._arrived = asyncio.Event()
        self._update_count = 0
        self._bytes = {"stdout": 0, "stderr": 0}
        self._last = False
        self._closed = False
        self._collected: list[DataUpdate] | None = None

    def report(self, update: ToolUpdate) -> None:
        """Accept one report; never wait. After `close` it is dropped and counted in `late`."""
        if threading.get_ident() != self._thread:
            # A thread may outlive the event loop; its reports are then late.
            with contextlib.suppress(RuntimeError):
                # In order with the tool's end, which reaches the loop the same way.
                self._loop.call_soon_threadsafe(self._take, update)
        else:
            self._take(update)

    async def pump(self) -> None:
        """Publish reports as they come, until `finish` was called and the queue is empty."""
        while not self._last or self._waiting:
            await self._arrived.wait()
            self._arrived.clear()
            await self.drain()
        self.drained.set()

    def finish(self) -> None:
        """Let `pump` end once the queue is empty."""
        self._last = True
        self._arrived.set()

    async def drain(self) -> None:
        """Publish every queued report. Only `pump` calls this while it runs."""
        while self._waiting:
            # Removed only afterwards, so that `pump` never ends before the last one is published.
            await self._pass(self._waiting[0])
            self._waiting.popleft()

    def held_content(self, metrics: dict[str, Metric]) -> ToolResult:
        """Return the held reports, joined by stream, and the metrics as one result that a guardrail can check."""
        texts: dict[str, str] = {}
        attached: list[UserBlock] = []
        for update in self.held:
            kind = update.stream if isinstance(update, OutputUpdate) else type(update).__name__
            # Joined, because a forbidden word may be split between two reports.
            texts[kind] = f"{texts.get(kind, '')}{_content_of(update)}"
            if isinstance(update, ContentUpdate):
                attached += [block for block in update.partial.content if not isinstance(block, TextBlock)]
        measured = (f"{name}: {metric.value}" for name, metric in metrics.items())
        return ToolResult(content=(TextBlock(text="\n".join([*texts.values(), *measured])), *attached))

    async def publish_held(self) -> None:
        """Publish the held reports, because the result has passed."""
        while self.held:
            await self._pass(self.held.popleft())

    def close(self) -> None:
        """Drop all queued and future reports."""
        self._closed = True
        self._waiting.clear()

    def collect(self) -> list[DataUpdate]:
        """Collect the file changes that are reported from now on in the returned list, until `release`."""
        self._collected = []
        return self._collected

    def release(self) -> None:
        """Publish the collected file changes."""
        collected, self._collected = self._collected or [], None
        for update in collected:
            self._publish_one(update)

    def _take(self, update: ToolUpdate) -> None:
        if self._closed and isinstance(update, DataUpdate) and update.kind == "file.changed":
            # Nothing else records the change, such as one between the two calls that an execution served.
            fact = _owned(update if self.reporting == "live" else _without_content(update) or update)
            if self._collected is not None and isinstance(fact, DataUpdate):
                self._collected.append(fact)
            else:
                self._publish_one(fact)
            return
        if self._closed:
            self.late += 1
            _log.debug("late report of call %s dropped (%d so far)", self.call.id, self.late)
            return
        update = _owned(update)
        if self.reporting != "live":
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
        if self.reporting == "dropped":
            return
        self.held.append(update)
        self._held_size += len(_content_of(update))
        while self._held_size > MAX_HELD_CHARACTERS and self.held:
            # The newest output says most about how the call ended.
            self._held_size -= len(_content_of(self.held.popleft()))

    async def _pass(self, update: ToolUpdate) -> None:
        if not isinstance(update, ContentUpdate):
            self._publish_one(update)
            return
        text = update.partial.text
        if await allows_update(self._hooks, self.call, text, self._publisher):
            self._publish_one(update)
            await observe_update(self._hooks, self.call, text, self._publisher)

    def _publish_one(self, update: ToolUpdate) -> None:
        call_id = self.call.id
        match update:
            case ContentUpdate(partial=partial):
                self._update_count += 1
                self._publisher.publish(ToolUpdated(call_id=call_id, partial=partial, n=self._update_count))
            case ProgressUpdate(text=text, fraction=fraction):
                self._publisher.publish(ToolProgress(call_id=call_id, text=text, fraction=fraction))
            case OutputUpdate(chunk=chunk, stream=stream, bytes_total=total):
                # A tool that omits some of its output reports how much there was.
                so_far = self._bytes[stream] = total or self._bytes[stream] + len(chunk.encode("utf-8", "replace"))
                self._publisher.publish(ToolOutput(call_id=call_id, stream=stream, chunk=chunk, bytes_total=so_far))
            case DataUpdate():
                self._publisher.publish(data_event(self.call, update))


def data_event(call: ToolCall, update: DataUpdate) -> AgentEvent:
    """Return the event of a call's data, or a warning if the data does not fit the event."""
    if update.kind not in DOMAIN_EVENTS:
        return ToolData(call_id=call.id, kind=update.kind, data=update.data)
    kind = event_classes()[update.kind]
    own_id = {"call_id": call.id} if "call_id" in kind.model_fields else {}
    try:
        return kind.model_validate({**own_id, **update.data})
    except ValidationError as error:
        text = f"Tool {call.name} reported an invalid {update.kind}: {error.errors()[0]['msg']}"
        return Warned(code="bad_tool_data", text=text, context={"call_id": call.id, "kind": update.kind})


def _owned(update: ToolUpdate) -> ToolUpdate:
    """Return the report with a copy of its data, as JSON."""
    match update:
        case ContentUpdate(partial=partial) if partial.details is not None:
            return ContentUpdate(partial=with_json_details(partial))
        case DataUpdate(kind=kind, data=data):
            return DataUpdate(kind=kind, data=plain(data))
        case _:
            return update


def _without_content(update: ToolUpdate) -> DataUpdate | None:
    """Return the report without content, which is published at once; None: there is nothing else in it."""
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
