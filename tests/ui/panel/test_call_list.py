"""Tool panel with keys and mouse: select, follow, filter, open, and clocks that redraw only themselves."""

from collections.abc import Callable

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

    def tell_more(self, happens: Callable[[], object]) -> None:
        """Let something happen in the story, and show it."""
        seen = len(self.story.envelopes)
        happens()
        self.tell(seen)

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


async def test_keys_clicks_and_the_filter_lead_to_calls() -> None:
    async with Bench(working()).run_test(size=(60, 20)) as pilot:
        app, seen = pilot.app, []
        for key in ("up", "up", "down", "down", "down", "home", "up", "end"):
            await pilot.press(key)
            seen.append(app.selected)
        # The arrows start at the newest call; the first row stands for the two that ended well.
        assert seen == [4, 3, 4, 4, 4, None, None, 4]

        for _ in range(2):
            await pilot.click(CallList, offset=(5, 1))
            assert app.selected == 3
        await pilot.click(CallList, offset=(5, 15))
        await pilot.pause()
        assert app.opened == ["c3"], "the second click opens, one below the rows does nothing"

        seen = []
        for _ in range(4):
            await pilot.press("f4")
            await pilot.pause()
            heading = app.panel._heading.render().plain
            seen.append(heading.split("·")[1].split()[1] if "only" in heading else "all")
        assert seen == ["running", "failed", "needs", "all"]

        await pilot.press("f4")
        app.panel.select("c1")
        assert app.selected == 1, "a call that the filter hides"
        app.panel.select("nobody")
        assert app.selected == 1

    async with Bench(many(100)).run_test(size=(60, 12)) as pilot:
        for keys, number in (("pageup", 90), ("pageup pageup pagedown", 80), ("end pagedown", 100)):
            await pilot.press(*keys.split())
            assert pilot.app.selected == number


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

        pilot.app.tell_more(lambda: story.ended("c3", "bash"))
        assert shown() == ["▸✔ 3", "◌ #4"]
        assert pilot.app.selected == 4
        assert pilot.app.opened == []


async def test_the_newest_call_stays_in_sight_until_the_user_scrolls_back() -> None:
    story = many(50)
    async with Bench(story).run_test(size=(60, 12)) as pilot:
        rows = pilot.app.rows
        await pilot.pause()
        assert rows.scroll_y == rows.max_scroll_y

        rows.scroll_to(y=5, animate=False)
        await pilot.pause()
        pilot.app.tell_more(lambda: story.call("read", "one more", status="error"))
        await pilot.pause()
        assert rows.scroll_y == 5

        rows.scroll_end(animate=False)
        await pilot.pause()
        pilot.app.tell_more(lambda: story.call("read", "and another", status="error"))
        await pilot.pause()
        await pilot.pause()
        assert rows.scroll_y == rows.max_scroll_y


def drawn_rows(rows: CallList) -> list[int]:
    """Return the list to which the number of each row is added that is drawn from now on."""
    asked: list[int] = []
    draw = rows.render_line
    rows.render_line = lambda y: (asked.append(y), draw(y))[1]
    return asked


async def test_the_clock_runs_only_while_a_call_does_and_draws_nothing_else() -> None:
    story = working()
    async with Bench(story).run_test(size=(60, 20)) as pilot:
        rows, timer = pilot.app.rows, pilot.app.rows._timer
        await pilot.pause()
        assert timer is not None
        assert timer._active.is_set()
        asked = drawn_rows(rows)
        rows._tick()
        await pilot.pause()
        assert set(asked) == {1}

        # The filter may change between an event and its drawing.
        pilot.app.tell_more(lambda: story.output("c3", "more\n").output("c3", "and more\n"))
        rows.chosen = "failed"
        await pilot.pause()
        assert rows.selected is None

        pilot.app.tell_more(story.end)
        await pilot.pause()
        assert not timer._active.is_set()


@pytest.mark.slow
async def test_ten_thousand_calls_are_drawn_like_ten() -> None:
    story = Story().run("x").step(0)
    for index in range(10_000):
        story.queued("read", f"file {index}")
    async with Bench(story).run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        asked = drawn_rows(pilot.app.rows)
        pilot.app.tell_more(lambda: story.started("c10000", "read", "file 9999"))
        await pilot.pause()

        assert len(set(asked)) <= 2
