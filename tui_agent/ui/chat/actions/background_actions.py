"""Actions on calls, background commands and tool servers, and pages of what the session can use."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.protocol.amounts import count_text, seconds_text
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.panel.call_list import CallList
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.sanitiser import sanitise

from .action_context import ActionContext, ActionGroup, Handlers

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


class JobActions(ActionGroup):
    """Cancel and extend calls; list, send, stop and detach background commands."""

    def __init__(self, context: ActionContext, state: Callable[[], ScreenState]) -> None:
        super().__init__(context)
        self._state = state
        self.handlers: Handlers = {
            "chat.jobs": self._jobs,
            "chat.background": lambda _: self._send(),
            "chat.open_newest": self._open_newest,
            "chat.timeline": self._show_timeline,
        }

    def cancel_call(self, call_id: str) -> None:
        """Cancel one call because the user asked for it."""
        agent = self._bridge.agent
        if agent is None or not agent.cancel_call(call_id, "the user cancelled this call"):
            self._say("This call has already ended.")

    def extend_call(self, view: CallViewState) -> None:
        """Give a running call more time because the user asked for it."""
        agent = self._bridge.agent
        limit = agent.extend_call(view.call_id, EXTRA_SECONDS) if agent is not None else None
        call = self._state().ledger.find(view.call_id)
        name = f"#{call.number}" if call is not None else "The call"
        if limit is not None:
            self._say(f"{name} may run {EXTRA_SECONDS:g} s longer, {seconds_text(limit)} in all.")
        elif view.ended:
            self._say(f"{name} has already ended.", wrong=True)
        elif view.phase == "running":
            self._say(f"{name} has no time limit.")
        else:
            self._say(f"{name} is not running; its time limit counts from its start.", wrong=True)

    def _open_newest(self, _: str) -> None:
        """Open the page of the newest call of the conversation, of those that wait only if no other is there."""
        calls = [call for call in reversed(self._state().ledger.calls) if call.parent is None]
        # A call that waits has nothing to show yet.
        ran = (call for call in calls if call.view.timing.started_at is not None)
        if (newest := next(ran, calls[0] if calls else None)) is None:
            self._say("There is no call yet.")
            return
        self._open_call(newest.view)

    def _show_timeline(self, _: str) -> None:
        from tui_agent.ui.dialogs.timeline_page import TimelineScreen

        if self._state().times.started is None:
            self._say("No run has started yet.")
        else:
            self._push(
                TimelineScreen(lambda: self._state().times, lambda: self._state().ledger, self._clock, self._open_call)
            )

    def _open_call(self, view: CallViewState) -> None:
        self._screen.query_one(CallList).post_message(CallList.Opened(view))

    def _send(self) -> None:
        """Send the newest running command to the background; in the panel, that of the selected row."""
        ledger, focused = self._state().ledger, self._screen.focused
        running = (ledger.calls[place].view for place in sorted(ledger.places["running"], reverse=True))
        view = next((view for view in running if view.name == "bash" and view.phase == "running"), None)
        # A selected row is a choice; the newest command is only a guess.
        if isinstance(focused, CallList) and focused.selected is not None:
            view = focused.selected.view
        if view is None:
            raise TuiAgentError("No command is running that could go to the background.")
        task_id, refused = self._bench.jobs.send(view.call_id)
        if refused:
            raise TuiAgentError(refused)
        call = self._state().ledger.find(view.call_id)
        name = f"#{call.number}" if call is not None else "The call"
        self._say(f"{name} runs on in the background as {task_id}. /jobs lists it.")

    def _jobs(self, argument: str) -> None:
        bench = self._bench
        jobs, left = bench.jobs, bench.leftovers
        named, wanted = _NAMED.fullmatch(argument), _KILL.fullmatch(argument)
        if named is not None and named[1] == "detach":
            self._start("jobs", self._detach(jobs, named[2]))
        elif named is not None:
            self._tell(jobs.stop(named[2]), f"{named[2]} stops.")
        elif argument and wanted is None:
            raise TuiAgentError(_USAGE)
        else:
            if wanted is None and jobs.list():
                self._open_page(jobs)
            if left is not None:
                work = left.report() if wanted is None else left.end(int(wanted[1]) if wanted[1] else None)
                self._start("jobs", work)
            elif wanted is not None:
                self._say("No command of an earlier tui-agent is running.")
            elif not jobs.list():
                self._say("No command runs in the background.")

    async def _detach(self, jobs: "SessionJobs", task_id: str) -> None:
        self._say(await jobs.detach(task_id))

    def _open_page(self, jobs: "SessionJobs") -> None:
        from tui_agent.ui.dialogs.jobs_screen import JobsScreen

        self._push(JobsScreen(jobs, self._clock))


class FactActions(ActionGroup):
    """Show tools, skills and hooks; show and restart servers."""

    def __init__(self, context: ActionContext) -> None:
        super().__init__(context)
        self.handlers: Handlers = {
            "chat.tools": self._show_tools,
            "chat.skills": self._show_skills,
            "chat.hooks": self._show_hooks,
            "chat.mcp": self._servers,
        }

    def _show_tools(self, _: str) -> None:
        from tui_agent.ui.dialogs.chooser_page import tool_items

        tools = self._bench.rules.tools()
        state = f"The model can call {count_text(len(tools), 'tool')}."
        self._list_facts("Tools", lambda: tool_items(tools), state)

    def _show_skills(self, _: str) -> None:
        from tui_agent.ui.dialogs.chooser_page import definition_items

        facts = self._bench.definitions.facts()
        if not facts:
            where = "skills/, commands/ and agents/ of .tui-agent/ or .claude/, here or in your home directory"
            self._say(f"No file defines any. They are Markdown files in {where}.")
            return
        state = f"{count_text(sum(not fact.problem for fact in facts), 'definition')} in use"
        self._list_facts("Skills, commands, sub-agents", lambda: definition_items(facts), state)

    def _show_hooks(self, _: str) -> None:
        from tui_agent.ui.dialogs.chooser_page import hook_items

        hooks = self._bench.hooks
        if not hooks.list():
            self._say("No hook is defined: neither [[hooks]] in your settings nor hooks in .claude/settings.json.")
            return
        state = f"{count_text(sum(bool(fact.event) for fact in hooks.list()), 'hook')}"
        self._list_facts("Hooks", lambda: hook_items(hooks.list()), state, follows=True)

    def _servers(self, argument: str) -> None:
        servers = self._bench.servers
        named = _SERVER_NAMED.fullmatch(argument.strip())
        action, name = (named[1], named[2]) if named is not None else ("", "")
        if argument and named is None:
            raise TuiAgentError(_SERVER_USAGE)
        if not servers.list():
            # Only the offline demo has a label; it starts no servers, whatever is configured.
            is_demo = bool(self._options.label)
            self._say(
                "The demo starts no tool servers. Without --demo, those of your settings and of this folder start."
                if is_demo
                else "No tool server is configured. In a shell: tui-agent mcp add NAME -- COMMAND"
            )
        elif not action:
            from tui_agent.ui.dialogs.chooser_page import ServersPage

            self._push(ServersPage(servers))
        elif action == "restart":
            self._tell(servers.restart(name), f"{name} starts anew.")
        elif action == "login":
            self._tell(servers.login(name), f"{name} starts the sign-in.")
        elif action == "logout":
            self._say(servers.logout(name))
        else:
            missing = f"There are no lines of a server {name}."
            self._show_page(f"Log of {name}", lambda _: Content(sanitise(servers.log(name)) or missing), follows=True)
