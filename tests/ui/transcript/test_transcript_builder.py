"""Fold from events to the conversation: the same for live, resumed and replayed sessions."""

import unicodedata
from collections.abc import Iterable

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
    GuardrailTripped,
    HookFailed,
    InputRejected,
    InputWarned,
    LoopDetected,
    McpStatus,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    Noticed,
    PermissionModeChanged,
    PlanProposed,
    PlanResolved,
    QuestionAnswered,
    QuestionAsked,
    RunEnded,
    RunStarted,
    SessionLoaded,
    SessionRepaired,
    SessionSaveFailed,
    StatusChanged,
    SteeringDelivered,
    StepRetry,
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
from tui_agent.protocol.server_question import FormField, ServerQuestion
from tui_agent.ui.text.styled_lines import width_of_runs
from tui_agent.ui.transcript.transcript_layout import Transcript
from tui_agent.ui.transcript.transcript_parts import MAX_OUTPUT_ROWS, NotePart
from tui_agent.ui.transcript.transcript_words import retried_text, server_answer_note


def shown(events: Iterable[AgentEvent], width: int = 60) -> list[str]:
    """Return the text shown after some events, all of one step."""
    teller, transcript = Teller(), Transcript()
    fold = FoldWithLedger(transcript)
    for event in events:
        fold.apply(teller.tell(event))
        fold.flush()
    return rows_of(transcript, width)


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


IMAGE = ImageBlock(media_type="image/png", data="A" * 4000)
IMAGES = UserMessage(
    content=(TextBlock(text="look"), IMAGE, IMAGE.model_copy(update={"name": "shop\x1b[2J.png"})), id="u1"
)
HALF = [started(), delta("half an ans")]
GONE = MessageDiscarded(message_id="a1", reason="cut")
DISCARDED_CALL = [*HALF, queued("c1", "write"), GONE, ended("c1", "write", "cancelled")]
WRITTEN = [started(), delta("I write."), delta('{"path": "x"', kind="toolcall"), delta("..." * 500, kind="toolcall")]
SKIPPED = [queued("c1", "edit"), ended("c1", "edit", "skipped_steering")]
STEER = [
    SteeringDelivered(message_id="u2", kind="steer", text="", boundary="after step 1"),
    user("keep", "u2", "steer"),
]
CANCELLED = Noticed(code="abort_requested", text="The run ends now: cancelled by the user.")
REFUSED = Failed(code="provider", text="The key is not accepted. Nothing was sent.")
FAILED = RunEnded(reason="error", error="The key is not accepted.")
SHORTENED = CompactionEnded(ok=True, tokens_before=9000, tokens_after=3000, removed=2, strategy="summary")
CUT = ToolResultMessage(call_id="c", tool_name="read", content=())
ASKED = ApprovalRequested(
    request_id="q", call_id="c1", digest="d", tool="bash", args={}, session_rule="bash(git commit:*)"
)


def decided(status: ToolStatus = "ok", **fields: object) -> list[AgentEvent]:
    """Return the events of a call about which the user decided."""
    event = ApprovalResolved.model_validate({"request_id": "q", "call_id": "c1", "by": "user", **fields})
    return [queued("c1", "bash"), ASKED, event, ended("c1", "bash", status)]


def closed(kind: str | None) -> list[AgentEvent]:
    """Return the events of a call that had not started when the program ended."""
    end = ended("c1", "write", "cancelled").model_copy(update={"error_kind": kind})
    return [run_started(), queued("c1", "write"), SessionLoaded(id="s", events=3), end, run_ended(reason="aborted")]


