"""Keys at random times against questions that appear, are settled elsewhere and are cancelled."""

import heapq
import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.events import Key

from tests.support.table import table
from tests.ui.stage import Clock
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.ui.approval import approval_controller
from tui_agent.ui.approval.approval_controller import ApprovalController
from tui_agent.ui.dialogs.answer_rules import PACE_SECONDS, PAUSE_SECONDS, SEEN_SECONDS, AnswerGuard, Verdict
from tui_agent.ui.dialogs.answer_screen import QuestionScreen, TypedKeys
from tui_agent.ui.state.approval_folds import PendingApprovals

SCHEDULES = int(os.environ.get("TUI_AGENT_RACES", "60"))
"""Number of schedules. For all: `TUI_AGENT_RACES=5000 pytest tests/ui/approval/test_typing_races.py`."""
SENTENCES = ("no, use pytest", "yes but tabs", "nothing", "know", "nylon", "kay", "nnnope", "y n", "skip it", "what?")
ANSWERS = ("y", "n", "k", "nnnnn", "yny", "kn")
GAPS = (0.0, 0.03, 0.08, 0.15, 0.19, 0.21, 0.3, 0.45, 0.49)


class Question(QuestionScreen[ApprovalDecision | None]):
    """A dialog without a terminal."""

    WHERE = "approval"

    def __init__(self, desk: "Desk", request: ApprovalRequest, keys: TypedKeys, *, at_once: bool) -> None:
        row: Any = SimpleNamespace(guard=AnswerGuard(desk.clock, at_once=at_once), at_cursor="")
        super().__init__(row, keys)
        self.desk, self.request, self.at_once = desk, request, at_once
        self.answered: Callable[[Any], None] = lambda _: None
        desk.after(desk.random.uniform(0.01, 0.2), self.guard.drawn)

    def ends(self, action: str) -> bool:
        return True

    def sort(self, key: Key, action: str | None) -> Verdict:
        verdict = super().sort(key, action)
        if verdict == "dead":
            self.desk.dead.append(key)
        return verdict

    app = property(lambda self: self.desk.app)  # type: ignore[assignment]
    is_current = property(lambda self: self.desk.top is self)  # type: ignore[assignment]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action in ("approve_once", "deny", "skip")

    def set_timer(self, delay: float, callback: Any = None, **_: Any) -> Any:
        return self.desk.timer(delay, callback)

    def dismiss(self, result: Any = None) -> Any:
        self.desk.top = None
        self.desk.after(0.001, lambda: self.answered(result))

    def action_approve_once(self) -> None:
        self.dismiss(ApprovalDecision(decision="approve"))

    def action_deny(self) -> None:
        self.dismiss(ApprovalDecision(decision="deny"))

    def action_skip(self) -> None:
        self.dismiss(ApprovalDecision(decision="skip"))


class Desk:
    """The controller with a simulated screen, composer and agent, in simulated time."""

    def __init__(self, seed: int) -> None:
        self.random, self.clock = random.Random(seed), Clock()
        self.due: list[tuple[float, int, Callable[[], object]]] = []
        self._order = count()
        self.top: Question | None = None
        self.typed: list[Key] = []
        self.pressed: list[tuple[float, Key]] = []
        self.dead: list[Key] = []
        self.decided: list[tuple[str, str, float]] = []
        self.sent: list[str] = []
        self.draft = ""
        self.numbers = count(1)
        self.pending = PendingApprovals()
        self.app: Any = SimpleNamespace(push_screen=self._push, call_later=lambda do: self.after(0.0, do))
        screen: Any = SimpleNamespace(
            app=self.app,
            set_timer=self.timer,
            call_after_refresh=lambda do, **fields: self.after(0.005, partial(do, **fields)),
            notify=lambda *_, **__: None,
        )
        self.chat = screen
        bridge: Any = SimpleNamespace(decide=self._decide, bench=None, shares_rules=True)
        entry: Any = SimpleNamespace(composer=SimpleNamespace(region=None), type_text=self._type)
        self.controller = ApprovalController(screen, bridge, self.clock, self.pending, lambda: cast(Any, entry))
        self.controller.time_of = lambda event: event.time
        self.lag = self.random.choice((0.0, 0.0, 0.05, 0.2, 0.6))
        """Most seconds until the app handles a key that was pressed."""
        self._handled_at = 0.0
        self.unread = 0
        self.controller.line = cast(Any, SimpleNamespace(announce=lambda *_: None))

    def after(self, delay: float, do: Callable[[], object]) -> None:
        heapq.heappush(self.due, (self.clock.now + delay, next(self._order), do))

    def timer(self, delay: float, do: Callable[[], object]) -> Any:
        live = [True]
        self.after(delay, lambda: do() if live[0] else None)
        return SimpleNamespace(stop=lambda: live.__setitem__(0, False))

    def run(self) -> None:
        while self.due:
            self.clock.now, _, do = heapq.heappop(self.due)
            self.app.screen = self.top or self.chat
            self.app.input_waits = bool(self.unread)
            do()

    def _push(self, question: Question, answered: Callable[[Any], None]) -> None:
        assert self.top is None, "an open dialog is never replaced"
        self.top, question.answered = question, answered

    def _decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        self.decided.append((request_id, decision.decision, self.clock.now))
        return True

    def _type(self, typed: Sequence[Any]) -> None:
        for key in typed:
            self.typed.append(key)
            self.draft += key.character or ""

    def press(self, letter: str) -> None:
        key = Key("space" if letter == " " else letter, letter)
        key.time = self.clock.now
        self.pressed.append((self.clock.now, key))
        self._handled_at = max(self._handled_at, self.clock.now + self.random.uniform(0, self.lag))
        self.unread += 1
        self.after(self._handled_at - self.clock.now, partial(self._handle, key))

    def _handle(self, key: Key) -> None:
        self.unread -= 1
        if self.controller.note_key(key):
            return
        if self.top is None:
            self._type((key,))
        else:
            assert self.top._takes(key)

    def send(self) -> None:
        if self.top is None and self.draft:
            self.sent.append(self.draft)
            self.draft = ""
            self.controller.message_sent()

    def ask(self) -> str:
        request = ApprovalRequested(
            request_id=f"q{next(self.numbers)}", call_id="c", digest="d", tool="bash", args={}, reason=""
        )
        self._tell(request)
        return request.request_id

    def settle_elsewhere(self, request_id: str) -> None:
        self._tell(ApprovalResolved(request_id=request_id, call_id="c", decision="approve", by="policy"))

    def _tell(self, event: Any) -> None:
        self.pending.apply(Envelope(event, 1, 0, self.clock.now, Origin(run_id="r", step=0, depth=0)))
        self.controller.changed()
        self.controller.look()


