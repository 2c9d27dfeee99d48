"""The line that announces approval requests whose dialog is not open."""

from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.screen import SystemModalScreen
from textual.widget import Widget

from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.base.commands import hint
from tui_agent.ui.dialogs.answer_screen import QuestionScreen
from tui_agent.ui.text.sanitiser import one_line

from .approval_summary import request_in_short


class AttentionLine(Widget):
    """Announces a request that did not open or was postponed; a click opens it."""

    DEFAULT_CSS = """
    AttentionLine {
        height: 1;
        display: none;
        color: $warning;
        text-style: bold;
        pointer: pointer;
        &#page-attention { dock: bottom; pointer: default; }
    }
    """

    @dataclass
    class Clicked(Message):
        """The user clicked the line to open the request."""

    def __init__(self, key: str = "", *, id: str | None = None) -> None:  # noqa: A002
        """Create a hidden line; `key` says how the user opens the request, if not with the key of the chat."""
        super().__init__(id=id)
        self._key = key or hint("chat.next_approval")
        self._request: ApprovalRequest | None = None
        self._count = 0

    def announce(self, request: ApprovalRequest | None, count: int) -> bool:
        """Show one of `count` requests; None hides the line. Return True if the line has appeared or gone."""
        was_shown = self.display
        # Each batch of events calls this, and most change nothing here.
        if (request, count) != (self._request, self._count):
            self._request, self._count = request, count
            self.display = request is not None
            self.refresh()
        return self.display != was_shown

    def render(self) -> Content:
        """Return the request on the left and the key that opens it on the right."""
        if self._request is None:
            return Content("")
        width = self.size.width
        key = f"{self._key} "
        more = f" · {self._count - 1} more" if self._count > 1 else ""
        question = f"▲ {request_in_short(self._request)}"
        left = Content.assemble(" ", one_line(question, max(1, width - len(key) - len(more) - 2)), more)
        gap = max(1, width - left.cell_length - len(key))
        return Content("").join([left, Content(" " * gap), Content(key)])

    def on_click(self) -> None:
        self.post_message(self.Clicked())


def announce_on_page(screen: AnyScreen, request: ApprovalRequest | None, count: int) -> None:
    """Announce one of `count` requests at the foot of a page that covers the screen; None: it has gone.

    A question never opens over a page, where its keys might be meant for a list.
    """
    page = screen.app.screen
    if page is screen or isinstance(page, QuestionScreen | SystemModalScreen):
        return
    line = next(iter(page.query("#page-attention").results(AttentionLine)), None)
    if line is None and request is not None:
        line = AttentionLine("close this page to answer", id="page-attention")
        page.mount(line)
    if line is not None:
        line.announce(request, count)
