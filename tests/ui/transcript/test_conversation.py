"""Conversation on a screen: follows the end, keeps its position elsewhere, opens, searches, selects, and rests."""

from itertools import pairwise

import pytest
from textual.pilot import Pilot

from tests.ui.row_kit import (
    ANSWER,
    FoldWithLedger,
    HostApp,
    Teller,
    answer,
    apply_to,
    delta,
    ended,
    queued,
    started,
    user,
)
from tui_agent.protocol.events import AgentEvent
from tui_agent.protocol.messages import TextBlock
from tui_agent.ui.transcript import transcript_search
from tui_agent.ui.transcript.conversation import Conversation
from tui_agent.ui.transcript.transcript_layout import Transcript
from tui_agent.ui.transcript.transcript_search import Found

SIZE = (60, 12)


class ListeningApp(HostApp):
    """Records the calls that the user opens."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: list[tuple[str, ...]] = []

    def on_conversation_page_requested(self, event: Conversation.PageRequested) -> None:
        self.chosen.append(event.call_ids)


async def tell(pilot: Pilot[None], *events: AgentEvent) -> Conversation:
    """Apply events and wait until the screen shows them."""
    conversation = pilot.app.query_one(Conversation)
    teller = Teller()
    for event in events:
        apply_to(conversation, teller.tell(event))
    conversation.flush()
    await pilot.pause()
    return conversation


def seen(conversation: Conversation) -> list[str]:
    """Return the visible rows as they are drawn."""
    return [conversation.render_line(y).text.rstrip() for y in range(conversation.size.height)]


def many(count: int) -> list[AgentEvent]:
    return [user(f"message {number}", f"u{number}") for number in range(count)]


@pytest.mark.slow
async def test_a_reader_elsewhere_is_left_in_peace_and_told_what_is_new() -> None:
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = await tell(pilot, *many(20))
        conversation.scroll_to(y=5, animate=False)
        await pilot.pause()
        before = seen(conversation)

        await tell(pilot, user("new", "u98"), user("newer", "u99"))

        assert not conversation.following
        assert seen(conversation)[:-1] == before[:-1]
        assert seen(conversation)[-1].endswith("2 new ↓")
        assert conversation.unseen == 2

        await pilot.click(Conversation, offset=(50, 11))
        await pilot.pause()
        assert conversation.following
        assert seen(conversation)[-1] == " ❯ newer"


@pytest.mark.slow
async def test_a_flood_is_shown_at_once_and_read_a_slice_at_a_time() -> None:
    text = "\n\n".join(f"point **{number}**" for number in range(5_000))
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = await tell(pilot, started("m1"), delta(text, "m1"))

        assert seen(conversation)[-1].strip().startswith("point **4999**")

        apply_to(conversation, Teller().tell(answer(text, "m1")))
        turns = 0
        while seen(conversation)[-1].strip() != "point 4999":
            conversation.flush()
            turns += 1
            assert turns < 1_000
        assert turns > 5
        assert conversation.following


async def test_a_search_of_a_long_conversation_continues_until_a_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transcript_search, "SLICE", 1)
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = await tell(pilot, *many(50))

        assert conversation.search("message 7").count == 0
        for _ in range(200):
            conversation.flush()
        await pilot.pause()

        assert "message 7" in "".join(seen(conversation))


@pytest.mark.slow
async def test_scrolling_up_through_what_was_never_laid_out_shows_every_row_once() -> None:
    texts = [f"message {number} " + "word " * (number * 7 % 40) for number in range(60)]
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = await tell(pilot, *(user(text, f"u{number}") for number, text in enumerate(texts)))
        pages = [seen(conversation)]
        while conversation.scroll_offset.y > 0:
            conversation.scroll_to(y=conversation.scroll_offset.y - 12, animate=False)
            await pilot.pause()
            pages.append(seen(conversation))

        words = " ".join(" ".join(page) for page in reversed(pages)).split()

        numbers = [int(after) for word, after in pairwise(words) if word == "message"]
        assert sorted(set(numbers)) == list(range(60))
        assert words.count("word") >= sum(number * 7 % 40 for number in range(60))


class CountingConversation(Conversation):
    """Counts how often changes are drawn."""

    flushes = 0

    def show_changes(self) -> None:
        self.flushes += 1
        super().show_changes()


async def test_events_reach_the_screen_by_themselves_and_then_it_rests() -> None:
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = CountingConversation(FoldWithLedger(Transcript()))
        await pilot.app.screen.mount(conversation, before=0)
        teller = Teller()
        for event in (started(), delta("Hello"), delta(" there")):
            apply_to(conversation, teller.tell(event))
        while "Hello there" not in "".join(seen(conversation)):
            await pilot.pause(0.01)

        await pilot.pause(0.3)

        assert conversation.flushes == 1


async def test_a_click_unfolds_a_call_and_ctrl_o_opens_it_in_full_screen() -> None:
    app = ListeningApp()
    async with app.run_test(size=SIZE) as pilot:
        done = ended("c1", "bash").model_copy(update={"content": (TextBlock(text="all of it"),)})
        conversation = await tell(pilot, answer("I look."), queued("c1", "bash"), done)
        place = next(y for y, row in enumerate(seen(conversation)) if row.startswith(" ✔ bash"))

        await pilot.click(Conversation, offset=(6, place))
        await pilot.pause()
        assert seen(conversation)[place + 1].strip() == "all of it"
        await pilot.click(Conversation, offset=(6, place))
        await pilot.pause()
        assert "all of it" not in "".join(seen(conversation))

        conversation.focus()
        await pilot.press("ctrl+o")
        assert app.chosen == [("c1",)]


@pytest.mark.slow
async def test_keys_go_from_part_to_part_and_open_them() -> None:
    app = ListeningApp()
    async with app.run_test(size=SIZE) as pilot:
        events = [answer("A.", thinking="hm"), queued("c1", "read"), ended("c1", "read"), *many(20)]
        conversation = await tell(pilot, *events, answer("B.", "a2", thinking="ho"))
        conversation.focus()

        await pilot.press("enter")
        await pilot.pause()
        assert "  ▎▸ thinking" not in seen(conversation)
        assert any(row.startswith("▎  ▸ thinking  ho") for row in seen(conversation))

        await pilot.press("shift+up")
        await pilot.pause()
        assert any(row.startswith("▎✔ read") for row in seen(conversation))
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert app.chosen == [("c1",)]

        await pilot.press("shift+up", "enter")
        await pilot.pause()
        assert any(row.startswith("▎  ▾ thinking") for row in seen(conversation))
        await pilot.press("shift+down", "shift+down", "shift+down")
        await pilot.pause()
        assert any(row.startswith("▎  ▸ thinking  ho") for row in seen(conversation))


@pytest.mark.slow
async def test_keys_scroll_where_the_keyboard_is() -> None:
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = await tell(pilot, *many(20))
        conversation.focus()
        places = []
        for key in ("ctrl+up", "ctrl+up", "ctrl+down", "pageup", "pagedown", "home", "end"):
            await pilot.press(key)
            await pilot.pause()
            places.append(conversation.max_scroll_y - conversation.scroll_offset.y)

        assert places[:3] == [1, 2, 1]
        assert places[3] > 5
        assert places[4] == 1
        assert places[5:] == [conversation.max_scroll_y, 0]


async def test_a_click_that_ends_a_selection_opens_nothing() -> None:
    app = ListeningApp()
    async with app.run_test(size=SIZE) as pilot:
        conversation = await tell(pilot, answer("I look."), queued("c1", "read"))
        place = next(y for y, row in enumerate(seen(conversation)) if row.startswith(" ◌ read"))

        await pilot.mouse_down(Conversation, offset=(3, place))
        await pilot.hover(Conversation, offset=(8, place))
        await pilot.mouse_up(Conversation, offset=(8, place))
        await pilot.click(Conversation, offset=(30, 10))
        await pilot.pause()

        assert app.chosen == []


async def test_search_steps_through_matches_and_opens_closed_parts() -> None:
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = await tell(
            pilot, answer("A.", thinking="one\n\na Needle"), *many(20), user("needle here", "u77")
        )

        assert conversation.search("needle") == Found(2, 2)
        await pilot.pause()
        assert " ❯ needle here" in seen(conversation)

        assert conversation.previous_match()
        await pilot.pause()
        assert "   ▏ a Needle" in seen(conversation)
        assert conversation.next_match()
        await pilot.pause()
        assert " ❯ needle here" in seen(conversation)

        assert conversation.search("") == Found()
        assert not conversation.next_match()
        assert conversation.search("no such thing") == Found()


async def test_another_width_keeps_the_same_text_in_view() -> None:
    async with HostApp().run_test(size=(60, 12)) as pilot:
        texts = (user(f"message {number} " + "word " * 20, f"u{number}") for number in range(40))
        conversation = await tell(pilot, *texts)
        conversation.scroll_to(y=60, animate=False)
        await pilot.pause()
        first = next(row for row in seen(conversation) if "message" in row)

        await pilot.resize_terminal(40, 12)
        await pilot.pause()

        assert any(row.startswith(first[:14]) for row in seen(conversation))
        await pilot.resize_terminal(20, 6)
        await pilot.pause()
        assert len(seen(conversation)) == 6


@pytest.mark.slow
async def test_ten_thousand_messages_lay_out_only_what_is_in_sight() -> None:
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = await tell(pilot, *(answer(ANSWER, f"a{number}") for number in range(5_000)))

        kept = sum(part.cached_rows for part in conversation.transcript.parts)

        assert kept < 200
        assert "Then I run the tests." in "".join(seen(conversation))


async def test_a_reader_further_up_keeps_the_text_in_sight_when_thinking_is_shown() -> None:
    thoughts = "\n\n".join(f"thought {number}" for number in range(9))
    async with HostApp().run_test(size=SIZE) as pilot:
        events = [event for n in range(20) for event in (user(f"q {n}", f"u{n}"), answer("A.", f"a{n}", thoughts))]
        conversation = await tell(pilot, *events, *many(10))
        conversation.scroll_to(y=40, animate=False)
        await pilot.pause()
        top = next(row for row in seen(conversation) if "q " in row)

        conversation.show_thinking(True)
        conversation.flush()
        await pilot.pause()

        assert not conversation.following
        assert top in seen(conversation)[:6]
