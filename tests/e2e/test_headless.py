"""`-p` as scripts use it: output, order of events, answers by id, and every exit code."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest

from tests.support.forked_program import PipedProgram
from tests.support.server_thread import ServerThread

from .script import Reply, bodies_of, call, calls, fails, results_in, says, text_block, until, words_in
from .user_machine import UserMachine

WRITE = call("write", path="new.txt", content="x\n")


def lines_of(text: str) -> list[dict[str, Any]]:
    """Return the objects of JSON lines; the last line must be complete."""
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


class Piped:
    """The program with pipes, controlled line by line."""

    def __init__(self, process: PipedProgram) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []
        """Events read so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def tell(self, **order: object) -> None:
        """Write one command."""
        self.process.stdin.write(f"{json.dumps(order)}\n")
        self.process.stdin.flush()

    def hear(self, kind: str) -> dict[str, Any]:
        """Read until an event of this type."""
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["type"] == kind:
                return self.events[-1]
        raise AssertionError(f"{kind} never came: {[event['type'] for event in self.events]}")

    def end(self) -> int:
        """Close the input, read the rest, and return the exit code."""
        self.process.stdin.close()
        self.events += [json.loads(line) for line in self.process.stdout]
        return self.process.wait()


@contextmanager
def piped(machine: UserMachine, script: list[Reply], *options: str) -> Iterator[tuple[Piped, ServerThread]]:
    """Start the program with both stream formats."""
    formats = ("-p", "--input-format", "stream-json", "--output-format", "stream-json")
    with ServerThread(script) as server:
        process = machine.piped(*formats, *options, variables=server.environment)
        with Piped(process) as program:
            yield program, server


# --- output -----------------------------------------------------------------------------------------------------------


def test_text_is_the_last_answer_and_nothing_else(machine: UserMachine) -> None:
    machine.file("a.txt", "alpha\n")
    script = [calls(text_block("I look."), call("read", path="a.txt")), says("It says **alpha**.")]
    with ServerThread(script) as server:
        done = machine.run("-p", "what does it say", variables=server.environment)
        _, second = bodies_of(server)

    assert (done.returncode, done.stdout, done.stderr) == (0, "It says **alpha**.\n", "")
    assert words_in(second) == ["what does it say"]


def test_json_is_one_object_and_the_prompt_comes_from_a_pipe(machine: UserMachine) -> None:
    machine.file("a.txt", "alpha\n")
    script = [calls(call("read", path="a.txt")), says("Done.")]
    options = ("--output-format", "json", "--session", "s1")
    with ServerThread(script) as server:
        done = machine.run("-p", *options, stdin="read it\nof two lines\n", variables=server.environment)
        assert words_in(bodies_of(server)[0])[0].strip() == "read it\nof two lines"

    (answer,) = lines_of(done.stdout)
    assert done.returncode == 0
    keys = ["session_id", "result", "is_error", "reason", "usage", "cost_usd", "steps", "tool_calls", "duration_ms"]
    assert list(answer) == keys
    assert (answer["session_id"], answer["result"], answer["is_error"]) == ("s1", "Done.", False)
    assert (answer["reason"], answer["steps"], answer["tool_calls"]) == ("done", 2, 1)
    assert answer["usage"]["output_tokens"] == 40


def test_a_review_prints_its_findings(machine: UserMachine) -> None:
    found = [
        {"file": "b.py", "severity": "low", "text": "The name misleads."},
        {"file": "a.py", "line": 3, "severity": "high", "text": "It divides by zero.\nCheck it first."},
    ]
    script = [calls(call("report_findings", findings=found)), says("Not ready.")] * 2
    with ServerThread(script) as server:
        text = machine.run("-p", "/review", variables=server.environment)
        data = machine.run("-p", "/review main", "--output-format", "json", variables=server.environment)
        first, *_ = bodies_of(server)
    lines = ["a.py:3: high: It divides by zero.\nCheck it first.", "b.py: low: The name misleads.", "Not ready."]
    assert (text.returncode, text.stdout) == (0, "\n\n".join(lines) + "\n")
    assert words_in(first)[0].startswith("Review the changes of the work tree that are not committed.")
    names = {tool["name"] for tool in first["tools"]}
    assert "report_findings" in names
    assert not names & {"write", "edit"}
    (answer,) = lines_of(data.stdout)
    assert [one["file"] for one in answer["findings"]] == ["a.py", "b.py"]


