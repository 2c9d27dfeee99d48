"""The app in a browser: `textual serve` starts the program with pipes and Textual's web driver."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.screen_buffer import ScreenBuffer

pytestmark = pytest.mark.slow

COLUMNS, ROWS = 90, 24


def test_the_app_draws_into_a_browser_and_ends_when_the_server_has_gone(tmp_path: Path) -> None:
    served = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "TERM": "xterm-256color"}
    size = {"COLUMNS": str(COLUMNS), "ROWS": str(ROWS)}
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
        assert program.stdout.readline() == b"__GANGLION__\n"
        program.stdin.write(b"D\0\0\0\x05hello")
        program.stdin.flush()
        while "hello" not in screen.text or "offline-demo" not in screen.text:
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
