"""The full-screen app: one chat screen, the themes, the terminal as a whole; `AgentApp` is it for other programs."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual import on
from textual.binding import BindingType
from textual.command import Provider
from textual.driver import Driver
from textual.events import Event, Key, MouseEvent, Paste, Resize
from textual.filter import NoColor
from textual.notifications import SeverityLevel

from tui_agent.prelude.early_terminal import EarlyTerminal
from tui_agent.protocol.background import run_service
from tui_agent.protocol.facts.screen_facts import ScreenChoices
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.base.app_type import AnyScreen, FileEditRequested, InputTaker, copy_text
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge, AgentEvents
from tui_agent.ui.chat.chat_options import (
    ChatOptions,
    OpenedSession,
    PictureRequested,
    ReplayRequested,
    SessionRequested,
    SessionService,
    ThemeRequested,
)
from tui_agent.ui.chat.chat_screen import ChatScreen
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen
from tui_agent.ui.transcript.conversation import Conversation

from .app_sessions import SessionSwitcher
from .base_app import THIN_SCROLLBARS, BaseApp
from .frame_painter import first_frame
from .terminal_driver import TerminalDriver, with_current_size
from .terminal_signals import Notifications, TerminalSignals, UserPresence, notification_in
from .themes import DEFAULT_THEME, LiveThemes, ThemeCatalogue, shipped_themes

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.workbench import AgentLoop

FAULT_SECONDS = 60.0
"""Seconds for which the message about a failed widget is shown."""
NOTICE_SECONDS = 8.0
"""Seconds for which a short message is shown above the composer."""
QUIT_SECONDS = 2.0
"""Seconds within which a second `ctrl+c` quits."""


def _command_provider() -> type[Provider]:
    # Imported when the palette opens: the first screen does not need it.
    from tui_agent.ui.chat.actions.command_actions import CommandProvider

    return CommandProvider


class TuiAgentApp(BaseApp[None]):
    """The app for one agent. `run()` returns once the user quits, with the terminal restored."""

    TITLE = "tui-agent"
    # Of the app, because Textual loads no style sheet of the default screen; absolute, because it looks for a relative
    # path beside the subclass. A subclass lists its styles after these.
    CSS_PATH: ClassVar[list[str | PurePath] | str | PurePath | None] = [
        Path(__file__).parents[1] / "chat" / "chat.tcss"
    ]
    CSS = (
        THIN_SCROLLBARS
        + """
    /* At the top, so that toasts never cover the composer. */
    ToastRack {
        dock: top;
        align: right top;
        margin: 1 0 0 0;
    }
    Toast {
        margin: 0 0 1 0;
        padding: 0 1;
    }
    """
    )
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("app")]
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_command_provider}
    ENABLE_COMMAND_PALETTE = True
    early: EarlyTerminal | None = None
    """The prelude of this start, whose input is the app's first; None if there was none."""
    _quit_asked = float("-inf")
    _quit_question: ConfirmScreen | None = None
    _replay: InputTaker | None = None

    def __init__(
        self,
        bridge: AgentBridge,
        options: ChatOptions | None = None,
        *,
        theme: str = DEFAULT_THEME,
        themes_dirs: Sequence[Path] = (),
        log_file: Path | None = None,
        notifications: Notifications = "off",
    ) -> None:
        """Create the app.

        Args:
            bridge: the connection to the agent.
            options: settings of the chat, to which the app adds its themes; None: as the environment asks.
            theme: name of the first theme.
            themes_dirs: more folders of theme files, which replace shipped ones of the same name.
            log_file: log of failed widgets; None: a widget that fails ends the app.
            notifications: signal for a user who looks elsewhere.
        """
        options = options or ChatOptions(surroundings=TerminalEnvironment.of_environment(os.environ))
        self._surroundings = options.surroundings
        super().__init__(light=self._surroundings.light)
        self.themes = LiveThemes(self, ThemeCatalogue((shipped_themes(), *themes_dirs)), theme, self._restyle)
        """The themes to choose from, and the one in use."""
        self._faults = ErrorBoundary(self._notify_fault, log_file)
        options = replace(options, theme_names=lambda: self.themes.choices, faults=self._faults)
        self.chat = ChatScreen(bridge, options)
        """The main screen; another one after a switch to another session."""
        self._sessions = options.sessions
        self._switcher = self._new_switcher(options.sessions)
        self._signals = self._new_signals(options.place.directory, notifications)
        self.painted = asyncio.Event()
        """Set once the first screen is painted."""
        self._adapt_to_terminal()
        self.use_choices(options.choices)

    def _new_switcher(self, sessions: SessionService | None) -> SessionSwitcher:
        bridge, options, state = lambda: self.chat.bridge, lambda: self.chat.options, lambda: self.chat.state
        return SessionSwitcher(self, sessions, bridge, options, state, self.show_session)

    def _new_signals(self, directory: str, notifications: Notifications) -> TerminalSignals:
        notification = notification_in(notifications, os.environ)
        name = Path(directory).name or directory
        return TerminalSignals(UserPresence(self._surroundings.clock), name, notification, self._own_terminal)

    def _adapt_to_terminal(self) -> None:
        if self._surroundings.reduced_motion:
            self.animation_level = "none"
        if self._surroundings.no_color:
            self.no_color = True
            self._filters.append(NoColor())

    def get_default_screen(self) -> AnyScreen:
        """Return the chat, the screen at the bottom of the stack."""
        return self.chat

    def on_mount(self) -> None:
        """Start what can wait until the first screen is painted."""
        self.call_after_refresh(self._start_services)

    def _start_services(self) -> None:
        self.painted.set()
        self._signal()
        self._keep_first_frame()
        self.run_worker(self._watch_themes, group="themes", exit_on_error=False)

    def _keep_first_frame(self) -> None:
        """Store what the app shows now for the prelude of the next start, unless something was typed or asked."""
        early, chat = self.early, self.chat
        if early is None or not early.wants_page:
            return
        if (frame := first_frame(chat, chat.entry.composer)) is not None:
            self._keep("start page", partial(early.keep_page, frame))

    def _keep(self, name: str, write: Callable[[], None]) -> None:
        """Write a file of the prelude in a thread; if that fails, the next start has no prelude or another one."""
        self.run_worker(run_service(name, asyncio.to_thread(write)), group=name, exit_on_error=False)

    def on_resize(self) -> None:
        """Redraw everything, even if the window has the same size as before."""
        # A terminal drops what a smaller window does not show. If the window was small only for a moment, the app may
        # receive the last size alone, and Textual would draw nothing.
        self.refresh()

    async def on_event(self, event: Event) -> None:
        """Report typing to the approvals, give a replay its keys, and use the window's current size."""
        if isinstance(event, Resize) and not (self.is_headless or self.is_web):
            event = with_current_size(event)
        self._signals.presence.note(event)
        if self._replay is not None:
            # Dialogs over a replay show past questions: no key may reach them.
            is_input = isinstance(event, Key | Paste | MouseEvent) and not event.is_forwarded
            if not (is_input and await self._replay.take(event)):
                await super().on_event(event)
            return
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            if isinstance(event, Key) and not event.is_printable and not self.painted.is_set():
                # Parts that are not mounted yet have no commands. Text waits for the composer anyway.
                first: Any = self.get_default_screen()
                await first._mounted_event.wait()
            if self.chat.approvals.note_key(event):
                return
            if self.screen is self.chat:
                # Before the key is forwarded, so that the composer receives all text in order.
                self.chat.entry.direct_typing(event)
        if not (isinstance(event, Key | Paste) and not event.is_forwarded and self._is_menu_key(event)):
            await super().on_event(event)

    def _is_menu_key(self, event: Key | Paste) -> bool:
        """Let the interrupt menu hold a letter that may be an answer; return False for any other key."""
        return self.screen is self.chat and self.chat.input.interrupt_keys.take(event)

    @on(SessionRequested)
    def _session_requested(self, event: SessionRequested) -> None:
        self._switcher.receive(event)

    def show_session(self, opened: OpenedSession, note: str, draft: str = "") -> None:
        """Show a prepared session in place of the present one; the draft stays.

        Args:
            opened: the session.
            note: message above the composer until the user types.
            draft: text for the composer, in front of the draft.
        """
        old = self.chat
        new = opened.session
        options = replace(old.options, glimpse=new.glimpse, prompt=None, model=new.model, label=new.label)
        if old.bridge.status.mode != opened.bridge.status.mode:
            opened.bridge.set_mode(old.bridge.status.mode)
        chat = ChatScreen(opened.bridge, options)
        _use(options.choices, chat)
        # Keys that the user typed before are on their way to the old composer.
        old.entry.after_typed_keys(lambda: self.call_later(self._begin_session, chat, opened, note, draft))

    async def _begin_session(self, chat: ChatScreen, opened: OpenedSession, note: str, draft: str) -> None:
        old = self.chat
        # Pages of the old session may still be above it.
        while not old.is_active:
            await self.pop_screen()
        old.bridge.detach()
        # The draft is behind the search; only the search is in the composer.
        if old.entry.composer.searching:
            old.entry.composer.action_close_suggestions()
        await self._replace_chat(chat)
        if text := "\n".join(part for part in (draft, old.entry.composer.draft) if part.strip()):
            chat.entry.composer.put_back(text)
        if note:
            chat.entry.refusal.show(note, chat.entry.composer.text, is_offer=True)
        if self._sessions is not None:
            self._sessions.start(opened)

    async def _replace_chat(self, chat: ChatScreen) -> None:
        if self._replay is not None:
            self._replay.close()
        app: Any = self
        old: Any = self.chat
        # Textual cannot replace the default screen, which was not pushed with a callback as all others were.
        if not old._result_callbacks:
            old._push_result_callback(old, None)
        self.chat = chat
        await app.switch_screen(chat)

    # --- messages, title and notifications ----------------------------------------------------------------------------

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a short message above the composer; over another page at its top."""
        # A page may close with this message.
        self.call_later(self._show_message, message, title, severity, timeout)

    def _show_message(self, message: str, title: str, severity: SeverityLevel, timeout: float | None) -> None:
        if self.screen is not self.chat:
            super().notify(message, title=title, severity=severity, timeout=timeout)
            return
        text = f"{title}: {message}" if title else message
        self.chat.entry.notices.show(text, severity, timeout or NOTICE_SECONDS)

    @on(AgentEvents)
    def _signal(self) -> None:
        self.show_signals(self._signals)

    def show_signals(self, signals: TerminalSignals) -> None:
        """Show the state of the session in the terminal's title, and signal waits and ends."""
        signals.update(self.chat.state.status)

    @on(Driver.SignalResume)
    def _repeat_title(self) -> None:
        self._signals.repeat_title()

    def _own_terminal(self) -> TerminalDriver | None:
        """Return the terminal; None if there is none, or another program has it."""
        driver = self._driver
        return driver if isinstance(driver, TerminalDriver) and driver.is_terminal and not driver.asleep else None

    # --- replays ------------------------------------------------------------------------------------------------------

    @on(ReplayRequested)
    def _replay_requested(self, event: ReplayRequested) -> None:
        """Replay a session over the chat, or say why this is not possible; the agent keeps working."""
        if self._sessions is None:
            self.notify("Sessions cannot be replayed here.", severity="error")
        else:
            opening = self._sessions.replay(event.name, self.chat.options)
            self.run_worker(self._watch(opening), group="replay", exclusive=True)

    async def _watch(self, opening: Awaitable[InputTaker]) -> None:
        replay = await run_service("opening a replay", opening, self._notify_no_replay)
        if replay is not None:
            self.show_replay(replay)

    def _notify_no_replay(self, reason: str) -> None:
        self.notify(f"The session cannot be replayed: {reason}", severity="error")

    def show_replay(self, replay: InputTaker) -> None:
        """Show a replay over the chat. Questions of the agent wait until it is closed."""
        self._replay = replay
        self.push_screen(replay, lambda _: self.replay_closed())

    def replay_closed(self) -> None:
        """Give the chat its keys again."""
        self._replay = None

    # --- editor -------------------------------------------------------------------------------------------------------

    @on(Composer.EditorRequested)
    def _editor_requested(self, event: Composer.EditorRequested) -> None:
        self.run_worker(self._edit_draft(event.text), group="editor", exclusive=True)

    @on(ApprovalScreen.EditorRequested)
    def _input_editor_requested(self, event: ApprovalScreen.EditorRequested) -> None:
        self.run_worker(self._edit_input(event), group="editor", exclusive=True)

    @on(FileEditRequested)
    def _file_editor_requested(self, event: FileEditRequested) -> None:
        self.run_worker(self._edit_file(event), group="editor", exclusive=True)

    async def _edit_file(self, event: FileEditRequested) -> None:
        from .outside_programs import open_file_outside

        if failure := await open_file_outside(self, event.path, event.line):
            self.notify(failure, severity="warning", markup=False)

    async def _edit_input(self, event: ApprovalScreen.EditorRequested) -> None:
        from .outside_programs import edit_outside

        event.done(*await edit_outside(self, event.text, event.file_name))

    async def _edit_draft(self, text: str) -> None:
        """Open the draft in the user's editor; if that fails, the draft stays, and the line above it says why."""
        from .outside_programs import edit_outside

        edited, failure = await edit_outside(self, text)
        entry = self.chat.entry
        if failure:
            entry.refusal.show(failure, entry.composer.text)
        elif edited != text:
            entry.composer.replace_draft(edited)

    # --- pictures -----------------------------------------------------------------------------------------------------

    @on(PictureRequested)
    def _picture_requested(self, event: PictureRequested) -> None:
        from .outside_programs import show_picture

        self.run_worker(show_picture(self, event), group="picture", exclusive=True)

    # --- themes -------------------------------------------------------------------------------------------------------

    def show_theme(self, name: str) -> None:
        """Use another theme, or say that it does not exist."""
        self.themes.choose(name)
        self.ask_background()

    @property
    def follows_terminal(self) -> bool:
        return self.themes.follows_terminal

    def show_background(self) -> None:
        """Use the theme for the terminal's background, if the theme follows it."""
        self.themes.background_reported()
        if self.early is not None:
            self._keep("background", partial(self.early.keep_background, self.light))

    @on(ThemeRequested)
    def _theme_requested(self, event: ThemeRequested) -> None:
        self.show_theme(event.name)

    def _restyle(self) -> None:
        self.refresh_css(animate=False)

    async def _watch_themes(self) -> None:
        await self.themes.watch()

    # --- faults -------------------------------------------------------------------------------------------------------

    @on(Conversation.DrawingFailed)
    def _drawing_failed(self, event: Conversation.DrawingFailed) -> None:
        self._faults.contain(event.view, event.error)

    def _notify_fault(self, text: str) -> None:
        # Not above the composer, which may be the part that fails.
        super().notify(text, severity="error", timeout=FAULT_SECONDS)

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print the values of local variables: the conversation, and perhaps a secret.
        words = self._faults.exit_message(error)
        if words is None:
            super()._handle_exception(error)
        else:
            self.exit(return_code=1, message=Text(words))

    # --- choices of the user ------------------------------------------------------------------------------------------

    def use_choices(self, choices: ScreenChoices) -> None:
        """Apply the user's choices to this session and to those that follow."""
        self.chat.options = replace(self.chat.options, choices=choices)
        _use(choices, self.chat)
        self._signals.use_items(choices.title)

    # --- quitting -----------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the palette over the chat only: a dialog has to be answered first."""
        if action == "command_palette":
            return self.screen is self.chat
        if action == "suspend_process" and self._replay is None:
            # The key brings a dropped message back first, as the line above the composer says.
            return not self.chat.entry.composer.can_undo_drop
        return super().check_action(action, parameters)

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """Quit; the bridge first ends what is running, so that its results can state the reason."""
        self.chat.bridge.leave()
        super().exit(result, return_code, message)

    async def action_quit(self) -> None:
        """Quit; a conversation that could not be saved asks first, and quitting once more answers yes."""
        state = self.chat.state
        if self.screen is self._quit_question or not (state.status.unsaved and state.begun):
            self.exit()
            return
        lost = f"{state.status.unsaved} Quitting loses what is not saved."
        self._quit_question = ConfirmScreen("Quit?", lost, "quit", clock=self._surroundings.clock, no="stay")
        self.push_screen(self._quit_question, lambda yes: self.exit() if yes else None)

    def action_escalate(self) -> None:
        """Copy the selection, else empty the composer, else interrupt, else quit the second time (`ctrl+c`)."""
        self.chat.entry.after_typed_keys(self._escalate)

    def _escalate(self) -> None:
        selected = self.screen.get_selected_text() or self.chat.entry.composer.selected_text
        if selected:
            copy_text(self, selected)
            self.screen.clear_selection()
            self.chat.entry.composer.forget_selection()
        elif not self.chat.input.clear_or_cancel():
            now = self._surroundings.clock()
            if now - self._quit_asked <= QUIT_SECONDS:
                self.run_worker(self.action_quit(), exit_on_error=False)
            self._quit_asked = now
            again = command("app.escalate").key_text
            self.notify(f"{again} again quits", timeout=QUIT_SECONDS, markup=False)


