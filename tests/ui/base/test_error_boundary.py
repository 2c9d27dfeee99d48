"""A widget that fails is reported and logged once and does not end the app; without a log file it raises."""

import logging
from pathlib import Path

import pytest

from tests.ui.still import FakeAgent, drawn
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import Noticed
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.text.styled_lines import Line
from tui_agent.ui.transcript.transcript_model import Part

LOG = Path("/somewhere/tui-agent.log")


def test_an_error_is_shown_and_logged_once_for_each_part(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    faults = ErrorBoundary(told.append, LOG)

    for part in ("text", "text", 1):
        faults.contain(part, ValueError("boom"))
    faults.contain("text", KeyError("boom"))

    assert len(told) == 3
    assert all(str(LOG) in text for text in told)
    assert "(str, ValueError)" in told[0]
    assert [record.exc_info is not None for record in caplog.records] == [True, True, True]


def test_without_a_log_a_fault_is_raised() -> None:
    faults = ErrorBoundary(print, None)

    with pytest.raises(ValueError, match="boom"):
        faults.contain("text", ValueError("boom"))
    assert faults.exit_message(ValueError("boom")) is None


def test_the_last_words_hold_no_value(caplog: pytest.LogCaptureFixture) -> None:
    words = ErrorBoundary(print, LOG).exit_message(ValueError("the secret"))

    assert words is not None
    assert "ValueError" in words
    assert "the secret" not in words
    assert caplog.records[0].levelno == logging.CRITICAL


def app_on(bus: EventBus, *, log_file: Path | None) -> TuiAgentApp:
    return TuiAgentApp(
        AgentBridge(FakeAgent(), bus), surroundings=TerminalEnvironment(reduced_motion=True), log_file=log_file
    )


class Boom(RuntimeError):
    """The error that the fakes raise."""


class FakeBrokenPart:
    """A view that fails on every event."""

    def apply(self, _: Envelope, /) -> None:
        raise Boom("boom")


class FakeBrokenMessage(Part):
    """A part of the conversation that cannot be laid out."""

    def layout(self, width: int) -> list[Line]:
        raise Boom("boom")


@pytest.mark.slow
async def test_a_part_that_fails_keeps_the_event_from_no_other() -> None:
    bus = EventBus()
    app = app_on(bus, log_file=LOG)
    router = app.chat._router
    router._views = ((FakeBrokenPart(), {Noticed}), *router._views)

    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(3):
            bus.publish(Noticed(code="word", text="hello"))
            await drawn(pilot)

        assert app.chat.body.has_class("-begun")
        assert [part.text for part in app.chat.body.conversation.transcript.parts] == ["hello"] * 3
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
async def test_a_test_sees_a_part_fail() -> None:
    bus = EventBus()
    app = app_on(bus, log_file=None)
    router = app.chat._router
    router._views = ((FakeBrokenPart(), {Noticed}), *router._views)

    async def look() -> None:
        async with app.run_test() as pilot:
            bus.publish(Noticed(code="word", text="hello"))
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
