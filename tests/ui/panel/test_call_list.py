"""Tool panel with keys and mouse: select, follow, filter, open, and clocks that redraw only themselves."""

import pytest
from textual import on
from textual.app import App, ComposeResult

from tests.ui.story import Story, working
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.panel.call_list import CallList
from tui_agent.ui.panel.tool_panel import ToolPanel
from tui_agent.ui.state.call_ledger import CallLedger


class Bench(App[None]):
    """An app with the panel alone."""

    def __init__(self, story: Story) -> None:
        super().__init__()
        self.story = story
        self.ledger = CallLedger()
        self.panel = ToolPanel(self.ledger, TerminalEnvironment(reduced_motion=True, clock=lambda: story.now))
        self.opened: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.panel

    def on_mount(self) -> None:
        self.tell()
        self.panel.focus_list()

    def tell(self, since: int = 0) -> None:
        for envelope in self.story.envelopes[since:]:
            if changed := self.ledger.apply(envelope):
                self.panel.update(changed)

    @property
    def rows(self) -> CallList:
        return self.query_one(CallList)

    @property
    def selected(self) -> int | None:
        call = self.rows.selected
        return None if call is None else call.number

    @on(CallList.Opened)
    def _opened(self, event: CallList.Opened) -> None:
        self.opened.append(event.view.call_id)


def many(number: int) -> Story:
    story = Story().run("x").step(0)
    for index in range(number):
        story.call("read", f"file {index}", status="error")
    return story


async def test_the_arrows_start_at_the_newest_call() -> None:
    async with Bench(working()).run_test(size=(60, 20)) as pilot:
        seen = []
        for key in ("up", "up", "down", "down", "down", "home", "up", "end"):
            await pilot.press(key)
            seen.append(pilot.app.selected)

        # The first row stands for the two that ended well.
        assert seen == [4, 3, 4, 4, 4, None, None, 4]


async def test_calls_that_ended_well_are_one_row_that_unfolds_by_key_and_click() -> None:
    story = working()
    async with Bench(story).run_test(size=(60, 20)) as pilot:
        rows = pilot.app.rows

        def shown() -> list[str]:
            return [" ".join(rows.render_line(y).text.split()[:2]) for y in range(len(rows._rows))]

        folded = ["▸✔ 2", "◐ #3", "◌ #4"]
        unfolded = ["▾✔ 2", "✔ #1", "✔ #2", "◐ #3", "◌ #4"]
        assert shown() == folded
        for keys in (("home", "enter"), ("home", "right")):
            await pilot.press(*keys)
            assert shown() == unfolded
            await pilot.press(*keys)
            assert shown() == folded
        await pilot.click(CallList, offset=(5, 0))
        assert shown() == unfolded
        await pilot.press("down")
        assert pilot.app.selected == 1
        await pilot.press("home", "left", "end")
        assert shown() == folded

        seen = len(story.envelopes)
        story.ended("c3", "bash")
        pilot.app.tell(seen)
        assert shown() == ["▸✔ 3", "◌ #4"]
        assert pilot.app.selected == 4
        assert pilot.app.opened == []


async def test_the_cursor_stays_on_its_call_until_the_call_goes_into_the_row_of_those_that_ended_well() -> None:
    story = working()
    async with Bench(story).run_test(size=(60, 20)) as pilot:
        await pilot.press("up", "up")
        assert pilot.app.selected == 3

        seen = len(story.envelopes)
        story.ended("c3", "bash")
        pilot.app.tell(seen)
        assert (pilot.app.selected, pilot.app.rows._cursor) == (None, 0)


async def test_paging_moves_through_a_long_list() -> None:
    async with Bench(many(100)).run_test(size=(60, 12)) as pilot:
        await pilot.press("pageup")
        assert pilot.app.selected == 90
        await pilot.press("pageup", "pageup", "pagedown")
        assert pilot.app.selected == 80
        await pilot.press("end", "pagedown")
        assert pilot.app.selected == 100


