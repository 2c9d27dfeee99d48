"""Spans of a session: recorded from its events, and sent to a collector over HTTP.

They are named by OpenTelemetry's conventions for generative AI. A span has names, numbers and times, but no text: no
prompt, path, argument or result.
"""

import asyncio
from collections.abc import Mapping
from types import TracebackType

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace import TracerProvider as AnyTracerProvider

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentCreated,
    RunEnded,
    RunStarted,
    StepEnded,
    StepRetry,
    StepStarted,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.value_checks import wrong_kind

_PROVIDERS = {"": "anthropic", "bedrock": "aws.bedrock", "vertex": "gcp.vertex_ai", "foundry": "azure.ai.inference"}
"""Names that the conventions have for a model's provider; any other has its own."""

_FAILED_RUNS = frozenset({"error", "guardrail", "budget", "max_steps"})
"""Reasons of ended runs that a trace shows as errors."""


class SpanRecorder:
    """Makes spans from the events of one session."""

    def __init__(self, tracer: Tracer) -> None:
        """Store the tracer; spans begin and end with the times of their events."""
        self._tracer = tracer
        self._runs: dict[str, Span] = {}
        """Open runs by agent."""
        self._models: dict[str, str] = {}
        """Models by agent."""
        self._steps: dict[str, tuple[Span, int]] = {}
        """Open responses by agent, with their beginnings."""
        self._calls: dict[str, Span] = {}
        """Running calls by id."""

    def record(self, envelope: Envelope) -> None:
        """Begin or end a span if the event does."""
        origin, time = envelope.origin, envelope.ts * 1_000_000
        match envelope.event:
            case AgentCreated(model=model):
                self._models[origin.agent_id] = model
            case RunStarted() as event:
                self._begin_run(event, origin, time)
            case RunEnded() as event:
                self._end_run(event, origin, time)
            case StepStarted():
                self._begin_step(origin, time)
            case StepRetry() as event:
                self._retry(event, origin, time)
            case StepEnded() as event:
                self._end_step(event, origin)
            case ToolStarted() as event:
                self._begin_call(event, origin, time)
            case ToolEnded() as event:
                self._end_call(event, origin, time)
            case _:
                pass

    def end_all(self) -> None:
        """End the spans that are still open, innermost first."""
        for span in (*self._calls.values(), *(span for span, _ in self._steps.values()), *self._runs.values()):
            span.end()
        self._calls.clear()
        self._steps.clear()
        self._runs.clear()

    def _begin_run(self, event: RunStarted, origin: Origin, time: int) -> None:
        agent = origin.agent_id
        model = self._models[agent] = event.model or self._models.get(agent, "")
        attributes = {
            "gen_ai.provider.name": _provider(model),
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": origin.session_id,
            "gen_ai.request.model": model,
            "tui_agent.run.trigger": event.trigger,
        }
        # The run of a sub-agent belongs to the call that started it.
        parent = self._calls.get(origin.parent_call_id or "")
        self._runs[agent] = self._begin(f"invoke_agent {agent}", parent, SpanKind.INTERNAL, attributes, time)

    def _end_run(self, event: RunEnded, origin: Origin, time: int) -> None:
        span = self._runs.pop(origin.agent_id, None)
        if span is None:
            return
        span.set_attributes(
            _usage(event.usage) | {"tui_agent.run.reason": event.reason, "tui_agent.steps": event.steps}
        )
        if event.reason in _FAILED_RUNS:
            _fail(span, event.reason)
        span.end(time)

    def _begin_step(self, origin: Origin, time: int) -> None:
        model = self._models.get(origin.agent_id, "")
        provider = {"gen_ai.provider.name": _provider(model)}
        attributes = provider | {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
        parent = self._runs.get(origin.agent_id)
        self._steps[origin.agent_id] = (self._begin(f"chat {model}", parent, SpanKind.CLIENT, attributes, time), time)

    def _retry(self, event: StepRetry, origin: Origin, time: int) -> None:
        if origin.agent_id in self._steps:
            attributes = {"error.type": event.error_kind, "tui_agent.attempt": event.attempt}
            self._steps[origin.agent_id][0].add_event("retry", attributes, time)

    def _end_step(self, event: StepEnded, origin: Origin) -> None:
        """End the span of a response when its stream ended; the calls of the step have spans of their own."""
        if origin.agent_id not in self._steps:
            return
        span, began = self._steps.pop(origin.agent_id)
        span.set_attributes(_usage(event.usage))
        span.set_attribute("gen_ai.response.finish_reasons", [event.finish_reason])
        span.end(began + int(event.llm_ms * 1_000_000))

    def _begin_call(self, event: ToolStarted, origin: Origin, time: int) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call_id,
        }
        parent = self._runs.get(origin.agent_id)
        span = self._begin(f"execute_tool {event.name}", parent, SpanKind.INTERNAL, attributes, time)
        self._calls[event.call_id] = span

    def _end_call(self, event: ToolEnded, origin: Origin, time: int) -> None:
        span = self._calls.pop(event.call_id, None)
        if span is None:
            # The call never ran: it was denied, skipped or invalid.
            if (run := self._runs.get(origin.agent_id)) is not None:
                # The name of a tool that does not exist is any text of the model.
                name = {} if event.status == "not_found" else {"gen_ai.tool.name": event.name}
                run.add_event("call not run", name | {"tui_agent.status": event.status}, time)
            return
        span.set_attributes({"tui_agent.status": event.status, "tui_agent.approval_ms": event.approval_ms})
        if event.is_error:
            _fail(span, event.error_kind or event.status)
        span.end(time)

    def _begin(self, name: str, parent: Span | None, kind: SpanKind, attributes: Mapping[str, str], time: int) -> Span:
        context = None if parent is None else set_span_in_context(parent)
        return self._tracer.start_span(name, context, kind, dict(attributes), start_time=time)


