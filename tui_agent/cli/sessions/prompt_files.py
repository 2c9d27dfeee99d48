"""Files that the user names in a prompt: images to attach, and the first lines for the preview."""

import asyncio
import os
import re
from pathlib import Path

from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.permissions import PermissionChecker
from tui_agent.tools.pinned_directory import ResolvedPath, open_file
from tui_agent.tools.read_tool import IMAGE_LIMIT, ReadTool, image_block, image_type
from tui_agent.tools.workspace import Workspace
from tui_agent.ui.bridge.services import PromptImage

HEAD_BYTES = 4_096
"""Bytes that the preview reads."""

_SECRET_PART = re.compile(
    r"\.env(\..+)?|\.netrc|\.npmrc|\.pypirc|\.pgpass|id_(rsa|dsa|ed25519|ecdsa)|\.ssh|\.aws|\.gnupg|.+\.(pem|key|p12|pfx)"
)
"""Names of files and directories whose contents the preview does not show on the screen."""


class PromptFiles:
    """Reads files as the permission rules for `read` allow it."""

    def __init__(self, root: Path, policy: PermissionChecker) -> None:
        # The spool directory is not used: nothing runs here.
        self._workspace = Workspace(root, spool_dir=root)
        self._tool = ReadTool(self._workspace)
        self._policy = policy

    async def image(self, path: str, /, *, typed: bool) -> PromptImage | None:
        """Return an image; None if no such file exists.

        Args:
            path: its path, as the user gave it.
            typed: True if the user typed the path: then only a denial refuses it, not a question.

        Raises:
            ConfigurationError: a rule denies reading it, or it needs the user's approval and was not typed.
            ToolError: it is not an image, too large, damaged, or cannot be read.
        """
        place = await asyncio.to_thread(self._workspace.resolve, path)
        if not await asyncio.to_thread(os.path.isfile, place):
            return None
        shown = self._workspace.display(place)
        await asyncio.to_thread(self._refuse, path, shown, typed=typed)
        try:
            async with open_file(place, shown, place=ResolvedPath(place)) as (file, status):
                if status.st_size > IMAGE_LIMIT:
                    raise ToolError(
                        f"{shown} has {status.st_size:,} bytes; an image can have {IMAGE_LIMIT:,}. Resize it first."
                    )
                content = await file.read(IMAGE_LIMIT + 1)
        except OSError as error:
            raise ToolError(f"{shown} cannot be read: {error.strerror or error}.") from error
        media_type = image_type(content)
        if media_type is None:
            raise ToolError(f"{shown} is not a PNG, JPEG, GIF or WebP image. Without @ its path is sent as text.")
        block, (width, height) = await asyncio.to_thread(image_block, content, media_type, shown)
        return PromptImage(block, place.name, width, height)

    async def head(self, path: str, /) -> str:
        """Return the first bytes of a text file as text; empty if it is binary, secret, or cannot be read."""
        try:
            place = await asyncio.to_thread(self._workspace.resolve, path)
            if not await asyncio.to_thread(self._may_show, path, place):
                return ""
            async with open_file(place, path, place=ResolvedPath(place)) as (file, _):
                content = await file.read(HEAD_BYTES)
        except (ToolError, OSError):
            return ""
        return "" if b"\0" in content else content.decode("utf-8", "replace")

    def _refuse(self, path: str, shown: str, *, typed: bool) -> None:
        denial = self._policy.floor(self._tool, {"path": path})
        if denial is not None:
            raise ConfigurationError(f"{shown} is not attached: {denial.reason}.")
        if not typed:
            decision = self._policy.check(self._tool, {"path": path})
            if decision.decision != "allow":
                raise ConfigurationError(f"{shown} is not attached: {decision.reason}. Type @ before it to send it.")

    def _may_show(self, path: str, place: Path) -> bool:
        """True if the agent may read the file without a question, and its name is not that of a secret."""
        if any(_SECRET_PART.fullmatch(part) for part in place.parts):
            return False
        return self._policy.check(self._tool, {"path": path}).decision == "allow"
