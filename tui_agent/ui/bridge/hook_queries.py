"""Questions of the screen about hooks."""

from .hook_facts import HookFact, HookService


class HookQueries:
    """Asks for hooks; without a service there are none."""

    def __init__(self, service: HookService | None = None) -> None:
        self._service = service

    def list(self) -> tuple[HookFact, ...]:
        """Return the hooks in the order in which they are asked."""
        return self._service.list() if self._service is not None else ()
