"""The exporter: sends the spans of a session to a collector, over HTTP."""

import asyncio
from types import TracebackType

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from tui_agent.protocol.bus import EventBus

from .span_recorder import SpanRecorder

TIMEOUT = 3.0
"""Seconds in which the collector must accept a batch, and those that the end of a session waits for the last one."""


class SpanStream:
    """Context manager that makes spans from the events of a bus and exports them in batches, from a thread.

    Failures of the collector are logged and change nothing else; spans that it does not accept in time are dropped.
    """

    def __init__(self, bus: EventBus, exporter: SpanExporter, version: str) -> None:
        """Store the arguments; nothing is sent."""
        self._subscription = bus.subscribe(since=0)
        resource = Resource({"service.name": "tui-agent", "service.version": version})
        # Not the global provider: the libraries in this process would send their spans, too.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._recorder = SpanRecorder(self._provider.get_tracer("tui_agent", version))
        self._tasks = asyncio.TaskGroup()

    @classmethod
    def to_collector(cls, bus: EventBus, endpoint: str, version: str) -> "SpanStream":
        """Return the stream to a collector; `OTEL_EXPORTER_OTLP_HEADERS` may have headers for it."""
        return cls(bus, OTLPSpanExporter(endpoint, timeout=TIMEOUT), version)

    async def __aenter__(self) -> "SpanStream":
        """Begin with the events published so far."""
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
            await asyncio.to_thread(self._provider.shutdown)

    async def _record(self) -> None:
        async for batch in self._subscription.batches():
            for envelope in batch:
                self._recorder.record(envelope)
