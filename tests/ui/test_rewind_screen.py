"""The rewind page: choosing a point, seeing the plan, carrying it out."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.ui.rewinds import CONFLICT, PLAN, FakeRewinding
from tests.ui.row_kit import HostApp
from tests.ui.stage import Clock
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.facts.change_facts import RewindOutcome, RewindPlan
from tui_agent.ui.dialogs.rewind_screen import BUSY, RewindScreen, rewind_outcome_text
from tui_agent.ui.text.rows_view import RowsView

SIZES = [(80, 24), (120, 40)]
both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])


class Page:
    """A page with a simulated user."""

    def __init__(self, pilot: Pilot[None], screen: RewindScreen, clock: Clock) -> None:
        self.pilot, self.screen, self.clock = pilot, screen, clock
        self.outcomes: list[RewindOutcome | None] = []

    async def press(self, *keys: str) -> None:
        for key in keys:
            self.clock.now += 1.0
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        await self.pilot.app.workers.wait_for_complete()
        for _ in range(3):
            await self.pilot.pause()

    def rows(self, name: str = "#rewind-body") -> str:
        view = self.screen.query_one(name, RowsView)
        return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height)).rstrip()


@asynccontextmanager
async def opened(
    rewinding: FakeRewinding | None = None,
    *,
    call: tuple[str, str] | None = None,
    busy: bool = False,
    size: tuple[int, int] = (80, 24),
) -> AsyncIterator[Page]:
    clock = Clock()
    async with HostApp().run_test(size=size) as pilot:
        screen = RewindScreen(
            rewinding or FakeRewinding(), lambda: busy, clock, call=call, when=lambda ms: f"11-21 14:{ms // 1000:02}"
        )
        page = Page(pilot, screen, clock)
        await pilot.app.push_screen(screen, page.outcomes.append)
        await page.settle()
        yield page


@pytest.mark.slow
async def test_a_key_pressed_at_once_does_nothing() -> None:
    """Holding Enter leads to the plan, but does not carry it out."""
    rewinding = FakeRewinding()
    async with opened(rewinding) as page:
        for _ in range(5):
            await page.pilot.press("enter")
            await page.settle()

    assert rewinding.done == []


@pytest.mark.slow
async def test_what_goes_back_is_chosen() -> None:
    rewinding = FakeRewinding()
    async with opened(rewinding) as page:
        await page.press("enter", "tab")
        assert "[files only]" in page.rows()
        await page.press("tab")
        assert "[conversation only]" in page.rows()
        assert "5 files changed since; they stay as they are." in page.rows()
        await page.press("enter")

    assert rewinding.done == [(PLAN.text, "conversation", frozenset())]


@pytest.mark.slow
async def test_a_file_changed_outside_is_restored_only_if_the_user_selects_it() -> None:
    rewinding = FakeRewinding()
    async with opened(rewinding) as page:
        await page.press("enter", "space")
        assert "[x]" not in page.rows()
        assert "[ ] left alone" in page.rows()
        assert CONFLICT.problem in page.rows()
        assert page.rows("#rewind-state") == "3 files go back · 2 are left alone"
        await page.press("down", "down", "down", "space")
        assert "[x] changed back" in page.rows()
        assert page.rows("#rewind-state") == "4 files go back · 1 is left alone"
        await page.press("enter")

    assert rewinding.done == [(PLAN.text, "both", frozenset({CONFLICT.path}))]


@pytest.mark.slow
async def test_nothing_goes_back_while_the_agent_works() -> None:
    rewinding = FakeRewinding()
    async with opened(rewinding, busy=True) as page:
        await page.press("enter", "enter")
        assert page.rows("#rewind-state") == BUSY

    assert rewinding.done == []


@pytest.mark.slow
async def test_a_call_that_changed_nothing_says_so() -> None:
    rewinding = FakeRewinding(RewindPlan(to_seq=1, text="x", steps=()))
    async with opened(rewinding, call=("c1", "bash ls")) as page:
        assert "Nothing to undo: this call changed no file." in page.rows()
        await page.press("enter")

    assert rewinding.done == []


@pytest.mark.slow
async def test_an_error_is_shown() -> None:
    rewinding = FakeRewinding()
    rewinding.refusal = SessionError("The journal cannot be read: no such file.")
    async with opened(rewinding) as page:
        assert "The journal cannot be read" in page.rows()


async def test_a_click_shows_a_plan_but_does_not_carry_it_out() -> None:
    rewinding = FakeRewinding()
    async with opened(rewinding) as page:
        for _ in range(2):
            await page.pilot.click("#rewind-body", offset=(5, 0))
        await page.settle()
        assert "left alone" in page.rows()
        for row in range(8):
            await page.pilot.click("#rewind-body", offset=(5, row))
            await page.pilot.click("#rewind-body", offset=(5, row))
        page.clock.now += 5.0
        await page.pilot.click("#rewind-keys", offset=(2, 0))
        await page.settle()

    assert rewinding.done == []


def test_the_outcome_is_one_message() -> None:
    outcome = RewindOutcome(("a", "b"), ("c",), ("d: it is locked",))

    assert rewind_outcome_text(outcome) == "2 files changed back. Left as they are: c. Not changed: d: it is locked."


def pressing(*keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def before(pilot: Pilot[None]) -> None:
        await pilot.app.workers.wait_for_complete()
        for key in keys:
            await pilot.press(key)
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
        for _ in range(3):
            await pilot.pause()

    return before


PICTURES = {"moments": ("down",), "plan": ("down", "enter"), "conflict": ("enter", "down", "down", "down", "space")}


@pytest.mark.slow
@both_sizes
@pytest.mark.parametrize("state", PICTURES)
def test_a_page_looks_as_it_should(snap_compare: Callable[..., Any], state: str, size: tuple[int, int]) -> None:
    class Showing(HostApp):
        def on_mount(self) -> None:
            super().on_mount()
            self.push_screen(
                RewindScreen(FakeRewinding(), lambda: False, Clock(), when=lambda ms: f"11-21 14:{ms // 1000:02}")
            )

    assert snap_compare(Showing(), terminal_size=size, run_before=pressing(*PICTURES[state]))
