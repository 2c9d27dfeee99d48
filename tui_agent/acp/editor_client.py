"""The client at the other end: updates to it, and questions to its user."""

import logging
from collections.abc import Sequence

from acp import RequestError
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    PermissionOption,
    SessionNotification,
    ToolCallUpdate,
)
from pydantic import ValidationError

from .rpc_transport import RpcTransport
from .session_updates import Update

_LOG = logging.getLogger(__name__)


class EditorClient:
    """The client of one connection."""

    def __init__(self, transport: RpcTransport) -> None:
        self._transport = transport
        self._client: Client | None = None
        self.shows_terminals = False
        """True if it shows output in terminals of its own."""
        self.is_connected = True
        """False once the client is gone."""

    def connect(self, client: Client) -> None:
        """Use the library's connection for requests."""
        self._client = client

    def update(self, session_id: str, update: Update | AvailableCommandsUpdate | ConfigOptionUpdate) -> None:
        """Send an update; never waits."""
        params = SessionNotification(session_id=session_id, update=update)
        self._transport.notify("session/update", params.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def room(self) -> None:
        """Wait until the client has read most of the updates."""
        await self._transport.room()

    async def ask(self, session_id: str, call: ToolCallUpdate, options: Sequence[PermissionOption]) -> str | None:
        """Ask the user and return the id of the chosen option; None if there is no valid answer."""
        if self._client is None or not self.is_connected:
            return None
        try:
            answer = await self._client.request_permission(session_id=session_id, tool_call=call, options=list(options))
        except (RequestError, ConnectionError, ValidationError) as error:
            _LOG.warning("a question got no valid answer: %s", type(error).__name__)
            return None
        return answer.outcome.option_id if isinstance(answer.outcome, AllowedOutcome) else None
