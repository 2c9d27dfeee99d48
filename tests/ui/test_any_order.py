"""Whatever events come, twice, out of order or not at all: what the screen knows stays whole, and nothing breaks."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.ui.row_kit import FoldWithLedger, story
from tests.ui.story import Story, working
from tests.ui.trial_story import everything as all_changes
from tests.ui.trial_story import formatted, propose, settle, trial
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import MessageDiscarded, SessionLoaded, SteeringDropped, SteeringRequeued
from tui_agent.ui.panel.panel_rows import DONE, PanelRows
from tui_agent.ui.state.approval_folds import PendingApprovals
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.queued_messages import WaitingMessages
from tui_agent.ui.state.run_times import RunTimes
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.transcript.transcript_layout import Transcript


def everything() -> list[Envelope]:
    """Events of all kinds that belong together."""
    told: Story = working()
    message_id = told.sends("not that one")
    told.tell(SteeringRequeued(message_id=message_id, kind="steer", text="not that one", reason="it broke off"))
    told.tell(SteeringDropped(message_id=message_id, kind="steer", text="not that one", reason="recalled"))
    told.delivered(told.sends("this one"), "this one", "after step 2")
    told.resolved(told.asks(told.queued("bash", "rm x"), "bash", "rm x", "no rule"), "c5")
    told.tell(MessageDiscarded(message_id=told.stream("half an answer"), reason="cut"))
    call_id, request_id = propose(told, formatted())
    settle(told, call_id, formatted(), "src/cart.py", request_id=request_id)
    propose(told, all_changes(), "make release")
    trial(told)
    told.end()
    told.tell(SessionLoaded(id="s1"))
    return [*told.envelopes, *story()]


TOLD = everything()


@given(st.lists(st.sampled_from(TOLD), max_size=60), st.booleans())
def test_nothing_breaks(told: list[Envelope], by_agents: bool) -> None:
    ledger, times, view = CallLedger(), RunTimes(), SessionStatus()
    waiting, pending, fold = WaitingMessages(), PendingApprovals(), FoldWithLedger(Transcript())
    rows = PanelRows(ledger)

    for number, envelope in enumerate(told):
        depth = number % 2 if by_agents else 0
        event = replace(envelope, origin=replace(envelope.origin, depth=depth))
        for part in (times, view, waiting, pending, fold):
            part.apply(event)
        if changed := ledger.apply(event):
            rows.update(changed)

    heaps = [place for heap in ledger.places.values() for place in heap]
    assert sorted(heaps) == list(range(len(ledger.calls)))
    ids = [message.message_id for message in waiting.all]
    assert len(ids) == len(set(ids))
    assert (pending.first is None) == (len(pending) == 0)
    shown = [call.place if call is not None else DONE for call in map(rows.call, range(len(rows)))]
    rows.rebuild("all")
    assert shown == [call.place if call is not None else DONE for call in map(rows.call, range(len(rows)))]
