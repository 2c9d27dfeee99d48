"""Actions that change a setting of this session: mode, theme, model and effort."""

from collections.abc import Callable, Sequence

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.chat.app_requests import ThemeRequested
from tui_agent.ui.chat.screen_state import ScreenState

from .action_context import ActionContext, Handlers

DEFAULT = "--default"
"""Argument of `/model` and `/effort` that also changes the user's settings."""

CYCLED_MODES = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN)
"""Modes that the mode key cycles through; the others are set by name only."""


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

    def choose_next_mode(self) -> None:
        """Set the next of `CYCLED_MODES`; after any other mode, the first."""
        mode = self._context.bridge.status.mode
        place = CYCLED_MODES.index(mode) + 1 if mode in CYCLED_MODES else 0
        self.choose_mode(CYCLED_MODES[place % len(CYCLED_MODES)])

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

    def _model(self, argument: str) -> bool:
        name, keeps = _without_default(argument)
        if " " in name:
            self._context.say(f"The name of a model has no blanks: /model NAME [{DEFAULT}]", wrong=True)
            return False
        if name or keeps:
            self._context.start("model", self._choose_model(name, keeps=keeps))
        else:
            self._show_models()
        return True

    def _show_models(self) -> None:
        bench = self._context.bridge.bench
        if bench is not None and (models := bench.models.list()):
            # Pages are loaded on demand.
            from tui_agent.ui.dialogs.model_rows import models_text

            self._context.show_page("Models", lambda width: models_text(models, width))
        else:
            model = self._state().status.model or self._context.options.model or "not known yet"
            self._context.say(f"The model is {model}. /model NAME uses another one from the next request on.")

    async def _choose_model(self, name: str, *, keeps: bool) -> None:
        if (bench := self._context.bench()) is None:
            return
        try:
            if name:
                bench.models.choose(name)
            said = f"The next request uses {name}. " if name else ""
            rest = f"/model {DEFAULT} makes it the model of new sessions, too."
            if keeps:
                rest = f"New sessions begin with this model: saved in {await bench.models.keep_default('model')}."
            self._context.say(said + rest)
        except TuiAgentError as error:
            self._context.say(str(error), wrong=True)

    def _effort(self, argument: str) -> None:
        name, keeps = _without_default(argument)
        self._context.start("effort", self._choose_effort(name.casefold(), keeps=keeps))

    async def _choose_effort(self, name: str, *, keeps: bool) -> None:
        if (bench := self._context.bench()) is None:
            return
        try:
            said = bench.models.choose_effort(name)
            if keeps:
                said += f" New sessions begin with this effort: saved in {await bench.models.keep_default('effort')}."
            self._context.say(said)
        except TuiAgentError as error:
            self._context.say(str(error), wrong=True)


def _without_default(argument: str) -> tuple[str, bool]:
    """Return the argument of a command without `--default`, and True if it had it."""
    words = argument.split()
    return " ".join(word for word in words if word != DEFAULT), DEFAULT in words
