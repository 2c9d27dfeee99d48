"""Parts of the screen that commands use: themes, keys and mouse, its words for a question, and the screen of a fleet.

Imports them when a function needs them: print mode checks no keys, and most starts check no theme.
"""

import asyncio
import difflib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.facts.screen_facts import ScreenChoices
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.settings import AUTO_THEME, LoadedSettings, Locations, Settings
from tui_agent.workbench.configuration.effective_settings import load_effective_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions

if TYPE_CHECKING:
    from tui_agent.ui.app.tui_agent_app import TuiAgentApp
    from tui_agent.ui.fleet.fleet_state import FleetFiles
    from tui_agent.workbench.plugins.plugin_entries import Plugin
    from tui_agent.workbench.plugins.plugin_loader import LoadedPlugins

QUESTION_WIDTH = 100
"""Cells of a row of a question in plain mode and in an editor."""


def apply_input(settings: Settings) -> None:
    """Use the user's keys and mouse in every app of this process; keys that cannot be applied stay the default ones."""
    from tui_agent.ui.app.terminal_driver import TerminalDriver
    from tui_agent.ui.base.commands import use_keys
    from tui_agent.ui.base.key_settings import check_keys

    TerminalDriver.takes_mouse = settings.ui.mouse
    if settings.keys:
        use_keys(check_keys(settings.keys).keys)


def choices_of(settings: Settings) -> ScreenChoices:
    """Return the user's choices for the screen; a command for the status line is shown without being listed."""
    items = settings.ui.status
    if settings.ui.status_command and "command" not in items:
        items = (*items, "command")
    return ScreenChoices(settings.ui.vim_keys, items, settings.ui.title)


def use_on_screen(app: "TuiAgentApp", before: Settings, loaded: LoadedSettings) -> tuple[str, ...]:
    """Apply to a running app what changed in its settings; return warnings about keys that cannot be applied."""
    from tui_agent.ui.base.key_settings import check_keys

    after = loaded.settings
    if after.ui.theme != before.ui.theme:
        app.show_theme(after.ui.theme)
    if after.keys != before.keys:
        app.use_keys(check_keys(after.keys).keys)
    app.use_choices(choices_of(after))
    if after.ui.mouse != before.ui.mouse:
        app.use_mouse(after.ui.mouse)
    return wrong_key_settings(loaded) if after.keys != before.keys else ()


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
    from tui_agent.ui.app.themes import ThemeCatalogue, shipped_themes

    catalogue = ThemeCatalogue((shipped_themes(), Locations.of_user().user_themes_dir))
    asyncio.run(catalogue.read_all())
    return tuple(catalogue.names)


def question_lines(request: ApprovalRequest) -> list[str]:
    """Return the question as a sentence, then the reason and the exact input with every character visible."""
    from tui_agent.ui.approval.approval_rows import ApprovalRows
    from tui_agent.ui.approval.approval_summary import request_title, why_rows

    rows = [*why_rows(request, QUESTION_WIDTH), *ApprovalRows(request).rows(QUESTION_WIDTH, spaced=False)]
    return [request_title(request), *(row.plain.rstrip() for row in rows)]


def _theme_problem(name: str, locations: Locations, load: Callable[[], LoadedSettings], root: Path) -> str | None:
    """Return the error for an unknown theme, with the closest name, or for a broken one; None for a usable one."""
    if name == AUTO_THEME:
        return None
    # Imported here because it takes a tenth of a second, and most commands check no theme.
    from tui_agent.ui.app.themes import ThemeCatalogue, shipped_themes
    from tui_agent.workbench.plugins.plugin_entries import theme_files

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
    from tui_agent.ui.app.themes import read_theme, shipped_themes
    from tui_agent.workbench.plugins.plugin_entries import theme_file
    from tui_agent.workbench.plugins.plugin_loader import load_plugins

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


async def show_fleet(out: Path) -> int:
    """Show the screen of a fleet until the user leaves; return 1 if it has ended and a unit is not done, else 0."""
    # Imported here: no other command needs fleets.
    from tui_agent.fleet.driver_control import connected
    from tui_agent.fleet.fleet_directory import is_driven
    from tui_agent.ui.fleet.fleet_state import FleetFiles

    if not await asyncio.to_thread(is_driven, out):
        return await _run_fleet_app(FleetFiles(out), out)
    async with connected(out) as driver:
        files = FleetFiles(out, driver)
        async with asyncio.TaskGroup() as group:
            service = group.create_task(files.serve(driver))
            try:
                return await _run_fleet_app(files, out)
            finally:
                service.cancel()


async def _run_fleet_app(files: "FleetFiles", out: Path) -> int:
    from tui_agent.ui.base.terminal_environment import TerminalEnvironment
    from tui_agent.ui.fleet.fleet_app import FleetApp

    from .process.log_file import LOG_NAME

    locations = Locations.of_user()
    app = FleetApp(
        files,
        theme="auto",
        themes_dirs=(locations.user_themes_dir,),
        surroundings=TerminalEnvironment.of_environment(os.environ),
        log_file=locations.log_dir / LOG_NAME,
        notifications="auto",
        name=out.name,
    )
    await app.run_async()
    fleet = app.fleet.state
    unfinished = not fleet.running and any(row.state != "done" for row in fleet.rows.values())
    return app.return_code or int(unfinished)
