"""Fold from events to the conversation: the same for live, resumed and replayed sessions."""

import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tests.ui.row_kit import (
    DIFF,
    FoldWithLedger,
    Teller,
    answer,
    delta,
    ended,
    queued,
    rows_of,
    run_ended,
    run_started,
    started,
    user,
)
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    CompactionEnded,
    CompactionUndone,
    Failed,
    FileChanged,
    HookFailed,
    InputWarned,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    Noticed,
    PlanProposed,
    RunEnded,
    RunStarted,
    SessionLoaded,
    SteeringDelivered,
    StepRetry,
    StepStarted,
    TodoItem,
    TodoUpdated,
    ToolOutput,
    ToolStatus,
    Warned,
)
from tui_agent.protocol.messages import (
    ImageBlock,
    TextBlock,
    ToolResultMessage,
    UserMessage,
)
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.text.styled_lines import width_of_runs
from tui_agent.ui.transcript.transcript_model import Transcript
from tui_agent.ui.transcript.transcript_parts import MAX_OUTPUT_ROWS, NotePart


def shown(events: Iterable[AgentEvent], width: int = 60) -> list[str]:
    """Return the text shown after some events, all of one step."""
    teller, transcript = Teller(), Transcript()
    fold = FoldWithLedger(transcript)
    for event in events:
        fold.apply(teller.tell(event))
        fold.flush()
    return rows_of(transcript, width)


def row(left: str, right: str, width: int = 60) -> str:
    """Return the row of a call as `body` does."""
    return left + right.rjust(width - 2 - len(left))


def body(events: Iterable[AgentEvent], width: int = 60) -> list[str]:
    """Return the text shown without empty rows and margins."""
    return [row.strip() for row in shown(events, width) if row.strip()]


# --- messages -------------------------------------------------------------------------------------------------------


def test_a_follow_up_is_marked_and_a_notice_has_no_speaker() -> None:
    assert body([user("then that", kind="follow_up")]) == ["↳ then that", "follow-up"]
    assert body([user("the limit is near", kind="notice")]) == ["· the limit is near"]


def test_images_are_named() -> None:
    image = ImageBlock(media_type="image/png", data="A" * 4000)
    named = image.model_copy(update={"name": "shop\x1b[2J.png"})
    message = UserMessage(content=(TextBlock(text="look"), image, named), id="u1")

    shown = ["❯ look", "[image image/png, 3 kB]", "[image shop.png, 3 kB]"]
    assert body([MessageEnded(message_id="u1", message=message)]) == shown


# --- what the model answers -----------------------------------------------------------------------------------------


def test_no_character_of_a_paste_is_dropped() -> None:
    pasted = user("a\x1b[31mb\x00\x9bc\rd\x85e\u202e")

    assert body([pasted]) == ["❯ a\\x1b[31mb\\x00\\x9bc", "d\\x85e\\u202e"]


def test_the_caret_waits_then_follows_the_text() -> None:
    assert shown([started()]) == ["", " ● ▍"]
    assert shown([started(), delta("He")]) == ["", " ● He▍"]
    assert shown([started(), delta("He"), answer("Hello")]) == ["", " ● Hello"]


def test_a_resumed_message_looks_like_a_live_one() -> None:
    text = "One.\n\n- two\n- three\n\n```py\nx = 1\n```\n"
    live = [
        started(),
        delta("hm", kind="thinking"),
        *(delta(text[place : place + 3]) for place in range(0, len(text), 3)),
        answer(text, thinking="hm"),
    ]

    assert shown(live) == shown([answer(text, thinking="hm")])


def test_the_complete_message_replaces_streamed_text() -> None:
    assert body([started(), delta("wrong"), answer("right")]) == ["● right"]
    assert body([started(), delta("gone"), answer("")]) == []


def test_a_discarded_message_vanishes() -> None:
    events = [user("x"), started(), delta("half an ans"), MessageDiscarded(message_id="a1", reason="cut")]

    assert body(events) == ["❯ x"]
    assert body([*events, started("a2"), answer("whole", "a2")]) == ["❯ x", "● whole"]
    assert body([MessageDiscarded(message_id="a9", reason="never began")]) == []


