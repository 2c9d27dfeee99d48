"""A run's report as text."""

from tui_agent.protocol.messages import Usage
from tui_agent.protocol.reports import AgentRunReport, Metric, StepReport, ToolCallReport
from tui_agent.ui.text.report_text import report_text


def test_a_report_contains_everything_known_of_a_run() -> None:
    calls = (
        ToolCallReport(
            call_id="c1",
            tool_name="read",
            arguments={"path": "a.py"},
            status="ok",
            result_size_bytes=120,
            latency_ms=1_234.0,
            metrics={"lines": Metric(value=3)},
        ),
        ToolCallReport(call_id="c2", tool_name="bash", arguments={}, status="error", error="exit\ncode 1"),
    )
    usage = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=50)
    step = StepReport(
        index=0,
        type="initial",
        llm_latency_ms=900.0,
        usage=usage,
        finish_reason="tool_use",
        tool_calls=calls,
        tool_total_ms=1_240.0,
    )
    report = AgentRunReport(
        id="run_1",
        model="big",
        started_at=1_700_000_000_000,
        completed_at=1_700_000_061_000,
        total_ms=61_000.0,
        reason="error",
        user_message="fix\nit",
        final_text="x" * 300,
        error="gone",
        taken_up=(ToolCallReport(call_id="c0", tool_name="edit", arguments={}, status="denied_user"),),
        steps=(step,),
        step_count=1,
        tool_call_count=3,
        total_usage=usage,
        cost_usd=0.01234,
        total_llm_time_ms=900.0,
        total_tool_time_ms=1_240.0,
        total_approval_wait_ms=5_000.0,
    )

    assert report_text(report).splitlines() == [
        "run run_1 · big · error: gone",
        "  from 2023-11-14 22:13:20 UTC to 2023-11-14 22:14:21 UTC",
        "  asked: fix it",
        f"  said: {'x' * 99}…",
        "  1 step, 3 calls in 61.0 s: model 900 ms, tools 1.2 s, waiting for you 5.0 s",
        "  150 tokens read (50 from the cache), 20 written, $0.0123",
        "  resumed from the previous run:",
        "    edit: denied_user in 0 ms, 0 B",
        "  step 1: model 900 ms, tools 1.2 s, ended by tool_use, 150 tokens read (50 from the cache), 20 written",
        '    read {"path": "a.py"}: ok in 1.2 s, 120 B, lines 3',
        "    bash: error in 0 ms, 0 B: exit code 1",
    ]
