"""Agents that cooperate: delegate, chain, consolidate (S4-79 … S4-81)."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.agent.harness import BenchMaker, ScriptedTool
from tui_agent.agent import chain, consolidate, delegate
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import SubagentEnded, SubagentStarted
from tui_agent.protocol.provider import ModelRequest
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.providers import Fail, call, fail, reply
from tui_agent.providers.scripted_provider import Reply


async def test_s4_79_a_sub_agent_works_on_a_fork_of_the_conversation_and_returns_its_result(bench: BenchMaker) -> None:
    look = ScriptedTool("look")
    b = bench(["Hello.", reply(call("look", n=1)), "Found it."], look, system="Who.")
    await b.loop.run("Hi")
    b.loop.history.metadata["own"] = True

    report = await delegate(b.loop, "Find the bug")

    assert (report.reason, report.final_text, look.runs) == ("done", "Found it.", [{"n": 1}])
    assert b.sent(1) == ["user: Hi", "assistant: Hello.", "user: Find the bug"]
    assert b.provider.requests[1].system == b.provider.requests[0].system
    assert b.texts == ["user: Hi", "assistant: Hello."], "the parent's conversation is unchanged"
    (started,), (ended,) = b.of(SubagentStarted), b.of(SubagentEnded)
    assert (started.task, started.child_run_id, ended.text) == ("Find the bug", report.id, "Found it.")


async def test_s4_80_each_agent_of_a_chain_sees_the_previous_output_in_its_context(bench: BenchMaker) -> None:
    first, second = bench(["A draft."]), bench(["The final text."])

    async def shout(text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()

    result = await chain([first.loop, shout, second.loop, lambda text: f"{text}!"], "Write")

    assert result.texts == ("A draft.", "A DRAFT.", "The final text.", "The final text.!")
    assert (result.text, result.failed) == ("The final text.!", None)
    assert first.sent(0) == ["user: Write"]
    assert second.sent(0) == ["user: A DRAFT."]
    assert second.provider.requests[0].system[-1].text == "Output of the previous step:\n\nA DRAFT."


async def test_s4_80_a_failing_agent_stops_the_chain(bench: BenchMaker) -> None:
    first, second, third = bench(["A draft."]), bench([fail("invalid_request")]), bench(["never"])

    result = await chain([first.loop, second.loop, third.loop], "Write")

    assert result.texts == ("A draft.",)
    assert result.failed is not None
    assert (result.failed.reason, third.provider.left) == ("error", 1)


async def test_s4_81_results_of_concurrent_agents_are_combined(bench: BenchMaker) -> None:
    both = asyncio.Barrier(2)

    def answers(request: ModelRequest) -> Reply | Fail:
        task = request.messages[-1].text
        if task.startswith("Several agents"):
            return reply("In short: both.")
        return fail("invalid_request") if "broken" in task else reply(call("meet", task=task))

    class Meeting(ScriptedTool):
        async def execute(self, arguments, context):  # type: ignore[no-untyped-def]
            await both.wait()
            return await super().execute(arguments, context)

    def after(request: ModelRequest) -> Reply:
        return reply(f"Result of {request.messages[-3].text}")

    b = bench([answers, answers, answers, after, after, answers], Meeting("meet"))

    report = await consolidate(b.loop, ["part one", "part two", "broken part"], context="fresh")

    assert report.final_text == "In short: both."
    asked = b.provider.requests[-1].messages[0].text
    assert asked.index("## part one\n\nResult of part one") < asked.index("## part two\n\nResult of part two")
    assert "## broken part\n\nThe sub-agent did not finish (error: the scripted model failed)." in asked
    assert b.provider.requests[-1].tools == ()


async def test_s4_81_in_later_rounds_each_agent_sees_all_findings_until_the_judge_has_enough(bench: BenchMaker) -> None:
    def answers(request: ModelRequest) -> Reply:
        words = request.messages[0].text
        return reply(f"{words.splitlines()[0]} after {words.count('## ')} results")

    async def enough(reports: Sequence[AgentRunReport]) -> bool:
        judged.append([report.final_text for report in reports])
        return len(judged) == 2

    judged: list[list[str]] = []
    b = bench([answers] * 5)

    report = await consolidate(b.loop, ["first", "second"], context="fresh", request="Sum up", rounds=9, judge=enough)

    first, again = (
        ["first after 0 results", "second after 0 results"],
        ["first after 2 results", "second after 2 results"],
    )
    assert judged == [first, again]
    assert report.final_text == "Sum up after 2 results"
    asked = [request.messages[0].text for request in b.provider.requests]
    assert all(
        f"## {task}\n\n{found}" in words
        for words in asked[2:4]
        for task, found in zip(("first", "second"), first, strict=True)
    )
    assert all(found in asked[4] for found in again)


async def test_s4_81_without_a_judge_all_rounds_run(bench: BenchMaker) -> None:
    b = bench(["one", "two", "three", "together"])

    assert (await consolidate(b.loop, ["only"], rounds=3)).final_text == "together"
    assert len(b.provider.requests) == 4


@pytest.mark.parametrize("rounds", [0, -1])
async def test_s4_81_zero_rounds_are_refused_before_anything_starts(bench: BenchMaker, rounds: int) -> None:
    b = bench([])

    with pytest.raises(ConfigurationError, match=f"1 or more, got {rounds}"):
        await consolidate(b.loop, ["only"], rounds=rounds)

    assert b.of(SubagentStarted) == []
