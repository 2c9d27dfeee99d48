"""A call has one number, in the panel, in the timeline and after every resume."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.table import table
from tests.ui.story import Story
from tui_agent.protocol.cancellation import ASKED_AGAIN, NOT_BEGUN
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import RunEnded, RunStarted, SessionLoaded, ToolEnded, ToolQueued
from tui_agent.session.journal_reader import JournalTail, read_tail
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.dialogs.timeline_page import call_label

NAMES = ("a", "b", "c")


def queue(story: Story, name: str) -> None:
    story.tell(ToolQueued(call_id=name, name="read", args_raw={"path": name}, index=0))


def end(story: Story, name: str, status: str = "ok", kind: str | None = None) -> None:
    fields = {"is_error": status != "ok", "content": (), "error_kind": kind, "latency_ms": 1.0}
    story.tell(ToolEnded(call_id=name, name="read", index=0, status=status, **fields))


def resumed(kind: str = ASKED_AGAIN) -> Story:
    """Return a session: one finished call; a step with a finished call and two waiting ones; a resume that takes all
    three of that step up again, as `AgentRun._resume_calls` does."""
    story = Story().run("first", "r1").step(0)
    queue(story, "z")
    end(story, "z")
    story.end_step(0).step(1)
    for name in NAMES:
        queue(story, name)
    end(story, "a")
    for name in ("b", "c"):
        end(story, name, "cancelled", kind)
    story.tell(RunEnded(reason="aborted"))
    story.tell(SessionLoaded(id="s1", events=len(story.envelopes)))
    story.origin = replace(story.origin, step=None, turn=None)
    story.run("", "r2")
    for name in NAMES:
        queue(story, name)
    return story


def numbers(envelopes: Iterable[Envelope], tail: JournalTail | None = None) -> tuple[dict[str, int], list[str]]:
    """Return the numbers of the panel by call id, and the labels of the timeline."""
    before, known = (tail.calls_before, tail.numbers) if tail is not None else (0, None)
    state = ScreenState(ErrorBoundary(print, None), calls_before=before, numbers=known)
    for envelope in envelopes:
        state.apply(envelope)
    panel = {call.view.call_id: call.number for call in state.ledger.calls}
    assert len(panel) == len(state.ledger.calls), "a call has two rows"
    return panel, [call_label(call_id, state.ledger, is_named=False) for call_id in state.times.calls]


@table("kind", [ASKED_AGAIN, NOT_BEGUN])
def test_a_resumed_call_has_one_row_and_one_number_everywhere(kind: str) -> None:
    story = resumed(kind)
    panel, timeline = numbers(story.envelopes)
    assert panel == {"z": 1, "a": 2, "b": 3, "c": 4}
    assert timeline == [f"#{panel[name]}" for name in NAMES]

    state = ScreenState(ErrorBoundary(print, None))
    for envelope in story.envelopes:
        state.apply(envelope)
    shown = [call_id for part in state.transcript.transcript.parts for call_id in part.call_ids]
    assert shown == ["z", *NAMES], "one row in the conversation, too"

    queue(story, "d")
    panel, timeline = numbers(story.envelopes)
    assert (panel["d"], timeline[-1]) == (5, "#5"), "a new call gets the next number"


def first_look(story: Story, journal: Path, cut: int) -> JournalTail:
    """Return what is read first of a session: the events from the one at `cut` on."""
    lines = [f"{one.to_json()}\n" for one in story.envelopes]
    journal.write_text("".join(lines), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tui_agent.session.journal_reader.FIRST_READ_SIZE", len("".join(lines[cut:]).encode()) + 1)
        tail = read_tail(journal)
    assert tail is not None
    assert len(tail.envelopes) == len(lines) - cut
    return tail


def test_the_first_look_at_a_long_session_has_the_numbers_of_the_whole(tmp_path: Path) -> None:
    story = resumed()
    cut = max(number for number, one in enumerate(story.envelopes) if isinstance(one.event, RunStarted))
    tail = first_look(story, tmp_path / "s1.jsonl", cut)
    assert numbers(tail.envelopes, tail)[0] == {"a": 2, "b": 3, "c": 4}, "queued before what is read"

    for name in NAMES:
        end(story, name)
    story.tell(RunEnded(reason="done"))
    cut = len(story.envelopes)
    story.run("next", "r3").step(0)
    queue(story, "d")
    end(story, "d")
    story.tell(RunEnded(reason="done"))
    tail = first_look(story, tmp_path / "s1.jsonl", cut)
    assert numbers(tail.envelopes, tail)[0]["d"] == numbers(story.envelopes)[0]["d"] == 5
