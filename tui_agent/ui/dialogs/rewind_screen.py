"""The rewind page: the user chooses a point, sees everything that would change, and only then confirms."""

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from textual.events import Paste

from tui_agent.protocol.amounts import count_text, names_text
from tui_agent.protocol.background import run_service
from tui_agent.protocol.facts.change_facts import FileStep, RewindOutcome, RewindPlan, RewindPoint, Scope, StepKind
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import Layout
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .list_page import ListPage

if TYPE_CHECKING:
    from tui_agent.workbench.workbench import Rewinder
from .answer_screen import AnswerRow

BUSY = "The agent is working. Stop it before you go back."
SCOPES: tuple[Scope, ...] = ("both", "files", "conversation")
"""Scopes of a rewind, in the order in which a key steps through them."""

_SCOPE_LABELS: dict[Scope, str] = {
    "both": "files and conversation",
    "files": "files only",
    "conversation": "conversation only",
}
_KIND_LABELS: dict[StepKind, tuple[str, str]] = {
    "restore": ("changed back", "warning"),
    "delete": ("deleted", "error"),
    "create": ("created again", "success"),
    "stuck": ("stays", "muted"),
}
_LEFT = ("left alone", "muted")
_LABEL = 15
_COUNTS = 14
_LONGEST = 200


def local_time_text(milliseconds: int) -> str:
    """Return a time in the local time zone."""
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%m-%d %H:%M")


