"""Rows of units and the totals above them. Pure: records in, lines out.

Every text of a unit is untrusted: it is shown in one line with its hidden characters as escapes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.cells import cell_len
from textual.content import Content

from tui_agent.protocol.amounts import count_text, money_text, seconds_text, tokens_text
from tui_agent.protocol.fleet_records import FleetCounts, UnitRow, UnitState
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import joined_lines, one_line, sanitise, visible
from tui_agent.ui.text.styled_lines import clipped, width_of_runs, wrapped

from .fleet_state import FleetState, seconds_of

SIGNS: dict[UnitState, tuple[str, str, str]] = {
    "queued": ("◌", "muted", "queued"),
    "starting": ("◔", "cursor", "starting"),
    "running": ("◐", "cursor", "running"),
    "asking": ("▲", "warning", "needs you"),
    "verifying": ("◑", "cursor", "verifying"),
    "resuming": ("↻", "warning", "resuming"),
    "interrupted": ("□", "warning", "interrupted"),
    "done": ("✔", "success", "done"),
    "failed": ("✖", "error", "failed"),
    "stopped": ("■", "muted", "stopped"),
}
"""Sign, style and word of each state."""
_TOTALS: tuple[tuple[UnitState, ...], ...] = (
    ("done",),
    ("running", "starting", "verifying"),
    ("resuming",),
    ("asking",),
    ("failed",),
    ("interrupted",),
    ("stopped",),
    ("queued",),
)
"""States in the order of the totals; those of one group are counted together."""
LEAST_ACTIVITY = 24
"""Cells that the columns right of it leave to the activity of a unit."""
_LONGEST = 600
"""Characters of an untrusted text that are read for one row."""


def plain_text(text: str, width: int) -> str:
    """Return an untrusted text in one line of at most `width` cells, with hidden characters as escapes."""
    return one_line(visible(joined_lines(text[:_LONGEST])), max(1, width))


def repository_of(row: UnitRow) -> str:
    """Return the name of a unit's repository: the last part of its path or URL, without `.git`."""
    path = row.unit.repo.rstrip("/")
    # `host:name.git` has no slash before the name.
    return path.replace("\\", "/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git") or path


def worker_of(row: UnitRow) -> str:
    """Return the worker that has a unit or had it last; empty before its start."""
    return row.spans[-1].worker if row.spans else ""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column right of the activity."""

    heading: str
    width: int
    """Cells with the two spaces before it."""
    text: Callable[[UnitRow, int], str]
    """Returns the text of a unit at a time in milliseconds since the epoch."""
    is_number: bool = True


def _time_text(row: UnitRow, now: int) -> str:
    return seconds_text(seconds_of(row, now), tenths=False) if row.spans else ""


def _tokens_text(row: UnitRow, _: int) -> str:
    tokens = row.input_tokens + row.output_tokens
    return tokens_text(tokens) if tokens else ""


_TIME = _Column("time", 9, _time_text)
_COST = _Column("cost", 9, lambda row, _: money_text(row.cost) if row.spans else "")
_STEP = _Column("step", 6, lambda row, _: f"{row.step}" if row.step else "")
_TOKENS = _Column("tokens", 8, _tokens_text)
_WORKER = _Column("worker", 12, lambda row, _: worker_of(row), is_number=False)
_BY_WEIGHT = (_TIME, _COST, _STEP, _WORKER, _TOKENS)
"""Columns, the most important first."""
_IN_ORDER = (_STEP, _TOKENS, _COST, _TIME, _WORKER)


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Widths of the columns for a window and a fleet."""

    width: int
    """Cells of a row."""
    ids: int
    """Cells of the longest id."""
    repository: int
    """Cells of the repository; 0 for none."""
    columns: tuple[_Column, ...]
    """Columns right of the activity."""

    @property
    def activity(self) -> int:
        """Cells of the activity."""
        used = 4 + self.ids + 2 + (self.repository + 2 if self.repository else 0)
        return max(1, self.width - used - sum(column.width for column in self.columns))


def layout_of(state: FleetState, width: int) -> RowLayout:
    """Return the widths: what has no room is left out, and the activity keeps `LEAST_ACTIVITY` cells."""
    ids = min(14, max((cell_len(plain_text(unit_id, 14)) for unit_id in state.rows), default=4))
    ids = max(4, ids)
    longest = max((len(repository_of(row)) for row in state.rows.values()), default=10)
    repository = min(longest, 24 if width >= 110 else 14) if width >= 60 else 0
    repository = max(10, repository) if repository else 0
    room = width - 6 - ids - repository - 2 - LEAST_ACTIVITY
    kept: set[str] = set()
    for column in _BY_WEIGHT:
        # Not skipped: a less important column must not take its place.
        if column.width > room:
            break
        room -= column.width
        kept.add(column.heading)
    return RowLayout(width, ids, repository, tuple(column for column in _IN_ORDER if column.heading in kept))


