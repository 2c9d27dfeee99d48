"""The foot of the chat where a person types: the commands that fit, the prompt sign, the composer."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from .composer import Composer
from .slash_menu import SlashMenu

PLACEHOLDER = "Ask for something, or type / for commands"
PLACEHOLDER_BUSY = "Type to steer; alt+enter for a turn of its own"


class PromptMarker(Widget):
    """The sign in front of what is typed."""

    DEFAULT_CSS = """
    PromptMarker {
        width: 3;
        height: auto;
        color: $accent;
        text-style: bold;
    }
    """

    def render(self) -> Content:
        """The sign."""
        return Content(" › ")


class PromptArea(Vertical):
    """Grows with its text to a third of the screen."""

    DEFAULT_CSS = """
    PromptArea {
        height: auto;
        & > Horizontal {
            height: auto;
            & > * { border-top: solid $border-blurred; }
        }
        &:focus-within > Horizontal > * {
            border-top: solid $border;
        }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.composer = Composer(PLACEHOLDER, id="composer")
        """The text area."""
        self._menu = SlashMenu()
        self._row = Horizontal()

    def compose(self) -> ComposeResult:
        """Menu, sign, text area."""
        yield self._menu
        with self._row:
            yield PromptMarker()
            yield self.composer

    def fit(self, window: Size) -> None:
        """Grows to a third of such a window, and no further.

        `vh` would do, but what Textual measures while the window changes it keeps, and the composer could be gone.
        """
        rows = max(1, window.height // 3)
        # Both need the limit: what a row measures by itself knows nothing of the limit of what stands in it.
        for part in (self._row, self.composer):
            part.styles.max_height = rows

    def set_busy(self, busy: bool) -> None:
        """Says what typing means now."""
        if busy != self.composer.busy:
            self.composer.busy = busy
            self.composer.placeholder = PLACEHOLDER_BUSY if busy else PLACEHOLDER

    @on(Composer.Suggested)
    def _suggested(self, event: Composer.Suggested) -> None:
        event.stop()
        self._menu.offer(event.commands, event.chosen)