class RewindScreen(ListPage[RewindPoint | FileStep, RewindOutcome]):
    """The page. Returns the result of the rewind, or None if the user closes it."""

    WHERE = "rewind"
    KEYS = ("choose", "search", "close")
    DETAIL_ROWS = 0

    def __init__(
        self,
        rewinding: "Rewinder",
        busy: Callable[[], bool],
        clock: Callable[[], float],
        *,
        call: tuple[str, str] | None = None,
        when: Callable[[int], str] = local_time_text,
    ) -> None:
        """Create the page, or for a `call` (id and summary) that of its undo; `when` formats a time in milliseconds."""
        super().__init__("Go back" if call is None else "Undo the changes of a call", clock=clock)
        self._rewinding = rewinding
        self._busy = busy
        self._call = call
        self._when = when
        self._points: Sequence[RewindPoint] = ()
        self._point = 0
        self._plan: RewindPlan | None = None
        # The conversation keeps the call; only what it did to files is undone.
        self._scope: Scope = "both" if call is None else "files"
        self._overwritten: set[Path] = set()
        self._notice = "Comparing files …"
        self.at_work = False
        """True while a plan is made or carried out."""
        # The keys below the list are answers once they carry out a plan.
        self._keys = AnswerRow(self._key_rows, clock, id="rewind-keys")
        self._guard = self._keys.guard

    def on_mount(self) -> None:
        self._begin(self._load_points() if self._call is None else self._load_call(*self._call))

    def on_paste(self, event: Paste) -> None:
        """Ignore a paste, which never answers."""
        event.stop()

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_choose(self) -> None:
        """Show the plan for the point at the cursor; on the second page, carry it out."""
        if self.at_work:
            return
        if self._plan is not None:
            if self._has_effect and self._guard.armed:
                self._begin(self._carry_out(self._plan))
        elif isinstance(point := self.selected, RewindPoint):
            self._point = self._points.index(point)
            self._begin(self._load_plan(point))

    def action_scope(self) -> None:
        """Choose the next scope."""
        if self._plan is not None and self._plan.call_id is None and not self.at_work:
            self._scope = SCOPES[(SCOPES.index(self._scope) + 1) % len(SCOPES)]
            self.show()

    def action_overwrite(self) -> None:
        """Include or exclude the file at the cursor, which was changed by someone else."""
        if self._plan is None or self.at_work or self._scope == "conversation":
            return
        step = self.selected
        if isinstance(step, FileStep) and step.is_conflict:
            self._overwritten ^= {step.path}
            self.show()

    def leave(self) -> None:
        """Go back to the points, or close the page; nothing is changed."""
        # Files that are being written cannot be left in the middle.
        if self.at_work:
            return
        if self._plan is None or self._call is not None:
            self.dismiss(None)
            return
        self._plan, self._notice = None, ""
        self.begin(self._points, self._point)

    def may_click(self, action: str) -> bool:
        """Return False for the answer that carries out the plan: it needs its key."""
        return (action != "choose" or self._plan is None) and super().may_click(action)

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
            self.show(anew=True)
            # The enter that opened the plan may still be held down.
            self.call_after_refresh(self._guard.drawn)

    def _notify_failure(self, reason: str) -> None:
        self._notice = reason

    async def _load_points(self) -> None:
        self._points = await self._rewinding.points()
        self._notice = "" if self._points else "There is no message yet to go back to."
        self.begin(self._points)

    async def _load_plan(self, point: RewindPoint) -> None:
        self._guard.withdrawn()
        self._plan, self._notice = await self._rewinding.plan(point), ""
        self._overwritten = set()
        self.begin(self._plan.steps)

    async def _load_call(self, call_id: str, text: str) -> None:
        self._plan = await self._rewinding.plan_for_call(call_id, text)
        self._notice = "" if self._plan.steps else "Nothing to undo: this call changed no file."
        self.begin(self._plan.steps)

    async def _carry_out(self, plan: RewindPlan) -> None:
        outcome = await self._rewinding.carry_out(plan, self._scope, frozenset(self._overwritten))
        self.dismiss(outcome)

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def _has_effect(self) -> bool:
        """True if the plan changes something and no run is in the way."""
        plan = self._plan
        if plan is None or self._busy():
            return False
        return bool(plan.chosen(self._scope, self._overwritten)) or (plan.call_id is None and self._scope != "files")

    def layout_rows(self, width: int) -> Layout:
        if self._notice:
            return wrapped([(self._notice, "muted")], width), ()
        if self._plan is None:
            return super().layout_rows(width)
        rows, starts = _heading(self._plan, self._scope, width), list[int]()
        if self._scope == "conversation":
            if steps := self._plan.steps:
                rows += _muted_rows(f"{count_text(len(steps), 'file')} changed since; they stay as they are.", width)
            return rows, starts
        for place, step in enumerate(self.rows.items):
            starts.append(len(rows))
            rows.append(self.shown_row(step, place, width))
            if isinstance(step, FileStep):
                # What would be lost is in sight without a move of the cursor.
                is_here = place == self.rows.cursor and not self.has_class("-beside")
                rows += _step_rows(step, width, with_diff=is_here or step.is_conflict)
        return (rows, starts) if starts else (rows + _muted_rows("No file changed since.", width), starts)

    def item_row(self, item: RewindPoint | FileStep, place: int, width: int) -> Line:
        here = "strong" if place == self.rows.cursor else ""
        if isinstance(item, FileStep):
            leaves = item.is_conflict and item.path not in self._overwritten
            words, style = _LEFT if leaves else _KIND_LABELS[item.kind]
            box = ("[ ] " if leaves else "[x] ") if item.is_conflict else ""
            right = "" if item.problem else _counts(item.diff.added, item.diff.removed)
            room = max(8, width - _LABEL - len(right) - 5)
            first: Sequence[Run] = [(f"{f'{box}{words}':<{_LABEL}} ", style)]
            text = f"{one_line(visible(item.shown), room):<{room}} "
        else:
            files, time = count_text(item.files, "file") if item.files else "no files", self._when(item.time)
            right = f"{files:>9} {_counts(item.added, item.removed):>{_COUNTS}}"
            sign = "" if item.is_turn else "↶ undo: "
            room = max(8, width - len(right) - len(time) - 6) - len(sign)
            first = [(f"{time}  ", "muted"), (sign, "muted")]
            text = f"{one_line(visible(item.text.strip()), room):<{room}}"
        return Line(clipped([self.cursor_sign(place), *first, (text, here), (right, "muted")], width))

    def search_text(self, item: RewindPoint | FileStep) -> str:
        return item.shown if isinstance(item, FileStep) else item.text

    def detail_rows(self, item: RewindPoint | FileStep, width: int) -> Sequence[Line]:
        if isinstance(item, RewindPoint):
            return wrapped([(visible(item.text.strip()), "")], width)
        if self._scope == "conversation":
            return ()
        return [*wrapped([(visible(item.shown), "strong")], width), Line(), *_step_rows(item, width, margin=0)]

    def summary(self) -> Run:
        if self._busy():
            return BUSY, "warning"
        if (plan := self._plan) is None:
            return (f"{count_text(len(self._points), 'moment')}, the newest first" if self._points else ""), "muted"
        done = len(plan.chosen(self._scope, self._overwritten))
        left = 0 if self._scope == "conversation" else len(plan.steps) - done
        words = [count_text(done, "file goes back", "files go back") if done else "no file changes"]
        words += [count_text(left, "is left alone", "are left alone")] if left else []
        return " · ".join(words), "warning" if left else "muted"

    def key_answers(self) -> list[tuple[str, str, bool]]:
        plan = self._plan
        if plan is None or self.is_asking:
            return super().key_answers()
        names = ["choose", "scope", "overwrite", "close"]
        if plan.call_id is not None:
            names.remove("scope")
        if self._scope == "conversation" or not any(step.is_conflict for step in plan.steps):
            names.remove("overwrite")
        entries = [(name, self._command(name)) for name in names]
        texts = {"choose": "do it", "close": "back"}
        return [(one.key_text, texts.get(name, one.text), self.counts(name)) for name, one in entries]

    def counts(self, name: str) -> bool:
        if name != "choose":
            return True
        return bool(self._points) if self._plan is None else self._has_effect and self._guard.armed


