"""Texts of notes, for every kind of event that leaves one."""

from tests.support.table import table
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalResolved,
    BackgroundEnded,
    GuardrailTripped,
    HookFailed,
    InputRejected,
    LoopDetected,
    McpStatus,
    Noticed,
    PermissionModeChanged,
    PlanResolved,
    QuestionAnswered,
    QuestionAsked,
    SessionRepaired,
    SessionSaveFailed,
    StatusChanged,
    StepRetry,
)
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.server_question import FormField, ServerQuestion
from tui_agent.ui.transcript.transcript_notes import note_of, retried_text, server_answer_note


def test_the_note_of_a_form_names_values_as_the_form_does() -> None:
    kinds = {"Name": "text", "Gift": "flag", "Card": "flag", "Until": "flag", "Sizes": "choices"}
    fields = tuple(FormField(name=label.lower(), title=label, kind=kind) for label, kind in kinds.items())  # pyright: ignore
    question = ServerQuestion(server="shop", kind="form", message="Who?", fields=fields)
    answers = {"name": "Ada", "gift": True, "card": False, "until": None, "sizes": ["s", "m"]}
    event = ApprovalResolved(request_id="q", call_id="", decision="approve", by="user", answers=answers)

    said = "You answered the server shop: Who? · Name = Ada · Gift = yes · Card = no · Until = no answer · Sizes = s, m"
    assert server_answer_note(question, event) == said


@table(
    ("event", "kind", "words"),
    [
        (SessionSaveFailed(id="s", error="disk full"), "error", "disk full"),
        (SessionRepaired(id="s", what="last line torn"), "warning", "last line torn"),
        (
            HookFailed(event="e", name="h", error="", timed_out=True, fail_open=True),
            "warning",
            "in time; the call continues",
        ),
        (
            InputRejected(filter="pii", reason="a name", source="prompt"),
            "denied",
            "Not sent to the model: a name (pii)",
        ),
        (
            GuardrailTripped(name="g", lane="tool_input", severity="high", reason="r", halted=True),
            "error",
            "Guardrail g (tool input): r",
        ),
        (LoopDetected(tool="read", count=4, action="abort"), "warning", "called read 4 times"),
        (LoopDetected(tool="read", count=4, action="nudge"), "warning", "the model was notified"),
        (
            McpStatus(server="s", state="failed", error="no such file"),
            "warning",
            "Tool server s does not run: no such file",
        ),
        (BackgroundEnded(task_id="t1", kind="bash", status="exited", code=2), "warning", "t1 ended with exit code 2"),
        (PlanResolved(plan_id="p", accepted=False, note="smaller"), "notice", "Plan not accepted: smaller"),
        (QuestionAsked(question_id="q", text="Which?", options=("a", "b")), "notice", "Which?\n- a\n- b"),
        (QuestionAnswered(question_id="q", text="a"), "notice", "You answered: a"),
        (
            StepRetry(attempt=2, max=2, wait_s=0.5, error_kind="server", text="HTTP 500", status=500),
            "retry",
            "HTTP 500; trying again in 0.5 s (attempt 2 of 2)",
        ),
    ],
)
def test_a_note_says_what_happened(event: AgentEvent, kind: str, words: str) -> None:
    note = note_of(event)

    assert note is not None
    assert note[0] == kind
    assert words in note[1]


@table(
    "event",
    [
        StatusChanged(status="idle"),
        McpStatus(server="s", state="ready"),
        PermissionModeChanged(old=PermissionMode.ASK, new=PermissionMode.PLAN, by="settings"),
        Noticed(code="settings_read", text="The settings were reloaded."),
    ],
)
def test_events_shown_elsewhere_leave_no_note(event: AgentEvent) -> None:
    assert note_of(event) is None


def test_a_retry_that_is_over_no_longer_says_when_it_comes() -> None:
    text = "The model is overloaded (529); trying again in 4.0 s (attempt 2 of 10)"

    assert retried_text(text, tried=True) == "The model is overloaded (529); tried again after 4.0 s (attempt 2 of 10)"
    assert retried_text(text, tried=False) == "The model is overloaded (529); the run ended before an answer"
