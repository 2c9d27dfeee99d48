"""The tool that reports the findings of a review, which the user sees as a list."""

from typing import Annotated

from pydantic import Field, StringConstraints

from tui_agent.protocol.facts.page_facts import REPORT_TOOL, Severity
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult

from .text_format import counted
from .typed_tool import Arguments, PathText, TypedTool

_DESCRIPTION = """Reports the findings of a review to the user, who sees them as a list and opens each at its line.
Call it once, at the end of the review, with all findings; with an empty list if there are none. Do not repeat them in \
your answer."""


class FindingEntry(Arguments):
    """One finding."""

    file: PathText = Field(description="Path of the file, relative to the workspace.")
    line: int = Field(0, ge=0, description="Line in the file as it is now; 0 if it concerns the whole file.")
    severity: Severity = Field("medium", description="high: wrong results, loss of data, unsafe; low: style.")
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)] = Field(
        description="First line: the problem in one sentence. Then, if needed: why, and how to fix it."
    )


class FindingsArguments(Arguments):
    """Arguments of the tool."""

    findings: tuple[FindingEntry, ...] = Field(max_length=200, description="All findings, the worst first.")


class FindingsTool(TypedTool[FindingsArguments]):
    """Tool whose result has the findings; it changes nothing, so it never needs permission."""

    touches = Accesses()

    def __init__(self) -> None:
        super().__init__(REPORT_TOOL, _DESCRIPTION, FindingsArguments, read_only=True)

    def call_summary(self, args: FindingsArguments) -> str:
        return counted(len(args.findings), "finding")

    async def run(self, args: FindingsArguments, context: ToolContext) -> ToolResult:
        found = [entry.model_dump() for entry in args.findings]
        text = f"The user sees {counted(len(found), 'finding')} as a list."
        lines = [f"{entry.file}:{entry.line}: {entry.severity}: {entry.text}" for entry in args.findings]
        details: JsonObject = {"outcome": counted(len(found), "finding"), "findings": found}
        return ToolResult.of_text("\n".join([text, *lines]), details=details)
