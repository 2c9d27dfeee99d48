"""A scheduler over scripted tools, for tests that watch calls while they run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.execution.kit import ScriptedTool
from tests.support.validating_bus import ValidatingBus
from tui_agent.execution import ExecutionOptions, ToolExecutor, ToolScheduler
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import ToolEnded, ToolQueued, ToolStarted
from tui_agent.protocol.messages import ToolResultMessage


class Bench:
    """Scheduler over scripted tools that records everything it publishes; validated when its test ends."""

    def __init__(self, tools: list[ScriptedTool], options: ExecutionOptions | None = None, **settings: Any) -> None:
        self.bus = ValidatingBus(options)
        self.bus.unanswered = self._without_result
        self._subscription = self.bus.subscribe(merge=False)
        self.options = options or ExecutionOptions()
        self.token = CancellationToken()
        self.committed: list[ToolResultMessage] = []
        self.envelopes: list[Envelope] = []
        scheduling = {"get_steering": settings.pop("get_steering", None)}
        self.executor = ToolExecutor(tools, bus=self.bus, options=self.options, **settings)
        self.scheduler = ToolScheduler(
            self.executor, cancellation=self.token, step=1, on_result=self.committed.append, **scheduling
        )

    def events(self, kind: type[Any] = object) -> list[Any]:
        self.envelopes += self._subscription.drain()
        return [envelope.event for envelope in self.envelopes if isinstance(envelope.event, kind)]

    def started(self) -> list[str]:
        return [event.call_id for event in self.events(ToolStarted)]

    def ended(self) -> dict[str, str]:
        return {event.call_id: event.status for event in self.events(ToolEnded)}

    async def until(self, kind: type[Any], count: int = 1) -> None:
        while len(self.events(kind)) < count:
            await asyncio.sleep(0)

    def _without_result(self) -> list[str]:
        """Return the calls without a result message, which are those of a discarded message."""
        queued = [event.call_id for event in self.events(ToolQueued)]
        answered = [message.call_id for message in self.committed]
        assert answered in ([], queued)
        return [] if answered else queued


@asynccontextmanager
async def bench_of(*args: Any, **kwargs: Any) -> AsyncIterator[Bench]:
    bench = Bench(*args, **kwargs)
    async with bench.scheduler:
        yield bench


async def settled() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)
