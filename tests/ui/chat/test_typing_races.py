"""Keys at random times in the whole app: over pages of questions that are answered and withdrawn, and over the menu.

The dialog of one question has more schedules in less time in `approval/test_typing_races.py`.

The app runs on a loop whose time leaps from timer to timer, with a scripted agent behind the bridge, so a schedule
depends on its number alone.
"""

import asyncio
import contextvars
import os
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any
from weakref import WeakSet

import pytest
from textual.app import App
from textual.css.stylesheet import Stylesheet
from textual.events import Key

from tests.support.leaping_loop import LeapingLoop
from tests.support.table import table
from tests.ui.open_bench import bench_of
from tests.ui.still import FakeAgent
from tests.ui.trial_story import CART, NEW_CART
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Preview
from tui_agent.tools.unified_diff import diff_of
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.approval.approval_pages import ApprovalListScreen, ChangePartsScreen
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.chat.chat_screen import ChatScreen
from tui_agent.ui.dialogs.answer_rules import PAUSE_SECONDS
from tui_agent.ui.dialogs.answer_screen import QuestionScreen

SCHEDULES = int(os.environ.get("TUI_AGENT_APP_RACES", "6"))
"""Number of schedules. For all: `TUI_AGENT_APP_RACES=5000 pytest tests/ui/chat/test_typing_races.py`."""
PER_APP = 50
"""Schedules after which a new app begins."""
OVER_MENU = ("stop-it-please", "no,-this", "skip-so", "s", "n", "so", "nn", "ss", "n", "s", "it-stops")
NAMES = {",": "comma", "-": "minus", " ": "space"}
OVER_PAGE = ("all-of-them", "yes-but-tabs", "no,-this", "good-idea", "some-other", "junk", "keep-it", "not-yet")
"""Sentences over the pages that a question opens."""
PAGE_ANSWERS = {
    "a": ("ay", "an", " y", " n", "gy", "a", "y", "n", "jay", "k y"),
    "h": ("y", " y", "ay", "j y", "n", "a", " n"),
}
"""Answers there, by the key that opens the page."""
GAPS = (0.0, 0.03, 0.08, 0.15, 0.19, 0.22, 0.3, 0.45)
LATE = 0.05
"""Seconds that a settled answer may take through the app."""


class ScriptedAgent(FakeAgent):
    """An agent whose questions a schedule asks, and which notes answers and messages."""

    def __init__(self, bus: EventBus, time: Callable[[], float]) -> None:
        super().__init__(running=True)
        self.bus, self.time = bus, time
        self.open: dict[str, None] = {}
        self.decided: list[tuple[str, str, float]] = []
        self.messages: list[str] = []
        self.interrupts: list[tuple[str, float]] = []
        self.withdraws = False
        """True if a message withdraws the open questions."""

    def ask(self, request_id: str, *, in_parts: bool = False) -> None:
        self.open[request_id] = None
        tool, args, preview = "bash", {"command": "make"}, Preview(kind="command", text="make")
        if in_parts:
            diff = diff_of(CART, NEW_CART, "a/cart.py", "b/cart.py")
            tool, args = "edit", {"path": "cart.py", "old_string": CART, "new_string": NEW_CART}
            preview = Preview(kind="diff", text=diff, path="/w/cart.py")
        self.bus.publish(
            ApprovalRequested(
                request_id=request_id,
                call_id=request_id,
                digest="d",
                tool=tool,
                args=args,
                preview=preview,
                reason="no rule",
            )
        )

    def settle(self, request_id: str, by: Any = "cancel", decision: Any = "deny") -> None:
        if request_id in self.open:
            del self.open[request_id]
            self.bus.publish(ApprovalResolved(request_id=request_id, call_id=request_id, decision=decision, by=by))

    def resolve_approval(self, request_id: str, decision: ApprovalDecision) -> bool:
        if request_id not in self.open:
            return False
        self.decided.append((request_id, decision.decision, self.time()))
        self.settle(request_id, "user", decision.decision)
        return True

    def steer(self, text: str, /) -> UserMessage:
        self.messages.append(text)
        for request_id in list(self.open) if self.withdraws else ():
            self.settle(request_id)
        return super().steer(text)

    def stop(self) -> None:
        self.interrupts.append(("s", self.time()))

    def abort(self, reason: str, /) -> None:
        if reason != "cancelled by the user":
            self.interrupts.append(("n", self.time()))


@dataclass
class Theatre:
    """One app on its own loop."""

    loop: LeapingLoop
    app: TuiAgentApp
    agent: ScriptedAgent
    context: contextvars.Context

    @property
    def draft(self) -> str:
        return self.app.chat.entry.composer.text

    def play(self, moves: Sequence[tuple[float, Callable[[], object]]]) -> None:
        """Make moves at their times, in seconds from now, and let the app finish."""
        start = self.loop.time()
        for at, move in sorted(moves, key=lambda entry: entry[0]):
            self.run_to(start + at)
            self.context.run(move)
        self.run_to(self.loop.time() + 1.5)

    def run_to(self, at: float) -> None:
        assert self.loop.run_slice(at)

    def press(self, name: str, letter: str | None = None) -> None:
        self.app.post_message(Key(name, letter))


