"""Keys at random times against questions that appear, are settled elsewhere and are cancelled."""

import heapq
import os
import random
from collections.abc import Callable, Sequence
from itertools import count
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
from tui_agent.ui.dialogs.answer_guard import AnswerGuard
from tui_agent.ui.dialogs.typed_answers import SETTLE_SECONDS, TextTarget, TypedAnswers
from tui_agent.ui.state.approval_folds import PendingApprovals

SCHEDULES = int(os.environ.get("TUI_AGENT_RACES", "60"))
"""Number of schedules. For all: `TUI_AGENT_RACES=5000 pytest tests/ui/approval/test_typing_races.py`."""
SENTENCES = ("no, use pytest", "yes please", "nnn", "y", "n", "k", "skip the rest", "ok", "y n", "what?")
GAPS = (0.0, 0.03, 0.08, 0.15, 0.19)


class Question(TypedAnswers[ApprovalDecision | None]):
    """A dialog without a terminal."""

    WHERE = "approval"

    def __init__(self, desk: "Desk", request: ApprovalRequest, target: TextTarget) -> None:
        super().__init__(AnswerGuard(desk.clock), desk.clock, target)
        self.desk, self.request, self.consumed = desk, request, list[Key]()
        self.answered: Callable[[Any], None] = lambda _: None
        desk.after(desk.random.uniform(0.01, 0.2), self.guard.drawn)

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
        self.early: list[Key] = []
        self.decided: list[tuple[str, str, float]] = []
        self.drawn_at: dict[str, float] = {}
        self.sent: list[str] = []
        self.draft = ""
        self.numbers = count(1)
        self.pending = PendingApprovals()
        self.app: Any = SimpleNamespace(push_screen=self._push, call_later=lambda do: self.after(0.0, do))
        screen: Any = SimpleNamespace(
            app=self.app,
            set_timer=self.timer,
            call_after_refresh=lambda do: self.after(0.005, do),
            notify=lambda *_, **__: None,
        )
        bridge: Any = SimpleNamespace(decide=self._decide, bench=None, shares_rules=True)
        entry: Any = SimpleNamespace(composer=SimpleNamespace(region=None), type_text=self._type)
        self.controller = ApprovalController(screen, bridge, self.clock, self.pending, lambda: entry)
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
            self.app.screen = self.top
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
        self.pressed.append((self.clock.now, key))
        self.controller.note_keypress()
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


def _check(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(seed)
    opened: list[Question] = []

    def make(request: ApprovalRequest, *_: object, target: TextTarget, **__: object) -> Question:
        opened.append(Question(desk, request, target))
        return opened[-1]

    monkeypatch.setattr(approval_controller, "ApprovalScreen", make)
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
        for letter in chance.choice(SENTENCES):
            desk.after(moment, lambda letter=letter: desk.press(letter))
            moment += chance.choice(GAPS)
        if chance.random() < 0.5:
            moment += chance.uniform(0, 0.6)
            desk.after(moment, desk.send)
    desk.run()

    # Every key is text, in order, or one of a dialog's own: an answer, or an answer that came too early and was shown.
    keys = [key for _, key in desk.pressed]
    places = [next(at for at, key in enumerate(keys) if key is typed) for typed in desk.typed]
    assert places == sorted(set(places)), f"seed {seed}: lost, doubled or overtaken"
    used = [(at, key) for at, key in desk.pressed if not any(key is typed for typed in desk.typed)]
    early = sum(question.guard.too_early for question in opened)
    assert all(key.key in "ynk" for _, key in used), f"seed {seed}"
    assert len(used) <= len(desk.decided) + 6 * early, f"seed {seed}: {used}"
    # Each answer: one question, drawn and quiet before the key, and no other key within the time that settles it.
    assert len({request_id for request_id, _, _ in desk.decided}) == len(desk.decided)
    for request_id, decision, at in desk.decided:
        key = {"approve": "y", "deny": "n", "skip": "k"}[decision]
        question = next(q for q in reversed(opened) if q.request.request_id == request_id)
        hits = [t for t, k in used if k.key == key and at - SETTLE_SECONDS - 0.01 <= t <= at - SETTLE_SECONDS + 0.001]
        assert hits, f"seed {seed}: no schedule pressed {key} for {request_id}"
        assert not [t for t, _ in desk.pressed if hits[-1] < t < hits[-1] + SETTLE_SECONDS], f"seed {seed}"
        counts_from = question.guard._counts_from
        assert counts_from is not None
        assert hits[-1] >= counts_from - 0.001, f"seed {seed}"
    # Messages: what was typed, each once and in order.
    assert "".join(desk.sent) + desk.draft == "".join(key.character or "" for key in desk.typed)
