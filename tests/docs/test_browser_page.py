"""The page about the browser: what its example shows is what the program prints, and its address works."""

import re
import signal
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.user_machine import UserMachine

PAGE = Path(__file__).parents[2].joinpath("docs/browser.md").read_text("utf-8")


@pytest.mark.slow
def test_the_program_prints_what_the_page_shows_and_serves_it(tmp_path: Path) -> None:
    [example] = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    command, shown = example.split("\n", 1)
    lines: list[str] = []
    with UserMachine(tmp_path).piped(*command.split()[2:]) as server:
        while len(lines) < len(shown.splitlines()):
            lines.append(server.stdout.readline())
        [address] = re.findall(r"http://\S+", "".join(lines))
        page = urllib.request.urlopen(address).read().decode()
        server.send_signal(signal.SIGINT)

        assert server.wait() == 130
    assert re.sub(r"http://\S+", "", "".join(lines)) == re.sub(r"http://\S+", "", shown)
    assert "<title>tui-agent</title>" in page
