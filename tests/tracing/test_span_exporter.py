"""Spans of runs, responses and calls, and their way to a collector."""

import asyncio
import socket
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from tests.agent.harness import ScriptedTool
from tests.support.table import table
from tui_agent.agent import AgentLoop, AgentLoopConfig, AgentTool
from tui_agent.cli.command_line import run_program
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.provider import ModelInfo
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import Step, call, reply
from tui_agent.settings import Locations
from tui_agent.tracing.span_exporter import SpanStream

SECRET = "canary-4711"


async def spans_of(steps: Sequence[Step], *tools: ScriptedTool) -> dict[str, ReadableSpan]:
    """Run an agent and return its spans by name."""
    bus, exporter = EventBus(Origin("s1")), InMemorySpanExporter()
    loop = AgentLoop(AgentLoopConfig(provider=ScriptedProvider(steps), tools=tools, bus=bus, session_id="s1"))
    loop.add_tool(AgentTool(loop))
    async with SpanStream(bus, exporter, "1.0"):
        await loop.run(f"Go {SECRET}")
    return {span.name: span for span in exporter.get_finished_spans()}


def parent(span: ReadableSpan, spans: Mapping[str, ReadableSpan]) -> str:
    """Return the name of a span's parent."""
    ids = {one.context.span_id: name for name, one in spans.items() if one.context}
    return ids[span.parent.span_id] if span.parent else ""


async def test_a_run_is_a_tree_of_responses_and_calls_without_any_text() -> None:
    look, fail = ScriptedTool("look", read_only=True), ScriptedTool("fail", error=ValueError(SECRET))
    usage = Usage(input_tokens=10, output_tokens=4, cache_read_tokens=5)

    spans = await spans_of(
        [reply(SECRET, call("look", n=SECRET), call("fail"), usage=usage), f"Done {SECRET}"], look, fail
    )

    assert {name: parent(span, spans) for name, span in spans.items()} == {
        "invoke_agent main": "",
        "chat scripted-model": "invoke_agent main",
        "execute_tool look": "invoke_agent main",
        "execute_tool fail": "invoke_agent main",
    }
    run = spans["invoke_agent main"].attributes or {}
    assert (run["gen_ai.conversation.id"], run["gen_ai.operation.name"]) == ("s1", "invoke_agent")
    assert (run["gen_ai.usage.input_tokens"], run["gen_ai.usage.cache_read.input_tokens"]) == (25, 5)
    assert spans["execute_tool fail"].status.status_code is StatusCode.ERROR
    assert (spans["execute_tool look"].attributes or {})["gen_ai.tool.name"] == "look"
    assert all((span.start_time or 0) <= (span.end_time or 0) for span in spans.values())
    assert SECRET not in "".join(span.to_json() for span in spans.values())


@table(
    ("model", "provider"),
    [
        ("claude-sonnet-5-5", "anthropic"),
        ("bedrock/claude", "aws.bedrock"),
        ("vertex/claude", "gcp.vertex_ai"),
        ("openai/gpt", "openai"),
        ("box/qwen/qwen3", "box"),
    ],
)
async def test_spans_name_the_provider_of_the_model(model: str, provider: str) -> None:
    bus, exporter = EventBus(Origin("s1")), InMemorySpanExporter()
    scripted = ScriptedProvider(["Done."], model=ModelInfo(name=model, context_window=1_000, max_output_tokens=100))
    async with SpanStream(bus, exporter, "1.0"):
        await AgentLoop(AgentLoopConfig(provider=scripted, bus=bus, session_id="s1")).run("Go")
    found = [(span.attributes or {})["gen_ai.provider.name"] for span in exporter.get_finished_spans()]
    assert found == [provider, provider]


async def test_the_run_of_a_sub_agent_belongs_to_its_call() -> None:
    spans = await spans_of([reply(call("agent", task="Look")), "Looked.", "Done."])

    (child,) = [span for name, span in spans.items() if name.startswith("invoke_agent") and name != "invoke_agent main"]
    assert parent(child, spans) == "execute_tool agent"


async def test_a_call_that_never_ran_is_an_event_of_its_run() -> None:
    spans = await spans_of([reply(call(SECRET)), "Done."])

    (event,) = spans["invoke_agent main"].events
    assert dict(event.attributes or {}) == {"tui_agent.status": "not_found"}, "the name is text of the model"
    assert SECRET not in spans["invoke_agent main"].to_json()


async def test_a_run_that_is_cut_off_still_ends_its_spans() -> None:
    bus, exporter, tool = EventBus(Origin("s1")), InMemorySpanExporter(), ScriptedTool("look").hold()
    loop = AgentLoop(AgentLoopConfig(provider=ScriptedProvider([reply(call("look"))]), tools=[tool], bus=bus))

    async with asyncio.TaskGroup() as group:
        async with SpanStream(bus, exporter, "1.0"):
            run = group.create_task(loop.run("Go"))
            await tool.started.wait()
        run.cancel()

    assert {span.name for span in exporter.get_finished_spans()} == {
        "invoke_agent main",
        "chat scripted-model",
        "execute_tool look",
    }


class Collector(BaseHTTPRequestHandler):
    """Collector that keeps what it receives."""

    received: list[tuple[Mapping[str, str], ExportTraceServiceRequest]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((dict(self.headers), ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[HTTPServer]:
    """Return a collector on loopback."""
    Collector.received = []
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_a_headless_run_reaches_the_collector_of_the_settings(
    collector: HTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    user_file = Locations.of_user({}).user_file
    user_file.parent.mkdir(parents=True)
    user_file.write_text(f'[otel]\nendpoint = "http://127.0.0.1:{collector.server_port}/v1/traces"\n', "utf-8")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
    (tmp_path / "note.txt").write_text(SECRET, "utf-8")

    assert run_program(["--demo", "-p", "show note.txt", "--cwd", str(tmp_path), "--no-session"]) == 0

    assert SECRET in capfd.readouterr().out
    (headers, request) = Collector.received[-1]
    (resource,) = request.resource_spans
    names = {span.name for scope in resource.scope_spans for span in scope.spans}
    assert {"invoke_agent main", "execute_tool read"} <= names
    assert headers["x-team"] == "blue"
    assert SECRET not in str(request)


def test_a_collector_that_is_down_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("TUI_AGENT_OTEL__ENDPOINT", f"http://127.0.0.1:{port}/v1/traces")

    assert run_program(["--demo", "-p", "hello", "--cwd", str(tmp_path), "--no-session"]) == 0
    assert capfd.readouterr().err == ""
