"""The program is killed in various states, and the next one resumes."""

import re
import signal

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says, step, text_block, until, words_in
from .user_machine import App, UserMachine

ALLOWED = ("--permission-mode", "allow")


def kill(app: App, machine: UserMachine) -> None:
    """Kill the program as a power failure would, and kill its processes."""
    app.process.send_signal(signal.SIGKILL)
    assert app.wait_for_end() == -signal.SIGKILL
    machine.end_processes()


def test_a_program_is_killed_three_times_and_the_next_one_resumes(machine: UserMachine) -> None:
    machine.file("a.txt", "alpha\n")
    script = [
        calls(text_block("First I look."), call("read", path="a.txt")),
        calls(text_block("Now it takes long."), call("bash", command=f"echo begun; sleep {machine.tag}")),
        says("I know what happened."),
        calls(call("bash", command=f"echo asleep; sleep {machine.tag}")),
        says("Both heard."),
        calls(text_block("The first half of a"), until("never")),
        says("A whole one."),
    ]
    with ServerThread(script) as server:
        with machine.app_on(server, *ALLOWED) as app:
            app.ready()
            app.say("work for long")
            app.wait_for_row(r"^ +begun")
            kill(app, machine)

        with step("a command killed with the program is reported as unknown"):  # noqa: SIM117
            with machine.app_on(server, *ALLOWED, "--continue") as app:
                app.ready()
                app.wait_for_words("❯ work for long")
                app.wait_for_words("First I look.")
                app.wait_for_words("Now it takes long.")
                app.wait_for_words("── session resumed")
                app.wait_for_call("✔", 1, "read")
                app.wait_for_words("outcome unknown")
                app.say("what now")
                app.wait_for_words("I know what happened.")
                last = bodies_of(server)[-1]
                ((text, is_error),) = results_in(last)
                assert is_error
                assert "Outcome unknown" in text
                assert words_in(last) == ["work for long", "what now"]
                assert [event["type"] for event in machine.events()].count("session.loaded") == 1

                app.wait_for_status("ready")
                app.say("sleep")
                app.wait_for_row(r"^ +asleep")
                app.say("and dream")
                app.wait_for_row(r"1 steer  “and dream”")
                # The screen may be a moment ahead of the disk.
                app.wait_for(lambda _: any("and dream" in journal.read_text("utf-8") for journal in machine.journals))
                kill(app, machine)

        with step("a queued message stays queued"):  # noqa: SIM117
            with machine.app_on(server, *ALLOWED, "--continue") as app:
                app.ready()
                app.wait_for_row(r"1 steer  “and dream” +waits for you to send it")
                app.press("ctrl+s")
                app.wait_for_words("Both heard.")
                app.wait_until_gone("─ queue ─")
                last = bodies_of(server)[-1]
                assert words_in(last)[-2:] == ["sleep", "and dream"]
                assert [is_error for _, is_error in results_in(last)] == [True]

                app.wait_for_status("ready")
                app.say("tell me")
                app.wait_for_words("The first half of a")
                kill(app, machine)

        with step("a partial answer is not part of the conversation"):  # noqa: SIM117
            with machine.app_on(server, "--continue") as app:
                app.ready()
                app.wait_for_words("❯ tell me")
                app.say("again")
                app.wait_for_words("A whole one.")
                last = bodies_of(server)[-1]
                assert words_in(last)[-2:] == ["tell me", "again"]
                assert "The first half of a" not in str(last)
                app.quit()


def test_two_programs_do_not_write_one_session(machine: UserMachine) -> None:
    """The second program lists the options: close the first, fork, or continue without saving."""
    script = [says("Mine."), says("Only looked."), says("In the copy."), says("Still mine.")]
    with ServerThread(script) as server, machine.app_on(server, "--session", "mine") as app:
        app.ready()
        app.say("hello")
        app.wait_for_words("Mine.")
        app.wait_for_status("ready")

        other = machine.run("-p", "hello", "--resume", "mine", variables=server.environment)
        assert other.returncode == 2
        assert "mine" in other.stderr
        assert len(other.stderr.splitlines()) == 1
        assert "sessions fork mine" in other.stderr

        for arguments in (("-p", "more", "--continue"), ("-p", "more", "--continue", "--no-session")):
            done = machine.run(*arguments, variables=server.environment)
            assert done.returncode == 2
            (line,) = done.stderr.splitlines()
            assert "has no session to continue: session mine is open in another tui-agent." in line
            assert "`tui-agent --resume mine` opens that one here." in line
        assert len(bodies_of(server)) == 1

        before = machine.journals[0].read_bytes()
        looked = machine.run("-p", "look", "--resume", "mine", "--no-session", variables=server.environment)
        assert (looked.returncode, looked.stdout) == (0, "Only looked.\n")
        assert words_in(bodies_of(server)[-1]) == ["hello", "look"]
        assert (machine.journals[0].read_bytes(), len(machine.journals)) == (before, 1)

        with machine.app_on(server, "--resume", "mine") as second:
            second.wait_for_words("Session mine is open in another tui-agent")
            second.press("enter")
            second.ready()
            second.wait_for_words("Mine.")
            second.say("copied?")
            second.wait_for_words("In the copy.")
            second.quit()
        assert machine.journals[-1].name != machine.journals[0].name

        app.say("and again")
        app.wait_for_words("Still mine.")
        assert words_in(bodies_of(server)[-1]) == ["hello", "and again"]
        app.quit()
    assert b"session.save_failed" not in b"".join(journal.read_bytes() for journal in machine.journals)


SLOW_DISK = """
import sys, time

class SlowDisk:
    def find_spec(self, name, path, target=None):
        while name == "tui_agent.workbench.workbench":
            time.sleep(60)

sys.meta_path.insert(0, SlowDisk())
"""
"""Run at the start of an interpreter: reads that the screen does not need never return."""


def test_a_session_that_still_loads_holds_up_neither_the_terminals_theme_nor_quitting(machine: UserMachine) -> None:
    assert machine.run("-p", "--demo", "hello").returncode == 0
    (machine.root / "sitecustomize.py").write_text(SLOW_DISK, "utf-8")

    with machine.app("--demo", "--continue", variables={"PYTHONPATH": str(machine.root)}) as app:
        app.answer_when("\x1b]11;?\x07", "\x1b]11;rgb:ffff/ffff/ffff\x1b\\")
        app.wait_for_status("opening")
        app.wait_for(lambda screen: brightness_of(screen.look_of("Ask for", 4) or "") > 128)
        app.say("and then this")
        app.wait_for_row(r"opening .*· 1 message to be sent")
        app.quit()
        assert "this message was not sent: and then this" in app.screen.text


def brightness_of(look: str) -> int:
    """Return the largest part of a look's background colour: of the sequences in force the last one counts."""
    found = re.findall(r"48;2;(\d+);(\d+);(\d+)", look)
    return max(map(int, found[-1])) if found else -1
