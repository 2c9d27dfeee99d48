"""Views of a fleet from outside its driver: its plan, its state, its events, and the order to stop."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from tui_agent.fleet.backend import ClusterChoice
from tui_agent.fleet.driver import FleetDriver
from tui_agent.fleet.driver_control import LOOK_SECONDS, FleetConnection, StopUnits, connected
from tui_agent.fleet.fleet_directory import is_driven, read_status, read_tasks
from tui_agent.fleet.unit_events import UnitLines
from tui_agent.protocol.amounts import count_text, money_text, seconds_text, tokens_text
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetCounts, FleetStatus, UnitRow, UnitTask, count_rows
from tui_agent.protocol.messages import now_ms
from tui_agent.protocol.visible_text import escaped

from .fleet_cluster import walls_work
from .process.controlling_terminal import say, say_error, say_json_line

PAUSE = 5.0
"""Seconds between two lines."""

Say = Callable[[str], object]


async def report_progress(driver: FleetDriver, say: Say) -> None:
    """Write a line every few seconds until cancelled."""
    begun = monotonic()
    ended_before = count_rows(driver.status.rows).ended
    while True:
        counts = count_rows(driver.status.rows)
        say(f"fleet: {progress_text(counts, counts.ended - ended_before, monotonic() - begun)}")
        await asyncio.sleep(PAUSE)


def progress_text(counts: FleetCounts, ended: int, seconds: float) -> str:
    """Return the progress in one line; `ended` units have ended in the `seconds` since this driver's start."""
    states = counts.states
    parts = [f"{counts.ended}/{counts.units} ended"]
    parts += [f"{states['done']} done", f"{counts.working} running", f"{states['queued']} queued"]
    parts += [f"{states[state]} {state}" for state in ("failed", "stopped", "interrupted", "asking") if states[state]]
    # Only what this driver has seen: units of earlier starts say nothing about the pace.
    if ended and counts.ended < counts.units:
        parts.append(f"{60 * ended / seconds:.1f} a minute")
        parts.append(f"{seconds_text(seconds / ended * (counts.units - counts.ended), tenths=False)} left")
    return " · ".join((*parts, *used_parts(counts)))


def used_parts(counts: FleetCounts) -> list[str]:
    """Return what the units used."""
    used = [f"{tokens_text(counts.tokens)} tokens", money_text(counts.cost)]
    if counts.unknown_effects:
        used.append(count_text(counts.unknown_effects, "call of unknown effect", "calls of unknown effect"))
    return used


def end_line(status: FleetStatus, out: Path) -> str:
    """Return the last line of a fleet."""
    counts = count_rows(status.rows)
    states = [f"{counts.states[state]} {state}" for state in ("done", "failed", "stopped") if counts.states[state]]
    text = f"fleet: {' · '.join((*states, *used_parts(counts)))}; results: tui-agent fleet results {out}"
    unfinished = counts.units - counts.states["done"]
    return f"{text}; {unfinished} not done; to continue them: tui-agent fleet retry {out}" if unfinished else text


_REPO_WIDTH = 30
_DETAIL_WIDTH = 60


def show_status(out: Path, *, as_json: bool) -> int:
    """Print the state of a fleet and return 0.

    Raises:
        ConfigurationError: there is no fleet.
    """
    status = read_status(out)
    if as_json:
        say_json_line(status.model_dump_json())
        return 0
    for row in status.rows:
        say(row_text(row))
    say(f"{'running' if status.running else 'not running'} · {progress_text(count_rows(status.rows), 0, 0.0)}")
    for notice in status.notices[-5:]:
        say(f"notice: {escaped(notice)}")
    return 0


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
    wanted = [out / "units" / unit for unit in units if unit_id in (None, unit)]
    if follow and is_driven(out):
        return asyncio.run(_follow_events(out, wanted))
    _print_new([UnitLines(home) for home in wanted])
    return 0


async def _follow_events(out: Path, homes: list[Path]) -> int:
    units = [UnitLines(home) for home in homes]
    async with connected(out) as driver:
        while driver.is_open:
            await asyncio.to_thread(_print_new, units)
            await asyncio.sleep(LOOK_SECONDS)
    await asyncio.to_thread(_print_new, units)
    return 0


def _print_new(units: list[UnitLines]) -> None:
    for unit in units:
        for line in unit.read():
            say_json_line(line.decode("utf-8", "replace"))


def stop_fleet(out: Path, unit_ids: tuple[str, ...], *, now: bool) -> int:
    """Stop units, or all if none is named; wait until they have ended, and return the exit code.

    Raises:
        ConfigurationError: no driver runs, or there is no such unit.
    """
    known = {task.id for task in read_tasks(out)}
    if unknown := [unit_id for unit_id in unit_ids if unit_id not in known]:
        raise ConfigurationError(f"the fleet has no unit {unknown[0]}; nothing was stopped")
    return asyncio.run(_stop(out, unit_ids, now=now))


async def _stop(out: Path, unit_ids: tuple[str, ...], *, now: bool) -> int:
    async with connected(out) as driver:
        driver.send(StopUnits(unit_ids=unit_ids, now=now))
        async for status in driver.states():
            if all(row.ended for row in status.rows if not unit_ids or row.id in unit_ids):
                break
    say(f"stopped; to continue: tui-agent fleet retry {out}")
    return 0


