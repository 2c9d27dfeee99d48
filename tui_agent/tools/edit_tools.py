"""The tools that change a file: write replaces all of it, edit replaces exact text or a cell of a notebook."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from tui_agent.protocol.errors import ToolError

from .file_change import FileArguments, FileChangeTool, LoadedFile, PlannedChange, Target, plan_change
from .file_errors import missing_file_error
from .file_versions import UnseenChangeError
from .media.notebook_cells import CellAction, CellEdit, change_notebook
from .media.notebook_file import SUFFIX, read_notebook
from .pinned_directory import ResolvedPath
from .text_format import uses_crlf
from .text_match import Replacement, replace_text
from .typed_tool import PathText
from .unified_diff import replaced_lines
from .workspace import Workspace

_WRITE_DESCRIPTION = """Creates a file, or replaces the whole content of an existing file.
Read an existing file first; the call is refused if the file changed since you read it. Missing directories are created.
An existing file keeps its mode, encoding, byte order mark and line endings. To change part of a file, use edit."""


class WriteArguments(FileArguments):
    """Arguments of the write tool."""

    path: PathText = Field(
        description="File to write: absolute, relative to the working directory, or starting with ~."
    )
    content: str = Field(description="The whole new content.")


class WriteTool(FileChangeTool[WriteArguments]):
    """Tool that creates or replaces a text file, atomically."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace, "write", _WRITE_DESCRIPTION, WriteArguments)

    def _notices(self, path: Path) -> bool:
        return os.path.lexists(path)

    def call_summary(self, args: WriteArguments) -> str:
        lines = args.content.count("\n") + (not args.content.endswith("\n") and bool(args.content))
        return f"{args.path} ({lines:,} {'line' if lines == 1 else 'lines'})"

    def _plan(self, args: WriteArguments, target: Target, before: LoadedFile | None, *, checked: bool) -> PlannedChange:
        place, shown, notes = target
        if before is None:
            if not self._workspace.root.is_dir():
                notes += ("the working directory was removed; this makes it again",)
            return plan_change(place, shown, None, args.content, args.content.encode(), notes)
        if checked:
            self._refuse_unknown(place, shown, before)
        text = _with_endings_of(before, args.content)
        try:
            content = before.format.encode_change(before.content, text, before.text, text)
        except ToolError as error:
            raise ToolError(f"{shown} was not changed: {error}") from error
        return plan_change(place, shown, before, text, content, notes)

    def _refuse_unknown(self, place: ResolvedPath, shown: str, before: LoadedFile) -> None:
        """Refuse a file that was never read, or changed since it was read."""
        seen = self._workspace.versions.last_seen(place.path)
        if seen is None:
            raise ToolError(f"{shown} exists, but you have not read it; nothing was written: read it first")
        if unseen := self._unseen_change(place, before):
            what_to_do = "repeat the call if it is right" if unseen.is_whole else "read it again, then repeat the call"
            words = f"{shown} changed on disk since it was last read; nothing was written: {what_to_do}"
            raise UnseenChangeError(words, unseen)
        if seen.is_partly_seen:
            raise ToolError(f"you have not seen all of what changed in {shown}; nothing was written: read it again")


def _with_endings_of(before: LoadedFile, content: str) -> str:
    """Return `content` with the line endings that most lines of the old text have, if it has any."""
    if "\n" not in before.text:
        return content
    # The model writes LF whatever the file has.
    plain = content.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if uses_crlf(before.text) else plain


_EDIT_DESCRIPTION = """Replaces exact text in a file.
`old_string` must match the file exactly, whitespace included, and occur only once, unless `replace_all` is set.
Do not include the line numbers that read shows. If the file changed since you last read it, you are shown the change; \
the edit is refused only if it meets that change.
The file keeps its mode, encoding, byte order mark and line endings.
In a notebook (.ipynb) the text is that of a cell as read shows it, not JSON; outputs stay as they are."""


