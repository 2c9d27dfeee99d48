"""The app in a real pty: the bytes that terminals send, and the terminal as it was when the program is gone."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tui_agent
from tests.e2e.script import step
from tests.support.terminal import Terminal

ROOT = Path(tui_agent.__file__).parent.parent
READY = "Ask for something"


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    command = [sys.executable, "-m", "tests.ui.program"]
    environment = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}
    with Terminal(command, cwd=ROOT, environment=environment, forked=True) as found:
        yield found


def test_a_paste_is_one_message_and_nothing_in_it_acts_as_a_key(terminal: Terminal) -> None:
    terminal.wait_for(READY)
    with step("a long one with carriage returns"):
        terminal.paste("\r".join(f"line {number}" for number in range(40)))
        terminal.wait_for("[pasted 40 lines]")
        terminal.press("enter")
        terminal.wait_for("line 39'")
    with step("keys and brackets inside"):
        terminal.write("\x1b[200~M1\x1b\rM2\x1b\x1b[A\x03\x11\x1b[200~\x00\x1b[201~!")
        terminal.wait_for(r"› M1\x1b")
        terminal.wait_for(r"M2\x1b\x1b[A\x03\x11\x1b[200~\x00!")
        terminal.press("enter")
        terminal.wait_for(r"heard 'M1\x1b\nM2\x1b\x1b[A\x03\x11\x1b[200~\x00!'")
    with step("byte by byte"):
        terminal.type("\x1b[200~one\x1b\rtwo\x1b[201\x1b[201~")
        terminal.wait_for(r"two\x1b[201")
        terminal.press("enter")
        terminal.wait_for(r"heard 'one\x1b\ntwo\x1b[201'")
    with step("bytes that are not UTF-8"):
        os.write(terminal._master, b"\xff\x9b200~a\x1b[200~b\xc3\x28\x9b201~\xe4\xb8\x1b[201~\r")
        terminal.wait_for("heard '\ufffd\ufffd200~ab\ufffd(\ufffd201~\ufffd'")


def test_a_paste_without_its_end_is_text_and_the_keyboard_comes_back(terminal: Terminal) -> None:
    terminal.wait_for(READY)

    terminal.write("\x1b[200~lost\x1b\rend")
    terminal.wait_for("› lost\\x1b")
    terminal.press("ctrl+q")

    assert terminal.wait_for_end() == 0


def test_a_window_may_be_resized_to_almost_nothing_and_back(terminal: Terminal) -> None:
    terminal.wait_for(READY)
    terminal.write("slow\r")
    terminal.wait_for("esc interrupt")

    for columns, rows in ((20, 6), (200, 60), (1, 1), (80, 24)):
        terminal.resize(columns, rows)
    terminal.wait_for("ctrl+t open")

    # Usually the window is large again before the program can see that it was tiny.
    for _ in range(20):
        terminal.resize(1, 1)
        terminal.resize(120, 40)
        terminal.wait_for("│ tools ")


def test_keys_come_through_while_an_endless_answer_is_read(terminal: Terminal) -> None:
    terminal.wait_for(READY)
    terminal.write("killer\r")
    terminal.wait_for("[[[[[[")

    terminal.write("typed meanwhile")
    terminal.wait_for("› typed meanwhile")
    terminal.press("ctrl+q")

    assert terminal.wait_for_end() == 0
