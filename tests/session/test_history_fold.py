"""Reconstruction of a conversation from its events, valid even if events are missing."""

from collections.abc import Sequence
from pathlib import Path

from tests.session.folded import stored
from tests.session.played_sessions import (
    FULL_SESSION,
    PlayedCall,
    PlayedRun,
    PlayedStep,
    play,
)
from tests.support.transcript_checks import validate_history
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalResolved,
    MessageDiscarded,
    MessageEnded,
    Noticed,
    SessionCreated,
    SessionForked,
    SessionLoaded,
)
from tui_agent.protocol.messages import (
    LOST_MESSAGE,
    AssistantMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from tui_agent.session.history_fold import (
    NOT_STARTED,
    OUTCOME_UNKNOWN,
    messages_of,
)

ONE_CALL = (PlayedRun("go", (PlayedStep(("I do.",), (PlayedCall(text="42"),)), PlayedStep(("Done.",)))),)


def until(envelopes: Sequence[Envelope], kind: type, count: int = 1) -> list[Envelope]:
    """Return the events up to and including the first of this kind."""
    places = [place for place, envelope in enumerate(envelopes) if isinstance(envelope.event, kind)]
    return list(envelopes[: places[count - 1] + 1])


def test_messages_of_agents_are_separate() -> None:
    envelopes = play(FULL_SESSION)
    child = messages_of(envelopes, "agent_call_3")

    assert child[0].id not in {message.id for message in messages_of(envelopes)}
    assert [message.role for message in child][:3] == ["user", "assistant", "tool_result"]


def test_a_discarded_message_is_not_part_of_the_conversation() -> None:
    envelopes = play(ONE_CALL)
    answer = next(message for message in messages_of(envelopes) if isinstance(message, AssistantMessage))
    gone = envelopes[-1].with_event(MessageDiscarded(message_id=answer.id, reason="the stream broke"))

    messages = messages_of([*envelopes, gone])

    assert answer.id not in {message.id for message in messages}
    assert not any(isinstance(message, ToolResultMessage) for message in messages)


def test_an_earlier_call_with_the_same_id_provides_no_result() -> None:
    first = play(ONE_CALL)
    again = AssistantMessage(content=(ToolCall(id="call_1", name="work"),), id="msg_again")

    messages = messages_of([*first, first[-1].with_event(MessageEnded(message_id=again.id, message=again))])

    assert messages[-1].text == NOT_STARTED


def test_before_the_end_a_call_without_events_is_unknown() -> None:
    envelopes = play(ONE_CALL)
    call_events = {"tool.queued", "tool.started", "tool.ended", "tool.output"}
    damaged = [
        envelope
        for envelope in envelopes
        if envelope.type not in call_events
        and not (isinstance(envelope.event, MessageEnded) and isinstance(envelope.event.message, ToolResultMessage))
    ]

    messages = messages_of(damaged)

    assert messages[2].text == OUTCOME_UNKNOWN
    validate_history(messages)


def test_a_lost_first_message_is_replaced_with_a_notice() -> None:
    envelopes = play(ONE_CALL)
    first = next(place for place, envelope in enumerate(envelopes) if isinstance(envelope.event, MessageEnded))

    messages = messages_of([*envelopes[:first], *envelopes[first + 1 :]])

    assert isinstance(messages[0], UserMessage)
    assert (messages[0].text, messages[0].kind) == (LOST_MESSAGE, "notice")


def test_two_answers_in_a_row_get_a_notice_between_them_unless_the_first_paused() -> None:
    base = play((PlayedRun(),))[-1]
    first = AssistantMessage(content=(TextBlock(text="one"),), id="one")
    paused = AssistantMessage(content=(TextBlock(text="one"),), id="one", stop_reason="pause_turn")
    second = AssistantMessage(content=(TextBlock(text="two"),), id="two")
    asked = UserMessage(content=(TextBlock(text="go"),), id="asked")

    def roles(*messages: UserMessage | AssistantMessage) -> list[str]:
        told = [base.with_event(MessageEnded(message_id=message.id, message=message)) for message in messages]
        return [message.role for message in messages_of(told)]

    assert roles(asked, first, second) == ["user", "assistant", "user", "assistant"]
    assert roles(asked, paused, second) == ["user", "assistant", "assistant"]


def test_empty_and_repeated_messages_are_left_out() -> None:
    envelopes = play(ONE_CALL)
    empty = UserMessage(content=(), id="empty")
    last = envelopes[-1]

    messages = messages_of([*envelopes, *envelopes, last.with_event(MessageEnded(message_id=empty.id, message=empty))])

    assert messages == messages_of(envelopes)


def test_a_delivered_message_missing_from_the_conversation_still_waits() -> None:
    envelopes = play(FULL_SESSION)
    delivered = next(place for place, envelope in enumerate(envelopes) if envelope.type == "steering.delivered")

    assert len(stored(envelopes[: delivered + 1]).waiting) == 1


def answered(rule: str | None, scope: str = "session", by: str = "user", decision: str = "approve") -> ApprovalResolved:
    fields = {"request_id": "q", "call_id": "c", "scope": scope, "by": by, "decision": decision, "rule": rule}
    return ApprovalResolved.model_validate(fields)


def test_rules_allowed_for_the_session_are_restored(tmp_path: Path) -> None:
    here, there = str(tmp_path), str(tmp_path / "other")
    told: list[AgentEvent] = [
        SessionCreated(id="s", path=None, cwd=here, version="0"),
        answered("bash(git status:*)"),
        answered("bash(make:*)", scope="project"),
        answered("bash(rm x)", by="policy"),
        answered("bash(rm y)", decision="deny"),
        answered(None),
        SessionLoaded(id="s", cwd=there),
        answered("edit(src/**)"),
        SessionLoaded(id="s", cwd=here),
        answered("edit(docs/**)"),
        answered("bash(git status:*)"),
    ]
    envelopes = [Envelope(event, seq, 0, 0.0, Origin()) for seq, event in enumerate(told, 1)]

    assert stored(envelopes).grants(tmp_path) == ("bash(git status:*)", "edit(docs/**)")
    assert stored(envelopes).grants(tmp_path / "other") == ("edit(src/**)",)


def rule_noticed(change: str, verdict: str, rule: str) -> Noticed:
    return Noticed(code=f"session_rule_{change}", text="", context={"verdict": verdict, "rule": rule})


def test_rules_that_the_user_added_and_removed_are_those_of_the_session(tmp_path: Path) -> None:
    told: list[AgentEvent] = [
        SessionCreated(id="s", path=None, cwd=str(tmp_path), version="0"),
        answered("bash(git status:*)\nbash(make:*)"),
        rule_noticed("added", "allow", "bash(ls:*)"),
        rule_noticed("added", "deny", "bash(rm:*)"),
        rule_noticed("added", "ask", "bash(date)"),
        rule_noticed("removed", "allow", "bash(git status:*)"),
        rule_noticed("removed", "ask", "bash(date)"),
        rule_noticed("removed", "deny", "bash(never added)"),
        Noticed(code="session_rule_added", text="damaged", context={"verdict": "allow"}),
    ]
    envelopes = [Envelope(event, seq, 0, 0.0, Origin()) for seq, event in enumerate(told, 1)]

    assert stored(envelopes).grants(tmp_path) == ("bash(make:*)", "bash(ls:*)")
    assert stored(envelopes).grants(tmp_path / "other") == ()
    assert stored(envelopes).restrictions == (("deny", "bash(rm:*)"),)


def test_a_fork_keeps_folders_and_what_restricts_the_original(tmp_path: Path) -> None:
    told = [
        SessionCreated(id="s", path=None, cwd=str(tmp_path), version="0"),
        Noticed(code="folder_added", text="", context={"folder": "/docs"}),
        rule_noticed("added", "allow", "bash(ls:*)"),
        rule_noticed("added", "deny", "bash(rm:*)"),
        SessionForked(id="t", parent="s", at_seq=3),
        answered("bash(make:*)"),
    ]
    envelopes = [Envelope(event, seq, 0, 0.0, Origin()) for seq, event in enumerate(told, 1)]

    assert stored(envelopes).grants(tmp_path) == ("bash(make:*)",)
    assert stored(envelopes).restrictions == (("deny", "bash(rm:*)"),)
    assert stored(envelopes).folders(tmp_path) == ("/docs",)
    assert stored(envelopes).folders(tmp_path / "other") == ()
