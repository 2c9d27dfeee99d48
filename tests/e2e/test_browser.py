"""The app in a browser: `tui-agent serve` starts the program with pipes and Textual's web driver."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import psutil
import pytest

from tests.support.forked_program import PipedProgram
from tests.support.screen_buffer import ScreenBuffer
from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says
from .user_machine import UserMachine

pytestmark = pytest.mark.slow

COLUMNS, ROWS = 90, 24


def test_the_app_draws_into_a_browser_and_ends_when_the_server_has_gone(tmp_path: Path) -> None:
    served = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "TERM": "xterm-256color"}
    size = {"COLUMNS": "70", "ROWS": "20"}
    screen = ScreenBuffer(COLUMNS, ROWS)
    with subprocess.Popen(
        [sys.executable, "-m", "tui_agent", "--demo"],
        cwd=tmp_path,
        env={**os.environ, **served, **size},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        # Waits in the pipe, so that it arrives beside the size that the app begins with.
        wider = json.dumps({"type": "resize", "width": COLUMNS, "height": ROWS}).encode()
        program.stdin.write(b"M" + len(wider).to_bytes(4, "big") + wider)
        program.stdin.flush()
        assert program.stdout.readline() == b"__GANGLION__\n"
        program.stdin.write(b"D\0\0\0\x05hello")
        program.stdin.flush()
        while "hello" not in screen.text or not any(line[75:].endswith(" · ask") for line in screen.lines):
            kind, length = program.stdout.read(1), int.from_bytes(program.stdout.read(4), "big")
            data = program.stdout.read(length)
            assert kind in (b"D", b"M")
            if kind == b"D":
                screen.feed(data.decode())
        program.stdout.close()
        program.stdin.close()

        assert program.wait(timeout=60) == 0
        assert program.stderr is not None
        assert program.stderr.read() == b""


@contextmanager
def served(machine: UserMachine, *arguments: str, **variables: str) -> Iterator[tuple[PipedProgram, str]]:
    """Run `tui-agent serve`; yield it with the address that it prints."""
    with machine.piped("serve", *arguments, variables=variables) as server:
        try:
            yield server, next(line.strip() for line in server.stdout if "http://" in line)
        finally:
            server.send_signal(signal.SIGINT)
            code = server.wait()
        assert code == 130
        assert server.stderr.read() == ""


async def shown(
    page: aiohttp.ClientWebSocketResponse, *texts: str, screen: ScreenBuffer | None = None, armed: str = ""
) -> ScreenBuffer:
    """Receive until the page's screen shows all texts, and the hint `armed` in its own colour: answers count."""
    screen = screen or ScreenBuffer(COLUMNS, ROWS)
    words = armed.index(" ") + 1 if armed else 0
    while not (
        all(text in screen.text for text in (*texts, armed))
        and (not armed or screen.look_of(armed) != screen.look_of(armed, words))
    ):
        message = await page.receive()
        assert message.type is aiohttp.WSMsgType.BINARY, screen.text
        screen.feed(message.data.decode())
    return screen


async def type_into(page: aiohttp.ClientWebSocketResponse, text: str) -> None:
    await page.send_str(json.dumps(["stdin", text]))


async def test_each_page_has_a_session_of_its_own_that_is_kept(machine: UserMachine) -> None:
    script = [calls(call("bash", command="env")), says("The first answer."), says("The second answer.")]
    options = ("--permission-mode", "allow")
    with (
        ServerThread(script) as model,
        served(machine, *options, **model.environment, COLUMNS="190", ROWS="41") as (server, address),
    ):
        token = address.rsplit("/", 2)[1]
        url = f"{address}ws?width={COLUMNS}&height={ROWS}"
        async with aiohttp.ClientSession() as http:
            for number, answer in enumerate(("The first answer.", "The second answer."), start=1):
                async with http.ws_connect(url) as page:
                    await shown(page, "Start with", "ready")
                    await type_into(page, f"question {number}")
                    await shown(page, f"question {number}")
                    await type_into(page, "\r")
                    await shown(page, answer)
                    [app] = psutil.Process(server.pid).children()
                    assert token not in " ".join([*app.cmdline(), *app.environ().values()])
                psutil.wait_procs([app])

        # Commands do not get the size of the page.
        [(environment, is_error)] = results_in(bodies_of(model)[1])
        names = {line.partition("=")[0] for line in environment.splitlines()}
        assert not is_error
        assert "PATH" in names
        assert not names & {"COLUMNS", "ROWS", "LINES", "TEXTUAL_DRIVER"}
        # Nothing on the disk knows the address.
        files = [path for path in machine.root.rglob("*") if path.is_file()]
        assert files
        assert [path for path in files if token.encode() in path.read_bytes()] == []
        texts = [path.read_text("utf-8") for path in machine.journals]
        assert sorted(answer in text for text in texts for answer in ("The first answer.", "The second answer.")) == [
            *(False, False, True, True)
        ]


async def test_a_question_before_the_chat_is_answered_in_the_page(machine: UserMachine) -> None:
    folder = machine.work / ".tui-agent"
    folder.mkdir()
    folder.joinpath("config.toml").write_text('[ui]\ntheme = "light"\n', "utf-8")
    with served(machine, "--demo") as (_, address):
        async with aiohttp.ClientSession() as http, http.ws_connect(f"{address}ws?width=70&height=20") as page:
            await shown(page, armed="n no")
            # The window is larger by now, and the chat begins with that size.
            await page.send_str(json.dumps(["resize", {"width": COLUMNS, "height": ROWS}]))
            await type_into(page, "n")
            screen = await shown(page, "ready")

            assert screen.lines[-1].startswith(" ●")
            await type_into(page, "\x1b[200~pasted \x1b\r text\x1b[201~")
            await shown(page, " › pasted", "text")
            await type_into(page, "\x11")
            await shown(page, "tui-agent has ended.")
            assert (await page.receive()).type is aiohttp.WSMsgType.CLOSE


def test_another_host_is_warned_about_in_plain_words(machine: UserMachine) -> None:
    with machine.piped("serve", "--demo", "--host", "0.0.0.0", "--i-know") as server:
        address = next(line.strip() for line in server.stdout if "http://" in line)
        server.send_signal(signal.SIGTERM)

        assert server.wait() == 130
        assert "nothing is encrypted" in server.stderr.read()
        assert "0.0.0.0" not in address
