"""The chat: a fold over the events. Live, resumed and replayed sessions come the same way and look the same."""

from collections.abc import Coroutine

from textual import on
from textual.worker import Worker, WorkerState

from tui_agent.protocol.envelope import Envelope
from tui_agent.ui.approval.approval_controller import ApprovalController
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.bridge.bridge_messages import AgentEvents, HistoryEvents, StatusPublished
from tui_agent.ui.panel.call_detail_screen import CallDetailScreen
from tui_agent.ui.panel.call_list import CallList
from tui_agent.ui.status.notice_lines import AttentionLine

from .input_routing import InputRouting
from .interrupt_controls import ChatOptions
from .screen_state import EventRouter, ScreenState, hides_welcome


class ChatScreen(InputRouting):
    """The main screen: hands events to the parts that show them, and keeps the workers of the bridge."""

    def __init__(self, bridge: AgentBridge, options: ChatOptions) -> None:
        super().__init__(bridge, options)
        self._running_workers: dict[str, Worker[None]] = {}
        self._desk = ApprovalController(self, self.attention, bridge, options.surroundings.clock)
        # The status comes first: the parts behind it read it.
        parts = (
            *(self.view, self.conversation, self.panel, self.timeline, self.strip),
            *(self.queue, self.title_bar, self.status_line, self._desk),
        )
        self._router = EventRouter([(part, part.HANDLED_EVENTS) for part in parts], options.faults)
        self._past: ScreenState | None = None

    def on_mount(self) -> None:
        """Begins to listen and to serve; what the model needs is loaded once the screen is painted."""
        if (glimpse := self.options.glimpse) is not None:
            fold = ScreenState(self.options.faults, glimpse.calls_before)
            fold.apply(glimpse.events)
            self._show_past(fold)
        self._work("relay", self.bridge.relay(self.post_message))
        self._work("serve", self.bridge.serve())
        if self.options.prompt:
            self.bridge.submit(self.options.prompt)
        self.announce_pending_agent()
        self.call_after_refresh(self._warm_up)

    def apply(self, envelope: Envelope) -> None:
        """Hands one event to what shows it; a part that fails keeps it from no other."""
        self._router.apply(envelope)
        if hides_welcome(envelope.event):
            self.hide_welcome()

    def note_keypress(self) -> None:
        """Something was typed or pasted, anywhere: a dialog that would open now waits."""
        self._desk.note_keypress()

    def action_next_approval(self) -> None:
        """Opens the question that waits."""
        self._desk.open_next()

    @on(AgentEvents)
    def _receive_events(self, message: AgentEvents) -> None:
        if isinstance(message, HistoryEvents):
            self._past = self._past or ScreenState(self.options.faults)
            self._past.apply(message.events)
            message.applied.set()
            return
        if self._past is not None:
            self._show_past(self._past)
            self._past = None
            self._requeue_waiting_messages()
        for envelope in message.events:
            self.apply(envelope)
        message.applied.set()
        self._desk.look()

    @on(StatusPublished)
    def _show_agent_status(self) -> None:
        self.announce_pending_agent()
        busy = self.bridge.running
        self.entry.set_busy(busy)
        if not busy:
            self.close_menu()

    def _show_past(self, past: ScreenState) -> None:
        """Shows what was told in earlier lives of the session, in the place of what was known of it."""
        if past.begun:
            self.hide_welcome()
        self.view.become(past.view)
        self.conversation.show(past.transcript)
        self.panel.show(past.ledger)
        self.timeline.show(past.times)
        self.queue.show(past.waiting)
        self._desk.show(past.approvals)
        self.entry.composer.remember(past.inputs)
        for part in (self.strip, self.title_bar, self.status_line):
            part.changed()

    @on(AttentionLine.Clicked)
    def _attention_clicked(self) -> None:
        self._desk.open_next()

    @on(CallList.Opened)
    def _call_opened(self, event: CallList.Opened) -> None:
        def answered(reverts: bool | None) -> None:
            if reverts:
                self.revert_call(event.view)

        self.app.push_screen(CallDetailScreen(event.view, clock=self.options.surroundings.clock), answered)

    def on_screen_resume(self) -> None:
        """Back from another screen: a question may be waiting."""
        self._desk.look()

    def _warm_up(self) -> None:
        self._work("warm-up", self.bridge.warm_up())

    def _work(self, name: str, work: Coroutine[object, object, None]) -> None:
        self._running_workers[name] = self.run_worker(work, name=name, group=name, exit_on_error=False)

    @on(Worker.StateChanged)
    def _worker_changed(self) -> None:
        for name, worker in list(self._running_workers.items()):
            if worker.state is WorkerState.ERROR and worker.error is not None:
                del self._running_workers[name]
                self.bridge.report_crash(worker.error)
                if name == "serve":
                    self._work("serve", self.bridge.serve())

    def _requeue_waiting_messages(self) -> None:
        """What waited when the session ended waits on, also where the agent does not know of it any more."""
        known = self.bridge.status.restored_messages
        for message in self.queue.messages:
            if message.message_id not in known:
                self.queue.forget(message.message_id)
                self.bridge.requeue(message.kind, message.text)