@pytest.mark.slow
@table("block", range(4))
def test_no_key_is_lost_and_none_answers_another_question(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(block, SCHEDULES, 4):
        _check(seed, monkeypatch)


def _opened(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """Return the list of dialogs, to which each one is added that opens."""
    opened: list[Question] = []

    def make(request: ApprovalRequest, *_: object, keys: TypedKeys, at_once: bool, **__: object) -> Question:
        opened.append(Question(desk, request, keys, at_once=at_once))
        return opened[-1]

    monkeypatch.setattr(approval_controller, "ApprovalScreen", make)
    return opened


def _check(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(seed)
    opened = _opened(desk, monkeypatch)
    chance = desk.random
    for _ in range(chance.randint(1, 5)):
        at = chance.uniform(0, 8)
        known: list[str] = []
        desk.after(at, lambda known=known: known.append(desk.ask()))
        if chance.random() < 0.6:
            desk.after(at + chance.uniform(0, 4), lambda known=known: desk.settle_elsewhere(known[0]))
    moment = 0.0
    for _ in range(chance.randint(1, 6)):
        moment += chance.uniform(0.3, 2.5)
        gaps = chance.choice((GAPS, (0.3,)))
        for letter in chance.choice((*SENTENCES, *ANSWERS)):
            desk.after(moment, lambda letter=letter: desk.press(letter))
            moment += chance.choice(gaps)
        if chance.random() < 0.5:
            moment += chance.uniform(0, 0.6)
            desk.after(moment, desk.send)
    desk.run()

    # Every key is text, in order, or an answer to one question, or one that does nothing, and the dialog says why.
    keys = [key for _, key in desk.pressed]
    places = [next(at for at, key in enumerate(keys) if key is typed) for typed in desk.typed]
    assert places == sorted(set(places)), f"seed {seed}: lost, doubled or overtaken"
    answers = _answers(desk, opened, seed)
    for key in keys:
        uses = [key in desk.typed, key in answers, key in desk.dead]
        assert uses in ([True, False, False], [False, True, False], [False, False, True], [True, False, True]), (
            f"seed {seed}: {key.character!r} is {uses}"
        )
    # Messages: what was typed, each once and in order.
    assert "".join(desk.sent) + desk.draft == "".join(key.character or "" for key in desk.typed)


def _answers(desk: Desk, opened: Sequence[Question], seed: int) -> list[Key]:
    """Check each answer, and return the keys that gave them."""
    assert len({request_id for request_id, _, _ in desk.decided}) == len(desk.decided)
    pressed = {id(key): at for at, key in desk.pressed}
    answers: list[Key] = []
    for request_id, decision, at in desk.decided:
        question = next(one for one in reversed(opened) if one.request.request_id == request_id and one.answered_by)
        key = question.answered_by
        assert key is not None
        assert key.key == {"approve": "y", "deny": "n", "skip": "k"}[decision], f"seed {seed}"
        answers.append(key)
        # The question was seen, and no key followed but answers to other questions, at their pace.
        asked_at, then = question.guard.asked_at, pressed[id(key)]
        assert asked_at is not None
        assert then >= asked_at + (0 if question.at_once else SEEN_SECONDS) - 0.001, f"seed {seed}"
        run = [(then, key)]
        for time, one in desk.pressed[[pressed_key for _, pressed_key in desk.pressed].index(key) + 1 :]:
            if time - run[-1][0] > PAUSE_SECONDS - 0.001:
                break
            run.append((time, one))
        assert run[-1][0] <= at - PAUSE_SECONDS + 0.001, f"seed {seed}: no pause"
        for (before, one), (after, other) in pairwise(run):
            assert after - before >= PACE_SECONDS - 0.001, f"seed {seed}"
            assert other.key in "ynk", f"seed {seed}: {one.key}{other.key}"
    return answers


def test_a_held_key_and_one_question_less_than_answers_make_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for times in (
        [2 + 0.03 * number for number in range(40)],
        [2, 2.4, *(2.43 + 0.03 * number for number in range(9))],
    ):
        desk = Desk(0)
        _opened(desk, monkeypatch)
        desk.after(0, desk.ask)
        desk.after(0, desk.ask)
        for time in times:
            desk.after(time, lambda desk=desk: desk.press("n"))
        desk.run()

        assert (desk.decided, desk.draft) == ([], "n" * len(times))
