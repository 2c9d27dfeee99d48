"""A run's report as text."""

from datetime import datetime

from tui_agent.protocol.messages import Usage
from tui_agent.protocol.report_text import report_text
from tui_agent.protocol.reports import AgentRunReport, Metric, StepReport, ToolCallReport


def test_a_report_contains_everything_known_of_a_run() -> None:
    calls = (
        ToolCallReport(
            call_id="c1",
            tool_name="read",
            arguments={"path": "a.py", "offset": 7},
            status="ok",
            result_size_bytes=1_200,
            latency_ms=1_234.0,
            metrics={"lines": Metric(value=3), "output_bytes": Metric(value=37)},
        ),
        ToolCallReport(
            call_id="c2",
            tool_name="bash",
            arguments={},
            status="error",
            error="exit code 1\nTraceback …",
        ),
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

    started, ended = datetime(2023, 11, 14, 22, 13, 20), datetime(2023, 11, 15, 0, 14, 21)
    report = report.model_copy(
        update={"started_at": int(started.timestamp() * 1000), "completed_at": int(ended.timestamp() * 1000)}
    )
    assert report_text(report).splitlines() == [
        "big · failed: gone",
        "  from 2023-11-14 22:13:20 to 2023-11-15 00:14:21",
        "  asked: fix it",
        f"  said: {'x' * 99}…",
        "  1 step, 3 calls in 1:01: model 0.90 s, tools 1.2 s, waiting for you 5.0 s",
        "  150 tokens read (50 from the cache), 20 written, $0.01",
        "  resumed from the previous run:",
        "    edit: denied by you",
        "  step 1: model 0.90 s, tools 1.2 s, 150 tokens read (50 from the cache), 20 written",
        "    read a.py · offset 7: ok in 1.2 s, result 1.2 kB, lines 3, output 37 B",
        "    bash: failed: exit code 1",
    ]


def test_a_step_that_did_not_end_as_usual_says_so() -> None:
    step = StepReport(index=0, type="initial", finish_reason="max_tokens")
    report = AgentRunReport(
        id="r",
        model="m",
        started_at=0,
        completed_at=1,
        total_ms=1,
        reason="done",
        user_message="",
        final_text="",
        steps=(step,),
    )

    assert report_text(report).endswith("0 written, cut at the token limit")
    assert "saved" not in report_text(report)
    assert "; overlapping calls saved 3.0 s\n" in report_text(report, "3.0 s")
