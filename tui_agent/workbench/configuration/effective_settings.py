"""Settings and credentials of a launch, merged from files, trust, environment and options; check of the theme."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from tui_agent.protocol.endpoint import environment_credential
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.settings import LoadedSettings, Locations, PluginSettings, is_web_address, load_settings
from tui_agent.workbench.configuration.launch_options import LaunchExtras, LaunchOptions

from .found_files import with_file_rules
from .project_trust import trust_for


def prepare_settings(options: LaunchOptions) -> tuple[Locations, LoadedSettings]:
    """Return the user's directories and the settings for these options.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    locations = Locations.of_user()
    return locations, load_effective_settings(options, locations)


def load_effective_settings(options: LaunchOptions, locations: Locations) -> LoadedSettings:
    """Return the settings that the files hold now, with these options on top.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    if options.extras.is_safe:
        return _safe_settings(options, locations)
    loaded = load_settings(
        locations,
        project=options.cwd,
        trust=trust_for(options.cwd, locations, given=options.trust),
        options=options.settings,
        option_rules=options.rules,
    )
    return with_file_rules(loaded, options.cwd)


def _safe_settings(options: LaunchOptions, locations: Locations) -> LoadedSettings:
    """Return the settings of the environment and the options alone, without what runs by itself.

    What restricts calls stays: rules of files that deny or ask, and a required sandbox.
    """
    loaded = load_settings(locations, options=options.settings, option_rules=options.rules, own=False)
    switched_off: JsonObject = {"hook_files": False, "plugins": PluginSettings(disabled=("*",))}
    try:
        all_settings = load_effective_settings(replace(options, extras=LaunchExtras()), locations)
    except ConfigurationError as error:
        problem = f"{error}. With --safe nothing of it is used, also none of its rules that deny or ask."
        ignored = (*loaded.ignored, problem)
        return replace(loaded, settings=loaded.settings.model_copy(update=switched_off), ignored=ignored)
    kept = [rule for rule in all_settings.rules if rule.layer != "options" and rule.verdict != "allow"]
    if all_settings.settings.sandbox == "required":
        switched_off["sandbox"] = "required"
    settings = loaded.settings.model_copy(update=switched_off)
    return replace(loaded, settings=settings, rules=(*kept, *loaded.rules))


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
        """Return the endpoint and the key that the environment has for it; the key may be missing.

        Args:
            environment: the variables, such as `ANTHROPIC_API_KEY`; `environment_credential` chooses one of them.
            base_url: the endpoint of the settings; None: `ANTHROPIC_BASE_URL`, else the API's own.
            key_command: the command that prints the key. With one, no key of the environment is used; the command
                is not run here.

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
                f"or try the offline model with --demo{_foreign_helper()}{_cloud_hint(environment)}"
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


def _cloud_hint(environment: Mapping[str, str]) -> str:
    """Return a hint if another agent is set to use a cloud."""
    found = (cloud for cloud in ("bedrock", "vertex", "foundry") if environment.get(f"CLAUDE_CODE_USE_{cloud.upper()}"))
    cloud = next(found, None)
    return "" if cloud is None else f"; for CLAUDE_CODE_USE_{cloud.upper()}, set the model to {cloud}/NAME"


def _foreign_helper() -> str:
    """Return a hint if another agent has a command for its key in the user's settings; it is never run here."""
    try:
        settings = (Path.home() / ".claude" / "settings.json").read_text("utf-8", "replace")
    except (OSError, RuntimeError):
        return ""
    return "; `apiKeyHelper` of ~/.claude/settings.json is not used, use `key_command`" * ("apiKeyHelper" in settings)
