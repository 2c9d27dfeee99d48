"""Signals to a user who looks elsewhere: the title of the terminal, and a bell or a notification.

A signal is sent once for each wait and each end of a run, and only to a terminal without the focus. Terminals that do
not report their focus count as such once no key has been pressed for a while.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from textual.driver import Driver
from textual.events import AppBlur, AppFocus, Event, Key, MouseEvent, Paste

from tui_agent.protocol.facts.screen_facts import TITLE, TitleItem
from tui_agent.ui.base.terminal_environment import Clock
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.sanitiser import one_line

Notifications: TypeAlias = Literal["off", "bell", "osc9", "auto"]

AWAY_SECONDS = 30.0
"""Seconds without input after which the user of a terminal without focus reports may look elsewhere."""
_NAME_WIDTH = 40

_BELL = "\x07"
_KNOWN_PROGRAMS = ("iTerm.app", "WezTerm", "ghostty")
"""Values of `TERM_PROGRAM` of terminals that show notifications (OSC 9)."""
_KNOWN_TERMINALS = ("xterm-kitty", "xterm-ghostty", "foot", "foot-extra")
"""Values of `TERM` of such terminals."""


@dataclass(slots=True)
class UserPresence:
    """The user's attention to the terminal, as far as events of the terminal show it."""

    clock: Clock
    _focused: bool | None = None
    _last_input: float = 0.0

    def __post_init__(self) -> None:
        self._last_input = self.clock()

    def note(self, event: Event) -> None:
        """Note an event of the terminal."""
        if isinstance(event, AppFocus | AppBlur):
            self._focused = isinstance(event, AppFocus)
        elif isinstance(event, Key | Paste | MouseEvent):
            self._last_input = self.clock()
            self._focused = None if self._focused is None else True

    @property
    def away(self) -> bool:
        """True if the user probably looks elsewhere."""
        if self._focused is None:
            return self.clock() - self._last_input >= AWAY_SECONDS
        return not self._focused


class TerminalSignals:
    """Keeps the terminal's title, and signals waits and ends of runs."""

    def __init__(
        self,
        presence: UserPresence,
        name: str,
        notification: Callable[[str], str],
        target: Callable[[], Driver | None],
    ) -> None:
        """Send nothing yet.

        Args:
            presence: knows whether the user is there.
            name: name of the directory, for title and texts.
            notification: returns the characters of a notification with a text; empty if the terminal has none.
            target: returns the terminal; None without one.
        """
        self.presence = presence
        """The user's attention."""
        self._name = one_line(name, _NAME_WIDTH)
        self._notification = notification
        self._target = target
        self._title = ""
        self._items = TITLE
        self._facts: dict[TitleItem, str] = {}
        self._state = ""
        self._waited = False
        self._busy = False

    def use_items(self, items: tuple[TitleItem, ...]) -> None:
        """Show these parts in the title from now on."""
        self._items = items
        self._show_title()

    def update(self, status: SessionStatus) -> None:
        """Show a status in the title, and signal what has changed since the last one."""
        self._facts = {"model": one_line(status.model, _NAME_WIDTH), "mode": status.mode.words}
        waits = bool(status.asking) or status.status == "waiting_user"
        is_told = status.ended not in (None, "aborted")
        ended = "the run has failed" if status.ended == "error" else "the run has ended" if is_told else ""
        self.show(waits=waits, busy=status.busy, ended=ended)

    def show(self, *, waits: bool, busy: bool, ended: str) -> None:
        """Show a state in the title, and signal what has changed since the last one; `ended` are words for its end."""
        self._state = "waiting for you" if waits else "working" if busy else ""
        self._show_title()
        text = ""
        if waits and not self._waited:
            text = "waiting for you"
        elif self._busy and not busy:
            text = ended
        self._waited, self._busy = waits, busy
        if text and self.presence.away:
            self._write(self._notification(f"tui-agent: {text} ({self._name})"))

    def repeat_title(self) -> None:
        """Write the title again: another program may have replaced it."""
        # A title is written only if it differs from the last one.
        title, self._title = self._title, ""
        self._write_title(title)

    def _show_title(self) -> None:
        parts = {**self._facts, "state": self._state, "folder": self._name, "program": "tui-agent"}
        self._write_title(" · ".join(filter(None, (parts.get(item, "") for item in self._items))))

    def _write_title(self, title: str) -> None:
        if title and title != self._title and self._target() is not None:
            self._title = title
            self._write(f"\x1b]2;{title}\x07")

    def _write(self, data: str) -> None:
        target = self._target()
        if data and target is not None:
            target.write(data)


def notification_in(method: Notifications, environment: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that returns the characters of a notification in this environment."""
    terminal = environment.get("TERM", "dumb")
    if method == "off" or terminal in ("dumb", ""):
        return lambda _: ""
    inside = "TMUX" in environment or "STY" in environment
    known = environment.get("TERM_PROGRAM") in _KNOWN_PROGRAMS or terminal in _KNOWN_TERMINALS
    # tmux passes a bell on, but other sequences only if its user has allowed it.
    if method == "bell" or (method == "auto" and (inside or not known)):
        return lambda _: _BELL
    if "TMUX" in environment:
        return lambda text: f"\x1bPtmux;\x1b\x1b]9;{text}\x07\x1b\\"
    if "STY" in environment:
        return lambda text: f"\x1bP\x1b]9;{text}\x07\x1b\\"
    return lambda text: f"\x1b]9;{text}\x07"
