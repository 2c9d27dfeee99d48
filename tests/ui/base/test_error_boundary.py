"""A widget that fails is reported and logged once and does not end the app; without a log file it raises."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ui.row_kit import queued, run_started
from tests.ui.still import FakeAgent, drawn
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import Noticed
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.state.run_times import RunTimes
from tui_agent.ui.text.line import Line
from tui_agent.ui.transcript.transcript_layout import Part

BreakPart = Callable[[TuiAgentApp, pytest.MonkeyPatch], None]
LOG = Path("/somewhere/tui-agent.log")


def test_the_last_words_hold_no_value(caplog: pytest.LogCaptureFixture) -> None:
    words = ErrorBoundary(print, LOG).exit_message(ValueError("the secret"))

    assert words is not None
    assert "ValueError" in words
    assert "the secret" not in words
    assert caplog.records[0].levelno == logging.CRITICAL


def app_on(bus: EventBus, *, log_file: Path | None) -> TuiAgentApp:
    return TuiAgentApp(
        AgentBridge(FakeAgent(), bus),
        ChatOptions(surroundings=TerminalEnvironment(reduced_motion=True)),
        log_file=log_file,
    )


class Boom(RuntimeError):
    """The error that the fakes raise."""


def fail(_: object) -> None:
    raise Boom("boom")


def break_fold(app: TuiAgentApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a fold that handles queued calls fail on every event."""
    monkeypatch.setattr(RunTimes, "apply", lambda _, envelope: fail(envelope))


def break_view(app: TuiAgentApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first view that shows a queued call fail on every event."""
    monkeypatch.setattr(app.chat.body.conversation, "refresh_for", fail)


class FakeBrokenMessage(Part):
    """A part of the conversation that cannot be laid out."""

    def layout(self, width: int) -> list[Line]:
        raise Boom("boom")


def publish_calls(bus: EventBus) -> None:
    """Publish three calls, whose folds and views are those of the calls, the conversation and the timeline."""
    for number in range(3):
        bus.publish(queued(f"c{number}", "read", number), origin=Origin(run_id="r1", step=0))


@pytest.mark.slow
@pytest.mark.parametrize(("break_part", "has_bar"), [(break_fold, False), (break_view, True)])
async def test_a_part_that_fails_keeps_the_event_from_no_other(
    break_part: BreakPart, has_bar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = EventBus()
    app = app_on(bus, log_file=LOG)
    break_part(app, monkeypatch)

    async with app.run_test(size=(120, 40)) as pilot:
        bus.publish(run_started())
        publish_calls(bus)
        await drawn(pilot)

        assert ("·" in app.chat.body.side.times.render_line(2).text) == has_bar
        assert [call.view.call_id for call in app.chat.state.ledger.calls] == ["c0", "c1", "c2"]
        shown = [call_id for part in app.chat.body.conversation.transcript.parts for call_id in part.call_ids]
        assert shown == ["c0", "c1", "c2"]
        assert app.chat.body.has_class("-begun")
        assert [str(LOG) in toast.message for toast in app._notifications] == [True]


@pytest.mark.slow
async def test_a_message_that_cannot_be_drawn_leaves_the_rest_usable() -> None:
    bus = EventBus()
    app = app_on(bus, log_file=LOG)
    app.chat.body.conversation.transcript.add(FakeBrokenMessage())

    async with app.run_test(size=(120, 40)) as pilot:
        bus.publish(Noticed(code="word", text="hello"))
        await pilot.press(*"still here")
        await drawn(pilot)
        await pilot.resize_terminal(80, 24)
        await drawn(pilot)

        assert app.chat.entry.composer.text == "still here"
        assert len(app._notifications) == 1


@pytest.mark.slow
@pytest.mark.parametrize("break_part", [break_fold, break_view])
async def test_a_test_sees_a_part_fail(break_part: BreakPart, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = EventBus()
    app = app_on(bus, log_file=None)
    break_part(app, monkeypatch)

    async def look() -> None:
        async with app.run_test() as pilot:
            publish_calls(bus)
            await drawn(pilot)

    with pytest.raises(Boom):
        await look()


async def test_a_fault_that_ends_the_app_is_written_down(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    app = app_on(EventBus(), log_file=LOG)

    def fail() -> None:
        raise Boom("boom")

    async def go(_: object) -> None:
        app.chat.call_later(fail)

    await app.run_async(headless=True, auto_pilot=go)

    assert app.return_code == 1
    assert "Boom" in caplog.text
    told = capsys.readouterr().err
    assert " ".join(told.split()) == " ".join(str(app._faults.exit_message(Boom())).split())
