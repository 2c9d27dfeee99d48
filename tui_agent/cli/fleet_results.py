"""`tui-agent fleet results`: a table, JSON, or an HTML page with a chart; or a unit's patch as a branch.

The best attempt at each task comes first.
"""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal, TypeAlias
from xml.etree import ElementTree

from tui_agent.fleet.fleet_directory import read_records, read_status
from tui_agent.fleet.worktree_git import apply_as_branch
from tui_agent.protocol.amounts import count_text, money_text, seconds_text
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import ENDED_STATES, FleetCounts, FleetStatus, UnitRow, count_rows
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.visible_text import escaped
from tui_agent.session.html_export import html_page, html_text

from .process.controlling_terminal import say, say_json


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The attempts at one task."""

    task: str
    """Id of the task."""
    attempts: tuple[UnitRow, ...]
    """The best attempt first; at least one."""

    @property
    def best(self) -> UnitRow:
        """The attempt to use."""
        return self.attempts[0]


def rank_attempts(rows: Iterable[UnitRow]) -> tuple[TaskResult, ...]:
    """Group units by task, in the order of their first attempts, and rank the attempts of each.

    A unit that is done comes before one that is not. Then one whose `verify` passed comes before one that has none, and
    that before one whose `verify` failed. Among equals the smallest patch wins, except an empty one, then the lower
    cost.
    """
    tasks: dict[str, list[UnitRow]] = {}
    for row in rows:
        tasks.setdefault(row.unit.task, []).append(row)
    return tuple(TaskResult(task, tuple(sorted(attempts, key=_rank))) for task, attempts in tasks.items())


def by_repository(rows: Iterable[UnitRow]) -> list[tuple[str, FleetCounts]]:
    """Return the sums of each repository, the most expensive one first; those without room in the chart as one."""
    repositories: dict[str, list[UnitRow]] = {}
    for row in rows:
        repositories.setdefault(row.unit.repo, []).append(row)
    sums = [(repo, count_rows(units)) for repo, units in repositories.items()]
    sums.sort(key=lambda one: (-one[1].cost, one[0]))
    if rest := sums[MOST_BARS:]:
        others = count_rows(row for repo, _ in rest for row in repositories[repo])
        return [*sums[:MOST_BARS], (f"{len(rest)} others", others)]
    return sums


def _rank(row: UnitRow) -> tuple[bool, int, bool, int, float, int]:
    changed = 0 if row.changes is None else row.changes.insertions + row.changes.deletions
    # An attempt that changed nothing has the smallest patch, and helps no one.
    is_empty = row.changes is None or row.changes.files == 0
    verified = {True: 0, None: 1, False: 2}[row.verified]
    return row.state != "done", verified, is_empty, changed, row.cost, row.unit.attempt


HEAD = ("unit", "state", "verify", "changes", "cost", "time", "repository", "reason")
MOST_BARS = 60
"""Repositories in the chart; the others are summed up in one bar."""

_BAR_WIDTH = 420
_NAME_WIDTH = 220
_ROW_HEIGHT = 22
_STATE_STYLES = {"done": "good", "failed": "bad"}
_COLOURS = {"done": "#2e8b57", "failed": "#c0392b", "unfinished": "#9aa0a6"}


def report_rows(status: FleetStatus) -> list[JsonObject]:
    """Return one JSON object a unit, with its rank among the attempts at its task (1 is the best)."""
    return [
        {
            "unit": row.id,
            "task": result.task,
            "rank": rank,
            "repo": row.unit.repo,
            "ref": row.unit.ref,
            "fields": row.unit.fields,
            "state": row.state,
            "reason": row.reason,
            "verified": row.verified,
            "changes": row.changes and row.changes.model_dump(),
            "unknown_effects": row.unknown_effects,
            "input_tokens": row.input_tokens,
            "output_tokens": row.output_tokens,
            "cost_usd": row.cost,
            "seconds": round(_seconds(row), 3),
            "starts": row.epoch,
            "workers": [span.worker for span in row.spans],
        }
        for result in rank_attempts(status.rows)
        for rank, row in enumerate(result.attempts, 1)
    ]


def report_table(status: FleetStatus) -> list[str]:
    """Return the lines of a table, the best attempt at each task first, and a line of totals."""
    results = rank_attempts(status.rows)
    cells = [HEAD, *(_cells(row, result) for result in results for row in result.attempts)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return [*lines, "", totals_text(status.rows)]


def report_chart(status: FleetStatus) -> str:
    """Return an SVG with one bar a repository: its length is the cost, its colours are the outcomes."""
    repositories = by_repository(status.rows)
    most = max((counts.cost for _, counts in repositories), default=0.0)
    height = (len(repositories) + 3) * _ROW_HEIGHT
    size = {"width": str(_NAME_WIDTH + _BAR_WIDTH + 200), "height": str(height)}
    fonts = {"font-family": "sans-serif", "font-size": "12"}
    svg = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **fonts})
    ElementTree.SubElement(svg, "rect", {"class": "paper", "width": "100%", "height": "100%", "fill": "white"})
    _text(svg, 10, 16, f"{_line(status.name)}: {totals_text(status.rows)}")
    for number, (repo, counts) in enumerate(repositories):
        _draw_bar(svg, repo, counts, (number + 1) * _ROW_HEIGHT + 8, most)
    _draw_legend(svg, height - _ROW_HEIGHT // 2)
    return ElementTree.tostring(svg, encoding="unicode")


def report_page(status: FleetStatus) -> str:
    """Return a page in HTML that needs no other file: totals, the chart, one row a unit."""
    head = "".join(f"<th>{cell}</th>" for cell in HEAD)
    rows = [_table_row(row, result) for result in rank_attempts(status.rows) for row in result.attempts]
    body = ("<table>", f"<tr>{head}</tr>", *rows, "</table>")
    return html_page(_line(status.name), (f'<div class="wide">{report_chart(status)}</div>', *body))


def _table_row(row: UnitRow, result: TaskResult) -> str:
    cells = _cells(row, result)
    styles = {1: _STATE_STYLES.get(row.state, "muted"), 2: {True: "good", False: "bad", None: "muted"}[row.verified]}
    marks = (f' class="{styles[place]}"' if place in styles else "" for place in range(len(cells)))
    shown = (f"<td{mark}>{html_text(cell)}</td>" for mark, cell in zip(marks, cells, strict=True))
    return f"<tr>{''.join(shown)}</tr>"


def totals_text(rows: Iterable[UnitRow]) -> str:
    """Return one line: `3 units: 2 done, 1 failed · $0.12`."""
    sums = count_rows(rows)
    states = [(state, sums.states[state]) for state in sorted(ENDED_STATES)]
    counts = ", ".join(
        f"{count} {state}" for state, count in [*states, ("unfinished", sums.units - sums.ended)] if count
    )
    return f"{count_text(sums.units, 'unit')}: {counts or 'nothing to do'} · {money_text(sums.cost)}"


def _cells(row: UnitRow, result: TaskResult) -> tuple[str, ...]:
    changes = row.changes
    return (
        f"{row.id} *" if len(result.attempts) > 1 and row is result.best else row.id,
        row.state,
        {True: "passed", False: "failed", None: "–"}[row.verified],
        f"{count_text(changes.files, 'file')} +{changes.insertions} −{changes.deletions}" if changes else "–",
        money_text(row.cost),
        seconds_text(_seconds(row)),
        _line(row.unit.repo),
        _line(row.reason),
    )


def _line(text: str) -> str:
    return " ".join(escaped(text).split())


def _seconds(row: UnitRow) -> float:
    return sum((span.ended - span.started) / 1000 for span in row.spans if span.ended is not None)


def _draw_bar(svg: ElementTree.Element, repo: str, counts: FleetCounts, y: int, most: float) -> None:
    # Without a price, all bars have the same length and still show the outcomes.
    length = _BAR_WIDTH * (counts.cost / most if most else 1.0)
    name = _line(PurePath(repo).name or repo)
    title = ElementTree.SubElement(_text(svg, 10, y + 14, name if len(name) <= 30 else f"{name[:29]}…"), "title")
    title.text = _line(repo)
    x = float(_NAME_WIDTH)
    done = counts.states["done"]
    outcomes = {"done": done, "failed": counts.ended - done, "unfinished": counts.units - counts.ended}
    for outcome, units in outcomes.items():
        # Not thinner than a line: a cheap repository would disappear.
        width = max(length, 2.0) * units / counts.units
        if width:
            place = {"x": f"{x:.1f}", "y": str(y), "width": f"{width:.1f}", "height": "16"}
            ElementTree.SubElement(svg, "rect", {**place, "fill": _COLOURS[outcome]})
        x += width
    _text(svg, round(x) + 8, y + 13, f"{money_text(counts.cost)} · {done} of {counts.units} done")


def _draw_legend(svg: ElementTree.Element, y: int) -> None:
    for number, (outcome, colour) in enumerate(_COLOURS.items()):
        x = _NAME_WIDTH + number * 110
        ElementTree.SubElement(svg, "circle", {"cx": str(x), "cy": str(y - 4), "r": "5", "fill": colour})
        _text(svg, x + 10, y, outcome)


def _text(svg: ElementTree.Element, x: int, y: int, text: str) -> ElementTree.Element:
    element = ElementTree.SubElement(svg, "text", {"x": str(x), "y": str(y), "fill": "#202124"})
    element.text = text
    return element


ReportFormat: TypeAlias = Literal["table", "json", "html"]

PATCH = Path("patch/0001.patch")
"""A unit's patch, below its directory."""


