"""A run's report as text, for `sessions show --report` and the screen (S4-10 … S4-12)."""

import json
import re
from datetime import datetime
from typing import cast

from tui_agent.protocol.amounts import bytes_text, count_text, money_text, seconds_text, tokens_text
from tui_agent.protocol.events import ToolStatus
from tui_agent.protocol.messages import JsonObject, Usage
from tui_agent.protocol.reports import AgentRunReport, MetricValue, RunReason, StepReport, ToolCallReport
from tui_agent.protocol.status_words import STATUS_WORDS

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
    """Return a metric in plain words; the end of its name tells the unit."""
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
