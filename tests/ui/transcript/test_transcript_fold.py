"""Fold from events to the conversation: the same for live, resumed and replayed sessions."""

import unicodedata
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ui.row_kit import (
    DIFF,
    Teller,
    answer,
    delta,
    ended,
    queued,
    rows_of,
    run_ended,
    run_started,
    started,
    story,
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
    FileState,
    HookFailed,
    InputWarned,
    MessageDiscarded,
    MessageEnded,
    Noticed,
    PlanProposed,
    RunEnded,
    RunStarted,
    SessionCreated,
    SessionLoaded,
    SteeringDelivered,
    StepRetry,
    TodoItem,
    TodoUpdated,
    ToolOutput,
    ToolStatus,
    Warned,
)
from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.text.styled_lines import width_of_runs
from tui_agent.ui.transcript.changed_files_part import MAX_DIFF_ROWS, MAX_FILES
from tui_agent.ui.transcript.transcript_fold import TranscriptFold
from tui_agent.ui.transcript.transcript_model import Transcript
from tui_agent.ui.transcript.transcript_parts import MAX_OUTPUT_ROWS, CallsPart


def shown(events: Iterable[AgentEvent], width: int = 60) -> list[str]:
    """Return the text shown after some events, all of one step."""
    teller, transcript = Teller(), Transcript()
    fold = TranscriptFold(transcript)
    for event in events:
        fold.apply(teller.tell(event))
        fold.flush()
    return rows_of(transcript, width)


def body(events: Iterable[AgentEvent], width: int = 60) -> list[str]:
    """Return the text shown without empty rows and margins."""
    return [row.strip() for row in shown(events, width) if row.strip()]


# --- messages -------------------------------------------------------------------------------------------------------


def test_a_message_stands_under_its_speaker() -> None:
    assert shown([user("do this\nand that"), started(), delta("I will."), answer("I will.")]) == [
        "",
        " You",
        "   do this",
        "   and that",
        "",
        " Assistant",
        "   I will.",
    ]


def test_a_steering_mark_shows_where_the_message_was_delivered() -> None:
    landed = SteeringDelivered(message_id="u1", kind="steer", text="", boundary="after step 2")

    for events in ([landed, user("no", kind="steer")], [user("no", kind="steer"), landed]):
        assert body(events) == ["You  ↳ steered after step 2", "no"]


def test_a_follow_up_is_marked_and_a_notice_has_no_speaker() -> None:
    assert body([user("then that", kind="follow_up")]) == ["You  ↳ follow-up", "then that"]
    assert body([user("the limit is near", kind="notice")]) == ["· the limit is near"]


def test_images_are_named() -> None:
    message = UserMessage(
        content=(TextBlock(text="look"), ImageBlock(media_type="image/png", data="A" * 4000)), id="u1"
    )

    assert body([MessageEnded(message_id="u1", message=message)]) == ["You", "look", "[image image/png, 3 kB]"]


def test_text_of_the_user_is_not_markup() -> None:
    assert body([user("[bold]x[/bold] **y** \u202e")])[1:] == ["[bold]x[/bold] **y** \\u202e"]


# --- what the model answers -----------------------------------------------------------------------------------------


def test_no_character_of_a_paste_is_dropped() -> None:
    pasted = user("a\x1b[31mb\x00\x9bc\rd\x85e\u202e")

    assert body([pasted])[1:] == ["a\\x1b[31mb\\x00\\x9bc", "d\\x85e\\u202e"]


def test_the_caret_waits_then_follows_the_text() -> None:
    assert shown([started()])[-1] == " Assistant ▍"
    assert shown([started(), delta("He")])[-2:] == [" Assistant", "   He▍"]
    assert shown([started(), delta("He"), answer("Hello")])[-1] == "   Hello"


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
    assert body([started(), delta("wrong"), answer("right")]) == ["Assistant", "right"]
    assert body([started(), delta("gone"), answer("")]) == ["Assistant"]


