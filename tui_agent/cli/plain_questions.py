"""Questions of plain mode, in the words of the screen's dialog."""

from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.approval.approval_rows import ApprovalRows, request_title, why_rows

_WIDTH = 100
"""Cells of a row."""


def question_lines(request: ApprovalRequest) -> list[str]:
    """Return the question as a sentence, then the reason and the exact input with every character visible."""
    rows = [*why_rows(request, _WIDTH), *ApprovalRows(request).rows(_WIDTH, spaced=False)]
    return [request_title(request), *(row.plain.rstrip() for row in rows)]
