"""The full-screen app: one chat screen, the themes, and what concerns the terminal as a whole."""

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
from .terminal_keys import register_alt_enter, with_normalised_name
from .themes import DEFAULT_THEME, ThemeCatalogue, ThemeProblem, shipped_themes
from .window_size import with_current_size

OpenPlayer: TypeAlias = Callable[[str], Awaitable[Screen[None]]]
"""Makes the screen that shows the recording in a file; raises `TuiAgentError` where it cannot."""

FAULT_SECONDS = 60.0
"""How long the word about a part that failed stands."""
QUIT_SECONDS = 2.0
"""Within this time a second `ctrl+c` quits."""


def _command_provider() -> type[Provider]:
    """Loaded when the palette is opened: nothing of it is needed to paint the first screen."""
    from .palette import CommandProvider

    return CommandProvider


class TuiAgentApp(BaseApp[None]):
    """Shows one agent. `run()` returns once the person quits; the terminal is then as it was."""

    TITLE = "tui-agent"
    # A screen that is there from the beginning does not load its own style sheet.
    CSS_PATH = "../chat/chat.tcss"
    CSS = """
    * {
        scrollbar-size-vertical: 1;
    }
    /* At the top: what is typed stays in sight. */
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
        """Makes the app; nothing runs yet.

        Args:
            bridge: the door to the agent.
            theme: name of the theme to begin with.
            themes_dirs: more folders of theme files; a theme there replaces a shipped one of its name.
            glimpse: the end of what was told in earlier lives of the session, shown until all of it is read.
            prompt: sent at once.
            model: the model's name, as long as nothing was told of it.
            label: said beside the model's name, such as `scripted demo, not a language model`.
            ideas: what could be asked for, shown before anything was said.
            place: directory and branch for the title bar.
            surroundings: what the terminal and the settings ask for; the environment's where not given.
            log_file: where log records go. A part of the screen that fails is then told and written down there; where
                it is not given, it ends the app.
            note_input: is told what comes from the terminal, for a recording.
            open_player: opens recordings; not given: there are none to be watched.
        """
        register_alt_enter()
        self._surroundings = surroundings or TerminalEnvironment.of_environment(os.environ)
        super().__init__()
        self._shelf = ThemeCatalogue((shipped_themes(), *themes_dirs))
        self._wanted_theme: str | None = theme
        """Name of the first theme, until it was found or reported as unknown."""
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
            theme_names=lambda: self._shelf.names,
            faults=self._faults,
        )
        self.chat = ChatScreen(bridge, options)
        """The main screen."""
        self.painted = asyncio.Event()
        """Set once the first screen is there."""
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
        """The chat is the screen at the bottom."""
        return self.chat

    def on_mount(self) -> None:
        """What can wait until the first screen is painted, waits."""
        self.call_after_refresh(self._start_services)

    def _start_services(self) -> None:
        self.painted.set()
        self.run_worker(self._watch_themes, group="themes", exit_on_error=False)

    def on_resize(self) -> None:
        """Draws everything, also when the window is as large as before.

        A terminal drops what a smaller window does not show. Of a window that was small only for a moment, the app may
        hear the last size alone, and Textual would draw nothing.
        """
        self.refresh()

    async def on_event(self, event: Event) -> None:
        """Gives keys their usual names, notes when something is typed, and takes the window as it is."""
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
        """Shows the recording in a file over the chat, or says why it cannot; the agent works on meanwhile."""
        if self._open_player is not None:
            self.run_worker(self._watch(self._open_player(path)), group="player", exclusive=True)

    async def _watch(self, opening: Awaitable[Screen[None]]) -> None:
        player = await run_service("opening a recording", opening, self._notify_no_recording)
        if player is not None:
            self._player = player
            self.push_screen(player, self._watched)

    def _notify_no_recording(self, reason: str) -> None:
        self.notify(f"The recording cannot be shown: {reason}", severity="error")

    def _watched(self, _: None) -> None:
        self._player = None

    # --- themes -------------------------------------------------------------------------------------------------------

    def _choose_first_theme(self, wanted: str) -> None:
        """Reads no more than the files of one theme: the rest can wait until the first screen is painted."""
        for name in (wanted, DEFAULT_THEME):
            found = self._shelf.find(name)
            if found is not None:
                self.register_theme(found)
                self.theme = name
                return

    def show_theme(self, name: str) -> None:
        """Takes another theme, or says that there is none of that name."""
        found = self._shelf.find(name)
        if found is None:
            self._warn(f"there is no theme {name}; there are {', '.join(self._shelf.names)}")
            return
        self.register_theme(found)
        self.theme = name

    @on(ChatScreen.ThemeRequested)
    def _theme_requested(self, event: ChatScreen.ThemeRequested) -> None:
        self.show_theme(event.name)

    async def _watch_themes(self) -> None:
        """Read all themes now and after each change of a file; a broken file keeps the last good one."""
        await run_service("live themes", self._follow_themes(), self._themes_unwatched)

    async def _follow_themes(self) -> None:
        await watch_files(self._shelf.watched, self._read_themes, self._themes_checked)

    async def _read_themes(self) -> None:
        self._apply_themes(await self._shelf.read_all())
        wanted, self._wanted_theme = self._wanted_theme, None
        if wanted is not None and self._shelf.find(wanted) is None:
            self._warn(f"there is no theme {wanted}; there are {', '.join(self._shelf.names)}")

    def _themes_unwatched(self, reason: str) -> None:
        self._warn(f"Themes are no longer watched ({reason}). They stay as they are; restart to apply changes.")

    def _themes_checked(self, reason: str) -> None:
        self._warn(f"The system no longer reports changes of themes ({reason}). The files are checked once a second.")

    def _apply_themes(self, problems: Sequence[ThemeProblem]) -> None:
        """Puts the themes as they are now to use, and says which files were not."""
        for name in self._shelf.names:
            found = self._shelf.find(name)
            if found is not None and found != self.available_themes.get(name):
                self.register_theme(found)
                if name == self.theme:
                    self._repaint_theme()
        for problem in problems:
            if problem not in self._theme_problems:
                self._warn(f"{problem.text}. The theme stays as it was.")
        self._theme_problems = tuple(problems)

    def _repaint_theme(self) -> None:
        """The colours of the theme in use are others now."""
        self.refresh_css(animate=False)

    def _warn(self, text: str) -> None:
        self.notify(text, title="Theme", severity="warning", markup=False)

    # --- faults -------------------------------------------------------------------------------------------------------

    @on(Conversation.DrawingFailed)
    def _drawing_failed(self, event: Conversation.DrawingFailed) -> None:
        self._faults.contain(event.view, event.error)

    def _notify_fault(self, text: str) -> None:
        self.notify(text, severity="error", timeout=FAULT_SECONDS, markup=False)

    def _handle_exception(self, error: Exception) -> None:
        # What Textual prints holds the values of local variables: whatever was said, and perhaps a secret.
        words = self._faults.exit_message(error)
        if words is None:
            super()._handle_exception(error)
        else:
            self.exit(return_code=1, message=Text(words))

    # --- leaving ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The palette opens over the chat only: what is asked in a dialog is answered there."""
        if action == "command_palette":
            return self.screen is self.chat
        return super().check_action(action, parameters)

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """Leaves: what runs is ended first, as long as it can be told why."""
        self.chat.bridge.leave()
        super().exit(result, return_code, message)

    def action_escalate(self) -> None:
        """`ctrl+c`: copies what is selected, else empties the composer, else interrupts, else quits the second time."""
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
