from typing import Any

import pytest

from tests.execution.kit import FakePolicy, ScriptedTool, call, run, sleeping
from tui_agent.execution import ApprovalGate, ExecutionOptions
from tui_agent.execution.pipeline.admission import time_limit
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.events import ApprovalRequested
from tui_agent.protocol.messages import JsonObject


class Timed(ScriptedTool):
    """Tool with a fixed answer about its timeout."""

    def __init__(self, says: Any, seconds: float = 0) -> None:
        super().__init__("act", sleeping(seconds))
        self._says = says

    def timeout(self, arguments: JsonObject) -> Any:
        return self._says


@pytest.mark.parametrize(
    ("own", "configured", "limit"),
    [
        ("default", 30.0, 30.0),
        ("default", None, None),
        (5, 30.0, 5),
        (5.0, None, 5.0),
        (None, 30.0, None),
    ],
)
def test_the_tools_own_timeout_precedes_the_configured_one(own: Any, configured: Any, limit: Any) -> None:
    assert time_limit(Timed(own), {}, configured) == limit


@pytest.mark.parametrize("own", [0, -1, float("inf"), float("nan"), True, "30", "none"])
def test_an_invalid_timeout_is_refused_with_a_clear_message(own: Any) -> None:
    """0 is neither the configured timeout nor unlimited."""
    with pytest.raises(InvalidArgumentsError, match=f"act .*time limit of {own!r}.* more than 0 seconds, or None"):
        time_limit(Timed(own), {}, 30.0)


@pytest.mark.parametrize("checked", [True, False])
async def test_a_call_without_a_valid_timeout_does_not_run_and_asks_no_question(checked: bool) -> None:
    tool = Timed(0)

    ran = await run(
        [tool],
        [call()],
        ExecutionOptions(validate_arguments=checked),
        policy=FakePolicy({"act": "ask"}),
        gate=ApprovalGate(interactive=True),
    )

    assert ran.statuses == ["invalid"]
    assert "time limit of 0" in ran.texts[0]
    assert tool.calls == []
    assert ran.of(ApprovalRequested) == []