def test_calls_of_a_discarded_message_vanish_with_it_and_their_end_changes_nothing() -> None:
    discarded = MessageDiscarded(message_id="a1", reason="cut")
    events = [started(), delta("half an ans"), queued("c1", "write"), discarded, ended("c1", "write", "cancelled")]

    assert body(events) == []
    again = [started("a2"), delta("who", "a2"), queued("c2", "write"), answer("whole", "a2"), ended("c2", "write")]
    assert body([*events, *again]) == ["● whole", "✔ write"]
    assert body([*events[:4], run_ended()])[-1].startswith("─")


def test_a_long_call_being_written_is_announced() -> None:
    events = [started(), delta("I write."), delta('{"path": "x"', kind="toolcall"), delta("..." * 500, kind="toolcall")]

    assert body(events)[-1] == "… prepares a call (1.5 kB)"
    assert body([*events, queued("c1", "write")])[-1] == row("◌ write", "#1")
    assert body([*events, answer("I write.")]) == ["● I write."]


@table("reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_an_answer_that_did_not_end_well_is_explained_by_the_engine_alone(reason: str) -> None:
    explained = Warned(code="output_limit", text="It was cut off.")

    assert body([answer("half", stop_reason=reason), explained]) == ["● half", "! It was cut off."]


# --- what it does ---------------------------------------------------------------------------------------------------


def test_calls_that_came_while_the_model_talked_stand_under_its_text() -> None:
    events = [started(), delta("I look"), queued("c1", "read"), delta(" again."), answer("I look again.")]

    assert body(events) == ["● I look again.", row("◌ read", "#1")]


def test_a_text_without_deltas_is_above_the_calls_that_began_before_it() -> None:
    events = [user("go"), started(), queued("c1", "bash"), answer("I look.", thinking="Where?")]

    assert body(events)[2:] == ["● I look.", row("◌ bash", "#1")]


# --- what happens around it -----------------------------------------------------------------------------------------


def retry(attempt: int, most: int = 3) -> StepRetry:
    return StepRetry(attempt=attempt, max=most, wait_s=4.0, error_kind="rate_limit", status=429)


@table(
    ("event", "row"),
    [
        (InputWarned(filter="pii", text="a name", source="prompt"), "! pii: a name"),
        (HookFailed(event="before_tool", name="audit", error="x"), "! Hook audit failed: x; the call was denied"),
        (
            CompactionEnded(ok=True, tokens_before=9000, tokens_after=3000, removed=2, strategy="summary"),
            "· Conversation shortened: 9k → 3k tokens; 2 messages summarised; /compact undo reverts it",
        ),
        (
            CompactionEnded(
                ok=True,
                tokens_before=9000,
                tokens_after=3000,
                removed=1,
                strategy="digest",
                cut=(ToolResultMessage(call_id="c", tool_name="read", content=()),),
            ),
            "· Conversation shortened: 9k → 3k tokens; 1 message put into a plain list; 1 old result cut short; "
            "/compact undo reverts it",
        ),
        (
            CompactionUndone(tokens_after=9000, restored=2),
            "· Shortening undone: 2 messages as before, about 9k tokens",
        ),
        (
            CompactionEnded(ok=False, tokens_after=0, removed=0, error="e"),
            "! The conversation could not be shortened: e",
        ),
    ],
)
def test_other_events_are_notes(event: AgentEvent, row: str) -> None:
    assert body([event], 140) == [row]


def test_an_action_of_the_user_is_shown_once_and_is_not_an_error() -> None:
    noticed = Noticed(code="abort_requested", text="The run ends now: cancelled by the user.")
    end = RunEnded(reason="aborted", error="cancelled by the user")

    rows = body([noticed, end], 80)

    assert body([noticed], 80) == ["· The run ends now: cancelled by the user."]
    assert [row.rstrip("─") for row in rows] == ["── cancelled by you "]
    other = RunEnded(reason="aborted", error="the program ends")
    assert body([other], 80)[0].startswith("── cancelled: the program ends ──")


def test_an_error_is_shown_once() -> None:
    failed = Failed(code="provider", text="The key is not accepted. Nothing was sent.")
    end = RunEnded(reason="error", error="The key is not accepted.")

    assert [row for row in body([failed, end], 80) if "key" in row] == ["✖ The key is not accepted. Nothing was sent."]
    assert body([end], 80)[0] == "✖ The key is not accepted."
    with_numbers = end.model_copy(update={"total_ms": 2_000})
    assert [row.rstrip("─") for row in body([with_numbers], 80)][1:] == ["── failed · 2.0 s "]


def test_the_end_of_a_run_closes_what_is_open() -> None:
    rows = body([run_started(), started(), delta("half"), delta("{", kind="toolcall"), RunEnded(reason="aborted")])

    assert rows[0] == "● half"
    assert "▍" not in "".join(rows)


def test_a_decision_of_the_user_is_shown_if_it_changes_the_run() -> None:
    asked = ApprovalRequested(
        request_id="q", call_id="c1", digest="d", tool="bash", args={}, session_rule="bash(git commit:*)"
    )

    def resolved(status: ToolStatus = "ok", **fields: object) -> list[str]:
        event = ApprovalResolved.model_validate({"request_id": "q", "call_id": "c1", "by": "user", **fields})
        done = ended("c1", "bash", status)
        return [row.partition("  #")[0].rstrip() for row in body([queued("c1", "bash"), asked, event, done], 80)]

    assert resolved(decision="approve") == ["✔ bash"]
    assert resolved(decision="approve", scope="session") == [
        "✔ bash",
        "✔ You allowed for this session: bash(git commit:*)",
    ]
    assert resolved("denied_user", decision="deny", note="use rg") == ["⊘ bash   you denied it: use rg"]
    assert resolved("skipped_user", decision="skip") == ["⤼ bash   you skipped it"]


def test_only_the_newest_plan_is_shown() -> None:
    old = TodoUpdated(items=(TodoItem(text="one", status="pending"),))
    new = TodoUpdated(items=(TodoItem(text="one", status="done"), TodoItem(text="two", status="in_progress")))

    assert plan_rows([old, user("x"), new], shows_items=True) == ["❯ x", "● one", "◐ two"]
    assert plan_rows([old, new, user("x")], shows_items=True) == ["● one", "◐ two", "❯ x"]


def plan_rows(events: Iterable[AgentEvent], *, shows_items: bool) -> list[str]:
    teller, transcript = Teller(), Transcript()
    fold = FoldWithLedger(transcript)
    fold.show_alone(shows_items)
    for event in events:
        fold.apply(teller.tell(event))
    return [row.strip() for row in rows_of(transcript) if row.strip()]


def test_sub_agents_are_shown_only_for_failures() -> None:
    teller, transcript = Teller(), Transcript()
    fold = FoldWithLedger(transcript)

    for event in (started(), delta("inner"), queued("c9", "read"), Warned(code="x", text="inner trouble")):
        fold.apply(teller.tell(event, depth=1))

    assert [row.strip() for row in rows_of(transcript)] == ["", "! inner trouble"]


AWKWARD = "[]/@=`*_|>#-1. \n\t\\\x1b\x9b\x07\r\u202e\u200b\u2066\ufeff\u00a0\ue000日👍e\u0301"


def commanded(said: str, output: str, status: ToolStatus = "ok") -> list[AgentEvent]:
    """Return the events of a user's command, from its beginning to its end."""
    return [
        RunStarted(input=said, trigger="command", model="m", mode=PermissionMode.ASK),
        queued("c9", "bash"),
        ToolOutput(call_id="c9", stream="stdout", chunk=output[:3], bytes_total=3),
        ended("c9", "bash", status).model_copy(update={"content": (TextBlock(text=output),)}),
        user(f"I ran this myself: {said}\n\n{output}", "m9", "command"),
        run_ended(),
    ]


def test_a_command_of_the_user_shows_its_output_once() -> None:
    assert shown(commanded("!ls", "a  b\nc\td")) == ["", " ❯ !ls", "   a  b", "   c   d"]


def test_a_private_command_says_so_and_one_that_failed_how() -> None:
    rows = shown(commanded("!!ls", "no", "denied_user"))

    assert rows == ["", " ❯ !!ls", "   no", "   denied by you", "   only you see the output"]


def test_of_much_output_the_end_is_shown() -> None:
    rows = shown(commanded("!seq 100", "\n".join(map(str, range(100)))))

    assert rows[2] == f"   … {100 - MAX_OUTPUT_ROWS} more lines above; enter opens all of it"
    assert rows[3:] == [f"   {number}" for number in range(100 - MAX_OUTPUT_ROWS, 100)]


@given(st.text(st.sampled_from(AWKWARD) | st.characters(), max_size=80), st.integers(16, 80))
def test_any_text_stays_visible_and_within_the_width(text: str, width: int) -> None:
    teller, transcript = Teller(), Transcript()
    fold = FoldWithLedger(transcript)
    diff = f"@@ -1 +1 @@\n-{text}\n+{text}!"
    for event in (
        user(text),
        started(),
        delta(text),
        answer(text, thinking=text),
        queued("c1", text),
        ended("c1", text, "ok", {"path": text, "diff": diff}),
        Warned(code="x", text=text),
        PlanProposed(plan_id="p", text=f"```\n{text}\n```\n\n| {text} | b |\n|---|---|\n| c | {text} |"),
        TodoUpdated(items=(TodoItem(text=text, status="pending"),)),
        RunEnded(reason="error", error=text),
        *commanded(text, text),
    ):
        fold.apply(teller.tell(event))

    rows_of(transcript, width)

    for row in range(transcript.total):
        line = transcript.line(row)
        assert width_of_runs(line.runs) <= width
        assert {unicodedata.category(character) for character in line.plain}.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn"})


MESSAGES, CALLS = ("a1", "a2"), ("c1", "c2")
EVENTS = [
    *(make(name) for name in MESSAGES for make in (started, lambda name: delta("more *text*\n\n- and ", name))),
    *(delta(text, name, kind) for name in MESSAGES for text, kind in (("hm", "thinking"), ('{"a"', "toolcall"))),
    *(answer(text, name, thinking) for name in MESSAGES for text, thinking in (("", ""), ("more text", "hm"))),
    *(MessageDiscarded(message_id=name, reason="cut") for name in MESSAGES),
    *(queued(name, "edit") for name in CALLS),
    *(ended(name, "edit", "ok", details) for name in CALLS for details in (None, {"path": "p", "diff": DIFF})),
    *(ended(name, "edit", "cancelled") for name in CALLS),
    *(FileChanged(path="p", diff=DIFF, change="modified", call_id=name) for name in (*CALLS, None)),
    *(SteeringDelivered(message_id=name, kind="steer", text="", boundary="here") for name in ("u1", "u2")),
    *(user("words", name, "steer") for name in ("u1", "u2")),
    StepRetry(attempt=1, max=3, wait_s=1.0, error_kind="cut", discarded=True),
    TodoUpdated(items=(TodoItem(text="do", status="pending"),)),
    SessionLoaded(id="s", events=3),
    *commanded("!ls", "more"),
    run_started(),
    run_ended(),
]


@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.booleans()), max_size=40))
def test_whatever_order_events_come_in_nothing_breaks(told: list[tuple[AgentEvent, bool]]) -> None:
    teller, transcript = Teller(), Transcript()
    fold = FoldWithLedger(transcript)
    transcript.set_width(40)
    for event, drawn in told:
        fold.apply(teller.tell(event))
        if drawn:
            fold.flush()
            transcript.settle(0, 50)

    fold.flush()
    assert len(rows_of(transcript, 40)) == transcript.total == sum(part.height(40) for part in transcript.parts)


