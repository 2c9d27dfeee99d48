"""Actions on what runs beside the conversation: calls, background commands, tool servers."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.protocol.amounts import seconds_text
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.panel.call_list import CallList
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.sanitiser import sanitise

from .action_context import ActionContext, Handlers

if TYPE_CHECKING:
    from tui_agent.workbench.session_jobs import SessionJobs

EXTRA_SECONDS = 60.0
"""Seconds that a key adds to the time limit of a call."""
_NAMED = re.compile(r"(stop|detach)[ \t]+(\S+)")
_KILL = re.compile(r"kill(?:[ \t]+([0-9]{1,9}))?")
_USAGE = (
    "/jobs lists background commands; /jobs stop ID stops one, /jobs detach ID lets it run on after tui-agent has "
    "ended. /jobs kill [PID] ends commands that a killed tui-agent left running."
)
_SERVER_NAMED = re.compile(r"(restart|login|logout|log)[ \t]+(\S+)")
_SERVER_USAGE = (
    "/mcp shows the tool servers; /mcp restart NAME starts one anew, /mcp log NAME shows its last lines, "
    "/mcp login NAME signs in to one, /mcp logout NAME forgets that."
)


class JobActions:
    """Cancel and extend calls; list, send, stop and detach background commands."""

    def __init__(self, context: ActionContext, state: Callable[[], ScreenState]) -> None:
        self._context = context
        self._state = state
        self.handlers: Handlers = {
            "chat.jobs": self._jobs,
            "chat.background": lambda _: self._send(),
        }
        """Actions by id of their command."""

    def cancel_call(self, call_id: str) -> None:
        """Cancel one call because the user asked for it."""
        agent = self._context.bridge.agent
        if agent is None or not agent.cancel_call(call_id, "the user cancelled this call"):
            self._context.say("This call has already ended.")

    def extend_call(self, view: CallViewState) -> None:
        """Give a running call more time because the user asked for it."""
        agent = self._context.bridge.agent
        limit = agent.extend_call(view.call_id, EXTRA_SECONDS) if agent is not None else None
        call = self._state().ledger.find(view.call_id)
        name = f"#{call.number}" if call is not None else "The call"
        if limit is not None:
            self._context.say(f"{name} may run {EXTRA_SECONDS:g} s longer, {seconds_text(limit)} in all.")
        elif view.ended:
            self._context.say(f"{name} has already ended.", wrong=True)
        elif view.phase == "running":
            self._context.say(f"{name} has no time limit.")
        else:
            self._context.say(f"{name} is not running; its time limit counts from its start.", wrong=True)

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


class ServerActions:
    """Show and restart servers."""

    def __init__(self, context: ActionContext) -> None:
        self._context = context
        self.handlers: Handlers = {"chat.mcp": self._servers}
        """Actions by id of their command."""

    def _servers(self, argument: str) -> bool:
        context = self._context
        if (bench := context.bench()) is None:
            return False
        servers = bench.servers
        named = _SERVER_NAMED.fullmatch(argument.strip())
        if argument and named is None:
            context.say(_SERVER_USAGE, wrong=True)
            return False
        facts = servers.list()
        if not facts:
            # Only the offline demo has a label; it starts no servers, whatever is configured.
            is_demo = bool(context.options.label)
            context.say(
                "The demo starts no tool servers. Without --demo, those of your settings and of this folder start."
                if is_demo
                else "No tool server is configured. In a shell: tui-agent mcp add NAME -- COMMAND"
            )
        elif named is None:
            from tui_agent.ui.dialogs.servers_page import ServersPage

            context.screen.app.push_screen(ServersPage(servers))
        elif named[1] == "restart":
            refused = servers.restart(named[2])
            context.say(refused or f"{named[2]} starts anew.", wrong=bool(refused))
            return not refused
        elif named[1] == "login":
            refused = servers.login(named[2])
            context.say(refused or f"{named[2]} starts the sign-in.", wrong=bool(refused))
            return not refused
        elif named[1] == "logout":
            context.say(servers.logout(named[2]))
        else:
            name, missing = named[2], f"There are no lines of a server {named[2]}."
            context.show_page(f"Log of {name}", lambda _: Content(sanitise(servers.log(name)) or missing), follows=True)
        return True
