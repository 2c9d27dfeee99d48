"""A kind of sub-agent that the `agent` tool offers by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.provider import ModelProvider

MAX_LISTED = 10_000
"""Most characters of the list of kinds for the model."""
LISTED_DESCRIPTION = 500
"""Most characters of a description in it."""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """A kind of sub-agent. It has the rights of its parent and of this profile, whichever are tighter."""

    name: str
    description: str
    prompt: str
    """Its system prompt."""
    allows: Callable[[str], bool] | None = None
    """Returns True for the names of the tools that it may have; None: all of its parent's."""
    provider: Callable[[], ModelProvider] | None = None
    """Returns the model that it uses; None: that of its parent.

    Raises:
        ConfigurationError: the model cannot be used.
    """
    max_steps: int | None = None
    """Most steps of its run; None: as many as any sub-agent."""


def listed_profiles(profiles: Sequence[AgentProfile]) -> str:
    """Return names and descriptions for the model; if not all fit, it says how many are left out."""
    lines: list[str] = []
    room = MAX_LISTED
    for profile in profiles:
        description = " ".join(profile.description.split())
        cut = "…" if len(description) > LISTED_DESCRIPTION else ""
        line = f"- {profile.name}: {description[:LISTED_DESCRIPTION]}{cut}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    left_out = len(profiles) - len(lines)
    return "\n".join([*lines, *([f"({left_out} more are not listed for lack of room.)"] if left_out else [])])