@pytest.mark.parametrize(
    ("kind", "shown_as"),
    [("asked_again", "■ write   asks again when the session resumes"), (None, "■ write   cancelled")],
)
def test_a_call_that_had_not_started_when_the_program_ended_has_no_unknown_outcome(
    kind: str | None, shown_as: str
) -> None:
    end = ended("c1", "write", "cancelled").model_copy(update={"error_kind": kind})

    rows = body(
        [run_started(), queued("c1", "write"), SessionLoaded(id="s", events=3), end, run_ended(reason="aborted")]
    )

    assert rows[0] == row(shown_as, "#1")
    assert rows[1].startswith("── session resumed")


def test_a_steer_is_marked_with_the_step_of_its_run() -> None:
    transcript, teller = Transcript(), Teller()
    fold = FoldWithLedger(transcript)
    events = [
        run_started(),
        StepStarted(index=0, kind="initial"),
        StepStarted(index=1, kind="tool_followup"),
        run_ended(),
        run_started(),
        StepStarted(index=0, kind="initial"),
        SteeringDelivered(message_id="u2", kind="steer", text="", boundary="after step 1"),
        user("keep it", "u2", "steer"),
    ]
    for event in events:
        fold.apply(teller.tell(event))

    assert "   steered after step 1" in rows_of(transcript)


