from typing import Any

import pytest

from tests.execution.kit import FakePolicy, ScriptedTool, call
from tests.execution.stage_kit import Stand
from tui_agent.execution import ExecutionOptions, Parallel
from tui_agent.protocol.events import ToolQueued
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Verdict


async def test_a_received_call_is_published_with_its_known_data() -> None:
    stand = Stand(ScriptedTool("look", read_only=True), asked=call("look", a=1), policy=FakePolicy())
    stand.state.turn.wave = 2

    stand.executor.publish_queued(stand.state)

    assert stand.events() == [
        ToolQueued(call_id="c", name="look", args_raw={"a": 1}, index=0, group=2, safe=True, summary="look!")
    ]


@pytest.mark.parametrize(
    ("policy", "verdict", "will_ask"),
    [
        (None, None, False),
        (FakePolicy(), None, None),
        (FakePolicy(), "allow", False),
        (FakePolicy(), "ask", True),
        (FakePolicy(), "deny", False),
    ],
)
async def test_the_event_says_whether_the_user_will_be_asked_if_known(
    policy: FakePolicy | None, verdict: Verdict | None, will_ask: bool | None
) -> None:
    stand = Stand(policy=policy)

    stand.executor.publish_queued(stand.state, verdict)

    assert [event.will_ask for event in stand.events(ToolQueued)] == [will_ask]


@pytest.mark.parametrize("name", ["act", "nothing"])
async def test_a_call_without_a_summary_is_still_published(name: str) -> None:
    class Broken(ScriptedTool):
        def summarise(self, arguments: JsonObject) -> str:
            raise KeyError

    stand = Stand(Broken(), asked=call(name))
    stand.executor.publish_queued(stand.state)

    assert stand.events(ToolQueued)[0].summary == ""


async def test_the_fault_of_a_call_is_kept_and_not_published_yet() -> None:
    stand = Stand(asked=call("nothing"))

    assert stand.invalid_outcome is not None
    assert stand.invalid_outcome.status == "not_found"
    assert stand.events() == []


async def test_a_call_has_a_token_of_its_own_below_the_runs() -> None:
    stand = Stand()

    stand.state.token.cancel("only this one")
    assert not stand.token.is_set()

    other = Stand()
    other.token.cancel("all of them")
    assert other.state.token.is_set()


READ = {"read_only": True}


@pytest.mark.parametrize(
    ("tool", "options", "policy", "asked", "verdict"),
    [
        (READ, {}, None, "t", "allow"),
        (READ, {}, FakePolicy(), "t", "allow"),
        (READ, {}, FakePolicy({"t": "ask"}), "t", "ask"),
        (READ, {}, FakePolicy({"t": "deny"}), "t", "deny"),
        (READ, {}, None, "unknown", None),
        (READ, {"stream_tools": "off"}, None, "t", None),
        (READ, {"strategy": Parallel()}, None, "t", None),
        ({}, {}, None, "t", None),
        ({"safe": True}, {}, None, "t", None),
        ({"read_only": True, "safe": False}, {}, None, "t", None),
        ({"read_only": True, "alone": True}, {}, None, "t", None),
    ],
)
async def test_only_harmless_calls_are_decided_while_the_answer_streams(
    tool: dict[str, Any], options: dict[str, Any], policy: FakePolicy | None, asked: str, verdict: Verdict | None
) -> None:
    stand = Stand(ScriptedTool("t", **tool), asked=call(asked), options=ExecutionOptions(**options), policy=policy)

    assert stand.executor.early_verdict(stand.state) == verdict
