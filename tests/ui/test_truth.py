"""Every number and state on the screen is recomputed from the events, for stories of any steps.

The expectations come from `told_stories.facts_of`, which shares no code with the screen; what the screen says is read
from its rows. The matches of a search are counted on the same rows.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from hypothesis import given, settings
from textual.pilot import Pilot

from tests.support.examples import IS_LONG
from tests.ui.still import FakeAgent, bridge_to
from tests.ui.told_stories import CallFacts, Facts, Step, ToldStory, facts_of, tell, told_stories
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.panel.tool_panel import counts
from tui_agent.ui.transcript.call_part import CallPart

pytestmark = pytest.mark.slow

SIZE = (150, 100)
"""Cells of a window in which everything has room, with the right column beside the conversation."""
SPINNER = "◐◓◑◒"
SIGNS = f"{SPINNER}◌▲✔✖⏱⊘⤼■?»"
COUNTED = {
    "running": ("running",),
    "queued": ("queued",),
    "needs? you": ("asking",),
    "failed": ("error", "timeout"),
    "denied": ("denied_policy",),
    "unknown": ("interrupted",),
}
"""States by the word that counts them."""
OPEN = ("running", "queued", "asking")


class Screen:
    """The app, kept for many stories, with the clock of the story and without dialogs."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._now = 0.0
        surroundings = TerminalEnvironment(reduced_motion=True, clock=lambda: self._now)
        self._app = TuiAgentApp(
            bridge_to(FakeAgent()), ChatOptions(WorkingDirectory("~/shop", "main"), surroundings=surroundings)
        )
        self._pilot: Pilot[None] | None = None

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def show(self, story: ToldStory) -> tuple[list[str], list[str]]:
        """Return the rows on the left, down to the status line, and those of the right column."""
        rows = self._runner.run(self._show(story))
        left = [row.partition("│")[0].rstrip() for row in rows]
        return left, [row.partition("│")[2].rstrip() for row in rows if "│" in row]

    @property
    def counts(self) -> str:
        """The counts of a narrow window."""
        return counts(self._app.chat.state.ledger).plain

    def unfolded(self) -> list[str]:
        """Return the rows with the calls of the conversation unfolded."""
        return self._runner.run(self._unfold())

    def found(self, query: str) -> str:
        """Return what the search line says about a query."""
        return self._runner.run(self._find(query))

    async def _show(self, story: ToldStory) -> list[str]:
        if self._pilot is None:
            self._pilot = await self._stack.enter_async_context(self._app.run_test(size=SIZE))
            self._app.chat.approvals.look = lambda: None  # type: ignore[method-assign]
        chat, self._now = self._app.chat, story.now
        state = chat._new_state()
        chat.show_state(state)
        half = len(story.envelopes) // 2
        for envelope in story.envelopes[:half]:
            state.apply(envelope)
        chat.show_state(state)
        # The rest arrives live, one event after another.
        for envelope in story.envelopes[half:]:
            chat.apply(envelope)
        chat.bars.line.settle()
        return await self._rows()

    async def _rows(self) -> list[str]:
        assert self._pilot is not None
        for _ in range(3):
            await self._pilot.pause()
            self._app.chat.body.conversation.flush()
        strips = self._app.chat._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    async def _unfold(self) -> list[str]:
        transcript = self._app.chat.body.conversation.transcript
        parts = [part for part in transcript.from_part(None) if isinstance(part, CallPart)]
        for part in parts:
            part.toggle()
            transcript.refresh(part)
        rows = await self._rows()
        for part in parts:
            part.toggle()
            transcript.refresh(part)
        await self._rows()
        return [row.partition("│")[0].rstrip() for row in rows]

    async def _find(self, query: str) -> str:
        body = self._app.chat.body
        body.open_search()
        body.search._input.value = query
        await self._rows()
        said = body.search._count.render()
        body.search.close()
        return str(said)


@pytest.fixture(scope="module")
def screen() -> Iterator[Screen]:
    shown = Screen()
    yield shown
    shown.close()


@given(told_stories())
@settings(max_examples=400 if IS_LONG else 12)
def test_the_screen_says_what_the_events_say(screen: Screen, steps: list[Step]) -> None:
    story = tell(steps)
    facts = facts_of(story.envelopes)
    left, right = screen.show(story)

    check_status(left[-1], facts, story.now)
    check_conversation(left, facts, story.now)
    check_column(right, facts)
    check_counts(screen.counts, facts)
    check_lines(screen.unfolded(), facts)
    for query in ("Step 1", "prompt 2", "no such words"):
        number = sum(row.count(query) for row in left[:-3])
        assert re.search(rf"\b{number}\b" if number else "not found", screen.found(query)), query


