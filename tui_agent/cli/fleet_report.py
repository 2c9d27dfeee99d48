"""Report of a fleet: a table, JSON, or an HTML page with a chart of cost and outcome by repository."""

import html
from collections.abc import Sequence
from pathlib import PurePath
from xml.etree import ElementTree

from tui_agent.fleet.results import RepositoryResult, TaskResult, by_repository, rank_attempts
from tui_agent.protocol.amounts import count_text, money_text, seconds_text
from tui_agent.protocol.fleet_records import FleetStatus, UnitRow
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.visible_text import escaped

HEAD = ("unit", "state", "verify", "changes", "cost", "time", "repository", "reason")
MOST_BARS = 60
"""Repositories in the chart; the others are summed up in one bar."""

_BAR_WIDTH = 420
_NAME_WIDTH = 220
_ROW_HEIGHT = 22
_STYLE = "body{font-family:sans-serif} table{border-collapse:collapse} th,td{text-align:left;padding:2px 10px}"
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
    repositories = _with_rest_summed(by_repository(status.rows))
    most = max((one.cost for one in repositories), default=0.0)
    height = (len(repositories) + 3) * _ROW_HEIGHT
    size = {"width": str(_NAME_WIDTH + _BAR_WIDTH + 200), "height": str(height)}
    fonts = {"font-family": "sans-serif", "font-size": "12"}
    svg = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **fonts})
    ElementTree.SubElement(svg, "rect", {"width": "100%", "height": "100%", "fill": "white"})
    _text(svg, 10, 16, f"{_line(status.name)}: {totals_text(status.rows)}")
    for number, repository in enumerate(repositories):
        _draw_bar(svg, repository, (number + 1) * _ROW_HEIGHT + 8, most)
    _draw_legend(svg, height - _ROW_HEIGHT // 2)
    return ElementTree.tostring(svg, encoding="unicode")


def report_page(status: FleetStatus) -> str:
    """Return a page in HTML that needs no other file: totals, the chart, one row a unit."""
    name = html.escape(_line(status.name))
    results = rank_attempts(status.rows)
    head = "".join(f"<th>{cell}</th>" for cell in HEAD)
    body = [
        "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(row, result))
        for result in results
        for row in result.attempts
    ]
    rows = "\n".join(f"<tr>{row}</tr>" for row in (head, *body))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{name}</title>\n<style>{_STYLE}</style></head>"
        f"<body>\n<h1>{name}</h1>\n{report_chart(status)}\n<table>\n{rows}\n</table>\n</body></html>"
    )


def totals_text(rows: Sequence[UnitRow]) -> str:
    """Return one line: `3 units: 2 done, 1 failed · $0.12`."""
    states = [(state, sum(row.state == state for row in rows)) for state in ("done", "failed", "stopped")]
    unfinished = sum(not row.ended for row in rows)
    counts = ", ".join(f"{count} {state}" for state, count in [*states, ("unfinished", unfinished)] if count)
    cost = money_text(sum(row.cost for row in rows))
    return f"{count_text(len(rows), 'unit')}: {counts or 'nothing to do'} · {cost}"


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


def _with_rest_summed(repositories: Sequence[RepositoryResult]) -> list[RepositoryResult]:
    shown, rest = list(repositories[:MOST_BARS]), repositories[MOST_BARS:]
    if rest:
        shown.append(
            RepositoryResult(
                f"{len(rest)} others",
                done=sum(one.done for one in rest),
                failed=sum(one.failed for one in rest),
                unfinished=sum(one.unfinished for one in rest),
                cost=sum(one.cost for one in rest),
            )
        )
    return shown


def _draw_bar(svg: ElementTree.Element, repository: RepositoryResult, y: int, most: float) -> None:
    units = repository.done + repository.failed + repository.unfinished
    length = _BAR_WIDTH * (repository.cost / most if most else 1.0)
    name = _line(PurePath(repository.repo).name or repository.repo)
    title = ElementTree.SubElement(_text(svg, 10, y + 14, name if len(name) <= 30 else f"{name[:29]}…"), "title")
    title.text = _line(repository.repo)
    x = float(_NAME_WIDTH)
    for outcome, colour in _COLOURS.items():
        width = max(length, 2.0) * getattr(repository, outcome) / units
        if width:
            place = {"x": f"{x:.1f}", "y": str(y), "width": f"{width:.1f}", "height": "16"}
            ElementTree.SubElement(svg, "rect", {**place, "fill": colour})
        x += width
    _text(svg, round(x) + 8, y + 13, f"{money_text(repository.cost)} · {repository.done} of {units} done")


def _draw_legend(svg: ElementTree.Element, y: int) -> None:
    for number, (outcome, colour) in enumerate(_COLOURS.items()):
        x = _NAME_WIDTH + number * 110
        ElementTree.SubElement(svg, "circle", {"cx": str(x), "cy": str(y - 4), "r": "5", "fill": colour})
        _text(svg, x + 10, y, outcome)


def _text(svg: ElementTree.Element, x: int, y: int, text: str) -> ElementTree.Element:
    element = ElementTree.SubElement(svg, "text", {"x": str(x), "y": str(y), "fill": "#202124"})
    element.text = text
    return element
