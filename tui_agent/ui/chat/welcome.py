"""The welcome page, shown until the first message."""

from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget

from tui_agent.ui.base.commands import hint
from tui_agent.ui.text.sanitiser import one_line


class Welcome(Widget):
    """Name, example prompts and the first keys."""

    DEFAULT_CSS = """
    Welcome {
        width: 1fr;
        height: 1fr;
        content-align: center middle;
        text-align: center;
        color: $text-muted;
    }
    """

    def __init__(self, label: str, ideas: Sequence[str], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._label = label
        self._ideas = ideas

    def render(self) -> Content:
        """Return the lines, as many as fit."""
        width = max(1, self.size.width - 4)
        rows = [Content.styled("tui-agent", "$text bold")]
        if self._label:
            rows.append(Content.styled(one_line(self._label, width), "$warning"))
        rows += [Content(""), Content("See everything. Steer at any time. Allow what happens.")]
        if self._ideas:
            rows += [Content(""), Content("You could say")]
            rows += [Content.styled(f"“{one_line(idea, width - 2)}”", "$primary") for idea in self._ideas]
        keys = ("composer.submit", "chat.cycle_mode", "chat.toggle_panel", "chat.help")
        rows += [Content(""), Content(" · ".join(hint(key) for key in keys))]
        rows = [row.truncate(width, ellipsis=True) for row in rows]
        return Content("\n").join(rows[: max(1, self.size.height)])
