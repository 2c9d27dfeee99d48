"""Typing in the composer: sending, history, folded pastes, and no lost text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import on
from textual.app import App, ComposeResult
from textual.events import Paste, Resize
from textual.widgets import Static

from tests.support.table import table
from tui_agent.protocol.visible_text import TYPOGRAPHY, is_invisible
from tui_agent.ui.approval.attention_line import AttentionLine
from tui_agent.ui.composer.composer import MAX_HISTORY_ENTRIES, Composer, PromptHistory
from tui_agent.ui.composer.paste_collapse import (
    COLLAPSED_CHARACTERS,
    PasteLabels,
    escape_hidden,
    render_escapes,
    unescape_hidden,
)
from tui_agent.ui.composer.prompt_area import PromptArea
from tui_agent.ui.composer.prompt_parser import Suggestion, suggestions
from tui_agent.ui.state.queued_messages import WaitingMessages
from tui_agent.ui.state.session_status import SessionStatus

LONG = "\n".join(f"line {number}" for number in range(20))
LABEL = "[pasted 20 lines]"


class Desk(App[None]):
    """An app that shows only the prompt area."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = PromptArea(WaitingMessages(), SessionStatus(), AttentionLine(), Static("─"))
        self.sent: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        yield self.entry

    def on_mount(self) -> None:
        self.composer.focus()

    def on_resize(self, event: Resize) -> None:
        self.entry.fit(event.size)

    @property
    def composer(self) -> Composer:
        return self.entry.composer

    @on(Composer.Submitted)
    def _sent(self, event: Composer.Submitted) -> None:
        self.sent.append((event.kind, event.text))


@pytest.mark.slow
async def test_it_grows_to_a_third_of_the_window() -> None:
    async with Desk().run_test(size=(80, 24)) as pilot:
        composer = pilot.app.composer
        composer.show("\n".join("abcdef"))
        await pilot.pause()
        assert composer.size.height == 6

        composer.load_text("")
        pilot.app.post_message(Paste("\n".join(map(str, range(2_000)))))
        await pilot.pause()
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert composer.text.endswith("1999")
        assert pilot.app.entry.region.height == composer.region.height + 1 == 8
        assert pilot.app.screen.max_scroll_y == 0, "nothing moves off the screen"

        for height, rows in ((40, 12), (12, 3), (1, 1), (24, 7)):
            await pilot.resize_terminal(80, height)
            await pilot.pause()
            assert composer.size.height == rows


@pytest.mark.slow
async def test_what_was_sent_can_be_had_again() -> None:
    async with Desk().run_test() as pilot:
        await pilot.press(*"one", "enter", *"two", "enter", *"dra")
        await pilot.press("up")
        assert pilot.app.composer.text == "two"
        await pilot.press("up", "up")
        assert pilot.app.composer.text == "one"
        await pilot.press("down", "down")
        assert pilot.app.composer.text == "dra"

        await pilot.press("backslash", "enter", "b", "up")
        assert pilot.app.composer.text == "dra\nb", "a backslash before enter begins a new line"
        assert pilot.app.composer.cursor_location == (0, 1), "the arrows move inside the text first"
        await pilot.press("up")
        assert pilot.app.composer.text == "two"
        assert len(pilot.app.sent) == 2


def test_prompts_of_earlier_sessions_come_before_new_ones_however_often_they_are_loaded() -> None:
    sent = PromptHistory()
    for text in ("now", "now", " "):
        sent.add(text)

    sent.begin_with(["old", "old", " ", "newer"])
    assert sent.earlier("") == "now"
    sent.begin_with(["oldest", "old", "newer"])

    assert [sent.earlier(""), sent.earlier(""), sent.earlier(""), sent.earlier("")] == ["newer", "old", "oldest", None]
    sent.begin_with(str(number) for number in range(MAX_HISTORY_ENTRIES + 5))
    sent.leave()
    assert [sent.earlier(""), sent.earlier("")] == ["now", str(MAX_HISTORY_ENTRIES + 4)]


async def paste(pilot_app: Desk, text: str) -> None:
    pilot_app.composer.post_message(Paste(text))


