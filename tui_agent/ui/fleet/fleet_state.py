"""State of the fleet for its screen: files, driver, last status, sums over the units, and the units shown."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tui_agent.fleet.driver_control import LOOK_SECONDS, FleetConnection, Order, SendInput, StopUnits, connected
from tui_agent.fleet.fleet_directory import is_driven, read_status
from tui_agent.fleet.unit_events import UnitLines
from tui_agent.protocol.envelope import Envelope, read_envelope
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetCounts, FleetStatus, UnitQuestion, UnitRow, UnitState, count_rows
from tui_agent.protocol.messages import JsonObject

RATE_MINUTES = 10
"""Minutes whose ends give the rate."""
LEAST_ENDS = 3
"""Ends without which a rate says nothing."""


@dataclass(frozen=True, slots=True)
class FleetTotals:
    """Sums over all units."""

    counts: FleetCounts
    rate: float | None
    """Units that end in a minute; None if too few have ended."""
    seconds_left: float | None
    """Time until all have ended at this rate; None without a rate, or if none is left."""


class FleetState:
    """Last status of a fleet, with the rows of its units by their id."""

    def __init__(self) -> None:
        self.status = FleetStatus(name="", started=0, running=False, rows=())
        """Last status; empty until one is known."""
        self.rows: dict[str, UnitRow] = {}
        """Rows by the id of their unit, in the order of the tasks."""

    @property
    def known(self) -> bool:
        """True once the status has arrived."""
        return bool(self.status.started or self.status.name)

    @property
    def running(self) -> bool:
        """True while a driver works on it."""
        return self.status.running

    @property
    def questions(self) -> tuple[UnitQuestion, ...]:
        """Open questions, the oldest first; those of a fleet without a driver cannot be answered and are left out."""
        return self.status.questions if self.running else ()

    def apply(self, status: FleetStatus) -> None:
        """Take the status of the fleet."""
        self.status, self.rows = status, {row.id: row for row in status.rows}

    def leave(self, now: int) -> None:
        """Note that no driver can be reached any more, at a time in milliseconds since the epoch; the rows stay."""
        self.apply(self.status.without_driver(now))

    def end(self, now: int) -> int:
        """Return the time up to which there is something to show: now, or the end of the last unit."""
        if self.running:
            return now
        return max((span.ended or span.started for row in self.rows.values() for span in row.spans), default=now)

    def totals(self, now: int) -> FleetTotals:
        """Return the sums at a time in milliseconds since the epoch."""
        rows = self.rows.values()
        counts = count_rows(rows)
        # A young fleet has fewer minutes behind it.
        begin = max(self.status.started, now - RATE_MINUTES * 60_000)
        ends = [row.spans[-1].ended for row in rows if row.ended and row.spans]
        recent = sum(1 for end in ends if end is not None and end >= begin)
        minutes = (now - begin) / 60_000
        rate = recent / minutes if recent >= LEAST_ENDS and minutes > 0 and self.running else None
        left = counts.units - counts.ended
        return FleetTotals(counts, rate, left / rate * 60 if rate and left else None)


def seconds_of(row: UnitRow, now: int) -> float:
    """Return the seconds that a unit has spent on workers; `now` in milliseconds since the epoch."""
    return sum(max(0, (span.ended if span.ended is not None else now) - span.started) for span in row.spans) / 1000


StateFilter: TypeAlias = Literal["all", "running", "needs you", "failed", "stopped", "done", "queued"]
UnitOrder: TypeAlias = Literal["task", "state", "cost", "time"]

FILTERS: tuple[StateFilter, ...] = get_args(StateFilter)
ORDERS: tuple[UnitOrder, ...] = get_args(UnitOrder)

_PASSING: dict[StateFilter, frozenset[UnitState]] = {
    "running": frozenset(("starting", "running", "asking", "verifying", "resuming")),
    "needs you": frozenset(("asking",)),
    "failed": frozenset(("failed",)),
    "stopped": frozenset(("stopped", "interrupted")),
    "done": frozenset(("done",)),
    "queued": frozenset(("queued",)),
}
_BY_STATE: tuple[UnitState, ...] = (
    *("asking", "resuming", "verifying", "running", "starting"),
    *("failed", "interrupted", "stopped", "queued", "done"),
)
_RANKS = {state: rank for rank, state in enumerate(_BY_STATE)}
_SEARCHED = 2_000
"""Characters of a prompt that are searched."""


class UnitFilter:
    """Filter, search words and order of the units that are shown."""

    def __init__(self) -> None:
        self.states: StateFilter = "all"
        """Present filter."""
        self.order: UnitOrder = "task"
        """Present order."""
        self._words: tuple[str, ...] = ()
        self._texts: dict[str, str] = {}

    @property
    def is_part(self) -> bool:
        """True if a filter or a search may hide units."""
        return self.states != "all" or bool(self._words)

    def shown(self, rows: Iterable[UnitRow], now: int) -> list[UnitRow]:
        """Return those of some rows that pass, in order, at a time in milliseconds since the epoch."""
        passing = _PASSING.get(self.states)
        shown = [row for row in rows if passing is None or row.state in passing]
        if self._words:
            shown = [row for row in shown if self._matches(row)]
        match self.order:
            case "task":
                pass
            case "state":
                shown.sort(key=lambda row: _RANKS[row.state])
            case "cost":
                shown.sort(key=lambda row: -row.cost)
            case "time":
                shown.sort(key=lambda row: -seconds_of(row, now))
        return shown

    def search(self, text: str) -> None:
        """Let only units pass in which all words of a text occur."""
        self._words = tuple(text.casefold().split())

    def turn_filter(self, by: int) -> None:
        """Use the next or the previous filter."""
        self.states = FILTERS[(FILTERS.index(self.states) + by) % len(FILTERS)]

    def turn_order(self) -> None:
        """Use the next order."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]

    def clear(self) -> None:
        """Remove filter and search."""
        self.states, self._words = "all", ()

    def _matches(self, row: UnitRow) -> bool:
        # Ids, prompts and repositories never change; states and activities do.
        fixed = self._texts.get(row.id)
        if fixed is None:
            unit = row.unit
            parts = (unit.id, unit.repo, unit.ref, *unit.fields.values(), unit.prompt[:_SEARCHED])
            fixed = self._texts[row.id] = " ".join(parts).casefold()
        worker = row.spans[-1].worker if row.spans else ""
        text = f"{fixed} {row.state} {worker} {row.activity} {row.reason}".casefold()
        return all(word in text for word in self._words)


