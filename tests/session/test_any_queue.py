"""Any sequence of typing, edits, drops, moves, boundaries and resumes loses, doubles and swaps no queued message."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.session.folded import stored
from tui_agent.agent.steering_queue import SteeringQueue
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import AgentEvent, MessageEnded
from tui_agent.protocol.messages import UserMessage, user_message
from tui_agent.ui.bridge.prompt_queue import MessageEdits, PromptAttachments
from tui_agent.ui.state.queued_messages import WaitingMessages

PLACES = st.integers(0, 5)


class OneQueue:
    """An agent that has only a queue."""

    def __init__(self, queue: SteeringQueue) -> None:
        self.message_queues = (queue,)


class AnyQueue(RuleBasedStateMachine):
    """State machine of a user at a queue, beside two plain lists of texts, and all events in a journal."""

    @initialize()
    def begin(self) -> None:
        self.journal: list[Envelope] = []
        self.shown = WaitingMessages()
        self.typed = 0
        self.texts: dict[bool, list[str]] = {False: [], True: []}
        self.held = ""
        self.dropped: list[tuple[bool, int, str]] = []
        self.over: list[str] = []
        self._open(())

    def _open(self, waiting: tuple[UserMessage, ...]) -> None:
        self.queue = SteeringQueue(self._publish)
        self.queue.restore(waiting)
        self.edits = MessageEdits(PromptAttachments(), OneQueue(self.queue))  # pyright: ignore[reportArgumentType]

    def _publish(self, event: AgentEvent) -> None:
        envelope = Envelope(event, seq=len(self.journal), ts=0, mono=0.0, origin=Origin())
        self.journal.append(envelope)
        self.shown.apply(envelope)

    def _choose(self, place: int) -> tuple[bool, int, str] | None:
        """Return the kind, the index in its list and the text of one message."""
        rows = [(follows, at, text) for follows in (False, True) for at, text in enumerate(self.texts[follows])]
        return rows[place % len(rows)] if rows else None

    def _id(self, text: str) -> str:
        return next(message.id for message in self.queue.all if message.text == text)

    @rule(follows=st.booleans())
    def the_user_types(self, follows: bool) -> None:
        text = f"message {self.typed}"
        self.typed += 1
        self.queue.put(user_message(text, "follow_up" if follows else "steer"))
        self.texts[follows].append(text)

    @rule(place=PLACES)
    def an_edit_begins(self, place: int) -> None:
        if self.held:
            assert self.edits.release(self._id(self.held))
            self.held = ""
        if (chosen := self._choose(place)) is not None:
            self.held = chosen[2]
            assert self.edits.hold(self._id(self.held)) == self.held
            assert self.edits.hold(self._id(self.held)) is None

    @precondition(lambda self: self.held)
    @rule(changes=st.booleans())
    def the_edit_ends(self, changes: bool) -> None:
        old, self.held = self.held, ""
        new = f"{old}, edited" if changes else old
        assert self.edits.release(self._id(old), new)
        for texts in self.texts.values():
            texts[:] = [new if text == old else text for text in texts]

    @rule(place=PLACES)
    def one_is_dropped(self, place: int) -> None:
        if (chosen := self._choose(place)) is not None:
            follows, at, text = chosen
            assert self.edits.drop(self._id(text)) == text
            self.texts[follows].remove(text)
            self.dropped.append((follows, at, text))
            self.held = "" if self.held == text else self.held

    @rule()
    def the_drop_is_undone(self) -> None:
        assert self.edits.undo_drop() == bool(self.dropped)
        if self.dropped:
            follows, at, text = self.dropped.pop()
            self.texts[follows].insert(max(at, self._first(follows)), text)

    def _first(self, follows: bool) -> int:
        """Return the first place that is free: a follow-up on its way stays in front."""
        taken = [message.text for message in self.queue.taken if message.kind == "follow_up"]
        return self.texts[True].index(taken[-1]) + 1 if follows and taken and taken[-1] in self.texts[True] else 0

    @rule(place=PLACES, rows=st.sampled_from([-3, -1, 1, 3]))
    def one_is_moved(self, place: int, rows: int) -> None:
        if (chosen := self._choose(place)) is not None:
            follows, at, text = chosen
            texts, first = self.texts[follows], self._first(follows)
            to = min(max(at + rows, first), len(texts) - 1)
            moves = to != at and at >= first
            assert self.edits.move(self._id(text), rows) == moves
            if moves:
                texts.insert(to, texts.pop(at))

    @rule(place=PLACES)
    def one_changes_its_kind(self, place: int) -> None:
        if (chosen := self._choose(place)) is not None:
            follows, _, text = chosen
            self.texts[follows].remove(text)
            first = self._first(True)
            assert self.edits.change_kind(self._id(text))
            if follows:
                self.texts[False].append(text)
            else:
                self.texts[True].insert(first, text)

    @rule(at_the_end=st.booleans())
    def a_boundary_passes(self, at_the_end: bool) -> None:
        self.queue.take_steers()
        if at_the_end and not self.queue.taken:
            self.queue.take_follow_up()

    @rule(delivered=st.integers(1, 3))
    def messages_are_delivered(self, delivered: int) -> None:
        """Deliver messages that were taken, each time the first that is shown; the user may have changed the queue."""
        for _ in range(delivered):
            if not (taken := self.queue.taken):
                break
            follows = taken[0].kind == "follow_up"
            assert taken[0].text == next(text for text in self.texts[follows] if text != self.held)
            self.queue.commit(taken[0], "here")
            self._publish(MessageEnded(message_id=taken[0].id, message=taken[0]))
            self.texts[follows].remove(taken[0].text)
            self.over.append(taken[0].text)

    @rule()
    def the_run_is_interrupted(self) -> None:
        self.queue.requeue("aborted")

    @rule()
    def the_program_ends_and_the_session_is_resumed(self) -> None:
        self._open(stored(self.journal).waiting)
        self.held = ""
        self.dropped = []

    @invariant()
    def the_queue_is_as_the_user_made_it(self) -> None:
        assert [message.text for message in self.queue.all] == [*self.texts[False], *self.texts[True]]
        assert [message.text for message in self.queue.held] == ([self.held] if self.held else [])
        assert len(set(self.over)) == len(self.over)

    @invariant()
    def the_screen_and_the_journal_show_the_same(self) -> None:
        assert [(row.text, row.follows_up) for row in self.shown.rows] == [
            (message.text, message.kind == "follow_up") for message in self.queue.all
        ]
        assert [row.text for row in self.shown.all] == [message.text for message in self.queue.waiting]
        assert stored(self.journal).waiting == self.queue.all


TestAnyQueue = AnyQueue.TestCase
