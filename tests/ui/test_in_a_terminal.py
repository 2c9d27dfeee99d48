"""The app in a real pty: the bytes that terminals send, and the terminal as it was when the program is gone."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
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


def test_alt_enter_and_new_lines_act_whatever_the_terminal_sends_for_them(terminal: Terminal) -> None:
    """Plain xterm, the kitty protocol, and extended keys of tmux or xterm."""
    terminal.wait_for(READY)
    terminal.write("one\ntwo\x1b[13;2uthree\x1b[27;2;13~four\r")
    terminal.wait_for(r"heard 'one\ntwo\nthree\nfour'")

    terminal.write("slow\r")
    terminal.wait_for("esc interrupt")
    for text, sent in (("first", "\x1b\r"), ("second", "\x1b[13;3u"), ("third", "\x1b[27;3;13~")):
        terminal.write(text + sent)
        terminal.wait_for(f"“{text}”")
    assert terminal.screen.text.count("follow-up  “") == 3


KEYS = {
    "plain xterm": {"f1": "\x1bOP", "escape": "\x1b", "ctrl+f": "\x06", "ctrl+c": "\x03"},
    "tmux extended-keys": {
        "f1": "\x1bOP",
        "escape": "\x1b",
        "ctrl+f": "\x1b[27;5;102~",
        "ctrl+c": "\x1b[27;5;99~",
    },
    "kitty protocol": {
        "f1": "\x1b[P",
        "escape": "\x1b[27u",
        "ctrl+f": "\x1b[102;5u",
        "ctrl+c": "\x1b[99;5u",
    },
}


def test_keys_act_whatever_the_terminal_sends_for_them(terminal: Terminal) -> None:
    for protocol, sent in KEYS.items():
        with step(protocol):
            terminal.wait_for(READY)
            terminal.write(sent["f1"])
            terminal.wait_for("─ Help ─")
            terminal.write(sent["escape"])
            terminal.wait_for(lambda screen: "─ Help ─" not in screen.text)
            terminal.write(sent["ctrl+f"])
            terminal.wait_for("find in the conversation")
            terminal.write(sent["escape"])
            terminal.wait_for(lambda screen: "find in the conversation" not in screen.text)
            terminal.write("a draft")
            terminal.wait_for("› a draft")
            terminal.write(sent["ctrl+c"])
            terminal.wait_for(READY)


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


def test_ctrl_z_sleeps_and_wakes_with_everything(terminal: Terminal) -> None:
    terminal.wait_for(READY)
    terminal.type("a draft")
    terminal.wait_for("a draft")

    terminal.press("ctrl+z")
    terminal.wait_for(lambda _: psutil.Process(terminal.process.pid).status() == psutil.STATUS_STOPPED)
    terminal.wait_for(lambda _: terminal.left_behind == [])
    os.kill(terminal.process.pid, signal.SIGCONT)

    terminal.wait_for("› a draft")


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
