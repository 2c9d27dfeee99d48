"""A desk for each test, and the certainty that nothing goes on running when it is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A place of its own; at the end no process that belongs to it may be left."""
    desk = Desk(tmp_path)
    yield desk
    left = desk.processes()
    desk.end_processes()
    assert left == []
