"""Questions of the screen about hooks."""

from typing import TYPE_CHECKING

from tui_agent.protocol.facts.hook_facts import HookFact

from .exchange import Exchange, Query

if TYPE_CHECKING:
    from tui_agent.workbench.session_hooks import SessionHooks


class HookQueries:
    """Asks for hooks through an exchange; without a service there are none."""

    def __init__(self, exchange: Exchange, service: "SessionHooks | None" = None) -> None:
        self.exchange = exchange
        self._service = service

    @Query("hooks", (), lasting=True)
    def list(self) -> tuple[HookFact, ...]:
        """Return the hooks in the order in which they are asked."""
        return self._service.list() if self._service is not None else ()
