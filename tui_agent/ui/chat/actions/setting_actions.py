"""Actions that change a setting of this session: mode, theme, model, effort and added folders."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.errors import ProviderError, TuiAgentError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.choice_texts import CYCLED_MODES, EFFORTS, MODES, theme_texts
from tui_agent.ui.chat.app_requests import ThemeRequested
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.text.sanitiser import visible

from .action_context import ActionContext, Handlers

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
            "chat.settings": lambda _: self._show_settings(),
            "chat.add_dir": self._add_folder,
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
        current = self._context.bridge.status.mode
        if name:
            names = ", ".join(mode.words for mode in PermissionMode)
            self._context.say(f"Unknown mode {name}. The mode is {current.words}; there are {names}.", wrong=True)
            return False
        from tui_agent.ui.dialogs.chooser_page import ChooserPage, choices

        items = choices({mode.value: text for mode, text in MODES.items()}, current.value)
        page = ChooserPage("Mode", lambda: items, "What happens to calls that no rule decides", selected=current.value)
        self._choose_from(page, lambda chosen: self.choose_mode(modes[chosen]))
        return True

    def _choose_from(self, page: "ChooserPage", act: Callable[[str], object]) -> None:
        """Open a chooser, and act on the choice."""

        def chosen(name: str | None) -> None:
            if name is not None:
                act(name)

        self._context.screen.app.push_screen(page, chosen)

    def _add_folder(self, path: str) -> bool:
        if not path:
            self._context.say(
                "Type the path of a folder: /add-dir PATH. /permissions lists those in force.", wrong=True
            )
            return False
        self._context.start("folder", self._ask_for_folder(path))
        return True

    async def _ask_for_folder(self, path: str) -> None:
        """Ask for how long a folder counts as part of the workspace."""
        if (bench := self._context.bench()) is None:
            return
        from tui_agent.ui.dialogs.chooser_page import ChooserPage, choices

        try:
            folder = await bench.folders.check(path)
        except TuiAgentError as error:
            self._context.say(f"{str(error)[:1].upper()}{str(error)[1:]}.", wrong=True)
            return
        state = f"{visible(str(folder))}: read like the workspace, changed under the same rules"
        items = choices(_FOLDER_TERMS, "")
        page = ChooserPage("Add a folder", lambda: items, state, selected="this session")
        self._choose_from(page, lambda term: self._context.start("folder", self._join_folder(path, term)))

    async def _join_folder(self, path: str, term: str) -> None:
        if (bench := self._context.bench()) is None:
            return
        if term == "this session":
            await bench.folders.add(path)
        else:
            self._context.say(f"Each later session has this folder, too: saved in {await bench.folders.keep(path)}.")

    def _theme(self, name: str) -> bool:
        if name in self.theme_names:
            self.choose_theme(name)
            return True
        if name:
            self._context.say(f"Unknown theme {name}. Themes: {', '.join(self.theme_names)}.", wrong=True)
            return False
        from tui_agent.ui.dialogs.chooser_page import SAMPLE, SAMPLE_DIFF, ChooserPage, choices

        app = self._context.screen.app
        before = "auto" if getattr(app, "follows_terminal", False) else app.theme
        items = choices(theme_texts(self.theme_names), before, SAMPLE, SAMPLE_DIFF)
        state = "Each theme shows as the cursor moves; /settings keeps one"
        page = ChooserPage("Theme", lambda: items, state, selected=before, moved=self.choose_theme)
        app.push_screen(page, lambda chosen: self.choose_theme(chosen or before))
        return True

    def _show_settings(self) -> bool:
        from tui_agent.ui.dialogs.settings_page import SettingsPage

        if (bench := self._context.bench()) is None:
            return False
        self._context.screen.app.push_screen(SettingsPage(bench.settings, self._setting_texts))
        return True

    def _setting_texts(self) -> Mapping[str, Mapping[str, str]]:
        """Return what each choice of a setting does, by the key of the setting."""
        modes = {mode.value: text for mode, text in MODES.items()}
        return {"permissions.mode": modes, "effort": EFFORTS, "ui.theme": theme_texts(self.theme_names)}

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
            from tui_agent.ui.dialogs.chooser_page import ChooserPage, model_items

            current = next((model.name for model in models if model.is_current), "")
            state = "Asking the endpoint for its models …"
            page = ChooserPage("Model", lambda: model_items(bench.models.list()), state, selected=current)
            self._choose_from(page, lambda name: self._context.start("model", self._choose_model(name, keeps=False)))
            page.call_after_refresh(page.run_worker, self._ask_endpoint(page, bench.models), exit_on_error=False)
        else:
            model = self._state().status.model or self._context.options.model or "not known yet"
            self._context.say(f"The model is {model}. /model NAME uses another one from the next request on.")

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

    async def _choose_model(self, name: str, *, keeps: bool) -> None:
        if (bench := self._context.bench()) is None:
            return
        if name:
            bench.models.choose(name)
        said = f"The next request uses {name}. " if name else ""
        rest = f"/model {DEFAULT} makes it the model of new sessions, too."
        if keeps:
            rest = f"New sessions begin with this model: saved in {await bench.models.keep_default('model')}."
        self._context.say(said + rest)

    def _effort(self, argument: str) -> None:
        name, keeps = _without_default(argument)
        self._context.start("effort", self._choose_effort(name.casefold(), keeps=keeps))

    async def _choose_effort(self, name: str, *, keeps: bool) -> None:
        if (bench := self._context.bench()) is None:
            return
        if not name and not keeps:
            self._show_efforts(bench.models.effort, bench.models.effort_text())
            return
        said = bench.models.choose_effort(name) if name else bench.models.effort_text()
        if keeps:
            said += f" New sessions begin with this effort: saved in {await bench.models.keep_default('effort')}."
        self._context.say(said)

    def _show_efforts(self, current: str, state: str) -> None:
        from tui_agent.ui.dialogs.chooser_page import ChooserPage, choices

        page = ChooserPage("Effort", lambda: choices(EFFORTS, current), state, selected=current)
        self._choose_from(page, self._effort)


def _without_default(argument: str) -> tuple[str, bool]:
    """Return the argument of a command without `--default`, and True if it had it."""
    words = argument.split()
    return " ".join(word for word in words if word != DEFAULT), DEFAULT in words
