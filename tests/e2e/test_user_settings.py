"""The user's settings of keys and theme in the real program, and plain mode in a terminal."""

from pathlib import Path

from tests.support.server_thread import ServerThread

from .user_machine import UserMachine


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
