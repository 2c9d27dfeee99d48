"""The answers to a question: dim as long as none counts, however long that is (P54)."""

from collections.abc import Callable

from textual.timer import Timer

from tui_agent.ui.text.rows_view import Build, RowsView

from .answer_guard import QUIET_SECONDS, AnswerGuard


class AnswerKeys(RowsView):
    """Rows of keys, drawn anew whenever the quiet moment before answers begins or ends."""

    def __init__(
        self,
        build: Build,
        clock: Callable[[], float],
        begun: Callable[[], None] = lambda: None,
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """Makes the rows; `begun` is called whenever the quiet moment begins."""
        super().__init__(build, id=id)
        self.guard = AnswerGuard(clock, self._begin_quiet)
        """Says whether an answer counts."""
        self._begun = begun
        self._timer: Timer | None = None

    def show_now(self) -> None:
        """Shows the answers as they are now."""
        self.show(self._build)

    def _begin_quiet(self) -> None:
        self._begun()
        if self._timer is not None:
            self._timer.stop()
        self._check_quiet()

    def _check_quiet(self) -> None:
        self.show_now()
        if not self.guard.armed:
            self._timer = self.set_timer(QUIET_SECONDS, self._check_quiet)
