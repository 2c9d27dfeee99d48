"""A run's report as text, and `raise_for_reason`: each reason except a completed run has its error."""

from datetime import datetime
from typing import get_args

import pytest

from tests.support.table import table
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.report_text import report_text
from tui_agent.protocol.reports import (
    INVALID_OUTPUT,
    AgentRunReport,
    GuardrailTrippedError,
    InputRefusedError,
    Metric,
    OutputError,
    RunError,
    RunFailedError,
    RunInterruptedError,
    RunLimitError,
    RunReason,
    StepReport,
    ToolCallReport,
)


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


def test_odd_ends_and_the_marks_of_markdown_are_put_into_plain_words() -> None:
    step = StepReport(index=0, type="initial", finish_reason="max_tokens")
    cut = report_of("done").model_copy(update={"steps": (step,)})
    assert report_text(cut).endswith("0 written, cut at the token limit")
    assert "saved" not in report_text(cut)
    assert "; overlapping calls saved 3.0 s\n" in report_text(cut, "3.0 s")

    answers = {
        "The discount was **added** in `cart.py`.\n\n## What changed\n\n| a |": "The discount was added in cart.py.",
        "## Result\n\n- two * three\n- four": "two * three four",
        "# Only": "Only",
    }
    for answer, said in answers.items():
        assert f"  said: {said}\n" in report_text(cut.model_copy(update={"final_text": answer}))


ENDS_WELL = {"done", "terminated"}
TABLE: list[tuple[RunReason, type[RunError], str]] = [
    ("error", RunFailedError, "the run failed: the server is busy"),
    ("guardrail", GuardrailTrippedError, "a guardrail ended the run: said so far"),
    ("max_steps", RunLimitError, "the run reached its step limit (3)"),
    ("budget", RunLimitError, "the run used up its budget (45 tokens, $0.02, 7 s)"),
    ("loop_detected", RunLimitError, "the run repeated itself"),
    ("input_rejected", InputRefusedError, "an input filter refused the message: said so far"),
    ("stopped", RunInterruptedError, "the run was stopped"),
    ("aborted", RunInterruptedError, "the run was aborted: the server is busy"),
]


def report_of(reason: RunReason, error: str | None = None, error_kind: str | None = None) -> AgentRunReport:
    return AgentRunReport(
        id="run_1",
        model="m",
        started_at=1,
        completed_at=2,
        total_ms=9000.0,
        total_approval_wait_ms=2000.0,
        reason=reason,
        user_message="x",
        final_text="said so far",
        step_count=3,
        total_usage=Usage(input_tokens=40, output_tokens=5),
        cost_usd=0.02,
        error=error,
        error_kind=error_kind,
    )


@table(("reason", "error", "text"), TABLE)
def test_every_other_reason_raises_its_error_with_the_report(
    reason: RunReason, error: type[RunError], text: str
) -> None:
    report = report_of(reason, "the server is busy" if reason in ("error", "aborted") else None)

    with pytest.raises(TuiAgentError) as raised:
        report.raise_for_reason()

    assert type(raised.value) is error
    assert isinstance(raised.value, RunError)
    assert raised.value.report is report
    assert str(raised.value) == text
    assert {reason for reason, _, _ in TABLE} | ENDS_WELL == set(get_args(RunReason)), "the table has every reason"
    with pytest.raises(OutputError, match="the run failed: it is no JSON"):
        report_of("error", "it is no JSON", INVALID_OUTPUT).raise_for_reason()
