"""Copies reach the outer terminal, through a real tmux and a real screen with their own settings."""

import base64
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from tui_agent.ui.app.terminal_driver import copy_sequence

TEXT = "first\nä✓\n" + "x" * 2_000 + "END"

COPY = (
    "import os, sys, time; from tui_agent.ui.app.terminal_driver import copy_sequence, hand_to_tmux;"
    f"text = {TEXT!r}; sys.stdout.write(copy_sequence(text, os.environ)); sys.stdout.flush();"
    "'TMUX' in os.environ and hand_to_tmux(text); sys.stdin.readline()"
)
COMMAND = [sys.executable, "-c", COPY]


def copied(raw: bytes) -> str | None:
    """Return the text that a terminal copies; None if there is none yet."""
    found = re.search(rb"\x1b\]52;[cps]*;([A-Za-z0-9+/=]+)(?:\x07|\x1b\\)", raw)
    return base64.b64decode(found[1]).decode() if found else None


def test_a_plain_terminal_gets_one_sequence() -> None:
    assert copied(copy_sequence(TEXT, {}).encode()) == TEXT
    assert copied(copy_sequence("\ud800", {}).encode()) == "?"


def test_screen_gets_short_strings_that_join_to_the_sequence() -> None:
    parts = re.findall(r"\x1bP(.*?)\x1b\\", copy_sequence(TEXT, {"STY": "1.pts"}), re.DOTALL)

    assert max(map(len, parts)) <= 240
    assert copied("".join(parts).encode()) == TEXT


@pytest.mark.slow
@pytest.mark.parametrize("program", ["tmux", "screen"])
def test_a_multiplexer_passes_a_copy_on_with_its_own_settings(tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    commands = {
        "tmux": ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null", "new-session", shlex.join(COMMAND)],
        "screen": ["screen", "-c", "/dev/null", *COMMAND],
    }
    screens = tmp_path / "screens"
    screens.mkdir(mode=0o700)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMUX_TMPDIR": str(tmp_path)}
    environment["SCREENDIR"] = str(screens)
    with Terminal(commands[program], cwd=tmp_path, environment=environment) as terminal:
        terminal.wait_for(lambda _: copied(bytes(terminal.raw)) is not None)
        assert copied(bytes(terminal.raw)) == TEXT
        terminal.press("enter")
        terminal.wait_for_end()