def column_row(layout: RowLayout) -> Line:
    """Return the headings of the columns."""
    runs = [f"    {_padded('unit', layout.ids)}  "]
    if layout.repository:
        runs.append(f"{_padded('repository', layout.repository)}  ")
    runs.append(_padded("activity", layout.activity))
    runs += [_cell(column, column.heading) for column in layout.columns]
    return Line(clipped([("".join(runs), "muted")], layout.width))


def unit_row(row: UnitRow, layout: RowLayout, now: int, *, chosen: bool, question: str = "") -> Line:
    """Return the row of one unit at a time in milliseconds since the epoch.

    Args:
        question: its oldest open question in short; empty without one.
    """
    sign, style, _ = SIGNS[row.state]
    text, text_style = activity_of(row, question)
    runs: list[Run] = [
        # The ground alone would not show the cursor where there are no colours.
        ("› " if chosen else "  ", "key"),
        (f"{sign} ", style),
        (f"{_padded(plain_text(row.id, layout.ids), layout.ids)}  ", "strong"),
    ]
    if layout.repository:
        name = plain_text(repository_of(row), layout.repository)
        runs.append((f"{_padded(name, layout.repository)}  ", ""))
    runs.append((_padded(one_line(text, layout.activity), layout.activity), text_style))
    runs += [(_cell(column, plain_text(column.text(row, now), column.width - 2)), "muted") for column in layout.columns]
    if chosen:
        runs = [(text, f"{style} code-ground".strip()) for text, style in runs]
    return Line(clipped(runs, layout.width), fill="code-ground" if chosen else "")


def activity_of(row: UnitRow, question: str = "") -> tuple[str, str]:
    """Return what a unit does or what became of it, in one line that may be shown, and its style."""
    activity, reason = plain_text(row.activity, _LONGEST), plain_text(row.reason, _LONGEST)
    match row.state:
        case "queued":
            return plain_text(row.unit.prompt, _LONGEST), "muted"
        case "starting":
            return "is starting", "muted"
        case "asking":
            return one_line(question, _LONGEST) or activity or "waits for your answer", "warning"
        case "verifying":
            return f"verifies: {plain_text(row.unit.verify, _LONGEST)}", ""
        case "resuming":
            # Its new span may have begun already.
            is_lost = any(span.lost for span in row.spans[-2:])
            return "its worker was lost; another one continues it" if is_lost else "continues where it was", "warning"
        case "interrupted":
            return reason, "warning"
        case "failed":
            return reason or "it failed", "error"
        case "stopped":
            return reason or "it was stopped", "muted"
        case "done":
            return _result_of(row), ""
        case _:
            return activity or "is working", "" if activity else "muted"


def _result_of(row: UnitRow) -> str:
    changes, parts = row.changes, list[str]()
    if changes is not None and changes.files:
        parts.append(f"+{changes.insertions} −{changes.deletions} in {count_text(changes.files, 'file')}")
    else:
        parts.append("no changes")
    if row.verified is not None:
        parts.append("verified" if row.verified else "not verified")
    if row.unknown_effects:
        parts.append(count_text(row.unknown_effects, "unknown effect"))
    return " · ".join(parts)


def total_rows(state: FleetState, now: int, width: int) -> list[Line]:
    """Return the totals: numbers of units, rate and time left, tokens and cost; then the delay by a rate limit.

    Args:
        now: milliseconds since the epoch.
    """
    if not state.known:
        return [Line()]
    totals = state.totals(now)
    groups = _count_runs(totals.counts)
    amounts: list[str] = []
    if totals.rate is not None:
        amounts.append(f"{_rate_text(totals.rate)}/min")
    if totals.seconds_left is not None:
        amounts.append(f"{_left_text(totals.seconds_left)} left")
    amounts += [f"{tokens_text(totals.counts.tokens)} tokens", money_text(totals.counts.cost)]
    right: list[Run] = [(" · ".join(amounts), "muted")]
    left = [run for group in groups for run in group]
    gap = width - width_of_runs(left) - width_of_runs(right)
    rows = [Line((*left, (" " * gap, ""), *right))] if gap >= 0 else [*_packed(groups, width), *wrapped(right, width)]
    if state.running and (pause := state.status.paused_until - now) > 0:
        rest = seconds_text((pause + 999) / 1000, tenths=False)
        rows += wrapped([(f"The model's rate limit: the whole fleet waits {rest} more.", "warning")], width)
    return rows


def _count_runs(counts: FleetCounts) -> list[list[Run]]:
    groups: list[list[Run]] = []
    for states in _TOTALS:
        if number := sum(counts.states[state] for state in states):
            sign, style, word = SIGNS[states[0]]
            word = "need you" if number > 1 and states[0] == "asking" else word
            groups.append([(f"{sign} ", style), (f"{number:,} ", "strong"), (f"{word}   ", style)])
    return groups or [[("no units", "muted")]]


