"""The server of pages: who gets in, and how long an app lives. Real connections, real processes."""

import asyncio
import json
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import psutil
import pytest

from tests.serve.pages import SMALL_APP, serving, with_host
from tests.support.table import table
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.serve.browser_page import client_folder
from tui_agent.serve.browser_server import LARGEST_MESSAGE, BrowserServer, ServerOptions, is_loopback, listening

pytestmark = pytest.mark.slow


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def wait_until_gone(*pids: int) -> None:
    async with asyncio.timeout(60):
        while any(map(lives, pids)):
            await asyncio.sleep(0.01)


# --- who gets in ------------------------------------------------------------------------------------------------------


async def test_without_the_token_everything_is_not_found() -> None:
    async with serving() as client:
        root = client.address.rsplit("/", 2)[0]
        token = client.address.rsplit("/", 2)[1]
        names = ("", "ws", "page.js", "textual.js", "xterm.css", "RobotoMono.ttf")
        wrong = ("", "x", token[:-1], token + "x", token.swapcase(), "ä", "%00", "..", "static")

        assert len(token) >= 43
        for name in names:
            for guess in wrong:
                assert await client.status(f"{root}/{guess}/{name}") == 404, (guess, name)
            assert await client.status(f"{root}/{name}?token={token}") == 404
        for name in ("", *names[2:]):
            assert await client.status(client.url(name)) == 200
        for name in ("static/", "js/textual.js", "../server.py", "%2e%2e/server.py", "page.js/", "download/x", "x"):
            assert await client.status(client.url(name)) == 404
        async with client.http.post(client.url("ws"), data=b"x" * 10_000) as answer:
            assert answer.status == 405
        async with serving() as other:
            assert other.address.rsplit("/", 2)[1] != token


