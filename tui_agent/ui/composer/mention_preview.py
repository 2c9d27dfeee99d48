"""The first lines of the file that the `@` menu highlights."""

from textual.content import Content
from textual.widget import Widget

from tui_agent.ui.text.sanitiser import clip, one_line, sanitise

MAX_LINES = 5
"""Lines that are shown."""
_MAX_CHARACTERS = 4_096


class MentionPreview(Widget):
    """A title with the path and the first lines of a file; hidden while no text file is highlighted."""

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
        self.path = ""
        """Path of the highlighted file; empty without one."""
        self._text = ""

    def expect(self, path: str) -> None:
        """Hide the lines of another file: those of `path` will follow."""
        if path != self.path:
            self.path, self._text = path, ""
            self.display = False

    def show(self, path: str, text: str) -> None:
        """Show the first lines of a file, if it is still highlighted and has any."""
        if path == self.path:
            self._text = text[:_MAX_CHARACTERS].strip("\n")
            self.display = bool(self._text.strip())
            self.refresh(layout=True)

    def render(self) -> Content:
        """Return the title and the lines, cut to the width."""
        width = max(1, self.size.width)
        lines = sanitise(self._text).split("\n")[:MAX_LINES]
        title = Content.styled(clip(f"   {one_line(self.path, max(1, width - 4))}", width), "$text bold")
        return Content("\n").join([title, *(Content(clip(f"   {line.rstrip()}", width)) for line in lines)])
