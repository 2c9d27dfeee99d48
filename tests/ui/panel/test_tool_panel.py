"""Counters of the tool panel: each state under its own name."""

from textual.app import App, ComposeResult

from tests.ui.story import Story, working
from tui_agent.ui.panel.tool_panel import PanelStrip, counts
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.plan_and_files import Plan


def counted(story: Story, room: int = 1_000) -> str:
    ledger = CallLedger()
    for envelope in story.envelopes:
        ledger.apply(envelope)
    return counts(ledger, room).plain


def test_done_counts_no_call_that_failed_was_denied_skipped_or_cancelled() -> None:
    story = Story().run("x").step(0)
    story.call("read", "a.py")
    for status in ("error", "timeout", "denied_user", "skipped_steering", "cancelled"):
        story.call("bash", "make", status=status)

    assert counted(story) == "1 done · 2 failed · 1 denied · 1 skipped · 1 cancelled"
    assert counted(story, 20) == "1 done · 2 failed"


def test_open_calls_are_counted_before_finished_ones() -> None:
    story = working()
    story.asks("c4", "edit", "src/price.py", "no rule")

    assert counted(story) == "1 running · 1 needs you"
    assert counted(story, 12) == "1 needs you"


async def test_before_the_first_call_the_line_has_only_its_key() -> None:
    class Bench(App[None]):
        def compose(self) -> ComposeResult:
            yield PanelStrip(CallLedger(), Plan())

    async with Bench().run_test(size=(60, 4)) as pilot:
        assert pilot.app.query_one(PanelStrip).render().plain.strip("─ ") == "ctrl+t open"