def _packed(groups: Sequence[Sequence[Run]], width: int) -> list[Line]:
    rows: list[list[Run]] = [[]]
    for group in groups:
        if rows[-1] and width_of_runs([*rows[-1], *group]) > width + 3:
            rows.append([])
        rows[-1] += group
    return [Line(clipped(row, width)) for row in rows]


def _rate_text(rate: float) -> str:
    return f"{rate:.1f}" if rate < 9.95 else f"{rate:,.0f}"


def _left_text(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1:
        return "less than 1 min"
    return f"about {minutes:.0f} min" if minutes < 90 else f"about {minutes / 60:.1f} h"


def _padded(text: str, width: int) -> str:
    return text + " " * max(0, width - cell_len(text))


def _cell(column: _Column, text: str) -> str:
    padding = " " * max(0, column.width - 2 - cell_len(text))
    return f"  {padding}{text}" if column.is_number else f"  {text}{padding}"


def title_row(state: FleetState, now: int, width: int) -> Line:
    """Return the first line: name, number of units and workers, and the driver's state with the time so far.

    Args:
        now: milliseconds since the epoch.
    """
    left: list[Run] = [(" ", ""), (plain_text(state.status.name, max(8, width // 3)) or "fleet", "strong")]
    units = count_text(len(state.rows), "unit") if len(state.rows) < 1000 else f"{len(state.rows):,} units"
    # A worker that died has no open span, and no unit of its own any more.
    workers = {row.spans[-1].worker for row in state.rows.values() if row.spans and row.spans[-1].ended is None}
    facts = [units, *([count_text(len(workers), "worker")] if workers else [])]
    left.append((f" · {' · '.join(facts)} ", "muted"))
    if not state.known:
        left, words = [(" fleet ", "strong")], " connecting "
    elif state.running:
        words = f" {seconds_text(max(0, now - state.status.started) / 1000, tenths=False)} "
    else:
        words = " over " if all(row.ended for row in state.rows.values()) else " no driver · read only "
    rule = max(0, width - width_of_runs(left) - cell_len(words))
    runs: Sequence[Run] = [*left, ("─" * rule, "rule"), (words, "warning" if "driver" in words else "muted")]
    return Line(clipped(runs, width))


_LABEL = 14


def unit_text(row: UnitRow, now: int) -> Content:
    """Return the text of the page; `now` in milliseconds since the epoch."""
    unit, rights = row.unit, row.unit.permissions
    sign, _, word = SIGNS[row.state]
    used = f"{tokens_text(row.input_tokens)} read, {tokens_text(row.output_tokens)} written · {money_text(row.cost)}"
    facts = [
        ("state", f"{sign} {word}"),
        ("", activity_of(row)[0] if row.state != "queued" else row.reason or "waits for a free worker"),
        ("repository", unit.repo),
        ("ref", unit.ref),
        ("attempt", f"{unit.attempt} at task {unit.task}"),
        *((name, value) for name, value in unit.fields.items()),
        ("verify", unit.verify or "no command"),
        ("model", unit.model or "as the worker's settings say"),
        ("budget", money_text(unit.budget) if unit.budget is not None else "as the worker's settings say"),
        ("timeout", seconds_text(unit.timeout) if unit.timeout is not None else "none"),
        ("mode", rights.mode.words),
        *((verdict, rule) for verdict in ("allow", "ask", "deny") for rule in getattr(rights, verdict)),
        ("used", f"{used} · {seconds_text(seconds_of(row, now), tenths=False)} · {count_text(row.step, 'step')}"),
        *(("worker", _span_text(row, place)) for place in range(len(row.spans))),
        ("unknown", _unknown_text(row.unknown_effects)),
    ]
    parts: list[Content] = [
        Content.assemble((f"{sanitise(label)[: _LABEL - 1]:<{_LABEL}}", "$text-muted"), sanitise(text))
        for label, text in facts
        if text
    ]
    return Content("\n").join([*parts, Content(""), Content.styled("Prompt", "bold"), Content(sanitise(unit.prompt))])


def _span_text(row: UnitRow, place: int) -> str:
    span = row.spans[place]
    begin = f"{datetime.fromtimestamp(span.started / 1000):%H:%M:%S}"
    if span.ended is None:
        return f"{span.worker} since {begin}"
    end = f"{datetime.fromtimestamp(span.ended / 1000):%H:%M:%S}"
    return f"{span.worker} from {begin} to {end}{', then lost' if span.lost else ''}"


def _unknown_text(count: int) -> str:
    if not count:
        return ""
    return f"{count_text(count, 'call')} ran when a worker was lost and may have had an effect outside the worktree"