@table(
    ("events", "rows"),
    [
        ([user("then that", kind="follow_up")], ["↳ then that", "follow-up"]),
        ([user("the limit is near", kind="notice")], ["· the limit is near"]),
        (
            [MessageEnded(message_id="u1", message=IMAGES)],
            ["❯ look", "[image image/png, 3 kB]", "[image shop.png, 3 kB]"],
        ),
        # No character of a paste is dropped.
        ([user("a\x1b[31mb\x00\x9bc\rd\x85e\u202e")], ["❯ a\\x1b[31mb\\x00\\x9bc", "d\\x85e\\u202e"]),
        ([started()], ["● ▍"]),
        ([started(), delta("He")], ["● He▍"]),
        ([started(), delta("wrong"), answer("right")], ["● right"]),
        ([started(), delta("gone"), answer("")], []),
        ([user("x"), *HALF, GONE], ["❯ x"]),
        ([user("x"), *HALF, GONE, started("a2"), answer("whole", "a2")], ["❯ x", "● whole"]),
        ([MessageDiscarded(message_id="a9", reason="never began")], []),
        (DISCARDED_CALL, []),
        (
            [user("x"), *DISCARDED_CALL, started("a2"), queued("c2", "write"), answer("whole", "a2")],
            ["❯ x", "● whole", "◌ write #2"],
        ),
        (WRITTEN, ["● I write.▍", "… prepares a call (1.5 kB)"]),
        ([*WRITTEN, queued("c1", "write")], ["● I write.▍", "◌ write #1"]),
        # The engine alone explains an answer that did not end well.
        (
            [answer("half", stop_reason="max_tokens"), Warned(code="output_limit", text="It was cut off.")],
            ["● half", "! It was cut off."],
        ),
        # Calls stand under the text of their message, also if it came in one piece after them.
        ([started(), delta("I look"), queued("c1", "read"), delta(" again.")], ["● I look again.▍", "◌ read #1"]),
        (
            [user("x"), started(), queued("c1", "bash"), answer("I look.", thinking="Where?")],
            ["❯ x", "▸ thinking Where?", "● I look.", "◌ bash #1"],
        ),
        # An empty delta does not put the text before the thinking.
        (
            [started(), delta(""), delta("hm", kind="thinking"), answer("So.", thinking="hm")],
            ["▸ thinking hm", "● So."],
        ),
        # A steer is marked with what it skipped, and not with the steps of an earlier run.
        (
            [run_started(), *SKIPPED, *STEER],
            ["⤼ edit skipped: you steered #1", "↳ keep", "steered after step 1 · skipped #1 edit"],
        ),
        (
            [run_started(), *SKIPPED, run_started(), *STEER],
            ["⤼ edit skipped: you steered #1", "↳ keep", "steered after step 1"],
        ),
        # An action of the user is shown once, and not as an error.
        ([CANCELLED], ["· The run ends now: cancelled by the user."]),
        ([CANCELLED, RunEnded(reason="aborted", error="cancelled by the user")], ["── cancelled by you"]),
        ([RunEnded(reason="aborted", error="the program ends")], ["── cancelled: the program ends"]),
        # An error is shown once, too.
        ([REFUSED, FAILED], ["✖ The key is not accepted. Nothing was sent.", "── failed"]),
        ([FAILED.model_copy(update={"total_ms": 2_000})], ["✖ The key is not accepted.", "── failed · 2.0 s"]),
        ([*decided(decision="approve")], ["✔ bash"]),
        (
            [*decided(decision="approve", scope="session")],
            ["✔ bash", "✔ You allowed for this session: bash(git commit:*)"],
        ),
        ([*decided("skipped_user", decision="skip")], ["⤼ bash you skipped it #1"]),
        ([SessionSaveFailed(id="s", error="disk full")], ["✖ disk full"]),
        ([SessionRepaired(id="s", what="last line torn")], ["! The session was repaired: last line torn"]),
        (
            [HookFailed(event="e", name="h", error="", timed_out=True, fail_open=True)],
            ["! Hook h did not answer in time; the call continues"],
        ),
        ([InputRejected(filter="pii", reason="a name", source="prompt")], ["⊘ Not sent to the model: a name (pii)"]),
        (
            [GuardrailTripped(name="g", lane="tool_input", severity="high", reason="r", halted=True)],
            ["✖ Guardrail g (tool input): r"],
        ),
        (
            [LoopDetected(tool="read", count=4, action="abort")],
            ["! The model called read 4 times with the same input; the run was ended"],
        ),
        (
            [LoopDetected(tool="read", count=4, action="nudge")],
            ["! The model called read 4 times with the same input; the model was notified"],
        ),
        (
            [McpStatus(server="s", state="failed", error="no such file")],
            ["! Tool server s does not run: no such file · /mcp shows it"],
        ),
        ([PlanResolved(plan_id="p", accepted=False, note="smaller")], ["· Plan not accepted: smaller"]),
        ([QuestionAsked(question_id="q", text="Which?", options=("a", "b"))], ["· Which?", "- a", "- b"]),
        ([QuestionAnswered(question_id="q", text="a")], ["· You answered: a"]),
        (
            [StepRetry(attempt=2, max=2, wait_s=0.5, error_kind="server", text="HTTP 500", status=500)],
            ["↻ HTTP 500; trying again in 0.5 s (attempt 2 of 2)"],
        ),
        # Other parts of the screen show these.
        ([StatusChanged(status="idle"), McpStatus(server="s", state="ready")], []),
        ([PermissionModeChanged(old=PermissionMode.ASK, new=PermissionMode.PLAN, by="settings")], []),
        ([Noticed(code="settings_read", text="The settings were reloaded.")], []),
        ([InputWarned(filter="pii", text="a name", source="prompt")], ["! pii: a name"]),
        (
            [HookFailed(event="before_tool", name="audit", error="x")],
            ["! Hook audit failed: x; the call was denied"],
        ),
        (
            [SHORTENED],
            ["· Conversation shortened: 9k → 3k tokens; 2 messages summarised; /compact undo reverts it"],
        ),
        (
            [SHORTENED.model_copy(update={"strategy": "digest", "removed": 1, "cut": (CUT,)})],
            [
                "· Conversation shortened: 9k → 3k tokens; 1 message put into a plain list; 1 old result cut short; "
                "/compact undo reverts it"
            ],
        ),
        (
            [CompactionUndone(tokens_after=9000, restored=2)],
            ["· Shortening undone: 2 messages as before, about 9k tokens"],
        ),
        (
            [CompactionEnded(ok=False, tokens_after=0, removed=0, error="e")],
            ["! The conversation could not be shortened: e"],
        ),
        # A call that had not started when the program ended has no unknown outcome.
        (closed("asked_again")[:-1], ["■ write asks again when the session resumes #1", "── session resumed"]),
        (closed(None)[:-1], ["■ write cancelled #1", "── session resumed"]),
        (commanded("!ls", "a  b\nc\td"), ["❯ !ls", "a b", "c d"]),
        (commanded("!!ls", "no", "denied_user"), ["❯ !!ls", "no", "denied by you", "only you see the output"]),
        (
            commanded("!seq 100", "\n".join(map(str, range(100)))),
            [
                "❯ !seq 100",
                f"… {100 - MAX_OUTPUT_ROWS} more lines above; enter opens all of it",
                *map(str, range(100 - MAX_OUTPUT_ROWS, 100)),
            ],
        ),
    ],
)
def test_events_become_rows(events: list[AgentEvent], rows: list[str]) -> None:
    assert [" ".join(row.strip(" ─").split()) for row in shown(events, 140) if row.strip()] == [
        row.removeprefix("── ") for row in rows
    ]


