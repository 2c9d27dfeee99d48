"""Conversation on the screen after a rewind, and after undoing it."""

from tests.support.table import table
from tests.ui.row_kit import FoldWithLedger, Teller, answer, queued, run_started, started, user
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import AgentEvent, RunEnded, SessionRewound, TodoItem, TodoUpdated
from tui_agent.ui.transcript.transcript_layout import Transcript


def turn(number: int) -> list[AgentEvent]:
    return [
        run_started(),
        user(f"question {number}", f"u{number}"),
        started(f"a{number}"),
        answer(f"answer {number}", f"a{number}"),
        queued(f"c{number}", "bash"),
        RunEnded(reason="done"),
    ]


def back(to_seq: int, from_seq: int, *, conversation: bool = True) -> SessionRewound:
    return SessionRewound(
        to_seq=to_seq, from_seq=from_seq, text="question", conversation=conversation, removed=2, files=("a.py",)
    )


def shown(*events: AgentEvent) -> list[str]:
    """Return the text shown after these events."""
    teller, transcript = Teller(), Transcript()
    fold = FoldWithLedger(transcript)
    fold.show_alone(True)
    told: list[Envelope] = [teller.tell(event) for event in events]
    for envelope in told:
        fold.apply(envelope)
    return [part.text for part in transcript.parts]


FIRST, SECOND, THIRD = turn(1), turn(2), turn(3)


@table(
    ("events", "kept"),
    [
        ([*FIRST, *SECOND, back(6, 12)], FIRST),
        # Undone: everything is there again, except what came after the rewind.
        ([*FIRST, *SECOND, back(6, 12), *THIRD, back(12, 19)], [*FIRST, *SECOND]),
        # The undoing undone.
        ([*FIRST, *SECOND, back(6, 12), back(12, 13), back(13, 14)], [*FIRST, *SECOND, back(6, 12)]),
        # Files alone.
        ([*FIRST, back(0, 6, conversation=False)], FIRST),
    ],
)
def test_a_rewind_leaves_the_earlier_parts_and_a_note(events: list[AgentEvent], kept: list[AgentEvent]) -> None:
    *rows, note = shown(*events)

    assert rows == shown(*kept)
    assert note.startswith("Rewound to before “question” · ")
    assert note.endswith("changed back: a.py · /rewind undoes it")


def test_only_one_plan_is_shown_after_a_rewind() -> None:
    def plan(text: str) -> TodoUpdated:
        return TodoUpdated(items=(TodoItem(text=text, status="done"),))

    gone = shown(*turn(1), plan("first"), *turn(2), plan("second"), back(6, 14), *turn(3), plan("third"))
    undone = shown(*turn(1), plan("first"), back(6, 7), back(7, 8), plan("again"))

    assert [row for row in gone if "first" in row or "second" in row] == []
    assert sum("third" in row for row in gone) == 1
    assert [row for row in undone if "first" in row] == []
