"""The page of background commands: state, time and output of each, and keys to read, stop and detach it."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click

from tui_agent.protocol.facts.job_facts import JobFact
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.bridge.job_queries import JobQueries
from tui_agent.ui.text.amounts import bytes_text, count_text, seconds_text
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_page import RowsPage
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.sanitiser import joined_lines, one_line, sanitise, visible
from tui_agent.ui.text.styled_lines import clipped, key_runs, wrapped

from .answer_clicks import act_on_key
from .second_press import SecondPress
from .text_page import POLL_SECONDS, TextPage

_ID = 9
_STATE = 12
_TIME = 9
_SIZE = 9
_NARROW = 60
"""Cells below which a row has no time and no size."""
_HEADING = 2
_DETAIL_ROWS = 2


class JobsScreen(RowsPage[None]):
    """The page; it follows the commands."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("jobs")]
    DEFAULT_CSS = """
    JobsScreen {
        & RowsView { height: 1; overflow: hidden; }
        & #jobs-body { height: 1fr; min-height: 1; overflow-y: auto; }
        & #jobs-detail { height: 2; margin-top: 1; }
    }
    """

    def __init__(self, jobs: JobQueries, clock: Callable[[], float]) -> None:
        """
        Args:
            jobs: lists, reads and ends the commands.
            clock: the clock for second presses.
        """
        super().__init__()
        self._jobs = jobs
        self._second_press = SecondPress(self, clock)
        self._facts: tuple[JobFact, ...] = ()
        self._chosen = ""
        self._message: tuple[str, str] = ("", "")
        self._body = RowsView(self._body_rows, id="jobs-body")
        self._detail = RowsView(self._detail_rows, id="jobs-detail")
        self._state = RowsView(self._state_rows, id="jobs-state")
        self._keys = RowsView(self._key_rows, id="jobs-keys")

    def compose(self) -> ComposeResult:
        """Yield the commands, the selected one in full, the last message and the keys."""
        with Vertical() as page:
            page.border_title = Content(" Background commands ")
            for view in (self._body, self._detail, self._state, self._keys):
                view.can_focus = False
                yield view

    def on_mount(self) -> None:
        """Show the commands, and follow them."""
        self._second_press.begin(self.app)
        self._read()
        self.set_interval(POLL_SECONDS, self._read)
        self.call_after_refresh(self._reveal)

    @property
    def paged(self) -> RowsView:
        """The rows that the paging keys move."""
        return self._body

    @property
    def selected(self) -> JobFact | None:
        """The command at the cursor: the chosen one, else the newest that runs, else the newest."""
        chosen = next((fact for fact in self._facts if fact.task_id == self._chosen), None)
        running = next((fact for fact in reversed(self._facts) if fact.is_running), None)
        return chosen or running or (self._facts[-1] if self._facts else None)

    # --- keys and mouse -----------------------------------------------------------------------------------------------

    def action_cursor_up(self) -> None:
        """Move to the command above."""
        self._move(-1)

    def action_cursor_down(self) -> None:
        """Move to the command below."""
        self._move(+1)

    def action_open_output(self) -> None:
        """Show what the selected command has printed."""
        if (fact := self.selected) is not None:
            self.run_worker(self._open(fact), group="jobs", exit_on_error=False)

    def action_stop(self) -> None:
        """Ask whether to stop the selected command; the second time, stop it."""
        if (fact := self.selected) is not None and self._is_confirmed("stop", fact, "stops"):
            refused = self._jobs.stop(fact.task_id)
            self._say(refused or f"{fact.task_id} stops.", wrong=bool(refused))

    def action_detach(self) -> None:
        """Ask whether to detach the selected command; the second time, detach it."""
        if (fact := self.selected) is not None and self._is_confirmed("detach", fact, "detaches"):
            self.run_worker(self._let_go(fact), group="jobs", exit_on_error=False)

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(None)

    def on_click(self, event: Click) -> None:
        """Select the clicked command; if it is selected, show its output. A click on a key's label acts as the key."""
        if event.widget is self._keys:
            act_on_key(self, "jobs", self._keys.line_at(event.y), event.x, self._click_counts)
        place = int(event.screen_y) - self._body.region.y + self._body.scroll_offset.y - _HEADING
        if event.widget is self._body and 0 <= place < len(self._facts):
            again = self._facts[place] is self.selected
            self._chosen = self._facts[place].task_id
            self._show()
            if again:
                self.action_open_output()

    # --- what is shown ------------------------------------------------------------------------------------------------

    async def _let_go(self, fact: JobFact) -> None:
        self._say(await self._jobs.detach(fact.task_id), wrong=False)

    async def _open(self, fact: JobFact) -> None:
        text = sanitise(await self._jobs.output(fact.task_id)) or "It has printed nothing yet."
        self.app.push_screen(
            TextPage(f"{fact.task_id} · {one_line(visible(joined_lines(fact.command)), 60)}", lambda _: Content(text))
        )

    def _is_confirmed(self, action: str, fact: JobFact, effect: str) -> bool:
        """Return True at the second press in time; at the first, say what it would do."""
        asked = (action, fact.task_id)
        if self._second_press.waits_for(asked):
            return self._second_press.confirm(asked)
        self._second_press.ask(asked)
        self._say(f"{command(f'jobs.{action}').key_text} again {effect} {fact.task_id}.", wrong=True)
        return False

    def _click_counts(self, action: str) -> bool:
        return self.selected is None or self._second_press.click_counts((action, self.selected.task_id))

    def _say(self, text: str, *, wrong: bool) -> None:
        self._message = (sanitise(text), "warning" if wrong else "")
        self._read()

    def _read(self) -> None:
        self._facts = self._jobs.list()
        self._show()

    def _show(self) -> None:
        self._body.show(self._body_rows)
        for view, build in (
            (self._detail, self._detail_rows),
            (self._state, self._state_rows),
            (self._keys, self._key_rows),
        ):
            view.show(build)

    def _move(self, by: int) -> None:
        if (fact := self.selected) is None:
            return
        place = min(max(0, self._facts.index(fact) + by), len(self._facts) - 1)
        self._chosen, self._message = self._facts[place].task_id, ("", "")
        self._show()
        self._reveal()

    def _reveal(self) -> None:
        """Scroll to the selected command."""
        if (fact := self.selected) is None:
            return
        place = self._facts.index(fact)
        row, top, room = place + _HEADING, self._body.scroll_offset.y, self._body.size.height
        if row < top or row >= top + room:
            self._body.scroll_to(y=0 if place == 0 else row - room + 1, animate=False, immediate=True)

    def _body_rows(self, width: int) -> Sequence[Line]:
        numbers = f"{'time':>{_TIME}}{'output':>{_SIZE}}  " if width >= _NARROW else ""
        heading = f"  {'id':<{_ID}}{'state':<{_STATE}}{numbers}command"
        return [Line(clipped([(heading, "muted")], width)), Line(), *(self._row(fact, width) for fact in self._facts)]

    def _row(self, fact: JobFact, width: int) -> Line:
        at_cursor = fact is self.selected
        state, style = ("◐ running", "calls") if fact.is_running else _short(fact.state)
        size = bytes_text(fact.size) if fact.size else "–"
        numbers = f"{seconds_text(fact.seconds):>{_TIME}}{size:>{_SIZE}}  " if width >= _NARROW else ""
        runs: list[Run] = [("› " if at_cursor else "  ", "key"), (f"{fact.task_id:<{_ID}}", "strong")]
        runs += [
            (f"{state:<{_STATE}}", style),
            (numbers, "muted"),
            (one_line(visible(joined_lines(fact.command)), 300), ""),
        ]
        return Line(clipped(runs, width))

    def _detail_rows(self, width: int) -> Sequence[Line]:
        if (fact := self.selected) is None:
            return []
        state = "is running" if fact.state == "running" else fact.state
        text = f"{one_line(visible(joined_lines(fact.command)), 600)}"
        return wrapped([(text, "strong"), (f" · {visible(state)}", "muted")], width)[:_DETAIL_ROWS]

    def _state_rows(self, width: int) -> Sequence[Line]:
        text, style = self._message
        if not text:
            running = sum(fact.is_running for fact in self._facts)
            end = "it ends" if running == 1 else "they end"
            text, style = f"{count_text(running, 'command')} running; {end} with the session", "muted"
        return [Line(clipped([(text, style)], width))]

    def _key_rows(self, width: int) -> Sequence[Line]:
        runs = self.selected is not None and self.selected.is_running
        answers: list[tuple[str, str, bool]] = []
        for name in ("open_output", "stop", "detach", "close"):
            known = command(f"jobs.{name}")
            answers.append((known.key_text, known.text, runs or name in ("open_output", "close")))
        return [Line(clipped(key_runs(answers), width))]


def _short(state: str) -> tuple[str, str]:
    """Return how a command ended in one or two words, and their style."""
    code = state.removeprefix("ended with exit code ")
    if code != state:
        return ("✔ done", "success") if code == "0" else (f"✖ exit {code}", "error")
    if state.startswith("was stopped"):
        return "■ stopped", "muted"
    return ("↗ detached", "muted") if "runs on without" in state else ("✖ failed", "error")
