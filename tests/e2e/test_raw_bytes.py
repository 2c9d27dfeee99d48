"""Bytes that reach the terminal if all data around the program is hostile (safety promise 17)."""

import re
import signal

import pytest

from tests.e2e.script import bodies_of, call, calls, says
from tests.e2e.user_machine import UserMachine
from tests.support.server_thread import ServerThread

EVIL = "[red]x[/] \x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x1b\\y\x1b]0;evil\x07\x9d2;evil\x9c\x1b[6n\x1bPevil\x1b\\\u202ez\u200b\x9b5m"
ACTING = ("\x1b]52", "\x1b]8;", "\x1b]0;", "\x1bP", "\x1b[6n", "\x9d", "\x9b", "\x9c", "\u202e", "\u200b")
TITLE = re.compile(rb"(?:(?:waiting for you|working) \xc2\xb7 )?[\w~/.-]+ \xc2\xb7 tui-agent")
"""Titles of the window: state, directory, program."""


@pytest.fixture
def hostile_machine(machine: UserMachine) -> UserMachine:
    """A folder with terminal control sequences in the names of its branch and files."""
    git = machine.work / ".git"
    git.mkdir()
    (git / "HEAD").write_text(f"ref: refs/heads/{EVIL}\n", "utf-8")
    machine.file(EVIL.replace("/", "-"), EVIL)
    machine.file("evil.txt", f"{EVIL}\n{EVIL}\n")
    return machine


def acting_in(raw: bytes) -> list[str]:
    """Return the injected control sequences that reached the terminal, and titles that the program never sets."""
    titles = re.findall(rb"\x1b\]2;(.*?)(?:\x07|\x1b\\)", raw, re.DOTALL)
    foreign = [title.decode("utf-8", "replace") for title in titles if not TITLE.fullmatch(title)]
    return [order for order in ACTING if order.encode() in raw] + foreign


