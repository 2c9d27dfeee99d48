"""Settings and credentials of a launch, merged from files, trust, environment and options; check of the theme."""

import asyncio
import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tui_agent.cli.launch_options import LaunchOptions
from tui_agent.protocol.environment_key import environment_credential
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.settings import AUTO_THEME, LoadedSettings, Locations, is_web_address, load_settings

from .hook_file_trust import with_file_rules
from .project_trust import trust_for


def prepare_settings(options: LaunchOptions) -> tuple[Locations, LoadedSettings]:
    """Return the user's directories and the settings for these options.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    locations = Locations.of_user(os.environ)
    return locations, load_effective_settings(options, locations)


def load_effective_settings(options: LaunchOptions, locations: Locations) -> LoadedSettings:
    """Return the settings that the files hold now, with these options on top.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    loaded = load_settings(
        locations,
        project=options.cwd,
        trust=trust_for(options.cwd, locations, given=options.trust),
        options=options.settings,
        option_rules=options.rules,
    )
    return with_file_rules(loaded, options.cwd)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Key and endpoint of the Messages API; a project never sets them.

    `repr` shows no secret.
    """

    api_key: str | None = field(default=None, repr=False)
    auth_token: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    """Endpoint; None is the API's own. It may contain a secret, too."""
    has_command: bool = False
    """True if a command of the settings prints the key."""

    @classmethod
    def of_environment(
        cls, environment: Mapping[str, str], base_url: str | None, key_command: str = ""
    ) -> "Credentials":
        """Return the credentials of the environment, or those that a command of the settings prints.

        The endpoint is that of the settings, else `ANTHROPIC_BASE_URL`; `environment_credential` chooses the key.

        Raises:
            ConfigurationError: the environment's endpoint is not a URL.
        """
        endpoint = base_url or environment.get("ANTHROPIC_BASE_URL") or None
        if endpoint is not None and not is_web_address(endpoint):
            # The value stays out of the message: it may be the key, put into the wrong variable.
            raise ConfigurationError("ANTHROPIC_BASE_URL is not a URL such as https://host/path")
        if key_command:
            return cls(None, None, endpoint, True)
        return cls(*environment_credential(endpoint, environment), endpoint)

    @classmethod
    def require(cls, environment: Mapping[str, str], base_url: str | None, key_command: str = "") -> "Credentials":
        """Return credentials that requests can be sent with.

        Raises:
            ConfigurationError: there are none, or the environment's endpoint is not a URL.
        """
        found = cls.of_environment(environment, base_url, key_command)
        if not found.usable:
            raise ConfigurationError(
                "no key: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for an endpoint of your own, "
                f"or try the offline model with --demo{_foreign_helper()}"
            )
        return found

    @property
    def usable(self) -> bool:
        """True if requests can be sent: with a key, or to the user's own endpoint, which may need none."""
        return bool(self.api_key or self.auth_token or self.base_url or self.has_command)

    @property
    def host(self) -> str:
        """Endpoint without the parts that may contain a secret: user name, password, path, query."""
        if self.base_url is None:
            return "default of the Messages API"
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @property
    def key_source(self) -> str:
        """Origin of the key, without the key."""
        if self.has_command:
            return "printed by `key_command`"
        if self.api_key:
            return "ANTHROPIC_API_KEY is set"
        return "ANTHROPIC_AUTH_TOKEN is set" if self.auth_token else f"not set; {self.host} may not need one"


def _foreign_helper() -> str:
    """Return a hint if another agent has a command for its key in the user's settings; it is never run here."""
    try:
        settings = (Path.home() / ".claude" / "settings.json").read_text("utf-8", "replace")
    except (OSError, RuntimeError):
        return ""
    return "; `apiKeyHelper` of ~/.claude/settings.json is not used, use `key_command`" * ("apiKeyHelper" in settings)


def refuse_unknown_theme(name: str, options: LaunchOptions) -> None:
    """Check the name in `--theme`, also without a screen. Blocks.

    Raises:
        ConfigurationError: no theme has this name.
    """
    locations = Locations.of_user(os.environ)
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


def _theme_problem(name: str, locations: Locations, load: Callable[[], LoadedSettings], root: Path) -> str | None:
    """Return the error for an unknown theme, with the closest name, or for a broken one; None for a usable one."""
    if name == AUTO_THEME:
        return None
    # Imported here because it takes a tenth of a second, and most commands check no theme.
    from tui_agent.cli.plugins.plugin_entries import theme_files
    from tui_agent.ui.app.themes import ThemeCatalogue, shipped_themes

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
