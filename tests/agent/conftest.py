"""Fixtures of the loop's tests."""

from collections.abc import Iterator

import pytest

from tests.support.validating_bus import judged as judged

from .harness import BenchMaker


@pytest.fixture
def bench() -> Iterator[BenchMaker]:
    """Makes agents on a bench; each is judged when the test is over."""
    maker = BenchMaker()
    yield maker
    for made in maker.benches:
        made.judge()
