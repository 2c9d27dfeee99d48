"""`fleet run --watch`: the app that shows one fleet, and the chat of a unit."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text
from textual import on
from textual.events import Event, Key, Paste

from tui_agent.protocol.messages import now_ms
from tui_agent.ui.app.terminal_signals import Notifications, TerminalSignals
from tui_agent.ui.app.themes import DEFAULT_THEME
from tui_agent.ui.app.tui_agent_app import QUIT_SECONDS, TuiAgentApp
from tui_agent.ui.base.app_type import copy_text
from tui_agent.ui.base.commands import command
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.chat.chat_screen import ChatScreen
from tui_agent.ui.chat.screen_state import ScreenState

from .fleet_screen import FleetScreen
from .fleet_state import FleetFiles, open_fleet
from .unit_bridge import UnitBridge, UnitQuestions
from .unit_rows import plain_text, repository_of


class UnitChat(ChatScreen):
    """The chat of a unit. Its dialogs ask the questions of all units."""

    def __init__(self, bridge: UnitBridge, options: ChatOptions, questions: UnitQuestions) -> None:
        super().__init__(bridge, options)
        self.unit = bridge
        """The connection to the unit."""
        self._questions = questions
        self.approvals.show(questions)
        self.bars.line.back = "all units"
        # The unit's own process has the queue, and no command changes it.
        self.entry.queue.is_fixed = True
        self.entry.idle_text = self.entry.composer.placeholder = "This unit takes no messages: it does not run"

    def show_state(self, state: ScreenState) -> None:
        """Show another state; the questions stay those of all units."""
        super().show_state(state)
        # Those of the state are only the unit's own.
        self.approvals.show(self._questions)

    def action_interrupt(self) -> None:
        """Uncover the conversation, else return to the composer, else to all units."""
        if self.body.drawer_open:
            self.body.close_drawer()
        elif self.focused is not self.entry.composer:
            self.focus_composer()
        else:
            self.dismiss(None)


class FleetApp(TuiAgentApp):
    """The app of a fleet. `run()` returns once the user leaves; the fleet continues.

    Its chat is the conversation of the unit that was opened last.
    """

    def __init__(
        self,
        files: FleetFiles,
        *,
        theme: str = DEFAULT_THEME,
        themes_dirs: Sequence[Path] = (),
        surroundings: TerminalEnvironment | None = None,
        log_file: Path | None = None,
        notifications: Notifications = "off",
        name: str = "fleet",
        now: Callable[[], int] = now_ms,
    ) -> None:
        """Create the app; without a `log_file` a widget that fails ends it."""
        # Until a unit is opened, the chat is one without an agent that no one sees.
        terminal = surroundings or TerminalEnvironment.of_environment(os.environ)
        super().__init__(
            AgentBridge(),
            ChatOptions(WorkingDirectory(name), surroundings=terminal),
            theme=theme,
            themes_dirs=themes_dirs,
            log_file=log_file,
            notifications=notifications,
        )
        self._files, self._now = files, now
        self._left_at = float("-inf")
        self._opened: UnitChat | None = None
        self._drafts: dict[str, str] = {}
        self.fleet = FleetScreen(files, terminal.clock, now)
        """The screen with all units."""

    def get_default_screen(self) -> FleetScreen:
        """Return the screen with all units, at the bottom of the stack."""
        return self.fleet

    async def on_event(self, event: Event) -> None:
        """Report typing to the questions over the rows, too."""
        if isinstance(event, Key | Paste) and not event.is_forwarded and self.fleet.approvals.note_key(event):
            return
        await super().on_event(event)

    # --- conversations ------------------------------------------------------------------------------------------------

    @on(FleetScreen.UnitOpened)
    async def _open(self, event: FleetScreen.UnitOpened) -> None:
        row = self.fleet.state.rows.get(event.unit_id)
        # Enter may be pressed again while the chat opens.
        if row is None or self._opened is not None:
            return
        place = WorkingDirectory(f"unit {plain_text(row.id, 20)} · {plain_text(repository_of(row), 40)}", "")
        options = replace(self.chat.options, place=place, model=row.unit.model, ideas=())
        clock = options.surroundings.clock
        bridge = UnitBridge(row.id, self._files, self.fleet.state, self.notify, clock, self._now)
        chat = self._opened = UnitChat(bridge, options, self.fleet.questions)
        self.chat = chat
        await self.push_screen(chat, lambda _: self._unit_closed(chat))
        if draft := self._drafts.pop(row.id, ""):
            chat.entry.composer.put_back(draft)

    def _unit_closed(self, chat: UnitChat) -> None:
        if self._opened is chat:
            self._drafts[chat.unit.unit_id] = chat.entry.composer.draft
            self._opened = None

    @on(FleetScreen.Updated)
    def _fleet_updated(self) -> None:
        approvals = self.fleet.approvals
        if self._opened is not None:
            self._opened.unit.row_changed()
            approvals = self._opened.approvals
        approvals.changed()
        approvals.look()
        self.show_signals(self._signals)

    def show_signals(self, signals: TerminalSignals) -> None:
        """Show the state of the fleet in the terminal's title, and signal questions and its end."""
        state = self.fleet.state
        signals.show(waits=bool(state.questions), busy=state.running, ended="the fleet has ended")

    # --- leaving ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable what belongs to a conversation only while one is open."""
        if self._opened is None and action == "suspend_process":
            return True
        return super().check_action(action, parameters)

    def action_escalate(self) -> None:
        """In a conversation do as in any chat; over the rows copy the selection, else leave the second time."""
        if self._opened is not None:
            super().action_escalate()
            return
        if selected := self.screen.get_selected_text():
            copy_text(self, selected)
            self.screen.clear_selection()
            return
        now = self.chat.options.surroundings.clock()
        if now - self._left_at <= QUIT_SECONDS:
            self.exit()
        self._left_at = now
        again = command("app.escalate").key_text
        self.notify(f"{again} again leaves; the fleet continues", timeout=QUIT_SECONDS, markup=False)

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """Leave; the fleet continues, and the message says how to come back."""
        if message is None and self.fleet.state.running:
            message = Text(f"The fleet continues. {self._files.return_command} shows it again.")
        super().exit(result, return_code, message)


async def show_fleet(out: Path, themes_dir: Path, log_file: Path) -> int:
    """Show the screen of a fleet until the user leaves; return 1 if it has ended and a unit is not done, else 0."""
    async with open_fleet(out) as files:
        app = FleetApp(
            files, theme="auto", themes_dirs=(themes_dir,), log_file=log_file, notifications="auto", name=out.name
        )
        await app.run_async()
    fleet = app.fleet.state
    unfinished = not fleet.running and any(row.state != "done" for row in fleet.rows.values())
    return app.return_code or int(unfinished)
