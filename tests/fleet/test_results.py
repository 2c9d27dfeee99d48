"""Ranking of attempts and sums by repository."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.cli.fleet_results import by_repository, rank_attempts
from tui_agent.protocol.fleet_records import UnitChanges, UnitRow, UnitState, UnitTask

STATES: tuple[UnitState, ...] = ("queued", "running", "done", "failed", "stopped")


def row(
    attempt: int = 1,
    *,
    task: str = "1",
    repo: str = "/r",
    state: UnitState = "done",
    verified: bool | None = None,
    lines: int | None = 1,
    cost: float = 0.0,
) -> UnitRow:
    unit = UnitTask(id=f"{task}.{attempt}", task=task, attempt=attempt, prompt="Do it", repo=repo)
    changes = None if lines is None else UnitChanges(files=min(lines, 1), insertions=lines)
    return UnitRow(unit=unit, state=state, verified=verified, changes=changes, cost=cost)


@table(
    ("units", "best"),
    [
        ((row(1, lines=1), row(2, verified=False, lines=1), row(3, verified=True, lines=90)), 3),
        ((row(1, verified=True, lines=0), row(2, verified=True, lines=9), row(3, verified=True, lines=4)), 3),
        ((row(1, state="failed", verified=True, lines=1), row(2, lines=50)), 2),
        ((row(1, cost=0.2), row(2, cost=0.1), row(3, cost=0.1)), 2),
    ],
)
def test_ends_then_checks_then_sizes_then_costs_decide(units: tuple[UnitRow, ...], best: int) -> None:
    [result] = rank_attempts(units)
    assert result.best.unit.attempt == best


rows = st.builds(
    row,
    st.integers(1, 50),
    task=st.sampled_from("abc"),
    repo=st.sampled_from(("/x", "/y")),
    state=st.sampled_from(STATES),
    verified=st.sampled_from((True, False, None)),
    lines=st.none() | st.integers(0, 30),
    cost=st.integers(0, 100).map(float),
)


@given(st.lists(rows, max_size=30))
def test_no_unit_is_lost_or_counted_twice(units: list[UnitRow]) -> None:
    ranked = [attempt for result in rank_attempts(units) for attempt in result.attempts]
    sums = [counts for _, counts in by_repository(units)]

    assert sorted(map(id, ranked)) == sorted(map(id, units))
    assert sum(counts.units for counts in sums) == len(units)
    assert sum(counts.cost for counts in sums) == sum(unit.cost for unit in units)
    assert [counts.cost for counts in sums] == sorted((counts.cost for counts in sums), reverse=True)
