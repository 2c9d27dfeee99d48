"""A short crash sweep; `python -m tests.benchmarks.crash_sweep` runs the whole one."""

import random
from pathlib import Path

import pytest

from tests.session.crash_scenes import approval_scene, compaction_scene, rewind_scene, store_scene, turns_scene
from tests.session.crashes import Scene, points_of, sweep, whole
from tests.support.table import table

FIRST = 10
"""Only early operations: a busy machine batches more, so that late ones may not occur."""


@pytest.mark.slow
@table(
    ("scene", "from_outside"),
    [(turns_scene(3), 4), (approval_scene(2), 0), (compaction_scene(4), 0), (rewind_scene(), 0), (store_scene(), 0)],
)
def test_a_kill_at_any_point_loses_nothing_and_repeats_nothing(tmp_path: Path, scene: Scene, from_outside: int) -> None:
    """No acknowledged message is lost, no effect repeated, the next request is valid, and interrupted changes are
    complete or reported as uncertain."""
    operations, seconds = whole(scene, tmp_path)
    chance = random.Random(5)
    points = chance.sample(points_of(operations)[:FIRST], 2) + chance.sample(points_of(operations)[FIRST:], 3)
    points += [-chance.randrange(1_000, int(seconds * 1e6)) for _ in range(from_outside)]

    found = sweep(scene, tmp_path, points)

    assert found.faults == []
    assert found.killed >= 2