def watch_fleet(out: Path) -> int:
    """Show the screen of a fleet; without a terminal, print its progress and its notices until it ends.

    Returns:
        The exit code.

    Raises:
        ConfigurationError: there is no fleet.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():
        read_tasks(out)
        # Imported here: no other command needs the screen.
        from .screen_entry import show_fleet

        code = asyncio.run(show_fleet(out))
        if not is_driven(out):
            say_error(end_line(read_status(out), out))
        return code
    if not is_driven(out):
        return show_status(out, as_json=False)
    return asyncio.run(_watch(out))


async def _watch(out: Path) -> int:
    say(f"the fleet in {out} works on when this is closed; stop it with: tui-agent fleet stop {out}")
    async with connected(out) as driver:
        return await _print_changes(driver)


async def _print_changes(driver: FleetConnection) -> int:
    """Print each end of a unit and each notice from now on, and return the exit code of the fleet."""
    ended: set[str] | None = None
    told = 0
    rows: tuple[UnitRow, ...] = ()
    async for status in driver.states():
        rows = status.rows
        # The first state is the past, which `fleet status` shows.
        if ended is not None:
            for row in rows:
                if row.ended and row.id not in ended:
                    say(row_text(row))
            for notice in status.notices[told:]:
                say(f"notice: {escaped(notice)}")
        ended, told = {row.id for row in rows if row.ended}, len(status.notices)
    if not all(row.ended for row in rows):
        say("the driver is gone")
        return 1
    say(progress_text(count_rows(rows), 0, 0.0))
    return 0 if all(row.state == "done" for row in rows) else 1


_PROMPT_WIDTH = 100


def show_plan(units: Sequence[UnitTask], cluster: ClusterChoice | None, places: int | None) -> int:
    """Print the plan and return the exit code: 0, or 1 if a unit cannot run as it is."""
    if cluster is not None:
        where, sandboxed = cluster.scheduler or f"a Dask cluster of {cluster.workers} on this machine", None
    else:
        where, sandboxed = f"this machine, {places or 1} at a time", walls_work(Path.cwd())
    lines = plan_lines(units, where, sandboxed=sandboxed)
    say("\n".join(lines))
    return 1 if any(line.startswith("!") for line in lines) else 0


def plan_lines(units: Sequence[UnitTask], where: str, *, sandboxed: bool | None) -> list[str]:
    """Return the lines of the plan; those that begin with `!` name a unit that cannot run as it is.

    Args:
        where: the places that they run on.
        sandboxed: True if commands can run in the sandbox there; None if that is not known yet.
    """
    lines: list[str] = []
    for unit in units:
        lines += [f"{unit.id}  {_line(unit.repo)} @ {_line(unit.ref)}", f"    prompt: {_line(unit.prompt)}"]
        lines.append(f"    rights: {_rights(unit)}; {_limits(unit)}")
        lines += [f"    verify: {_line(unit.verify)}"] if unit.verify else []
        lines += [f"!   {problem}" for problem in _problems(unit, sandboxed=sandboxed)]
    tasks = len({unit.task for unit in units})
    head = f"{count_text(len(units), 'unit')} of {count_text(tasks, 'task')} on {where}"
    return [*lines, "", f"{head}; nothing was started", _cost(units)]


def _rights(unit: UnitTask) -> str:
    rights = unit.permissions
    rules = (("allow", rights.allow), ("ask", rights.ask), ("deny", rights.deny))
    named = [f"{verdict} {', '.join(map(_line, names))}" for verdict, names in rules if names]
    return "; ".join([f"mode {rights.mode.value}", *named])


def _limits(unit: UnitTask) -> str:
    model = f"model {_line(unit.model)}" if unit.model else "the model of the worker's settings"
    budget = f"at most {money_text(unit.budget)}" if unit.budget is not None else "no budget of its own"
    timeout = f"at most {seconds_text(unit.timeout)}" if unit.timeout is not None else "no time limit"
    return f"{model}; {budget}; {timeout}"


def _problems(unit: UnitTask, *, sandboxed: bool | None) -> list[str]:
    problems: list[str] = []
    if os.path.isabs(unit.repo) and not Path(unit.repo).is_dir():
        problems.append("the repository does not exist here")
    if unit.permissions.allow and sandboxed is False:
        problems.append("its allow rules need the sandbox, which does not work here; it will fail")
    return problems


def _cost(units: Sequence[UnitTask]) -> str:
    limited = [unit.budget for unit in units if unit.budget is not None]
    without = len(units) - len(limited)
    if not without:
        return f"Cost: at most {money_text(sum(limited))}."
    rest = f"{count_text(without, 'unit')} without a budget, which only the worker's settings limit"
    return f"Cost: at most {money_text(sum(limited))} for {len(limited)}, and {rest}." if limited else f"Cost: {rest}."


def _line(text: str) -> str:
    line = " ".join(escaped(text).split())
    return line if len(line) <= _PROMPT_WIDTH else f"{line[: _PROMPT_WIDTH - 1]}…"
