"""Fixtures of the loop's tests."""

from collections.abc import Iterator

import pytest

from tests.support.validating_bus import judged as judged

from .harness import BenchMaker


@pytest.fixture
def bench() -> Iterator[BenchMaker]:
    """Return a maker of agents whose events are validated when the test ends."""
    maker = BenchMaker()
    yield maker
    for made in maker.benches:
        made.judge()
