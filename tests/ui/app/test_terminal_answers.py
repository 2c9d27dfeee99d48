"""The terminal's answer about its background: found in any split of the input, and never typed."""

import pytest

from tui_agent.ui.app.terminal_answers import ANSWER_SECONDS, HOLD_SECONDS, AnswerSplitter, can_be_asked

WHITE = "\x1b]11;rgb:ffff/ffff/ffff\x07"
BLACK = "\x1b]11;rgb:0000/0000/0000\x1b\\"


class Now:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def asked(now: Now) -> AnswerSplitter:
    splitter = AnswerSplitter(now)
    splitter.asked()
    return splitter


@pytest.mark.parametrize(
    ("answer", "light"),
    [
        (WHITE, True),
        (BLACK, False),
        ("\x1b]11;rgb:fd/f6/e3\x07", True),
        ("\x1b]11;rgba:0000/2b2b/3636/ffff\x1b\\", False),
    ],
)
def test_an_answer_says_whether_the_background_is_light(answer: str, light: bool) -> None:
    keys, answers = asked(Now()).feed(f"ab{answer}c")

    assert keys == "abc"
    assert [message.light for message in answers] == [light]


@pytest.mark.parametrize("place", range(1, len(BLACK)))
def test_an_answer_in_two_parts_is_still_an_answer(place: int) -> None:
    splitter = asked(Now())
    first, nothing = splitter.feed(f"x{BLACK[:place]}")
    second, answers = splitter.feed(f"{BLACK[place:]}y")

    assert (first, nothing, second) == ("x", [], "y")
    assert [message.light for message in answers] == [False]


def test_an_answer_in_single_characters_is_still_an_answer() -> None:
    splitter = asked(Now())

    assert "".join(splitter.feed(character)[0] for character in f"{WHITE}z") == "z"


def test_a_colour_in_an_unknown_form_is_taken_out_and_means_nothing() -> None:
    assert asked(Now()).feed("\x1b]11;hsl:1/2/3\x07a") == ("a", [])


def test_a_lone_escape_is_held_back_for_a_moment_only_while_an_answer_may_come() -> None:
    now = Now()
    splitter = asked(now)
    assert splitter.feed("\x1b") == ("", [])
    assert splitter.tick() == ""
    now.time += HOLD_SECONDS + 0.01
    assert splitter.tick() == "\x1b"
    assert splitter.tick() == ""

    now.time += ANSWER_SECONDS
    assert splitter.feed("\x1b") == ("\x1b", [])


def test_a_late_answer_in_parts_is_not_typed() -> None:
    now = Now()
    splitter = asked(now)
    now.time += 60
    assert splitter.feed(WHITE[:8]) == ("", [])
    keys, answers = splitter.feed(WHITE[8:])
    assert keys == ""
    assert answers


def test_after_the_answer_no_escape_is_held_back() -> None:
    splitter = asked(Now())
    splitter.feed(WHITE)

    assert splitter.feed("\x1b") == ("\x1b", [])


@pytest.mark.parametrize("keys", ["\x1b[A", "\x1b[200~", "\x1bOP", "\x1b\r", "\x1b]x", "a\x1b", WHITE])
def test_without_a_question_every_key_passes_at_once(keys: str) -> None:
    assert AnswerSplitter(Now()).feed(keys) == (keys, [])


@pytest.mark.parametrize("keys", ["\x1b[A", "\x1b[200~", "\x1bOP", "\x1b\r", "\x1b]x", "\x1b\x1b[A"])
def test_keys_that_begin_like_an_answer_pass_whole(keys: str) -> None:
    assert asked(Now()).feed(keys) == (keys, [])


@pytest.mark.parametrize(("term", "can"), [("xterm-256color", True), ("tmux", True), ("dumb", False), ("linux", False)])
def test_only_terminals_that_ignore_unknown_questions_are_asked(term: str, can: bool) -> None:
    assert can_be_asked({"TERM": term}) is can
    assert not can_be_asked({})
