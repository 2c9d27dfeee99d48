"""Variables of the environment that settings name: as secrets, which no child process inherits, or to be inherited."""

from collections.abc import Iterable

from tui_agent.protocol.server_entries import ToolServer
from tui_agent.settings import Settings
from tui_agent.tools.processes.child_environment import pass_on, withhold


def withhold_named_secrets(settings: Settings, servers: Iterable[ToolServer] = ()) -> None:
    """Withhold the keys of endpoints and the tokens of tool servers from all children of this program.

    Variables that the user's own settings let through (`env.pass`) are inherited all the same.
    """
    pass_on(settings.env.passed)
    withhold(endpoint.key_env for endpoint in settings.providers.values() if endpoint.key_env is not None)
    withhold(notifier.token_env for notifier in settings.notify if notifier.token_env)
    if found := (*settings.mcp.values(), *servers):
        # Imported here so that a start without servers does not wait for it.
        from tui_agent.mcp.server_config import secret_variables

        withhold(name for server in found for name in secret_variables(server))
