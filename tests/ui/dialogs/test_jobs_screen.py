"""The page of background commands as the mouse drives it."""

from tests.ui.stage import stage
from tui_agent.ui.bridge.job_queries import JobFact, JobQueries
from tui_agent.ui.dialogs.jobs_screen import CONFIRM_SECONDS, JobsScreen
from tui_agent.ui.text.rows_view import RowsView

RUNNING = JobFact("bash_1", "npm run dev", "running", True, 754.0, 48_300)
ENDED = JobFact("bash_2", "make docs", "ended with exit code 0", False, 12.0, 310)


class Jobs:
    """Background commands that record what is asked of them; implements `JobService`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def list(self) -> tuple[JobFact, ...]:
        return (RUNNING, ENDED)

    def send(self, call_id: str, /) -> tuple[str, str]:
        return "", call_id

    def stop(self, task_id: str, /) -> str:
        self.asked.append(f"stop {task_id}")
        return ""

    async def detach(self, task_id: str, /) -> str:
        self.asked.append(f"detach {task_id}")
        return "It runs on."

    async def output(self, task_id: str, /) -> str:
        self.asked.append(f"output {task_id}")
        return "listening"


async def test_a_click_on_the_label_of_a_key_is_the_key() -> None:
    jobs = Jobs()
    async with stage(size=(100, 30)) as on:
        on.chat.bridge.jobs = JobQueries(on.chat.bridge.exchange, jobs)
        await on.say("/jobs")
        await on.until(lambda: isinstance(on.app.screen, JobsScreen))
        page = on.app.screen
        keys = page.query_one("#jobs-keys", RowsView)
        await on.until(lambda: "stop" in getattr(keys.line_at(0), "plain", ""))

        async def click(label: str, beside: int = 0) -> None:
            column = getattr(keys.line_at(0), "plain", "").index(label)
            await on.pilot.click(keys, offset=(column + (beside and len(label)), 0))

        await click("ctrl+x stop")
        await click("ctrl+x stop", beside=1)
        assert jobs.asked == [], "one click asks, and one beside it does nothing"
        await click("ctrl+x stop")
        await on.until(lambda: jobs.asked == ["stop bash_1"])
        await click("ctrl+d detach")
        on.clock.now += CONFIRM_SECONDS + 1
        await click("ctrl+d detach")
        assert jobs.asked == ["stop bash_1"], "too late"
        await click("ctrl+d detach")
        await on.until(lambda: "detach bash_1" in jobs.asked)

        await on.pilot.press("down")
        await click("ctrl+x stop")
        await click("ctrl+x stop")
        await click("enter output")
        await on.until(lambda: jobs.asked[2:] == ["output bash_2"])
        await on.pilot.press("escape")
        await on.until(lambda: on.app.screen is page)
        await click("esc close")
        await on.until(lambda: on.app.screen is on.chat)
