"""Stands where an agent was given no permission policy: it says yes, and says that it does."""

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import GrantScope, PermissionDecision, PermissionMode
from tui_agent.protocol.tool import Tool


class AllowAllPolicy:
    """A permission checker for programs that bring their own safety, such as a container; its mode is `allow`."""

    @property
    def mode(self) -> PermissionMode:
        """Always `allow`."""
        return PermissionMode.ALLOW

    def set_mode(self, mode: PermissionMode) -> None:
        """Refuses every other mode: nothing here could keep it.

        Raises:
            ConfigurationError: `mode` is not `allow`.
        """
        if mode is not PermissionMode.ALLOW:
            raise ConfigurationError(f"mode {mode} needs a permission policy, and this agent was given none")

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        """There is none."""
        return None

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        """Allows."""
        return PermissionDecision(decision="allow", source="mode", reason="this agent has no permission policy")

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        """Nothing needs to be stored."""
        return None

    def grant_choices(self, tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
        """Nothing needs to be stored."""
        return ()

    def grant(self, rule: str, scope: GrantScope) -> None:
        """Changes nothing: every call is allowed as it is."""
