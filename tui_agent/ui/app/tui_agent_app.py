"""The full-screen app: the chat screen, themes, recordings, and events of the terminal."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar, TypeAlias

from rich.console import RenderableType
from rich.text import Text
from textual import on
from textual.binding import BindingType
from textual.command import Provider
from textual.events import Event, Key, Paste, Resize
from textual.filter import NoColor
from textual.screen import Screen

from tui_agent.protocol.background import run_service
from tui_agent.protocol.file_watch import watch_files
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_screen import ChatScreen
from tui_agent.ui.chat.interrupt_controls import ChatOptions
from tui_agent.ui.chat.screen_state import HistoryTail
from tui_agent.ui.transcript.conversation import Conversation

from .base_app import BaseApp
from .terminal_events import register_alt_enter, with_current_size, with_normalised_name
from .themes import DEFAULT_THEME, ThemeCatalogue, ThemeProblem, shipped_themes

OpenPlayer: TypeAlias = Callable[[str], Awaitable[Screen[None]]]
"""Makes the screen that plays the recording in a file; raises `TuiAgentError` if it cannot be played."""

FAULT_SECONDS = 60.0
"""Seconds that the message about a failed part of the screen stays."""
QUIT_SECONDS = 2.0
"""Seconds within which a second `ctrl+c` quits."""


def _command_provider() -> type[Provider]:
    """Import the palette when it is opened; the first screen does not need it."""
    from .palette import CommandProvider

    return CommandProvider


class TuiAgentApp(BaseApp[None]):
    """Shows one agent. `run()` returns once the user quits; the terminal is then in its earlier state."""

    TITLE = "tui-agent"
    # Textual does not load the style sheet of the default screen itself.
    CSS_PATH = "../chat/chat.tcss"
    CSS = """
    * {
        scrollbar-size-vertical: 1;
    }
    /* At the top, so that the composer stays visible. */
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
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("everywhere")]
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_command_provider}
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        bridge: AgentBridge,
        *,
        theme: str = DEFAULT_THEME,
        themes_dirs: Sequence[Path] = (),
        glimpse: HistoryTail | None = None,
        prompt: str | None = None,
        model: str = "",
        label: str = "",
        ideas: Sequence[str] = (),
        place: WorkingDirectory | None = None,
        surroundings: TerminalEnvironment | None = None,
        log_file: Path | None = None,
        note_input: Callable[[Event], object] | None = None,
        open_player: OpenPlayer | None = None,
    ) -> None:
        """Create the app; nothing runs yet.

        Args:
            bridge: connection to the agent.
            theme: name of the first theme.
            themes_dirs: more folders of theme files; a theme there replaces a built-in one of the same name.
            glimpse: end of the resumed session, shown until all of it is read.
            prompt: sent at once.
            model: the model's name, until an event names it.
            label: text beside the model's name, such as `scripted demo, not a language model`.
            ideas: prompts to suggest before the first message.
            place: directory and branch for the title bar.
            surroundings: colours and motion; None: as the environment asks.
            log_file: the log. If a part of the screen fails, the app reports it and logs it there; None: such a failure
                ends the app.
            note_input: called with input from the terminal, for a recording.
            open_player: opens recordings; None: `/replay` does nothing.
        """
        register_alt_enter()
        self._surroundings = surroundings or TerminalEnvironment.of_environment(os.environ)
        super().__init__()
        self._catalogue = ThemeCatalogue((shipped_themes(), *themes_dirs))
        self._wanted_theme: str | None = theme
        """Name of the first theme, until it is found or reported as unknown."""
        self._theme_problems: tuple[ThemeProblem, ...] = ()
        self._faults = ErrorBoundary(self._notify_fault, log_file)
        options = ChatOptions(
            place=place or WorkingDirectory(),
            model=model,
            label=label,
            ideas=ideas,
            surroundings=self._surroundings,
            glimpse=glimpse,
            prompt=prompt,
            theme_names=lambda: self._catalogue.names,
            faults=self._faults,
        )
        self.chat = ChatScreen(bridge, options)
        """The main screen."""
        self.painted = asyncio.Event()
        """Set once the first screen is painted."""
        self._quit_asked = float("-inf")
        self._note_input = note_input
        self._open_player = open_player
        self._player: Screen[None] | None = None
        if self._surroundings.reduced_motion:
            self.animation_level = "none"
        if self._surroundings.no_color:
            self.no_color = True
            self._filters.append(NoColor())
        self._choose_first_theme(theme)

    def get_default_screen(self) -> ChatScreen:
        """Return the chat screen."""
        return self.chat

    def on_mount(self) -> None:
        """Start services once the first screen is painted."""
        self.call_after_refresh(self._start_services)

    def _start_services(self) -> None:
        self.painted.set()
        self.run_worker(self._watch_themes, group="themes", exit_on_error=False)

    def on_resize(self) -> None:
        """Draw everything, even if the window has the same size as before.

        A terminal drops what a smaller window does not show. If the window was small only for a moment, the app may
        receive only the last size, and Textual would draw nothing.
        """
        self.refresh()

    async def on_event(self, event: Event) -> None:
        """Correct keys and window sizes, and report typing to the chat screen and the recording."""
        if isinstance(event, Resize) and not (self.is_headless or self.is_web):
            event = with_current_size(event)
        if isinstance(event, Key) and not event.is_forwarded:
            event = with_normalised_name(event)
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            self.chat.note_keypress()
        if self._note_input is not None and self._player is None and not event.is_forwarded:
            self._note_input(event)
        await super().on_event(event)

    # --- recordings ---------------------------------------------------------------------------------------------------

    @on(ChatScreen.ReplayRequested)
    def _replay_requested(self, event: ChatScreen.ReplayRequested) -> None:
        self.watch_recording(event.path)

    def watch_recording(self, path: str) -> None:
        """Play the recording in a file over the chat, or report why it cannot be played; the agent keeps working."""
        if self._open_player is not None:
            self.run_worker(self._watch(self._open_player(path)), group="player", exclusive=True)

    async def _watch(self, opening: Awaitable[Screen[None]]) -> None:
        player = await run_service("opening a recording", opening, self._notify_no_recording)
        if player is not None:
            self._player = player
            self.push_screen(player, self._watched)

    def _notify_no_recording(self, reason: str) -> None:
        self.notify(f"The recording cannot be played: {reason}", severity="error")

    def _watched(self, _: None) -> None:
        self._player = None

    # --- themes -------------------------------------------------------------------------------------------------------

    def _choose_first_theme(self, wanted: str) -> None:
        """Read only the files of one theme; the others are read after the first screen is painted."""
        for name in (wanted, DEFAULT_THEME):
            found = self._catalogue.find(name)
            if found is not None:
                self.register_theme(found)
                self.theme = name
                return

    def show_theme(self, name: str) -> None:
        """Switch to another theme, or report that no theme has this name."""
        found = self._catalogue.find(name)
        if found is None:
            self._warn(self._unknown_theme(name))
            return
        self.register_theme(found)
        self.theme = name

    def _unknown_theme(self, name: str) -> str:
        return f"No theme {name!r}; the themes are {', '.join(self._catalogue.names)}"

    @on(ChatScreen.ThemeRequested)
    def _theme_requested(self, event: ChatScreen.ThemeRequested) -> None:
        self.show_theme(event.name)

    async def _watch_themes(self) -> None:
        """Read all themes now and after each change of a file; a broken file keeps the last valid version."""
        await run_service("live themes", self._follow_themes(), self._themes_unwatched)

    async def _follow_themes(self) -> None:
        await watch_files(self._catalogue.watched, self._read_themes, self._themes_checked)

    async def _read_themes(self) -> None:
        self._apply_themes(await asyncio.to_thread(self._catalogue.read_all))
        wanted, self._wanted_theme = self._wanted_theme, None
        if wanted is not None and self._catalogue.find(wanted) is None:
            self._warn(self._unknown_theme(wanted))

    def _themes_unwatched(self, reason: str) -> None:
        self._warn(f"Themes are no longer watched ({reason}). They stay as they are; restart to apply changes.")

    def _themes_checked(self, reason: str) -> None:
        self._warn(f"The system no longer reports changes of themes ({reason}). The files are checked once a second.")

    def _apply_themes(self, problems: Sequence[ThemeProblem]) -> None:
        """Apply changed themes, and report problems with files once."""
        for name in self._catalogue.names:
            found = self._catalogue.find(name)
            if found is not None and found != self.available_themes.get(name):
                self.register_theme(found)
                if name == self.theme:
                    self.refresh_css(animate=False)
        for problem in problems:
            if problem not in self._theme_problems:
                self._warn(f"{problem.text}. The theme stays unchanged.")
        self._theme_problems = tuple(problems)

    def _warn(self, text: str) -> None:
        self.notify(text, title="Theme", severity="warning", markup=False)

    # --- faults -------------------------------------------------------------------------------------------------------

    @on(Conversation.DrawingFailed)
    def _drawing_failed(self, event: Conversation.DrawingFailed) -> None:
        self._faults.contain(event.view, event.error)

    def _notify_fault(self, text: str) -> None:
        self.notify(text, severity="error", timeout=FAULT_SECONDS, markup=False)

    def _handle_exception(self, error: Exception) -> None:
        # Textual's traceback prints local variables, and with them messages and perhaps secrets.
        text = self._faults.exit_message(error)
        if text is None:
            super()._handle_exception(error)
        else:
            self.exit(return_code=1, message=Text(text))

    # --- quitting -----------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Allow the palette only over the chat: a dialog is answered in the dialog."""
        if action == "command_palette":
            return self.screen is self.chat
        return super().check_action(action, parameters)

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """Quit; first abort the run, while the reason can still be published."""
        self.chat.bridge.leave()
        super().exit(result, return_code, message)

    def action_escalate(self) -> None:
        """Handle `ctrl+c`: copy the selection, else clear the composer, else interrupt; pressed twice, quit."""
        self.chat.in_order(self._escalate)

    def _escalate(self) -> None:
        if self._player is not None and self.screen is self._player:
            self._player.dismiss()
            return
        selected = self.screen.get_selected_text() or self.chat.entry.composer.selected_text
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            self.chat.entry.composer.forget_selection()
        elif not self.chat.clear_or_cancel():
            now = self._surroundings.clock()
            if now - self._quit_asked <= QUIT_SECONDS:
                self.exit()
            self._quit_asked = now
            again = command("app.escalate").key_text
            self.notify(f"{again} again quits", timeout=QUIT_SECONDS, markup=False)
