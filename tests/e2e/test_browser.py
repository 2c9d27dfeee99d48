"""The app in a browser: `tui-agent serve` starts the program with pipes and Textual's web driver."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager

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