@contextmanager
def theatre() -> Generator[Theatre]:
    """Open an app."""
    loop = LeapingLoop(1_000.0)
    context = contextvars.Context()

    def make() -> tuple[TuiAgentApp, ScriptedAgent]:
        bus = EventBus()
        agent = ScriptedAgent(bus, loop.time)
        bridge: Any = AgentBridge()
        bridge.open(bench_of(agent, bus))
        surroundings = TerminalEnvironment(reduced_motion=True, clock=loop.time)
        return TuiAgentApp(bridge, ChatOptions(WorkingDirectory("~/shop", "main"), surroundings=surroundings)), agent

    app, agent = context.run(make)
    task = asyncio.Task(app.run_async(headless=True, size=(60, 16)), loop=loop, context=context)
    stage = Theatre(loop, app, agent, context)
    # The past of the session is read in a thread, once.
    for _ in range(1_000):
        stage.run_to(loop.time() + 0.01)
        if not task.done() and app.is_running and app.chat.bridge._post is not None:
            break
    try:
        yield stage
    finally:
        context.run(lambda: App[None].exit(app))
        loop.run_slice(loop.time() + 5)
        for left in asyncio.all_tasks(loop):
            left.cancel()
        loop.run_slice(loop.time() + 1)
        loop.close()


