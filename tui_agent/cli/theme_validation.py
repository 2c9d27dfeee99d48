"""Whether there is a theme of the name that `--theme` gives; a page of its own, because themes cost an import."""

import asyncio
import difflib

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.settings import LoadedSettings, Locations
from tui_agent.ui.app.themes import ThemeCatalogue, shipped_themes


def refuse_unknown_theme(name: str, locations: Locations) -> None:
    """A misspelt `--theme` is a usage error, also without a screen; one in a settings file is told on the screen.

    Raises:
        ConfigurationError: no theme has the name.
    """
    if words := unknown_theme(name, locations):
        raise ConfigurationError(f"--theme: {words}")


def wrong_theme_setting(loaded: LoadedSettings, locations: Locations) -> str | None:
    """Return what to say of a `ui.theme` in the settings that no theme has; None where that is fine. Blocks."""
    origin = loaded.origins.get("ui.theme")
    words = unknown_theme(loaded.settings.ui.theme, locations) if origin else None
    return None if words is None else f"{origin}: `ui.theme`: {words}"


def unknown_theme(name: str, locations: Locations) -> str | None:
    """Return the error for a theme that is unknown, with the nearest name, or broken; None for a usable one. Blocks."""
    shelf = ThemeCatalogue((shipped_themes(), locations.user_themes_dir))
    if shelf.find(name) is not None:
        return None
    problems = [problem.text for problem in asyncio.run(shelf.read_all()) if problem.path.stem == name]
    if problems:
        return problems[0]
    near = difflib.get_close_matches(name, shelf.names, n=1)
    return f"there is no theme {name!r}; " + (
        f"did you mean {near[0]}?" if near else f"there are {', '.join(shelf.names)}"
    )
