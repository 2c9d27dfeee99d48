"""Models of named endpoints, `PROVIDER/MODEL`: their endpoint, and their key, which no child process inherits."""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tui_agent.protocol.endpoint import CLOUDS, LIBRARIES, Endpoint
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.settings import Settings

from .effective_settings import Credentials

if TYPE_CHECKING:
    # Imported at run time only for a model of a named endpoint.
    from tui_agent.providers.model_catalog import ModelTarget


_TOKEN_VARIABLES = {"ANTHROPIC_API_KEY": "ANTHROPIC_AUTH_TOKEN"}
"""Variables that the SDK reads in place of another."""


def has_own_address(settings: Settings, environment: Mapping[str, str]) -> bool:
    """True if the default endpoint has an address of the user's own."""
    return bool(settings.base_url or environment.get("ANTHROPIC_BASE_URL"))


def target_of(settings: Settings, environment: Mapping[str, str]) -> "ModelTarget | None":
    """Return the model of a named endpoint that the settings choose; None for a model of the default endpoint.

    Raises:
        ConfigurationError: no endpoint has this name, or its configuration is incomplete.
    """
    if "/" not in settings.model:
        return None
    from tui_agent.providers.model_catalog import find_target

    return find_target(settings.model, settings.providers, own_address=has_own_address(settings, environment))


def plugin_of(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """Return the name of the plugin that offers the model; None for a model of an endpoint.

    The user's endpoints and the shipped ones come first, and an address of the user's own knows its names with a slash.
    """
    name, slash, _ = settings.model.strip().partition("/")
    if not slash or has_own_address(settings, environment) or name in settings.providers:
        return None
    # Imported here, because the first paint waits for it only with a model of this form.
    from tui_agent.providers.model_catalog import shipped_profiles
    from tui_agent.workbench.plugins.plugin_entries import has_provider

    return name if name not in shipped_profiles() and has_provider(name) else None


def require_key(settings: Settings, environment: Mapping[str, str]) -> None:
    """Check that requests to the model can be sent.

    Raises:
        ConfigurationError: a key is needed and none is set, the environment's address is not a URL, or the endpoint
            is unknown or incomplete. The model of a plugin is not checked.
    """
    if plugin_of(settings, environment) is not None:
        return
    target = target_of(settings, environment)
    if target is None:
        Credentials.require(environment, settings.base_url, settings.key_command)
    else:
        key_of(target.provider, target.endpoint, environment)


def lacks_key(settings: Settings, environment: Mapping[str, str]) -> bool:
    """True if the default endpoint would need a key, and none is set; named endpoints say themselves what they need.

    Raises:
        ConfigurationError: the environment's endpoint is not a URL.
    """
    return "/" not in settings.model and not _credentials(settings, environment).usable


def key_source(settings: Settings, environment: Mapping[str, str]) -> str:
    """Return the origin of the key in words, without the key.

    Raises:
        ConfigurationError: no endpoint has the model's name, or the endpoint of the environment is not a URL.
    """
    if (plugin := plugin_of(settings, environment)) is not None:
        return f"left to the plugin {plugin}"
    target = target_of(settings, environment)
    if target is None:
        return _credentials(settings, environment).key_source
    key_of(target.provider, target.endpoint, environment)
    if target.endpoint.key_command:
        return f"printed by `key_command` of `providers.{target.provider}`"
    if target.endpoint.kind in CLOUDS and target.endpoint.key_env is None:
        return f"looked up where the tools of {target.provider} have it"
    return f"{target.endpoint.key_env} is set" if target.endpoint.key_env else f"none for {target.provider}"


def missing_extra(endpoint: Endpoint) -> str:
    """Return the extra that an endpoint needs if it is not installed; else nothing."""
    library = LIBRARIES.get(endpoint.kind)
    try:
        return "" if library is None or find_spec(library) is not None else endpoint.kind
    except ModuleNotFoundError:
        return endpoint.kind


def _credentials(settings: Settings, environment: Mapping[str, str]) -> Credentials:
    return Credentials.of_environment(environment, settings.base_url, settings.key_command)


def key_of(provider: str, endpoint: Endpoint, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the key and the token of an endpoint, at most one of them: the name of the variable says which it is.

    Both are None if the endpoint names no variable or has a `key_command`.

    Raises:
        ConfigurationError: the variable that it names is not set.
    """
    if endpoint.key_env is None or endpoint.key_command:
        return None, None
    # With an address of a gateway, the token is that gateway's.
    other = None if environment.get("ANTHROPIC_BASE_URL") else _TOKEN_VARIABLES.get(endpoint.key_env)
    names = [endpoint.key_env, *([other] if other else [])]
    name = next((name for name in names if environment.get(name)), None)
    if name is None:
        raise ConfigurationError(f"no key for {provider}: set {endpoint.key_env}, as `providers.{provider}` names it")
    return (None, environment[name]) if "TOKEN" in name.upper() else (environment[name], None)


def withhold_named_secrets(settings: Settings, servers: Iterable[ToolServer] = ()) -> None:
    """Withhold the keys of endpoints and the tokens of tool servers from all children of this program.

    Variables that the user's own settings let through (`env.pass`) are inherited all the same.
    """
    # Imported here: the first screen needs the list of models, and none of the tools.
    from tui_agent.tools.processes.child_environment import pass_on, withhold

    pass_on(settings.env.passed)
    withhold(endpoint.key_env for endpoint in settings.providers.values() if endpoint.key_env is not None)
    withhold(notifier.token_env for notifier in settings.notify if notifier.token_env)
    if found := (*settings.mcp.values(), *servers):
        # Imported here so that a start without servers does not wait for it.
        from tui_agent.mcp.server_config import secret_variables

        withhold(name for server in found for name in secret_variables(server))
