"""A desk for each test, and the check that no process of a test survives it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Return a new desk; fail if one of its processes is still running at the end."""
    desk = Desk(tmp_path)
    yield desk
    left = desk.processes()
    desk.end_processes()
    assert left == []
