"""A question with two answers, yes and no. The default is no."""

import time
from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from tui_agent.ui.base.commands import command
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import choice_runs, clipped, wrapped

from .answer_screen import AnswerRow, QuestionScreen, TypedKeys


class ConfirmScreen(QuestionScreen[bool]):
    """The question. Returns True for yes; its keys count as in an approval dialog."""

    WHERE = "confirm"
    CLICKED = frozenset(("yes", "no"))
    # Without a composer, text has no place to go.
    TYPES = False
    DEFAULT_CSS = """
    ConfirmScreen {
        align: center middle;
        & > Vertical {
            width: 72;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            border: round $warning;
            border-title-color: $text;
            padding: 0 1;
            background: $surface;
        }
        & RowsView { background: $surface; height: auto; max-height: 10; overflow: hidden; }
        & #confirm-keys { height: 1; }
    }
    """

    def __init__(
        self, question: str, text: str, yes: str, *, clock: Callable[[], float] = time.monotonic, no: str = "no"
    ) -> None:
        """Ask with the consequences of a yes as `text`; `yes` and `no` are the labels of the answers."""
        super().__init__(AnswerRow(self._key_rows, clock, id="confirm-keys"), TypedKeys(clock))
        self._question = question
        self._text = text
        self._labels = {"yes": yes, "no": no}
        self._body = RowsView(self._body_rows, id="confirm-text")

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(f" {one_line(self._question, 60)} ")
            for view in (self._body, self.row):
                view.can_focus = False
                yield view

    def on_resize(self) -> None:
        width = max(1, min(72, self.size.width) - 4)
        self._body.styles.height = len(self._body_rows(width))

    def action_yes(self) -> None:
        """Answer yes."""
        self.dismiss(True)

    def action_no(self) -> None:
        """Answer no."""
        self.dismiss(False)

    @property
    def answers(self) -> Sequence[str]:
        return ("yes", "no")

    def _body_rows(self, width: int) -> Sequence[Line]:
        return wrapped([(visible(self._text), "")], width)

    def _key_rows(self, width: int) -> Sequence[Line]:
        runs: list[Run] = []
        for name, label in self._labels.items():
            key, counts = command(f"confirm.{name}").key_text, name == "no" or self.guard.armed
            runs += choice_runs(key, label, "   ", counts=counts, is_at_cursor=name == self.row.at_cursor)
        runs += [(reason, "warning")] if (reason := self.guard.reason) else []
        return [Line(clipped(runs, width))]
