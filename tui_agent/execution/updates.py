"""What a running call reports, told in order and never after its end (C40–C42).

Without update hooks a report is told at once. With them it passes through a queue of its call, because a hook may have
to be awaited while the tool's own reporting never waits (S2-26).
"""

import asyncio
import contextlib
import logging
import threading
from collections import deque

from pydantic import ValidationError

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.envelope import event_classes
from tui_agent.protocol.events import AgentEvent, ToolData, ToolOutput, ToolProgress, ToolUpdated, Warned
from tui_agent.protocol.messages import ToolCall
from tui_agent.protocol.tool import ContentUpdate, DataUpdate, OutputUpdate, ProgressUpdate, ToolUpdate

from .hook_bus import HookBus
from .hook_questions import allows_update, observe_update
from .plain_json import plain, plain_details

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

_log = logging.getLogger(__name__)


class UpdateChannel:
    """The way of one call's reports; `report` may be called from any thread."""

    def __init__(self, call: ToolCall, hooks: HookBus, tell: Publisher) -> None:
        self.late = 0
        """Reports that came after the end and were dropped (C42)."""
        self.hooked = hooks.has("before_update") or hooks.has("after_update")
        """Whether reports wait for hooks, so that `pump` must run."""
        self.told = asyncio.Event()
        """Set once `pump` told everything there will be."""
        self._call = call
        self._hooks = hooks
        self._tell = tell
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
        self.told.set()

    def finish(self) -> None:
        """Lets `pump` end once it told what there is."""
        self._last = True
        self._arrived.set()

    async def drain(self) -> None:
        """Tells everything that waits; not to be called while `pump` runs."""
        while self._waiting:
            update = self._waiting[0]
            if isinstance(update, ContentUpdate):
                await self._tell_if_allowed(update)
            else:
                self._tell_one(update)
            self._waiting.popleft()

    def close(self) -> None:
        """Drops everything from now on."""
        self._closed = True
        self._waiting.clear()

    def _take(self, update: ToolUpdate) -> None:
        if self._closed:
            self.late += 1
            _log.debug("late report of call %s dropped (%d so far)", self._call.id, self.late)
        elif self.hooked:
            self._waiting.append(update)
            self._arrived.set()
        else:
            self._tell_one(update)

    async def _tell_if_allowed(self, update: ContentUpdate) -> None:
        text = update.partial.text
        if await allows_update(self._hooks, self._call, text, self._tell):
            self._tell_one(update)
            await observe_update(self._hooks, self._call, text, self._tell)

    def _tell_one(self, update: ToolUpdate) -> None:
        call_id = self._call.id
        match update:
            case ContentUpdate(partial=partial):
                self._told += 1
                self._tell.publish(ToolUpdated(call_id=call_id, partial=plain_details(partial), n=self._told))
            case ProgressUpdate(text=text, fraction=fraction):
                self._tell.publish(ToolProgress(call_id=call_id, text=text, fraction=fraction))
            case OutputUpdate(chunk=chunk, stream=stream, bytes_total=total):
                # A tool that leaves some of its output out says how much there was.
                so_far = self._bytes[stream] = total or self._bytes[stream] + len(chunk.encode("utf-8", "replace"))
                self._tell.publish(ToolOutput(call_id=call_id, stream=stream, chunk=chunk, bytes_total=so_far))
            case DataUpdate():
                self._tell.publish(self._data_event(update))

    def _data_event(self, update: DataUpdate) -> AgentEvent:
        if update.kind not in DOMAIN_EVENTS:
            return ToolData(call_id=self._call.id, kind=update.kind, data=plain(update.data))
        kind = event_classes()[update.kind]
        own_id = {"call_id": self._call.id} if "call_id" in kind.model_fields else {}
        try:
            return kind.model_validate({**own_id, **plain(update.data)})
        except ValidationError as error:
            text = f"Tool {self._call.name} reported a {update.kind} that cannot be read: {error.errors()[0]['msg']}"
            return Warned(code="bad_tool_data", text=text, context={"call_id": self._call.id, "kind": update.kind})