def test_several_texts_of_a_message_are_paragraphs() -> None:
    message = AssistantMessage(
        content=(TextBlock(text="one"), ThinkingBlock(thinking="", redacted="x"), TextBlock(text="two")), id="a1"
    )

    assert body([MessageEnded(message_id="a1", message=message)]) == [
        "Assistant",
        "▸ thinking  (encrypted)",
        "one",
        "two",
    ]


def test_a_discarded_message_vanishes() -> None:
    events = [user("x"), started(), delta("half an ans"), MessageDiscarded(message_id="a1", reason="cut")]

    assert body(events) == ["You", "x"]
    assert body([*events, started("a2"), answer("whole", "a2")]) == ["You", "x", "Assistant", "whole"]
    assert body([MessageDiscarded(message_id="a9", reason="never began")]) == []


def test_calls_of_a_discarded_message_vanish_with_it_and_their_end_changes_nothing() -> None:
    discarded = MessageDiscarded(message_id="a1", reason="cut")
    events = [started(), delta("half an ans"), queued("c1", "write"), discarded, ended("c1", "write", "cancelled")]

    assert body(events) == []
    again = [started("a2"), delta("who", "a2"), queued("c2", "write"), answer("whole", "a2"), ended("c2", "write")]
    assert body([*events, *again]) == [
        "Assistant",
        "whole",
        "▸ write ×1",
    ]
    assert body([*events[:4], run_ended()])[-1].startswith("─")


def test_only_the_first_of_several_messages_in_a_row_has_a_heading() -> None:
    events = [started(), answer("one"), started("a2"), delta("two", "a2"), answer("two", "a2")]

    assert shown(events) == ["", " Assistant", "   one", "", "   two"]


def test_a_long_call_being_written_is_announced() -> None:
    events = [started(), delta("I write."), delta('{"path": "x"', kind="toolcall"), delta("..." * 500, kind="toolcall")]

    assert body(events)[-1] == "… prepares a call (1.5 kB)"
    assert body([*events, queued("c1", "write")])[-1] == "▸ write ×1"
    assert body([*events, answer("I write.")]) == ["Assistant", "I write."]


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_an_answer_that_did_not_end_well_is_explained_by_the_engine_alone(reason: str) -> None:
    explained = Warned(code="output_limit", text="It was cut off.")

    assert body([answer("half", stop_reason=reason), explained]) == ["Assistant", "half", "! It was cut off."]


# --- what it does ---------------------------------------------------------------------------------------------------


def test_calls_of_a_step_are_one_row() -> None:
    events = [answer("I look."), queued("c1", "read"), queued("c2", "grep", 1), queued("c3", "read", 2)]

    assert body(events) == ["Assistant", "I look.", "▸ read ×2, grep ×1"]


def test_calls_of_another_step_are_another_row() -> None:
    teller, transcript = Teller(), Transcript()
    fold = TranscriptFold(transcript)

    for step in (0, 1):
        fold.apply(teller.tell(queued(f"c{step}", "read"), step=step))

    assert [part.call_ids for part in transcript.parts if isinstance(part, CallsPart)] == [("c0",), ("c1",)]


def test_failures_are_counted() -> None:
    statuses = ("ok", "error", "timeout", "denied_user", "skipped_steering", "cancelled", "overridden")
    calls: list[AgentEvent] = [queued(f"c{number}", "bash", number) for number in range(len(statuses))]
    calls += [ended(f"c{number}", "bash", status) for number, status in enumerate(statuses)]

    assert body(calls, 80) == ["▸ bash ×7 · 2 failed · 1 denied · 1 skipped · 1 cancelled"]


def test_calls_that_came_while_the_model_talked_stand_under_its_text() -> None:
    events = [started(), delta("I look"), queued("c1", "read"), delta(" again."), answer("I look again.")]

    assert body(events) == ["Assistant", "I look again.", "▸ read ×1"]


