"""All text between the brackets of a paste is text, with any content and however it arrives."""

import importlib
import itertools
import pkgutil
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from textual.app import App
from textual.events import Key, Paste
from textual.message import Message

import tui_agent.ui
from tests.support.table import table
from tui_agent.prelude.input_filter import PASTE_BEGINS, PASTE_ENDS, SILENCE_SECONDS
from tui_agent.ui.app.base_app import BaseApp, RemappableApp
from tui_agent.ui.app.terminal_input import TerminalInput

HOSTILE = (
    "M1\x1b\rM2",
    "\x1b",
    "\x1b\x1b\x1b",
    "a\x1b[200~b",
    "\x1b[200~\x1b[200~",
    "\x1b[201",
    "\x1b[20\x1b[201\x1b",
    "[201~",
    "\x9b201~\x9b200~",
    "\x01\x03\x11\x1a\x7f",
    "y\r\x1b[A\x1b[<0;1;1M\x1bOP\x1b[27;3;13~\x1b[13;3u",
    "\x1b]52;c;eA==\x07\x1bP$q\x1b\\",
    "\ufffd\u202e日👍",
)
pasted_text = st.text(
    st.sampled_from("\x1b[201~0\ray\u202e日") | st.characters(exclude_categories=["Cs"], exclude_characters="\x00"),
    min_size=1,
    max_size=40,
).filter(lambda text: PASTE_ENDS not in f"{text}\x1b[201")


class PastedText(str):
    """Text of a paste."""


class Terminal:
    """A terminal whose keys and pastes are read as by the app."""

    def __init__(self) -> None:
        self.input = TerminalInput()
        self.seen: list[str] = []
        """Names of keys, and pastes, in order."""

    def sends(self, *reads: str) -> list[str]:
        for data in reads:
            self._take(self.input.feed(data.encode()))
        return self.seen

    def waits(self, seconds: float) -> list[str]:
        self._take(self.input.rest(seconds))
        return self.seen

    def ends(self) -> list[str]:
        self._take(self.input.finish())
        return self.seen

    def _take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            name = message.key if isinstance(message, Key) else type(message).__name__
            self.seen.append(PastedText(message.text) if isinstance(message, Paste) else name)