@pytest.mark.slow
async def test_a_folded_paste_is_one_place_for_keys_and_cursor() -> None:
    async with Desk().run_test() as pilot:
        composer = pilot.app.composer
        for keys in (["backspace"], ["home", "delete"]):
            await paste(pilot.app, LONG)
            await pilot.pause()
            await pilot.press(*keys)
            assert composer.text == ""

        await pilot.press("a")
        await paste(pilot.app, LONG)
        await pilot.pause()
        await pilot.press("b", "left", "left")
        await pilot.pause()
        assert composer.cursor_location == (0, 1)
        await pilot.press("right")
        await pilot.pause()
        assert composer.cursor_location == (0, 1 + len(LABEL))
        for column, shown in ((5, 1), (len(LABEL) - 3, 1 + len(LABEL))):
            composer.move_cursor((0, column))
            await pilot.pause()
            assert composer.cursor_location == (0, shown)


def test_two_pastes_of_one_size_keep_apart() -> None:
    labels = PasteLabels()
    first, second = labels.collapse(LONG), labels.collapse(LONG.upper())

    assert (first, second) == (LABEL, "[pasted 20 lines #2]")
    assert labels.expand(f"{first} and {second}") == f"{LONG} and {LONG.upper()}"
    assert PasteLabels().expand(LABEL) == LABEL, "a label that was typed is only text"


@pytest.mark.slow
@given(st.lists(st.text(min_size=COLLAPSED_CHARACTERS, max_size=COLLAPSED_CHARACTERS + 40), min_size=1, max_size=3))
def test_whatever_is_folded_comes_out_whole(pastes: list[str]) -> None:
    labels = PasteLabels()
    draft = " | ".join(labels.collapse(paste) for paste in pastes)

    assert labels.expand(draft) == " | ".join(pastes)


HIDDEN = "a\x1b]52;c;eA==\x07b\u202ec\r\n\x00d\te\u2028f\x85g\ue05cx1b"


async def test_a_short_paste_shows_its_hidden_characters_and_sends_and_copies_them() -> None:
    async with Desk().run_test() as pilot:
        await pilot.press(*"see ")
        await paste(pilot.app, HIDDEN)
        await pilot.pause()

        drawn = [strip.text.rstrip() for strip in map(pilot.app.composer.render_line, range(2))]
        assert drawn == ["see a\\x1b]52;c;eA==\\x07b\\u202ec", "\\x00d   e\\u2028f\\x85g\\ue05cx1b"]
        await pilot.press("enter")
        await pilot.pause()
        assert pilot.app.sent == [("submit", f"see {HIDDEN}".replace("\r\n", "\n"))]

        await paste(pilot.app, "\x1b\u202e\\x1b")
        await pilot.pause()
        await pilot.press("shift+home", "ctrl+x")
        assert pilot.app.composer.text == ""
        await pilot.press("ctrl+v")
        await pilot.pause()
        assert pilot.app.clipboard == pilot.app.composer.draft == "\x1b\u202e\\x1b"


@table("keys", [["backspace"], ["ctrl+w"], ["shift+left", "delete"], ["left", "delete"]])
async def test_an_escape_goes_as_a_whole(keys: list[str]) -> None:
    async with Desk().run_test() as pilot:
        await paste(pilot.app, "a \u202e\u202e\x1b")
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()

        assert pilot.app.composer.draft == "a \u202e\u202e"


@pytest.mark.slow
async def test_a_draft_with_escapes_and_labels_survives_a_look_back() -> None:
    async with Desk().run_test() as pilot:
        await pilot.press(*"one", "enter")
        await paste(pilot.app, "\x1b\u200b ")
        await paste(pilot.app, LONG)
        await pilot.pause()
        before = pilot.app.composer.text
        await pilot.press("up", "down")
        assert pilot.app.composer.text == before

        await pilot.press("enter", "up")
        await pilot.pause()
        assert pilot.app.sent[1:] == [("submit", f"\x1b\u200b {LONG}")]
        assert pilot.app.composer.draft == f"\x1b\u200b {LONG}"


LONG_SEQUENCES = {
    "one family": "\u200d".join("👩" * 300),
    "marks": "e" + "\u0301" * 1_000,
    "marks on nothing": "\u0489" * 1_000,
    "hearts": "❤\ufe0f" * 400,
    "selectors": "a" + "\ufe0f\U000e0100" * 300,
    "flags and tones": "🇩🇪👍🏽" * 100,
    "bells": "\x07" * 700,
    "jamo": "\u1100" + "\u1161\u11a8" * 300,
    "everything": "👩\u200d👩 ❤\ufe0f e\u0301 \x1b\u202e日本 " * 40,
}


