"""Clicks on the answers of a dialog that asks: each acts as the key of the answer, and passes the same guard."""

from collections.abc import Callable, Set
from typing import Any

from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.events import MouseDown, MouseEvent, MouseMove, MouseUp
from textual.screen import Screen

from tui_agent.ui.base.command_type import Command, Where
from tui_agent.ui.text.rows_view import RowsView

from .answer_guard import AnswerGuard, AnswerPointer, command_at


class AnswerClicks:
    """Follows the mouse over a dialog, and finds the answers that it clicks."""

    def __init__(
        self,
        screen: Screen[Any],
        guard: AnswerGuard,
        where: Where,
        clicked: Set[str],
        may_act: Callable[[str | None], bool],
    ) -> None:
        """
        Args:
            screen: the dialog.
            guard: decides whether an answer counts.
            where: the dialog's part of the table of commands.
            clicked: actions that a click on their label runs.
            may_act: takes an action, and returns True if its key would count now.
        """
        self._screen = screen
        self._guard = guard
        self._where: Where = where
        self._clicked = clicked
        self._may_act = may_act
        self._pointer = AnswerPointer(lambda: guard.asked_at, guard.clock)

    def begin(self, app: DOMNode) -> None:
        """Watch the focus of the app's window, once the dialog is mounted."""
        self._screen.watch(app, "app_focus", self._pointer.focused, init=False)

    def take(self, event: MouseEvent) -> None:
        """Follow the pointer, and run the action of the answer that it has clicked."""
        action = self.follow(event)
        if action is not None:
            getattr(self._screen, f"action_{action}")()

    def follow(self, event: MouseEvent) -> str | None:
        """Follow the pointer; return the action of the answer that it has clicked."""
        x, y = event.screen_offset
        keys, entry = self._answer_at(x, y)
        action = entry.action_name if entry is not None and entry.action_name in self._clicked else None
        if isinstance(event, MouseMove):
            if (keys, entry) != self._answer_at(x - event.delta_x, y - event.delta_y):
                self._pointer.came()
            if keys is not None:
                keys.styles.pointer = "default" if action is None else "pointer"
        elif isinstance(event, MouseDown) and event.button == 1:
            counts = self._counts(action)
            self._pointer.press(action if counts else None)
            if entry is not None and action is None:
                text = f"Press {entry.key_text}: a click does not give this answer."
                self._screen.notify(text, severity="warning", markup=False)
            elif keys is not None and not counts and (action is not None or not self._guard.armed):
                self._guard.note_early()
        elif isinstance(event, MouseUp) and self._pointer.release(action) and self._counts(action):
            return action
        return None

    def _counts(self, action: str | None) -> bool:
        return self._may_act(action) and self._pointer.counts

    def _answer_at(self, x: int, y: int) -> tuple[RowsView | None, Command | None]:
        """Return the answers at a place of the screen, and the command of the one whose label is there."""
        try:
            keys, region = self._screen.get_widget_at(x, y)
        except NoWidget:
            return None, None
        if not isinstance(keys, RowsView) or not keys.has_answers:
            return None, None
        row = keys.line_at(y - region.y + keys.scroll_offset.y)
        return keys, command_at(self._screen, self._where, row, x - region.x)
