"""A short crash sweep; `python -m tests.benchmarks.crash_sweep` runs the whole one."""

import random
from pathlib import Path

from tests.session.crashes import points_of, sweep, whole_session

TURNS = 4


def test_killed_anywhere_a_session_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    """Every message that was acknowledged is there, no effect is repeated, and the next request is valid."""
    operations, seconds = whole_session(tmp_path, TURNS)
    chance = random.Random(5)
    first, others = points_of(operations)[:10], points_of(operations)[10:]
    points = first + chance.sample(others, 14)
    points += [-chance.randrange(1_000, int(seconds * 1e6)) for _ in range(6)]

    found = sweep(tmp_path, points, TURNS)

    assert found.faults == []
    # A busy machine writes in larger batches, so that the last operations of a quiet one may never come; the first do.
    assert found.killed >= len(first)
    assert found.taken_up_twice > 0
