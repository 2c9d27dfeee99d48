"""Page about one unit: its task, rights, workers and result. Pure."""

from datetime import datetime

from textual.content import Content

from tui_agent.protocol.amounts import count_text, money_text, seconds_text, tokens_text
from tui_agent.protocol.fleet_records import UnitRow
from tui_agent.ui.text.sanitiser import sanitise

from .fleet_state import seconds_of
from .unit_rows import SIGNS, activity_of

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
        ("mode", rights.mode.value.replace("_", " ")),
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
