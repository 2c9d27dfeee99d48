"""Report of a fleet: table, JSON, page, chart."""

import json
from xml.etree import ElementTree

from tests.fleet.test_results import row
from tests.support.table import table
from tui_agent.cli.fleet_results import MOST_BARS, report_chart, report_page, report_rows, report_table, totals_text
from tui_agent.cli.fleet_views import progress_text, row_text
from tui_agent.protocol.fleet_records import (
    INTERRUPTED,
    FleetStatus,
    UnitChanges,
    UnitRow,
    WorkerSpan,
    count_rows,
)

SVG = "{http://www.w3.org/2000/svg}"


def status(*rows: UnitRow) -> FleetStatus:
    return FleetStatus(name="migration", started=0, running=False, rows=rows)


def sample() -> FleetStatus:
    done = row(1, repo="/src/api", verified=True, cost=0.25).model_copy(
        update={
            "changes": UnitChanges(files=2, insertions=10, deletions=3),
            "spans": (
                WorkerSpan(worker="w1", started=1000, ended=3500),
                WorkerSpan(worker="w2", started=9000, ended=9500),
            ),
            "epoch": 2,
        }
    )
    smaller = row(2, repo="/src/api", verified=False, cost=0.05)
    failed = row(1, task="2", repo="/src/web", state="failed", cost=0.1).model_copy(update={"reason": "no ref x"})
    return status(smaller, done, failed, row(1, task="3", repo="/src/web", state="running"))


def test_the_table_marks_the_best_attempt_and_ends_with_the_totals() -> None:
    head, best, second, failed, running, _, totals = report_table(sample())

    assert head.split() == ["unit", "state", "verify", "changes", "cost", "time", "repository", "reason"]
    assert best.startswith("1.1 *")
    assert [cell for cell in ("passed", "2 files +10 −3", "$0.25", "3.0 s") if cell not in best] == []
    assert second.startswith("1.2  ")
    assert failed.endswith("no ref x")
    assert " running " in running
    assert totals == "4 units: 2 done, 1 failed, 1 unfinished · $0.40"


def test_a_unit_without_a_driver_is_interrupted_in_every_view() -> None:
    left = status(row(1, state="running"), row(2, state="done")).without_driver(5_000)

    assert "interrupted  r  " in row_text(left.rows[0])
    assert row_text(left.rows[0]).endswith(INTERRUPTED)
    assert progress_text(count_rows(left.rows), 0, 0.0).startswith(
        "1/2 ended · 1 done · 0 running · 0 queued · 1 inter"
    )
    [line] = [line for line in report_table(left) if "interrupted" in line]
    assert line.endswith(INTERRUPTED)
    assert totals_text(left.rows).startswith("2 units: 1 done, 1 unfinished")


def test_the_rows_become_json_with_ranks_and_workers() -> None:
    rows = json.loads(json.dumps(report_rows(sample())))

    assert [(one["unit"], one["rank"]) for one in rows] == [("1.1", 1), ("1.2", 2), ("2.1", 1), ("3.1", 1)]
    assert (
        rows[0] | {"seconds": 3.0, "workers": ["w1", "w2"], "starts": 2, "verified": True, "cost_usd": 0.25} == rows[0]
    )
    assert rows[0]["changes"] == {"files": 2, "insertions": 10, "deletions": 3}


@table("hostile", ["a|b", "[x](http://e)", "<b>", "`x`", "# x", "a\nb", "\x1b[31m", "\u202e"])
def test_text_from_units_adds_neither_markup_nor_control_characters(hostile: str) -> None:
    unit = row(repo=f"/r/{hostile}", state="failed").model_copy(update={"reason": hostile})

    page, table, chart = report_page(status(unit)), report_table(status(unit)), report_chart(status(unit))

    assert "<b>" not in page
    assert page.count("<tr>") == page.count("</tr>") == 2
    assert all(character.isprintable() for text in (page, *table) for character in text.replace("\n", ""))
    assert ElementTree.fromstring(chart) is not None


def test_a_chart_of_many_repositories_sums_up_the_cheapest() -> None:
    rows = [row(1, task=str(number), repo=f"/r/{number}", cost=1000 - number) for number in range(MOST_BARS + 5)]

    chart = ElementTree.fromstring(report_chart(status(*rows)))

    assert [title.text for title in chart.iter(f"{SVG}title")][-1] == "5 others"
