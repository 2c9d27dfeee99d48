"""The main screen of a fleet: a row for each unit, totals above them, and the workers' timeline below.

Closing it changes nothing for the fleet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Click, ScreenResume
from textual.message import Message
from textual.widgets import Input, Static

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.background import run_service
from tui_agent.protocol.fleet_records import UnitRow
from tui_agent.ui.approval.approval_controller import ApprovalController
from tui_agent.ui.approval.attention_line import AttentionLine
from tui_agent.ui.base.app_type import AnyScreen, report_each_layout
from tui_agent.ui.base.commands import bindings_for, command, hint
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen
from tui_agent.ui.dialogs.list_page import SecondPress
from tui_agent.ui.dialogs.text_page import TextPage, fleet_help_text
from tui_agent.ui.text.input_fields import LineInput
from tui_agent.ui.text.line import NARROWEST, Line
from tui_agent.ui.text.rows_view import ItemRows, Layout, LazyRows, ListKeys, RowsView
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.ui.text.styled_lines import clipped, key_rows

from .fleet_state import FleetFiles, FleetState, InputRejected, UnitFilter
from .unit_bridge import UnitAnswers, UnitQuestions
from .unit_rows import RowLayout, column_row, layout_of, plain_text, title_row, total_rows, unit_row, unit_text
from .workers_timeline import WorkersScreen, lanes_in_short

TICK = 1.0
"""Seconds between two updates of the clocks."""
PACE = 0.5
"""Least seconds between two updates of totals and timeline while only numbers change."""
MOST_LANES = 8
"""Workers below the rows; the page of workers shows all."""
TALL = 20
"""Rows of the window from which the timeline is shown."""
_KEYS = ("open", "search", "filter", "sort", "details", "stop", "workers", "help", "leave")
_LEFT_OUT = ("sort", "details")
"""Keys that a narrow window does not show; the help has them."""


class FleetScreen(ListKeys, AnyScreen):
    """The screen. It follows the fleet as long as it exists, also below the conversation of a unit."""

    @dataclass
    class UnitOpened(Message):
        """The user wants to see the conversation of a unit."""

        unit_id: str

    @dataclass
    class Updated(Message):
        """The state of the fleet changed."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("fleet")]
    DEFAULT_CSS = """
    FleetScreen {
        background: $background;
        & RowsView { height: auto; overflow: hidden; }
        & #fleet-title { height: 1; }
        & #fleet-totals { padding: 0 1; height: 1; }
        & #fleet-search { height: 1; display: none; & > Static { width: 3; } & > Input { width: 1fr; } }
        & #fleet-columns { height: 1; margin-top: 1; }
        & #fleet-rows { height: 1fr; min-height: 1; overflow: hidden scroll; }
        & #fleet-empty { height: 1fr; padding: 0 4; color: $text-muted; display: none; }
        & #fleet-lanes { height: 1; margin-top: 1; }
        & #fleet-state { padding: 0 1; height: 1; }
        & #fleet-keys { padding: 0 1; height: 1; }
        &.-empty #fleet-rows { display: none; }
        &.-empty #fleet-empty { display: block; }
        &.-low #fleet-columns, &.-low #fleet-lanes { margin-top: 0; }
    }
    """

    def __init__(self, files: FleetFiles, clock: Callable[[], float], now: Callable[[], int]) -> None:
        """Create the screen; `clock` returns seconds, `now` milliseconds since the epoch."""
        super().__init__()
        report_each_layout(self)
        self.state = FleetState()
        """State of the fleet."""
        self.questions = UnitQuestions()
        """Open questions of all units."""
        self.filter = UnitFilter()
        """Filter and order of the rows."""
        self.rows: ItemRows[UnitRow] = ItemRows(self._lay_out_rows, key=lambda row: row.id, id="fleet-rows")
        """The units that are shown."""
        self._files, self._clock, self._now = files, clock, now
        self._layout: RowLayout = layout_of(self.state, NARROWEST)
        self._laid_out = (NARROWEST, 0)
        self._message: tuple[str, str] = ("", "")
        self._second_press = SecondPress(self, clock)
        self._stopping: set[str] = set()
        self._drawn: tuple[object, ...] = ()
        self._drawn_at = float("-inf")
        self._title = RowsView(lambda width: [title_row(self.state, now(), width)], id="fleet-title")
        self._totals = RowsView(lambda width: total_rows(self.state, now(), width), id="fleet-totals")
        self._input = LineInput(placeholder="search ids, repositories, prompts, states, workers", compact=True)
        # A blinking cursor wakes an idle program twice a second.
        self._input.cursor_blink = False
        self._columns = RowsView(lambda _: [column_row(self._layout)], id="fleet-columns")
        self._empty = Static(id="fleet-empty", markup=False)
        self._lanes = RowsView(self._lane_rows, id="fleet-lanes")
        self._state = RowsView(self._state_rows, id="fleet-state")
        self._keys = RowsView(self._key_rows, id="fleet-keys")
        self.approvals = ApprovalController(self, UnitAnswers(files), self._clock, self.questions, lambda: None)
        """Dialogs of the questions, while no unit's conversation is open."""

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._totals
        with Horizontal(id="fleet-search"):
            yield Static(" / ", markup=False)
            yield self._input
        yield self._columns
        yield self.rows
        yield self._empty
        yield self._lanes
        yield self.approvals.line
        yield self._state
        yield self._keys
        for view in (self._title, self._totals, self._columns, self.rows, self._lanes, self._state, self._keys):
            view.can_focus = False

    def on_mount(self) -> None:
        # The cursor follows its unit from the start: another order moves both.
        self.rows.select(0)
        self.run_worker(self._follow, group="fleet", exit_on_error=False)
        self.set_interval(TICK, self._tick)

    def on_resize(self) -> None:
        """Lay out for the new size, once the parts have theirs."""
        self.set_class(self.size.height < TALL, "-low")
        self.call_after_refresh(self.show_all)

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Show what has changed, and open the next question, once another screen has closed."""
        event.refresh_styles = self.stack_updates > 0
        self.show_all()
        self.approvals.look()

    # --- updates ------------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        await run_service("following a fleet", self._take_updates(), self._report_loss)
        # Whatever ended it, no driver can be reached any more.
        self.state.leave(self._now())
        self._updated()

    async def _take_updates(self) -> None:
        async for update in self._files.updates():
            if isinstance(update, InputRejected):
                # The refused input may have been an answer.
                self.questions.ask_again()
                self.notify(update.text, severity="warning", markup=False)
            else:
                self.state.apply(update)
                self._updated()

    def _report_loss(self, reason: str) -> None:
        self._say(f"The connection to the fleet was lost: {reason}. The rows show its last known state.", wrong=True)

    def _updated(self) -> None:
        asks = self.questions.update(self.state.questions)
        # Below a conversation nothing is drawn; the return to this screen draws all of it.
        if self.is_current:
            self._show_update(asks=asks)
        self.post_message(self.Updated())

    def _show_update(self, *, asks: bool) -> None:
        """Draw the rows; everything else only if units came, went or changed their states, or some time ago."""
        state = self.state
        now = (
            state.running,
            state.status.paused_until,
            state.status.notices[-1:],
            [row.state for row in state.rows.values()],
        )
        # Each event of any unit changes a number; totals and timeline cost more than the rows in sight.
        if asks or now != self._drawn or self._clock() - self._drawn_at >= PACE:
            self._drawn = now
            self.show_all()
        else:
            was_empty = not self.rows.items
            self._use_rows()
            if was_empty == (not self.rows.items):
                self.rows.redraw()
            else:
                self.show_all()

    def _use_rows(self) -> None:
        """Take the units that pass filter and search; the cursor stays on its unit, and in view if that has moved."""
        place = self.rows.cursor
        self.rows.use(self.filter.shown(self.state.rows.values(), self._now()))
        if place != self.rows.cursor:
            self.rows.redraw()
            self.rows.reveal()

    def _tick(self) -> None:
        if self.is_current and self.state.running:
            self.show_all()

    # --- what is shown ------------------------------------------------------------------------------------------------

    def show_all(self) -> None:
        """Draw everything that may have changed."""
        self._drawn_at = self._clock()
        self._use_rows()
        width = max(NARROWEST, self.rows.row_width or self.size.width - 1)
        if (width, len(self.state.rows)) != self._laid_out:  # The names in a row never change.
            self._laid_out, self._layout = (width, len(self.state.rows)), layout_of(self.state, width)
        self.set_class(not self.rows.items, "-empty")
        if not self.rows.items:
            self._empty.update(Content(self._empty_text()))
        for view in (self._title, self._totals, self._columns, self._lanes, self._state, self._keys, self.rows):
            view.redraw()
        for view in (self._totals, self._keys):
            # Before the first layout they have no rows.
            view.styles.height = max(1, view.total)
        # A view that is not displayed has no width, and would never build its first row.
        self._lanes.styles.height = lanes = len(self._lane_rows(self.size.width))
        self._lanes.display = lanes > 0

    @property
    def cursor_rows(self) -> ItemRows[UnitRow]:
        return self.rows

    def cursor_moved(self) -> None:
        """Draw what depends on the cursor: only that has moved."""
        self._message = ("", "")
        self._state.redraw()
        self._keys.redraw()

    def _empty_text(self) -> str:
        if not self.state.known:
            return "Connecting to the fleet …"
        if not self.state.rows:
            return "This fleet has no units."
        return f"No unit matches. {hint('fleet.back', 'shows all units')}."

    def _lay_out_rows(self, _: int) -> Layout:
        count = len(self.rows.items)
        return LazyRows(count, self._row), range(count)

    def _row(self, place: int) -> Line:
        row = self.rows.items[place]
        question = self.questions.in_short(row.id) if row.state == "asking" else ""
        return unit_row(row, self._layout, self._now(), chosen=place == self.rows.cursor, question=question)

    def _lane_rows(self, width: int) -> Sequence[Line]:
        most = min(MOST_LANES, self.size.height // 5)
        return lanes_in_short(self.state, self._now(), width, most) if self.size.height >= TALL else ()

    def _state_rows(self, width: int) -> Sequence[Line]:
        text, style = self._message
        if (not text and self.filter.is_part) or self.filter.order != "task":
            shown = f"{len(self.rows.items):,} of {count_text(len(self.state.rows), 'unit')}"
            text = text or f"{shown} · {self.filter.states} · by {self.filter.order}"
            style = style or "muted"
        if not text and self.state.status.notices:
            text, style = plain_text(self.state.status.notices[-1], width), "muted"
        return [Line(clipped([(text, style)], width))]

    def _key_rows(self, width: int) -> Sequence[Line]:
        row, some = self.rows.selected, bool(self.state.rows)
        counts = {
            **dict.fromkeys(("open", "details"), row is not None),
            **dict.fromkeys(("search", "filter", "sort"), some),
            "stop": self.state.running and row is not None and not row.ended,
        }
        known = [(name, command(f"fleet.{name}")) for name in _KEYS]
        keys = {name: (one.key_text, one.text, counts.get(name, True)) for name, one in known}
        # A second row of keys would cost a row of units.
        if len(rows := key_rows(keys.values(), width)) == 1:
            return rows
        return key_rows([key for name, key in keys.items() if name not in _LEFT_OUT], width)

    def _say(self, text: str, *, wrong: bool = False) -> None:
        self._message = (sanitise(text), "warning" if wrong else "")
        self._state.redraw()

    # --- keys and mouse -----------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave letters to the search while it has the focus."""
        if self.focused is self._input:
            return action in ("back", "cursor_up", "cursor_down", "page_up", "next_approval") or None
        return super().check_action(action, parameters)

    def on_click(self, event: Click) -> None:
        """Select the unit under the mouse; a click on the selected one opens it."""
        place = self.rows.place_at(event.screen_offset) if event.widget is self.rows else None
        # Two clicks, so that a single one never leaves the list by mistake.
        if place is not None and place == self.rows.cursor:
            self.action_open()
        elif place is not None:
            self.move(place - self.rows.cursor)

    def action_open(self) -> None:
        """Open the conversation of the selected unit; if it has none, its details."""
        row = self.rows.selected
        # One that failed before its first step has no conversation.
        if row is not None and row.epoch and not (row.ended and not row.step):
            self.post_message(self.UnitOpened(row.id))
        elif row is not None:
            self.action_details()

    def action_details(self) -> None:
        """Show the task, the rights, the workers and the result of the selected unit."""
        if (row := self.rows.selected) is not None:
            text = unit_text(row, self._now())
            self.app.push_screen(TextPage(f" Unit {plain_text(row.id, 20)} ", lambda _: text))

    def action_search(self) -> None:
        """Type words that a unit must contain."""
        self.query_one("#fleet-search").display = True
        self.set_focus(self._input)
        self.refresh_bindings()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self.filter.search(event.value)
        self._show_others()

    def _show_others(self) -> None:
        """Show the rows that pass now, and no message."""
        self._message = ("", "")
        self.show_all()

    @on(Input.Submitted)
    def _keep_search(self) -> None:
        """Keep the search, and give the keys back to the rows."""
        self.set_focus(None)
        self.refresh_bindings()

    def action_filter(self, by: int) -> None:
        """Show units in another state, or all."""
        self.filter.turn_filter(by)
        self._show_others()

    def action_sort(self) -> None:
        """Sort by another column."""
        self.filter.turn_order()
        self._show_others()

    def action_back(self) -> None:
        """Show all units again."""
        self.query_one("#fleet-search").display = False
        self.set_focus(None)
        self._input.value = ""
        self.refresh_bindings()
        self.filter.clear()
        self._show_others()

    @on(AttentionLine.Clicked)
    def action_next_approval(self) -> None:
        """Open the oldest question."""
        self.approvals.open_next()

    def action_workers(self) -> None:
        """Show the timeline of all workers."""
        if self.state.known:
            self.app.push_screen(WorkersScreen(self.state, self._now))

    def action_notices(self) -> None:
        """Show the notices of the fleet."""
        if self.state.status.notices:
            text = Content(sanitise("\n".join(reversed(self.state.status.notices))))
            self.app.push_screen(TextPage(" Notices, the newest first ", lambda _: text))
        else:
            self._say("This fleet has no notices.")

    def action_help(self) -> None:
        """Show the keys."""
        self.app.push_screen(TextPage(" Keys ", fleet_help_text))

    def action_leave(self) -> None:
        """Close the screen; the fleet continues."""
        self.app.exit()

    # --- stopping -----------------------------------------------------------------------------------------------------

    def action_stop(self) -> None:
        """Ask whether to stop the selected unit; at the second press, stop it after its step, later at once."""
        row = self.rows.selected
        if row is None or not self._can_stop():
            return
        if row.ended:
            self._say(f"Unit {row.id} has ended already.")
            return
        key, action = command("fleet.stop").key_text, ("stop", row.id)
        at_once = row.id in self._stopping
        if not self._second_press.waits_for(action):
            self._second_press.ask(action)
            manner = "now; its step is lost" if at_once else "after its step"
            self._say(f"{key} again stops unit {row.id} {manner}.", wrong=True)
            return
        # A key that is held down repeats, and stops nothing.
        if not self._second_press.confirm(action):
            return
        self._stopping.add(row.id)
        self._files.stop((row.id,), now=at_once)
        self._say(f"Unit {row.id} ends {'now' if at_once else f'after its step; {key} twice more ends it now'}.")

    def action_stop_all(self) -> None:
        """Ask whether to stop the fleet."""
        if not self._can_stop():
            return
        left = sum(not row.ended for row in self.state.rows.values())
        text = (
            f"{count_text(left, 'unit')} will end: those that run after their steps, the others without a start. "
            "What they have done so far is kept."
        )
        question = ConfirmScreen("Stop the whole fleet?", text, "stop it", clock=self._clock, no="continue")
        self.app.push_screen(question, self._stop_answered)

    def _stop_answered(self, yes: bool | None) -> None:
        if yes:
            self._files.stop((), now=False)
            self.call_after_refresh(partial(self._say, "The fleet stops: units that run end after their steps."))

    def _can_stop(self) -> bool:
        if not self.state.running:
            self._say("Nothing runs: no driver works on this fleet.", wrong=True)
        return self.state.running
