"""Fixtures of seed 004's tests: an agent on a bench, in the seed's own preset."""

from collections.abc import Iterator

import pytest

from tests.agent.harness import BenchMaker
from tui_agent.execution import ExecutionOptions


@pytest.fixture
def bench() -> Iterator[BenchMaker]:
    """Makes agents on a bench; each is judged when the test is over."""
    maker = BenchMaker()
    yield maker
    for made in maker.benches:
        made.judge()


@pytest.fixture
def literal() -> ExecutionOptions:
    """The seed's literal behaviour of calls: all at once, hooks before the lookup, `{}` for broken arguments."""
    return ExecutionOptions.preset("sdk_loop")
