"""The subject `folders`: adds folders to the workspace while a session is open."""

import asyncio
import os
from pathlib import Path

from tui_agent.agent import AgentLoop
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Noticed
from tui_agent.protocol.setting_files import parse_toml

from .configuration.permission_rules import check_folder
from .configuration.user_settings import read_user_file, store_setting

SETTING = "permissions.folders"

_FOR_MODEL = (
    "The user added {} to the workspace. Files in it are read and changed under the same rules as those of the working "
    "directory; name them by their absolute paths."
)


class SessionFolders:
    """Adds folders to the workspace of a session; a resumed session in the same directory still has them."""

    def __init__(self, loop: AgentLoop, policy: PermissionPolicy, file: Path) -> None:
        """
        Args:
            loop: the agent, whose model gets a notice.
        """
        self._loop = loop
        self._policy = policy
        self._file = file

    @property
    def in_force(self) -> tuple[Path, ...]:
        """The added folders, links followed."""
        return self._policy.folders

    async def check(self, typed: str, /) -> Path:
        """Return the folder that a text names, links followed.

        Raises:
            ConfigurationError: it is not a folder, contains the workspace, or is part of it already.
        """
        folder = await asyncio.to_thread(check_folder, Path(os.path.expanduser(typed)), self._policy.workspace)
        workspace = self._policy.workspace
        if known := next((top for top in (workspace, *self.in_force) if folder.is_relative_to(top)), None):
            raise ConfigurationError(f"{folder} is part of the workspace already, with {known}")
        return folder

    async def add(self, typed: str, /) -> None:
        """Add a folder for this session.

        Raises:
            ConfigurationError: as for `check`.
        """
        self.join(await self.check(typed))

    async def keep(self, typed: str, /) -> str:
        """Add a folder for this session and, in the user's settings, for all later ones; return the file.

        Raises:
            ConfigurationError: as for `check`, or the settings cannot be written; nothing was changed.
        """
        folder = await self.check(typed)
        await asyncio.to_thread(_store, self._file, folder)
        # The live settings may have seen the file first.
        if folder not in self.in_force:
            self.join(folder)
        return str(self._file)

    def join(self, folder: Path) -> None:
        """Let a folder count as part of the workspace from now on, and tell the user and the model."""
        self._policy.add_folder(folder)
        self._loop.gate.reconsider()
        text = f"Added to the workspace: {folder}."
        self._loop.bus.publish(Noticed(code="folder_added", text=text, context={"folder": str(folder)}))
        self._loop.notify(_FOR_MODEL.format(folder))


def _store(file: Path, folder: Path) -> None:
    """Add a folder to the user's settings. Blocks."""
    try:
        seen = read_user_file(file)
        section: object = parse_toml(seen).get("permissions", {})
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file}: {error}") from error
    listed: list[object] = list(section.get("folders", [])) if isinstance(section, dict) else []  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
    if str(folder) not in listed:
        store_setting(file, SETTING, [*listed, str(folder)], seen=seen)
