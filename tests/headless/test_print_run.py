"""Print mode as seen by a client: input, output and exit code."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from tests.headless.scripted_agent import (
    Program,
    ScriptedAgent,
    answering,
    bench_of,
    headless,
    report,
)
from tests.support.table import table
from tui_agent.headless import ExitCode, HeadlessOptions, StandardStreams, read_prompt, run_headless
from tui_agent.headless.command_handler import INPUT_ENDED
from tui_agent.headless.print_run import LONGEST_INPUT, MAX_INPUT
from tui_agent.protocol.errors import ConfigurationError, ProviderError, SessionError
from tui_agent.protocol.events import (
    Failed,
    MessageDelta,
    Noticed,
    SessionRepaired,
    SessionSaveFailed,
    StepRetry,
    ToolOutput,
    Warned,
)
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.pipes import LineReader
from tui_agent.protocol.reports import AgentRunReport

TEXT = HeadlessOptions("go")
JSON = HeadlessOptions("go", "json")
STREAM = HeadlessOptions("go", "stream-json")
SERVE = HeadlessOptions(None, "stream-json", "stream-json")
DENY = ApprovalDecision(decision="deny", note="nobody is there")


# --- output -----------------------------------------------------------------------------------------------------------


async def talkative(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
    agent.begin_step()
    agent.tell(MessageDelta(message_id="m", kind="text", delta="Hel"))
    agent.tell(MessageDelta(message_id="m", kind="text", delta="lo \u2028\u0085"))
    await agent.call("work")
    agent.tell(ToolOutput(call_id="call_work", stream="stdout", chunk="x", bytes_total=1))
    agent.end_step()
    return report()


async def test_quiet_events_between_runs_are_held_until_the_next_one() -> None:
    lines = ({"type": "user", "text": "one"}, {"type": "user", "text": "two"})
    agent = ScriptedAgent(answering())
    async with Program(agent, SERVE) as program:
        program.send(lines[0])
        await program.event("run.ended")
        program.send(lines[1])
        assert (await program.event("status.changed"))["data"]["status"] == "idle"
        await program.event("run.ended")
        program.end_input()
        assert await program.rest() == []


async def test_problems_are_reported_on_standard_error() -> None:
    async def troubled(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
        agent.tell(Warned(code="w", text="a \x1b[31mred\x1b[0m warning \u202e"))
        agent.tell(SessionSaveFailed(id="s", error="disk full"))
        agent.tell(SessionRepaired(id="s", what="mended"))
        agent.tell(StepRetry(attempt=2, max=10, wait_s=1.5, error_kind="overloaded"))
        agent.tell(Noticed(code="n", text="not worth a line"))
        await agent.call("edit", answer=DENY)
        agent.tell(Failed(code="e", text="it broke"))
        return report("error", "", error="it broke")

    _, output, complaints, _ = await headless(TEXT, troubled)

    assert output == []
    assert complaints.split("\n") == [
        "tui-agent: warning: a \\x1b[31mred\\x1b[0m warning \\u202e",
        "tui-agent: warning: disk full",
        "tui-agent: note: mended",
        "tui-agent: note: overloaded; trying again in 1.5 s (attempt 2 of 10)",
        "tui-agent: note: edit was denied, because no one can approve it here; no rule can allow it, only an answer or "
        "another --permission-mode",
        "tui-agent: error: it broke",
    ]


async def test_only_saved_events_are_written() -> None:
    kept_up_to = [0]
    agent = ScriptedAgent(talkative)
    read, write = os.pipe()
    _, errors = os.pipe()

    async def keep() -> None:
        await asyncio.sleep(0)
        kept_up_to[0] = agent.bus.last_seq
        if agent.bus.last_seq > 3:
            raise SessionError("the disk is full")

    async with asyncio.TaskGroup() as tasks:
        streams = StandardStreams(0, write, errors)
        running = tasks.create_task(run_headless(bench_of(agent, save=keep), STREAM, streams=streams))
        lines = LineReader(read)
        lines.start()
        first = await lines.next()
        assert first is not None
        assert json.loads(first)["seq"] <= kept_up_to[0]

    assert running.result() == 0
    for descriptor in (write, errors):
        os.close(descriptor)


# --- exit codes -------------------------------------------------------------------------------------------------------


@table(
    ("reason", "kind", "code"),
    [
        ("done", None, 0),
        ("stopped", None, 0),
        ("terminated", None, 0),
        ("error", None, 1),
        ("error", "authentication", 1),
        ("error", "rate_limit", 75),
        ("error", "overloaded", 75),
        ("error", "network", 75),
        ("guardrail", None, 1),
        ("budget", None, 1),
        ("loop_detected", None, 1),
        ("input_rejected", None, 1),
        ("max_steps", None, 3),
        ("aborted", None, 130),
    ],
)
async def test_the_exit_code_follows_from_the_reason(reason: str, kind: str | None, code: int) -> None:
    ended, _, complaints, _ = await headless(TEXT, answering(reason, "text", error_kind=kind))

    assert ended == code
    assert bool(complaints) == (code != 0)


async def test_the_last_run_decides_the_exit_code() -> None:
    lines = ({"type": "user", "text": "one"}, {"type": "user", "text": "two"})
    code, _, complaints, agent = await headless(
        HeadlessOptions(None, "json", "stream-json"), answering("error", error="it broke"), answering(), lines=lines
    )

    assert (code, agent.prompts) == (0, ["one", "two"])
    assert complaints == "tui-agent: error: it broke"


async def test_calls_that_waited_when_the_program_ended_come_before_the_first_prompt() -> None:
    agent = ScriptedAgent(answering())
    agent.pending_calls = [ApprovalRequest(call_id="c1", digest="d", tool="write", args={})]

    async with Program(agent, TEXT) as program:
        program.end_input()
        await program.rest()

    assert agent.prompts == ["", TEXT.prompt]


@table(
    ("error", "code"), [(ProviderError("the model is gone", kind="unavailable"), 1), (ConfigurationError("no key"), 2)]
)
async def test_a_run_that_cannot_start_ends_with_its_reason(error: Exception, code: int) -> None:
    async def broken(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
        raise error

    ended, output, complaints, _ = await headless(JSON, broken)

    assert (ended, [json.loads(line)["result"] for line in output]) == (code, [str(error)])
    assert complaints == f"tui-agent: error: {error}"


# --- approvals --------------------------------------------------------------------------------------------------------


async def asks_twice(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
    agent.begin_step()
    first = await agent.call("one", asks=True)
    second = await agent.call("two", asks=True)
    agent.end_step()
    return report(text=f"{first.decision}, {second.decision}: {second.note}")


@table("output_format", ["stream-json", "json", "text"])
async def test_requests_are_denied_when_the_input_ends_or_no_client_reads_them(output_format: str) -> None:
    agent = ScriptedAgent(asks_twice)
    async with Program(agent, HeadlessOptions("go", output_format, "stream-json")) as program:
        if output_format == "stream-json":
            await program.event("approval.requested")
            program.end_input()
            *_, last = await program.rest()
        else:
            last = await program.next_line(program.output) or b""

    assert (f"deny, deny: {INPUT_ENDED}" if output_format == "stream-json" else "deny, deny").encode() in last
    assert program.code == ExitCode.NOBODY_TO_ASK


# --- commands ---------------------------------------------------------------------------------------------------------


async def test_commands_reach_a_running_agent() -> None:
    async def obeys(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
        await agent.stopped.wait()
        return report("stopped")

    code, _, _, agent = await headless(
        SERVE,
        obeys,
        lines=(
            {"type": "user", "text": "go"},
            {"type": "user", "text": "also this"},
            {"type": "follow_up", "text": "then that"},
            {"type": "mode", "mode": "accept_edits"},
            {"type": "pause", "seconds": 2.5},
            {"type": "stop"},
        ),
    )

    assert agent.prompts == ["go"]
    assert agent.said == [
        ("steer", "also this"),
        ("follow_up", "then that"),
        ("mode", "accept_edits by user"),
        ("delay", "2.5"),
        ("stop", ""),
    ]
    assert code == 0


@table(
    ("line", "words"),
    [
        (b"not json", "Invalid JSON"),
        (b"\xff\xfe", "Invalid JSON"),
        (b"[]", "object"),
        (b"{}", "discriminator"),
        (b'{"type":"dance"}', "dance"),
        (b'{"type":"user"}', "text: Field required"),
        (b'{"type":"user","text":" "}', "text: String should match pattern"),
        (b'{"type":"follow_up","text":""}', "text: String should match pattern"),
        (b'{"type":"user","text":"x","texts":"y"}', "texts: Extra inputs are not permitted"),
        (b'{"type":"mode","mode":"yolo"}', "mode: Input should be"),
        (b'{"type":"approval","request_id":"r","decision":"maybe"}', "decision: Input should be"),
        (b'{"type":"approval","request_id":"r","decision":"deny","scope":"user"}', "scope: Input should be"),
    ],
)
async def test_an_invalid_line_is_reported_and_the_program_continues(line: bytes, words: str) -> None:
    code, output, _, agent = await headless(
        SERVE, answering(), lines=(b"", line, b'\xef\xbb\xbf{"type":"user","text":"go"}\r')
    )

    errors = [event for event in map(json.loads, output) if event["type"] == "error"]
    assert len(errors) == 1
    assert errors[0]["data"]["text"].startswith("Line 2 of the input was skipped: ")
    assert words in errors[0]["data"]["text"]
    assert errors[0]["data"]["context"] == {"line": 2}
    assert (code, agent.prompts) == (0, ["go"])


async def test_an_endless_line_is_refused_without_being_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.headless.print_run.LineReader", lambda stdin: LineReader(stdin, longest=50))
    _, output, _, agent = await headless(
        SERVE, answering(), lines=('{"type":"user","text":"' + "x" * 90 + '"}', {"type": "user", "text": "go"})
    )

    assert b"it is longer than 50 bytes" in b"".join(output)
    assert agent.prompts == ["go"]


# --- signals and pipes ------------------------------------------------------------------------------------------------


async def test_a_signal_between_two_runs_ends_the_program_and_discards_prompts() -> None:
    agent = ScriptedAgent(answering())
    async with Program(agent, SERVE) as program:
        program.send({"type": "user", "text": "go"})
        await program.event("run.ended")
        os.kill(os.getpid(), signal.SIGINT)
        await program.rest()

    assert (program.code, agent.prompts) == (130, ["go"])


async def test_a_second_signal_cancels_a_run_that_does_not_end() -> None:
    cancelled = asyncio.Event()

    async def deaf(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    agent = ScriptedAgent(deaf)
    async with Program(agent, STREAM) as program:
        await program.event("run.started")
        os.kill(os.getpid(), signal.SIGINT)
        await agent.aborted.wait()
        os.kill(os.getpid(), signal.SIGINT)

    assert program.code == 130
    assert cancelled.is_set()


async def flooding(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
    """Publish far more than a pipe's capacity, then end."""
    for number in range(40):
        agent.tell(Noticed(code="n", text=f"{number}" * 50_000))
        await asyncio.sleep(0)
    return report()


