"""The edit tool: replace exact text in a file, or change a cell of a notebook."""

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
from .text_match import Replacement, replace_text
from .typed_tool import PathText
from .unified_diff import replaced_lines
from .workspace import Workspace

_DESCRIPTION = """Replaces exact text in a file.
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
        super().__init__(workspace, "edit", _DESCRIPTION, EditArguments)

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
