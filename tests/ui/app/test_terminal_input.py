"""Bytes that a terminal sends, as the app receives them: no sequence raises, types a reply or presses another key."""

import itertools
import os
import random
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual._xterm_parser import XTermParser
from textual.events import AppFocus, Key, MouseMove, Paste, Resize
from textual.message import Message

from tests.support.examples import examples
from tests.support.table import table
from tui_agent.prelude.input_filter import BURST_SECONDS, ESCAPE_SECONDS, SILENCE_SECONDS, InputFilter
from tui_agent.ui.app import terminal_driver
from tui_agent.ui.app.terminal_driver import TerminalDriver, _SelectableEvent
from tui_agent.ui.app.terminal_input import BackgroundReported, InputIgnored, TerminalInput, can_be_asked

Sent = bytes | str | float
"""A read, or seconds of silence."""

WHITE = "\x1b]11;rgb:ffff/ffff/ffff\x07"


def received(*sent: Sent, ended: bool = True) -> list[Message]:
    """Return the messages for reads and silences; `ended` adds a silence behind them."""
    terminal, messages = TerminalInput(), list[Message]()
    for part in (*sent, *([SILENCE_SECONDS] if ended else [])):
        if isinstance(part, float):
            messages += terminal.rest(part)
        else:
            messages += terminal.feed(part if isinstance(part, bytes) else part.encode())
    return messages


def words_of(messages: Iterable[Message]) -> str:
    """Return typed and pasted text; other keys and messages by name in brackets."""
    words = ""
    for message in messages:
        if isinstance(message, Key) and message.is_printable and "+" not in message.key:
            words += message.character or ""
        elif isinstance(message, Key):
            words += f"<{message.key}>"
        else:
            words += message.text if isinstance(message, Paste) else f"<{type(message).__name__}>"
    return words


