"""The terminal's title, and signals to a user who looks elsewhere: once for each wait, never to one who is there."""

import pytest
from textual.events import AppBlur, AppFocus, Key

from tests.support.table import table
from tui_agent.protocol.events import Status
from tui_agent.protocol.reports import RunReason
from tui_agent.ui.app.terminal_signals import (
    AWAY_SECONDS,
    Notifications,
    TerminalSignals,
    UserPresence,
    notification_in,
)
from tui_agent.ui.state.session_status import SessionStatus


class Desk:
    """A terminal that keeps what is written, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.written: list[str] = []
        self.gone = False
        self.presence = UserPresence(lambda: self.now)
        self.signals = TerminalSignals(
            self.presence, "~/shop", lambda text: f"<{text}>", lambda: None if self.gone else self
        )

    def write(self, data: str) -> None:
        self.written.append(data)

    def show(self, status: Status = "idle", *, asking: int = 0, ended: RunReason | None = None):
        questions = {str(number): "call" for number in range(asking)}
        self.signals.update(SessionStatus(status=status, asking=questions, ended=ended))

    @property
    def titles(self) -> list[str]:
        return [data[4:-1] for data in self.written if data.startswith("\x1b]2;")]

    @property
    def sent(self) -> list[str]:
        return [data for data in self.written if data.startswith("<")]


@pytest.fixture
def desk() -> Desk:
    """A terminal without the focus."""
    desk = Desk()
    desk.presence.note(AppBlur())
    return desk


def test_the_title_names_state_directory_and_program_once_each(desk: Desk) -> None:
    desk.show()
    desk.show("thinking")
    desk.show("streaming")
    desk.show("waiting_approval", asking=1)
    desk.show("idle", ended="done")

    assert desk.titles == [
        "~/shop · tui-agent",
        "working · ~/shop · tui-agent",
        "waiting for you · ~/shop · tui-agent",
        "~/shop · tui-agent",
    ]
    desk.signals.repeat_title()
    assert desk.titles[-2:] == ["~/shop · tui-agent"] * 2


WAITING = "<tui-agent: waiting for you (~/shop)>"


@table(
    ("shown", "sent"),
    [
        ([("running_tools", 0), ("waiting_approval", 1), ("waiting_approval", 3), ("running_tools", 0)], [WAITING]),
        ([("waiting_approval", 1), ("running_tools", 0), ("waiting_approval", 1)], [WAITING, WAITING]),
        ([("thinking", 0), "done", "done"], ["<tui-agent: the run has ended (~/shop)>"]),
        ([("thinking", 0), "aborted", ("thinking", 0), "error"], ["<tui-agent: the run has failed (~/shop)>"]),
        (["done"], []),  # A resumed session.
    ],
)
def test_each_wait_and_each_end_is_signalled_once_unless_the_user_is_there(
    shown: list[tuple[Status, int] | RunReason], sent: list[str]
) -> None:
    for is_away in (True, False):
        desk = Desk()
        desk.presence.note(AppBlur())
        if not is_away:
            # Some terminals do not report that they have the focus again.
            desk.presence.note(Key("a", "a"))
        for state in shown:
            if isinstance(state, tuple):
                desk.show(state[0], asking=state[1])
            else:
                desk.show(ended=state)

        assert desk.sent == (sent if is_away else [])


def test_a_user_without_focus_reports_is_away_after_a_while_without_input() -> None:
    desk = Desk()
    desk.now = AWAY_SECONDS - 1
    assert not desk.presence.away
    desk.now = AWAY_SECONDS
    assert desk.presence.away
    desk.presence.note(AppFocus())
    assert not desk.presence.away


def test_nothing_is_written_without_a_terminal(desk: Desk) -> None:
    desk.gone = True
    desk.show("waiting_approval", asking=1)

    assert desk.written == []


@table(
    ("method", "environment", "sent"),
    [
        ("off", {"TERM": "xterm-kitty"}, ""),
        ("bell", {"TERM": "xterm-kitty"}, "\x07"),
        ("auto", {"TERM": "xterm-256color"}, "\x07"),
        ("auto", {"TERM": "xterm-kitty"}, "\x1b]9;hello\x07"),
        ("auto", {"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "\x1b]9;hello\x07"),
        ("auto", {"TERM": "tmux-256color", "TMUX": "x", "TERM_PROGRAM": "tmux"}, "\x07"),
        ("osc9", {"TERM": "xterm-256color"}, "\x1b]9;hello\x07"),
        ("osc9", {"TERM": "tmux-256color", "TMUX": "x"}, "\x1bPtmux;\x1b\x1b]9;hello\x07\x1b\\"),
        ("osc9", {"TERM": "screen", "STY": "x"}, "\x1bP\x1b]9;hello\x07\x1b\\"),
        ("osc9", {"TERM": "dumb"}, ""),
        ("auto", {}, ""),
    ],
)
def test_the_signal_suits_the_terminal(method: Notifications, environment: dict[str, str], sent: str) -> None:
    assert notification_in(method, environment)("hello") == sent
