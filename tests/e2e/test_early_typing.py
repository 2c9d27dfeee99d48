"""The prelude hands everything over: keys typed while the app is imported, its picture, and the terminal."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import IS_LONG, sample
from tests.support.screen_buffer import ALTERNATE_SCREEN, ScreenBuffer, visible
from tests.support.server_thread import ServerThread
from tests.support.terminal import FRAME_BEGINS, FRAME_ENDS, Terminal

from .script import bodies_of, says, words_in
from .user_machine import App, UserMachine

HANGS = """
import os, sys
from tui_agent.prelude import early_start
early_start.begin(sys.argv[1:])
os.read(os.pipe()[0], 1)
"""
ENDS_LINE = {"xterm": "\n", "kitty": "\x1b[13;2u", "modifyOtherKeys": "\x1b[27;2;13~"}
"""A key that begins a new line, as terminals send it."""


@pytest.fixture(autouse=True)
def slow_start(machine: UserMachine) -> None:
    """Let each program import its modules, so that there is time to type."""
    machine.forks = False


def prelude_alone(machine: UserMachine, *arguments: str, size: tuple[int, int]) -> Terminal:
    """Start a program that has a prelude and nothing behind it."""
    command = [sys.executable, "-c", HANGS, *arguments]
    return Terminal(command, cwd=machine.work, environment=machine.environment, columns=size[0], rows=size[1])


def pages(machine: UserMachine) -> list[Path]:
    return sorted((machine.home / ".local/state/tui-agent/start").glob("*"))


def looks_of(screen: ScreenBuffer) -> list[list[tuple[str, object]]]:
    """Return the cells of a screen as they look, without the look of the caret, which blinks."""
    rows: list[list[tuple[str, object]]] = [
        [(sign, visible(sign, look)) for sign, look in row] for row in screen._cells
    ]
    rows[-2][3] = rows[-2][3][0], None
    return rows


def first_frames(app: App) -> list[list[list[tuple[str, object]]]]:
    """Return the looks of the app's own first frames: on a busy machine, a later one than the first is kept."""
    output = bytes(app.raw).decode("utf-8", "replace")
    screen = ScreenBuffer(app.screen.columns, app.screen.rows)
    screen.feed("\x1b[?1049h")
    looks: list[list[list[tuple[str, object]]]] = []
    for frame in output[output.index(FRAME_BEGINS) :].split(FRAME_ENDS):
        screen.feed(frame)
        if "ready" in screen.text:
            break
        looks.append(looks_of(screen))
    return looks


@pytest.mark.parametrize(
    ("size", "theme"),
    sample([((120, 40), "dark"), ((80, 24), "light"), ((100, 30), "high-contrast"), ((40, 12), "ansi")], 4),
)
def test_the_prelude_shows_a_first_frame_of_the_app(machine: UserMachine, size: tuple[int, int], theme: str) -> None:
    arguments = "--demo", "--theme", theme
    with machine.app(*arguments, size=size) as app:
        app.wait_for("● ready")
        app.wait_for(lambda _: len(pages(machine)) == 2)
        own = first_frames(app)
        app.quit()

    with prelude_alone(machine, *arguments, size=size) as early:
        early.wait_for("◌ opening")
        early.wait_for(lambda screen: looks_of(screen) in own)
        early.type("hi 漢")
        early.wait_for("› hi 漢")
        typed = looks_of(early.screen)[-2]
        early.type("\x7f\x7f\x7f\x7f")
        early.wait_for(lambda screen: looks_of(screen) in own)

    with machine.app(*arguments, size=size) as app:
        app.type("hi 漢")
        app.wait_for(lambda screen: "● ready" in screen.text and "› hi 漢" in screen.text)
        app.wait_for(lambda screen: looks_of(screen)[-2] == typed)
        app.quit()

    # Another folder begins with an empty page in the colours of the theme.
    (machine.work / "other").mkdir()
    machine.work = machine.work / "other"
    with prelude_alone(machine, *arguments, size=size) as early:
        early.wait_for("› Ask for something")
        assert "demo" not in early.screen.text
        assert all(look for _, look in early.screen._cells[0])


