"""Views of a fleet from outside its driver: its state, its events, and the order to stop."""

import asyncio
import sys
from pathlib import Path

from tui_agent.fleet.control_client import FleetConnection, connected
from tui_agent.fleet.control_messages import (
    EventsSent,
    FleetEnded,
    FollowRows,
    InputRefused,
    RowsChanged,
    StatusSent,
    StopUnits,
    WatchUnit,
)
from tui_agent.fleet.fleet_counts import count_rows
from tui_agent.fleet.fleet_directory import is_driven, journal_lines, read_status, read_tasks
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetStatus, UnitRow
from tui_agent.protocol.messages import now_ms
from tui_agent.protocol.visible_text import escaped
from tui_agent.ui.text.amounts import money_text, seconds_text, tokens_text

from .fleet_progress import end_line, progress_text
from .process.controlling_terminal import say, say_error, say_json_line

_REPO_WIDTH = 30
_DETAIL_WIDTH = 60


def show_status(out: Path, *, as_json: bool) -> int:
    """Print the state of a fleet.

    Raises:
        ConfigurationError: there is no fleet.
    """
    status = asyncio.run(current_status(out))
    if as_json:
        say_json_line(status.model_dump_json())
        return 0
    for row in status.rows:
        say(row_text(row))
    say(f"{'running' if status.running else 'not running'} · {progress_text(count_rows(status.rows), 0, 0.0)}")
    for notice in status.notices[-5:]:
        say(f"notice: {escaped(notice)}")
    return 0


async def current_status(out: Path) -> FleetStatus:
    """Return the state of a fleet: from its driver, or as the last one left it.

    Raises:
        ConfigurationError: there is no fleet.
    """
    read_tasks(out)
    try:
        async with connected(out) as driver:
            await driver.send(FollowRows())
            async for reply in driver.replies():
                if isinstance(reply, StatusSent | FleetEnded):
                    return reply.status
    except ConfigurationError:
        pass
    return await asyncio.to_thread(read_status, out)


def row_text(row: UnitRow) -> str:
    """Return a unit in one line."""
    took = sum((span.ended or now_ms()) - span.started for span in row.spans) / 1000
    repo = row.unit.repo.rstrip("/").rpartition("/")[2]
    detail = row.reason or row.activity
    parts = [
        f"{escaped(row.id):<8}",
        f"{row.state:<11}",
        f"{escaped(repo)[:_REPO_WIDTH]:<{_REPO_WIDTH}}",
        f"{row.step:>3} steps",
        f"{tokens_text(row.input_tokens + row.output_tokens):>6}",
        f"{money_text(row.cost):>7}",
        f"{seconds_text(took, tenths=False):>8}",
        escaped(detail)[:_DETAIL_WIDTH],
    ]
    return "  ".join(parts).rstrip()


def print_events(out: Path, unit_id: str | None, *, follow: bool) -> int:
    """Print the events of all units, or of one, one JSON object a line; those of several units are not in order.

    Raises:
        ConfigurationError: there is no fleet, or no such unit.
    """
    units = [task.id for task in read_tasks(out)]
    if unit_id is not None and unit_id not in units:
        raise ConfigurationError(f"the fleet has no unit {unit_id}")
    wanted = units if unit_id is None else [unit_id]
    if follow and is_driven(out):
        return asyncio.run(_follow_events(out, wanted))
    for unit in wanted:
        for line in journal_lines(out / "units" / unit / "journal.jsonl", 0):
            say_json_line(line.decode("utf-8", "replace"))
    return 0


async def _follow_events(out: Path, units: list[str]) -> int:
    async with connected(out) as driver:
        for unit in units:
            await driver.send(WatchUnit(unit_id=unit))
        async for reply in driver.replies():
            if isinstance(reply, EventsSent):
                for line in reply.lines:
                    say_json_line(line)
            elif isinstance(reply, FleetEnded):
                break
    return 0


def stop_fleet(out: Path, unit_ids: tuple[str, ...], *, now: bool) -> int:
    """Stop units and wait until they have ended.

    Raises:
        ConfigurationError: no driver runs, or there is no such unit.
    """
    known = {task.id for task in read_tasks(out)}
    if unknown := [unit_id for unit_id in unit_ids if unit_id not in known]:
        raise ConfigurationError(f"the fleet has no unit {unknown[0]}; nothing was stopped")
    return asyncio.run(_stop(out, unit_ids, now=now))


async def _stop(out: Path, unit_ids: tuple[str, ...], *, now: bool) -> int:
    async with connected(out) as driver:
        await driver.send(StopUnits(unit_ids=unit_ids, now=now))
        await driver.send(FollowRows())
        waiting: set[str] | None = None
        async for reply in driver.replies():
            match reply:
                case StatusSent(status=status):
                    waiting = {row.id for row in status.rows if not row.ended and (not unit_ids or row.id in unit_ids)}
                case RowsChanged(rows=rows):
                    waiting = (waiting or set()) - {row.id for row in rows if row.ended}
                case FleetEnded():
                    waiting = set()
                case InputRefused(text=text):
                    say_error(f"tui-agent: {text}")
                case EventsSent():
                    pass
            if waiting is not None and not waiting:
                break
    say(f"stopped; to continue: tui-agent fleet retry {out}")
    return 0


def watch_fleet(out: Path) -> int:
    """Show the screen of a fleet; without a terminal, print its progress and its notices until it ends.

    Raises:
        ConfigurationError: there is no fleet.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():
        # Imported here: no other command needs the screen.
        from .fleet_screen_host import show_fleet

        code = show_fleet(out)
        if not is_driven(out):
            say_error(end_line(read_status(out), out))
        return code
    if not is_driven(out):
        return show_status(out, as_json=False)
    return asyncio.run(_watch(out))


async def _watch(out: Path) -> int:
    say(f"the fleet in {out} works on when this is closed; stop it with: tui-agent fleet stop {out}")
    rows: dict[str, UnitRow] = {}
    async with connected(out) as driver:
        await driver.send(FollowRows())
        return await _print_changes(driver, rows)


async def _print_changes(driver: FleetConnection, rows: dict[str, UnitRow]) -> int:
    async for reply in driver.replies():
        match reply:
            case StatusSent(status=status):
                rows |= {row.id: row for row in status.rows}
            case RowsChanged(rows=changed, notices=notices):
                for row in changed:
                    if row.ended and not rows[row.id].ended:
                        say(row_text(row))
                rows |= {row.id: row for row in changed}
                for notice in notices:
                    say(f"notice: {escaped(notice)}")
            case FleetEnded(status=status):
                say(progress_text(count_rows(status.rows), 0, 0.0))
                return 0 if all(row.state == "done" for row in status.rows) else 1
            case _:
                pass
    say("the driver is gone")
    return 1
