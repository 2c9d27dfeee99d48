from pathlib import Path
from typing import Any

import pytest

from tests.execution.kit import ScriptedTool, call, run
from tui_agent.execution.json_coercion import coerce_metrics, plain, with_json_details
from tui_agent.protocol.envelope import read_envelope
from tui_agent.protocol.events import ToolData, ToolUpdated
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import ToolContext, ToolResult


def test_json_values_are_published_as_they_were_then() -> None:
    details: JsonObject = {"a": [1, 2.5, None, True, {"b": "c"}]}
    told, result = plain(details), with_json_details(ToolResult(details=details))

    details["a"][4]["b"] = "changed"

    assert told == result.details == {"a": [1, 2.5, None, True, {"b": "c"}]}


def deep(levels: int) -> JsonObject:
    value: JsonObject = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("value", "as_json"),
    [
        ((1, 2), [1, 2]),
        ({1}, [1]),
        (Path("/a"), "/a"),
        (float("nan"), "NaN"),
        ({1: {2: 3}}, {"1": {"2": 3}}),
        (b"\xff", "b'\\xff'"),
        ("a\ud83d", "a\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ({"\ud83d": Path("\udc80")}, {"\ufffd": "\ufffd"}),
    ],
)
def test_values_unknown_to_json_become_known_ones(value: object, as_json: object) -> None:
    assert plain({"a": [value]}) == {"a": [as_json]}


@pytest.mark.parametrize("levels", [150, 5000])
def test_values_too_deep_to_publish_are_shown_as_text(levels: int) -> None:
    assert "..." in plain(deep(levels))["value"]


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
