"""Fixtures of the tests of S4: an agent with a scripted model, in the preset `sdk_loop`."""

from collections.abc import Iterator

import pytest

from tests.agent.harness import BenchMaker
from tui_agent.execution import ExecutionOptions


@pytest.fixture
def bench() -> Iterator[BenchMaker]:
    """Return a maker of agents whose events are validated when the test ends."""
    maker = BenchMaker()
    yield maker
    for made in maker.benches:
        made.judge()


@pytest.fixture
def literal() -> ExecutionOptions:
    """Return the literal options of S4: all calls at once, hooks before the lookup, `{}` for broken arguments."""
    return ExecutionOptions.preset("sdk_loop")