MOST_EVENTS = 500
"""Events that are parsed at once, so that the screen answers keys in between."""


@dataclass(frozen=True, slots=True)
class InputRejected:
    """Input of the user had no effect."""

    text: str
    """Reason, in words for the user."""


FleetUpdate: TypeAlias = FleetStatus | InputRejected
_GONE = InputRejected("No driver works on this fleet, so nothing was sent.")


class FleetFiles:
    """A fleet as its files show it, and its driver, if one works on it.

    Every method but the iterators and `serve` returns at once.
    """

    def __init__(self, out: Path, driver: FleetConnection | None = None) -> None:
        """Read nothing yet; `serve` does the work for the driver, without which the fleet takes no input."""
        self.return_command = f"tui-agent fleet status --watch {out}"
        """Command that shows this fleet again."""
        self._out = out
        self._driver = driver
        self._updates: asyncio.Queue[FleetUpdate | None] = asyncio.Queue()

    async def serve(self, driver: FleetConnection) -> None:
        """Follow the driver until it leaves. The files remain."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._take_refusals(driver))
                async for status in driver.states():
                    self._updates.put_nowait(self._with_advice(status))
        except* ConfigurationError as errors:
            self._updates.put_nowait(InputRejected(str(errors.exceptions[0])))
        finally:
            self._driver = None
            # It ends `updates`, whatever ended the driver; the files remain readable.
            self._updates.put_nowait(None)

    async def _take_refusals(self, driver: FleetConnection) -> None:
        async for reason in driver.refusals():
            self._updates.put_nowait(InputRejected(reason))

    def _with_advice(self, status: FleetStatus) -> FleetStatus:
        """Say how units continue that no driver works on."""
        # A fleet that is over has nothing to continue.
        if status.running or all(row.ended for row in status.rows):
            return status
        text = f"No driver works on this fleet. To continue its units: tui-agent fleet retry {self._out}"
        return status.model_copy(update={"notices": (*status.notices, text)})

    async def updates(self) -> AsyncIterator[FleetUpdate]:
        """Yield the status whenever it changes, and refusals, until the driver leaves; without one, only refusals.

        The last status has `running=False`: every unit has ended, or no driver works on the fleet.

        Raises:
            TuiAgentError: the fleet cannot be read, or the connection was lost.
        """
        if self._driver is None:
            yield self._with_advice(await asyncio.to_thread(read_status, self._out))
        while (update := await self._updates.get()) is not None:
            yield update

    async def events(self, unit_id: str, /) -> AsyncIterator[Sequence[Envelope]]:
        """Yield all events of a unit, deltas included, those in its journal first, until the driver leaves.

        Raises:
            OSError: they cannot be read.
        """
        unit = UnitLines(self._out / "units" / unit_id)
        try:
            is_driven = True
            while is_driven:
                # Before the read, so that what the driver wrote last is read once more.
                is_driven = self._driver is not None
                lines = await asyncio.to_thread(unit.read)
                for start in range(0, len(lines), MOST_EVENTS):
                    part = lines[start : start + MOST_EVENTS]
                    # A few lines take less time than a thread.
                    yield _parsed(part) if len(part) < 20 else await asyncio.to_thread(_parsed, part)
                if is_driven:
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            unit.close()

    def send(self, unit_id: str, command: JsonObject, /) -> None:
        """Send a command of stream-json to a unit; a refusal follows as an update."""
        self._order(SendInput(unit_id=unit_id, command=command))

    def stop(self, unit_ids: Sequence[str], /, *, now: bool) -> None:
        """Stop units after their steps, or now; without ids all of them, which ends the fleet."""
        self._order(StopUnits(unit_ids=tuple(unit_ids), now=now))

    def _order(self, order: Order) -> None:
        if self._driver is None:
            self._updates.put_nowait(_GONE)
        else:
            self._driver.send(order)


def _parsed(lines: Sequence[bytes]) -> list[Envelope]:
    """Return the events of some lines; lines of a later version or damaged ones are left out."""
    events: list[Envelope] = []
    for line in lines:
        try:
            event = read_envelope(line)
        except ValueError:
            continue
        if event is not None:
            events.append(event)
    return events


@asynccontextmanager
async def open_fleet(out: Path) -> AsyncGenerator[FleetFiles]:
    """Open the files of a fleet, with its driver if one works on it; at the end, leave the driver.

    Raises:
        ConfigurationError: the driver cannot be reached.
    """
    if not await asyncio.to_thread(is_driven, out):
        yield FleetFiles(out)
        return
    async with connected(out) as driver, asyncio.TaskGroup() as group:
        files = FleetFiles(out, driver)
        service = group.create_task(files.serve(driver))
        try:
            yield files
        finally:
            service.cancel()
