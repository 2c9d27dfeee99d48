"""A desk for each test, and a check that no process outlives the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk with its own directories; no process of it may be left at the end."""
    desk = Desk(tmp_path)
    yield desk
    left = desk.processes()
    desk.end_processes()
    assert left == []
