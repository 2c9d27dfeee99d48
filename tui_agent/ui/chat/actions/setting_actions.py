"""Actions that change a setting of this session: mode, theme, model, effort and added folders."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.errors import ProviderError, TuiAgentError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.choice_texts import CYCLED_MODES, EFFORTS, MODES, theme_texts
from tui_agent.ui.chat.chat_options import ThemeRequested
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.text.sanitiser import visible

from .action_context import ActionContext, ActionGroup, Handlers

if TYPE_CHECKING:
    from tui_agent.ui.dialogs.chooser_page import ChooserPage
    from tui_agent.workbench.session_models import SessionModels

DEFAULT = "--default"
"""Argument of `/model` and `/effort` that also changes the user's settings."""


_FOLDER_TERMS = {
    "this session": "Until you quit, and when you resume it here",
    "every session": "Also in your settings, as permissions.folders",
}
"""For how long a folder counts as part of the workspace."""


class SettingActions(ActionGroup):
    """Change the settings of this session."""

    def __init__(self, context: ActionContext, state: Callable[[], ScreenState]) -> None:
        super().__init__(context)
        self._state = state
        self.handlers: Handlers = {
            "chat.mode": self._mode,
            "chat.theme": self._theme,
            "chat.model": self._model,
            "chat.effort": self._effort,
            "chat.settings": lambda _: self._show_settings(),
            "chat.add_dir": self._add_folder,
        }

    def choose_mode(self, mode: PermissionMode) -> None:
        """Set the permission mode."""
        self._bridge.set_mode(mode)
        self._context.show_pending_agent()

    def choose_next_mode(self) -> None:
        """Set the next of `CYCLED_MODES`; after any other mode, the first."""
        mode = self._bridge.status.mode
        place = CYCLED_MODES.index(mode) + 1 if mode in CYCLED_MODES else 0
        self.choose_mode(CYCLED_MODES[place % len(CYCLED_MODES)])

    @property
    def theme_names(self) -> Sequence[str]:
        """Names of the themes."""
        return self._options.theme_names()

    def choose_theme(self, name: str) -> None:
        """Ask the app for a theme."""
        self._screen.post_message(ThemeRequested(name))

    def _mode(self, name: str) -> None:
        # As the badge spells it, `/mode accept edits` works, too.
        wanted = name.replace("-", "_").replace(" ", "_").casefold()
        modes = {mode.value: mode for mode in PermissionMode}
        if wanted in modes:
            self.choose_mode(modes[wanted])
            return
        current = self._bridge.status.mode
        if name:
            names = ", ".join(mode.words for mode in PermissionMode)
            raise TuiAgentError(f"Unknown mode {name}. The mode is {current.words}; there are {names}.")
        from tui_agent.ui.dialogs.chooser_page import choices

        items = choices({mode.value: text for mode, text in MODES.items()}, current.value)
        state = "What happens to calls that no rule decides"
        self._list("Mode", lambda: items, state, lambda chosen: self.choose_mode(modes[chosen]), selected=current.value)

    def _add_folder(self, path: str) -> None:
        if not path:
            raise TuiAgentError("Type the path of a folder: /add-dir PATH. /permissions lists those in force.")
        self._start("folder", self._ask_for_folder(path))

    async def _ask_for_folder(self, path: str) -> None:
        """Ask for how long a folder counts as part of the workspace."""
        from tui_agent.ui.dialogs.chooser_page import choices

        try:
            folder = await self._bench.folders.check(path)
        except TuiAgentError as error:
            raise TuiAgentError(f"{str(error)[:1].upper()}{str(error)[1:]}.") from error
        state = f"{visible(str(folder))}: read like the workspace, changed under the same rules"
        items = choices(_FOLDER_TERMS, "")

        def join(term: str) -> None:
            self._start("folder", self._join_folder(path, term))

        self._list("Add a folder", lambda: items, state, join, selected="this session")

    async def _join_folder(self, path: str, term: str) -> None:
        bench = self._bench
        if term == "this session":
            await bench.folders.add(path)
        else:
            self._say(f"Each later session has this folder, too: saved in {await bench.folders.keep(path)}.")

    def _theme(self, name: str) -> None:
        if name in self.theme_names:
            self.choose_theme(name)
            return
        if name:
            raise TuiAgentError(f"Unknown theme {name}. Themes: {', '.join(self.theme_names)}.")
        from tui_agent.ui.dialogs.chooser_page import SAMPLE, SAMPLE_DIFF, ChooserPage, choices

        app = self._screen.app
        # The app only knows the theme that `auto` stands for now.
        before = "auto" if getattr(app, "follows_terminal", False) else app.theme
        items = choices(theme_texts(self.theme_names), before, SAMPLE, SAMPLE_DIFF)
        state = "Each theme shows as the cursor moves; /settings keeps one"
        page = ChooserPage("Theme", lambda: items, state, selected=before, moved=self.choose_theme)
        self._push(page, lambda chosen: self.choose_theme(chosen or before))

    def _show_settings(self) -> None:
        from tui_agent.ui.dialogs.settings_page import SettingsPage

        self._push(SettingsPage(self._bench.settings, self._setting_texts))

    def _setting_texts(self) -> Mapping[str, Mapping[str, str]]:
        """Return what each choice of a setting does, by the key of the setting."""
        modes = {mode.value: text for mode, text in MODES.items()}
        return {"permissions.mode": modes, "effort": EFFORTS, "ui.theme": theme_texts(self.theme_names)}

    def _model(self, argument: str) -> None:
        name, keeps = _without_default(argument)
        if " " in name:
            raise TuiAgentError(f"The name of a model has no blanks: /model NAME [{DEFAULT}]")
        if name or keeps:
            self._start("model", self._choose_model(name, keeps=keeps))
        else:
            self._show_models()

    def _show_models(self) -> None:
        bench = self._bridge.bench
        if bench is not None and (models := bench.models.list()):
            from tui_agent.ui.dialogs.chooser_page import model_items

            current = next((model.name for model in models if model.is_current), "")
            state = "Asking the endpoint for its models …"
            items = lambda: model_items(bench.models.list())  # noqa: E731
            page = self._list("Model", items, state, self._use_model, selected=current)
            # The answer may come at once, and updates a page that is shown.
            page.call_after_refresh(page.run_worker, self._ask_endpoint(page, bench.models), exit_on_error=False)
        else:
            model = self._state().status.model or self._options.model or "not known yet"
            self._say(f"The model is {model}. /model NAME uses another one from the next request on.")

    async def _ask_endpoint(self, page: "ChooserPage", models: "SessionModels") -> None:
        """Add the models that the endpoint lists to an open page, or say there why it lists none."""
        try:
            name = await models.ask_endpoint()
            state = f"{count_text(len(models.list()), 'model')}, with those that {name} lists" if name else ""
        except ProviderError as error:
            state = f"{error.summary}. The configured models are shown."
        except TuiAgentError as error:
            state = str(error)
        page.update(state)

    def _use_model(self, name: str) -> None:
        self._start("model", self._choose_model(name, keeps=False))

    async def _choose_model(self, name: str, *, keeps: bool) -> None:
        bench = self._bench
        if name:
            bench.models.choose(name)
        said = f"The next request uses {name}. " if name else ""
        rest = f"/model {DEFAULT} makes it the model of new sessions, too."
        if keeps:
            rest = f"New sessions begin with this model: saved in {await bench.models.keep_default('model')}."
        self._say(said + rest)

    def _effort(self, argument: str) -> None:
        name, keeps = _without_default(argument)
        self._start("effort", self._choose_effort(name.casefold(), keeps=keeps))

    async def _choose_effort(self, name: str, *, keeps: bool) -> None:
        bench = self._bench
        if not name and not keeps:
            self._show_efforts(bench.models.effort, bench.models.effort_text())
            return
        said = bench.models.choose_effort(name) if name else bench.models.effort_text()
        if keeps:
            said += f" New sessions begin with this effort: saved in {await bench.models.keep_default('effort')}."
        self._say(said)

    def _show_efforts(self, current: str, state: str) -> None:
        from tui_agent.ui.dialogs.chooser_page import choices

        self._list("Effort", lambda: choices(EFFORTS, current), state, self._effort, selected=current)


def _without_default(argument: str) -> tuple[str, bool]:
    """Return the argument of a command without `--default`, and True if it had it."""
    words = argument.split()
    return " ".join(word for word in words if word != DEFAULT), DEFAULT in words