def test_the_stream_has_the_events_from_session_start_to_run_end(machine: UserMachine) -> None:
    machine.file("a.txt", "alpha\n")
    script = [calls(call("read", path="a.txt")), says("Done.")]
    with ServerThread(script) as server:
        done = machine.run("-p", "read it", "--output-format", "stream-json", variables=server.environment)

    events = lines_of(done.stdout)
    kinds = [event["type"] for event in events]
    assert (done.returncode, done.stderr) == (0, "")
    assert (kinds[0], kinds[-1]) == ("session.created", "run.ended")
    assert not {"message.delta", "tool.output", "tool.update"} & set(kinds)
    assert {"tool.queued", "tool.started", "tool.ended", "message.ended"} <= set(kinds)
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))
    assert " " not in done.stdout.split('"')[0]

    kept = machine.events()
    known = {event["seq"]: event for event in kept}
    assert all(known[event["seq"]] == event for event in events)


def test_deltas_and_output_are_in_the_stream_on_request_until_the_step_limit(machine: UserMachine) -> None:
    script = [calls(text_block("I run it."), call("bash", command="echo one; echo two")), says("Too late.")]
    options = ("--output-format", "stream-json", "--include-deltas", "--permission-mode", "allow", "--max-steps", "1")
    with ServerThread(script) as server:
        done = machine.run("-p", "-", *options, stdin="run it", variables=server.environment)
        assert len(bodies_of(server)) == 1

    assert done.returncode == 3
    events = lines_of(done.stdout)
    told = "".join(event["data"]["delta"] for event in events if event["type"] == "message.delta")
    output = "".join(event["data"]["chunk"] for event in events if event["type"] == "tool.output")
    assert "I run it." in told
    assert output == "one\ntwo\n"


def test_files_that_the_prompt_names_are_sent_with_it(machine: UserMachine) -> None:
    machine.file("shop.py", "one\ntwo\nthree\n")
    with ServerThread([says("Seen."), says("Seen.")]) as server:
        done = machine.run("-p", "explain @shop.py:2-3", variables=server.environment)
        (request,) = bodies_of(server)
        assert (done.returncode, done.stdout) == (0, "Seen.\n")
        content = request["messages"][0]["content"]
        assert len(content) == 2
        assert "two" in str(content[1])
        assert "one" not in str(content[1])

        wrong = machine.run("-p", "explain @shop.py:2-9", variables=server.environment)
        assert (wrong.returncode, wrong.stdout) == (1, "")
        assert "shop.py has only 3 lines" in wrong.stderr

        # Text from a pipe sends no file that the agent may not read without a question.
        outside = machine.work.parent / "outside.txt"
        outside.write_text("canary\n")
        piped = machine.run("-p", stdin=f"see @{outside}:1 and @shop.py:1", variables=server.environment)
        assert piped.returncode == 0
        assert "one" in str(bodies_of(server)[1])
        assert "canary" not in str(bodies_of(server)[1])


# --- commands ---------------------------------------------------------------------------------------------------------


def test_a_request_is_answered_by_its_id(machine: UserMachine) -> None:
    script = [calls(WRITE), calls(call("write", path="other.txt", content="y\n")), says("One of two.")]
    with piped(machine, script) as (program, server):
        program.tell(type="user", text="write both")
        first = program.hear("approval.requested")["data"]
        assert (first["tool"], first["args"]["path"]) == ("write", "new.txt")
        assert not (machine.work / "new.txt").exists()
        program.tell(type="approval", request_id="ask_of_nobody", decision="approve")
        program.hear("error")
        program.tell(type="approval", request_id=first["request_id"], decision="approve")
        second = program.hear("approval.requested")["data"]
        program.tell(type="approval", request_id=second["request_id"], decision="deny", note="one is enough")
        program.hear("run.ended")
        assert program.end() == 0
        *_, last = bodies_of(server)

    ((text, is_error),) = results_in(last)
    assert is_error
    assert "one is enough" in text
    assert (machine.work / "new.txt").exists()
    assert not (machine.work / "other.txt").exists()
    assert program.events[-1]["type"] == "run.ended"


