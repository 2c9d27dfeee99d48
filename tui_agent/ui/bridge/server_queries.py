"""Tool servers of the session as the screen shows them, and what the user does with them."""

import re
from dataclasses import dataclass
from typing import Protocol

from tui_agent.protocol.prompt_command import PromptCommand

_PROMPT = re.compile(r"/([A-Za-z0-9_-]+):\S")
_RESOURCE = re.compile(r"(?:\A|(?<=\s))@([A-Za-z0-9_-]+):\S")


@dataclass(frozen=True, slots=True)
class ServerFact:
    """One tool server."""

    name: str
    origin: str
    """File, with its line if known, that configures it."""
    target: str
    """Command line or URL."""
    state: str
    """`connecting`, `ready`, `degraded`, `failed`, `closed` or `not enabled`."""
    error: str
    """Reason why it does not run; empty if it does."""
    info: str
    """Name and version, as the server reports them."""
    tools: tuple[str, ...]
    """Each tool, with the server's claims about it."""
    left_out: tuple[str, ...]
    """Tools that are not used, each with the reason."""
    prompts: tuple[str, ...]
    """Each prompt as the user types it, such as `/docs:explain what=…`."""
    resources: tuple[str, ...]
    """Each resource as the user types it, such as `@docs:memo://one`."""


class ServerService(Protocol):
    """The tool servers of a session."""

    @property
    def commands(self) -> tuple[PromptCommand, ...]:
        """The prompts of the servers, for menus."""
        ...

    def list(self) -> tuple[ServerFact, ...]:
        """Return the servers, in the order of their configuration."""
        ...

    def restart(self, name: str, /) -> str:
        """Start a server anew; return why that is impossible."""
        ...

    def log(self, name: str, /) -> str:
        """Return the last lines of a server."""
        ...

    def login(self, name: str, /) -> str:
        """Sign in to a server; return why that is impossible."""
        ...

    def logout(self, name: str, /) -> str:
        """Forget the sign-in to a server; return what was done."""
        ...

    async def expand(self, text: str, /) -> str:
        """Return an input with the prompt and the resources of servers that it names."""
        ...

    async def open_page(self, url: str, /) -> str:
        """Open a page in the user's browser; return why that is impossible."""
        ...


class ServerQueries:
    """Asks for tool servers; without a service there are none."""

    def __init__(self, service: ServerService | None = None) -> None:
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
