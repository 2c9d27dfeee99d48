"""The chat: a fold over events. Live, resumed and replayed sessions take the same path and look the same."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key, Resize, ScreenResume, ScreenSuspend
from textual.widgets import TextArea
from textual.worker import Worker, WorkerState

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.facts.screen_facts import HistoryTail
from tui_agent.ui.approval.approval_controller import ApprovalController
from tui_agent.ui.approval.attention_line import AttentionLine
from tui_agent.ui.base.app_type import AnyScreen, apply_initial_breakpoints, report_each_layout
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.base.steady_widgets import settled_together
from tui_agent.ui.bridge.agent_bridge import AgentBridge, AgentEvents, HistoryEvents, StatusPublished
from tui_agent.ui.composer.composer import Composer
from tui_agent.ui.composer.prompt_area import PromptArea
from tui_agent.ui.composer.queue_strip import QueueRequest, QueueStrip
from tui_agent.ui.panel.call_list import CallList

from .actions.action_context import ActionContext
from .actions.command_actions import CommandActions
from .chat_body import TINY, WIDE, ChatBody
from .chat_options import ChatOptions
from .input_routing import EntryMessage, InputRouter
from .interrupt_keys import Interrupt
from .screen_state import ScreenState
from .status_bars import ReadOutput, ReadTree, StatusBars

SERVICES = ("relay", "serve", "warm-up", "prompts")
"""Names of the workers that last as long as the screen, or prepare it."""


class ChatScreen(AnyScreen):
    """The main screen: arranges its parts, hands them events, and passes the user's requests on."""

    AUTO_FOCUS = "#composer"
    # Not annotated: Textual declares both as `ClassVar[...] | None`, which type checkers take for instance variables.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (TINY, "-short"), (24, "-tall")]  # noqa: RUF012
    # `escape` has a binding in both lists; `check_action` decides which of them counts.
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("chat"), *bindings_for("interrupt")]

    def __init__(self, bridge: AgentBridge, options: ChatOptions) -> None:
        super().__init__()
        report_each_layout(self)
        surroundings = options.surroundings
        self.options = options
        """The settings of this screen."""
        self.bridge = bridge
        """The connection to the agent."""
        self.state = self._new_state()
        """Everything that the parts show."""
        tree: ReadTree = lambda: bridge.open_bench.commands.work_tree()  # noqa: E731, PLW0108 - it is opened later
        output: ReadOutput = lambda facts: bridge.open_bench.commands.status_output(facts)  # noqa: E731, PLW0108
        self.bars = StatusBars(options.place, options.label, surroundings, self.state.status, tree, output)
        """Frame of the composer and status line."""
        # A function, because the composer is created last, with parts of the others.
        put_back: Callable[[str], object] = lambda text: self.entry.composer.put_back(text)  # noqa: E731, PLW0108
        self.body = ChatBody(self.state, options, self.focus_composer, put_back)
        """Conversation, tool panel and search."""
        self.approvals = ApprovalController(
            self,
            bridge,
            surroundings.clock,
            self.state.approvals,
            entry=lambda: self.entry,
            foot=lambda: self.entry.foot_rows(self.bars.line),
            cover=self.body.keep_above,
            root=lambda: self.state.transcript.calls.root,
            named=lambda request: self.state.ledger.named(request),  # noqa: PLW0108 - the state is replaced
            answered=self.bars.show_answers,
        )
        """Dialogs of approval requests."""
        self.entry = PromptArea(self.state.waiting, self.state.status, self.approvals.line, self.bars.frame)
        """Queue, menus and composer."""
        context = ActionContext(self, bridge, options, self.entry.composer, self.show_pending_agent)
        self.commands = CommandActions(context, lambda: self.state)
        """Runs `/` commands and entries of the palette."""
        self.entry.composer.offers = self.commands.offers
        self.input = InputRouter(context, self.entry, lambda: self.state, self.commands.run)
        """Destinations of what the user types."""
        self._past: ScreenState | None = None

    def compose(self) -> ComposeResult:
        apply_initial_breakpoints(self, self.app.size)
        self.entry.fit(self.app.size)
        self.body.fit(self.app.size)
        yield self.body
        yield self.entry
        yield self.bars.line

    def on_mount(self) -> None:
        """Connect to the agent; what the model needs is loaded after the first paint."""
        if (glimpse := self.options.glimpse) is not None:
            tail = self._new_state(glimpse)
            for envelope in glimpse.events:
                tail.apply(envelope)
            self.show_state(tail)
        # After the glimpse, because the relay brings the whole past, which replaces it.
        self._work("relay", partial(self.bridge.relay, self.post_message))
        self._work("serve", self.bridge.serve)
        if self.options.prompt:
            self.bridge.submit(self.options.prompt)
        self.show_pending_agent()
        self.call_after_refresh(self._work, "warm-up", self.bridge.warm_up)
        self.call_after_refresh(self._work, "prompts", self.input.load_prompts)

    @on(ScreenResume)
    @on(ScreenSuspend)
    def _look_for_questions(self, event: ScreenResume | ScreenSuspend) -> None:
        """Open the next approval dialog once another screen has closed, or announce it on the page that opened."""
        if isinstance(event, ScreenResume):
            event.refresh_styles = self.stack_updates > 0  # Every part of a new screen has just got its style.
        else:
            # They wait for a frame of this screen, and events and the warm-up wait for them.
            self.call_next(self._invoke_and_clear_callbacks)
        self.approvals.look()

    def on_resize(self, event: Resize) -> None:
        self.entry.fit(event.size)
        self.body.fit(event.size)

    # --- events -------------------------------------------------------------------------------------------------------

    def apply(self, envelope: Envelope) -> None:
        """Apply one event to the state, and show what it changed."""
        changes = self.state.apply(envelope)
        # A part that fails keeps the event from no other.
        call, body = self.options.faults.call, self.body
        if changes.begun:
            call(body.hide_welcome)
        if changes.transcript:
            call(body.conversation.refresh_for, envelope.event)
        if changes.calls:
            call(body.panel.update, changes.calls)
        if changes.plan:
            call(body.side.plan.changed)
        if changes.files:
            call(body.side.files.changed)
        if changes.calls or changes.plan or changes.files:
            call(body.strip.changed)
        if changes.times:
            call(body.side.times.changed)
        if changes.status:
            call(self.bars.frame.changed)
            call(self.bars.line.changed)
        if changes.waiting or (changes.status and self.state.waiting.all):
            call(self.entry.queue.changed)
        if changes.approvals:
            call(self.approvals.changed)
        if changes.reviewed:
            self.call_after_refresh(self.commands.pages.review_ended)

    @on(AgentEvents)
    def receive_events(self, message: AgentEvents) -> None:
        """Apply events, and open the next approval dialog once all of them are shown."""
        if isinstance(message, HistoryEvents):
            # Off-screen: no part draws each event of a long past.
            self._past = self._past or self._new_state()
            for envelope in message.events:
                self._past.apply(envelope)
            message.applied.set()
            return
        if self._past is not None:
            self.show_state(self._past)
            self._past = None
            self.input.requeue_waiting_messages()
        with settled_together(self.options.faults.call):
            for envelope in message.events:
                self.apply(envelope)
        self.input.messages.follow(message.events)
        self.approvals.look()
        # Events that arrive before the next frame are merged and drawn with it.
        self.call_after_refresh(message.applied.set)

    @on(StatusPublished)
    def _show_agent_status(self) -> None:
        self.show_pending_agent()
        self.entry.set_busy(self.bridge.status.running)
        self.entry.composer.own_commands = self.bridge.status.commands

    def _new_state(self, tail: HistoryTail | None = None) -> ScreenState:
        return ScreenState(
            self.options.faults,
            model=self.options.model,
            mode=self.bridge.status.mode,
            calls_before=tail.calls_before if tail is not None else 0,
            numbers=tail.numbers if tail is not None else None,
            shows_pictures=not self.options.surroundings.no_color,
        )

    def show_state(self, state: ScreenState) -> None:
        """Show another state, such as the past of a resumed session, which was folded off-screen."""
        self.state = state
        self.bars.show(state.status)
        self.body.show(state)
        self.entry.queue.show(state.waiting, state.status)
        self.approvals.show(state.approvals)
        self.entry.composer.remember(state.inputs)

    def show_pending_agent(self) -> None:
        """Show whether the agent is still being loaded, its future mode, and how many messages wait for it."""
        status = self.bridge.status
        self.bars.line.agent_pending, self.bars.line.unsent = status.pending, len(status.unsent)
        if status.pending:
            # No event reports the mode yet, and the end of an earlier run may have reported another one.
            self.state.status.mode = status.mode
            self.bars.frame.changed()

    def _work(self, name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        self.run_worker(work, name=name, group=name, exit_on_error=False)

    @on(Worker.StateChanged)
    def _worker_changed(self, event: Worker.StateChanged) -> None:
        changed: Any = event  # Textual leaves the worker's result untyped.
        worker: Worker[None] = changed.worker
        if worker.name in SERVICES and worker.state is WorkerState.ERROR and worker.error is not None:
            self.bridge.report_crash(worker.error)
            # Without it no later prompt would run.
            if worker.name == "serve":
                self._work("serve", self.bridge.serve)

    # --- requests of the parts ----------------------------------------------------------------------------------------

    @on(Composer.Submitted)
    @on(Composer.MentionTyped)
    @on(Composer.FileNamed)
    @on(Composer.PromptsWanted)
    @on(Composer.HelpRequested)
    @on(PromptArea.FileHighlighted)
    @on(QueueRequest)
    def _entered(self, event: EntryMessage) -> None:
        if isinstance(event, Composer.Submitted):
            self.entry.notices.hide_problems()
        self.input.receive(event)
        if isinstance(event, Composer.Submitted) and not self.entry.composer.text:
            self.approvals.message_sent()

    @on(TextArea.Changed)
    @on(QueueStrip.Changed)
    def _update_hints(self) -> None:
        self.input.note_draft()
        self.bars.line.typing = bool(self.entry.composer.text)
        self.bars.line.waiting = len(self.entry.queue.messages)

    @on(CallList.ChangeRequested)
    def _call_requested(self, event: CallList.ChangeRequested) -> None:
        self.commands.change_call(event)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the keys of the interrupt menu while it is open, and paging unless the panel has the focus."""
        match action:
            case "interrupt_with":
                return self.entry.menu.is_open
            case "interrupt":
                return not self.entry.menu.is_open
            case "scroll" if parameters in (("page_up",), ("page_down",)):
                return not self.body.panel.has_focus_within
            case _:
                return super().check_action(action, parameters)

    def on_key(self, event: Key) -> None:
        """Type into the composer what no focused widget used."""
        composer = self.entry.composer
        # The composer has handled it, and Textual passes it on to the screen.
        if event is composer.last_key:
            return
        if self.focused is None:
            self.set_focus(composer)
        letter = event.is_printable and event.key not in self.active_bindings
        if letter or self.focused is composer:
            composer.post_message(Key(event.key, event.character))

    def focus_composer(self) -> None:
        """Give the keyboard to the composer."""
        self.entry.composer.focus()

    def action_interrupt(self) -> None:
        """Offer the ways to interrupt; if nothing runs, uncover the conversation."""
        self.focus_composer()
        if self.bridge.status.running:
            self.entry.open_menu(len(self.state.status.running))
        else:
            self.body.close_drawer()

    def action_interrupt_with(self, choice: Interrupt) -> None:
        """Interrupt in one of the ways the menu offers."""
        self.input.interrupt(choice)

    def action_send_now(self) -> None:
        """Send the draft and the queued messages without waiting for what runs."""
        self.entry.after_typed_keys(self.input.send_now)

    def action_cycle_mode(self) -> None:
        """Choose the next permission mode."""
        self.commands.settings.choose_next_mode()

    @on(AttentionLine.Clicked)
    def action_next_approval(self) -> None:
        """Open the oldest approval request."""
        self.approvals.open_next()

    def action_toggle_panel(self, closes: bool = False) -> None:
        """Move the focus to the tool panel or back; in a narrow window, or if `closes`, open or close it."""
        (self.body.show_or_close_side if closes else self.body.toggle_panel)()

    def action_scroll(self, target: str) -> None:
        """Scroll the conversation."""
        self.body.conversation.action_scroll(target)

    def action_search(self) -> None:
        """Open the search line."""
        self.body.open_search()

    def action_perform(self, command_id: str) -> None:
        """Run a command whose action is not the screen's own."""
        self.commands.perform(command(command_id))