ASK = call(
    "ask_user",
    questions=[{"question": "Which store?", "choices": [{"label": "files"}, {"label": "db"}], "default": ["db"]}],
)


def test_a_question_of_the_agent_is_answered_by_a_client_and_decided_by_the_agent_alone(machine: UserMachine) -> None:
    with piped(machine, [calls(ASK), says("So it is files.")]) as (program, server):
        program.tell(type="user", text="build it")
        asked = program.hear("approval.requested")["data"]
        assert [choice["value"] for choice in asked["question"]["fields"][0]["choices"]] == ["files", "db"]
        answer = {"type": "approval", "request_id": asked["request_id"], "decision": "approve"}
        program.tell(**answer, input={"2": "files"})
        assert "has no field 2" in str(program.hear("error"))
        program.tell(**answer, input={"1": "files"})
        program.hear("run.ended")
        assert program.end() == 0
        ((text, is_error),) = results_in(bodies_of(server)[-1])
    assert (is_error, "files" in text) == (False, True)

    with ServerThread([calls(ASK), says("I took the default.")]) as server:
        done = machine.run("-p", "build it", variables=server.environment)
        ((text, is_error),) = results_in(bodies_of(server)[-1])
    assert (done.returncode, done.stdout, is_error) == (0, "I took the default.\n", False)
    assert "No one can answer here" in text
    assert "Default: db" in text


def test_a_plan_is_the_output_without_a_user_and_a_client_accepts_it(machine: UserMachine) -> None:
    plan, options = "1. Look\n2. Change nothing", ("--permission-mode", "plan")
    script = [calls(text_block("I looked."), call("present_plan", plan=plan)), says("Carried out.")]
    with ServerThread(script) as server:
        done = machine.run("-p", "plan it", *options, variables=server.environment)
    assert (done.returncode, done.stdout) == (0, f"{plan}\n")

    with piped(machine, script, *options) as (program, _):
        program.tell(type="user", text="plan it")
        asked = program.hear("approval.requested")["data"]
        assert (asked["question"]["kind"], asked["question"]["message"]) == ("plan", plan)
        answer = {"type": "approval", "request_id": asked["request_id"], "decision": "approve"}
        program.tell(**answer, input={"mode": "accept_edits"})
        assert program.hear("permission.mode_changed")["data"]["new"] == "accept_edits"
        program.hear("run.ended")
        assert program.end() == 0


def test_one_process_serves_one_run_after_another_steers_and_skips_an_invalid_line(machine: UserMachine) -> None:
    command = "echo begun; until [ -e gate ]; do sleep 0.05; done"
    script = [calls(call("bash", command=command)), says("Steered."), says("Followed."), says("Anew.")]
    with piped(machine, script, "--permission-mode", "allow", "--include-deltas") as (program, server):
        program.process.stdin.write("no json at all\n")
        program.tell(type="dance")
        program.tell(type="user", text="begin")
        assert program.hear("error")["data"]["context"] == {"line": 1}
        assert program.hear("error")["data"]["context"] == {"line": 2}
        program.hear("tool.output")
        program.tell(type="user", text="a correction")
        program.tell(type="follow_up", text="and then")
        program.hear("steering.queued")
        program.hear("steering.queued")
        (machine.work / "gate").touch()
        program.hear("run.ended")
        program.tell(type="user", text="something new")
        program.hear("run.ended")
        assert program.end() == 0
        _, second, third, fourth = bodies_of(server)

    assert words_in(second) == ["begin", "a correction"]
    assert words_in(third) == ["begin", "a correction", "and then"]
    assert words_in(fourth)[-1] == "something new"