@table("line", ["{} \0 HTTP/1.1", "{}\xff HTTP/1.1", "{}" + "a" * 9_000, "/" * 100_000 + " HTTP/1.1"])
async def test_a_request_that_cannot_be_read_leaves_no_token_in_the_log(
    line: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as client:
        path = client.address.partition(client.host)[2]
        reader, writer = await asyncio.open_connection(*client.host.split(":"))
        writer.write(f"GET {line.format(path)}".encode("latin-1") + f"\r\nHost: {client.host}\r\n\r\n".encode())
        assert b"400 Bad Request" in await reader.read(4096)
        writer.close()
        await writer.wait_closed()

    assert path.strip("/") not in caplog.text


async def test_the_page_is_guarded_in_the_browser() -> None:
    async with serving() as client, client.http.get(client.url()) as answer:
        page, headers = await answer.text(), answer.headers

        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        policy = headers["Content-Security-Policy"]
        assert f"connect-src ws://{client.host};" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "https:" not in page
        assert "<script>" not in page


@table(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST", 403),
        ("[::1]:{port}", 200),
        ("localhost:9", 200),  # The port of a tunnel.
        ("evil.example:{port}", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("192.168.0.7:{port}", 403),
        ("localhost/x", 403),
        ("localhost:1@evil.example", 403),
    ],
)
async def test_only_names_of_this_machine_are_answered(host: str, status: int) -> None:
    async with serving() as client:
        port = client.host.rpartition(":")[2]

        assert await client.status(client.url(), Host=host.format(port=port)) == status
        if status == 403:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with client.page(Host=host.format(port=port)):
                    pass
            assert refused.value.status == 403


async def test_a_page_of_another_server_cannot_connect() -> None:
    async with serving() as client:
        for origin in ("http://localhost:1", "https://" + client.host, "null", "http://evil.example", ""):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with client.page(Origin=origin):
                    pass
            assert refused.value.status == 403
        async with client.page(Origin=f"http://{client.host}") as page:
            await page.wait_for("begun")
        local = with_host(client, "localhost")
        async with local.page(Origin=f"http://{local.host}") as page:
            await page.wait_for("begun")


@table(
    ("host", "loopback"),
    [
        *(("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("[::1]", True), ("localhost", True)),
        *(
            ("0.0.0.0", False),
            ("::", False),
            ("10.0.0.1", False),
            ("localhost.", False),
            ("", False),
            ("fe80::1", False),
        ),
    ],
)
def test_a_host_is_open_unless_it_is_certainly_this_machine(host: str, *, loopback: bool) -> None:
    assert is_loopback(host) is loopback


async def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} is in use; name another one with --port"):
            async with serving(options=ServerOptions(port=port)):
                pass


# --- one app for each page --------------------------------------------------------------------------------------------


async def test_each_connection_has_an_app_of_its_own_that_ends_with_it() -> None:
    async with serving() as client, client.page() as stays:
        kept = int((await stays.wait_for(r"begun (\d+)"))[1])
        async with client.page() as page:
            pid = int((await page.wait_for(r"begun (\d+)"))[1])
            await page.type("ä✓\ud800")
            await page.wait_for(r"ä✓\?")
        await wait_until_gone(pid)

        assert pid != kept
        assert lives(kept)
        await stays.type("still here")
        await stays.wait_for("still here")
        assert "✓" not in stays.shown


async def test_sizes_have_limits_and_what_no_client_sends_is_dropped() -> None:
    async with serving() as client, client.page((100, 30)) as page:
        await page.wait_for(r'begun .*"width": 100, "height": 30')
        await page.send("resize", {"width": 10**9, "height": -5})
        await page.wait_for(r'"width": 1000, "height": 1\b')
        for text in ("", "x", "{}", "[]", "null", "[1]", '["stdin"]', '["stdin", 5]', '["quit"]', "[" * 10_000):
            await page.socket.send_str(text)
        for message in (["resize", {"width": "a"}], ["resize", []], ["stdin", "a", "b"], [["stdin"], "a"], ["ping", 5]):
            await page.socket.send_str(json.dumps(message))
        await page.socket.send_bytes(b"\x00binary")
        await page.send("ping", "7" * 1000)
        await page.type("over")

        await page.wait_for("over")
        assert page.said == [["pong", "7" * 64]]
        assert "quit" not in page.shown
        assert "binary" not in page.shown

        async def flood() -> None:
            for number in range(2_000):
                await page.type(f"<{number}>" + "x" * 500)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(flood())
            await page.wait_for("<1999>x{500}$")
        places = [page.shown.index(f"<{number}>") for number in range(2_000)]
        assert places == sorted(places), "a flood of input arrives in order"


async def test_a_message_that_is_too_large_ends_the_connection_and_its_app() -> None:
    async with serving() as client, client.page() as page:
        pid = int((await page.wait_for(r"begun (\d+)"))[1])
        with suppress(ConnectionError):  # It may be closed before all is sent.
            await page.type("x" * LARGEST_MESSAGE)

        await wait_until_gone(pid)
        assert await page.wait_for_close() in (1009, 1006)


async def test_the_page_above_the_limit_shows_it_and_a_closed_one_makes_room() -> None:
    async with serving(options=ServerOptions(most_pages=1)) as client:
        async with client.page() as first:
            await first.wait_for("begun")
            async with client.page() as second:
                await second.wait_for("No more than 1 pages can have a session")
                assert await second.wait_for_close() == 1013
            await first.type("fine")
            await first.wait_for("fine")
        async with asyncio.timeout(60):
            while True:
                async with client.page() as third:
                    if await third.receive() and "No more" not in third.shown:
                        await third.wait_for("begun")
                        break


def is_small_app(process: psutil.Process) -> bool:
    """True if a process is the app of these tests; False for one that has just ended."""
    try:
        return str(SMALL_APP) in process.cmdline()
    except psutil.Error:
        return False


async def test_reloads_do_not_start_apps_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.serve.browser_server._MOST_ENDING", 2)
    async with serving("deaf", ServerOptions(most_pages=1)) as client:
        for _ in range(3):
            async with client.page() as page:
                await page.wait_for("child")
        async with client.page() as page:
            await page.wait_for("No more than 1 pages can have a session")
        apps = [app for app in psutil.Process().children() if is_small_app(app)]
        assert len(apps) == 3
        for app in apps:
            for process in (*app.children(), app):
                process.kill()


async def test_a_page_that_does_not_read_holds_up_its_own_app_alone() -> None:
    async with serving("flood") as client:
        base = urlsplit(client.address)
        request = (
            f"GET {base.path}ws?width=80&height=24 HTTP/1.1\r\nHost: {base.netloc}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        reader, writer = await asyncio.open_connection(base.hostname, base.port, limit=1024)
        writer.write(request.encode())
        await reader.readuntil(b"begun ")
        # The reader takes no more than its limit; the app's output waits in the connection and then in its pipe.
        async with client.page() as page:
            while len(page.shown) < 5_000_000:
                assert await page.receive()
        assert (await client.status(client.url())) == 200
        writer.close()


async def test_an_app_that_does_not_end_is_killed_with_all_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.serve.served_app.QUIT_SECONDS", 0.05)
    monkeypatch.setattr("tui_agent.serve.served_app._GRACE", 0.05)
    async with serving("deaf") as client:
        async with client.page() as page:
            pids = (int((await page.wait_for(r"begun (\d+)"))[1]), int((await page.wait_for(r"child (\d+)"))[1]))
            assert all(map(lives, pids))
        await wait_until_gone(*pids)


async def test_the_end_of_the_server_ends_all_apps() -> None:
    pids: list[int] = []
    async with serving() as client:
        first, second = await client.http.ws_connect(client.url("ws")), await client.http.ws_connect(client.url("ws"))
        for connection in (first, second):
            while b"begun" not in (data := (await connection.receive()).data):
                pass
            pids.append(int(data.split()[1]))
        # Nothing reads what the server sends at its end.
    assert not any(map(lives, pids))


@table(
    ("kind", "shown"),
    [
        ("broken", "no key is set\\x1b[31m\r\n\r\ntui-agent has ended with exit code 3."),
        ("torn", "tui-agent has ended."),
    ],
)
async def test_the_page_shows_why_an_app_has_ended(kind: str, shown: str) -> None:
    async with serving(kind) as client, client.page() as page:
        await page.wait_for_close()

        assert shown in page.shown


async def test_an_app_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    folder = client_folder()
    assert folder is not None
    server = BrowserServer(ServerOptions(), (str(tmp_path / "none"),), folder)
    async with listening(server) as address, aiohttp.ClientSession() as http, http.ws_connect(address + "ws") as page:
        message = await page.receive()
    assert b"tui-agent cannot be started: No such file or directory" in message.data


def test_the_modules_of_a_page_never_come_from_the_project(tmp_path: Path) -> None:
    tmp_path.joinpath("tui_agent.py").write_text("print('taken over')", "utf-8")
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "tui_agent", "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("tui-agent ")
