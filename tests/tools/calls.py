"""Calls of a tool as the engine makes them, with their updates recorded."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.tool import DataUpdate, OutputUpdate, Tool, ToolContext, ToolResult, ToolUpdate


@dataclass
class Recorded:
    """The context of one call and the updates reported through it."""

    cancellation: CancellationToken = field(default_factory=CancellationToken)
    updates: list[ToolUpdate] = field(default_factory=list[ToolUpdate])
    on_update: Callable[[ToolUpdate], None] | None = None

    def __post_init__(self) -> None:
        self.context = ToolContext("call_1", "tool", cancellation=self.cancellation, report=self._report)

    def _report(self, update: ToolUpdate) -> None:
        self.updates.append(update)
        if self.on_update is not None:
            self.on_update(update)

    @property
    def output(self) -> str:
        return "".join(update.chunk for update in self.updates if isinstance(update, OutputUpdate))

    @property
    def data(self) -> list[tuple[str, dict[str, Any]]]:
        return [(update.kind, update.data) for update in self.updates if isinstance(update, DataUpdate)]


async def call(tool: Tool, recorded: Recorded | None = None, **arguments: Any) -> ToolResult:
    """Run one call."""
    return await tool.execute(arguments, (recorded or Recorded()).context)


def details_of(result: ToolResult) -> dict[str, Any]:
    """Return the details of a result that has some."""
    assert result.details is not None
    return result.details


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Return True if `condition` becomes true in time; for effects of other processes."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
