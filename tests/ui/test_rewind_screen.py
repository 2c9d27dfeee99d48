"""The rewind page: choosing a point, seeing the plan, carrying it out."""

from collections.abc import AsyncIterator, Callable
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.ui.dialogs.test_diff_screen import pressing
from tests.ui.question_page import empty_app
from tests.ui.row_kit import HostApp
from tests.ui.stage import Clock
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import FileState
from tui_agent.protocol.facts.change_facts import FileStep, RewindOutcome, RewindPlan, RewindPoint, Scope
from tui_agent.ui.dialogs.rewind_screen import BUSY, RewindScreen, rewind_outcome_text
from tui_agent.ui.text.rows_view import RowsView

pytestmark = pytest.mark.slow

POINTS = (
    RewindPoint(40, 3_000, "add a discount", is_turn=False, files=1, added=3),
    RewindPoint(20, 2_000, "fix the failing price test\nand keep the signature", files=3, added=12, removed=4),
    RewindPoint(5, 1_000, "what does [b]price.py[/b] do?", files=5, added=40, removed=12),
)

STATE = FileState(digest="d", size=3, mode=0o644)
RESTORED = FileStep(
    Path("/shop/src/price.py"),
    "src/price.py",
    "restore",
    STATE,
    STATE,
    Diff("--- a/src/price.py\n+++ b/src/price.py\n@@ -8,2 +8,2 @@\n import decimal\n-round(total)\n+total\n"),
)
CONFLICT = FileStep(
    Path("/shop/src/cart.py"),
    "src/cart.py",
    "restore",
    STATE,
    STATE,
    Diff("--- a/src/cart.py\n+++ b/src/cart.py\n@@ -1,1 +1,2 @@\n import price\n+mine\n"),
    problem="somebody else changed it since",
)
STUCK = FileStep(
    Path("/shop/data.bin"),
    "data.bin",
    "stuck",
    STATE,
    None,
    problem="its content from then was not kept: the file was too large, or there were too many",
)
PLAN = RewindPlan(
    to_seq=20,
    text=POINTS[1].text,
    steps=(
        RESTORED,
        FileStep(Path("/shop/notes.txt"), "notes.txt", "delete", STATE, None, Diff(counts=(0, 7))),
        FileStep(Path("/shop/old.py"), "old.py", "create", None, STATE, Diff(counts=(4, 0))),
        CONFLICT,
        STUCK,
    ),
    messages=6,
    draft=POINTS[1].text,
)


class FakeRewinding:
    """Returns a plan, and records what it carries out."""

    def __init__(self, plan: RewindPlan = PLAN) -> None:
        self._plan = plan
        self.done: list[tuple[str, Scope, AbstractSet[Path]]] = []
        self.refusal: SessionError | None = None

    async def points(self) -> tuple[RewindPoint, ...]:
        if self.refusal is not None:
            raise self.refusal
        return POINTS

    async def plan(self, point: RewindPoint, /) -> RewindPlan:
        return self._plan

    async def plan_for_call(self, call_id: str, text: str, /) -> RewindPlan:
        return RewindPlan(to_seq=40, text=text, steps=self._plan.steps, call_id=call_id)

    async def carry_out(self, plan: RewindPlan, scope: Scope, overwritten: AbstractSet[Path], /) -> RewindOutcome:
        self.done.append((plan.text, scope, overwritten))
        chosen = plan.chosen(scope, overwritten)
        left = tuple(step.shown for step in plan.steps if step not in chosen)
        return RewindOutcome(tuple(step.shown for step in chosen), left, draft=plan.draft if scope != "files" else "")


class Page:
    """A page with a simulated user."""

    def __init__(self, pilot: Pilot[None], screen: RewindScreen, clock: Clock) -> None:
        self.pilot, self.screen, self.clock = pilot, screen, clock

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


def screen_of(rewinding: FakeRewinding, clock: Clock, *, busy: bool = False, **fields: Any) -> RewindScreen:
    return RewindScreen(rewinding, lambda: busy, clock, when=lambda ms: f"11-21 14:{ms // 1000:02}", **fields)