def test_the_note_of_a_retry_changes_once_the_answer_begins() -> None:
    transcript, teller = Transcript(), Teller()
    fold = FoldWithLedger(transcript)
    retry = StepRetry(attempt=2, max=10, wait_s=4.0, error_kind="overloaded", text="The model is overloaded")
    fold.apply(teller.tell(retry))
    assert "trying again in 4.0 s" in "".join(rows_of(transcript))

    fold.apply(teller.tell(started("a2")))

    assert "tried again after 4.0 s" in "".join(rows_of(transcript))


def test_answers_that_break_off_again_and_again_are_one_note_that_stops_alarming_once_one_arrives() -> None:
    transcript, teller = Transcript(), Teller()
    fold = FoldWithLedger(transcript)
    for attempt in range(2, 12):
        begun = attempt % 3 > 0  # Others are refused before they begin, as with a 529.
        if begun:
            fold.apply(teller.tell(started(f"a{attempt}")))
            fold.apply(teller.tell(MessageDelta(message_id=f"a{attempt}", kind="text", delta="The rounding")))
            fold.apply(teller.tell(MessageDiscarded(message_id=f"a{attempt}", reason="it broke off")))
        kind = "stream_cut" if begun else "overloaded"
        fold.apply(teller.tell(StepRetry(attempt=attempt, max=20, wait_s=1.0, error_kind=kind, discarded=begun)))
        (note,) = transcript.parts
        assert isinstance(note, NotePart)
        assert (note.kind, f"(attempt {attempt} of 20)" in note.text) == ("retry", True)

    fold.apply(teller.tell(started("a9")))

    assert transcript.parts[0] is note
    assert note.kind == "retried"


def test_an_empty_delta_does_not_put_the_text_before_the_thinking() -> None:
    transcript, teller = Transcript(), Teller()
    fold = FoldWithLedger(transcript)
    for event in (started(), delta(""), delta("hm", kind="thinking"), delta("So."), answer("So.", thinking="hm")):
        fold.apply(teller.tell(event))
    fold.flush()

    rows = [row.strip() for row in rows_of(transcript) if row.strip()]
    assert rows == ["▸ thinking  hm", "● So."]


def test_a_plan_that_a_newer_one_replaces_needs_no_drawing_any_more() -> None:
    transcript, teller = Transcript(), Teller()
    fold = FoldWithLedger(transcript)
    items = (TodoItem(text="look", status="pending"),)
    fold.apply(teller.tell(TodoUpdated(items=items)))
    fold.apply(teller.tell(user("again")))
    fold.show_alone(not fold.calls.is_alone)
    fold.apply(teller.tell(TodoUpdated(items=items)))

    fold.flush()
