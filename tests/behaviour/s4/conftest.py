"""Fixtures of the tests of S4: an agent with a scripted model, in the preset `sdk_loop`."""

import pytest

from tui_agent.execution import ExecutionOptions


@pytest.fixture
def literal() -> ExecutionOptions:
    """Return the literal options of S4: all calls at once, hooks before the lookup, `{}` for broken arguments."""
    return ExecutionOptions.preset("sdk_loop")
