"""A page of rows over the chat."""

from textual import getters
from textual.screen import ModalScreen, ScreenResultType

from tui_agent.ui.base.app_type import any_app

from .rows_view import Paging


class RowsPage(Paging, ModalScreen[ScreenResultType]):
    """A framed page whose rows the paging keys scroll."""

    app = getters.app(any_app)
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    RowsPage {
        background: $background;
        & > Vertical {
            border: round $border;
            border-title-color: $text;
            border-subtitle-color: $text-muted;
            padding: 0 1;
            background: $surface;
        }
        & RowsView { background: $surface; }
    }
    """
