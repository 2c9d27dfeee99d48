"""Tool servers of the session as the screen shows them, and what the user does with them."""

import re
from typing import TYPE_CHECKING

from tui_agent.protocol.facts.server_facts import ServerFact
from tui_agent.protocol.prompt_command import PromptCommand

if TYPE_CHECKING:
    from tui_agent.workbench.session_servers import SessionServers

_PROMPT = re.compile(r"/([A-Za-z0-9_-]+):\S")
_RESOURCE = re.compile(r"(?:\A|(?<=\s))@([A-Za-z0-9_-]+):\S")


class ServerQueries:
    """Asks for tool servers; without a service there are none."""

    def __init__(self, service: "SessionServers | None" = None) -> None:
        self._service = service

    @property
    def commands(self) -> tuple[PromptCommand, ...]:
        """The prompts of the servers, for menus."""
        return self._service.commands if self._service is not None else ()

    def list(self) -> tuple[ServerFact, ...]:
        """Return the servers, in the order of their configuration."""
        return self._service.list() if self._service is not None else ()

    def restart(self, name: str) -> str:
        """Start a server anew; return why that is impossible."""
        return self._service.restart(name) if self._service is not None else ""

    def log(self, name: str) -> str:
        """Return the last lines of a server."""
        return self._service.log(name) if self._service is not None else ""

    def login(self, name: str) -> str:
        """Sign in to a server; return why that is impossible."""
        return self._service.login(name) if self._service is not None else ""

    def logout(self, name: str) -> str:
        """Forget the sign-in to a server; return what was done."""
        return self._service.logout(name) if self._service is not None else ""

    async def expand(self, text: str) -> str:
        """Return an input with the prompt and the resources of servers that it names.

        Raises:
            TuiAgentError: a server does not have what the text names, or does not run.
        """
        return await self._service.expand(text) if self._service is not None else text

    async def open_page(self, url: str) -> str:
        """Open a page in the user's browser; return why that is impossible."""
        return await self._service.open_page(url) if self._service is not None else "No browser can be opened here."

    def are_named_in(self, text: str) -> bool:
        """True if a text names a prompt or a resource of a server."""
        named = {match[1] for match in _RESOURCE.finditer(text)}
        named |= {match[1]} if (match := _PROMPT.match(text)) is not None else set()
        return bool(named) and not named.isdisjoint(fact.name for fact in self.list())
