"""The program is killed in various states, and the next one resumes."""

import signal

from tests.support.screen_buffer import ALTERNATE_SCREEN
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


def test_a_question_of_the_agent_is_open_again_after_a_kill_and_a_quit_and_a_message_closes_it(
    machine: UserMachine,
) -> None:
    choices = [{"label": "files", "description": "One a day."}, {"label": "a database"}]
    ask = call("ask_user", questions=[{"question": "Which store?", "choices": choices, "default": ["files"]}])
    script = [calls(text_block("One thing first."), ask), says("A database then."), calls(ask), says("As you like.")]
    with ServerThread(script) as server:
        with machine.app_on(server) as app:
            app.ready()
            app.say("build it")
            app.wait_for_all("The agent asks you", "Which store?", "1  files", "default")
            kill(app, machine)
        with machine.app_on(server, "--continue") as app:
            app.wait_for_all("The agent asks you", "Which store?", "One a day.")
            app.press("ctrl+q")
            app.wait_for_end()
        with machine.app_on(server, "--continue") as app:
            app.wait_for_all("The agent asks you", "Which store?")
            app.wait_until_armed("enter choose")
            app.press("down", "enter")
            app.wait_for_words("A database then.")
            ((text, is_error),) = results_in(bodies_of(server)[-1])
            assert (is_error, "a database" in text) == (False, True)

            app.wait_for_status("ready")
            app.say("and more")
            app.wait_until_armed("enter choose")
            app.press("escape")
            app.wait_for_row("The agent asks you: Which store.*ctrl\\+y answer")
            app.say("ask me nothing")
            app.wait_for_words("As you like.")
            assert words_in(bodies_of(server)[-1])[-1] == "ask me nothing"
            app.quit()


def test_a_plan_waits_through_a_kill_and_a_yes_ends_plan_mode(machine: UserMachine) -> None:
    machine.file("a.txt", "one\n")
    plan = "# Count on\n\n1. Write `two` into a.txt\n2. Read it again\n"
    edit = call("edit", path="a.txt", old_string="one", new_string="two")
    items = [{"text": "Write two into a.txt", "status": "done"}, {"text": "Read it again", "status": "pending"}]
    script = [
        calls(text_block("I have looked."), call("present_plan", plan=plan)),
        calls(text_block("Again."), call("present_plan", plan=plan)),
        calls(edit, call("todo", items=items)),
        says("Half of it is done."),
    ]
    planning = ("--permission-mode", "plan")
    with ServerThread(script) as server:
        with machine.app_on(server, *planning) as app:
            app.ready()
            app.say("count on")
            app.wait_for_all("Accept this plan?", "Count on", "1. Write two into a.txt", "s yes, accept edits")
            kill(app, machine)
        with machine.app_on(server, *planning, "--continue") as app:
            app.wait_for_all("Accept this plan?", "2. Read it again")
            app.wait_until_armed("f change")
            app.press("f")
            app.wait_for("Type what to change")
            app.type("and read it twice")
            app.press("enter")
            app.wait_for_words("you denied it: and read it twice")
            app.wait_until_armed("s yes, accept edits")
            ((text, is_error),) = results_in(bodies_of(server)[-1])
            assert (is_error, "The user said: and read it twice" in text) == (True, True)
            app.press("s")
            app.wait_for_words("Half of it is done.")
            app.wait_for_all("PLAN", "1 of 2 done", "Read it again", "accept edits")
            app.quit()
        offered = [[tool["name"] for tool in body["tools"]] for body in bodies_of(server)]
        assert ["present_plan" in names for names in offered] == [True, True, False, False]
    assert (machine.work / "a.txt").read_text("utf-8") == "two\n"


def test_a_cleanly_ended_session_resumes_by_id_and_by_arrow_key(machine: UserMachine) -> None:
    script = [says("The first answer."), says("The second answer.")]
    with ServerThread(script) as server:
        assert machine.run("-p", "the first question", "--session", "mine", variables=server.environment).stdout

        with machine.app_on(server, "--resume", "mi") as app:
            app.ready()
            app.wait_for_words("The first answer.")
            app.press("up")
            app.wait_for_draft("the first question")
            app.press("enter")
            app.wait_for_words("The second answer.")
            *_, last = bodies_of(server)
            app.wait_for_status("ready")
            app.quit()
            assert "tui-agent --resume mine" in app.screen.text

    assert words_in(last) == ["the first question", "the first question"]


def test_continue_without_a_session_prints_one_line(machine: UserMachine) -> None:
    with machine.app("--demo", "--continue") as app:
        assert app.wait_for_end() == 2
        assert ALTERNATE_SCREEN not in app.screen.modes
        assert "has no session to continue" in app.screen.text


