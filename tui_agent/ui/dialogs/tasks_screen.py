"""The page of the user's open sessions, also of other programs: which of them work, and which wait for an answer."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.protocol.amounts import count_text, seconds_text
from tui_agent.protocol.background import run_service
from tui_agent.protocol.facts.page_facts import TaskFact, TaskQuestion, TaskState
from tui_agent.protocol.messages import JsonObject, is_array, is_object, now_ms
from tui_agent.ui.base.commands import hint
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import one_line, sanitise, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .list_page import ListPage
from .text_page import POLL_SECONDS, TextPage

if TYPE_CHECKING:
    from tui_agent.workbench.live_session import TaskList

_STATES: dict[TaskState, Run] = {
    "waiting": ("▲ needs you", "warning"),
    "running": ("◐ running", "calls"),
    "idle": ("● open", "success"),
    "closed": ("  closed", "muted"),
}
_STATE, _TIME, _FOLDER = 12, 10, 18
_NARROW = 70
"""Cells below which a row has no folder."""


class TasksScreen(ListPage[TaskFact, str | None]):
    """The page; it follows the sessions. Returns the id of the session to switch to, or None."""

    WHERE = "tasks"
    KEYS = ("open_task", "allow", "deny", "search", "close")
    DETAIL_ROWS = 10

    def __init__(
        self,
        tasks: "TaskList",
        current: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = now_ms,
    ) -> None:
        """Create the page; `current` is the id of the session on the screen; `now` returns epoch milliseconds."""
        super().__init__("Tasks", key=lambda task: task.id, clock=clock)
        self._tasks = tasks
        self._current = current
        self._now = now
        self._is_reading = True
        self._asked_about = ""
        self._opened: set[str] = set()
        """Requests of the questions whose whole text was opened."""

    def on_mount(self) -> None:
        self._read()
        self.set_interval(POLL_SECONDS, self._read)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_open_task(self) -> None:
        """Switch to the selected session; show what is known of one that another program has open."""
        if (task := self.selected) is None:
            return
        if task.id == self._current:
            self.leave()
        elif task.state == "closed":
            self.dismiss(task.id)
        else:
            # All of their text is on the page that opens.
            self._opened.update(question.request for question in task.questions)
            text = Content("\n".join(row.plain for row in self.detail_rows(task, 100)))
            self.app.push_screen(TextPage(one_line(visible(task.title), 60), lambda _: text))

    def action_allow(self) -> None:
        """Ask whether to allow the call that waits in the selected session; the second time, allow it."""
        self._answer("allow", "allows")

    def action_deny(self) -> None:
        """Ask whether to deny the call that waits in the selected session; the second time, deny it."""
        self._answer("deny", "denies")

    def counts(self, name: str) -> bool:
        if name in ("allow", "deny"):
            return (found := self._question) is not None and name in found[1].answers
        return name in ("search", "close") or self.selected is not None

    @property
    def _question(self) -> tuple[TaskFact, TaskQuestion] | None:
        """The oldest question of the selected session, unless that is on the screen."""
        task = self.selected
        return (task, task.questions[0]) if task is not None and task.questions and task.id != self._current else None

    def _answer(self, answer: str, effect: str) -> None:
        if (found := self._question) is None:
            return
        task, question = found
        if question.request != self._asked_about:
            # Another question may read alike.
            self._second_press.forget()
            self._asked_about = question.request
        if answer not in question.answers:
            self.say("Here it can only be denied: its input is too long, or it needs more than a yes.", "warning")
        elif answer == "allow" and not self.shows_whole_detail and question.request not in self._opened:
            self.say(f"Not all of the question is visible: {hint('tasks.open_task', 'shows it')}.", "warning")
        elif self.is_confirmed(answer, one_line(sanitise(_first_line(question)), 60), effect):
            self.run_worker(self._send(task, question, answer), group="tasks-answer", exit_on_error=False)

    async def _send(self, task: TaskFact, question: TaskQuestion, answer: str) -> None:
        said: list[str] = []
        await run_service("answering a session", self._tasks.answer(task, question, answer), said.append)
        await self._load()
        done = "allowed" if answer == "allow" else "denied"
        self.say(said[0] if said else f"{_first_line(question)}: {done}.", "warning" if said else "")

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        self.run_worker(self._load(), group="tasks", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        found = await run_service("listing tasks", self._tasks.list(), lambda text: self.say(text, "warning"))
        self._is_reading = False
        self.use(found or ())

    # --- rows ---------------------------------------------------------------------------------------------------------

    def item_row(self, item: TaskFact, place: int, width: int) -> Line:
        state, style = _STATES[item.state]
        here = "strong" if place == self.rows.cursor else ""
        age = seconds_text(max(0, self._now() - item.since) / 1000)
        folder = (
            f"{one_line(visible(item.folder.rpartition('/')[2]), _FOLDER - 2):<{_FOLDER}}" if width >= _NARROW else ""
        )
        own = [("this session  ", "key")] if item.id == self._current else []
        runs: list[Run] = [self.cursor_sign(place), (f"{state:<{_STATE}}", style), (f"{age:>{_TIME}}  ", "muted")]
        return Line(clipped([*runs, (folder, "muted"), *own, (one_line(visible(item.title), 300), here)], width))

    def detail_rows(self, item: TaskFact, width: int) -> Sequence[Line]:
        rows = wrapped([(sanitise(item.title), "strong")], width)
        place = " · ".join(filter(None, (item.folder, item.branch, item.id, f"process {item.pid}" if item.pid else "")))
        rows += wrapped([(visible(place), "muted")], width)
        for question in item.questions:
            rows += [Line(), *wrapped([(visible(question.title), "warning")], width)]
            rows += wrapped([(sanitise(question.text), "")], width)
            for name, text in _texts(question.details):
                rows += [*wrapped([(visible(name), "muted")], width), *wrapped([(visible(text), "")], width)]
        return rows

    def search_text(self, item: TaskFact) -> str:
        return f"{item.title} {item.folder} {item.branch} {item.id}"

    def empty_text(self) -> str:
        return super().empty_text() or ("Reading …" if self._is_reading else "There are no sessions yet.")

    def summary(self) -> Run:
        states = [item.state for item in self.all_items]
        waiting, running = states.count("waiting"), states.count("running")
        words = [f"{waiting} needs you" if waiting == 1 else f"{waiting} need you"] if waiting else []
        words += [f"{running} running"] if running else []
        return " · ".join([count_text(len(states), "session"), *words]) if states else "", "muted"


def _first_line(question: TaskQuestion) -> str:
    return question.text.partition("\n")[0] or question.title


def _texts(value: JsonObject, prefix: str = "") -> list[tuple[str, str]]:
    """Return the texts of a JSON object with the names that lead to them."""
    found: list[tuple[str, str]] = []
    for name, inner in value.items():
        if is_object(inner):
            found += _texts(inner, f"{prefix}{name}.")
        elif is_array(inner):
            found += _texts({str(place): one for place, one in enumerate(inner, start=1)}, f"{prefix}{name}.")
        elif inner not in (None, "", False):
            found.append((f"{prefix}{name}", str(inner)))
    return found