KEYS = {
    # Releases, numbers without a character, malformed and unknown sequences.
    "half\x1b[97;1:3uzz": "halfzz",
    "\x1b[1114112uzz": "zz",
    "\x1b[55296uzz": "zz",
    "\x1b[99999999999999999999uzz": "zz",
    "\x1b[3;1:3~zz": "zz",
    "\x1b[1;1:3Azz": "zz",
    "\x1b[57441;2:3uzz": "zz",
    "\x1b[:;5uzz": "zz",
    "\x1b[;;uzz": "zz",
    "\x1b[uzz": "zz",
    "\x1b[97;0uzz": "zz",
    "\x1b[97;-1uzz": "zz",
    "\x1b[97;1;55296uzz": "azz",
    "\x1b[97;5;7uzz": "<ctrl+a>zz",
    "\x1b[7uzz": "zz",
    "\x1b[200;1~zz": "zz",
    "\x1b[5Azz": "zz",
    "\x1b[999~zz": "zz",
    "\x1b[27;5~zz": "zz",
    "\x1b[12\x1b[Azz": "<up>zz",
    "\x1b[16~\x1b[33~\x1b[63000uzz": "zz",
    "\x1b[12\rzz": "\nzz",
    "\x1b[12€zz": "€zz",
    "\x1b\x07zz": "<escape>zz",
    f"\x1b[{'1;' * 999}uzz": "zz",
    "\x1b[<0;1;1;1Mzz": "zz",
    "\x1b[<0;-1;3Mzz": "zz",
    "\x1b[M !!zz": "zz",
    "\x1b[35;4;5Mzz": "zz",
    "\x1b[<35;4;5Mzz": "<MouseMove>zz",
    "\x1b[Izz": "<AppFocus>zz",
    # Keys in each form, with repeats, other layouts and locks.
    "\x1b[97;1:2ub": "ab",
    "\x1b[97;65ub": "ab",
    "\x1b[97:65;2ub": "Ab",
    "\x1b[97;2ub": "Ab",
    "\x1b[97;65;65ub": "Ab",
    "\x1b[246;1;246ub": "öb",
    "\x1b[0;;26085:26412ub": "日本b",
    "\x1b[1085::121;;1085ub": "нb",
    "\x1b[1089;5u": "<ctrl+c>",
    "\x1b[1089::99;5u": "<ctrl+c>",
    "\x1b[4304::99;5u": "<ctrl+c>",
    "\x1b[1085;5u": "<ctrl+y>",
    "\x1b[1495;5u": "<ctrl+j>",
    "\x1b[27;5;1089~": "<ctrl+c>",
    "\x1b[99;5u\x1b[99;69u\x1b[27;5;99~\x03": "<ctrl+c>" * 4,
    "\x1b[97;3u\x1b[97;3;229u": "<alt+a>å",
    "\x1b[A\x1bOA\x1b[1;5A\x1b[1;5:1A\x1b[1;5:2A\x1bO5A": "<up><up><ctrl+up><ctrl+up><ctrl+up><ctrl+up>",
    "\x1b[3~\x1b[3;5~\x1b[3;1:1~\x1b[3^": "<delete><ctrl+delete><delete><ctrl+delete>",
    "\x1b[P\x1bOP\x1b[11~\x1b[[A": "<f1><f1><f1><f1>",
    "\x1b\x1b[A\x1b\x1bOB": "<alt+up><alt+down>",
    "\x1b\x1b[<35;4;5M": "<escape><MouseMove>",
    "\x1b\x1b": "<escape><escape>",
    "\x1b[27u\x1b[13u\x1b[9u\x1b[127u": "<escape><enter><tab><backspace>",
    "\x1b[Z\x1b[9;2u\x1b[27;2;9~": "<shift+tab>" * 3,
    "\x1b\r\x1b\n\x1b[13;3u\x1b[27;3;13~": "<alt+enter>" * 4,
    "\x1b[13;2u\x1b[27;2;13~\x1bOM": "<shift+enter>" * 3,
    "\x1b[13;5u\x1b[27;5;13~": "<ctrl+enter>" * 2,
    "\\\r\n": "<shift+enter>",
    "\n": "<ctrl+j>",
    "\x07": "<ctrl+g>",
    "\x08\x7f": "<backspace><backspace>",
    "+a": "+a",
    # Replies of the terminal.
    "\x1b]10;rgb:ffff/ffff/ffff\x07": "",
    "\x1b]4;1;rgb:ffff/0000/0000\x07": "",
    "a\x1b]11;hsl:1/2/3\x07b": "ab",
    f"a{WHITE}b": "a<BackgroundReported>b",
    "a\x1b[?62;22cb": "ab",
    "a\x1b[>0;276;0cb": "ab",
    "a\x1b[?1u\x1b[0n\x1b[12;40R\x1b[8;24;80t\x1b[?997;1n\x1b[?12;2$y\x1b[4;2$yb": "ab",
    "a\x1bP>|XTerm(380)\x1b\\b": "ab",
    "a\x1bP1+r544e=787465726d\x1b\\\x1bP1$r0m\x1b\\\x1bP!|00000000\x1b\\b": "ab",
    "a\x1b_Gi=31;OK\x1b\\\x1b^private\x1b\\\x1bXtext\x1b\\b": "ab",
    "a\x1b]52;c;aGVsbG8=\x1b\\\x1b]lTitle\x1b\\\x1b\\b": "ab",
    "a\x1b]11;rgb:ff\x1b[Ab": "a<up>b",
    "a\x1b^x\x07y\x1b\\b": "ab",
    "a\x9b?62;22c\x9d11;rgb:1/2/3\x9cb": "a<BackgroundReported>b",
    "a\x1b[48;0;0;0;0tb": "ab",
    "a\x1b[48;65535;65535;1;1tb": "ab",
    "a\x1b[?2026;9$yb": "ab",
    # Text that is not printable is kept.
    "git\xa0status 10\u202f000": "git status 10 000",
    "می\u200cخ\u200d\u200f\u200e\xad\u3000x": "می\u200cخ\u200d\u200f\u200e\xad\u3000x",
    "क्\u200cष👨\u200d👩": "क्\u200cष👨\u200d👩",
    "a\x80\x85\x84b": "ab",
}
"""Input and what the app receives, in one read."""
WHOLE_ONLY = ("\x1b[12\rzz", "\\\r\n", "\n", "\x07", "\x1b\x1b", "\x1b\x07zz", "\x1b[12€zz")
"""Input whose meaning depends on what comes in one read."""


def test_input_is_text_and_keys_and_nothing_else_is_typed() -> None:
    expected = {key.encode(): words for key, words in KEYS.items()}
    got = {sent: words_of(received(sent)) for sent in expected}

    assert {sent: words for sent, words in got.items() if words != expected[sent]} == {}


