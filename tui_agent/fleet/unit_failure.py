"""The failure of one unit; the others continue."""

from tui_agent.protocol.errors import TuiAgentError


class UnitFailureError(TuiAgentError):
    """A unit cannot start or continue. The text is the reason, in words for the user."""
