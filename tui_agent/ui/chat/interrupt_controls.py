"""The brakes of the chat: the interrupt menu, sending now, and the first steps of `ctrl+c`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from textual import on
from textual.binding import BindingType

from tui_agent.ui.base.commands import bindings_for, commands_for
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.status.notice_lines import InterruptMenu
from tui_agent.ui.status.session_status import SessionStatus

from .chat_layout import ChatLayout
from .screen_state import HistoryTail

_MENU_KEYS = frozenset(key for entry in commands_for("interrupt") for key in entry.keys)


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What a chat begins with."""

    place: WorkingDirectory = field(default_factory=WorkingDirectory)
    model: str = ""
    """The model's name, as long as nothing was told of it."""
    label: str = ""
    """Said beside the model's name, such as that it is no language model."""
    ideas: Sequence[str] = ()
    """What could be asked for, shown before anything was said."""
    surroundings: TerminalEnvironment = field(default_factory=TerminalEnvironment)
    glimpse: HistoryTail | None = None
    """The end of what was told in earlier lives of the session, shown until all of it is read."""
    prompt: str | None = None
    """Sent at once."""
    theme_names: Callable[[], Sequence[str]] = tuple
    """The themes there are."""
    faults: ErrorBoundary = field(default_factory=lambda: ErrorBoundary(tell=str, log_file=None))
    """What becomes of parts that fail."""


class InterruptControls(ChatLayout):
    """What ends or hurries a run."""

    # In one list: two meanings of escape take turns, where those of a base class would be forgotten.
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("chat"), *bindings_for("interrupt")]

    def __init__(self, bridge: AgentBridge, options: ChatOptions) -> None:
        view = SessionStatus(model=options.model, mode=bridge.mode)
        super().__init__(options.place, view, options.label, options.ideas, options.surroundings)
        self.options = options
        """What it began with."""
        self.bridge = bridge
        """The door to the agent."""

    def announce_pending_agent(self) -> None:
        """Says that the agent is not there yet, what it will be allowed, and how much waits for it."""
        self.status_line.agent_pending = self.bridge.agent_pending
        self.status_line.unsent = len(self.bridge.unsent)
        if self.bridge.agent_pending and self.view.mode is not self.bridge.mode:
            # No event tells it yet, and the end of an earlier life tells of another one.
            self.view.mode = self.bridge.mode
            self.title_bar.changed()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the interrupt menu count while it is open, the key that opens it while it is not."""
        if action in ("menu_cancel", "menu_stop", "menu_now"):
            return self.menu.is_open
        if action == "interrupt":
            return not self.menu.is_open
        return super().check_action(action, parameters)

    def action_interrupt(self) -> None:
        """Offers the ways to interrupt; with nothing to interrupt, back to typing."""
        self.focus_composer()
        if self.bridge.running:
            self.menu.open(len(self.view.running), len(self.queue.messages))
            self.entry.composer.yielded_keys = _MENU_KEYS
        else:
            self.close_drawer()

    @on(InterruptMenu.Closed)
    def close_menu(self) -> None:
        """The keys of the menu are letters again."""
        self.entry.composer.yielded_keys = frozenset()
        self.menu.close()

    def action_menu_cancel(self) -> None:
        """Cancels what runs; what waits for an agent that is not there yet can be changed or left again."""
        self.close_menu()
        if not self.bridge.agent_pending:
            self.bridge.cancel()
            return
        if said := self.bridge.recall_all_messages():
            self.entry.composer.put_back(said)
        self.announce_pending_agent()

    def action_menu_stop(self) -> None:
        """Ends the run after this step."""
        self.close_menu()
        self.bridge.stop()

    def action_menu_now(self) -> None:
        """Cancels what runs and sends what waits."""
        self.close_menu()
        self.bridge.send_now()

    def action_send_now(self) -> None:
        """Sends the draft and what waits, without waiting for what runs."""
        self.in_order(self._send_now)

    def _send_now(self) -> None:
        self.entry.composer.action_submit()
        # Behind the message with which the composer hands its draft over.
        self.call_later(self.bridge.send_now)

    def in_order(self, do: Callable[[], object]) -> None:
        """Does something once everything typed so far has reached the composer."""
        self.entry.composer.call_later(do)

    def clear_or_cancel(self) -> bool:
        """The first steps of `ctrl+c`: empties the composer, else cancels what runs; False where there is neither."""
        if self.entry.composer.text:
            self.entry.composer.clear()
        elif self.bridge.running:
            self.action_menu_cancel()
        else:
            return False
        return True