def test_a_change_of_a_file_is_shown_once_as_a_diff() -> None:
    changed = FileChanged(path="src/price.py", change="modified", call_id="c1", diff=DIFF)
    done = ended("c1", "edit", details={"path": "src/price.py", "diff": DIFF})

    for events in ([changed, done], [done], [changed]):
        rows = body([queued("c1", "edit"), *events], 80)
        assert rows.count("edit  src/price.py  +1 −1") == 1
        assert "10 -     return round(sum(round(item.price, 2) for item in items), 2)" in rows


def test_calls_that_failed_or_changed_nothing_show_no_diff() -> None:
    assert body([queued("c1", "edit"), ended("c1", "edit", "error", {"diff": DIFF})]) == ["▸ edit ×1 · 1 failed"]
    assert body([queued("c1", "edit"), ended("c1", "edit", details={"diff": ""})]) == ["▸ edit ×1"]


def test_a_long_diff_is_cut_and_says_so() -> None:
    diff = "@@ -0,0 +1,90 @@\n" + "".join(f"+line {number}\n" for number in range(90))

    rows = body([queued("c1", "write"), FileChanged(path="x", change="created", call_id="c1", diff=diff)])

    assert rows[-1] == f"… {90 - MAX_DIFF_ROWS} more rows"


def test_files_changed_by_a_command_are_one_row_that_opens() -> None:
    transcript = Transcript()
    fold = TranscriptFold(transcript)
    teller = Teller()
    gone = FileState(digest="d", size=2_000, mode=0o644)
    for event in (
        SessionCreated(id="s", cwd="/home/ada/shop"),
        queued("c1", "bash"),
        FileChanged(path="/home/ada/shop/src/price.py", change="modified", call_id="c1", diff=DIFF, added=1, removed=1),
        FileChanged(path="/etc/x.bin", change="deleted", call_id="c1", known=True, before=gone),
        FileChanged(
            path="/home/ada/shop/run",
            change="modified",
            call_id="c1",
            known=True,
            before=gone,
            after=gone.model_copy(update={"mode": 0o755}),
        ),
        ended("c1", "bash", "error"),
    ):
        fold.apply(teller.tell(event))

    *_, head = rows_of(transcript, 120)
    names = "src/price.py +1 −1 · /etc/x.bin deleted, 2 kB · run mode 0644 → 0755"
    assert head == f"   ▸ bash  changed 3 files  +1 −1  {names}"
    assert transcript.parts[-1].toggle()
    transcript.refresh(transcript.parts[-1])
    rows = [row.strip() for row in rows_of(transcript, 120)]
    at = rows.index("▾ bash  changed 3 files  +1 −1")
    assert rows[at + 1] == "src/price.py  +1 −1"
    assert any("round(sum" in row for row in rows[at + 2 : -2])
    assert rows[-2:] == ["/etc/x.bin  deleted, 2 kB", "run  mode 0644 → 0755"]


def test_the_only_file_a_command_changed_is_shown_at_once() -> None:
    changed = FileChanged(path="price.py", change="modified", call_id="c1", diff=DIFF, added=1, removed=1)

    rows = body([queued("c1", "bash"), changed, ended("c1", "bash")])

    assert rows[1] == "bash  price.py  +1 −1"
    assert any("round(sum" in row for row in rows[2:])


def test_of_very_many_changed_files_the_first_are_listed() -> None:
    transcript = Transcript()
    fold = TranscriptFold(transcript)
    teller = Teller()
    for number in range(MAX_FILES + 900):
        change = FileChanged(path=f"f{number}", change="created", call_id="c1", diff=DIFF, added=1, removed=1)
        fold.apply(teller.tell(change))
    part = transcript.parts[-1]

    assert "changed 1000 files  +1000 −1000" in rows_of(transcript)[-1]
    assert part.toggle()
    transcript.refresh(part)
    rows = rows_of(transcript)
    assert rows[-1].strip() == "… 900 more files"
    assert len(rows) < 400


# --- what happens around it -----------------------------------------------------------------------------------------


def retry(attempt: int, most: int = 3) -> StepRetry:
    return StepRetry(attempt=attempt, max=most, wait_s=4.0, error_kind="rate_limit", status=429)


