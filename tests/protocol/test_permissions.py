from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.table import table
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import ToolResult

RESULT = ToolResult.of_text("mine")


@table(
    ("decision", "why"),
    [
        ({"decision": "deny", "scope": "session"}, "need an approval that lets the call run"),
        ({"decision": "skip", "scope": "project"}, "need an approval that lets the call run"),
        ({"decision": "approve", "scope": "session", "override_result": RESULT}, "lets the call run"),
        ({"decision": "deny", "input": {"path": "b"}}, "need an approval that lets the call run"),
        ({"decision": "approve", "input": {"path": "b"}, "override_result": RESULT}, "lets the call run"),
        ({"decision": "skip", "rule": "bash(ls)"}, "need an approval that lets the call run"),
        ({"decision": "approve", "rule": "bash(ls)"}, "a rule needs a scope longer than once"),
        ({"decision": "deny", "override_result": RESULT}, "skip or approve it to use override_result"),
    ],
)
def test_a_decision_with_an_ignored_field_is_refused(decision: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        ApprovalDecision(**decision)
