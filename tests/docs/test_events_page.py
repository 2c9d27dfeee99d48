"""`docs/events.md` is the current output of its script."""

import difflib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.protocol.envelope import event_classes

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "events.md"


def made_now(hash_seed: str) -> str:
    """Return the script's output; the seed decides the iteration order of sets."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", str(ROOT / "docs" / "make_events_page.py"), "--stdout"]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", check=True, env=environment, timeout=100
    ).stdout


def sections() -> dict[str, str]:
    """Return the page's sections by title."""
    parts = PAGE.read_text("utf-8").split("\n### ")[1:]
    return {title: text for title, _, text in (part.partition("\n") for part in parts)}


@pytest.mark.slow
def test_the_page_is_up_to_date_and_does_not_depend_on_the_hash_seed() -> None:
    made, kept = made_now("1"), PAGE.read_text("utf-8")

    change = "\n".join(difflib.unified_diff(kept.splitlines(), made.splitlines(), "committed", "now", lineterm=""))
    assert made == kept, f"run `python docs/make_events_page.py`:\n{change}"
    assert made_now("2") == made


@table("name", event_classes())
def test_every_event_has_its_entry_with_every_field(name: str) -> None:
    page = PAGE.read_text("utf-8")
    entry = page.partition(f"#### `{name}`\n")[2].split("\n#")[0]

    assert entry.strip(), f"no entry for {name}"
    fields = [line.split("`")[1] for line in entry.splitlines() if line.startswith("- ")]
    assert fields == [field for field in event_classes()[name].model_fields if field != "type"]


SHOWN: dict[str, tuple[str, ...]] = {
    "One call": ("tool.queued", "tool.started", "tool.ended", "tool_result", "run.ended"),
    "Parallel calls, one of which fails": (
        "call_3 read status=ok",
        "call_2 read status=error",
        "call_1 read status=ok",
    ),
    "A conflict: a write, then a read of the same file": (
        "tool.blocked_on",
        "call_2 group on=call_1",
        "call_1 write status=ok",
        "tool.started call_2",
    ),
    "A read that starts while the model still streams": (
        "tool.started",
        "tool.ended",
        "msg_2 text",
        "message.ended msg_2",
    ),
    "Steering between calls": (
        "tool.started call_1",
        "steering.queued",
        "call_1 read status=ok",
        "call_2 read status=skipped_steering",
        "call_3 write status=skipped_steering",
        "steering.delivered",
    ),
    "Steering between batches": (
        "steering.queued",
        "call_1 read status=ok",
        "call_3 read status=skipped_steering",
        "steering.delivered",
    ),
    "Steering after the batch": (
        "steering.queued",
        "call_1 read status=ok",
        "tool_result call_2",
        "steering.delivered",
    ),
    "Steering that interrupts": (
        "tool.started call_1",
        "steering.queued",
        "call_1 read status=interrupted",
        "call_2 write status=skipped_steering",
        "steering.delivered",
    ),
    "Steering before effects": (
        "steering.queued",
        "call_2 write status=skipped_steering",
        "call_1 write status=ok",
        "steering.delivered msg_3",
        "message.ended msg_3",
    ),
    "A veto": ("hook.started", "hook.ended", "action=deny", "call_1 write status=denied_hook", "reason=done"),
    "An approval, answered": ("approval.requested", "decision=approve", "tool.started", "status=ok"),
    "Two denials": ("decision=deny source=rule", "status=denied_policy", "by=user", "status=denied_user"),
    "A timeout": ("tool.started", "status=timeout", "reason=done"),
    "A cancel": ("code=abort_requested", "status=cancelled", "status=cancelled", "tool_result", "reason=aborted"),
    "A retry after a cut stream": ("message.discarded", "step.retry", "message.started", "reason=done"),
    "A retry that takes over a call": (
        "tool.started call_1",
        "message.discarded",
        "call_1 read status=cancelled",
        "step.retry",
        "tool.queued call_2",
        "adopted_from=call_1",
        "call_2 read status=ok",
        "tool_result call_2",
        "reason=done",
    ),
}
"""Lines that each tree must contain, in this order."""


@table("title", SHOWN)
def test_each_sequence_shows_its_subject(title: str) -> None:
    left = " ".join(sections()[title].split("```")[1].split())
    for words in SHOWN[title]:
        assert words in left, f"{words!r} is missing or out of order: {left}"
        left = left.partition(words)[2]
