"""Queries without the service that would answer them."""

import pytest

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.ui.bridge.queries import RewindQueries


async def test_a_rewind_without_a_stored_session_is_refused() -> None:
    with pytest.raises(TuiAgentError, match="not stored"):
        await RewindQueries().points()
