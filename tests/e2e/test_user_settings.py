"""The user's settings of keys and theme in the real program, and plain mode in a terminal."""

import re
from pathlib import Path

import pytest

from tests.support.server_thread import ServerThread

from .script import call, calls, says
from .user_machine import App, UserMachine


def configure(machine: UserMachine, text: str) -> Path:
    """Write the user's settings."""
    file = machine.home / ".config/tui-agent/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_own_keys_act_and_wrong_ones_are_named_with_their_line(machine: UserMachine) -> None:
    file = configure(machine, '[keys]\n"chat.search" = "f6"\n"chat.helb" = "f9"\n"app.quit" = ["ctrl+d", "ctrl+q"]\n')
    checked = machine.run("config", "check")
    assert f"{file}:3: `keys.chat.helb`: no command has this name; did you mean `chat.help`?" in checked.stdout
    with ServerThread([]) as server, machine.app_on(server) as app:
        app.ready()
        app.wait_for_words("`keys.chat.helb`: no command has this name")
        app.write("\x1b[17~")
        app.wait_for("find in the conversation")
        app.press("escape")
        app.wait_until_gone("find in the conversation")
        file.write_text('[keys]\n"chat.search" = "f7"\n"app.quit" = "f8"\n')
        app.wait_for("f8 quit")
        app.write("\x1b[19~")
        assert app.wait_for_end() == 0


@pytest.mark.parametrize(("colour", "is_light"), [("ffff/ffff/ffff", True), ("0000/0000/0000", False)])
def test_the_theme_follows_the_background_that_the_terminal_reports(
    machine: UserMachine, colour: str, is_light: bool
) -> None:
    with ServerThread([]) as server, machine.app_on(server) as app:
        app.answer_when("\x1b]11;?\x07", f"\x1b]11;rgb:{colour}\x1b\\")
        app.ready()
        app.wait_for(lambda _: (brightness_of(app, "Ask for") > 128) == is_light)
        assert app.draft == ""
        app.quit()


def brightness_of(app: App, text: str) -> int:
    """Return the largest part of the background colour of a text."""
    # Of the sequences in force the last one counts.
    found = re.findall(r"48;2;(\d+);(\d+);(\d+)", app.screen.look_of(text, 4) or "")
    return max(map(int, found[-1])) if found else -1


def test_ctrl_c_in_plain_mode_cancels_and_then_quits(machine: UserMachine) -> None:
    wait = "echo begun; until [ -e gate ]; do sleep 0.05; done"
    script = [calls(call("bash", command=wait)), says("Never.")]
    with (
        ServerThread(script) as server,
        machine.app_on(server, "--plain", "--permission-mode", "allow") as app,
    ):
        app.wait_for("plain mode")
        app.write("wait\r")
        app.wait_for("running: bash")
        app.press("ctrl+c")
        app.wait_for("ctrl+c again quits.")
        app.wait_for("interrupted, 1 step, 1 call")
        assert app.process.poll() is None
        app.write("/quit\r")
        assert app.wait_for_end() in (0, 130)

    assert b"\x1b" not in app.raw
    assert not machine.processes()