@asynccontextmanager
async def opened_in(pilot: Pilot[None], rewinding: FakeRewinding, **fields: Any) -> AsyncIterator[Page]:
    """Show the page in a running app."""
    clock = Clock()
    page = Page(pilot, screen_of(rewinding, clock, **fields), clock)
    await pilot.app.push_screen(page.screen)
    await page.settle()
    yield page
    if pilot.app.screen is page.screen:
        await page.screen.dismiss(None)
        await page.settle()


async def test_what_goes_back_is_chosen_and_confirmed_by_a_key() -> None:
    async with empty_app() as pilot:
        rewinding = FakeRewinding()
        async with opened_in(pilot, rewinding) as page:
            await page.press("enter", "tab")
            assert "[files only]" in page.rows()
            await page.press("tab")
            assert "[conversation only]" in page.rows()
            assert "5 files changed since; they stay as they are." in page.rows()
            await page.press("enter")
        assert rewinding.done == [(PLAN.text, "conversation", frozenset())]

        rewinding = FakeRewinding()
        async with opened_in(pilot, rewinding) as page:
            await page.press("enter", "space")
            assert "[x]" not in page.rows()
            assert "[ ] left alone" in page.rows(), "a file changed outside goes back only by choice"
            assert CONFLICT.problem in page.rows()
            assert page.rows("#rewind-state") == "3 files go back · 2 are left alone"
            await page.press("down", "down", "down", "space")
            assert "[x] changed back" in page.rows()
            assert page.rows("#rewind-state") == "4 files go back · 1 is left alone"
            await page.press("enter")
        assert rewinding.done == [(PLAN.text, "both", frozenset({CONFLICT.path}))]


async def test_a_held_key_a_click_and_a_busy_agent_change_nothing() -> None:
    rewinding = FakeRewinding()
    async with empty_app() as pilot:
        async with opened_in(pilot, rewinding) as page:
            for _ in range(5):
                # Holding enter leads to the plan, but does not carry it out.
                await pilot.press("enter")
                await page.settle()

        async with opened_in(pilot, rewinding) as page:
            for _ in range(2):
                await pilot.click("#rewind-body", offset=(5, 0))
            await page.settle()
            assert "left alone" in page.rows(), "a click shows the plan"
            for row in range(8):
                await pilot.click("#rewind-body", offset=(5, row))
                await pilot.click("#rewind-body", offset=(5, row))
            page.clock.now += 5.0
            await pilot.click("#rewind-keys", offset=(2, 0))
            await page.settle()

        async with opened_in(pilot, rewinding, busy=True) as page:
            await page.press("enter", "enter")
            assert page.rows("#rewind-state") == BUSY

        nothing = FakeRewinding(RewindPlan(to_seq=1, text="x", steps=()))
        async with opened_in(pilot, nothing, call=("c1", "bash ls")) as page:
            assert "Nothing to undo: this call changed no file." in page.rows()
            await page.press("enter")
        assert rewinding.done == nothing.done == []

        rewinding.refusal = SessionError("The journal cannot be read: no such file.")
        async with opened_in(pilot, rewinding) as page:
            assert "The journal cannot be read" in page.rows()


def test_the_outcome_is_one_message() -> None:
    outcome = RewindOutcome(("a", "b"), ("c",), ("d: it is locked",))

    assert rewind_outcome_text(outcome) == "2 files changed back. Left as they are: c. Not changed: d: it is locked."


PICTURES = {
    "moments": ((80, 24), ("down",)),
    "plan": ((120, 40), ("down", "enter")),
    "conflict": ((80, 24), ("enter", "down", "down", "down", "space")),
}


@pytest.mark.parametrize("state", PICTURES)
def test_a_page_looks_as_it_should(snap_compare: Callable[..., Any], state: str) -> None:
    class Showing(HostApp):
        def on_mount(self) -> None:
            super().on_mount()
            self.push_screen(screen_of(FakeRewinding(), Clock()))

    size, keys = PICTURES[state]
    assert snap_compare(Showing(), terminal_size=size, run_before=pressing(*keys))