def test_no_injected_control_sequence_reaches_the_terminal(hostile_machine: UserMachine) -> None:
    machine = hostile_machine
    looks = calls(
        call("read", path="evil.txt"),
        call("glob", pattern="*"),
        call("bash", command=f"echo '{EVIL}' | cat", sandbox=False),
    )
    changes = calls(call("edit", path="evil.txt", old_string=EVIL, new_string=f"{EVIL}!", replace_all=True))
    script = [looks, changes, says(f"{EVIL}\n\n```\n{EVIL}\n```\n\n| {EVIL} |\n|--|\nAll told.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("look")
        app.wait_for_question("bash")
        app.press("y")
        app.wait_for_question("edit")
        app.press("w")
        app.wait_for("every rule and check")
        app.press("w")
        app.wait_until_gone("every rule and check")
        app.wait_until_armed("n no")
        # Two letters without a pause answer nothing; a key that pages ends the first one.
        app.press("pageup")
        app.press("n")
        app.wait_for_words("All told.")
        bodies_of(server)
        app.press("ctrl+q")
        assert app.wait_for_end() == 0

    assert acting_in(bytes(app.raw)) == []


IGNORED = (
    "\x1b[97;1:3u", "\x1b[1114112u", "\x1b[3;1:3~", "\x1b[:;5u", "\x1b[u", "\x1b[999~", "\x1b[63000u", "\x1b[97;0u",
    "\x1b]10;rgb:ffff/ffff/ffff\x07", "\x1b]4;1;rgb:ffff/0000/0000\x07", "\x1b[?62;22c", "\x1bP>|XTerm(380)\x1b\\",
    "\x1b_Gi=31;OK\x1b\\", "\x1b^x\x1b\\", "\x1bXx\x1b\\", "\x1b[48;99999;99999;1;1t", "\x1b[<0;1;1;1M", "\x9b0n",
)  # fmt: skip
"""Input that presses nothing."""


def test_no_input_of_the_terminal_ends_the_program_or_opens_an_editor(machine: UserMachine) -> None:
    machine.forks = False
    editor = machine.file("editor", "#!/bin/sh\ntouch edited\n")
    editor.chmod(0o755)
    script = [calls(call("bash", command="until [ -e go ]; do sleep 0.05; done; touch done.txt")), says("All done.")]
    with ServerThread(script) as server:
        variables = server.environment | {"EDITOR": str(editor)}
        with machine.app("--permission-mode", "allow", variables=variables) as app:
            app.wait_for(lambda _: b"\x1b[?2004h" in app.raw)
            app.write("abc\x1b[102;1:3u\x1b]11;rgb:ffff/ffff/ffff\x07")
            app.write("d“é漢")
            app.ready()
            app.wait_for_draft("abcd“é漢")
            app.press("enter")
            app.wait_for_status("bash")
            for number, sequence in enumerate(IGNORED):
                app.write(f"{sequence}{number} ")
            app.write("\x1b]11;rgb:ff")
            app.write("ff/ffff/ffff\x1b")
            app.read(0.2)
            app.write("\\git\xa0x \x1b[97:65;2u")
            app.wait_for_draft("".join(f"{number} " for number in range(len(IGNORED))) + "git x A")
            app.write("\x1b[1089::99;5u")
            app.wait_for_draft("")
            (machine.work / "go").touch()
            app.wait_for_words("All done.")
            app.quit()
        bodies_of(server)

    assert (machine.work / "done.txt").exists()
    assert not (machine.work / "edited").exists()


def test_a_screen_is_whole_whatever_the_environment_says_and_others_write(machine: UserMachine) -> None:
    machine.forks = False
    odd = {"COLUMNS": "100", "LINES": "30", "PYTHONIOENCODING": "latin-1"}
    with machine.app("--demo", "--no-mouse", size=(100, 30), variables=odd) as app:
        app.ready()
        assert "─" in app.screen.text
        app.wait_for(lambda screen: screen.lines[screen.row].startswith(" ›") and screen._column == 3)
        app.resize(60, 20)
        app.wait_for(lambda screen: screen.lines[-1].startswith(" ● ready") and screen.lines[-3].endswith("─ ask"))
        with open(app._slave, "wb", closefd=False, buffering=0) as terminal:
            terminal.write(b"\x1b[3;1HGARBAGE")
        app.wait_for("GARBAGE")
        app.write("\x0c")
        app.wait_until_gone("GARBAGE")
        assert [mode for mode in (b"?1000h", b"?1003h", b"?1006h") if mode in app.raw] == []
        app.write("/mouse\r")
        app.wait_for(lambda _: b"?1003h" in app.raw)
        app.process.send_signal(signal.SIGQUIT)
        assert app.wait_for_end() == -signal.SIGQUIT
        assert app.left_behind == []
    assert "the full-screen app writes UTF-8" in machine.run("doctor", variables=odd).stdout


def test_signals_that_end_the_program_leave_the_terminal_as_it_was(machine: UserMachine) -> None:
    for number in (signal.SIGUSR1, signal.SIGABRT, signal.SIGXCPU):
        with machine.app("--demo") as app:
            app.ready()
            app.process.send_signal(number)
            assert app.wait_for_end() == -number
            assert app.left_behind == []


def test_a_late_answer_of_the_terminal_is_not_typed_into_the_shell(machine: UserMachine) -> None:
    with machine.shell() as app:
        app.wait_for("shell>")
        app._answers.clear()
        app.type("tui-agent --demo --theme auto\r")
        app.wait_for(lambda _: b"\x1b[?2048$p" in app.raw and b"\x1b]11;?" in app.raw)
        app.write("\x11")
        app.read(0.2)
        app.write("\x1b]11;rgb:ffff/ffff/ffff\x07\x1b[?2026;2$y")
        app.wait_for(lambda screen: screen.lines[screen.row].startswith("shell>"))
        app.type("echo it is $((6 * 7))\r")
        app.wait_for("it is 42")
        assert "ffff" not in app.screen.text