def check_status(line: str, facts: Facts, now: float) -> None:
    """Compare the status line: state and clock, step, background commands, tokens, time of the run."""
    state = line[:60]
    if facts.asking:
        words = "waiting for you" if facts.asking == 1 else f"{facts.asking} wait for you"
        assert state.startswith(f" ▲ {words}"), line
    elif not facts.busy:
        assert state.startswith(" ● ready"), line
    elif facts.retry_at is not None and not any(call.state in OPEN for call in facts.calls):
        assert state.startswith(f" ◌ retrying in {seconds(facts.retry_at - now)}"), line
    elif facts.running and facts.retry_at is None:
        oldest = facts.running[0] if len(facts.running) == 1 else min(facts.running, key=lambda call: call.since)
        words = oldest.tool if len(facts.running) == 1 else f"{len(facts.running)} tools"
        lasted = now - oldest.since
        assert state.startswith(f" ◐ {words} {seconds(lasted) if lasted >= 1 else '·'}"), line
    assert number_before("in background", line) == facts.jobs, line
    assert number_after("step", line) == (0 if facts.asking else facts.step or 0), line
    shown = re.search(r"(\S+)/200k tok", line)
    assert (shown[1] if shown else "") == (tokens(facts.tokens) if facts.tokens else ""), line
    paid = re.search(r"<?\$[\d.]+", line)
    assert (paid[0] if paid else "") == (money(facts.cost) if facts.cost and not facts.asking else ""), line
    clock = re.search(r"run (\S+(?: s)?)", line)
    if facts.run_began is None:
        assert clock is None, line
    elif clock is not None:
        assert clock[1] == seconds(now - facts.run_began), line
    else:
        # In the first state of a run, that of the state is its clock, too.
        lasted = now - facts.run_began
        assert lasted < 2 or any(seconds(one) in state for one in (lasted, lasted - 1)), line


def check_conversation(rows: list[str], facts: Facts, now: float) -> None:
    """Compare each call of the agent: its sign, its clock while it is the only place that shows one, and the plan."""
    text = "\n".join(rows)
    for call in facts.calls:
        found = [row for row in rows if re.match(rf"^ [{SIGNS}] .*\bit-{call.call_id}\b", row)]
        assert len(found) == (0 if call.depth else 1), (call, text)
        if found:
            check_sign(found[0].lstrip()[0], call, facts)
            # The column says it.
            assert not any(word in found[0] for word in ("needs you", "queued")), found[0]
            if call.lasted >= 1 and call.state != "background" and (call.tool, call.state) != ("read", "ok"):
                number = "" if call.state == "ok" else f"  #{call.number}"
                assert found[0].endswith(f" {call.lasted:.1f} s{number}") or call.lasted >= 59, found[0]
            if call.state == "running" and (clock := re.search(r"(\d+ s|\d+:\d\d)  #", found[0])):
                assert clock[1] == seconds(now - call.since)
    done = [tuple(map(int, one)) for one in re.findall(r"(\d+) of (\d+) done", text)]
    assert set(done) <= {facts.plan}, text


def check_column(rows: list[str], facts: Facts) -> None:
    """Compare number of calls, signs of the rows, plan, files, and that no times of another session remain."""
    assert number_after("✔", "\n".join(rows)) == sum(call.state == "ok" for call in facts.calls)
    for row in rows:
        if shown := re.match(rf"^ *[▸▾]? ?([{SIGNS}]) #(\d+) ", row):
            check_sign(shown[1], facts.calls[int(shown[2]) - 1], facts)
            if words := {"▲": "needs you", "◌": r"(queued|after #\d+)"}.get(shown[1]):
                assert re.search(rf" {words}$", row), row
    for done, all_items in re.findall(r"PLAN\s+(\d+) of (\d+) done", "\n".join(rows)):
        assert (int(done), int(all_items)) == facts.plan
    files = [found for row in rows if (found := re.match(r"^ (f\d+\.py) +\+(\d+) −(\d+)$", row))]
    assert all(facts.files[found[1]] == (int(found[2]), int(found[3])) for found in files)
    assert len(files) + number_before("more files?", "\n".join(rows)) == len(facts.files)
    assert facts.timeline or not any(row.lstrip().startswith("model ") for row in rows)


def check_lines(rows: list[str], facts: Facts) -> None:
    """Compare the lines of output that are shown, and the number of those that are not, with what the call printed."""
    for call in facts.calls:
        places = [place for place, row in enumerate(rows) if re.match(rf"^ +{call.call_id} line \d+$", row)]
        if places and rows[places[0]].endswith(" line 0"):
            left = number_before("more lines?", "\n".join(rows[places[0] : places[-1]]))
            assert len(places) + left == call.lines, (call, rows)


def check_counts(line: str, facts: Facts) -> None:
    """Compare the line that replaces the column in a narrow window: open calls of all runs, ends of the newest one."""
    for word, states in COUNTED.items():
        counted = [call for call in facts.calls if call.state in states and (call.in_run or call.state in OPEN)]
        assert number_before(word, line) == len(counted), (word, line)


def check_sign(sign: str, call: CallFacts, facts: Facts) -> None:
    """Compare the sign of one call."""
    assert sign in (facts.sign_of(call) or SPINNER), call


def number_before(word: str, text: str) -> int:
    """Return the number before a word; 0 if the word is missing."""
    found = re.search(rf"(\d+) {word}", text)
    return int(found[1]) if found else 0


def number_after(word: str, text: str) -> int:
    """Return the number after a word; 0 if the word is missing."""
    found = re.search(rf"{word} (\d+)", text)
    return int(found[1]) if found else 0


def seconds(duration: float) -> str:
    """Return a duration as a clock without tenths shows it."""
    if duration < 59.95:
        return f"{int(max(0.0, duration))} s"
    minutes, rest = divmod(round(duration), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def tokens(number: int) -> str:
    """Return a number of tokens in three digits."""
    if number < 1_000:
        return str(number)
    thousands = number / 1_000
    return f"{thousands:.1f}".removesuffix(".0") + "k" if thousands < 99.95 else f"{round(thousands)}k"


def money(dollars: float) -> str:
    """Return a cost in cents."""
    return "<$0.01" if dollars < 0.01 else f"${dollars:.2f}"
