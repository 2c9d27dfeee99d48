"""`raise_for_reason`: each reason except a completed run has its error, which carries the report."""

from typing import get_args

import pytest

from tests.support.table import table
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.reports import (
    INVALID_OUTPUT,
    AgentRunReport,
    GuardrailTrippedError,
    InputRefusedError,
    OutputError,
    RunError,
    RunFailedError,
    RunInterruptedError,
    RunLimitError,
    RunReason,
)

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


def test_the_table_covers_every_reason() -> None:
    assert {reason for reason, _, _ in TABLE} | ENDS_WELL == set(get_args(RunReason))


def test_an_answer_that_does_not_fit_raises_its_own_error() -> None:
    with pytest.raises(OutputError, match="the run failed: it is no JSON"):
        report_of("error", "it is no JSON", INVALID_OUTPUT).raise_for_reason()
