"""Ways to end or suspend the program, and the checks after each."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from tests.support.screen_buffer import ALTERNATE_SCREEN
from tests.support.server_thread import ServerThread
from tests.support.terminal import PATIENCE
from tui_agent.session import read_journal, unfinished

from .program_states import State
from .user_machine import App, UserMachine

LONGEST_GOODBYE = 5.0
"""Maximum seconds from a request to end to the exit (safety promise 16)."""


@dataclass(frozen=True)
class Way:
    """One way to end the program."""

    name: str
    end: Callable[[App], None]
    code: int


def _sent(number: signal.Signals) -> Way:
    return Way(number.name, lambda app: app.process.send_signal(number), 128 + number)


def _sleep(app: App) -> None:
    """Suspend the program as a user does; the shell gets the terminal."""
    app.press("ctrl+z")
    _wait_until_stopped(app)
    app.wait_for(lambda _: app.left_behind == [])


def _wake(app: App) -> None:
    """Resume it as `fg` does, and wait for its screen."""
    app.process.send_signal(signal.SIGCONT)
    app.wait_for(lambda screen: ALTERNATE_SCREEN in screen.modes and len(screen.text.split()) > 5)


def _slept(app: App) -> None:
    _sleep(app)
    _wake(app)
    app.process.send_signal(signal.SIGTERM)


def _ended_asleep(app: App) -> None:
    _sleep(app)
    app.process.send_signal(signal.SIGTERM)
    app.process.send_signal(signal.SIGCONT)


def _stopped_from_outside(app: App) -> None:
    app.process.send_signal(signal.SIGSTOP)
    _wait_until_stopped(app)
    app.process.send_signal(signal.SIGCONT)
    app.process.send_signal(signal.SIGHUP)


def _woken_awake(app: App) -> None:
    app.process.send_signal(signal.SIGCONT)
    app.process.send_signal(signal.SIGHUP)


WAYS = {
    way.name: way
    for way in (
        _sent(signal.SIGTERM),
        _sent(signal.SIGHUP),
        _sent(signal.SIGINT),
        Way("quit", lambda app: app.press("ctrl+q"), 0),
        Way("slept", _slept, 128 + signal.SIGTERM),
        Way("asleep", _ended_asleep, 128 + signal.SIGTERM),
        Way("stopped", _stopped_from_outside, 128 + signal.SIGHUP),
        Way("woken", _woken_awake, 128 + signal.SIGHUP),
    )
}


def end_it(machine: UserMachine, state: State, way: Way, longest: float = PATIENCE) -> float:
    """Bring the program into a state, end it, and check what is left; return the seconds that its exit took.

    Raises:
        AssertionError: a promise of docs/safety.md is broken.
    """
    state.prepare(machine)
    with ServerThread(state.script(machine)) as server, machine.app_on(server, *state.arguments) as app:
        state.enter(app)
        way.end(app)
        began = time.monotonic()
        code = app.wait_for_end(longest)
        took = time.monotonic() - began
        assert code == way.code
        assert app.left_behind == []
        assert "Traceback" not in app.screen.text
    assert machine.processes() == []
    for journal in machine.journals:
        contents = read_journal(journal)
        assert contents.problems == ()
        assert unfinished(contents.envelopes).closing == ()
    return took


def _wait_until_stopped(app: App) -> None:
    deadline = time.monotonic() + PATIENCE
    while psutil.Process(app.process.pid).status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < deadline, f"it does not sleep; the screen is\n{app.screen.text}"
        time.sleep(0.01)