async def test_a_reader_that_does_not_read_does_not_delay_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.headless.print_run.OUTPUT_FLUSH_TIMEOUT", 0.05)
    agent = ScriptedAgent(flooding)
    read, write = os.pipe()
    streams = StandardStreams(os.open(os.devnull, os.O_RDONLY), write, os.open(os.devnull, os.O_WRONLY))

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run_headless(bench_of(agent), STREAM, streams=streams))
        async with asyncio.timeout(60):
            while agent.running or not agent.prompts:
                await asyncio.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    assert running.result() == 130
    os.close(read)
    for descriptor in (streams.stdin, streams.stdout, streams.stderr):
        os.close(descriptor)


async def test_on_a_terminal_the_text_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    _, output, _, _ = await headless(TEXT, answering(text="a\x1b]0;title\x07b\tc"))

    assert output == [b"a\\x1b]0;title\\x07b\tc"]


# --- the prompt -------------------------------------------------------------------------------------------------------


def given_input(data: bytes) -> StandardStreams:
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    return StandardStreams(stdin=read)


@pytest.mark.parametrize("argument", [None, "-"])
def test_the_prompt_may_come_from_a_pipe(argument: str | None) -> None:
    assert read_prompt(argument, given_input("\ufeffwords ü\n".encode() + b"\xff")) == "words ü\n\ufffd"


