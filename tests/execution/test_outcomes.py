from typing import get_args

import pytest

from tests.execution.kit import ScriptedTool
from tui_agent.execution.outcomes import (
    LISTED_TOOLS,
    Outcome,
    SkipReason,
    not_found,
    skipped,
    timed_out,
)
from tui_agent.execution.tool_registry import ToolRegistry
from tui_agent.protocol.tool import ToolResult


def test_only_a_users_message_is_attributed_to_the_user() -> None:
    texts = {reason: skipped(reason).result.text for reason in get_args(SkipReason)}

    assert texts["steering"].startswith("Skipped due to queued user message.")
    assert "not from the user" in texts["notice"]
    assert all("user" not in texts[reason] for reason in ("cancelled", "failed", "sibling"))
    assert len(set(texts.values())) == len(texts)
    assert all(skipped(reason).result.is_error for reason in get_args(SkipReason))


@pytest.mark.parametrize(
    ("known", "nearest", "explain", "text"),
    [
        ((), (), False, "Tool x not found"),
        ((), (), True, "Tool x not found. There are no tools."),
        (("a", "b"), ("a",), True, "Tool x not found. Available tools: a, b."),
        (tuple(map(str, range(LISTED_TOOLS + 1))), ("a", "b"), True, "Tool x not found. Closest names: a, b."),
        (
            tuple(map(str, range(LISTED_TOOLS + 1))),
            (),
            True,
            "Tool x not found. None of the 41 tools has a similar name.",
        ),
    ],
)
def test_the_result_for_an_unknown_tool_is_helpful(
    known: tuple[str, ...], nearest: tuple[str, ...], explain: bool, text: str
) -> None:
    assert not_found("x", known, nearest, explain=explain).result.text == text


def test_status_follows_the_error_flag_if_a_hook_changes_the_result() -> None:
    fine = Outcome("ok", ToolResult.of_text("fine"))
    late = timed_out("act", 3)

    assert fine.with_result(ToolResult.of_text("bad", is_error=True)).status == "error"
    assert fine.with_result(ToolResult.of_text("other")).status == "ok"
    changed = late.with_result(ToolResult.of_text("x"))
    assert (changed.status, changed.result.is_error) == ("timeout", True)
    assert not Outcome("overridden", ToolResult()).with_result(ToolResult.of_text("x")).result.is_error


def test_the_nearest_names_come_first_whatever_their_case() -> None:
    registry = ToolRegistry([ScriptedTool(name) for name in ("read", "write", "edit", "glob")])

    assert "read" in registry
    assert registry.nearest("Raed")[0] == "read"
    assert registry.nearest("WRITE_")[0] == "write"
    assert registry.nearest("zzzz") == ()
