"""What a person does in the chat: sends words, takes them back, gives commands. What comes of it are events."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content
from textual.message import Message
from textual.widgets import TextArea

from tui_agent.ui.base.commands import Command
from tui_agent.ui.bridge.agent_bridge import NOT_READY, AgentBridge
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.composer.prompt_parser import (
    ShellCall,
    SlashCall,
    TargetedMessage,
    UnknownSlash,
    parse_shell_call,
    parse_slash_call,
    parse_targeted_message,
)
from tui_agent.ui.composer.queue_strip import QueueStrip
from tui_agent.ui.dialogs.help_page import help_text
from tui_agent.ui.dialogs.text_page import TextPage
from tui_agent.ui.panel.call_list import CallList
from tui_agent.ui.panel.call_view_state import CallViewState

from .command_actions import CommandActions
from .interrupt_controls import ChatOptions, InterruptControls

if TYPE_CHECKING:
    from tui_agent.ui.bridge.engine_types import RewindOutcome


class InputRouting(InterruptControls):
    """The keys of the chat, and the commands that can be given by name."""

    @dataclass
    class ThemeRequested(Message):
        """A person wants other colours."""

        name: str

    @dataclass
    class ReplayRequested(Message):
        """A person wants to watch a recording."""

        path: str

    def __init__(self, bridge: AgentBridge, options: ChatOptions) -> None:
        super().__init__(bridge, options)
        self.commands = CommandActions(self, bridge, self.view)
        """What can be asked for by name."""

    # --- words --------------------------------------------------------------------------------------------------------

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        match parse_shell_call(event.text) or parse_slash_call(event.text):
            case ShellCall() as call:
                self._run_shell(call)
            case SlashCall(command, argument):
                if not self.commands.perform(command, argument):
                    self.entry.composer.put_back(event.text)
            case UnknownSlash() as unknown:
                self.entry.composer.put_back(event.text)
                self.commands.explain(unknown)
            case None if (aimed := parse_targeted_message(event.text)) is not None and self._send_to_target(
                aimed, event.text
            ):
                pass
            case None if event.kind == "follow_up":
                self.bridge.follow_up(event.text)
            case None:
                self.bridge.submit(event.text)
        self.announce_pending_agent()

    def _run_shell(self, call: ShellCall) -> None:
        if not call.command:
            self.say("What is to be run? !ls runs ls, and the model reads what it gives; !!ls keeps that from it.")
        elif not self.bridge.run_shell(call.command, call.said, shared=call.shared):
            self.entry.composer.put_back(call.said)
            busy = "The agent works; your command can run when it is done. It was kept."
            self.say(NOT_READY if self.bridge.agent_pending else busy, wrong=True)

    def _send_to_target(self, word: TargetedMessage, text: str) -> bool:
        """Says something to one call or sub-agent; False where the text is a message like any other."""
        if word.number is None:
            return self.bridge.steer_child(word.target, word.text)
        call = self.panel.ledger.numbered(word.number)
        if call is None or not self.bridge.cancel_call(call.view.call_id, word.text):
            self.entry.composer.put_back(text)
            self.say(f"There is no call {word.target} that goes on.", wrong=True)
        return True

    @on(CallList.CancelRequested)
    def _cancel_requested(self, event: CallList.CancelRequested) -> None:
        if not self.bridge.cancel_call(event.view.call_id, "the person cancelled this call"):
            self.say("This call is over.")

    @on(TextArea.Changed)
    def _typed(self) -> None:
        self.status_line.typing = bool(self.entry.composer.text)
        self.close_menu()

    @on(QueueStrip.Changed)
    def _queue_changed(self, event: QueueStrip.Changed) -> None:
        self.entry.composer.waiting = self.status_line.waiting = event.count

    @on(Composer.EditRequested)
    @on(Composer.DropRequested)
    def _recall_last(self, event: Composer.EditRequested | Composer.DropRequested) -> None:
        if (last := self.queue.last) is not None:
            self._recall(last.message_id, edit=isinstance(event, Composer.EditRequested))

    @on(QueueStrip.EditRequested)
    def _recall_one(self, event: QueueStrip.EditRequested) -> None:
        self._recall(event.message_id, edit=True)

    def _recall(self, message_id: str, *, edit: bool) -> None:
        text = self.bridge.recall_message(message_id)
        if text is None:
            self.say(NOT_READY if self.bridge.agent_pending else "This message is already on its way.", wrong=True)
        elif edit:
            self.entry.composer.put_back(text)
            self.focus_composer()

    # --- commands -----------------------------------------------------------------------------------------------------

    @property
    def theme_names(self) -> Sequence[str]:
        """The themes there are."""
        return self.options.theme_names()

    def choose_theme(self, name: str) -> None:
        """Changes the colours."""
        self.post_message(self.ThemeRequested(name))

    def watch_recording(self, path: str) -> None:
        """Shows a recording."""
        self.post_message(self.ReplayRequested(path))

    def run_command(self, command: Command) -> None:
        """Does what the command's key does."""
        run = self.app.run_action if command.where == "everywhere" else self.run_action
        self.call_later(run, command.action_name)

    def say(self, text: str, *, wrong: bool = False) -> None:
        """Shows a short text for a moment."""
        self.notify(text, severity="warning" if wrong else "information", markup=False)

    def show_page(self, title: str, text_at: Callable[[int], Content]) -> None:
        """Opens a page to read."""
        self.app.push_screen(TextPage(title, text_at))

    def start(self, name: str, work: Coroutine[object, object, None]) -> None:
        """Start work beside the screen."""
        self.run_worker(work, name=name, group=name, exit_on_error=False)

    def number_of(self, call_id: str) -> int | None:
        """A call's number in the panel; None where it has no row."""
        found = self.panel.ledger.find(call_id)
        return found.number if found is not None else None

    def action_cycle_mode(self) -> None:
        """Steps to the next permission mode."""
        self.bridge.cycle_mode()
        self.announce_pending_agent()

    def action_rewind(self) -> None:
        """Shows the moments one can go back to."""
        self._go_back(None)

    def revert_call(self, view: CallViewState) -> None:
        """Shows what taking back the changes of a call would do."""
        self._go_back((view.call_id, f"{view.name} {view.summary}".strip()))

    @on(CallList.RevertRequested)
    def _revert_requested(self, event: CallList.RevertRequested) -> None:
        self.revert_call(event.view)

    def _go_back(self, call: tuple[str, str] | None) -> None:
        rewinding = self.bridge.rewinding
        if rewinding is None:
            nothing = "This session is not kept: there is nothing to go back to."
            self.say(NOT_READY if self.bridge.agent_pending else nothing, wrong=True)
            return
        # Brings sessions and tools along, which the first screen does not wait for.
        from tui_agent.ui.dialogs.rewind_screen import RewindScreen

        clock = self.options.surroundings.clock
        self.app.push_screen(
            RewindScreen(rewinding, lambda: self.bridge.running, clock, call=call), self._report_rewind
        )

    def _report_rewind(self, outcome: "RewindOutcome | None") -> None:
        """Says what became of it; what was said then can be said again."""
        from tui_agent.ui.dialogs.rewind_rows import rewind_outcome_text

        if outcome is None:
            return
        if outcome.draft and not self.entry.composer.text:
            self.entry.composer.put_back(outcome.draft)
            self.focus_composer()
        if words := rewind_outcome_text(outcome):
            self.say(words, wrong=bool(outcome.left or outcome.failed))

    def action_help(self) -> None:
        """Opens the help page."""
        self.show_page("Help", help_text)
