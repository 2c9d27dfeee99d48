"""Words for calls, answers, retries, background commands and runs, the same on the screen and without one.

Reports serve S4-10 … S4-12.
"""

import json
import re
from datetime import datetime
from typing import cast

from tui_agent.protocol.amounts import bytes_text, count_text, money_text, seconds_text, tokens_text
from tui_agent.protocol.events import ToolStatus
from tui_agent.protocol.messages import JsonObject, Usage
from tui_agent.protocol.reports import AgentRunReport, MetricValue, RunReason, StepReport, ToolCallReport

from .activity_events import BackgroundEnded
from .run_events import StepRetry

STATUS_WORDS: dict[ToolStatus, str] = {
    "ok": "ok",
    "error": "failed",
    "timeout": "timed out",
    "invalid": "invalid input",
    "not_found": "no such tool",
    "denied_policy": "denied",
    "denied_user": "denied by you",
    "denied_hook": "denied by a hook",
    "denied_guardrail": "denied by a guardrail",
    "skipped_steering": "skipped: you steered",
    "skipped_hook": "skipped by a hook",
    "skipped_user": "skipped by you",
    "overridden": "replaced by a hook",
    "cancelled": "cancelled",
    "interrupted": "outcome unknown",
    "withheld": "withheld from the model",
    "output_limit": "too much output",
}
"""Words for each status."""

REFUSED_BY = {
    "timeout": "denied: no answer in time",
    "nobody": "denied: no user to ask",
    "policy": "denied by a rule",
    "cancel": "not run: cancelled before you answered",
    "resume": "not run: the session ended before you answered",
}
"""Words for `denied_user` if the user did not answer, by what answered."""


ANOTHER_PROGRAM = "another tui-agent"
"""`via` of an answer that the user gave in the list of tasks of another program."""


def via_words(decision: str, via: str) -> str:
    """Return who answered a question from elsewhere, and what; empty for an answer here."""
    words = {"approve": "allowed", "deny": "denied"}.get(decision, "skipped")
    if via == ANOTHER_PROGRAM:
        return f"{words} in {via}"
    return f"{words} by notify {via}" if via else ""


def status_words(status: ToolStatus, answered_by: str = "user") -> str:
    """Return the words for how a call ended. For `denied_user` they name who refused.

    Args:
        status: the call's status.
        answered_by: who answered the last question about it: `by` of its `approval.resolved`.
    """
    return REFUSED_BY.get(answered_by, STATUS_WORDS[status]) if status == "denied_user" else STATUS_WORDS[status]


_WORDS = {
    "killed": "was stopped",
    "ended_with_session": "was stopped with the session",
    "timeout": "was stopped after its time limit",
    "failed": "could not be run",
    "detached": "runs on without tui-agent",
    "unknown": "ended with an earlier tui-agent",
}


def background_end_text(event: BackgroundEnded) -> str:
    """Return how a background command ended."""
    code = event.code or 0
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"{event.task_id} {_WORDS.get(event.status, ended)}"


def retry_text(event: StepRetry) -> str:
    """Return one sentence: what happened, what becomes of an unfinished answer, and when the next attempt follows."""
    # Journals of earlier versions may have no text, and providers of other programs a text without the status.
    reason = (event.text or event.error_kind.replace("_", " ")).rstrip(". ")
    if event.status not in (None, 200) and str(event.status) not in reason:
        reason = f"{reason} ({event.status})"
    lost = "the unfinished answer is discarded; " if event.discarded else ""
    when = f"in {wait_text(event.wait_s)}" if event.wait_s >= 0.05 else "now"
    return f"{reason}; {lost}trying again {when} (attempt {event.attempt} of {event.max})"


