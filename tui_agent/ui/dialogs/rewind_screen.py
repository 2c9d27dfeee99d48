"""The rewind page: the user chooses a point, sees everything that would change, and only then confirms."""

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Paste

from tui_agent.protocol.background import run_service
from tui_agent.ui.base.commands import bindings_for
from tui_agent.ui.bridge.engine_types import FileStep, RewindOutcome, RewindPlan, RewindPoint, Scope
from tui_agent.ui.bridge.queries import RewindQueries
from tui_agent.ui.text.amounts import count_text
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import CursorKeys, ItemRows, Layout, RowsPage, RowsView
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .question_screen import AnswerRow
from .rewind_rows import SCOPES, key_row, local_time_text, plan_rows, point_rows, state_row

BUSY = "The agent is working. Stop it before you go back."


class RewindScreen(CursorKeys, RowsPage[RewindOutcome | None]):
    """The page. Returns the result of the rewind, or None if the user closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("rewind")]
    DEFAULT_CSS = """
    RewindScreen {
        & RowsView { height: 1; overflow: hidden; }
        & #rewind-body { height: 1fr; min-height: 1; overflow-y: auto; }
    }
    """

    def __init__(
        self,
        rewinding: RewindQueries,
        busy: Callable[[], bool],
        clock: Callable[[], float],
        *,
        call: tuple[str, str] | None = None,
        when: Callable[[int], str] = local_time_text,
    ) -> None:
        """Create the page.

        Args:
            rewinding: plans and carries out rewinds.
            busy: returns True during a run, when nothing can go back.
            clock: monotonic seconds.
            call: id and summary of the call whose changes are to be undone; None: the user chooses a point.
            when: formats a time in milliseconds.
        """
        super().__init__()
        self._rewinding = rewinding
        self._busy = busy
        self._call = call
        self._when = when
        self._points: Sequence[RewindPoint] = ()
        self._point = 0
        self._plan: RewindPlan | None = None
        self._scope: Scope = "both" if call is None else "files"
        self._overwritten: set[Path] = set()
        self._message = "Comparing files …"
        self.at_work = False
        """True while a plan is made or carried out."""
        self._body: ItemRows[RewindPoint | FileStep] = ItemRows(self._layout_rows, id="rewind-body")
        self._state = RowsView(self._state_rows, id="rewind-state")
        self._keys = AnswerRow(self._key_rows, clock, id="rewind-keys")
        self._guard = self._keys.guard

    def compose(self) -> ComposeResult:
        """Yield the rows, the summary and the keys."""
        with Vertical() as page:
            page.border_title = Content(" Go back " if self._call is None else " Undo the changes of a call ")
            for view in (self._body, self._state, self._keys):
                view.can_focus = False
                yield view

    def on_mount(self) -> None:
        """Load the points, or the plan for the call."""
        self._begin(self._load_points() if self._call is None else self._load_call(*self._call))

    def on_paste(self, event: Paste) -> None:
        """Ignore a paste, which never answers."""
        event.stop()

    @property
    def cursor_rows(self) -> ItemRows[RewindPoint | FileStep]:
        """The points, or the files of a plan."""
        return self._body

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_choose(self) -> None:
        """Show the plan for the point at the cursor; on the second page, carry it out."""
        if self.at_work:
            return
        if self._plan is None:
            if self._points:
                self._point = self._body.cursor
                self._begin(self._load_plan(self._points[self._point]))
        elif self._counts and self._guard.armed:
            self._begin(self._carry_out(self._plan))

    def action_scope(self) -> None:
        """Choose the next scope."""
        if self._plan is not None and self._plan.call_id is None and not self.at_work:
            self._scope = SCOPES[(SCOPES.index(self._scope) + 1) % len(SCOPES)]
            self._show()

    def action_overwrite(self) -> None:
        """Include or exclude the file at the cursor, which was changed by someone else."""
        if self._plan is None or self.at_work or self._scope == "conversation":
            return
        step = self._body.selected
        if isinstance(step, FileStep) and step.is_conflict:
            self._overwritten ^= {step.path}
            self._show()

    def action_close(self) -> None:
        """Go back to the points, or close the page; nothing is changed."""
        if self.at_work:
            return
        if self._plan is None or self._call is not None:
            self.dismiss(None)
            return
        self._plan, self._message = None, ""
        self._body.begin(self._points, self._point)
        self._show(anew=True)

    # --- work ---------------------------------------------------------------------------------------------------------

    def _begin(self, work: Coroutine[object, object, None]) -> None:
        self.at_work = True
        self.run_worker(self._guarded(work), exclusive=True, exit_on_error=False)

    async def _guarded(self, work: Coroutine[object, object, None]) -> None:
        """Run the work; show a failure and keep the page usable."""
        try:
            await run_service("rewinding", work, self._notify_failure)
        finally:
            self.at_work = False
            self._show(anew=True)
            self.call_after_refresh(self._guard.drawn)

    def _notify_failure(self, reason: str) -> None:
        self._message = reason

    async def _load_points(self) -> None:
        self._points = await self._rewinding.points()
        self._body.begin(self._points)
        self._message = "" if self._points else "There is no message yet to go back to."

    async def _load_plan(self, point: RewindPoint) -> None:
        self._guard.withdrawn()
        self._plan, self._message = await self._rewinding.plan(point), ""
        self._overwritten = set()
        self._body.begin(self._plan.steps)

    async def _load_call(self, call_id: str, text: str) -> None:
        plan = await self._rewinding.plan_for_call(call_id, text)
        self._plan, self._message = plan, "" if plan.steps else "Nothing to undo: this call changed no file."
        self._body.begin(plan.steps)

    async def _carry_out(self, plan: RewindPlan) -> None:
        outcome = await self._rewinding.carry_out(plan, self._scope, frozenset(self._overwritten))
        self.dismiss(outcome)

    # --- what is shown ------------------------------------------------------------------------------------------------

    @on(RowsView.Moved, "#rewind-body")
    def _moved(self) -> None:
        self._state.show(self._state_rows)
        self._keys.redraw()

    @property
    def _counts(self) -> bool:
        """True if the plan changes something and no run is in the way."""
        plan = self._plan
        if plan is None or self._busy():
            return False
        return bool(plan.chosen(self._scope, self._overwritten)) or (plan.call_id is None and self._scope != "files")

    def _show(self, *, anew: bool = False) -> None:
        if self.is_attached:
            self._body.redraw(anew=anew)
            self._moved()

    def _layout_rows(self, width: int) -> Layout:
        if self._message:
            return wrapped([(self._message, "muted")], width), ()
        cursor = self._body.cursor
        if self._plan is not None:
            return plan_rows(self._plan, self._scope, cursor, self._overwritten, width)
        rows = point_rows(self._points, cursor, width, [self._when(point.time) for point in self._points])
        return rows, range(len(rows))

    def _state_rows(self, width: int) -> Sequence[Line]:
        if self._busy():
            return [Line(clipped([(BUSY, "warning")], width))]
        if self._plan is not None:
            return [state_row(self._plan, self._scope, self._overwritten, width)]
        words = f"{count_text(len(self._points), 'moment')}, the newest first" if self._points else ""
        return [Line(clipped([(words, "muted")], width))]

    def _key_rows(self, width: int) -> Sequence[Line]:
        if self._plan is None:
            return [key_row(("choose", "close"), {"choose", "close"} if self._points else {"close"}, width)]
        names = ["choose", "scope", "overwrite", "close"]
        if self._plan.call_id is not None:
            names.remove("scope")
        if self._scope == "conversation" or not any(step.is_conflict for step in self._plan.steps):
            names.remove("overwrite")
        counting = set(names) - (set() if self._counts and self._guard.armed else {"choose"})
        return [key_row(names, counting, width, "do it")]
