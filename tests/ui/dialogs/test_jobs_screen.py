"""The page of background commands as mouse and keys drive it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.ui.open_bench import bench_of
from tests.ui.stage import Stage, stage
from tui_agent.protocol.facts.page_facts import JobFact
from tui_agent.ui.dialogs.answer_rules import FOCUS_SECONDS, RESTING_SECONDS, SEEN_SECONDS
from tui_agent.ui.dialogs.jobs_screen import JobsScreen
from tui_agent.ui.dialogs.list_page import CONFIRM_SECONDS
from tui_agent.ui.text.rows_view import RowsView

RUNNING = JobFact("bash_1", "npm run dev", "running", True, 754.0, 48_300)
ENDED = JobFact("bash_2", "make docs", "ended with exit code 0", False, 12.0, 310)


class Jobs:
    """Background commands that record what is asked of them."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def list(self) -> tuple[JobFact, ...]:
        return (RUNNING, ENDED)

    def stop(self, task_id: str, /) -> str:
        self.asked.append(f"stop {task_id}")
        return ""

    async def detach(self, task_id: str, /) -> str:
        self.asked.append(f"detach {task_id}")
        return "It runs on."

    async def output(self, task_id: str, /) -> str:
        self.asked.append(f"output {task_id}")
        return "listening"


@dataclass
class Page:
    """The page of background commands on the screen."""

    on: Stage
    jobs: Jobs
    screen: JobsScreen
    keys: RowsView

    async def click(self, label: str, beside: int = 0) -> None:
        """Click on the label of a key, or `beside` cells right of its end."""
        column = getattr(self.keys.line_at(0), "plain", "").index(label)
        await self.on.pilot.click(self.keys, offset=(column + (beside and len(label)), 0))

    def wait(self, seconds: float) -> None:
        """Advance the clock."""
        self.on.clock.now += seconds


@asynccontextmanager
async def jobs_page() -> AsyncIterator[Page]:
    """Show the page with a command that runs and one that has ended."""
    jobs = Jobs()
    async with stage(size=(100, 30)) as on:
        on.chat.bridge.bench = bench_of(on.loop, on.bus, jobs=jobs)
        await on.say("/jobs")
        await on.until(lambda: isinstance(on.app.screen, JobsScreen))
        screen = on.app.screen
        assert isinstance(screen, JobsScreen)
        keys = screen.query_one("#jobs-keys", RowsView)
        await on.until(lambda: "stop" in getattr(keys.line_at(0), "plain", ""))
        yield Page(on, jobs, screen, keys)


async def test_a_click_on_the_label_of_a_key_is_the_key() -> None:
    async with jobs_page() as page:
        await page.click("ctrl+x stop")
        page.wait(RESTING_SECONDS)
        await page.click("ctrl+x stop", beside=1)
        assert page.jobs.asked == [], "one click asks, and one beside it does nothing"
        await page.click("ctrl+x stop")
        await page.on.until(lambda: page.jobs.asked == ["stop bash_1"])
        await page.click("ctrl+d detach")
        page.wait(CONFIRM_SECONDS + 1)
        await page.click("ctrl+d detach")
        assert page.jobs.asked == ["stop bash_1"], "too late"
        page.wait(RESTING_SECONDS)
        await page.click("ctrl+d detach")
        await page.on.until(lambda: "detach bash_1" in page.jobs.asked)

        await page.on.pilot.press("down")
        await page.click("ctrl+x stop")
        await page.click("ctrl+x stop")
        await page.click("enter output")
        await page.on.until(lambda: page.jobs.asked[2:] == ["output bash_2"])
        await page.on.pilot.press("escape")
        await page.on.until(lambda: page.on.app.screen is page.screen)
        await page.click("esc close")
        await page.on.until(lambda: page.on.app.screen is page.on.chat)


async def test_a_double_click_a_held_key_and_a_click_for_the_focus_do_not_confirm() -> None:
    async with jobs_page() as page:
        asked = page.jobs.asked
        for label in ("ctrl+x stop", "ctrl+d detach"):
            page.wait(CONFIRM_SECONDS + 1)
            await page.click(label)
            await page.click(label)
            page.wait(RESTING_SECONDS - 0.1)
            await page.click(label)
            assert f"{label.split()[1]} bash_1" not in asked
            page.wait(0.1)
            await page.click(label)
            await page.on.until(lambda label=label: asked[-1:] == [f"{label.split()[1]} bash_1"])

        asked.clear()
        await page.click("ctrl+x stop")
        page.wait(RESTING_SECONDS)
        page.on.app.app_focus = False
        page.on.app.app_focus = True
        await page.click("ctrl+x stop")
        assert asked == []
        page.wait(FOCUS_SECONDS + 0.1)
        await page.click("ctrl+x stop")
        await page.on.until(lambda: asked == ["stop bash_1"])

        for key in ("ctrl+x", "delete"):
            asked.clear()
            page.wait(CONFIRM_SECONDS + 1)
            for _ in range(20):
                await page.on.pilot.press(key)
                page.wait(0.03)
            assert asked == []
            page.wait(SEEN_SECONDS)
            await page.on.pilot.press(key)
            await page.on.until(lambda: asked == ["stop bash_1"])
