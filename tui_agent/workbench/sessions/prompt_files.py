"""Files that the user names in a prompt: what is attached, and the first lines for the preview."""

import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.facts.screen_facts import Attachment, PromptAttachment, refuse_too_many
from tui_agent.protocol.messages import DocumentBlock, UserBlock
from tui_agent.protocol.permissions import PermissionChecker
from tui_agent.protocol.programs import find_program
from tui_agent.protocol.prompt_references import file_mentions, media_type_of
from tui_agent.tools.line_pages import PIECE, LinePage, LineRequest, read_lines
from tui_agent.tools.media.media_blocks import load_media, media_of
from tui_agent.tools.pinned_directory import ResolvedPath, open_file
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.tools.read_tool import LINE_WIDTH, PAGE_CHARACTERS, ReadTool, numbered
from tui_agent.tools.search.file_listing import list_files
from tui_agent.tools.search.search_engine import find_ripgrep
from tui_agent.tools.text_format import SAMPLE_SIZE, counted, find_format, is_binary
from tui_agent.tools.workspace import Workspace

HEAD_BYTES = 4_096
"""Bytes that the preview shows."""
_MOST_READ = 1024 * 1024
"""Bytes that are searched for the line with which a preview begins."""
MOST_LISTED = 300
"""Names in the listing of a directory."""

_CLIPBOARD_SECONDS = 5.0
_LARGEST_IMAGE = 50 * 1024**2
"""Largest image of the clipboard in bytes, as for files."""

_LINES = re.compile(
    r"(?P<path>.+?)(?::(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?|#L(?P<from>\d{1,9})(?:-L?(?P<to>\d{1,9}))?)\Z",
    re.DOTALL,
)
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

    async def attachment(self, path: str, /, *, typed: bool) -> PromptAttachment | None:
        """Return an image, a PDF, lines of a text file, or the listing of a directory.

        None if the path does not exist, or is a directory and does not end in a slash.

        Args:
            path: its path, as the user gave it: `a.png`, `a.pdf`, `a.py:10-40`, `a.py#L10` or `a/`.
            typed: True if the user typed the path: then only a denial refuses it, not a question.

        Raises:
            ConfigurationError: a rule denies reading it, or it needs the user's approval and was not typed.
            ToolError: it is of another kind, too large, damaged, cannot be read, or has fewer lines.
        """
        place = await asyncio.to_thread(self._workspace.resolve, path)
        named = None
        if not await asyncio.to_thread(os.path.exists, place) and (named := _LINES.match(path)) is not None:
            path = named["path"]
            place = await asyncio.to_thread(self._workspace.resolve, path)
        if not await asyncio.to_thread(os.path.exists, place):
            return None
        shown = self._workspace.display(place)
        if await asyncio.to_thread(place.is_dir):
            if named is not None or not path.endswith("/"):
                return None
            await asyncio.to_thread(self._refuse, path, shown, typed=typed)
            return PromptAttachment(await self._listing(place, path), shown)
        await asyncio.to_thread(self._refuse, path, shown, typed=typed)
        try:
            if named is None:
                return await self._media(place, shown)
            first = int(named["first"] or named["from"])
            last = int(named["last"] or named["to"] or first)
            return PromptAttachment(await self._lines(place, shown, named[0], first, last), shown)
        except OSError as error:
            raise ToolError(f"{shown} cannot be read: {error.strerror or error}.") from error

    async def attached(self, text: str, *, typed: bool) -> list[Attachment]:
        """Return the files that a text names with `@` and that are sent with it.

        Args:
            typed: True if the user typed it. Otherwise a mention that cannot be attached, or only after a question,
                stays text.

        Raises:
            ConfigurationError, ToolError: like `attachment`.
            TuiAgentError: they are too many or too large for one message.
        """
        found: list[Attachment] = []
        for path in file_mentions(text).values():
            try:
                one = await self.attachment(path, typed=typed)
            except (ConfigurationError, ToolError):
                if typed:
                    raise
                continue
            found += [] if one is None else [one.block]
        refuse_too_many(found)
        return found

    async def given(self, content: bytes, name: str) -> UserBlock:
        """Return an image or a PDF from its bytes, such as one that an editor sends; `name` is for messages.

        Raises:
            ToolError: it is neither, or cannot be sent.
        """
        media_type = media_type_of(content[:SAMPLE_SIZE])
        if media_type is None:
            raise ToolError(f"{name} is not a PNG, JPEG, GIF or WebP image or a PDF.")
        return (await media_of(content, media_type, name, CancellationToken())).block

    async def pasted(self) -> PromptAttachment | None:
        """Return the image in the clipboard of the desktop; None if there is none.

        Raises:
            ToolError: it cannot be sent.
        """

        content = await clipboard_image(self._workspace.root)
        media_type = media_type_of(content[:SAMPLE_SIZE]) if content else None
        if media_type is None:
            return None
        found = await media_of(content, media_type, "the clipboard", CancellationToken())
        block = found.block.model_copy(update={"name": "clipboard"})
        return PromptAttachment(block, "clipboard", found.size or f"{len(found.content):,} bytes")

    async def _media(self, place: Path, shown: str) -> PromptAttachment:
        """Return an image or a PDF."""
        async with open_file(place, shown, place=ResolvedPath(place)) as (file, status):
            start = await file.read(SAMPLE_SIZE)
            media_type = media_type_of(start)
            if media_type is None:
                raise ToolError(f"{shown} is not a PNG, JPEG, GIF or WebP image or a PDF. Without @ its path is text.")
            found = await load_media(file, status, start, media_type, shown, CancellationToken())
        block = found.block.model_copy(update={"name": place.name})
        return PromptAttachment(block, place.name, found.size or f"{len(found.content):,} bytes")

    async def _lines(self, place: Path, shown: str, name: str, first: int, last: int) -> DocumentBlock:
        """Return lines of a text file with their numbers."""
        if first < 1 or last < first:
            raise ToolError(f"{shown}: lines {first} to {last} are not a range; lines count from 1.")
        async with open_file(place, shown, place=ResolvedPath(place)) as (file, status):
            start = await file.read(PIECE)
            sample = start[:SAMPLE_SIZE]
            if is_binary(sample):
                raise ToolError(f"{shown} is not a text file, so it has no lines.")
            request = LineRequest(((first, last),), LINE_WIDTH, PAGE_CHARACTERS)
            page = await read_lines(file, status, await find_format(sample), start, request, lambda: False)
        if page.total is not None and page.total < last:
            raise ToolError(f"{shown} has only {counted(page.total, 'line')}; there is no line {last:,}.")
        text = await asyncio.to_thread(_page_text, page, last)
        return DocumentBlock(media_type="text/plain", data=text, name=name)

    async def _listing(self, place: Path, name: str) -> DocumentBlock:
        """Return the names of the files below a directory, without those that `.gitignore` or a rule excludes."""
        try:
            found = await list_files(
                ResolvedPath(place), self._workspace.root, find_ripgrep(self._workspace.root), CancellationToken()
            )
        except OSError as error:
            raise ToolError(f"{name} cannot be listed: {error.strerror or error}.") from error
        shown = await asyncio.to_thread(self._without_denied, place, found.names)
        notes = [f"[{counted(len(found.names), 'file')}{'' if found.complete else ' or more'}]"]
        if len(shown) == MOST_LISTED < len(found.names):
            notes = [f"[the first {MOST_LISTED} of {len(found.names):,} files{'' if found.complete else ' or more'}]"]
        return DocumentBlock(media_type="text/plain", data="\n".join([*shown, *notes]), name=name)

    def _without_denied(self, place: Path, names: Sequence[str]) -> list[str]:
        shown: list[str] = []
        for name in names:
            if len(shown) == MOST_LISTED:
                break
            if self._policy.check(self._tool, {"path": str(place / name)}).decision != "deny":
                shown.append(self._workspace.display(place / name))
        return shown

    async def head(self, path: str, line: int = 1, /) -> str:
        """Return at most `HEAD_BYTES` bytes of a file's text from a line on, counted from 1.

        Empty if it is binary or secret, has no such line near its beginning, or may not or cannot be read.
        """
        try:
            place = await asyncio.to_thread(self._workspace.resolve, path)
            if not await asyncio.to_thread(self._may_show, path, place):
                return ""
            async with open_file(place, path, place=ResolvedPath(place)) as (file, _):
                content = await file.read(HEAD_BYTES if line == 1 else _MOST_READ)
        except (ToolError, OSError):
            return ""
        if b"\0" in content:
            return ""
        parts = content.split(b"\n", line - 1)
        return parts[-1][:HEAD_BYTES].decode("utf-8", "replace") if len(parts) == line else ""

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


