"""The last lines of a server: its standard error, its log messages, and what tui-agent notes about it."""

import logging
from collections import deque

from tui_agent.protocol.secret_variables import mask_secrets
from tui_agent.protocol.visible_text import escaped

_LOG = logging.getLogger("tui_agent.mcp")
_LINES = 500
_LONGEST_LINE = 2_000


class ServerLog:
    """The newest lines of one server, which also go to the log file with `--verbose`."""

    def __init__(self, server: str) -> None:
        self.secrets: frozenset[str] = frozenset()
        """Values that no line shows."""
        self._server = server
        self._lines: deque[str] = deque(maxlen=_LINES)

    def add(self, text: str) -> None:
        """Add a text, each of its lines shortened and with escapes for hidden characters and without secrets."""
        for line in text.splitlines() or [""]:
            masked = self.masked(line[: 2 * _LONGEST_LINE])
            shown = escaped(masked[:_LONGEST_LINE]) + ("…" if len(masked) > _LONGEST_LINE else "")
            self._lines.append(shown)
            _LOG.info("%s: %s", self._server, shown)

    def masked(self, text: str) -> str:
        """Return a text without the secrets."""
        return mask_secrets(text, self.secrets)

    @property
    def text(self) -> str:
        """All lines, the oldest first."""
        return "\n".join(self._lines)

    @property
    def last(self) -> str:
        """The newest line that is not empty; empty without one."""
        return next((line for line in reversed(self._lines) if line.strip()), "")
