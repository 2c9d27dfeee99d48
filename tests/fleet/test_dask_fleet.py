"""A whole fleet with the real program on a Dask cluster of this machine."""

from pathlib import Path

import pytest

from tests.benchmarks.fleet import CANARY, Soak


@pytest.mark.slow
@pytest.mark.long
def test_a_fleet_of_eight_loses_a_worker_and_nothing_else(tmp_path: Path) -> None:
    soak = Soak(tmp_path, units=8, workers=2)

    soak.run(kills=1, stopped=0, latest=0.1)

    assert soak.faults() == []
    status = soak.status()
    assert status is not None
    assert [notice for notice in status.notices if "is lost" in notice]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
