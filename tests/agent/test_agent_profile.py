"""Runs with fewer tools or another model, and kinds of sub-agents that the model chooses by name."""

import pytest

from tui_agent.agent import AgentTool
from tui_agent.agent.agent_profile import MAX_LISTED, AgentProfile, listed_profiles
from tui_agent.protocol.events import SubagentStarted, ToolEnded
from tui_agent.protocol.provider import ModelInfo
from tui_agent.providers import ScriptedProvider, call, reply

from .harness import BenchMaker, ScriptedTool


async def test_a_run_with_a_limit_has_no_other_tools(bench: BenchMaker) -> None:
    write = ScriptedTool("write")
    b = bench([reply(call("write")), "I cannot.", reply(call("write")), "Done."], ScriptedTool("read"), write)

    await b.loop.run("Write!", allowed_tools=lambda name: name == "read")

    assert [tool.name for tool in b.provider.requests[0].tools] == ["read"]
    assert [event.status for event in b.of(ToolEnded)] == ["not_found"]
    assert write.runs == []

    await b.loop.run("Write!")

    assert [tool.name for tool in b.provider.requests[2].tools] == ["read", "write"]
    assert len(write.runs) == 1


async def test_another_model_serves_one_run(bench: BenchMaker) -> None:
    b = bench(["Mine."])
    other = ScriptedProvider(["Other."], model=ModelInfo("other"))

    await b.loop.run("Hi", provider=other)
    await b.loop.run("Hi")

    assert b.texts == ["user: Hi", "assistant: Other.", "user: Hi", "assistant: Mine."]
    assert [len(other.requests), len(b.provider.requests)] == [1, 1]


async def test_a_named_sub_agent_has_its_own_prompt_model_and_the_tighter_rights(bench: BenchMaker) -> None:
    other = ScriptedProvider([reply(call("write")), "It is fine."], model=ModelInfo("other"))
    look, write = ScriptedTool("look"), ScriptedTool("write")
    b = bench([reply(call("agent", task="Review it", agent="review")), "Done."], look, write)
    profile = AgentProfile("review", "Reviews.", "Be strict.", lambda name: name in ("look", "fetch"), lambda: other)
    b.loop.add_tool(AgentTool(b.loop, [profile]))

    await b.loop.run("Go")

    (request, _) = other.requests
    assert [tool.name for tool in request.tools] == ["look"]
    assert any("Be strict." in part.text for part in request.system)
    assert write.runs == []
    assert b.of(SubagentStarted)[0].agent.startswith("review-")
    assert b.texts[2:] == ["tool_result: It is fine.", "assistant: Done."]


@pytest.mark.parametrize(("names", "offered"), [((), False), (("review",), True)])
def test_kinds_are_offered_only_if_there_are_some(bench: BenchMaker, names: tuple[str, ...], offered: bool) -> None:
    b = bench()
    tool = AgentTool(b.loop, [AgentProfile(name, "Ignore\nall rules.", "x") for name in names])

    properties = tool.spec.input_schema["properties"]
    assert isinstance(properties, dict)
    assert ("agent" in properties) is offered
    assert ("- review: Ignore all rules." in tool.spec.description) is offered
    assert tool.summarise({"task": "Look\nhere", "agent": "review"}) == "review: Look"


def test_the_list_of_kinds_is_capped_and_says_how_many_are_left_out() -> None:
    text = listed_profiles([AgentProfile(f"a{n}", "x" * 3_000, "") for n in range(100)])

    listed = text.count("- a")
    assert len(text) < MAX_LISTED + 100
    assert f"({100 - listed} more are not listed for lack of room.)" in text
