"""The edit tool: replace exact text in a file."""

from dataclasses import replace
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.tool import Accesses, PathSubject, Preview, Subject, ToolContext, ToolResult

from .edit_match import replace_text
from .file_change import (
    LoadedFile,
    PlannedChange,
    Target,
    make_change,
    plan_change,
    plan_file_change,
    preview_file_change,
    refuse_changed,
)
from .file_errors import missing_file_error
from .typed_tool import Arguments, PathText, TypedTool
from .unified_diff import replaced_lines
from .workspace import Workspace

_DESCRIPTION = """Replaces exact text in a file.
`old_string` must match the file exactly, whitespace included, and occur only once, unless `replace_all` is set.
Do not include the line numbers that read shows. The edit is refused if the file changed since you last read it.
The file keeps its mode, encoding, byte order mark and line endings."""


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("must not be empty; use write to create a file or replace its whole content")
    return text


class EditArguments(Arguments):
    """Arguments of the edit tool."""

    path: PathText = Field(
        description="File to change: absolute, relative to the working directory, or starting with ~."
    )
    old_string: Annotated[str, AfterValidator(_not_empty)] = Field(description="The exact text to replace.")
    new_string: str = Field(description="The new text; empty to delete old_string.")
    replace_all: bool = Field(default=False, description="Replace every occurrence; otherwise there must be only one.")


class EditTool(TypedTool[EditArguments]):
    """Tool that replaces exact text in a file, atomically."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__("edit", _DESCRIPTION, EditArguments)
        self._workspace = workspace

    def call_accesses(self, args: EditArguments) -> Accesses:
        path = frozenset({self._workspace.resolve(args.path)})
        return Accesses(reads=path, writes=path)

    def call_subject(self, args: EditArguments) -> Subject:
        return PathSubject(self._workspace.given(args.path), "write")

    def call_notices_changes(self, args: EditArguments) -> bool:
        return self._workspace.versions.last_seen(self._workspace.resolve(args.path)) is not None

    def call_summary(self, args: EditArguments) -> str:
        removed, added = replaced_lines(args.old_string, args.new_string)
        return f"{args.path} (+{added} −{removed}{' everywhere' if args.replace_all else ''})"

    async def call_preview(self, args: EditArguments) -> Preview:
        return await preview_file_change(
            self._workspace,
            args.path,
            partial(self._plan, args, checked=True),
            partial(self._plan, args, checked=False),
        )

    async def run(self, args: EditArguments, context: ToolContext) -> ToolResult:
        async with self._workspace.alone_with(self._workspace.place(args.path, context.targets).path):
            plan_checked = partial(self._plan, args, checked=True)
            plan = await plan_file_change(self._workspace, args.path, plan_checked, context.targets)
            return await make_change(self._workspace, plan, context)

    def _plan(self, args: EditArguments, target: Target, before: LoadedFile | None, *, checked: bool) -> PlannedChange:
        """Return the change of a loaded file.

        Raises:
            ToolError: the file does not exist, the text does not match, or the file changed since it was read and
                `checked` is set.
        """
        place, shown, notes = target
        if before is None:
            raise missing_file_error(place.path, shown)
        if checked:
            refuse_changed(self._workspace, place, shown, before)
        try:
            edited = replace_text(before.text, args.old_string, args.new_string, everywhere=args.replace_all)
        except ToolError as error:
            raise ToolError(f"{shown} was not changed: {error}") from error
        try:
            content = before.format.encode(edited.text)
        except UnicodeEncodeError as error:
            lost = edited.text[error.start]
            raise ToolError(f"{shown} was not changed: its encoding, {before.format.words}, has no {lost!r}") from error
        plan = plan_change(place, shown, before, edited.text, content, notes)
        if edited.count == 1:
            return plan
        return replace(plan, notes=(*plan.notes, f"{edited.count:,} occurrences replaced"))