def rewind_outcome_text(outcome: RewindOutcome) -> str:
    """Return the result of a rewind in a sentence or two."""
    words = [f"{count_text(len(outcome.done), 'file')} changed back."] if outcome.done else []
    if outcome.left:
        words.append(f"Left as they are: {names_text(outcome.left)}.")
    if outcome.failed:
        words.append(f"Not changed: {names_text(outcome.failed, 5)}.")
    return " ".join(words)


def _heading(plan: RewindPlan, scope: Scope, width: int) -> list[Line]:
    """Return the point to go back to, the scope, and the effect on the conversation."""
    rows = wrapped([(one_line(visible(plan.text.strip()), _LONGEST), "strong")], width)
    if plan.call_id is None:
        runs: list[Run] = []
        for one in SCOPES:
            chosen = one == scope
            runs.append(
                (f"[{_SCOPE_LABELS[one]}]" if chosen else f" {_SCOPE_LABELS[one]} ", "key" if chosen else "muted")
            )
            runs.append(("  ", ""))
        rows.append(Line(clipped(runs, width)))
        if scope != "files":
            draft = "; your message goes into the composer" if plan.draft else ""
            gone = count_text(plan.messages, "message is", "messages are")
            rows += _muted_rows(f"{gone} no longer part of the conversation{draft}.", width)
        else:
            rows += _muted_rows("The conversation stays; the agent learns what changed.", width)
    else:
        rows += _muted_rows("Only the changes of this call are undone; the conversation stays.", width)
    for note in plan.notes:
        rows += wrapped([(note, "warning")], width)
    return [*rows, Line()]


def _step_rows(step: FileStep, width: int, *, with_diff: bool = True, margin: int = 5) -> list[Line]:
    """Return why a file cannot go back as it is, and the differences that would be made."""
    rows = wrapped([(step.problem, "warning")], width - margin) if step.problem else []
    if step.diff and with_diff:
        rows += diff_rows(step.diff.files, width - margin, clean=visible)
    return [row.prefixed((" " * margin, "")) for row in rows]


def _counts(added: int, removed: int) -> str:
    return f"+{added} −{removed}" if added or removed else ""


def _muted_rows(text: str, width: int) -> list[Line]:
    return wrapped([(text, "muted")], width)
