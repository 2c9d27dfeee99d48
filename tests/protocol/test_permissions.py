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


@table(
    "decision",
    [
        {"decision": "approve", "scope": "session", "rule": "bash(ls)", "input": {"path": "b"}, "note": "once more"},
        {"decision": "approve", "override_result": RESULT, "note": "mine"},
        {"decision": "skip", "override_result": RESULT},
        {"decision": "deny", "note": "because"},
    ],
)
def test_every_other_decision_is_valid(decision: dict[str, Any]) -> None:
    assert ApprovalDecision(**decision).decision == decision["decision"]
