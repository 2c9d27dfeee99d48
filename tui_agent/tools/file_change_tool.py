"""Base class of the tools that change one file."""

import asyncio
import os
from abc import abstractmethod
from functools import partial
from pathlib import Path
from typing import TypeVar

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.tool import Accesses, PathSubject, Preview, PreviewError, Subject, ToolContext, ToolResult

from .file_change import LoadedFile, PlannedChange, Target, load_file, make_change
from .file_versions import UnseenChange, UnseenChangeError, find_unseen_change
from .pinned_directory import ResolvedPath
from .text_format import printable
from .typed_tool import Arguments, PathText
from .workspace import WorkspaceTool


class FileArguments(Arguments):
    """Arguments of a tool that changes one file."""

    path: PathText


FileArgs = TypeVar("FileArgs", bound=FileArguments)


class FileChangeTool(WorkspaceTool[FileArgs]):
    """Tool that changes a text file, atomically."""

    @abstractmethod
    def _plan(self, args: FileArgs, target: Target, before: LoadedFile | None, *, checked: bool) -> PlannedChange:
        """Return the change of a loaded file, or of a new one. Called in a thread: a comparison can take seconds."""

    def call_accesses(self, args: FileArgs) -> Accesses:
        path = frozenset({self._workspace.resolve(args.path)})
        return Accesses(reads=path, writes=path)

    def call_subject(self, args: FileArgs) -> Subject:
        return PathSubject(self._workspace.given(args.path), "write")

    async def call_preview(self, args: FileArgs) -> Preview:
        """Return the change that a call would make now.

        Raises:
            PreviewError: only the version of the file keeps the call from succeeding; another call may still read it.
            ToolError: the call would fail for another reason.
        """
        try:
            return (await self._planned(args)).preview()
        except ToolError as error:
            try:
                preview = (await self._planned(args, checked=False)).preview()
            except ToolError:
                raise error from None
            unseen = error.unseen if isinstance(error, UnseenChangeError) else None
            reported = partial(unseen.count_as_seen, self._workspace.versions) if unseen is not None else None
            raise PreviewError(str(error), preview, reported) from error

    async def call_later_changes(self, args: FileArgs) -> str:
        path = self._workspace.resolve(args.path)
        if self._workspace.versions.last_seen(path) is None:
            return ""
        place, shown = ResolvedPath(path), self._workspace.display(path)
        async with self._workspace.alone_with(path):
            try:
                now = await load_file(place, shown)
            except ToolError:
                return ""
            unseen = await asyncio.to_thread(self._unseen_change, place, now) if now is not None else None
            if unseen is None:
                return ""
            unseen.count_as_seen(self._workspace.versions)
        return f"{shown} was changed after this call, by a hook or another program; {unseen.words}"

    async def run(self, args: FileArgs, context: ToolContext) -> ToolResult:
        async with self._workspace.alone_with(self._workspace.place(args.path, context.targets).path):
            try:
                plan = await self._planned(args, context)
            except UnseenChangeError as error:
                error.unseen.count_as_seen(self._workspace.versions)
                raise
            if not plan.changes_nothing:
                return await make_change(self._workspace, plan, context)
        return ToolResult.of_text(
            f"{plan.shown} already has exactly this content; nothing was written.",
            details={"outcome": "no change", "path": plan.path, "change": "none", "diff": ""},
        )

    async def _planned(
        self, args: FileArgs, context: ToolContext | None = None, *, checked: bool = True
    ) -> PlannedChange:
        target = await asyncio.to_thread(self._target, args.path, context)
        before = await load_file(target.place, target.shown)
        return await asyncio.to_thread(self._plan, args, target, before, checked=checked)

    def _target(self, path: str, context: ToolContext | None) -> Target:
        """Return the file that a call names. Blocks."""
        place = self._workspace.place(path, () if context is None else context.targets)
        resolved = place.path
        shown = self._workspace.display(resolved)
        if os.path.isdir(resolved):
            raise ToolError(f"{shown} is a directory; name a file")
        if path.endswith(os.sep):
            raise ToolError(f"{printable(path)} ends in a slash, so it names a directory; name a file")
        named = Path(os.path.normpath(os.path.join(self._workspace.root, self._workspace.given(path))))
        linked = f"{printable(path)} leads through a symbolic link to {shown}, which is the file changed"
        return Target(place, shown, (linked,) if named != resolved else ())

    def _unseen_change(self, place: ResolvedPath, now: LoadedFile) -> UnseenChange | None:
        """Return how a loaded file differs from the version that the model knows; None if it does not."""
        return find_unseen_change(self._workspace.versions, place.path, now.version, now.text)