def show_results(out: Path, form: ReportFormat) -> int:
    """Print the results in a format and return 0.

    Raises:
        ConfigurationError: there is no fleet.
    """
    status = read_status(out)
    if form == "json":
        say_json(report_rows(status))
    else:
        say(report_page(status) if form == "html" else "\n".join(report_table(status)))
    return 0


def apply_unit(out: Path, name: str, repo: Path | None, branch: str | None) -> int:
    """Make a branch of a unit's patch, or of that of a task's best attempt, in a local repository; return 0.

    The branch is `fleet/FLEET/ID` unless it is named; the repository is the unit's own, if that is local.

    Raises:
        ConfigurationError: there is no such unit, it has no patch, or the repository does not take it.
    """
    row = _unit(read_status(out), name)
    patch = out / "units" / row.id / PATCH
    if not patch.is_file():
        raise ConfigurationError(f"unit {row.id} is {row.state} and has no patch; nothing was applied")
    target = repo or Path(row.unit.repo)
    if not target.is_dir():
        raise ConfigurationError(f"{row.unit.repo} is not a directory here; name a clone of it with --repo")
    # Without what git refuses in a branch.
    part = re.sub(r"[^A-Za-z0-9_-]+", "-", out.name).strip("-") or "fleet"
    name = branch or f"fleet/{part}/{row.id}"
    asyncio.run(apply_as_branch(target, _base(out, row.id), patch.read_bytes(), name, _message(row)))
    verified = " Its verification failed." if row.verified is False else ""
    say(f"Made the branch {name} in {target} from unit {row.id}.{verified}")
    return 0


def _unit(status: FleetStatus, name: str) -> UnitRow:
    by_id = {row.id: row for row in status.rows}
    by_task = {result.task: result.best for result in rank_attempts(status.rows)}
    row = by_id.get(name) or by_task.get(name)
    if row is None:
        raise ConfigurationError(f"the fleet has no unit or task {name}")
    return row


def _base(out: Path, unit_id: str) -> str:
    records: list[JsonObject] = [
        record for record in read_records(out) if (record.get("type"), record.get("unit")) == ("base", unit_id)
    ]
    if not records:
        raise ConfigurationError(f"the first commit of unit {unit_id} is not recorded; nothing was applied")
    return str(records[-1]["commit"])


def _message(row: UnitRow) -> str:
    """Return the message of the commit: the prompt's first line, the prompt, and the unit."""
    prompt = escaped(row.unit.prompt).strip()
    subject = " ".join(prompt.split("\n", 1)[0].split())
    subject = subject if len(subject) <= 72 else f"{subject[:71]}…"
    body = f"{prompt}\n\n" if prompt != subject else ""
    return f"{subject}\n\n{body}Fleet-Unit: {row.id}"