@pytest.mark.slow
@table("name", LONG_SEQUENCES)
async def test_no_row_of_a_joined_sequence_is_wider_than_it_is_drawn(name: str) -> None:
    text = LONG_SEQUENCES[name]
    async with Desk().run_test(size=(41, 120)) as pilot:
        composer = pilot.app.composer
        await paste(pilot.app, text)
        await pilot.pause()

        width = composer.scrollable_content_region.width
        top = composer.scroll_offset.y
        for row in range(composer.wrapped_document.height):
            strip = composer.render_line(row - top)
            assert strip.cell_length == width == sum(map(cell_len, strip.text))
            assert not any(map(is_invisible, strip.text.replace("\n", "")))
        end = composer.wrapped_document.location_to_offset(composer.document.end)
        drawn = composer.render_line(composer.wrapped_document.height - 1 - top).text.rstrip(" ")
        assert composer.cursor_location == composer.document.end
        assert (end.x, end.y) == (cell_len(drawn) + text.endswith(" "), composer.wrapped_document.height - 1)
        assert composer.draft == text


ODD = st.sampled_from("a \x1b\u200d\ufe0f\u0301\u202e\ue05cx1bu20日👩❤\u1161\x85\u2028\t\n")


@settings(deadline=None)
@given(st.text(ODD | st.characters(), max_size=400))
def test_whatever_is_pasted_is_what_is_sent(text: str) -> None:
    shown = escape_hidden(text)

    assert unescape_hidden(shown) == text
    for line in shown.split("\n"):
        drawn = render_escapes(line)
        assert len(drawn) == len(line)
        assert cell_len(drawn) == sum(map(cell_len, drawn))
        assert not any(is_invisible(one) for one in drawn if one not in TYPOGRAPHY and one != "\t")


@pytest.mark.slow
async def test_closed_suggestions_stay_closed_until_something_is_typed() -> None:
    async with Desk().run_test() as pilot:
        await pilot.press("slash", "h", "escape", "enter")
        await pilot.pause()
        assert pilot.app.sent == [("submit", "/h")]

        await pilot.press("slash", "h", "escape", "e", "enter")
        await pilot.pause()
        assert pilot.app.sent[1:] == [("submit", "/help")]


def files(*paths: str) -> tuple[Suggestion, ...]:
    return tuple(map(Suggestion.of_file, paths))


async def test_an_answer_for_an_earlier_text_is_not_shown() -> None:
    async with Desk().run_test() as pilot:
        composer = pilot.app.composer
        await pilot.press("at", "a", "b")
        composer.offer_mentions("a", files("a.py"))
        await pilot.pause()
        assert not pilot.app.entry._suggestions.display

        composer.offer_mentions("ab", files("ab.py", "a/b.py"))
        await pilot.press("period")
        assert pilot.app.entry._suggestions.display
        await pilot.press("escape")
        composer.offer_mentions("ab.", files("ab.py"))
        await pilot.pause()
        assert not pilot.app.entry._suggestions.display


async def test_a_path_with_blanks_is_quoted_and_an_address_is_not_a_mention() -> None:
    async with Desk().run_test() as pilot:
        await pilot.press("at", "m")
        pilot.app.composer.offer_mentions("m", files("my file.txt"))
        await pilot.press("tab")
        assert pilot.app.composer.text == '@"my file.txt" '

        await pilot.press(*"me", "at", *"example")
        assert pilot.app.composer._mention is None


async def test_the_menu_counts_the_commands_below_and_above() -> None:
    async with Desk().run_test(size=(80, 24)) as pilot:
        menu = pilot.app.entry._suggestions
        await pilot.press("slash")
        await pilot.pause()
        rows = menu.render().plain.splitlines()
        count = len(suggestions("/"))
        assert len(rows) == menu.size.height == 9
        assert rows[-1].strip() == f"↓ {count - 8} more"

        await pilot.press(*["down"] * 8)
        rows = menu.render().plain.splitlines()
        assert any(row.startswith(" ›") for row in rows)
        assert rows[-1].strip() == f"↑ 4 more · ↓ {count - 12} more"
        await pilot.press(*["up"] * 9)
        assert menu.render().plain.splitlines()[-1].strip() == f"↑ {count - 8} more"