def test_input_means_the_same_in_pieces() -> None:
    expected = {key.encode(): words for key, words in KEYS.items() if key not in WHOLE_ONLY and len(key) < 100}
    wrong = dict[str, str]()
    for sent, words in expected.items():
        for place in range(1, len(sent)):
            if (got := words_of(received(sent[:place], sent[place:]))) != words:
                wrong[f"{sent[:place]} + {sent[place:]}"] = got
        if (got := words_of(received(*(sent[at : at + 1] for at in range(len(sent)))))) != words:
            wrong[f"{sent} byte by byte"] = got

    assert wrong == {}


TIMED: dict[tuple[Sent, ...], str] = {
    ("ab\x1b]11;rgb:ff", 0.05, "ff/ffff/ff", 0.3, "ff\x1b", 0.2, "\\cd"): "ab<BackgroundReported>cd",
    ("a\x1b[?62", 1.0, ";22cb"): "ab",
    ("a\x1b", 0.3, "[?62;22cb"): "a<escape>b",
    ("a\x1b", 0.3, "]11;rgb:1/2/3\x07b"): "a<escape><BackgroundReported>b",
    ("a\x1b]11;rgb:ff", 9.0, "ff/ffff/ffff\x07b"): "a<BackgroundReported>b",
    ("a\x1b]11;rgb:ff", 9.0, "b"): "ab",
    ("a\x1b]11;rgb:ff", 9.0, "\x1b[A"): "a<up>",
    ("a\x1b]11;rgb:ff", 0.2, "\r"): "a<enter>",
    ("a\x1b]11;rgb:ff", 0.2, "\x03"): "a<ctrl+c>",
    ("a\x1b[12", 9.0, "b"): "ab",
    ("\x1b]", 0.2, "h", 0.2, "i"): "hi",
    ("\x1b", ESCAPE_SECONDS, "[A"): "<escape>[A",
    # A paste without brackets is one text; Enter behind a line sends it.
    ("first line\rsecond line\rthird line\r",): "first line\nsecond line\nthird line",
    ("first line\r", "second", " line\r\n", "third line\r"): "first line\nsecond line\nthird line",
    tuple("one\rtwo\r"): "one\ntwo",
    ("one\r\r\ttwo\x07\x11\r",): "one\n\n\ttwo",
    ("one\rtwo\x03",): "one\ntwo<ctrl+c>",
    ("a\rb\r",): "a\nb",
    ("a\x1bPtmux;x\x1b\\b",): "ab",
    ("a\x1bP", 0.2, "t", 0.2, "u"): "atu",
    ("one\r",): "one<enter>",
    ("one", "\r"): "one<enter>",
    ("one\r", BURST_SECONDS, "two\r"): "one<enter>two<enter>",
    ("one\r", "\x1b[A"): "one<enter><up>",
    ("y\r",): "y<enter>",
    ("\r", "\r"): "<enter><enter>",
    ("one\r\n", 1.0): "one<enter><ctrl+j>",
}
"""Reads and silences, and what the app receives."""


def test_time_tells_keys_from_replies_and_pastes() -> None:
    got = {sent: words_of(received(*sent)) for sent in TIMED}

    assert {sent: words for sent, words in got.items() if words != TIMED[sent]} == {}


def test_letters_of_other_layouts_have_the_latin_key_and_type_themselves() -> None:
    for typed, keys in {"нН": "yY", "νγ": "ng", "ט": "y", "غ": "y", "ㅛ": "y", "ｙＹ": "yY", "é日,": "é日"}.items():
        pressed = [event for event in received(typed) if isinstance(event, Key)]
        assert [event.character for event in pressed] == list(typed)
        assert [event.key for event in pressed][: len(keys)] == list(keys)
    (georgian,) = received("\x1b[4327::121;;4327u")
    assert isinstance(georgian, Key)
    assert (georgian.key, georgian.character) == ("y", "ყ")


@table(
    ("answer", "light"),
    [
        (WHITE, True),
        ("\x1b]11;rgb:0000/0000/0000\x1b\\", False),
        ("\x1b]11;rgb:fd/f6/e3\x07", True),
        ("\x1b]11;rgba:0000/2b2b/3636/ffff\x1b\\", False),
    ],
)
def test_an_answer_says_whether_the_background_is_light(answer: str, light: bool) -> None:
    assert [message.light for message in received(answer) if isinstance(message, BackgroundReported)] == [light]


