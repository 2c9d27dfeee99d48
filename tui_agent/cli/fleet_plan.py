"""`tui-agent fleet run --check`: says what would run, where, with which rights, and what it may cost at most."""

import os
from collections.abc import Sequence
from pathlib import Path

from tui_agent.fleet.backend import ClusterChoice
from tui_agent.protocol.amounts import count_text, money_text, seconds_text
from tui_agent.protocol.fleet_records import UnitTask
from tui_agent.protocol.visible_text import escaped

from .fleet_cluster import walls_work
from .process.controlling_terminal import say

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
