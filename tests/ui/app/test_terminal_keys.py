"""Names of keys for the bytes that a terminal sends."""

import itertools
import os
from typing import Any, cast

import pytest
from textual._xterm_parser import XTermParser
from textual.events import Key, Paste
from textual.message import Message

from tui_agent.ui.app import terminal_driver
from tui_agent.ui.app.terminal_driver import (
    TerminalDriver,
    _SelectableEvent,
    register_alt_enter,
    with_normalised_name,
)


def keys_of(sent: str) -> list[str]:
    """Return the names of the keys in a terminal's input."""
    register_alt_enter()
    return [with_normalised_name(event).key for event in XTermParser().feed(sent) if isinstance(event, Key)]


@pytest.mark.parametrize(
    ("terminal", "sent"),
    [
        ("plain xterm", "\x1b\r"),
        ("kitty protocol", "\x1b[13;3u"),
        ("xterm modifyOtherKeys and tmux extended-keys", "\x1b[27;3;13~"),
    ],
)
def test_alt_enter_is_alt_enter_in_every_terminal(terminal: str, sent: str) -> None:
    assert keys_of(sent) == ["alt+enter"], terminal


@pytest.mark.parametrize(
    ("terminal", "sent"), [("kitty protocol", "\x1b[13;2u"), ("xterm modifyOtherKeys", "\x1b[27;2;13~")]
)
def test_shift_enter_is_shift_enter(terminal: str, sent: str) -> None:
    assert keys_of(sent) == ["shift+enter"], terminal


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ("\r", "enter"),
        ("\n", "ctrl+j"),
        ("\t", "tab"),
        ("\x1b[Z", "shift+tab"),
        ("\x1b[27;5;13~", "ctrl+enter"),
        ("\x1b[27;2;9~", "shift+tab"),
        ("+", "plus"),
        ("a", "a"),
    ],
)
def test_other_keys_keep_their_names(sent: str, key: str) -> None:
    assert keys_of(sent) == [key]


def test_enter_inside_a_paste_is_text() -> None:
    register_alt_enter()
    events = list(XTermParser().feed("\x1b[200~one\rtwo\x1b[201~x"))

    assert [event.text for event in events if isinstance(event, Paste)] == ["one\rtwo"]


@pytest.mark.parametrize(("sent", "key"), [(b"\x1b[27;2;13~", "shift+\r"), (b"\x1b", "escape")])
def test_a_reading_thread_that_is_late_cuts_no_sequence(monkeypatch: pytest.MonkeyPatch, sent: bytes, key: str) -> None:
    monkeypatch.setattr("textual._parser.get_time", itertools.count(0, 10).__next__)
    monkeypatch.setattr(terminal_driver, "_READ_SIZE", 1)
    driver, keys = object.__new__(TerminalDriver), list[str]()
    driver._app, driver._debug, driver.exit_event = cast("Any", None), False, _SelectableEvent()

    def take(message: Message) -> None:
        keys.append(cast("Key", message).key)
        driver.exit_event.set()

    monkeypatch.setattr(driver, "process_message", take)
    driver.fileno, end = os.pipe()
    with open(driver.fileno, "rb"), open(end, "wb") as keyboard:
        keyboard.write(sent)
        keyboard.flush()
        driver.run_input_thread()
    driver.exit_event.close()

    assert keys == [key]