async def test_an_empty_panel_accepts_every_key() -> None:
    async with Bench(Story()).run_test(size=(60, 12)) as pilot:
        await pilot.press("up", "down", "pageup", "pagedown", "home", "end", "enter", "f4", "ctrl+x")

        assert pilot.app.opened == []


async def test_a_click_selects_and_another_one_opens() -> None:
    async with Bench(working()).run_test(size=(60, 20)) as pilot:
        await pilot.click(CallList, offset=(5, 1))
        assert pilot.app.selected == 3
        await pilot.click(CallList, offset=(5, 1))
        await pilot.pause()
        assert pilot.app.opened == ["c3"]

        await pilot.click(CallList, offset=(5, 15))
        assert pilot.app.opened == ["c3"]


async def test_the_filter_key_changes_the_filter_and_the_heading() -> None:
    async with Bench(working()).run_test(size=(60, 20)) as pilot:
        seen = []
        for _ in range(4):
            await pilot.press("f4")
            await pilot.pause()
            heading = pilot.app.panel._heading.render().plain
            seen.append(heading.split("·")[1].split()[1] if "only" in heading else "all")

        assert seen == ["running", "failed", "needs", "all"]


@pytest.mark.slow
async def test_a_call_that_a_filter_hides_can_be_gone_to() -> None:
    async with Bench(working()).run_test(size=(60, 20)) as pilot:
        await pilot.press("f4")
        pilot.app.panel.select("c1")
        assert pilot.app.selected == 1
        pilot.app.panel.select("nobody")
        assert pilot.app.selected == 1


async def test_the_newest_call_stays_in_sight_until_the_user_scrolls_back() -> None:
    story = many(50)
    async with Bench(story).run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        assert pilot.app.rows.scroll_y == pilot.app.rows.max_scroll_y

        pilot.app.rows.scroll_to(y=5, animate=False)
        await pilot.pause()
        seen = len(story.envelopes)
        story.call("read", "one more", status="error")
        pilot.app.tell(seen)
        await pilot.pause()
        assert pilot.app.rows.scroll_y == 5

        pilot.app.rows.scroll_end(animate=False)
        await pilot.pause()
        seen = len(story.envelopes)
        story.call("read", "and another", status="error")
        pilot.app.tell(seen)
        await pilot.pause()
        await pilot.pause()
        assert pilot.app.rows.scroll_y == pilot.app.rows.max_scroll_y


async def test_the_clock_runs_only_while_a_call_does() -> None:
    story = working()
    async with Bench(story).run_test(size=(60, 20)) as pilot:
        timer = pilot.app.rows._timer
        assert timer is not None
        assert timer._active.is_set()

        seen = len(story.envelopes)
        story.end()
        pilot.app.tell(seen)
        await pilot.pause()
        assert not timer._active.is_set()


async def test_a_tick_draws_clocks_and_nothing_else() -> None:
    async with Bench(working()).run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        asked: list[int] = []
        rows = pilot.app.rows
        draw = rows.render_line
        rows.render_line = lambda y: (asked.append(y), draw(y))[1]
        rows._tick()
        await pilot.pause()

        assert set(asked) == {1}


@pytest.mark.slow
async def test_ten_thousand_calls_are_drawn_like_ten() -> None:
    story = Story().run("x").step(0)
    for index in range(10_000):
        story.queued("read", f"file {index}")
    async with Bench(story).run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        asked: list[int] = []
        rows = pilot.app.rows
        draw = rows.render_line
        rows.render_line = lambda y: (asked.append(y), draw(y))[1]
        seen = len(story.envelopes)
        story.started("c10000", "read", "file 9999")
        pilot.app.tell(seen)
        await pilot.pause()

        assert len(set(asked)) <= 2


async def test_the_filter_may_change_between_an_event_and_its_drawing() -> None:
    story = working()
    async with Bench(story).run_test(size=(60, 20)) as pilot:
        seen = len(story.envelopes)
        story.output("c3", "more\n").output("c3", "and more\n")
        pilot.app.tell(seen)
        pilot.app.rows.chosen = "failed"
        await pilot.pause()

        assert pilot.app.rows.selected is None
