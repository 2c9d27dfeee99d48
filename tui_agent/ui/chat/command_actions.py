"""The actions of `/` commands and of entries in the command palette."""

import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.base.commands import Command
from tui_agent.ui.bridge.agent_bridge import NOT_READY, AgentBridge
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.composer.prompt_parser import UnknownSlash
from tui_agent.ui.dialogs.help_page import help_text
from tui_agent.ui.dialogs.text_page import TextPage
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.amounts import count_text, money_text, tokens_text
from tui_agent.ui.text.sanitiser import sanitise

from .chat_options import ChatOptions
from .screen_state import ScreenState

if TYPE_CHECKING:
    from tui_agent.ui.bridge.engine_types import RewindOutcome

_KILL = re.compile(r"kill(?:[ \t]+([0-9]{1,9}))?")
UNDO = "undo"
"""Argument of `/compact` that undoes the last compaction."""


@dataclass
class ThemeRequested(Message):
    """The user chose a theme."""

    name: str


@dataclass
class ReplayRequested(Message):
    """The user wants to watch a recording."""

    path: str


class CommandActions:
    """Runs commands by name."""

    def __init__(
        self,
        screen: AnyScreen,
        bridge: AgentBridge,
        options: ChatOptions,
        *,
        state: Callable[[], ScreenState],
        composer: Composer,
        show_pending_agent: Callable[[], object],
    ) -> None:
        """Connect the commands with what they act on.

        Args:
            screen: shows pages and messages, and runs work beside the screen.
            bridge: the connection to the agent.
            options: theme names and clock.
            state: returns the present state of the screen.
            composer: receives the message that a rewind removed.
            show_pending_agent: called after a change that has to wait until the agent is loaded.
        """
        self._screen = screen
        self._bridge = bridge
        self._options = options
        self._state = state
        self._composer = composer
        self._show_pending_agent = show_pending_agent

    def perform(self, command: Command, argument: str = "") -> bool:
        """Run one command; return False if its argument is missing or unknown."""
        match command.id:
            case "chat.mode":
                return self._mode(argument)
            case "chat.theme":
                return self._theme(argument)
            case "chat.compact":
                return self._compact(argument)
            case "chat.rename":
                return self._rename(argument)
            case "chat.replay":
                return self._replay(argument)
            case "chat.jobs":
                return self._jobs(argument)
            case "chat.export":
                self._start("export", self._export(argument))
            case "chat.doctor":
                self._start("doctor", self._doctor())
            case "chat.model":
                return self._model(argument)
            case "chat.context":
                self._context()
            case "chat.report":
                self._report()
            case "chat.cost":
                self.say(self._cost())
            case "chat.rewind":
                self.rewind()
            case "chat.stop":
                self._stop()
            case _:
                run = self._screen.app.run_action if command.where == "everywhere" else self._screen.run_action
                self._screen.call_later(run, command.action_name)
        return True

    def explain(self, unknown: UnknownSlash) -> None:
        """Say that a command does not exist, and suggest the closest one."""
        near = f" Did you mean /{unknown.nearest}?" if unknown.nearest else " /help lists them all."
        self.say(f"There is no command /{unknown.name}.{near}", wrong=True)

    def say(self, text: str, *, wrong: bool = False) -> None:
        """Show a short message for a few seconds; `wrong` marks a refusal."""
        self._screen.notify(text, severity="warning" if wrong else "information", markup=False)

    def show_help(self) -> None:
        """Open the help page."""
        self._show_page("Help", help_text)

    def choose_mode(self, mode: PermissionMode) -> None:
        """Set the permission mode."""
        self._bridge.set_mode(mode)
        self._show_pending_agent()

    @property
    def theme_names(self) -> Sequence[str]:
        """Names of the themes."""
        return self._options.theme_names()

    def choose_theme(self, name: str) -> None:
        """Ask the app for a theme."""
        self._screen.post_message(ThemeRequested(name))

    def rewind(self, view: CallViewState | None = None) -> None:
        """Show the points to go back to; with `view`, what undoing this call's changes would do."""
        rewinding = self._bridge.rewinding
        if rewinding is None:
            nothing = "This session is not saved, so there is nothing to go back to."
            self.say(NOT_READY if self._bridge.status.pending else nothing, wrong=True)
            return
        # Imports sessions and tools, which must not delay the first screen.
        from tui_agent.ui.dialogs.rewind_screen import RewindScreen

        call = (view.call_id, f"{view.name} {view.summary}".strip()) if view is not None else None
        clock = self._options.surroundings.clock
        screen = RewindScreen(rewinding, lambda: self._bridge.status.running, clock, call=call)
        self._screen.app.push_screen(screen, self._report_rewind)

    def _report_rewind(self, outcome: "RewindOutcome | None") -> None:
        """Say what a rewind did, and put the message it removed into the empty composer."""
        from tui_agent.ui.dialogs.rewind_rows import rewind_outcome_text

        if outcome is None:
            return
        if outcome.draft and not self._composer.text:
            self._composer.put_back(outcome.draft)
            self._composer.focus()
        if text := rewind_outcome_text(outcome):
            self.say(text, wrong=bool(outcome.left or outcome.failed))

    def _mode(self, name: str) -> bool:
        wanted = name.replace("-", "_").replace(" ", "_").casefold()
        modes = {mode.value: mode for mode in PermissionMode}
        if wanted in modes:
            self.choose_mode(modes[wanted])
            return True
        unknown = f"Unknown mode {name}. " if name else ""
        self.say(
            f"{unknown}The mode is {self._bridge.status.mode.value}; there are {', '.join(modes)}.", wrong=bool(name)
        )
        return not name

    def _theme(self, name: str) -> bool:
        if name in self.theme_names:
            self.choose_theme(name)
            return True
        unknown = f"Unknown theme {name}. " if name else ""
        self.say(f"{unknown}Themes: {', '.join(self.theme_names)}.", wrong=bool(name))
        return not name

    def _compact(self, focus: str) -> bool:
        if focus == UNDO:
            refused = self._bridge.undo_compaction()
            if refused:
                self.say(refused, wrong=True)
            return True
        begun = self._bridge.compact(focus)
        if not begun:
            busy = "The agent is working. Compact the conversation when it is done."
            self.say(NOT_READY if self._bridge.status.pending else busy, wrong=True)
        return begun

    def _rename(self, title: str) -> bool:
        if title:
            self._bridge.rename(title)
        else:
            self.say("Type a name: /rename NAME", wrong=True)
        return bool(title)

    def _replay(self, path: str) -> bool:
        if path:
            self._screen.post_message(ReplayRequested(path))
        else:
            self.say("Type a file: /replay FILE. tui-agent --record FILE makes a recording.", wrong=True)
        return bool(path)

    def _jobs(self, argument: str) -> bool:
        wanted = _KILL.fullmatch(argument)
        if argument and wanted is None:
            self.say(
                "/jobs lists commands that a killed tui-agent left running; /jobs kill [PID] ends them.", wrong=True
            )
            return False
        status = self._bridge.status
        if not status.has_leftovers:
            none = "No command of an earlier tui-agent is running."
            self.say(NOT_READY if status.pending else none, wrong=status.pending)
        elif wanted is None:
            self._start("jobs", self._bridge.report_leftovers())
        else:
            self._start("jobs", self._bridge.end_leftovers(int(wanted[1]) if wanted[1] else None))
        return status.has_leftovers or not status.pending

    async def _export(self, file: str) -> None:
        try:
            self.say(f"The session was exported to {await self._bridge.export(file)}.")
        except TuiAgentError as error:
            self.say(str(error), wrong=True)

    async def _doctor(self) -> None:
        try:
            text = sanitise(await self._bridge.doctor())
        except TuiAgentError as error:
            self.say(str(error), wrong=True)
        else:
            self._show_page("Doctor", lambda _: Content(text))

    def _model(self, name: str) -> bool:
        if " " in name:
            self.say("The name of a model has no blanks: /model NAME", wrong=True)
            return False
        if name:
            self._start("model", self._choose_model(name))
        else:
            model = self._state().status.model or self._options.model or "not known yet"
            self.say(f"The model is {model}. /model NAME uses another one from the next request on.")
        return True

    async def _choose_model(self, name: str) -> None:
        try:
            chosen = await self._bridge.choose_model(name)
        except TuiAgentError as error:
            self.say(str(error), wrong=True)
        else:
            self.say(f"The next request uses {chosen}. The settings stay as they are.")

    def _context(self) -> None:
        # Imports the whole agent, which must not delay the first screen.
        from tui_agent.ui.dialogs.info_pages import context_text

        breakdown, window = self._bridge.context_breakdown(), self._state().status.window
        if breakdown is None:
            self.say(NOT_READY, wrong=True)
        else:
            self._show_page("Context", lambda width: context_text(breakdown, window, self._number_of, width))

    def _report(self) -> None:
        from tui_agent.ui.dialogs.info_pages import run_text

        report = self._state().status.report
        if report is None:
            self.say("No run has ended yet.")
        else:
            self._show_page("Report", lambda _: run_text(report))

    def _stop(self) -> None:
        if self._bridge.status.running:
            self._bridge.stop()
            self.say("The run ends after this step.")
        else:
            self.say("Nothing is running.")

    def _cost(self) -> str:
        status = self._state().status
        usage = status.usage
        cached = f", {tokens_text(usage.cache_read_tokens)} of them from the cache" if usage.cache_read_tokens else ""
        read = (
            f"{tokens_text(usage.context_tokens)} {count_text(usage.context_tokens, 'token').split()[1]} read{cached}"
        )
        cost = money_text(status.cost) or "cost unknown"
        return f"{read} · {tokens_text(usage.output_tokens)} written · {cost}"

    def _number_of(self, call_id: str) -> int | None:
        """Return a call's number in the panel; None if it has no row."""
        found = self._state().ledger.find(call_id)
        return found.number if found is not None else None

    def _show_page(self, title: str, text_at: Callable[[int], Content]) -> None:
        self._screen.app.push_screen(TextPage(title, text_at))

    def _start(self, name: str, work: Coroutine[object, object, None]) -> None:
        """Start work beside the screen."""
        self._screen.run_worker(work, name=name, group=name, exit_on_error=False)
