"""Every question of the screen passes through the exchange."""

import inspect
from typing import Any

import pytest

from tests.support.table import table
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.bridge.exchange import Exchange
from tui_agent.ui.bridge.queries import FileQueries, GrantQueries, RewindQueries, SessionQueries, SubAgentQueries
from tui_agent.ui.bridge.rule_queries import RuleQueries


def public_functions(kind: type) -> dict[str, Any]:
    return {name: member for name, member in vars(kind).items() if name[0] != "_" and inspect.isfunction(member)}


@table(
    "kind",
    [AgentBridge, FileQueries, GrantQueries, RewindQueries, RuleQueries, SessionQueries, SubAgentQueries],
)
def test_every_method_with_an_answer_is_a_query(kind: type) -> None:
    answering = {name for name, one in public_functions(kind).items() if one.__annotations__["return"] is not None}
    if kind is AgentBridge:
        # Words about the kind of session, which are the same at any time.
        answering.remove("refusal")

    assert answering
    assert answering == {name for name, one in public_functions(kind).items() if hasattr(one, "query")}


async def test_a_rewind_without_a_stored_session_is_refused() -> None:
    with pytest.raises(TuiAgentError, match="not stored"):
        await RewindQueries(Exchange()).points()
