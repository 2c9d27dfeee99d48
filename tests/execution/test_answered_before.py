"""Calls that ran in an earlier process and get the result they had then."""

from tui_agent.protocol.tool import ToolResult

from .bench import bench_of
from .kit import ScriptedTool, calls


async def test_a_call_that_ran_in_an_earlier_process_gets_its_earlier_result() -> None:
    tool = ScriptedTool()
    async with bench_of([tool]) as bench:
        bench.scheduler.submit_all(calls("act", "act"))
        assert bench.scheduler.answer_call("c0", ToolResult.of_text("done before"))
        assert not bench.scheduler.answer_call("c0", ToolResult.of_text("again"))
        result = await bench.scheduler.finish()

    assert [report.status for report in result.reports] == ["overridden", "ok"]
    assert (result.tool_results[0].text, result.tool_results[0].is_error) == ("done before", False)
    assert tool.calls == ["c1"]
    bench.bus.judge()
