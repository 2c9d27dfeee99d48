"""Actions on background commands, and on those that a killed tui-agent left running."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.panel.call_list import CallList

from .action_context import ActionContext, Handlers

if TYPE_CHECKING:
    from tui_agent.workbench.session_jobs import SessionJobs

_NAMED = re.compile(r"(stop|detach)[ \t]+(\S+)")
_KILL = re.compile(r"kill(?:[ \t]+([0-9]{1,9}))?")
_USAGE = (
    "/jobs lists background commands; /jobs stop ID stops one, /jobs detach ID lets it run on after tui-agent has "
    "ended. /jobs kill [PID] ends commands that a killed tui-agent left running."
)


class JobActions:
    """List, send, stop and detach commands."""

    def __init__(self, context: ActionContext, state: Callable[[], ScreenState]) -> None:
        self._context = context
        self._state = state
        self.handlers: Handlers = {
            "chat.jobs": self._jobs,
            "chat.background": lambda _: self._send(),
        }
        """Actions by id of their command."""

    def _send(self) -> None:
        """Send the newest running command to the background; in the panel, that of the selected row."""
        ledger, focused = self._state().ledger, self._context.screen.focused
        running = (ledger.calls[place].view for place in sorted(ledger.places["running"], reverse=True))
        view = next((view for view in running if view.name == "bash" and view.phase == "running"), None)
        if isinstance(focused, CallList) and focused.selected is not None:
            view = focused.selected.view
        if view is None:
            self._context.say("No command is running that could go to the background.", wrong=True)
            return
        if (bench := self._context.bench()) is None:
            return
        task_id, refused = bench.jobs.send(view.call_id)
        call = self._state().ledger.find(view.call_id)
        name = f"#{call.number}" if call is not None else "The call"
        if refused:
            self._context.say(refused, wrong=True)
        else:
            self._context.say(f"{name} runs on in the background as {task_id}. /jobs lists it.")

    def _jobs(self, argument: str) -> bool:
        if (bench := self._context.bench()) is None:
            return False
        if (named := _NAMED.fullmatch(argument)) is not None:
            return self._on(bench.jobs, named[1], named[2])
        wanted = _KILL.fullmatch(argument)
        if argument and wanted is None:
            self._context.say(_USAGE, wrong=True)
            return False
        if wanted is None and bench.jobs.list():
            self._open_page(bench.jobs)
        if (left := bench.leftovers) is not None:
            work = left.report() if wanted is None else left.end(int(wanted[1]) if wanted[1] else None)
            self._context.start("jobs", work)
        elif wanted is not None:
            self._context.say("No command of an earlier tui-agent is running.")
        elif not bench.jobs.list():
            self._context.say("No command runs in the background.")
        return True

    def _on(self, jobs: "SessionJobs", action: str, task_id: str) -> bool:
        """Stop or detach a background command by its name."""
        if action == "detach":
            self._context.start("jobs", self._detach(jobs, task_id))
            return True
        refused = jobs.stop(task_id)
        self._context.say(refused or f"{task_id} stops.", wrong=bool(refused))
        return not refused

    async def _detach(self, jobs: "SessionJobs", task_id: str) -> None:
        self._context.say(await jobs.detach(task_id))

    def _open_page(self, jobs: "SessionJobs") -> None:
        from tui_agent.ui.dialogs.jobs_screen import JobsScreen

        context = self._context
        context.screen.app.push_screen(JobsScreen(jobs, context.options.surroundings.clock))
