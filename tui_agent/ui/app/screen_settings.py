"""The settings of the screen: applied at the start and when they change, and checked by commands without a screen, too.

Imports Textual where a function needs it: print mode checks no keys, and most starts check no theme.
"""

import asyncio
import difflib
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.facts.screen_facts import ScreenChoices
from tui_agent.settings import AUTO_THEME, LoadedSettings, Locations, Settings
from tui_agent.workbench.configuration.effective_settings import load_effective_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions

if TYPE_CHECKING:
    from tui_agent.workbench.plugins.plugin_entries import Plugin
    from tui_agent.workbench.plugins.plugin_loader import LoadedPlugins

    from .base_app import BaseApp


def apply_input(settings: Settings) -> None:
    """Use the user's keys and mouse in every app of this process; keys that cannot be applied stay the default ones."""
    from .terminal_driver import TerminalDriver

    TerminalDriver.takes_mouse = settings.ui.mouse
    if settings.keys:
        from tui_agent.ui.base.commands import use_keys
        from tui_agent.ui.base.key_settings import check_keys

        use_keys(check_keys(settings.keys).keys)


def choices_of(settings: Settings) -> ScreenChoices:
    """Return the user's choices for the screen; a command for the status line is shown without being listed."""
    # By name, so that another choice needs no line here.
    choices = ScreenChoices(**{choice.name: getattr(settings.ui, choice.name) for choice in fields(ScreenChoices)})
    if settings.ui.status_command and "command" not in choices.status:
        return replace(choices, status=(*choices.status, "command"))
    return choices


def use_on_screen(
    app: "BaseApp[None]", use_choices: Callable[[ScreenChoices], None], before: Settings, loaded: LoadedSettings
) -> tuple[str, ...]:
    """Apply to a running app what changed in its settings; return warnings about keys that cannot be applied."""
    from tui_agent.ui.base.key_settings import check_keys
    from tui_agent.ui.chat.chat_options import ThemeRequested

    after = loaded.settings
    if after.ui.theme != before.ui.theme:
        app.post_message(ThemeRequested(after.ui.theme))
    if after.keys != before.keys:
        app.use_keys(check_keys(after.keys).keys)
    use_choices(choices_of(after))
    if after.ui.mouse != before.ui.mouse:
        app.use_mouse(after.ui.mouse)
    return wrong_key_settings(loaded) if after.keys != before.keys else ()


def plugin_themes(settings: Settings, folder: Path) -> Sequence[Path]:
    """Return the theme files of the plugins that the settings use in this folder. Blocks."""
    # Imported here because the first paint does not wait for it, unless it needs such a theme.
    from tui_agent.workbench.plugins.plugin_entries import theme_files

    return theme_files(settings, folder)


def screen_problems(options: LaunchOptions, loaded: LoadedSettings) -> tuple[str, ...]:
    """Return warnings about settings of the screen; it reports a wrong theme itself. Blocks."""
    if not options.without_screen:
        return wrong_key_settings(loaded)
    problem = wrong_theme_setting(loaded, Locations.of_user(), options.cwd)
    return () if problem is None else (problem,)


def refuse_unknown_theme(name: str, options: LaunchOptions) -> None:
    """Check the name in `--theme`, also without a screen. Blocks.

    Raises:
        ConfigurationError: no theme has this name.
    """
    locations = Locations.of_user()
    if problem := _theme_problem(name, locations, lambda: load_effective_settings(options, locations), options.cwd):
        raise ConfigurationError(f"--theme: {problem}")


def wrong_theme_setting(loaded: LoadedSettings, locations: Locations, root: Path) -> str | None:
    """Return the warning about a `ui.theme` setting that names no usable theme; None if it is right. Blocks."""
    origin = loaded.origins.get("ui.theme")
    problem = _theme_problem(loaded.settings.ui.theme, locations, lambda: loaded, root) if origin else None
    return None if problem is None else f"{origin}: `ui.theme`: {problem}"


def wrong_key_settings(loaded: LoadedSettings) -> tuple[str, ...]:
    """Return a warning about each entry of `[keys]` that cannot be applied."""
    if not loaded.settings.keys:
        return ()
    from tui_agent.ui.base.key_settings import check_keys

    return tuple(
        f"{loaded.origins[f'keys.{problem.command_id}']}: `keys.{problem.command_id}`: "
        f"{problem.text}{'' if problem.text.endswith('?') else '.'} This entry is not applied."
        for problem in check_keys(loaded.settings.keys).problems
    )


def theme_names() -> tuple[str, ...]:
    """Return the names of the themes: the user's and those of the package. Blocks."""
    from .themes import ThemeCatalogue, shipped_themes

    catalogue = ThemeCatalogue((shipped_themes(), Locations.of_user().user_themes_dir))
    asyncio.run(catalogue.read_all())
    return tuple(catalogue.names)


def _theme_problem(name: str, locations: Locations, load: Callable[[], LoadedSettings], root: Path) -> str | None:
    """Return the error for an unknown theme, with the closest name, or for a broken one; None for a usable one."""
    if name == AUTO_THEME:
        return None
    # Imported here because it takes a tenth of a second, and most commands check no theme.
    from tui_agent.workbench.plugins.plugin_entries import theme_files

    from .themes import ThemeCatalogue, shipped_themes

    catalogue = ThemeCatalogue((shipped_themes(), locations.user_themes_dir))
    catalogue.more = lambda: theme_files(load().settings, root)
    if catalogue.find(name) is not None:
        return None
    problems = [problem.text for problem in asyncio.run(catalogue.read_all()) if problem.path.stem == name]
    if problems:
        return problems[0]
    near = difflib.get_close_matches(name, catalogue.names, n=1)
    return f"no theme {name!r}; " + (
        f"did you mean {near[0]}?" if near else f"the themes are {', '.join(catalogue.names)}"
    )


def examine_plugins(settings: Settings, root: Path, locations: Locations) -> "LoadedPlugins":
    """Load the plugins like a start, and also check the theme files, which loads the screen's library. Blocks."""
    from tui_agent.workbench.plugins.plugin_entries import theme_file
    from tui_agent.workbench.plugins.plugin_loader import load_plugins

    from .themes import read_theme, shipped_themes

    def checked(plugin: "Plugin") -> "Plugin":
        path = theme_file(plugin.entry) if plugin.is_used and plugin.entry.kind == "theme" else None
        if path is None:
            return plugin
        if any((folder / path.name).is_file() for folder in (shipped_themes(), locations.user_themes_dir)):
            return replace(plugin, problem="tui-agent or your own themes have one of this name")
        try:
            name = read_theme(path).name
        except ConfigurationError as error:
            return replace(plugin, problem=str(error))
        return plugin if name == path.stem else replace(plugin, problem=f"the theme in {path} has another name")

    loaded = load_plugins(settings, root)
    return replace(loaded, plugins=tuple(map(checked, loaded.plugins)))
