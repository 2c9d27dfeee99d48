"""Counters of the tool panel: each state under its own name."""

from tests.ui.story import Story, working
from tui_agent.ui.panel.tool_panel import counts
from tui_agent.ui.state.call_ledger import CallLedger


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
