from pathlib import Path
from typing import Any

import pytest

from tests.execution.kit import ScriptedTool, call, run
from tui_agent.execution.json_coercion import coerce_metrics
from tui_agent.execution.outcomes import (
    LISTED_TOOLS,
    Outcome,
    not_found,
    timed_out,
)
from tui_agent.execution.tool_registry import ToolRegistry
from tui_agent.protocol.envelope import read_envelope
from tui_agent.protocol.events import ToolData, ToolUpdated
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import ToolContext, ToolResult


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


def deep(levels: int) -> JsonObject:
    value: JsonObject = {}
    for _ in range(levels):
        value = {"in": value}
    return value


def test_metrics_may_be_bare_values() -> None:
    metrics: dict[str, Any] = {"rows": 5, "kept": Metric(value=1, type="count"), "where": Path("/a")}
    metrics |= {"most": Metric(value=float("inf"), type="rows")}
    metrics |= {
        "cost": {"value": 3, "type": "number"},
        "bad": {"value": [3]},
    }

    assert coerce_metrics(metrics) == {
        "rows": Metric(value=5),
        "kept": Metric(value=1, type="count"),
        "where": Metric(value="/a"),
        "most": Metric(value=float("inf"), type="rows"),
        "cost": Metric(value=3, type="number"),
        "bad": Metric(value="{'value': [3]}"),
    }


async def test_whatever_a_tool_reports_is_serialisable_and_its_result_is_kept() -> None:
    async def odd(arguments: JsonObject, context: ToolContext) -> ToolResult:
        notes: dict[str, Any] = context.metrics
        notes["rows"] = 5
        context.emit("odd", {"seen": {object}})
        context.update(ToolResult(details={"at": Path("/a")}))
        return ToolResult.of_text("done", details={"at": Path("/a"), "deep": deep(5000)})

    ran = await run([ScriptedTool(behaviour=odd)], [call()])

    assert ran.texts == ["done"]
    assert ran.ended("c").metrics == {"rows": Metric(value=5)}
    assert ran.of(ToolUpdated)[0].partial.details == {"at": "/a"}
    assert isinstance(ran.of(ToolData)[0].data["seen"], list)
    for envelope in ran.envelopes:
        again = read_envelope(envelope.to_json())
        assert again is not None
        assert again.event.type == envelope.event.type
