"""Progress of a fleet in lines of text: counts, rate, time left, cost."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from tui_agent.fleet.driver import FleetDriver
from tui_agent.protocol.amounts import count_text, money_text, seconds_text, tokens_text
from tui_agent.protocol.fleet_counts import FleetCounts, count_rows
from tui_agent.protocol.fleet_records import FleetStatus

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
    """Return the progress in one line.

    Args:
        counts: sums over the rows.
        ended: units that ended since the start of this driver.
        seconds: since then.
    """
    states = counts.states
    parts = [f"{counts.ended}/{counts.units} ended"]
    parts += [f"{states['done']} done", f"{counts.working} running", f"{states['queued']} queued"]
    parts += [f"{states[state]} {state}" for state in ("failed", "stopped", "interrupted", "asking") if states[state]]
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