def wait_text(seconds: float) -> str:
    """Return a time to wait: `8.0 s`, `5 min`, `2.5 h`."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"


_MARKS = re.compile(r"\*\*|__|`|^\s*(?:#+|[-*>]|\d+\.)\s+", re.MULTILINE)
_ENDS: dict[RunReason, str] = {
    "done": "done",
    "stopped": "stopped as you asked",
    "aborted": "cancelled",
    "error": "failed",
    "guardrail": "halted by a guardrail",
    "max_steps": "step limit reached",
    "budget": "budget used up",
    "loop_detected": "halted: the model repeated itself",
    "input_rejected": "the input was refused",
    "terminated": "ended by a tool",
}
_STEP_ENDS = {
    "max_tokens": "cut at the token limit",
    "model_context_window_exceeded": "cut at the end of the context window",
    "refusal": "the model refused",
    "pause_turn": "the model paused",
}
"""Texts for the ends of a step that are not ordinary."""
_SUBJECTS = ("command", "path", "pattern", "url")
"""Arguments that need no name."""


def report_text(report: AgentRunReport, saved: str = "") -> str:
    """Return the report, a line for each step and call. Its texts are not sanitised.

    `saved` is the time that overlapping calls saved, in words.
    """
    cost = money_text(report.cost_usd)
    lines = [
        f"{report.model} · {_ENDS[report.reason]}" + (f": {report.error}" if report.error else ""),
        f"  {_period(report.started_at, report.completed_at)}",
        f"  asked: {_one_line(report.user_message)}",
        f"  said: {_one_line(_first_words(report.final_text))}",
        f"  {count_text(report.step_count, 'step')}, {count_text(report.tool_call_count, 'call')} "
        f"in {_time(report.total_ms)}: "
        + _parts(
            ("model", report.total_llm_time_ms),
            ("tools", report.total_tool_time_ms),
            ("waiting for you", report.total_approval_wait_ms),
        )
        + (f"; overlapping calls saved {saved}" if saved else ""),
        f"  {_usage(report.total_usage)}" + (f", {cost}" if cost else ""),
    ]
    if report.taken_up:
        lines.append("  resumed from the previous run:")
        lines += [_call(call) for call in report.taken_up]
    for step in report.steps:
        lines.append(_step(step))
        lines += [_call(call) for call in step.tool_calls]
    return "\n".join(lines)


def _step(step: StepReport) -> str:
    times = _parts(("model", step.llm_latency_ms), ("tools", step.tool_total_ms))
    end = _STEP_ENDS.get(step.finish_reason, "")
    return f"  step {step.index + 1}: " + ", ".join(filter(None, (times, _usage(step.usage), end)))


def _call(call: ToolCallReport) -> str:
    words = STATUS_WORDS.get(cast(ToolStatus, call.status), call.status.replace("_", " "))
    facts = [
        f"{words} in {_time(call.latency_ms)}" if call.latency_ms else words,
        f"result {bytes_text(call.result_size_bytes)}" if call.result_size_bytes else "",
        *(_metric(name, metric.value) for name, metric in sorted(call.metrics.items())),
    ]
    # The first line says what happened; below it may be the raw output of a command.
    error = f": {_one_line(call.error.strip().partition(chr(10))[0])}" if call.error else ""
    return f"    {call.tool_name}{_arguments(call.arguments)}: {', '.join(filter(None, facts))}{error}"


def _arguments(arguments: JsonObject) -> str:
    """Return the arguments in one line: the subject of the call first and without its name."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in arguments.items()
    }
    subject = next((texts.pop(name) for name in _SUBJECTS if name in texts), "")
    others = ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in texts.items())
    text = " · ".join(filter(None, (subject, others)))
    return f" {_one_line(text)}" if text else ""


def _metric(name: str, value: MetricValue) -> str:
    """Return a metric in plain words; the end of its name is the unit."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name.endswith("_bytes"):
            return f"{name.removesuffix('_bytes').replace('_', ' ')} {bytes_text(round(value))}"
        if name.endswith("_ms"):
            return f"{name.removesuffix('_ms').replace('_', ' ')} {_time(value)}"
        return f"{name.replace('_', ' ')} {value:g}"
    return f"{name.replace('_', ' ')} {value}"


def _period(started: int, completed: int) -> str:
    """Return when a run began and ended, in local time; both in milliseconds since the epoch."""
    first, last = datetime.fromtimestamp(started / 1000), datetime.fromtimestamp(completed / 1000)
    day = "" if first.date() == last.date() else f"{last:%Y-%m-%d} "
    return f"from {first:%Y-%m-%d %H:%M:%S} to {day}{last:%H:%M:%S}"


def _parts(*parts: tuple[str, float]) -> str:
    """Return durations with their names, without those that are 0; the first one always."""
    return ", ".join(f"{name} {_time(ms)}" for place, (name, ms) in enumerate(parts) if ms or not place)


def _usage(usage: Usage) -> str:
    cached = f" ({tokens_text(usage.cache_read_tokens)} from the cache)" if usage.cache_read_tokens else ""
    return f"{tokens_text(usage.context_tokens)} tokens read{cached}, {tokens_text(usage.output_tokens)} written"


def _time(ms: float) -> str:
    return seconds_text(ms / 1000)


def _first_words(answer: str) -> str:
    """Return the first paragraph of an answer, without the marks of Markdown and a heading before it."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", answer) if part.strip()]
    first = next((part for part in parts if not part.startswith("#")), "".join(parts[:1]))
    return _MARKS.sub("", first)


def _one_line(text: str, limit: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
