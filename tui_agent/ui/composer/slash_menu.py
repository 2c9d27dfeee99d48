"""The `/` commands that fit what is typed, above the composer."""

from textual.content import Content
from textual.widget import Widget

from tui_agent.ui.base.commands import Command
from tui_agent.ui.text.sanitiser import one_line

MAX_ROWS = 8
"""Commands shown at a time."""


class SlashMenu(Widget):
    """A list without a focus of its own: the composer chooses, this shows."""

    DEFAULT_CSS = """
    SlashMenu {
        height: auto;
        display: none;
        background: $surface;
        color: $text-muted;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._commands: tuple[Command, ...] = ()
        self._chosen = 0

    def offer(self, commands: tuple[Command, ...], chosen: int) -> None:
        """Shows commands, one of them chosen; none hides the list."""
        self._commands, self._chosen = commands, chosen
        self.display = bool(commands)
        self.refresh(layout=True)

    def render(self) -> Content:
        """A row each: name, argument, help."""
        first = max(0, min(self._chosen - MAX_ROWS // 2, len(self._commands) - MAX_ROWS))
        rows = self._commands[first : first + MAX_ROWS]
        return Content("\n").join([self._row(entry, entry is self._commands[self._chosen]) for entry in rows])

    def _row(self, entry: Command, chosen: bool) -> Content:
        name = f" {'›' if chosen else ' '} /{entry.slash} {entry.argument}"
        text = one_line(entry.help, max(1, self.size.width - 22))
        row = Content.assemble((f"{name:<20}", "$primary bold" if chosen else "$text"), (f" {text}", ""))
        gap = " " * max(0, self.size.width - row.cell_length)
        full = row + Content(gap)
        return full.stylize("$block-cursor-foreground on $block-cursor-background") if chosen else full