def test_piped_text_follows_the_prompt_of_the_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.headless.print_run.SILENCE_OF_A_PIPE", 0.01)
    diff = tmp_path / "a.diff"
    diff.write_bytes("+é\n".encode())
    read, write = os.pipe()
    inputs = {
        "review\n\n<stdin>\n+é\n</stdin>": [given_input("+é\n".encode()), StandardStreams(os.open(diff, os.O_RDONLY))],
        "review": [given_input(b""), given_input(b"\n"), StandardStreams(os.open(os.devnull, os.O_RDONLY))],
    }
    said, stderr = os.pipe()
    inputs["review"].append(StandardStreams(read, stderr=stderr))  # A pipe that its writer neither fills nor closes.
    inputs["review\n\n<stdin>\n+é\n</stdin>"].append(given_input("+é\n".encode("utf-16")))

    found = {wanted: [read_prompt("review", streams) for streams in several] for wanted, several in inputs.items()}

    os.close(write)
    assert b"Standard input stayed silent" in os.read(said, 1_000)
    assert found == {wanted: [wanted] * len(several) for wanted, several in inputs.items()}


@table(("argument", "data"), [("", b"x"), ("  ", b"x"), (None, b""), ("-", b" \n")])
def test_no_prompt_is_an_error(argument: str | None, data: bytes) -> None:
    with pytest.raises(ConfigurationError, match="-p needs a prompt"):
        read_prompt(argument, given_input(data))


@table(
    ("argument", "content", "reason"),
    [
        *(
            ("review", b"\x89PNG\r\n\x1a\n\0\0", "standard input is not text"),
            (None, b"a\0b", "standard input is not text"),
        ),
        ("review", b"a" * (MAX_INPUT + 1), "standard input has more than 10 MB; name the file in the prompt instead"),
    ],
)
def test_a_binary_or_endless_input_is_refused(
    argument: str | None, content: bytes, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "input"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=reason):
        read_prompt(argument, StandardStreams(os.open(file, os.O_RDONLY)))


def test_the_middle_of_a_long_input_is_left_out_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_text(f"begin\n{'x' * LONGEST_INPUT}\nend\n", "utf-8")
    said, stderr = os.pipe()

    prompt = read_prompt("review", StandardStreams(os.open(file, os.O_RDONLY), stderr=stderr))

    note = "11 characters in the middle of standard input are left out"
    assert prompt.startswith("review\n\n<stdin>\nbegin\nxxx")
    assert f"x\n[{note}]\nx" in prompt
    assert prompt.endswith("x\nend\n</stdin>")
    assert os.read(said, 1_000).decode() == f"tui-agent: warning: {note}: it is too long for a prompt.\n"
