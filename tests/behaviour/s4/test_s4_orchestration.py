"""Seed 004, agents that work together: delegate, chain, consolidate (S4-79 … S4-81)."""

import asyncio

from tests.agent.harness import BenchMaker, ScriptedTool
from tui_agent.agent import chain, consolidate, delegate
from tui_agent.protocol.events import SubagentEnded, SubagentStarted
from tui_agent.protocol.provider import ModelRequest
from tui_agent.providers import Fail, call, fail, reply
from tui_agent.providers.scripted_provider import Reply


async def test_s4_79_a_sub_agent_works_on_a_fork_of_the_conversation_and_gives_its_result(bench: BenchMaker) -> None:
    look = ScriptedTool("look")
    b = bench(["Hello.", reply(call("look", n=1)), "Found it."], look, system="Who.")
    await b.loop.run("Hi")
    b.loop.history.metadata["own"] = True

    report = await delegate(b.loop, "Find the bug")

    assert (report.reason, report.final_text, look.runs) == ("done", "Found it.", [{"n": 1}])
    assert b.sent(1) == ["user: Hi", "assistant: Hello.", "user: Find the bug"]
    assert b.provider.requests[1].system == b.provider.requests[0].system
    assert b.texts == ["user: Hi", "assistant: Hello."], "the parent's conversation is its own"
    (started,), (ended,) = b.of(SubagentStarted), b.of(SubagentEnded)
    assert (started.task, started.child_run_id, ended.text) == ("Find the bug", report.id, "Found it.")


async def test_s4_80_each_agent_of_a_chain_has_what_the_one_before_said_in_its_context(bench: BenchMaker) -> None:
    first, second = bench(["A draft."]), bench(["The final text."])

    async def shout(text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()

    result = await chain([first.loop, shout, second.loop, lambda text: f"{text}!"], "Write")

    assert result.texts == ("A draft.", "A DRAFT.", "The final text.", "The final text.!")
    assert (result.text, result.failed) == ("The final text.!", None)
    assert first.sent(0) == ["user: Write"]
    assert second.sent(0) == ["user: A DRAFT."]
    assert second.provider.requests[0].system[-1].text == "The step before gave:\n\nA DRAFT."


async def test_s4_80_an_agent_that_fails_stops_the_chain(bench: BenchMaker) -> None:
    first, second, third = bench(["A draft."]), bench([fail("invalid_request")]), bench(["never"])

    result = await chain([first.loop, second.loop, third.loop], "Write")

    assert result.texts == ("A draft.",)
    assert result.failed is not None
    assert (result.failed.reason, third.provider.left) == ("error", 1)


async def test_s4_81_results_of_agents_that_work_at_once_are_brought_together(bench: BenchMaker) -> None:
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
