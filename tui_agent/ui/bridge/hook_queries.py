"""Questions of the screen about hooks."""

from typing import TYPE_CHECKING

from tui_agent.protocol.facts.hook_facts import HookFact

if TYPE_CHECKING:
    from tui_agent.workbench.session_hooks import SessionHooks


class HookQueries:
    """Asks for hooks; without a service there are none."""

    def __init__(self, service: "SessionHooks | None" = None) -> None:
        self._service = service

    def list(self) -> tuple[HookFact, ...]:
        """Return the hooks in the order in which they are asked."""
        return self._service.list() if self._service is not None else ()
