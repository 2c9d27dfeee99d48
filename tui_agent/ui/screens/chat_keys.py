"""What a person does in the chat: sends words, takes them back, puts on the brakes. What comes of it are events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import TextArea

from tui_agent.protocol.envelope import Envelope
from tui_agent.ui.bridge import AgentBridge
from tui_agent.ui.commands import Command, bindings_for, commands_for
from tui_agent.ui.slash_input import SlashCall, UnknownSlash, read_slash
from tui_agent.ui.surroundings import Place, Surroundings
from tui_agent.ui.widgets.composer import Composer
from tui_agent.ui.widgets.notice_lines import InterruptMenu
from tui_agent.ui.widgets.queue_strip import QueueStrip

from .chat_commands import ChatCommands
from .chat_layout import ChatLayout
from .help_page import HelpPage

_MENU_KEYS = frozenset(key for entry in commands_for("interrupt") for key in entry.keys)


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What a chat begins with."""

    place: Place = field(default_factory=Place)
    label: str = ""
    """Said beside the model's name, such as that it is no language model."""
    ideas: Sequence[str] = ()
    """What could be asked for, shown before anything was said."""
    surroundings: Surroundings = field(default_factory=Surroundings)
    past: Sequence[Envelope] = ()
    """Events of an earlier life of the session."""
    prompt: str | None = None
    """Sent at once."""
    theme_names: Callable[[], Sequence[str]] = tuple
    """The themes there are."""


class ChatKeys(ChatLayout):
    """The keys of the chat, and the commands that can be given by name."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("chat"), *bindings_for("interrupt")]

    @dataclass
    class ThemeRequested(Message):
        """A person wants other colours."""

        name: str

    def __init__(self, bridge: AgentBridge, options: ChatOptions) -> None:
        super().__init__(options.place, options.label, options.ideas, options.surroundings)
        self.options = options
        """What it began with."""
        self.bridge = bridge
        """The door to the agent."""
        self.commands = ChatCommands(self, bridge, self.view)
        """What can be asked for by name."""

    # --- words --------------------------------------------------------------------------------------------------------

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        match read_slash(event.text):
            case SlashCall(command, argument):
                self.commands.perform(command, argument)
            case UnknownSlash() as unknown:
                self.entry.composer.put_back(event.text)
                self.commands.explain(unknown)
            case None if event.kind == "follow_up":
                self.bridge.follow_up(event.text)
            case None:
                self.bridge.submit(event.text)

    @on(TextArea.Changed)
    def _typed(self) -> None:
        self.status_line.typing = bool(self.entry.composer.text)
        self.close_menu()

    @on(QueueStrip.Changed)
    def _queue_changed(self, event: QueueStrip.Changed) -> None:
        self.entry.composer.waiting = self.status_line.waiting = event.count

    @on(Composer.EditRequested)
    @on(Composer.DropRequested)
    def _last_taken_back(self, event: Composer.EditRequested | Composer.DropRequested) -> None:
        if (last := self.queue.last) is not None:
            self._take_back(last.message_id, edit=isinstance(event, Composer.EditRequested))

    @on(QueueStrip.EditRequested)
    def _one_taken_back(self, event: QueueStrip.EditRequested) -> None:
        self._take_back(event.message_id, edit=True)

    def _take_back(self, message_id: str, *, edit: bool) -> None:
        text = self.bridge.take_back(message_id)
        if text is None:
            self.say("This message is already on its way.", wrong=True)
        elif edit:
            self.entry.composer.put_back(text)
            self.focus_composer()

    # --- brakes -------------------------------------------------------------------------------------------------------

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
        """Cancels what runs."""
        self.close_menu()
        self.bridge.cancel()

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

    # --- commands -----------------------------------------------------------------------------------------------------

    @property
    def theme_names(self) -> Sequence[str]:
        """The themes there are."""
        return self.options.theme_names()

    def choose_theme(self, name: str) -> None:
        """Changes the colours."""
        self.post_message(self.ThemeRequested(name))

    def run_command(self, command: Command) -> None:
        """Does what the command's key does."""
        run = self.app.run_action if command.where == "everywhere" else self.run_action
        self.call_later(run, command.action_name)

    def say(self, text: str, *, wrong: bool = False) -> None:
        """Shows a short text for a moment."""
        self.notify(text, severity="warning" if wrong else "information", markup=False)

    def action_cycle_mode(self) -> None:
        """Steps to the next permission mode."""
        self.bridge.cycle_mode()

    def action_help(self) -> None:
        """Opens the help page."""
        self.app.push_screen(HelpPage())
