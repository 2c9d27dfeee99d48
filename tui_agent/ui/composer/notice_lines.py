"""Lines above the composer: why a text was not sent, short messages, and the beginning of a mentioned file."""

from typing import Literal, TypeAlias

from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from tui_agent.ui.text.sanitiser import clip, one_line, sanitise

Severity: TypeAlias = Literal["information", "warning", "error"]
"""Weight of a message."""
MAX_ROWS = 3
"""Rows of all messages together."""
_LONGEST = 400
"""Cells of one message that are shown; the rows have room for no more."""
_SIGNS: dict[Severity, tuple[str, str]] = {
    "information": ("·", "$text-muted"),
    "warning": ("▲", "$warning"),
    "error": ("✖", "$error"),
}


class NoticeLine(Widget):
    """Short messages, the newest last, each for some seconds."""

    DEFAULT_CSS = """
    NoticeLine {
        height: auto;
        max-height: 3;
        display: none;
        color: $text;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._messages: list[tuple[str, Severity]] = []

    def show(self, text: str, severity: Severity, seconds: float) -> None:
        """Show a message for some seconds; one that is shown already moves to the end."""
        message = (one_line(text, _LONGEST), severity)
        self._messages = [*(shown for shown in self._messages if shown[0] != message[0]), message][-MAX_ROWS:]
        self.set_timer(seconds, lambda: self._remove(message))
        self._changed()

    def on_click(self) -> None:
        self._messages.clear()
        self._changed()

    def hide_problems(self) -> None:
        """Hide warnings and errors about what was sent before."""
        self._messages = [shown for shown in self._messages if shown[1] == "information"]
        self._changed()

    def _remove(self, message: tuple[str, Severity]) -> None:
        # The same text may be shown again meanwhile, as another object.
        self._messages = [shown for shown in self._messages if shown is not message]
        self._changed()

    def _changed(self) -> None:
        self.display = bool(self._messages)
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(MAX_ROWS, len(self._rows(width)))

    def render(self) -> Content:
        return Content("\n").join(self._rows(self.size.width)[-max(1, self.size.height) :])

    def _rows(self, width: int) -> list[Content]:
        rows: list[Content] = []
        for text, severity in self._messages:
            sign, style = _SIGNS[severity]
            lines = Content(text).wrap(max(1, width - 4))
            starts = [Content.styled(f" {sign} ", style), *[Content("   ")] * (len(lines) - 1)]
            rows += [start + line for start, line in zip(starts, lines, strict=True)]
        return rows


class RefusalLine(Widget):
    """The reason why a text could not be sent, or an offer, until the text changes."""

    DEFAULT_CSS = """
    RefusalLine {
        height: 1;
        display: none;
        color: $error;
        &.-offer { color: $warning; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.reason = ""
        """The reason; empty while the line is hidden."""
        self._draft = ""

    class Clicked(Message):
        """The user clicked the line."""

    def on_click(self) -> None:
        self.post_message(self.Clicked())

    def show(self, reason: str, draft: str, *, is_offer: bool = False) -> None:
        """Show a reason or an offer while the composer contains `draft`."""
        self.reason, self._draft = reason, draft
        self.set_class(is_offer, "-offer")
        self.display = True
        self.refresh()

    def text_changed(self, draft: str) -> None:
        """Hide the line if the text is another one."""
        if self.display and draft != self._draft:
            self.hide()

    def hide(self) -> None:
        """Hide the line."""
        self.reason = ""
        self.display = False

    def render(self) -> Content:
        return Content(" ▲ " + one_line(self.reason, max(1, self.size.width - 4)))


MAX_LINES = 5
"""Lines that are shown."""
_MAX_CHARACTERS = 4_096


class MentionPreview(Widget):
    """A title with the path and some lines of a file; hidden while no text file is highlighted."""

    DEFAULT_CSS = """
    MentionPreview {
        height: auto;
        display: none;
        background: $surface;
        color: $text-muted;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.place = ("", 1)
        """Path of the highlighted file and number of the first line to show; the path is empty without a file."""
        self._text = ""

    def expect(self, path: str, line: int = 1) -> None:
        """Hide the lines of another place: those from `line` of `path` will follow."""
        if (path, line) != self.place:
            self.place, self._text = (path, line), ""
            self.display = False

    def show(self, path: str, line: int, text: str) -> None:
        """Show the lines from a place on, if it is still highlighted and has any."""
        if (path, line) == self.place:
            self._text = text[:_MAX_CHARACTERS].strip("\n")
            self.display = bool(self._text.strip())
            self.refresh(layout=True)

    def render(self) -> Content:
        width = max(1, self.size.width)
        lines = sanitise(self._text).split("\n")[:MAX_LINES]
        path, line = self.place
        title = f"{path}:{line}" if line > 1 else path
        heading = Content.styled(clip(f"   {one_line(title, max(1, width - 4))}", width), "$text bold")
        return Content("\n").join([heading, *(Content(clip(f"   {line.rstrip()}", width)) for line in lines)])
