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
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.composer.paste_folding_area import escape_hidden, render_escapes, unescape_hidden
from tui_agent.ui.composer.prompt_area import PromptArea
from tui_agent.ui.composer.prompt_parser import Suggestion, suggestions
from tui_agent.ui.composer.queue_strip import QueueRequest
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
        self.wanted: list[str] = []

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

    @on(QueueRequest)
    def _change_queue(self, request: QueueRequest) -> None:
        self.wanted.append(request.action)


async def test_enter_after_a_backslash_begins_a_new_line() -> None:
    async with Desk().run_test() as pilot:
        await pilot.press("a", "backslash", "enter", "b")

        assert pilot.app.composer.text == "a\nb"
        assert pilot.app.sent == []


@pytest.mark.slow
async def test_it_grows_to_a_third_of_the_window() -> None:
    async with Desk().run_test(size=(80, 24)) as pilot:
        pilot.app.composer.show("\n".join("abcdef"))
        await pilot.pause()
        assert pilot.app.composer.size.height == 6

        pilot.app.composer.load_text("\n".join(map(str, range(30))))
        await pilot.pause()
        assert pilot.app.composer.size.height == 7

        for height, rows in ((40, 12), (12, 3), (1, 1), (24, 7)):
            await pilot.resize_terminal(80, height)
            await pilot.pause()
            assert pilot.app.composer.size.height == rows


async def test_a_paste_of_any_length_moves_nothing_off_the_screen() -> None:
    async with Desk().run_test(size=(80, 24)) as pilot:
        await pilot.press("a")
        pilot.app.post_message(Paste("\n".join(map(str, range(2_000)))))
        await pilot.pause()
        await pilot.press("ctrl+o")
        await pilot.pause()

        assert pilot.app.composer.text.endswith("1999")
        assert pilot.app.entry.region.height == pilot.app.composer.region.height + 1 == 8
        assert pilot.app.screen.max_scroll_y == 0


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


async def test_the_arrows_move_inside_the_text_first() -> None:
    async with Desk().run_test() as pilot:
        pilot.app.composer.remember(["earlier"])
        await pilot.press("a", "shift+enter", "b", "up")
        assert pilot.app.composer.text == "a\nb"
        assert pilot.app.composer.cursor_location == (0, 1)

        await pilot.press("up")
        assert pilot.app.composer.text == "earlier"


# --- folding ----------------------------------------------------------------------------------------------------------


async def paste(pilot_app: Desk, text: str) -> None:
    pilot_app.composer.post_message(Paste(text))


@pytest.mark.slow
async def test_a_folded_paste_goes_as_a_whole() -> None:
    async with Desk().run_test() as pilot:
        await paste(pilot.app, LONG)
        await pilot.pause()
        await pilot.press("backspace")
        assert pilot.app.composer.text == ""

        await paste(pilot.app, LONG)
        await pilot.pause()
        await pilot.press("home", "delete")
        assert pilot.app.composer.text == ""


async def test_the_cursor_steps_over_a_folded_paste() -> None:
    async with Desk().run_test() as pilot:
        await pilot.press("a")
        await paste(pilot.app, LONG)
        await pilot.pause()
        await pilot.press("b", "left", "left")
        await pilot.pause()
        assert pilot.app.composer.cursor_location == (0, 1)

        await pilot.press("right")
        await pilot.pause()
        assert pilot.app.composer.cursor_location == (0, 1 + len(LABEL))

        pilot.app.composer.move_cursor((0, 5))
        await pilot.pause()
        assert pilot.app.composer.cursor_location == (0, 1)
        pilot.app.composer.move_cursor((0, len(LABEL) - 3))
        await pilot.pause()
        assert pilot.app.composer.cursor_location == (0, 1 + len(LABEL))


HIDDEN = "a\x1b]52;c;eA==\x07b\u202ec\r\n\x00d\te\u2028f\x85g\ue05cx1b"


async def test_a_short_paste_shows_its_hidden_characters_and_sends_them() -> None:
    async with Desk().run_test() as pilot:
        await pilot.press(*"see ")
        await paste(pilot.app, HIDDEN)
        await pilot.pause()

        drawn = [strip.text.rstrip() for strip in map(pilot.app.composer.render_line, range(2))]
        assert drawn == ["see a\\x1b]52;c;eA==\\x07b\\u202ec", "\\x00d   e\\u2028f\\x85g\\ue05cx1b"]
        await pilot.press("enter")
        await pilot.pause()
        assert pilot.app.sent == [("submit", f"see {HIDDEN}".replace("\r\n", "\n"))]


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


async def test_what_is_copied_or_cut_is_the_text_and_no_escape() -> None:
    async with Desk().run_test() as pilot:
        await paste(pilot.app, "\x1b\u202e\\x1b")
        await pilot.pause()
        await pilot.press("shift+home", "ctrl+x")
        assert pilot.app.composer.text == ""
        await pilot.press("ctrl+v")
        await pilot.pause()

        assert pilot.app.clipboard == pilot.app.composer.draft == "\x1b\u202e\\x1b"


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


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_closed_suggestions_stay_closed_until_something_is_typed() -> None:
    async with Desk().run_test() as pilot:
        await pilot.press("slash", "h", "escape", "enter")
        await pilot.pause()
        assert pilot.app.sent == [("submit", "/h")]

        await pilot.press("slash", "h", "escape", "e", "enter")
        await pilot.pause()
        assert pilot.app.sent[1:] == [("submit", "/help")]


# --- mentions ---------------------------------------------------------------------------------------------------------


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
