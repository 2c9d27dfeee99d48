"""Costs of the provider alone: `python -m tests.benchmarks.provider_stream [TOKENS]`, run by hand.

A server in another process sends an answer as fast as it can, one event per token; then requests of a growing
conversation are built. Figures are for comparison.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

from tui_agent.protocol.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    user_message,
)
from tui_agent.protocol.provider import ModelRequest
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.request_builder import RequestBuilder, RequestSettings

ROUNDS = 5
TURNS = 200


def stream(tokens: int) -> None:
    """Return wall-clock and CPU time of one answer; the first one also connects."""
    reply = {"blocks": [{"type": "text", "text": "word ", "repeat": tokens}], "piece": 5}
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "script.json"
        script.write_text(json.dumps([reply] * ROUNDS), "utf-8")
        command = [sys.executable, "-m", "tests.support.messages_server", str(script)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            place = json.loads(server.stdout.readline())
            asyncio.run(_all(place["token"], place["base_url"], tokens))
            server.terminate()


async def _all(token: str, base_url: str, tokens: int) -> None:
    async with aclosing(AnthropicProvider("some-model", auth_token=token, base_url=base_url)) as provider:
        began = time.perf_counter()
        await provider.prepare()
        print(f"prepare        {time.perf_counter() - began:6.2f} s")
        for _ in range(ROUNDS):
            await _one(provider, tokens)


async def _one(provider: AnthropicProvider, tokens: int) -> None:
    began, cpu, first = time.perf_counter(), time.process_time(), 0.0
    async for _ in provider.stream(ModelRequest((user_message("go"),))):
        first = first or time.perf_counter() - began
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(f"{tokens} tokens   first event {first * 1000:5.1f} ms   wall {wall:5.2f} s   CPU {cpu:5.2f} s")


def build() -> None:
    """Return the time to build a request, early and late in a conversation."""
    builder = RequestBuilder(RequestSettings("some-model", 1000))
    messages: list[Message] = [user_message("go")]
    times: list[float] = []
    for turn in range(TURNS):
        messages += [
            AssistantMessage(content=(ToolCall(id=f"c{turn}", name="read", arguments={"path": "a.py"}),)),
            ToolResultMessage(call_id=f"c{turn}", tool_name="read", content=(TextBlock(text="line\n" * 100),)),
        ]
        request = ModelRequest(tuple(messages), conversation_id="main")
        began = time.perf_counter()
        builder.build(request)
        times.append(time.perf_counter() - began)
    early, late = statistics.median(times[:50]), statistics.median(times[-50:])
    print(f"build a request: first 50 turns {early * 1e6:.0f} µs, last 50 of {TURNS} turns {late * 1e6:.0f} µs")


if __name__ == "__main__":
    stream(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
    build()