def test_a_command_interrupts_and_the_next_run_follows(machine: UserMachine) -> None:
    script = [calls(call("bash", command=f"echo begun; sleep {machine.tag}")), says("Next.")]
    with piped(machine, script, "--permission-mode", "allow", "--include-deltas") as (program, server):
        program.tell(type="user", text="sleep")
        program.hear("tool.output")
        program.tell(type="interrupt")
        assert program.hear("run.ended")["data"]["reason"] == "aborted"
        assert machine.processes() == []
        program.tell(type="user", text="wake up")
        assert program.hear("run.ended")["data"]["final_text"] == "Next."
        assert program.end() == 0
        assert len(bodies_of(server)) == 2


def test_mode_and_stop_commands_work(machine: UserMachine) -> None:
    script = [calls(WRITE, until("stopped")), says("Never asked for.")]
    with piped(machine, script) as (program, server):
        program.tell(type="mode", mode="accept_edits")
        assert program.hear("permission.mode_changed")["data"]["new"] == "accept_edits"
        program.tell(type="user", text="write")
        server.reached("stopped")
        program.tell(type="stop")
        program.hear("status.changed")
        server.release("stopped")
        assert program.hear("run.ended")["data"]["reason"] == "stopped"
        assert program.end() == 0
        assert len(bodies_of(server)) == 1

    assert (machine.work / "new.txt").exists()
    assert not any(event["type"] == "approval.requested" for event in program.events)


# --- exit codes -------------------------------------------------------------------------------------------------------


def test_exit_code_0_if_a_call_was_denied_and_the_run_continued(machine: UserMachine) -> None:
    machine.file("a.txt", "alpha\n")
    script = [calls(WRITE), calls(call("read", path="a.txt")), says("Without it.")]
    with ServerThread(script) as server:
        done = machine.run("-p", "write or read", variables=server.environment)
        _, second, _ = bodies_of(server)

    assert (done.returncode, done.stdout) == (0, "Without it.\n")
    ((text, is_error),) = results_in(second)
    assert is_error
    assert text
    assert not (machine.work / "new.txt").exists()


def test_exit_code_1_if_the_run_failed(machine: UserMachine) -> None:
    with ServerThread([fails(400, "invalid_request_error")]) as server:
        done = machine.run("-p", "hello", "--output-format", "json", variables=server.environment)
        assert len(bodies_of(server)) == 1

    (answer,) = lines_of(done.stdout)
    assert done.returncode == 1
    assert (answer["is_error"], answer["reason"]) == (True, "error")
    assert "scripted invalid_request_error" in answer["result"]
    assert "scripted invalid_request_error" in done.stderr


def test_exit_code_4_if_no_one_could_approve(machine: UserMachine) -> None:
    with ServerThread([calls(WRITE), says("I cannot.")]) as server:
        done = machine.run("-p", "write", variables=server.environment)
        _, second = bodies_of(server)

    assert (done.returncode, done.stdout) == (4, "I cannot.\n")
    assert [is_error for _, is_error in results_in(second)] == [True]
    assert "approval" in done.stderr
    assert not (machine.work / "new.txt").exists()


def test_exit_code_75_if_a_retry_later_may_help(machine: UserMachine) -> None:
    # The server demands a wait above the limit, so the program does not retry.
    busy = fails(529, "overloaded_error", **{"retry-after": "600"})
    with ServerThread([busy]) as server:
        done = machine.run("-p", "hello", variables=server.environment)
        assert len(bodies_of(server)) == 1

    assert (done.returncode, done.stdout) == (75, "")
    assert "529" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_exit_code_130_after_an_interrupt_and_no_process_is_left(machine: UserMachine, number: signal.Signals) -> None:
    command = f"setsid sleep {machine.tag}.1 & nohup sleep {machine.tag}.2 & echo begun; sleep {machine.tag}"
    script = [calls(call("bash", command=command))]
    with piped(machine, script, "--permission-mode", "allow", "--include-deltas") as (program, server):
        program.tell(type="user", text="sleep")
        program.hear("tool.output")
        os.kill(program.process.pid, number)
        assert program.end() == 130
        assert machine.processes() == []
        assert len(bodies_of(server)) == 1

    assert program.events[-1]["type"] == "run.ended"
    assert program.events[-1]["data"]["reason"] == "aborted"
    assert machine.events()[-1]["type"] in ("run.ended", "session.saved", "agent.destroyed")