class EditArguments(FileArguments):
    """Arguments of the edit tool."""

    path: PathText = Field(
        description="File to change: absolute, relative to the working directory, or starting with ~."
    )
    old_string: str = Field(description="The exact text to replace; empty to create a file.")
    new_string: str = Field(description="The new text; empty to delete old_string.")
    replace_all: bool = Field(default=False, description="Replace every occurrence; otherwise there must be only one.")
    cell: int | None = Field(
        default=None,
        ge=1,
        description="Notebook: number of the cell; an empty old_string then replaces its whole source.",
    )
    cell_action: CellAction = Field(
        default="edit",
        description="Notebook: delete the cell, or insert new_string before it (default: at the end); with an empty "
        "old_string.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.cell_action != "edit" and self.old_string:
            raise ValueError("old_string must be empty when a cell is inserted or deleted")
        if self.cell_action == "delete" and (self.cell is None or self.new_string):
            raise ValueError("to delete a cell, set cell, and leave new_string empty")
        return self


class EditTool(FileChangeTool[EditArguments]):
    """Tool that replaces exact text in a file, atomically."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace, "edit", _EDIT_DESCRIPTION, EditArguments)

    def _notices(self, path: Path) -> bool:
        return self._workspace.versions.last_seen(path) is not None

    def call_summary(self, args: EditArguments) -> str:
        removed, added = replaced_lines(args.old_string, args.new_string)
        cell = f" {args.cell_action.replace('_', ' ').removeprefix('edit')} cell {args.cell or 'at the end'}"
        where = " ".join(cell.split()) + " " if args.cell or args.cell_action != "edit" else ""
        return f"{args.path} {where}(+{added} −{removed}{' everywhere' if args.replace_all else ''})"

    def _plan(self, args: EditArguments, target: Target, before: LoadedFile | None, *, checked: bool) -> PlannedChange:
        place, shown, notes = target
        if before is None:
            if args.old_string or args.cell is not None or args.cell_action != "edit":
                raise missing_file_error(place.path, shown)
            return plan_change(place, shown, None, args.new_string, args.new_string.encode(), notes)
        unseen = self._unseen_change(place, before) if checked else None
        try:
            plan, lines = self._edited(args, target, before)
        except ToolError as error:
            words = f"{shown} was not changed: {error}"
            if unseen is None:
                raise ToolError(words) from error
            raise UnseenChangeError(f"{words}\n{shown} changed on disk since it was last read", unseen) from error
        # An edit of other lines is as safe as in the file that was read.
        if unseen is not None and unseen.meets(lines):
            where = "changed on disk since it was last read, where this edit would change it"
            raise UnseenChangeError(f"{shown} {where}; nothing was written: repeat the call if it is right", unseen)
        return replace(plan, unseen=unseen)

    def _edited(
        self, args: EditArguments, target: Target, before: LoadedFile
    ) -> tuple[PlannedChange, tuple[tuple[int, int], ...]]:
        """Return the change of the text, or of a cell of a notebook, and the lines that it replaces: first and last."""
        place, shown, notes = target
        book = read_notebook(before.text) if shown.endswith(SUFFIX) else None
        if book is not None:
            edit = CellEdit(args.cell, args.cell_action, args.old_string, args.new_string, args.replace_all)
            changed = change_notebook(book, edit, shown)
            content = before.format.encode_change(before.content, changed.text, args.old_string, args.new_string)
            plan = plan_change(place, shown, before, changed.text, content, (*notes, changed.note), changed.diff)
            # Cells move in the file when outputs change: any unseen change counts.
            return plan, ((0, before.text.count("\n")),)
        if args.cell is not None or args.cell_action != "edit":
            raise ToolError("it is not a notebook of format 4, so it has no cells")
        if args.old_string:
            edited = replace_text(before.text, args.old_string, args.new_string, everywhere=args.replace_all)
        elif before.text:
            raise ToolError("old_string must not be empty, because the file has text; use write to replace all of it")
        else:
            edited = Replacement(args.new_string, 1, ((0, 0),))
        notes = (*notes, edited.note) if edited.note else notes
        content = before.format.encode_change(before.content, edited.text, args.old_string, args.new_string)
        plan = plan_change(place, shown, before, edited.text, content, notes)
        if edited.count == 1:
            return plan, edited.lines
        return replace(plan, notes=(*plan.notes, f"{edited.count:,} occurrences replaced")), edited.lines
