"""The loop from user input to run.ended, path by path (S4-33 … S4-45)."""

from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.events import (
    RunStarted,
    Warned,
)
from tui_agent.protocol.messages import ToolResultMessage, user_message
from tui_agent.providers import Call, call, reply

from .harness import BenchMaker, ScriptedTool, asking


async def test_a_run_names_its_trigger(bench: BenchMaker) -> None:
    b = bench(["One.", "Two.", "Three."])

    await b.loop.run("Go")
    await b.loop.run()
    await b.loop.run("From above", trigger="subagent")

    assert [(event.trigger, event.input) for event in b.of(RunStarted)] == [
        ("prompt", "Go"),
        ("continue", ""),
        ("subagent", "From above"),
    ]
    assert b.sent(1)[-1] == "user: Please continue."


async def test_pauses_count_as_steps(bench: BenchMaker) -> None:
    b = bench([reply("…", stop_reason="pause_turn") for _ in range(9)], max_steps=3)

    assert (await b.loop.run("Go")).reason == "max_steps"
    assert len(b.provider.requests) == 3


async def test_s1_21_calls_of_a_truncated_answer_do_not_run_and_the_run_continues(bench: BenchMaker) -> None:
    change = ScriptedTool("change")
    cut = reply("Writing", Call("change", {"n": 1}), Call("change", {}, cut=True), stop_reason="max_tokens")
    b = bench([cut, "Shorter then."], change)

    report = await b.loop.run("Go")

    assert report.reason == "done"
    assert change.runs == []
    assert all("output token limit" in result.text and result.is_error for result in b.results)
    assert len(b.results) == 2


async def test_an_invalid_history_is_repaired_at_the_start_with_a_warning(bench: BenchMaker) -> None:
    broken = [
        user_message("Before"),
        asking("lost"),
        ToolResultMessage(call_id="ghost", tool_name="x", content=()),
    ]
    b = bench(["Fine."], history=broken)

    await b.loop.run("Go")

    (warning,) = b.of(Warned)
    assert warning.code == "unanswered_tool_calls_repaired"
    assert warning.context == {"calls": ["lost"]}
    assert [line.split(":")[0] for line in b.sent(0)] == ["user", "assistant", "tool_result", "user"]


async def test_limits_and_options_may_be_changed_between_steps(bench: BenchMaker) -> None:
    tool = ScriptedTool("look").hold()
    b = bench([reply(call("look")), reply(call("look")), "unused"], tool)
    b.loop.set_options(ExecutionOptions(tool_timeout=0.01, grace=0.01))
    b.loop.config.max_steps = 2

    report = await b.loop.run("Go")

    assert (report.reason, report.step_count) == ("max_steps", 2)
    assert [result.is_error for result in b.results] == [True, True]
    assert tool.cancelled == 2
