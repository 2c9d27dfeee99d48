"""File names that are not UTF-8 in the workspace: both front ends continue and apply changed settings."""

import os

from tests.support.server_thread import ServerThread

from .script import call, calls, says, until
from .test_headless import piped
from .user_machine import UserMachine

NAMES = (b"\xff\xfe.txt", b"\xed\xa0\x80", b"a\nb", b"x" * 255)
DENY = '[permissions]\nrules = [["deny", "bash(make:*)"]]\n'


def make_names(machine: UserMachine) -> None:
    for name in NAMES:
        (machine.work / os.fsdecode(name)).touch()


def deny_make(machine: UserMachine) -> None:
    settings = machine.home / ".config" / "tui-agent" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(DENY, "utf-8")


def test_headless_continues_and_applies_settings(machine: UserMachine) -> None:
    script = [calls(until("named"), call("glob", pattern="**")), says("Done.")]
    with piped(machine, script) as (program, server):
        program.tell(type="user", text="go")
        server.reached("named")
        make_names(machine)
        deny_make(machine)
        while program.hear("notice")["data"]["code"] != "settings_read":
            pass
        server.release("named")
        assert program.hear("tool.ended")["data"]["status"] == "ok"
        program.hear("run.ended")
        assert program.end() == 0


def test_the_app_continues_and_applies_settings(machine: UserMachine) -> None:
    script = [calls(until("named"), call("glob", pattern="**")), says("All done.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("go")
        server.reached("named")
        make_names(machine)
        deny_make(machine)
        app.wait_for_words("1 permission rules are in force")
        server.release("named")
        app.wait_for_words("All done.")
        app.quit()
