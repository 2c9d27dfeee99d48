"""The question about what a command changed in a trial: its answers, its rows, and the rows of the call."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.ui.approval.test_change_parts import shop
from tests.ui.stage import Clock
from tests.ui.still import FakeAgent, bridge_to, drawn, pressing, shown, still_app
from tests.ui.story import Story
from tests.ui.trial_story import CART, NEW_CART, asking, changed, everything, formatted, propose, settle, trial
from tui_agent.protocol.events import ChangesDiscarded, SessionCreated, SessionLoaded
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.trial import ProposedChanges
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.approval.approval_pages import ChangePartsScreen
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.dialogs.answer_rules import SEEN_SECONDS
from tui_agent.ui.dialogs.text_page import WholeDiffsPage
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.decision_rows import VERSIONS, file_rows
from tui_agent.ui.transcript.transcript_words import state_of

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]


class Answers(FakeAgent):
    """An agent that records whole decisions."""

    def __init__(self) -> None:
        super().__init__(running=True)
        self.decisions: list[ApprovalDecision] = []

    def resolve_approval(self, request_id: str, decision: ApprovalDecision, /) -> bool:
        self.decisions.append(decision)
        return True


class Question:
    """The app with an open question."""

    def __init__(self, app: TuiAgentApp, pilot: Pilot[None], agent: Answers, clock: Clock) -> None:
        self.app, self.pilot, self.agent, self.clock = app, pilot, agent, clock

    async def press(self, *keys: str) -> None:
        """Press answer keys, each after a quiet moment; a printable one takes effect at once."""
        for key in keys:
            self.clock.now += SEEN_SECONDS + 0.01
            await self.pilot.press(key)
            settle_keys = getattr(self.app.screen, "settle", None)
            if settle_keys is not None:
                settle_keys()
            await drawn(self.pilot)
            self.app.chat.approvals.settle()

    async def until(self, screen: type[object]) -> None:
        """Wait for a screen: texts are read in a thread."""
        async with asyncio.timeout(30):
            while not isinstance(self.app.screen, screen):
                await self.pilot.pause()
        await drawn(self.pilot)

    @property
    def answer(self) -> tuple[str, JsonObject | None, str]:
        (decision,) = self.agent.decisions
        return decision.decision, decision.input, decision.note


@asynccontextmanager
async def question(
    changes: ProposedChanges, root: Path, size: tuple[int, int] = (120, 60), **fields: Any
) -> AsyncIterator[Question]:
    story = Story()
    story.tell(SessionCreated(id="s1", cwd=str(root)))
    story.run("format the code").step(0).wait(1)
    propose(story, changes, **fields)
    clock, agent = Clock(), Answers()
    clock.now = story.now
    app = TuiAgentApp(
        bridge_to(agent, past=story.envelopes),
        ChatOptions(surroundings=TerminalEnvironment(reduced_motion=True, clock=clock)),
    )
    async with app.run_test(size=size) as pilot:
        await shown(pilot)
        yield Question(app, pilot, agent, clock)


async def test_a_yes_needs_the_end_of_all_diffs_and_keeps_no_conflict(tmp_path: Path) -> None:
    async with question(formatted(), tmp_path, size=(80, 20)) as asked:
        await asked.press("y")
        assert asked.agent.decisions == []

        await asked.press("end", "y")
        assert asked.answer == ("approve", None, "")

    async with question(everything(), tmp_path) as asked:
        await asked.press("y")

        _, chosen, _ = asked.answer
        assert chosen is not None
        assert "src/cart.py" not in chosen["paths"]
        assert chosen["overwrite"] == []


async def test_some_hunks_and_a_conflict_are_kept_by_choice(tmp_path: Path) -> None:
    async with question(formatted(), shop(tmp_path)) as asked:
        await asked.press("h")
        await asked.until(ChangePartsScreen)
        await asked.press("down", "space", "y")

        decision, chosen, note = asked.answer
        assert decision == "approve"
        assert chosen is not None
        assert chosen["texts"] == {"src/cart.py": CART.replace("sum(items)", "round(sum(items), 2)")}
        assert "step_two" in note

    changes = ProposedChanges(layer="l1", files=(changed("a.py", "mine\n", "its\n", conflict="you changed it"),))
    assert any(VERSIONS in row.plain for row in file_rows(changes.files[0], 80)), "both versions are shown"
    async with question(changes, tmp_path) as asked:
        await asked.press("h")
        await asked.until(ChangePartsScreen)
        await asked.press("a", "y")

        assert asked.answer == ("approve", {"paths": ["a.py"], "texts": {}, "overwrite": ["a.py"]}, "")


async def test_a_text_is_edited_and_kept_and_a_rule_is_offered(tmp_path: Path) -> None:
    async with question(formatted(), shop(tmp_path)) as asked:
        await asked.press("e")
        await asked.until(ChangePartsScreen)
        await asked.press("down", "e")
        await asked.until(ApprovalScreen)
        dialog = asked.app.screen
        assert isinstance(dialog, ApprovalScreen)
        async with asyncio.timeout(30):
            while dialog.step != "editing":
                await asked.pilot.pause()
        dialog.editor.load_escaped(NEW_CART + "# mine\n")
        await asked.press("ctrl+s")

        decision, chosen, note = asked.answer
        assert (decision, note) == ("approve", "I edited the text of src/cart.py before I kept it.")
        assert chosen is not None
        assert chosen["texts"] == {"src/cart.py": NEW_CART + "# mine\n"}
        assert len(chosen["paths"]) == 3

    async with question(formatted(), tmp_path) as asked:
        await asked.press("s")
        assert "kept without a question:" in asked.app.export_screenshot().replace("&#160;", " ")
        await asked.press("s")

        (decision,) = asked.agent.decisions
        assert (decision.decision, decision.scope, decision.rule) == ("approve", "session", None)


async def test_a_key_shows_the_whole_diff_of_a_file_whose_diff_is_cut(tmp_path: Path) -> None:
    whole = changed("long.txt", old := "line\n" * 3_000, old.replace("line\n", "last change\n"))
    (tmp_path / "long.diff").write_text(whole.diff)
    files = (
        changed("long.txt", "a\n", "b\n", has_more=True, whole_diff=str(tmp_path / "long.diff")),
        changed("gone.txt", "a\n", "b\n", has_more=True, whole_diff=str(tmp_path / "none")),
    )
    async with question(ProposedChanges(layer="l1", files=files), tmp_path) as asked:
        await asked.press("v")
        await asked.until(WholeDiffsPage)

        page = asked.app.screen
        assert isinstance(page, WholeDiffsPage)
        text = "\n".join(row.plain for row in page.paged._build(80))
        assert text.count("+ last change") == 3_000
        assert "gone.txt\n… It is too large" in text
        await asked.pilot.press("end", "escape")
        await asked.until(ApprovalScreen)
        await asked.press("y")
        assert asked.answer[0] == "approve"


# --- rows -------------------------------------------------------------------------------------------------------------


def outcome(story: Story) -> str:
    ledger = CallLedger()
    for envelope in story.envelopes:
        ledger.apply(envelope)
    return state_of(ledger.calls[-1].view, ledger.find)[0]


def test_the_row_of_a_call_says_what_happens_to_its_changes() -> None:
    story = Story().run("x").step(0)
    commit = ProposedChanges(layer="l", repository=("1 commit on main: Fix add",))
    for changes, waits, kept, words in (
        (formatted(), "3 files wait", [file.path for file in formatted().files], "kept 3 files +5 −3"),
        (formatted(), "3 files wait", ["src/cart.py"], "kept 1 of 3 files"),
        (formatted(), "3 files wait", [], "discarded 3 files"),
        (commit, "the repository waits", [".git"], "kept 1 commit on main: Fix add"),
        (commit, "the repository waits", [], "discarded 1 commit on main: Fix add"),
    ):
        call_id, request_id = propose(story, changes)
        assert outcome(story) == waits
        if changes.repository and not kept:
            story.tell(ChangesDiscarded(call_id=call_id, layer="l", paths=(".git",), count=0))
        settle(story, call_id, changes, *kept, request_id=request_id)
        assert words in outcome(story)


def test_the_status_says_trial_and_what_waits_and_a_resume_changes_nothing() -> None:
    story, status = Story().run("x").step(0), SessionStatus()
    propose(story, formatted())
    for envelope in story.envelopes:
        status.apply(envelope)

    (running,) = status.running.values()
    assert running.place == "trial"
    assert list(status.progress.waiting_changes.values()) == ["3 files wait"]

    before, after = asking(formatted()), asking(formatted())
    after.tell(SessionLoaded(id="s1"))
    after.run("", "r2")
    propose(after, formatted())
    assert outcome(after) == outcome(before)


# --- pictures ---------------------------------------------------------------------------------------------------------


def resting() -> Story:
    """Return a session with a kept, a partly kept, a discarded and a running command."""
    story = Story().run("format the code").step(0).wait(1.2)
    story.answer("I'll format everything, then run the tests.")
    for kept, reason in ((3, ""), (1, ""), (0, "the mode keeps nothing")):
        call_id, request_id = propose(story, formatted())
        paths = [file.path for file in formatted().files]
        settle(story.wait(2), call_id, formatted(), *paths[:kept], reason=reason, request_id=request_id)
    trial(story, "pytest -q", seconds=30)
    return story


async def choosing(pilot: Pilot[None]) -> None:
    """Open the page of the parts."""
    await shown(pilot)
    pilot.app.screen.dismiss("parts")
    await drawn(pilot)


SHOWN = [("formatted", (80, 24)), ("formatted", (120, 40)), ("everything", (60, 20)), ("everything", (120, 40))]


@pytest.mark.parametrize(("name", "size"), SHOWN, ids=[f"{name}-{size[0]}x{size[1]}" for name, size in SHOWN])
def test_the_question_about_changes(snap_compare: Compare, name: str, size: tuple[int, int]) -> None:
    story = asking(formatted()) if name == "formatted" else asking(everything(), "make release VERSION=3 && git push")

    assert snap_compare(still_app(story, running=True), terminal_size=size, run_before=pressing())


def test_the_question_about_changes_without_colours(snap_compare: Compare) -> None:
    app = still_app(asking(everything(), "make release"), running=True, no_color=True)

    assert snap_compare(app, terminal_size=(120, 60), run_before=pressing())


def test_the_parts_of_changes(snap_compare: Compare) -> None:
    app = still_app(asking(everything(), "make release"), running=True)

    assert snap_compare(app, terminal_size=(120, 60), run_before=choosing)


def test_rows_of_commands_in_trials(snap_compare: Compare) -> None:
    assert snap_compare(still_app(resting(), running=True), terminal_size=(120, 40), run_before=pressing())