def cut(text: str, places: Iterable[int]) -> list[str]:
    """Return a text in pieces."""
    edges = [0, *sorted({place % len(text) for place in places} - {0}), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


@table("text", HOSTILE)
def test_everything_in_a_paste_is_text_wherever_it_is_cut(text: str) -> None:
    sent = f"a{PASTE_BEGINS}{text}{PASTE_ENDS}b"

    for reads in ([sent], list(sent), *((sent[:place], sent[place:]) for place in range(1, len(sent)))):
        assert Terminal().sends(*reads) == ["a", PastedText(text), "b"]


@given(pasted_text, pasted_text, st.lists(st.integers(0, 200), max_size=12))
def test_pastes_and_keys_come_in_order_however_they_are_cut(first: str, second: str, places: list[int]) -> None:
    sent = f"a\x1b[A{PASTE_BEGINS}{first}{PASTE_ENDS}\r{PASTE_BEGINS}{second}{PASTE_ENDS}b"

    seen = Terminal().sends(*cut(sent, places))

    assert seen == ["a", "up", PastedText(first), "enter", PastedText(second), "b"]


HIDDEN = f"one{PASTE_ENDS}\rtwo"
PASTES: dict[tuple[str | float, ...], list[str]] = {
    (f"{PASTE_BEGINS}{PASTE_ENDS}b",): ["b"],
    (f"a{PASTE_ENDS}b",): ["a", "b"],
    # An end bracket does not end the paste where another one follows.
    (f"{PASTE_BEGINS}{HIDDEN}{PASTE_ENDS}b",): [PastedText(HIDDEN), "b"],
    (f"{PASTE_BEGINS}one{PASTE_ENDS}\r{PASTE_BEGINS}two{PASTE_ENDS}",): [PastedText("one"), "enter", PastedText("two")],
    # Without its end it is delivered after a silence; what follows is still text until the end comes.
    (f"{PASTE_BEGINS}one\x1b\r", SILENCE_SECONDS - 0.1, "two\r", SILENCE_SECONDS): [PastedText("one\x1b\rtwo\r")],
    (f"{PASTE_BEGINS}one", SILENCE_SECONDS, "\x1b\ry\x1b\r", f"end{PASTE_ENDS}\r"): [
        PastedText("one"),
        PastedText("\x1b\ry\x1b\rend"),
        "enter",
    ],
    (PASTE_BEGINS, SILENCE_SECONDS, PASTE_ENDS, "\r"): ["enter"],
    (f"{PASTE_BEGINS}one", SILENCE_SECONDS, PASTE_ENDS, "\r"): [PastedText("one"), "enter"],
    (f"{PASTE_BEGINS}one\x1b[2", SILENCE_SECONDS, "01~", "\r"): [PastedText("one"), "enter"],
    # After a silence, a single key means that the end was lost.
    (PASTE_BEGINS, SILENCE_SECONDS, "\x03", "x"): ["ctrl+c", "x"],
    (f"{PASTE_BEGINS}one", SILENCE_SECONDS, "\r", "x"): [PastedText("one"), "enter", "x"],
    (f"{PASTE_BEGINS}one", SILENCE_SECONDS, "\x1b[A", "x"): [PastedText("one"), "up", "x"],
    (f"{PASTE_BEGINS}one", SILENCE_SECONDS, "\x1b[13;3u", "x"): [PastedText("one"), "alt+enter", "x"],
}
"""Reads and silences, and what the app receives."""


def test_brackets_and_silences_tell_a_paste_from_keys() -> None:
    got: dict[tuple[str | float, ...], list[str]] = {}
    for sent in PASTES:
        terminal = Terminal()
        for part in sent:
            terminal.waits(part) if isinstance(part, float) else terminal.sends(part)
        got[sent] = terminal.seen

    assert {sent: seen for sent, seen in got.items() if seen != PASTES[sent]} == {}


def test_a_slow_begin_bracket_begins_a_paste() -> None:
    terminal = Terminal()
    for character in PASTE_BEGINS:
        terminal.sends(character)
        terminal.waits(SILENCE_SECONDS / 40)

    terminal.seen.clear()
    assert terminal.sends("y\r", PASTE_ENDS, "b") == [PastedText("y\r"), "b"]


def test_an_interrupted_paste_is_delivered_as_text() -> None:
    terminal = Terminal()
    terminal.sends(f"{PASTE_BEGINS}one\x1b[20")

    assert terminal.ends() == [PastedText("one\x1b[20")]
    assert terminal.ends() == [PastedText("one\x1b[20")]
    assert terminal.sends(f"two{PASTE_ENDS}b") == [PastedText("one\x1b[20"), PastedText("two"), "b"]


def test_megabytes_are_one_paste() -> None:
    text = "\x1b[20" * 600_000
    terminal = Terminal()
    sent = f"{PASTE_BEGINS}{text}{PASTE_ENDS}"

    terminal.sends(*(sent[place : place + 4096] for place in range(0, len(sent), 4096)))

    assert terminal.seen == [PastedText(text)]


def test_every_app_has_the_filter_of_terminal_input() -> None:
    for module in pkgutil.walk_packages(tui_agent.ui.__path__, "tui_agent.ui."):
        importlib.import_module(module.name)
    # An app that only adds a part to all others is none that a user starts.
    apps = [app for app in subclasses(App) if app.__module__.startswith("tui_agent.") and app is not RemappableApp]

    assert len(apps) >= 5
    assert [app.__name__ for app in apps if not issubclass(app, BaseApp)] == []


def subclasses(parent: type) -> list[type]:
    return [found for child in parent.__subclasses__() for found in (child, *subclasses(child))]