@table(("term", "can"), [("xterm-256color", True), ("tmux", True), ("dumb", False), ("linux", False)])
def test_only_terminals_that_ignore_unknown_questions_are_asked(term: str, can: bool) -> None:
    assert can_be_asked({"TERM": term}) is can
    assert not can_be_asked({})


PIECES = (
    "\x1b \x1b[ \x1b] \x1bP \x1b_ \x1b^ \x1bX \x1bO \x1b\\ \x9b \x9d \x90 \x07 ; : < ? > $ u ~ A M m y c t R "
    "I 200~ 201~ 97 1 3 27 13 48 1114112 999999999 -1 55296 rgb:ffff/ffff/ffff 11; zz \r \x00 \x18 é 日 \u200d"
)
"""Parts of random input."""


def mutated(draw: random.Random, known: Sequence[bytes]) -> bytes:
    """Return a random sequence, or a known one with a change."""
    number = int(draw.random() * 1_000_000)
    if number % 2:
        return "".join(draw.choices(PIECES.split(" "), k=1 + number % 7)).encode()
    sent, place = known[number // 2 % len(known)], number % 11
    return sent[:place] + (number % 60_000).to_bytes(2) + sent[place + number % 3 :]


def test_no_sequence_raises_an_error_or_keeps_the_next_keys() -> None:
    draw, found, units = random.Random(28), InputFilter(), set[tuple[str, str, str]]()
    known = [key.encode()[:40] for key in KEYS]
    for _ in range(examples(100_000)):
        sent = mutated(draw, known)
        place = len(sent) // 2
        new = found.feed(sent[:place]) + found.feed(sent[place:]) + found.rest(SILENCE_SECONDS) + found.finish()
        units.update(new)

        assert found.feed(b"\x1b[A")[-1] == ("key", "\x1b[A", ""), sent
        # An editor opens for a bell alone, and for the key itself.
        is_bell = b"\x07" in (sent[:place], sent[place:])
        assert is_bell or ("key", "\x07", "") not in new, sent

    # The parser sees each unit alone, so the different ones are enough.
    for kind, text, _ in units:
        if kind in ("key", "event"):
            messages = received(text)
            keys = [message for message in messages if isinstance(message, Key)]
            assert not [message for message in messages if isinstance(message, InputIgnored)], text
            assert kind == "key" or not keys, text
            assert len(keys) <= 1, text


def test_an_error_in_the_parser_costs_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = XTermParser.feed

    def fail_at_up(parser: XTermParser, data: str) -> Iterable[Message]:
        if data == "\x1b[A":
            raise ValueError
        return parse(parser, data)

    monkeypatch.setattr(XTermParser, "feed", fail_at_up)

    assert words_of(received("a\x1b[Ab", "c")) == "ab<InputIgnored>c"


def test_the_pointer_keeps_its_unit_after_an_unknown_sequence() -> None:
    sized = "\x1b[48;24;80;480;800t"
    messages = received(f"{sized}\x1b[999~\x1b[<35;101;201M")

    assert isinstance(messages[0], Resize)
    assert [(event.x, event.y) for event in messages if isinstance(event, MouseMove)] == [(10, 10)]
    assert [type(event) for event in received("\x1b[I")] == [AppFocus]


def test_a_reading_thread_that_fails_ends_the_app_as_any_error_does() -> None:
    driver, raised = object.__new__(TerminalDriver), list[Exception]()

    def call_later(fail: Callable[[Exception], None], error: Exception) -> None:
        with pytest.raises(type(error)) as caught:
            fail(error)
        raised.append(caught.value)

    driver._app, driver.fileno = cast("Any", SimpleNamespace(call_later=call_later)), -1
    driver.run_input_thread()

    assert len(raised) == 1


@pytest.mark.parametrize(("sent", "key"), [(b"\x1b[27;2;13~", "shift+enter"), (b"\x1b", "escape")])
def test_a_reading_thread_that_is_late_cuts_no_sequence(monkeypatch: pytest.MonkeyPatch, sent: bytes, key: str) -> None:
    monkeypatch.setattr("textual._parser.get_time", itertools.count(0, 10).__next__)
    monkeypatch.setattr(terminal_driver, "_READ_SIZE", 1)
    driver, keys = object.__new__(TerminalDriver), list[str]()
    driver._app, driver.exit_event = cast("Any", None), _SelectableEvent()

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