def test_retries_say_why_when_and_which_attempt_follows_in_one_row() -> None:
    assert body([retry(2)], 80) == ["↻ rate limit (429); trying again in 4.0 s (attempt 2 of 3)"]
    assert body([retry(2), retry(3)], 80) == ["↻ rate limit (429); trying again in 4.0 s (attempt 3 of 3)"]
    assert len(body([retry(2), started(), answer("ok"), retry(2)], 80)) == 4


def test_notices_warnings_and_errors_have_their_signs() -> None:
    events = [Noticed(code="a", text="one"), Warned(code="b", text="two"), Failed(code="c", text="three")]

    assert body(events) == ["· one", "! two", "✖ three"]


@pytest.mark.parametrize(
    ("event", "row"),
    [
        (InputWarned(filter="pii", text="a name", source="prompt"), "! pii: a name"),
        (HookFailed(event="before_tool", name="audit", error="x"), "! Hook audit failed: x; the call was denied"),
        (
            CompactionEnded(ok=True, tokens_before=9000, tokens_after=3000, removed=2, strategy="summary"),
            "· Conversation shortened: 9k → 3k tokens; 2 messages summed up; /compact undo reverts it",
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


def test_the_end_of_a_run_is_a_line_with_its_numbers() -> None:
    usage = Usage(input_tokens=4_000, output_tokens=100)

    [line] = body([run_ended(usage=usage, cost=0.02)], 80)

    assert line.startswith("── done · 12.3 s · 3 steps · 5 calls · 4.1k tokens · $0.02 ──")


@pytest.mark.parametrize(("reason", "words"), [("aborted", "cancelled"), ("max_steps", "step limit reached")])
def test_the_end_of_a_run_names_its_reason(reason: str, words: str) -> None:
    assert words in body([RunEnded.model_validate({"reason": reason})])[-1]


def test_an_action_of_the_user_is_shown_once_and_is_not_an_error() -> None:
    noticed = Noticed(code="abort_requested", text="The run ends now: cancelled by the user.")
    end = RunEnded(reason="aborted", error="cancelled by the user")

    rows = body([noticed, end], 80)

    assert [row for row in rows if "by the user" in row] == ["· The run ends now: cancelled by the user."]
    assert body([end], 80)[0] == "✖ cancelled by the user"


def test_an_error_is_shown_once() -> None:
    failed = Failed(code="provider", text="The key is not accepted. Nothing was sent.")
    end = RunEnded(reason="error", error="The key is not accepted.")

    assert [row for row in body([failed, end], 80) if "key" in row] == ["✖ The key is not accepted. Nothing was sent."]
    assert body([end], 80)[0] == "✖ The key is not accepted."


def test_the_end_of_a_run_closes_what_is_open() -> None:
    rows = body([run_started(), started(), delta("half"), delta("{", kind="toolcall"), RunEnded(reason="aborted")])

    assert rows[:2] == ["Assistant", "half"]
    assert "▍" not in "".join(rows)


@pytest.mark.parametrize("end", [RunEnded(reason="aborted"), SessionLoaded(id="s", events=3)])
def test_calls_without_a_reported_end_are_ended(end: AgentEvent) -> None:
    events = [queued("c1", "bash"), ended("c1", "bash"), queued("c2", "edit", 1), end]

    assert body(events)[0] == "▸ bash ×1, edit ×1 · 1 with unknown outcome"


def test_a_resumed_session_is_marked() -> None:
    assert body([SessionLoaded(id="s", events=120)])[0].startswith("── session resumed · 120 earlier events ─")


def test_a_decision_of_the_user_is_shown_if_it_changes_the_run() -> None:
    asked = ApprovalRequested(
        request_id="q", call_id="c1", digest="d", tool="bash", args={}, session_rule="bash(git commit:*)"
    )

    def resolved(**fields: object) -> list[str]:
        event = ApprovalResolved.model_validate({"request_id": "q", "call_id": "c1", "by": "user", **fields})
        return body([queued("c1", "bash"), asked, event], 80)[1:]

    assert resolved(decision="approve") == []
    assert resolved(decision="approve", scope="session") == ["✔ You allowed for this session: bash(git commit:*)"]
    assert resolved(decision="deny", note="use rg") == ["⊘ You denied bash: use rg"]
    assert resolved(decision="skip") == ["⊘ You skipped bash"]
    assert resolved(decision="deny", by="policy") == []


def test_only_the_newest_plan_is_shown() -> None:
    old = TodoUpdated(items=(TodoItem(text="one", status="pending"),))
    new = TodoUpdated(items=(TodoItem(text="one", status="done"), TodoItem(text="two", status="in_progress")))

    assert body([old, user("x"), new]) == ["You", "x", "Plan  1 of 2 done", "● one", "◐ two"]


def test_a_proposed_plan_is_markdown() -> None:
    assert body([PlanProposed(plan_id="p", text="1. do *it*")]) == ["Plan", "1. do it"]


def test_sub_agents_are_shown_only_for_failures() -> None:
    teller, transcript = Teller(), Transcript()
    fold = TranscriptFold(transcript)

    for event in (started(), delta("inner"), queued("c9", "read"), Warned(code="x", text="inner trouble")):
        fold.apply(teller.tell(event, depth=1))

    assert [row.strip() for row in rows_of(transcript)] == ["", "! inner trouble"]


def test_a_whole_session_reads_well() -> None:
    transcript = Transcript()
    fold = TranscriptFold(transcript)
    for envelope in story():
        fold.apply(envelope)
    fold.flush()

    rows: Sequence[str] = rows_of(transcript, 72)

    assert rows[-1] == "   Good, then I only change the helper▍"
    assert " You  ↳ steered after step 2" in rows
    assert "   ▸ read ×2, grep ×1, bash ×1, edit ×1 · 1 failed" in rows


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
    assert shown(commanded("!ls", "a  b\nc\td")) == ["", " You", "   !ls", "   a  b", "   c   d"]


def test_a_private_command_says_so_and_one_that_failed_how() -> None:
    rows = shown(commanded("!!ls", "no", "denied_user"))

    assert rows == ["", " You  only you see the output", "   !!ls", "   no", "   denied user"]


def test_a_running_command_shows_its_output_so_far() -> None:
    assert shown(commanded("!make", "abcdef")[:3])[-2:] == ["   !make", "   abc"]


def test_of_much_output_the_end_is_shown() -> None:
    rows = shown(commanded("!seq 100", "\n".join(map(str, range(100)))))

    assert rows[3] == f"   … {100 - MAX_OUTPUT_ROWS} more lines above; enter opens all of it"
    assert rows[4:] == [f"   {number}" for number in range(100 - MAX_OUTPUT_ROWS, 100)]


@given(st.text(st.sampled_from(AWKWARD) | st.characters(), max_size=80), st.integers(16, 80))
def test_any_text_stays_visible_and_within_the_width(text: str, width: int) -> None:
    teller, transcript = Teller(), Transcript()
    fold = TranscriptFold(transcript)
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
    fold = TranscriptFold(transcript)
    transcript.set_width(40)
    for event, drawn in told:
        fold.apply(teller.tell(event))
        if drawn:
            fold.flush()
            transcript.settle(0, 50)

    fold.flush()
    assert len(rows_of(transcript, 40)) == transcript.total == sum(part.height(40) for part in transcript.parts)


@pytest.mark.parametrize(("kind", "row"), [("asked_again", "▸ write ×1"), (None, "▸ write ×1 · 1 cancelled")])
def test_a_call_that_had_not_started_when_the_program_ended_has_no_unknown_outcome(kind: str | None, row: str) -> None:
    end = ended("c1", "write", "cancelled").model_copy(update={"error_kind": kind})

    rows = body(
        [run_started(), queued("c1", "write"), SessionLoaded(id="s", events=3), end, run_ended(reason="aborted")]
    )

    assert rows[0] == row
    assert rows[1].startswith("── session resumed")