class AgentApp(TuiAgentApp):
    """The full-screen app around an agent that another program made.

    It is a Textual app: `run()` shows it until the user quits, `run_async()` does so inside an event loop, and a
    subclass may add keys and screens of its own. The user answers the agent's questions in the app's dialogs.
    """

    def __init__(
        self,
        agent: "AgentLoop",
        *,
        theme: str = DEFAULT_THEME,
        themes_dirs: Sequence[Path] = (),
        prompt: str | None = None,
        label: str = "",
        ideas: Sequence[str] = (),
        surroundings: TerminalEnvironment | None = None,
    ) -> None:
        """Create the app; nothing runs yet.

        Args:
            agent: the agent, with its tools; nothing is stored unless the program does so.
            theme: name of the first theme.
            themes_dirs: more folders of theme files.
            prompt: sent at once.
            label: text beside the model's name.
            ideas: prompts to suggest before the first message.
            surroundings: colours and motion; None: as the environment asks.
        """
        agent.gate.interactive = True
        workspace = agent.config.workspace
        options = ChatOptions(
            WorkingDirectory() if workspace is None else WorkingDirectory.of(Path(workspace), Path.home()),
            agent.provider.model.name,
            label,
            ideas,
            surroundings=surroundings or TerminalEnvironment.of_environment(os.environ),
            prompt=prompt,
        )
        super().__init__(AgentBridge(agent, agent.bus), options, theme=theme, themes_dirs=themes_dirs)


def _use(choices: ScreenChoices, chat: ChatScreen) -> None:
    chat.entry.composer.use_vim_keys(choices.vim_keys)
    chat.bars.line.items = choices.status
    chat.bars.line.changed()
