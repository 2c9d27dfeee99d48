"""The first lines of the file, function or class that the `@` menu highlights."""

from textual.content import Content
from textual.widget import Widget

from tui_agent.ui.text.sanitiser import clip, one_line, sanitise

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

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
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
        """Return the title and the lines, cut to the width."""
        width = max(1, self.size.width)
        lines = sanitise(self._text).split("\n")[:MAX_LINES]
        path, line = self.place
        title = f"{path}:{line}" if line > 1 else path
        heading = Content.styled(clip(f"   {one_line(title, max(1, width - 4))}", width), "$text bold")
        return Content("\n").join([heading, *(Content(clip(f"   {line.rstrip()}", width)) for line in lines)])
