"""The app in a real, headless Chromium: start page, typing, streaming, approval by key and by click, another size."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.script import call, calls, says, text_block, until
from tests.serve.chromium import CHROMIUM, chromium
from tests.support.screen_buffer import ScreenBuffer
from tests.support.server_thread import ServerThread

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; apt-get install chromium"),
]

SCRIPT = (
    calls(call("write", path="by_key.txt", content="by key\n")),
    calls(call("write", path="by_click.txt", content="by click\n")),
    {"blocks": [text_block("The first half,"), until("rest"), text_block("and the second half.")]},
    says("Wide enough."),
)


def is_armed(screen: ScreenBuffer) -> bool:
    """Return True if the answer keys have their own colour: answers count."""
    return "y yes" in screen.text and screen.look_of("y yes") != screen.look_of("y yes", 2)


@contextmanager
def served(home: Path, model: ServerThread) -> Iterator[str]:
    """Run `tui-agent serve`, and yield the address that it prints."""
    work = home / "work"
    work.mkdir()
    program = Path(sys.executable).with_name("tui-agent")
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **model.environment}
    with subprocess.Popen(
        [program, "serve"], cwd=work, env=environment, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as server:
        assert server.stdout is not None
        try:
            yield next(line.strip() for line in server.stdout if "http://" in line)
        finally:
            server.send_signal(signal.SIGINT)
            code = server.wait(60)
        assert code == 130


async def test_the_app_works_in_a_real_browser(tmp_path: Path) -> None:
    with ServerThread(SCRIPT) as model, served(tmp_path, model) as address:
        async with chromium(tmp_path / "profile", 1100, 760) as tab:
            # The start page, with the focus in the terminal.
            await tab.call("Page.navigate", url=address)
            await tab.wait_for_text("Start with")
            await tab.wait_for(lambda screen: "ready" in screen.lines[-1])
            assert await tab.evaluate("document.activeElement.className") == "xterm-helper-textarea"
            assert await tab.evaluate("document.fonts.check('16px \"Roboto Mono\"')")

            await tab.type("write two files")
            await tab.wait_for_text("› write two files")
            await tab.press("Enter")

            # A yes by key; a click beside the answers puts a question aside and opens it again; a yes by click.
            await tab.wait_for_text("Create by_key.txt")
            await tab.wait_for(is_armed)
            await tab.type("y")
            await tab.wait_for_text("Create by_click.txt")
            await tab.wait_for(is_armed)
            await tab.click("Create by_click.txt")
            await tab.click("by click")
            await tab.click("Type to steer")
            await tab.wait_for(lambda screen: "y yes" not in screen.text and "ctrl+y answer" in screen.text)
            assert not tmp_path.joinpath("work/by_click.txt").exists()
            await tab.wait_for_text(" ▲ Create by_click.txt?")
            await tab.click(" ▲ Create by_click.txt?")
            await tab.wait_for(is_armed)
            await tab.click("y yes")

            # A stream that the page shows while it is written.
            await tab.wait_for_text("The first half,")
            assert "second half" not in tab.screen.text
            model.release("rest")
            await tab.wait_for_text("and the second half.")

            # Another size of the window.
            columns, rows = tab.size
            await tab.resize(1400, 500)
            assert tab.size[0] > columns
            assert tab.size[1] < rows
            await tab.wait_for(lambda screen: "and the second half." in screen.text and "ready" in screen.lines[-1])
            await tab.type("wide")
            await tab.wait_for_text("› wide")
            await tab.press("Enter")
            await tab.wait_for_text("Wide enough.")

            # Nothing from anywhere else, and nothing that the page's policy refuses.
            assert {request.startswith((address, "data:")) for request in tab.requested} == {True}
            assert tab.problems == []
            await tab.call("Page.close")

        assert tmp_path.joinpath("work/by_key.txt").read_text("utf-8") == "by key\n"
        assert tmp_path.joinpath("work/by_click.txt").read_text("utf-8") == "by click\n"
