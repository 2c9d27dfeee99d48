"""A client that sends nonsense, floods or never reads: errors by their code, and bounded memory."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.script import says
from tests.support.table import table
from tui_agent.acp import editor_agent
from tui_agent.acp.rpc_transport import LINES_AHEAD, MOST_REQUESTS, RpcTransport
from tui_agent.protocol.pipes import LONGEST_LINE

from .editor import connected


@asynccontextmanager
async def transport() -> AsyncGenerator[tuple[RpcTransport, int, int]]:
    """Yield a transport with the client's ends of its pipes; both are closed in the end."""
    (agent_in, client_out), (client_in, agent_out) = os.pipe(), os.pipe()
    rpc = RpcTransport(agent_in, agent_out)
    rpc.start()
    try:
        yield rpc, client_out, client_in
    finally:
        for descriptor in (client_out, client_in):
            os.close(descriptor)
        rpc.abandon()
        await rpc.finish()


def in_thread(descriptor: int, data: bytes) -> threading.Thread:
    """Write all of `data`, however slowly it is read."""
    thread = threading.Thread(target=lambda: os.writev(descriptor, [data]), daemon=True)
    thread.start()
    return thread


def line(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


@table(
    ("sent", "code"),
    [
        (b"{\n", -32700),
        (b'{"jsonrpc": "2.0", "method": "x", "id": 1, "params": {"a": NaN}}\n', -32700),
        (b"[" * 100_000 + b"\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"[]\n", -32600),
        (b"7\n", -32600),
        (line(method=5, id=1), -32600),
        (b'{"method": "session/new", "id": 1}\n', -32600),
        (line(method="x", id={}), -32600),
        (line(method="x", id=True), -32600),
        (line(method="x", id="\ud800"), -32600),
        (line(method="x", id=1, params=[1]), -32602),
    ],
)
async def test_a_malformed_line_is_answered_by_its_code_and_skipped(sent: bytes, code: int) -> None:
    async with transport() as (rpc, out, back):
        in_thread(out, sent + b"\n" + line(method="fine", id="a", params={"_meta": {"cwd": 1}, "k": 1}))
        message = await rpc.receive()
        answer = json.loads(await asyncio.to_thread(os.read, back, 65_536))

    assert message == {"jsonrpc": "2.0", "method": "fine", "id": "a", "params": {"k": 1}}
    assert answer["error"]["code"] == code


async def test_answers_to_nothing_are_dropped() -> None:
    async with transport() as (rpc, out, _):
        for one in ({"id": "x", "result": 1}, {"id": [], "result": 1}, {"id": 1, "error": "no"}, {"id": 1}, {}):
            os.write(out, line(**one))
        error = {"code": 1, "message": "no"}
        os.write(out, line(id=2, result="yes", error=error) + line(id=3, result=None))

        assert await rpc.receive() == {"jsonrpc": "2.0", "id": 2, "error": error}
        assert await rpc.receive() == {"jsonrpc": "2.0", "id": 3, "result": None}


async def test_a_line_without_end_and_a_flood_of_requests_take_bounded_memory() -> None:
    async with transport() as (rpc, out, back):
        endless = threading.Thread(
            target=lambda: [os.write(out, b"x" * 2**20) for _ in range(50)] and os.write(out, b"\n"), daemon=True
        )
        endless.start()
        receiving = asyncio.create_task(rpc.receive())
        refused = json.loads(await asyncio.to_thread(os.read, back, 65_536))
        assert refused["error"] == {"code": -32700, "message": f"a message is longer than {LONGEST_LINE:,} bytes"}

        flood = in_thread(out, b"".join(line(method="unknown", id=number) for number in range(MOST_REQUESTS + 1)))
        received = [await receiving, *[await rpc.receive() for _ in range(MOST_REQUESTS - 1)]]
        assert [one["id"] for one in received if one] == list(range(MOST_REQUESTS))
        receiving = asyncio.create_task(rpc.receive())
        refused = json.loads(await asyncio.to_thread(os.read, back, 65_536))
        assert (refused["id"], refused["error"]["code"]) == (MOST_REQUESTS, -32603)
        flood.join()
        receiving.cancel()


async def test_an_id_is_free_again_only_with_its_answer() -> None:
    async with transport() as (rpc, out, back):
        in_thread(out, line(method="x", id=1) * 2 + line(method="x", id=2))
        first, second = await rpc.receive(), await rpc.receive()
        refused = json.loads(await asyncio.to_thread(os.read, back, 65_536))
        await rpc.send({"jsonrpc": "2.0", "id": 1, "result": None})
        in_thread(out, line(method="x", id=1))

        assert [one and one["id"] for one in (first, second, await rpc.receive())] == [1, 2, 1]
        assert (refused["id"], refused["error"]["code"]) == (None, -32600)


async def test_nothing_is_read_for_a_client_that_does_not_read() -> None:
    async with transport() as (rpc, out, _):
        for _ in range(20):
            rpc.notify("session/update", {"text": "x" * 100_000})
        os.write(out, b"".join(line(method="x", id=number) for number in range(3 * LINES_AHEAD)))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(rpc.receive(), 0.1)


async def test_the_end_does_not_wait_for_a_client_that_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor_agent, "END_TIMEOUT", 0.3)
    many_words = says("word " * 400_000, piece=50_000)
    async with connected([many_words], connect=False) as link:
        link.to_agent.write(line(method="session/new", id=1, params={"cwd": str(tmp_path), "mcpServers": []}))
        session = json.loads(await link.from_agent.readline())["result"]["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "Hi"}]}
        link.from_agent._transport.pause_reading()  # type: ignore[attr-defined]
        link.to_agent.write(line(method="session/prompt", id=2, params=prompt))
        await link.server.asked(1)
        await asyncio.sleep(0.3)
        link.to_agent.close()

        assert await asyncio.wait_for(link.serving, 60) == 0


async def test_text_of_the_outside_reaches_no_terminal_as_it_is() -> None:
    async with transport() as (rpc, _, back):
        rpc.notify("session/update", {"text": "\x1b]0;title\x07 \u202e \ud800", "args": {"\ud800\u202e": 1}})
        sent = await asyncio.to_thread(os.read, back, 65_536)

    params = json.loads(sent)["params"]
    assert params == {"text": r"\x1b]0;title\x07 \u202e \ud800", "args": {r"\ud800\u202e": 1}}


async def test_wrong_methods_and_parameters_are_answered_by_their_codes() -> None:
    async with connected([], connect=False) as link:
        for number, (method, params) in enumerate(
            [
                ("no/such", {}),
                ("session/new", {"cwd": 5}),
                ("session/prompt", {"sessionId": "x", "prompt": "text"}),
                ("session/prompt", {"sessionId": "x", "prompt": []}),
                ("session/set_mode", {}),
                ("_zed/thing", {}),
                ("session/list", {"cwd": "a\0b"}),
                ("initialize", {"protocolVersion": 99}),
            ]
        ):
            link.to_agent.write(line(method=method, id=number, params=params))
        link.to_agent.write(line(method="no/such", params={}))
        answers = {one["id"]: one for one in [json.loads(await link.from_agent.readline()) for _ in range(8)]}

    codes = [answers[number].get("error", {}).get("code") for number in range(8)]
    assert codes == [-32601, -32602, -32602, -32002, -32602, -32601, -32602, None]
    assert answers[7]["result"]["protocolVersion"] == 1