def test_continue_in_a_renamed_directory_names_its_sessions(machine: UserMachine) -> None:
    with ServerThread([says("One."), says("Two.")]) as server:
        assert machine.run("-p", "first", "--session", "mine", variables=server.environment).returncode == 0
        before = machine.work
        machine.work = before.rename(before.with_name("renamed"))

        refused = machine.run("-p", "second", "--continue", variables=server.environment)
        resumed = machine.run("-p", "second", "--resume", "mine", variables=server.environment)

    assert refused.returncode == 2
    assert (
        f"The directory of these no longer exists: mine of {before} (first). `tui-agent --resume ID`" in refused.stderr
    )
    assert resumed.stdout == "Two.\n"


def test_a_torn_journal_is_resumed_and_reported(machine: UserMachine) -> None:
    with ServerThread([says("One."), says("Two.")]) as server:
        assert machine.run("-p", "first", variables=server.environment).returncode == 0
        (journal,) = machine.journals
        whole = journal.read_bytes()
        lines = whole.splitlines(keepends=True)
        damaged = b"".join([*lines[:3], b'{"v":1,"seq":4,"ty\x00\xff\n', *lines[3:]])
        journal.write_bytes(damaged[:-20])

        done = machine.run("-p", "second", "--continue", variables=server.environment)
        *_, last = bodies_of(server)

    assert (done.returncode, done.stdout) == (0, "Two.\n")
    assert "Line 4 is not an event" in done.stderr
    assert "the last, is incomplete" in done.stderr
    assert words_in(last) == ["first", "second"]
    assert journal.read_bytes().startswith(damaged[:-20])


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


def test_continue_takes_the_session_with_the_latest_message_and_not_the_one_renamed_last(machine: UserMachine) -> None:
    with ServerThread([says("One."), says("Two."), says("Three.")]) as server:
        for name in ("older", "newer"):
            done = machine.run("-p", f"question of {name}", "--session", name, variables=server.environment)
            assert done.returncode == 0, done.stderr
        assert machine.run("sessions", "rename", "older", "a new title").returncode == 0

        listed = machine.run("sessions", "list").stdout.splitlines()
        assert [line.split()[0] for line in listed] == ["newer", "older"]
        done = machine.run("-p", "and now?", "--continue", variables=server.environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert words_in(bodies_of(server)[-1]) == ["question of newer", "and now?"]

    with machine.app("--demo", "--resume") as app:
        app.wait_for_all("question of newer", "a new title")
        assert app.screen.text.index("question of newer") < app.screen.text.index("a new title")
        app.press("down", "enter")
        app.ready()
        app.wait_for_words("One.")
        app.quit()


def test_continue_leaves_the_session_of_another_window_alone_and_says_so(machine: UserMachine) -> None:
    script = [says("One."), says("Two."), says("Three."), says("Four.")]
    passed = "session mine is open in another tui-agent. `tui-agent --resume mine` opens that one here."
    with ServerThread(script) as server:
        assert machine.run("-p", "first", "--session", "older", variables=server.environment).returncode == 0
        with machine.app_on(server, "--session", "mine") as app:
            app.ready()
            app.say("second")
            app.wait_for_words("Two.")
            app.wait_for_status("ready")

            done = machine.run("-p", "third", "--continue", variables=server.environment)
            assert (done.returncode, done.stdout) == (0, "Three.\n")
            assert done.stderr == f"tui-agent: warning: This is session older, because {passed}\n"
            assert words_in(bodies_of(server)[-1]) == ["first", "third"]
            app.quit()

        # The other way round: now `older` has the latest message, and is open.
        with machine.app_on(server, "--continue") as app:
            app.ready()
            app.wait_for_words("Three.")
            with machine.app_on(server, "--continue") as second:
                second.ready()
                second.wait_for_words("This is session mine, because session older is open in another tui-agent.")
                second.wait_for_words("❯ second")
                second.quit()
            app.quit()


SLOW_DISK = """
import sys, time

class SlowDisk:
    def find_spec(self, name, path, target=None):
        while name == "tui_agent.workbench.workbench":
            time.sleep(60)

sys.meta_path.insert(0, SlowDisk())
"""
"""Run at the start of an interpreter: reads that the screen does not need never return."""


def test_quitting_while_a_session_loads_does_not_wait_for_it(machine: UserMachine) -> None:
    assert machine.run("-p", "--demo", "hello").returncode == 0
    (machine.root / "sitecustomize.py").write_text(SLOW_DISK, "utf-8")

    with machine.app("--demo", "--continue", variables={"PYTHONPATH": str(machine.root)}) as app:
        app.wait_for_status("opening")
        app.say("and then this")
        app.wait_for_row(r"opening .*· 1 message to be sent")
        app.quit()
        assert "this message was not sent: and then this" in app.screen.text
