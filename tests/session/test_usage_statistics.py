"""Tokens and cost of all sessions, by day, model and folder."""

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

from tui_agent.session.journal_counts import read_statistics

DAY, NEXT = date(2026, 3, 1), date(2026, 3, 2)


def event(kind: str, day: date = DAY, depth: int = 0, **data: Any) -> str:
    at = datetime(day.year, day.month, day.day, 12).timestamp()
    return json.dumps({"ts": int(at * 1000), "type": kind, "depth": depth, "data": data}, separators=(",", ":"))


def used(read: int, written: int, cost: float | None, model: str = "", day: date = DAY, cached: int = 0) -> str:
    delta = {"input_tokens": read, "output_tokens": written, "cache_read_tokens": cached, "cache_write_tokens": 0}
    more = {"model": model} if model else {}
    return event("usage.updated", day, delta=delta, total=delta, cost=cost, **more)


def journal(folder: Path, name: str, *lines: str) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_tokens_and_cost_are_summed_by_day_model_and_folder(tmp_path: Path) -> None:
    first = journal(
        tmp_path,
        "first",
        event("session.created", cwd="/a"),
        event("run.started", model="big"),
        used(100, 10, 1.0, cached=300),
        event("run.started", model="sub", depth=1),
        used(50, 5, 1.25, "small", NEXT),
        event("message.ended", message={"text": '"type":"usage.updated"'}),
        "not JSON",
    )
    second = journal(tmp_path, "second", event("session.created", cwd="/b"), used(7, 1, None, "local"))

    found = read_statistics(tmp_path, [first, second, tmp_path / "gone.jsonl"])
    shown = found.to_json()

    assert shown["total"] == {
        "sessions": 2,
        "input_tokens": 157,
        "output_tokens": 16,
        "cache_read_tokens": 300,
        "cache_write_tokens": 0,
        "cost_usd": 1.25,
    }
    assert [(one["day"], one["sessions"], one["cost_usd"]) for one in shown["days"]] == [
        ("2026-03-02", 1, 0.25),
        ("2026-03-01", 2, 1.0),
    ]
    assert [(one["model"], one["input_tokens"]) for one in shown["models"]] == [
        ("big", 100),
        ("small", 50),
        ("local", 7),
    ]
    assert [(one["folder"], one["cost_usd"]) for one in shown["folders"]] == [("/a", 1.25), ("/b", None)]
    assert read_statistics(tmp_path, [first], NEXT).total.input_tokens == 50


def test_what_a_copy_has_from_its_original_is_counted_once(tmp_path: Path) -> None:
    begun = (event("session.created", cwd="/a"), event("run.started", model="big"), used(100, 10, 1.0))
    original = journal(tmp_path, "original", *begun)
    copy = journal(tmp_path, "copy", *begun, event("session.forked", id="copy"), used(5, 1, 1.5))

    total = read_statistics(tmp_path, [original, copy]).total

    assert (total.input_tokens, total.cost, len(total.sessions)) == (105, 1.5, 2)


def test_the_tables_have_a_row_for_each_sum(tmp_path: Path) -> None:
    long = "/" + "x" * 60
    path = journal(tmp_path, "one", event("session.created", cwd=long), used(1200, 40, 0.5, "big", cached=800))

    lines = read_statistics(tmp_path, [path]).lines(80)

    assert max(map(len, lines)) == 80
    assert [line.split() for line in lines if line] == [
        ["sessions", "read", "cached", "written", "cost"],
        ["All", "1", "2k", "40", "%", "40", "$0.50"],
        ["Day"],
        ["2026-03-01", "1", "2k", "40", "%", "40", "$0.50"],
        ["Model"],
        ["big", "1", "2k", "40", "%", "40", "$0.50"],
        ["Folder"],
        ["…" + "x" * 33, "1", "2k", "40", "%", "40", "$0.50"],
    ]
    assert read_statistics(tmp_path, []).lines(80) == ["No saved session has used any tokens."]
