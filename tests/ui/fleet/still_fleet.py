"""A fleet in memory: its units with times that stand still, and a driver that a test plays."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.ui.story import Story, working
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.fleet_records import (
    FleetStatus,
    UnitChanges,
    UnitPermissions,
    UnitQuestion,
    UnitRow,
    UnitState,
    UnitTask,
    WorkerSpan,
)
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.ui.fleet.fleet_state import FleetFiles, FleetUpdate

START = 1_760_000_000_000
"""Milliseconds since the epoch at which every fleet begins."""
NOW = START + 754_000
PROMPT = "Replace the deprecated `datetime.utcnow()` by an aware time in this repository, and run its tests."
REPOSITORIES = ("shop", "billing", "search-index", "web-frontend", "mailer", "reports", "auth", "data-pipeline")
ACTIVITIES = (
    "bash pytest -q tests",
    "bash python src/orders/clock.py --dry-run",
    'grep "utcnow" in src',
    "read src/orders/models.py",
    "The two callers in reports.py use local time; I keep their output and only change the source.",
)


def row(
    number: int,
    state: UnitState = "running",
    *,
    spans: Sequence[tuple[str, int, int | None]] | None = None,
    **fields: Any,
) -> UnitRow:
    """Return the row of a unit; `spans` are worker, start and end in seconds since the start of the fleet."""
    name = REPOSITORIES[number % len(REPOSITORIES)]
    task = fields.pop("task", {})
    unit = UnitTask(
        **{
            "id": f"{number:03}",
            "task": f"{number:03}",
            "prompt": PROMPT,
            "repo": f"/srv/git/{name}-{number}.git",
            "ref": "main",
            "verify": "pytest -q",
            "budget": 0.5,
            "permissions": UnitPermissions(deny=("bash(git push *)",)),
            **task,
        }
    )
    ended = state in ("done", "failed", "stopped")
    if spans is None and state != "queued":
        begin = 20 + number * 37 % 600
        spans = [(f"w{number % 6 + 1}", begin, min(750, begin + 60 + number * 13 % 90) if ended else None)]
    times = tuple(
        WorkerSpan(
            worker=worker,
            started=START + begin * 1000,
            ended=START + end * 1000 if end is not None else None,
            lost=end is not None and (place < len(spans or ()) or state == "resuming"),
        )
        for place, (worker, begin, end) in enumerate(spans or (), 1)
    )
    started = state not in ("queued", "starting")
    return UnitRow(
        **{
            "unit": unit,
            "state": state,
            "epoch": len(times),
            "spans": times,
            "step": 3 + number % 7 if started else 0,
            "activity": ACTIVITIES[number % len(ACTIVITIES)] if started else "",
            "input_tokens": 9_000 + 1_370 * number % 40_000 if started else 0,
            "output_tokens": 700 + 90 * number % 3_000 if started else 0,
            "cost": 0.02 + number % 9 / 100 if started else 0.0,
            "verified": True if state == "done" else None,
            "changes": UnitChanges(files=1 + number % 4, insertions=5 + number % 30, deletions=number % 12)
            if state == "done"
            else None,
            "reason": "verify failed: 2 failed, 11 passed" if state == "failed" else "",
            **fields,
        }
    )


def asks(unit_id: str, command: str = "make test", *, rule: str | None = "bash(make *)", **fields: Any) -> UnitQuestion:
    """Return a unit's question about a command."""
    request = ApprovalRequest(
        **{
            "request_id": f"ask_{unit_id}",
            "call_id": f"call_{unit_id}",
            "digest": "d",
            "tool": "bash",
            "args": {"command": command},
            "summary": command,
            "reason": "no rule allows it, and the mode is accept edits",
            "preview": Preview(kind="command", text=command),
            "session_rule": rule,
            "rules": (rule, "bash(*)") if rule else (),
            **fields,
        }
    )
    return UnitQuestion(unit_id=unit_id, request=request)


def status(*rows: UnitRow, running: bool = True, **fields: Any) -> FleetStatus:
    """Return the status of a fleet."""
    return FleetStatus(**{"name": "utcnow", "started": START, "running": running, "rows": rows, **fields})


def busy_fleet() -> FleetStatus:
    """Return a fleet of 40 units in all states, with two questions."""
    states: dict[int, UnitState] = {7: "failed", 12: "asking", 13: "asking", 14: "verifying", 15: "resuming"}
    states |= {16: "starting", 17: "stopped"}
    rows = [
        row(number, states.get(number, "done" if number < 9 else "running" if number < 17 else "queued"))
        for number in range(1, 41)
    ]
    lost = row(15, "resuming", spans=[("w7", 100, 480)], epoch=1)
    rows[14] = lost
    return status(
        *rows,
        questions=(asks("012"), asks("013", "make lint")),
        notices=("Worker w7 was lost; another one continues its unit 015.",),
    )


def many_units(count: int = 1_000) -> FleetStatus:
    """Return a fleet of very many units."""
    states: tuple[UnitState, ...] = ("done", "done", "done", "running", "queued", "queued", "failed")
    return status(*(row(number, states[number % len(states)]) for number in range(1, count + 1)))


class MemoryFleet(FleetFiles):
    """A driver that a test plays: it records what the screen sends, and passes on what the test puts."""

    def __init__(self, first: FleetStatus | None, events: Sequence[Envelope] | None = None) -> None:
        super().__init__(Path("out"))
        self.sent: list[tuple[str, JsonObject]] = []
        self.stopped: list[tuple[tuple[str, ...], bool]] = []
        self._reports: asyncio.Queue[FleetUpdate | BaseException] = asyncio.Queue()
        self._batches: asyncio.Queue[Sequence[Envelope]] = asyncio.Queue()
        self._events = working().envelopes if events is None else events
        self._first = first
        self._status = first or status()

    async def updates(self) -> AsyncIterator[FleetUpdate]:
        if self._first is not None:
            yield self._first
        while True:
            update = await self._reports.get()
            if isinstance(update, BaseException):
                raise update
            yield update

    async def events(self, unit_id: str, /) -> AsyncIterator[Sequence[Envelope]]:
        if self._events:
            yield self._events
        while True:
            yield await self._batches.get()

    def put(self, update: FleetUpdate | BaseException) -> None:
        """Let the driver report something; an error ends the connection."""
        self._reports.put_nowait(update)

    def change(self, *rows: UnitRow, questions: Sequence[UnitQuestion] = (), **fields: Any) -> None:
        """Let some rows change; `questions` are all that are open now, and notices are added."""
        last = self._status
        changed = {one.id: one for one in (*last.rows, *rows)}
        notices = (*last.notices, *fields.pop("notices", ()))
        update = {"rows": tuple(changed.values()), "questions": tuple(questions), "notices": notices, "paused_until": 0}
        self._status = last.model_copy(update=update | fields)
        self.put(self._status)

    def tell(self, story: Story, since: int) -> None:
        """Let the watched unit publish the events of a story from a number on."""
        self._batches.put_nowait(story.envelopes[since:])

    def send(self, unit_id: str, command: JsonObject, /) -> None:
        self.sent.append((unit_id, command))

    def stop(self, unit_ids: Sequence[str], /, *, now: bool) -> None:
        self.stopped.append((tuple(unit_ids), now))


def timed(story: Story) -> Sequence[Envelope]:
    """Return the events of a story as those of a unit that is at work now."""
    return [replace(one, ts=NOW - round((story.now - one.mono) * 1000)) for one in story.envelopes]
