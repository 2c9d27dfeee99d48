"""The row of answers of a dialog, which is dim while no answer counts."""

from collections.abc import Callable

from textual.timer import Timer

from tui_agent.ui.text.rows_view import Build, RowsView

from .answer_guard import QUIET_SECONDS, AnswerGuard


class AnswerKeys(RowsView):
    """Rows of answers, redrawn whenever the quiet moment begins or ends."""

    has_answers = True

    def __init__(
        self,
        build: Build,
        clock: Callable[[], float],
        begun: Callable[[], None] = lambda: None,
        *,
        first_pause: float = QUIET_SECONDS,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """Create the rows with a guard; `begun` is called whenever the quiet moment begins."""
        super().__init__(build, id=id)
        self.guard = AnswerGuard(clock, self._begin_quiet, first_pause=first_pause)
        """Decides whether an answer counts."""
        self._begun = begun
        self._timer: Timer | None = None

    def show_now(self) -> None:
        """Redraw the answers."""
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
