"""File names that are not UTF-8 at the top of the workspace: both front ends continue, and still apply settings."""

import os

import pytest

from tests.support.server_process import ServerProcess

from .desk import Desk
from .script import call, calls, says, until
from .test_headless import piped

pytestmark = pytest.mark.e2e

NAMES = (b"\xff\xfe.txt", b"\xed\xa0\x80", b"a\nb", b"x" * 255)
DENY = '[permissions]\nrules = [["deny", "bash(make:*)"]]\n'


def make_names(desk: Desk) -> None:
    for name in NAMES:
        (desk.work / os.fsdecode(name)).touch()


def deny_make(desk: Desk) -> None:
    settings = desk.home / ".config" / "tui-agent" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(DENY, "utf-8")


def test_print_mode_continues_and_applies_settings(desk: Desk) -> None:
    script = [calls(until("named"), call("glob", pattern="**")), says("Done.")]
    with piped(desk, script) as (program, server):
        program.tell(type="user", text="go")
        server.reached("named")
        make_names(desk)
        deny_make(desk)
        while program.hear("notice")["data"]["code"] != "settings_read":
            pass
        server.release("named")
        assert program.hear("tool.ended")["data"]["status"] == "ok"
        program.hear("run.ended")
        assert program.end() == 0


def test_the_app_continues_and_applies_settings(desk: Desk) -> None:
    script = [calls(until("named"), call("glob", pattern="**")), says("All done.")]
    with ServerProcess(script, desk.root) as server, desk.app_on(server) as app:
        app.ready()
        app.say("go")
        server.reached("named")
        make_names(desk)
        deny_make(desk)
        app.wait_for_words("1 permission rules are in force")
        server.release("named")
        app.wait_for_words("All done.")
        app.quit()
