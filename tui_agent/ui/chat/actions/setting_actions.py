"""Actions that change a setting of this session: mode, theme, model and effort."""

from collections.abc import Callable, Sequence

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.chat.app_requests import ThemeRequested
from tui_agent.ui.chat.screen_state import ScreenState

from .action_context import ActionContext, Handlers


class SettingActions:
    """Change the settings of this session."""

    def __init__(self, context: ActionContext, state: Callable[[], ScreenState]) -> None:
        self._context = context
        self._state = state
        self.handlers: Handlers = {
            "chat.mode": self._mode,
            "chat.theme": self._theme,
            "chat.model": self._model,
            "chat.effort": self._effort,
        }
        """Actions by id of their command."""

    def choose_mode(self, mode: PermissionMode) -> None:
        """Set the permission mode."""
        self._context.bridge.set_mode(mode)
        self._context.show_pending_agent()

    @property
    def theme_names(self) -> Sequence[str]:
        """Names of the themes."""
        return self._context.options.theme_names()

    def choose_theme(self, name: str) -> None:
        """Ask the app for a theme."""
        self._context.screen.post_message(ThemeRequested(name))

    def _mode(self, name: str) -> bool:
        wanted = name.replace("-", "_").replace(" ", "_").casefold()
        modes = {mode.value: mode for mode in PermissionMode}
        if wanted in modes:
            self.choose_mode(modes[wanted])
            return True
        unknown = f"Unknown mode {name}. " if name else ""
        self._context.say(
            f"{unknown}The mode is {self._context.bridge.status.mode.value}; there are {', '.join(modes)}.",
            wrong=bool(name),
        )
        return not name

    def _theme(self, name: str) -> bool:
        if name in self.theme_names:
            self.choose_theme(name)
            return True
        unknown = f"Unknown theme {name}. " if name else ""
        self._context.say(f"{unknown}Themes: {', '.join(self.theme_names)}.", wrong=bool(name))
        return not name

    def _model(self, name: str) -> bool:
        if " " in name:
            self._context.say("The name of a model has no blanks: /model NAME", wrong=True)
            return False
        if name:
            self._context.start("model", self._choose_model(name))
        else:
            model = self._state().status.model or self._context.options.model or "not known yet"
            self._context.say(f"The model is {model}. /model NAME uses another one from the next request on.")
        return True

    async def _choose_model(self, name: str) -> None:
        try:
            chosen = await self._context.bridge.commands.choose_model(name)
        except TuiAgentError as error:
            self._context.say(str(error), wrong=True)
        else:
            self._context.say(f"The next request uses {chosen}. The settings stay as they are.")

    def _effort(self, name: str) -> None:
        self._context.start("effort", self._choose_effort(name.casefold()))

    async def _choose_effort(self, name: str) -> None:
        try:
            self._context.say(await self._context.bridge.commands.choose_effort(name))
        except TuiAgentError as error:
            self._context.say(str(error), wrong=True)
