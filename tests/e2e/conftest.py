"""A user's machine for each test, and a check that no process outlives the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .user_machine import UserMachine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[UserMachine]:
    """A machine with its own directories; none of its processes may outlive the test."""
    machine = UserMachine(tmp_path)
    yield machine
    left = machine.processes()
    machine.end_processes()
    assert left == []