@settings(max_examples=4 if IS_LONG else 2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(["a", "é", "漢", "👍", "x" * 40, "\x7f", " ", "line", "\x1b[200~p1\rp2\x1b[201~"]),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(sorted(ENDS_LINE)),
    st.integers(0, 60),
)
def test_what_is_typed_during_the_start_arrives_once_and_in_order(
    machine: UserMachine, keys: list[str], encoding: str, pace: int
) -> None:
    keys = ["<", *keys, ENDS_LINE[encoding], "end>"]
    wanted = ""
    for key in keys:
        if key == "\x7f":
            wanted = wanted[:-1]
        else:
            plain = key.removeprefix("\x1b[200~").removesuffix("\x1b[201~").replace("\r", "\n")
            wanted += "\n" if key == ENDS_LINE[encoding] else plain
    # A busy machine may take long between two bytes of a sequence.
    patient = {"ESCDELAY": "5000"}
    with ServerThread([says("Heard.")]) as server, machine.app(variables=server.environment | patient) as app:
        app.wait_for(lambda _: b"\x1b[?2004h" in app.raw)
        # Byte by byte, over the whole start at some paces: escape sequences and characters are cut everywhere.
        for key in keys:
            app.write_slowly(key, pace / 1000)
        app.wait_for("end>")
        app.ready()
        app.press("enter")
        app.wait_for_words("Heard.")
        (request,) = bodies_of(server)
        app.quit()

    assert words_in(request) == [wanted]


def test_an_enter_during_the_start_sends_what_survived_resizes_and_nothing_typed_is_stored(
    machine: UserMachine,
) -> None:
    with ServerThread([says("Early bird.")]) as server, machine.app_on(server) as app:
        app.wait_for(lambda _: b"\x1b[?2004h" in app.raw)
        app.type("a secret")
        app.wait_for("› a secret")
        for size in ((20, 6), (200, 60), (80, 24)):
            app.resize(*size)
        app.write(" at once\r")
        app.wait_for_words("Early bird.")
        (request,) = bodies_of(server)
        app.quit()

    assert words_in(request) == ["a secret at once"]
    assert [page for page in pages(machine) if b"secret" in page.read_bytes()] == []


def test_an_early_ctrl_z_suspends_the_app_and_restores_the_terminal(machine: UserMachine) -> None:
    with machine.shell() as app:
        app.wait_for("shell>")
        before = app.modes_after
        app.type("tui-agent --demo\r")
        app.wait_for(lambda screen: ALTERNATE_SCREEN in screen.modes)
        app.type("draft\x1a")
        app.wait_for("Stopped")
        app.wait_for(lambda screen: screen.lines[screen.row].startswith("shell>"))
        assert app.modes_after == before
        assert ALTERNATE_SCREEN not in app.screen.modes
        app.type("fg\r")
        app.wait_for_draft("draft")
        app.press("ctrl+q")
        app.wait_for(lambda screen: screen.lines[screen.row].startswith("shell>"))
        assert app.modes_after == before


def test_early_keys_answer_no_question_and_reach_the_chat_behind_it(machine: UserMachine) -> None:
    (machine.work / ".tui-agent").mkdir()
    (machine.work / ".tui-agent/config.toml").write_text('model = "x"\n', "utf-8")
    with machine.app("--demo") as app:
        app.wait_for(lambda screen: ALTERNATE_SCREEN in screen.modes)
        app.type("yantq")
        app.wait_until_armed("n no")
        app.press("n")
        app.wait_for_draft("yantq")
        app.quit()


def test_a_signal_during_the_start_restores_the_terminal(machine: UserMachine) -> None:
    for pause in sample((0.0, 0.2, 0.5), 2):
        with machine.app("--demo") as app:
            app.wait_for(lambda _: b"\x1b[?2004h" in app.raw)
            app.read(pause)
            os.kill(app.process.pid, signal.SIGTERM)

            assert app.wait_for_end() == 128 + signal.SIGTERM
            assert app.left_behind == []
