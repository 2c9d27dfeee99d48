"""The failure of one unit; the others go on."""

from tui_agent.protocol.errors import TuiAgentError


class UnitFailureError(TuiAgentError):
    """A unit cannot start or go on. The text is the reason, in words for the user."""
