"""The page of background commands: state, time and output of each, and keys to read, stop and detach it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.protocol.amounts import bytes_text, count_text, seconds_text
from tui_agent.protocol.facts.page_facts import JobFact
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import joined_lines, one_line, sanitise, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .list_page import ListPage
from .text_page import POLL_SECONDS, TextPage

if TYPE_CHECKING:
    from tui_agent.workbench.session_jobs import SessionJobs

_ID = 9
_STATE = 12
_TIME = 9
_SIZE = 9
_NARROW = 60
"""Cells below which a row has no time and no size."""


class JobsScreen(ListPage[JobFact, None]):
    """The page; it follows the commands."""

    WHERE = "jobs"
    KEYS = ("open_output", "stop", "detach", "search", "close")

    def __init__(self, jobs: "SessionJobs", clock: Callable[[], float]) -> None:
        super().__init__("Background commands", key=lambda fact: fact.task_id, clock=clock)
        self._jobs = jobs

    def on_mount(self) -> None:
        self._read()
        self.set_interval(POLL_SECONDS, self._read)
        self.call_after_refresh(self.rows.reveal)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_open_output(self) -> None:
        """Show what the selected command has printed."""
        if (fact := self.selected) is not None:
            self.run_worker(self._open(fact), group="jobs", exit_on_error=False)

    def action_stop(self) -> None:
        """Ask whether to stop the selected command; the second time, stop it."""
        if (fact := self.selected) is not None and self.is_confirmed("stop", fact.task_id, "stops"):
            refused = self._jobs.stop(fact.task_id)
            self._read()
            self.say(refused or f"{fact.task_id} stops.", "warning" if refused else "")

    def action_detach(self) -> None:
        """Ask whether to detach the selected command; the second time, detach it."""
        if (fact := self.selected) is not None and self.is_confirmed("detach", fact.task_id, "detaches"):
            self.run_worker(self._detach_command(fact), group="jobs", exit_on_error=False)

    def counts(self, name: str) -> bool:
        return name in ("open_output", "search", "close") or (self.selected is not None and self.selected.is_running)

    async def _detach_command(self, fact: JobFact) -> None:
        said = await self._jobs.detach(fact.task_id)
        self._read()
        self.say(said)

    async def _open(self, fact: JobFact) -> None:
        text = sanitise(await self._jobs.output(fact.task_id)) or "It has printed nothing yet."
        self.app.push_screen(
            TextPage(f"{fact.task_id} · {one_line(visible(joined_lines(fact.command)), 60)}", lambda _: Content(text))
        )

    def _read(self) -> None:
        """Show the commands; until the user moves the cursor, it is on the newest that runs, else on the newest."""
        facts = self._jobs.list()
        running = [place for place, fact in enumerate(facts) if fact.is_running]
        self.use(facts, running[-1] if running else max(0, len(facts) - 1))

    # --- rows ---------------------------------------------------------------------------------------------------------

    def heading_rows(self, width: int) -> Sequence[Line]:
        numbers = f"{'time':>{_TIME}}{'output':>{_SIZE}}  " if width >= _NARROW else ""
        heading = f"  {'id':<{_ID}}{'state':<{_STATE}}{numbers}command"
        return [Line(clipped([(heading, "muted")], width))]

    def item_row(self, item: JobFact, place: int, width: int) -> Line:
        state, style = ("◐ running", "calls") if item.is_running else _short(item.state)
        size = bytes_text(item.size) if item.size else "–"
        numbers = f"{seconds_text(item.seconds):>{_TIME}}{size:>{_SIZE}}  " if width >= _NARROW else ""
        runs: list[Run] = [self.cursor_sign(place), (f"{item.task_id:<{_ID}}", "strong")]
        runs += [
            (f"{state:<{_STATE}}", style),
            (numbers, "muted"),
            (one_line(visible(joined_lines(item.command)), 300), ""),
        ]
        return Line(clipped(runs, width))

    def detail_rows(self, item: JobFact, width: int) -> Sequence[Line]:
        state = "is running" if item.state == "running" else item.state
        text = f"{one_line(visible(joined_lines(item.command)), 600)}"
        return wrapped([(text, "strong"), (f" · {visible(state)}", "muted")], width)

    def summary(self) -> Run:
        running = sum(fact.is_running for fact in self.all_items)
        end = "it ends" if running == 1 else "they end"
        return f"{count_text(running, 'command')} running; {end} with the session", "muted"


def _short(state: str) -> tuple[str, str]:
    # The state is in the words that the model reads; a row has room for one of them.
    code = state.removeprefix("ended with exit code ")
    if code != state:
        return ("✔ done", "success") if code == "0" else (f"✖ exit {code}", "error")
    if state.startswith("was stopped"):
        return "■ stopped", "muted"
    return ("↗ detached", "muted") if "runs on without" in state else ("✖ failed", "error")
