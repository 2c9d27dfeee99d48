"""The trials of a session: where its layers are stored, and what commands in them see."""

from pathlib import Path

from tui_agent.permissions.paths.protected_paths import ProtectedTree
from tui_agent.protocol.trial import Trials
from tui_agent.settings import Locations, Settings


def session_trials(
    root: Path, settings: Settings, locations: Locations, archive: Path, protected: ProtectedTree
) -> Trials | None:
    """Return what makes the layers of a session; None if the settings want none. Blocks.

    Args:
        root: the workspace.
        settings: the settings.
        locations: tui-agent's own directories, which commands do not see.
        archive: directory of saved tool output, which commands may read.
        protected: the protected paths of the workspace.
    """
    return None