def test_the_note_of_a_form_names_values_as_the_form_does() -> None:
    kinds = {"Name": "text", "Gift": "flag", "Card": "flag", "Until": "flag", "Sizes": "choices"}
    fields = tuple(FormField(name=label.lower(), title=label, kind=kind) for label, kind in kinds.items())  # pyright: ignore
    question = ServerQuestion(server="shop", kind="form", message="Who?", fields=fields)
    answers = {"name": "Ada", "gift": True, "card": False, "until": None, "sizes": ["s", "m"]}
    event = ApprovalResolved(request_id="q", call_id="", decision="approve", by="user", answers=answers)

    said = "You answered the server shop: Who? · Name = Ada · Gift = yes · Card = no · Until = no answer · Sizes = s, m"
    assert server_answer_note(question, event) == said


def test_a_retry_that_is_over_no_longer_says_when_it_comes() -> None:
    text = "The model is overloaded (529); trying again in 4.0 s (attempt 2 of 10)"

    assert retried_text(text, tried=True) == "The model is overloaded (529); tried again after 4.0 s (attempt 2 of 10)"
    assert retried_text(text, tried=False) == "The model is overloaded (529); the run ended before an answer"


def test_of_sub_agents_only_failures_are_shown() -> None:
    teller, transcript = Teller(), Transcript()
    fold = FoldWithLedger(transcript)
    for event in (started(), delta("inner"), queued("c9", "read"), Warned(code="x", text="inner trouble")):
        fold.apply(teller.tell(event, depth=1))

    assert [row.strip() for row in rows_of(transcript)] == ["", "! inner trouble"]


AWKWARD = "[]/@=`*_|>#-1. \n\t\\\x1b\x9b\x07\r\u202e\u200b\u2066\ufeff\u00a0\ue000日👍e\u0301"


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
