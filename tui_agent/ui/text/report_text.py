"""A run's report as text, for `sessions show --report` and the screen (S4-10 … S4-12)."""

import json
from datetime import UTC, datetime

from tui_agent.protocol.messages import JsonObject, Usage
from tui_agent.protocol.reports import AgentRunReport, MetricValue, StepReport, ToolCallReport


def report_text(report: AgentRunReport) -> str:
    """Return the report, a line for each step and call. Its texts are not sanitised."""
    lines = [
        f"run {report.id} · {report.model} · {report.reason}" + (f": {report.error}" if report.error else ""),
        f"  from {_moment(report.started_at)} to {_moment(report.completed_at)}",
        f"  asked: {_one_line(report.user_message)}",
        f"  said: {_one_line(report.final_text)}",
        f"  {_count(report.step_count, 'step')}, {_count(report.tool_call_count, 'call')} in {_time(report.total_ms)}: "
        f"model {_time(report.total_llm_time_ms)}, tools {_time(report.total_tool_time_ms)}, "
        f"waiting for you {_time(report.total_approval_wait_ms)}",
        f"  {_usage(report.total_usage)}" + (f", ${report.cost_usd:.4f}" if report.cost_usd is not None else ""),
    ]
    if report.taken_up:
        lines.append("  resumed from the previous run:")
        lines += [_call(call) for call in report.taken_up]
    for step in report.steps:
        lines.append(_step(step))
        lines += [_call(call) for call in step.tool_calls]
    return "\n".join(lines)


def _step(step: StepReport) -> str:
    kind = "" if step.type == "initial" else " (after tools)"
    return (
        f"  step {step.index + 1}{kind}: model {_time(step.llm_latency_ms)}, tools {_time(step.tool_total_ms)}, "
        f"ended by {step.finish_reason}, {_usage(step.usage)}"
    )


def _call(call: ToolCallReport) -> str:
    metrics = "".join(f", {name} {_value(metric.value)}" for name, metric in sorted(call.metrics.items()))
    error = f": {_one_line(call.error)}" if call.error else ""
    took = f"{call.status} in {_time(call.latency_ms)}, {call.result_size_bytes} B"
    return f"    {call.tool_name}{_arguments(call.arguments)}: {took}{metrics}{error}"


def _arguments(arguments: JsonObject) -> str:
    return f" {_one_line(json.dumps(arguments, ensure_ascii=False, default=str))}" if arguments else ""


def _moment(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _value(value: MetricValue) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _usage(usage: Usage) -> str:
    cached = f" ({usage.cache_read_tokens} from the cache)" if usage.cache_read_tokens else ""
    return f"{usage.context_tokens} tokens read{cached}, {usage.output_tokens} written"


def _time(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _one_line(text: str, limit: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