def _provider(model: str) -> str:
    """Return the provider of a model, which is the part of its name before the first slash."""
    name = model.partition("/")[0] if "/" in model else ""
    return _PROVIDERS.get(name, name)


def _usage(usage: Usage) -> dict[str, int]:
    """Return the tokens; those of the cache are part of the input's."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens + cached,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


TIMEOUT = 3.0
"""Seconds in which the collector must accept a batch, and those that the end of a session waits for the last one."""


class SpanStream:
    """Context manager that makes spans from the events of a bus and exports them in batches, from a thread.

    Failures of the collector are logged and change nothing else; spans that it does not accept in time are dropped.
    """

    def __init__(self, bus: EventBus, exporter: SpanExporter | Tracer, version: str, *, since: int | None = 0) -> None:
        """
        Args:
            bus: the bus.
            exporter: sends the spans; or a tracer of the caller, who sends them.
            version: the program's version.
            since: number of the first event; None: the next one.
        """
        self._subscription = bus.subscribe(since=since)
        self._provider: TracerProvider | None = None
        if isinstance(exporter, SpanExporter):
            resource = Resource({"service.name": "tui-agent", "service.version": version})
            # Not the global provider: the libraries in this process would send their spans, too.
            self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
            exporter = self._provider.get_tracer("tui_agent", version)
        self._recorder = SpanRecorder(exporter)
        self._tasks = asyncio.TaskGroup()

    @classmethod
    def to_collector(cls, bus: EventBus, endpoint: str, version: str) -> "SpanStream":
        """Return the stream to a collector; `OTEL_EXPORTER_OTLP_HEADERS` may have headers for it."""
        return cls(bus, OTLPSpanExporter(endpoint, timeout=TIMEOUT), version)

    @classmethod
    def of_run(cls, bus: EventBus, target: object, version: str) -> "SpanStream":
        """Return the stream of the next run to a collector, or to a tracer or a provider of tracers.

        Raises:
            ConfigurationError: the target is none of these.
        """
        if isinstance(target, str):
            exporter: SpanExporter | Tracer = OTLPSpanExporter(target, timeout=TIMEOUT)
        elif isinstance(target, SpanExporter | Tracer):
            exporter = target
        elif isinstance(target, AnyTracerProvider):
            exporter = target.get_tracer("tui_agent", version)
        else:
            raise wrong_kind("tracing", "the address of a collector, or a tracer of OpenTelemetry", target)
        return cls(bus, exporter, version, since=None)

    async def __aenter__(self) -> "SpanStream":
        """Begin to record."""
        await self._tasks.__aenter__()
        self._tasks.create_task(self._record())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the open spans and send the rest."""
        self._subscription.close()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._recorder.end_all()
            if self._provider is not None:
                # It sends the last batch, and blocks until the collector has it or the time is over.
                await asyncio.to_thread(self._provider.shutdown)

    async def _record(self) -> None:
        async for batch in self._subscription.batches():
            for envelope in batch:
                self._recorder.record(envelope)