def test_a_closed_output_ends_the_program(machine: UserMachine) -> None:
    script = [calls(call("bash", command=f"while true; do echo {machine.tag}; sleep 0.05; done"))]
    with piped(machine, script, "--permission-mode", "allow", "--include-deltas") as (program, _):
        program.tell(type="user", text="talk")
        program.hear("tool.output")
        program.process.stdout.close()
        assert program.process.wait(timeout=30) != 0
        assert machine.processes() == []


def test_a_hook_of_the_users_settings_runs_for_each_call(machine: UserMachine) -> None:
    machine.file("a.txt", "hello paint")
    settings = machine.home / ".config/tui-agent/config.toml"
    settings.parent.mkdir(parents=True)
    command = "cat > asked; env > variables; echo 'not today' >&2; exit 2"
    settings.write_text(f'[[hooks]]\non = "before_tool"\ncommand = "{command}"\n', "utf-8")

    done = machine.run("-p", "read a.txt", "--demo", variables={"SOME_API_KEY": "secret"})

    assert done.returncode == 0
    assert "not today" in done.stdout
    assert json.loads((machine.work / "asked").read_text("utf-8"))["input"] == {"path": "a.txt"}
    assert "secret" not in (machine.work / "variables").read_text("utf-8")


def test_a_crafted_repository_runs_nothing_at_the_start(machine: UserMachine) -> None:
    tool, made = machine.work / "tool.sh", machine.home / "PWNED"
    tool.write_text(f"#!/bin/sh\nid > {made}\ncat\n")
    tool.chmod(0o755)
    machine.file("a.py", "one\n")
    machine.file(".gitattributes", "*.py filter=x\n")
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@y")
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "x")):
        subprocess.run((*git, *arguments), cwd=machine.work, check=True)
    with (machine.work / ".git" / "config").open("a") as file:
        file.write('[filter "x"]\n; harmless \\\n\tclean = ./tool.sh\n')
    machine.file("a.py", "two\n")
    os.utime(machine.work / "a.py", (0, 0))

    for mode in ("ask", "allow"):
        script = [calls(call("bash", command="git status"), call("bash", command="git diff")), says("Done.")]
        with ServerThread(script) as server:
            done = machine.run("-p", "go", "--permission-mode", mode, variables=server.environment)
        assert not made.exists(), (mode, done.returncode)
        assert "each git command asks: you did not accept what its repository has: filter.x.clean" in done.stderr
    with ServerThread([says("Done.")]) as server:
        machine.run("--plain", "go", variables=server.environment)
    assert not made.exists()


def test_a_notifier_answers_in_the_users_place_and_the_journal_names_it(machine: UserMachine) -> None:
    answer = (
        "import json, sys\n"
        "question = json.load(sys.stdin)\n"
        "print(json.dumps({'token': question['token'], 'answer': 'allow'}))\n"
    )
    machine.file("answer.py", answer)
    settings = machine.home / ".config/tui-agent/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('[[notify]]\nname = "desk"\ncommand = "python3 answer.py"\nanswers = true\n', "utf-8")

    with ServerThread([calls(WRITE), says("Done.")]) as server:
        done = machine.run("-p", "write it", "--permission-mode", "ask", variables=server.environment)

    (resolved,) = [event["data"] for event in machine.events() if event["type"] == "approval.resolved"]
    assert (done.returncode, done.stdout, done.stderr) == (0, "Done.\n", "")
    assert (resolved["decision"], resolved["scope"], resolved["via"]) == ("approve", "once", "desk")
    assert (machine.work / "new.txt").read_text("utf-8") == "x\n"