@pytest.fixture
def styled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual matches all rules again whenever the chat is uncovered, which takes half of the time."""
    update = Stylesheet.update
    styled = WeakSet[Any]()

    def update_once(sheet: Stylesheet, root: Any, animate: bool = False) -> None:
        if not (isinstance(root, ChatScreen) and root in styled):
            update(sheet, root, animate)
        styled.add(root)

    monkeypatch.setattr(Stylesheet, "update", update_once)


def _play_all(check: Callable[[Theatre, int], int]) -> None:
    """Check every schedule."""
    answered = 0
    first = int(os.environ.get("TUI_AGENT_FIRST_RACE", "0"))
    for block in range(first, first + SCHEDULES, PER_APP):
        with theatre() as stage:
            for seed in range(block, min(first + SCHEDULES, block + PER_APP)):
                answered += check(stage, seed)
    assert answered >= SCHEDULES / 10, "a test in which nothing is answered shows nothing"


@pytest.mark.slow
@pytest.mark.usefixtures("styled_once")
def test_over_the_interrupt_menu_no_key_is_lost_and_no_sentence_interrupts() -> None:
    _play_all(_check_menu)


@pytest.mark.slow
@pytest.mark.usefixtures("styled_once")
@table(("key", "page"), [("a", ApprovalListScreen), ("h", ChangePartsScreen)])
def test_over_the_pages_of_questions_a_sentence_answers_nothing_and_no_key_is_lost(
    key: str, page: type[QuestionScreen[Any]]
) -> None:
    numbers, pages = count(1), list[bool]()
    _play_all(lambda stage, seed: _check_page(stage, seed, key, page, numbers, pages))
    assert sum(pages) > len(pages) / 2, "the page was hardly ever open"


def _check_page(
    stage: Theatre, seed: int, key: str, page: type[QuestionScreen[Any]], numbers: Any, pages: list[bool]
) -> int:
    """Play one schedule over the page that a key opens and check it; return the number of answers."""
    chance, agent = random.Random(seed), stage.agent
    agent.decided.clear()
    agent.messages.clear()
    agent.withdraws = chance.random() < 0.3
    pressed: list[tuple[float, str]] = []
    moves: list[tuple[float, Callable[[], object]]] = []
    sentences: list[str] = []
    hastened: list[float] = []

    def press(letter: str) -> None:
        pressed.append((stage.loop.time(), letter))
        stage.press(NAMES.get(letter, letter), letter)

    def hasten(name: str) -> None:
        hastened.append(stage.loop.time())
        stage.press(name)

    for number in range(chance.randint(2, 3)):
        request_id = f"p{next(numbers)}"
        moves.append((0.01 * number, lambda request_id=request_id: agent.ask(request_id, in_parts=key == "h")))
        if chance.random() < 0.2:
            moves.append((chance.uniform(4, 9), lambda request_id=request_id: agent.settle(request_id)))
    moves += [(2.0, lambda: stage.press("end")), (2.6, lambda: stage.press(key, key))]
    moves.append((3.9, lambda: pages.append(isinstance(stage.app.screen, page))))
    moment = 4.0
    if chance.random() < 0.8:
        moves.append((3.95, lambda: stage.press("end")))
    for _ in range(chance.randint(1, 3)):
        is_sentence = chance.random() < 0.5
        typed = chance.choice(OVER_PAGE if is_sentence else PAGE_ANSWERS[key])
        sentences += [typed] * is_sentence
        for letter in typed:
            moves.append((moment, lambda letter=letter: press(letter)))
            moment += chance.choice(GAPS) if is_sentence else chance.uniform(0.22, 0.45)
        moment += chance.uniform(0.7, 1.5)
        if chance.random() < 0.3:
            name = chance.choice(("enter", "escape", "ctrl+y"))
            moves.append((moment, lambda name=name: hasten(name)))
            moment += chance.uniform(0.6, 1.0)
    stage.play(moves)

    text = "".join(agent.messages) + stage.draft
    _left_out([letter for _, letter in pressed], text, seed)
    for sentence in sentences:
        assert sentence in text, f"seed {seed}: {sentence!r} is not in {text!r}"
    assert len({request_id for request_id, _, _ in agent.decided}) == len(agent.decided), f"seed {seed}"
    for _, decision, at in agent.decided:
        before = [(time, letter) for time, letter in pressed if time < at]
        is_hastened = any(before[-1][0] <= time <= at for time in hastened)
        assert is_hastened or before[-1][0] <= at - PAUSE_SECONDS + LATE, f"seed {seed}: no pause"
        # A yes to no part is a no.
        letters = {"approve": "y", "deny": "ny" if key == "h" else "n"}.get(decision, "k")
        assert before[-1][1] in letters, f"seed {seed}: {decision}"
    answered = len(agent.decided)
    _clear(stage, seed)
    return answered


def _clear(stage: Theatre, seed: int) -> None:
    """Let the next schedule begin with no question and an empty composer."""
    for request_id in list(stage.agent.open):
        stage.context.run(stage.agent.settle, request_id)
    # A letter that came too early for a question is text once the question is gone.
    stage.run_to(stage.loop.time() + 1)
    stage.context.run(stage.app.chat.entry.composer.load_text, "")
    stage.agent.waiting_messages.clear()
    stage.run_to(stage.loop.time() + 1)
    assert not isinstance(stage.app.screen, QuestionScreen), f"seed {seed}: a dialog of no question"


def _check_menu(stage: Theatre, seed: int) -> int:
    """Play one schedule over the interrupt menu and check it; return the number of interrupts."""
    chance, agent = random.Random(seed), stage.agent
    agent.interrupts.clear()
    agent.messages.clear()
    pressed: list[tuple[float, str]] = []
    moves: list[tuple[float, Callable[[], object]]] = []

    def press(letter: str) -> None:
        pressed.append((stage.loop.time(), letter))
        stage.press(*((letter,) if letter == "escape" else (NAMES.get(letter, letter), letter)))

    moment = 0.0
    for _ in range(chance.randint(1, 4)):
        moment += chance.uniform(0.0, 2.5)
        for letter in ("escape", *chance.choice(OVER_MENU)):
            moves.append((moment, lambda letter=letter: press(letter)))
            moment += chance.choice(GAPS)
        if chance.random() < 0.3:
            moves.append((moment, lambda: stage.press("enter")))
    stage.play(moves)

    text = "".join(agent.messages) + stage.draft
    used = _left_out([letter for _, letter in pressed if letter != "escape"], text, seed)
    following = pairwise(pressed)
    # A second escape takes a letter back that has not taken effect.
    taken = [key for (at, key), (then, after) in following if after == "escape" and then - at <= PAUSE_SECONDS + LATE]
    assert len(agent.interrupts) <= len(used) <= len(agent.interrupts) + len(taken), f"seed {seed}: {used}"
    for key, at in agent.interrupts:
        hits = [t for t, letter in pressed if letter == key and at - PAUSE_SECONDS - LATE <= t <= at]
        assert hits, f"seed {seed}: no {key}"
        after = [t for t, _ in pressed if hits[-1] < t < min(at, hits[-1] + PAUSE_SECONDS)]
        assert not after, f"seed {seed}: {key} is part of a text"
    interrupted = len(agent.interrupts)
    stage.run_to(stage.loop.time() + 7)
    stage.context.run(stage.app.chat.entry.composer.load_text, "")
    agent.waiting_messages.clear()
    stage.run_to(stage.loop.time() + 1)
    return interrupted


def _left_out(pressed: Sequence[str], text: str, seed: int) -> list[str]:
    """Return the pressed letters that the text does not have; the others are in it, in order."""
    left: list[str] = []
    at = 0
    for letter in pressed:
        if at < len(text) and text[at] == letter:
            at += 1
        else:
            left.append(letter)
    assert at == len(text), f"seed {seed}: {text!r} of {''.join(pressed)!r}: lost, doubled or overtaken"
    return left