def _page_text(page: LinePage, last: int) -> str:
    rows = [numbered(line) for line in page.lines]
    if page.full:
        rows.append(f"[only up to line {page.lines[-1].number:,} of the {last:,}: the rest is too long to attach]")
    return "\n".join(rows)


def readers(environment: Mapping[str, str], workspace: Path) -> list[tuple[str, ...]]:
    """Return the command lines that may print the image; none without a desktop or its program. Blocks."""
    known: list[tuple[str, ...]] = []
    if environment.get("WAYLAND_DISPLAY"):
        known.append(("wl-paste", "--no-newline", "--type", "image/png"))
    if environment.get("DISPLAY"):
        known.append(("xclip", "-selection", "clipboard", "-target", "image/png", "-out"))
    if sys.platform == "darwin":
        known.append(("pngpaste", "-"))
    found = ((find_program(name, workspace), rest) for name, *rest in known)
    return [(str(program), *rest) for program, rest in found if program is not None]


async def clipboard_image(workspace: Path) -> bytes:
    """Return the PNG in the clipboard; empty if there is none."""
    for command in await asyncio.to_thread(readers, os.environ, workspace):
        with suppress(OSError, TimeoutError):
            if content := await _output_of(command):
                return content
    return b""


async def _output_of(command: tuple[str, ...]) -> bytes:
    """Return what a program prints; empty if it fails or prints too much."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(os.environ),
        start_new_session=True,
    )
    assert process.stdout is not None
    pieces: list[bytes] = []
    try:
        async with asyncio.timeout(_CLIPBOARD_SECONDS):
            while (piece := await process.stdout.read(65_536)) and sum(map(len, pieces)) <= _LARGEST_IMAGE:
                pieces.append(piece)
            if piece or await process.wait():
                return b""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return b"".join(pieces)
