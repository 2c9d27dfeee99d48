"""After every test of the engine, what it told is judged."""

from collections.abc import Iterator

import pytest

from tests.execution.bench import Bench


@pytest.fixture(autouse=True)
def judged() -> Iterator[None]:
    """Every bench of a test leaves a whole transcript behind."""
    Bench.made.clear()
    yield
    for bench in Bench.made:
        bench.judge()
