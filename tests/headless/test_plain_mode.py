"""Plain mode: a conversation in lines. Answers, steering and commands are typed; every event is one line."""

import asyncio
from collections.abc import Callable

import pytest

from tests.headless.scripted_agent import Part, Program, ScriptedAgent, answering, bench_of, report, until_aborted
from tests.support.table import table
from tui_agent.headless import HeadlessOptions
from tui_agent.headless.command_handler import PromptQueue
from tui_agent.headless.plain_commands import QUIT_SECONDS, PlainCommands
from tui_agent.headless.plain_reporter import PlainReporter
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    MessageEnded,
    PermissionModeChanged,
    SteeringDelivered,
    ToolEnded,
    ToolStarted,
    Warned,
)
from tui_agent.protocol.facts.page_facts import SideAnswer
from tui_agent.protocol.messages import AssistantMessage, DocumentBlock, JsonObject, TextBlock, UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.tools import AskUserTool, PresentPlanTool

FILE = DocumentBlock(media_type="text/plain", data="1\tx", name="a.py:1-2")
PLAIN = HeadlessOptions(None, "plain", "plain")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an answer count as soon as its question is written."""
    monkeypatch.setattr("tui_agent.headless.plain_commands.READING_SECONDS", 0.0)


def plain_agent(*parts: Part) -> ScriptedAgent:
    return ScriptedAgent(*parts)


async def line_with(program: Program, text: str) -> str:
    """Return the next line that contains a text."""
    while (line := await program.next_line(program.output)) is not None:
        if text in line.decode():
            return line.decode()
    raise AssertionError(f"{text!r} was never written")


def asking(seen: list[ApprovalDecision]) -> Part:
    async def part(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
        seen.append(await agent.call("bash", asks=True))
        return report(text="")

    return part


async def test_a_line_steers_a_run_and_a_follow_up_waits() -> None:
    agent = plain_agent(until_aborted)
    async with Program(agent, PLAIN) as program:
        program.send("begin", "use pytest", "/follow then commit", "/stop", "/mode plan", "/cancel")
        await line_with(program, "interrupted, ")

    assert agent.prompts == ["begin"]
    assert agent.said == [
        ("steer", "use pytest"),
        ("follow_up", "then commit"),
        ("stop", ""),
        ("mode", "plan by user"),
        ("abort", "interrupted by the user"),
    ]


@table(
    ("line", "decision", "note"),
    [
        ("y", "approve", ""),
        ("YES", "approve", ""),
        ("n", "deny", ""),
        ("n use pytest", "deny", "use pytest"),
        ("no, use pytest", "deny", "use pytest"),
        ("k", "skip", ""),
    ],
)
async def test_a_question_is_answered_by_a_line(line: str, decision: str, note: str) -> None:
    seen: list[ApprovalDecision] = []
    async with Program(plain_agent(asking(seen)), PLAIN) as program:
        program.send("begin")
        assert await line_with(program, "question") == "question: Use bash?"
        await line_with(program, "Type y for yes")
        program.send(line)
        await line_with(program, "Type the next")

    (answer,) = seen
    assert (answer.decision, answer.note) == (decision, note)


@table(
    ("several", "line", "values"),
    [
        (False, "2", {"1": "db"}),
        (False, "= a queue", {"1": "a queue"}),
        (False, "1=files", {"1": "files"}),
        (False, "y", {"1": "files"}),
        (True, "1=db; 2=1, docs", {"1": "db", "2": ["tests", "docs"]}),
        (True, "2=3", {"2": ["3"]}),
        (True, "yes", {"1": "files"}),
    ],
)
async def test_a_question_of_the_agent_is_answered_by_number_or_in_words(
    several: bool, line: str, values: JsonObject
) -> None:
    question = {"question": "Which store?", "choices": [{"label": "files"}, {"label": "db"}], "default": ["files"]}
    extras = {"question": "What else?", "choices": [{"label": "tests"}, {"label": "docs"}], "several": True}
    asked = AskUserTool().question({"questions": [question, extras] if several else [question]})
    seen: list[ApprovalDecision] = []

    async def part(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
        seen.append(await agent.call("ask_user", asks=True, question=asked))
        return report(text="")

    async with Program(plain_agent(part), PLAIN) as program:
        program.send("begin")
        await line_with(program, "y for the defaults, k to let the agent decide")
        program.send("wait a moment", line)
        await line_with(program, "Type the next")

    assert [answer.input for answer in seen] == [values]


@table(("line", "values"), [("y", {"mode": "ask"}), ("s", {"mode": "accept_edits"}), ("n use more steps", None)])
async def test_a_plan_is_accepted_by_a_letter(line: str, values: JsonObject | None) -> None:
    asked = PresentPlanTool(lambda: PermissionMode.PLAN, lambda _: None).question({"plan": "1. Look"})
    seen: list[ApprovalDecision] = []

    async def part(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
        seen.append(await agent.call("present_plan", asks=True, question=asked))
        return report(text="")

    async with Program(plain_agent(part), PLAIN) as program:
        program.send("begin")
        await line_with(program, "s to accept it and keep edits, n to decline, n TEXT to say what to change")
        program.send(line)
        await line_with(program, "Type the next")

    assert [(answer.input, answer.note) for answer in seen] == [(values, "" if values else "use more steps")]


async def test_any_other_line_over_a_question_is_a_message() -> None:
    seen: list[ApprovalDecision] = []
    agent = plain_agent(asking(seen))
    async with Program(agent, PLAIN) as program:
        program.send("begin")
        await line_with(program, "Type y for yes")
        program.send("yes, but use pytest", "not yet", "yellow")
        await line_with(program, "yellow")
        program.send("y")
        await line_with(program, "Type the next")

    assert agent.said == [("steer", "yes, but use pytest"), ("steer", "not yet"), ("steer", "yellow")]
    assert [answer.decision for answer in seen] == ["approve"]


async def test_a_line_that_was_typed_before_the_question_does_not_answer_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.headless.plain_commands.READING_SECONDS", 60.0)
    seen: list[ApprovalDecision] = []
    async with Program(plain_agent(asking(seen)), PLAIN) as program:
        program.send("begin")
        await line_with(program, "Type y for yes")
        program.send("y")
        await line_with(program, "did not answer it")
        await line_with(program, "Type y for yes")

    (answer,) = seen
    assert answer.decision == "deny", "the end of the input denies what is open"


async def test_a_rule_is_offered_only_where_one_can_be_stored() -> None:
    seen: list[ApprovalDecision] = []
    async with Program(plain_agent(asking(seen)), PLAIN) as program:
        program.send("begin")
        assert "a for yes" not in await line_with(program, "Type y for yes")
        program.send("a", "w", "k")
        await line_with(program, "No rule can be stored")
        await line_with(program, "no rule was checked")
        await line_with(program, "Type the next")

    assert [answer.decision for answer in seen] == ["skip"]


async def test_unknown_commands_shell_commands_and_help_are_not_sent() -> None:
    agent = plain_agent(answering())
    async with Program(agent, PLAIN) as program:
        program.send("/hlep", "!ls", "/stop", "/mode nowhere", "", "/help")
        await line_with(program, "Unknown command: /hlep")
        await line_with(program, "need the full screen")
        await line_with(program, "Nothing is running")
        await line_with(program, "Unknown command: /mode nowhere")
        await line_with(program, "ctrl+c cancels")

    assert agent.prompts == []


async def test_quit_ends_a_run_and_the_program() -> None:
    agent = plain_agent(until_aborted)
    async with Program(agent, PLAIN) as program:
        program.send("begin", "/quit")
        await program.task

    assert [what for what, _ in agent.said] == ["abort"]


# --- lines ------------------------------------------------------------------------------------------------------------


def rendered(*events: AgentEvent, depth: int = 0, agent_id: str = "main") -> str:
    reporter = PlainReporter(lambda request: (f"Run {request.tool}?", "why  it writes"), lambda: 0.0)
    origin = Origin(depth=depth, agent_id=agent_id)
    return b"".join(reporter.render(Envelope(event, 1, 0, 0.0, origin)) for event in events).decode()


def said(text: str) -> MessageEnded:
    return MessageEnded(message_id="m", message=AssistantMessage(content=(TextBlock(text=text),)))


def ended(text: str, **fields: object) -> ToolEnded:
    base = {"call_id": "c", "name": "bash", "index": 0, "status": "ok", "is_error": False}
    return ToolEnded.model_validate({**base, "content": [{"type": "text", "text": text}], **fields})


def test_a_call_is_one_line_at_its_start_and_one_at_its_end() -> None:
    begun = ToolStarted(call_id="c", name="bash", args={}, summary="npm test")

    assert rendered(begun, ended("\n3 passed\nin 2 s\n")) == (
        "running: bash npm test\ndone: bash npm test: 3 passed (2 lines)\n"
    )
    assert rendered(begun, ended("exit 1", is_error=True, status="error")).endswith("failed: bash npm test: exit 1\n")
    assert rendered(ended("", status="denied_user", is_error=True)) == "denied by you: bash\n"


def test_a_question_comes_with_everything_to_see_and_how_to_answer() -> None:
    question = ApprovalRequested(
        request_id="r", call_id="c", digest="d", tool="bash", args={}, session_rule="bash(npm test:*)", rules=("x",)
    )
    answer = ApprovalResolved(request_id="r", call_id="c", decision="deny", by="user", note="too late")

    assert rendered(question, answer).splitlines() == [
        "question: Run bash?",
        "  why  it writes",
        "Type y for yes, n for no (n REASON tells the agent why), a for yes to every call that `bash(npm test:*)` "
        "matches, k to skip, w to see every rule. Anything else is a message to the agent.",
        "denied: bash: too late",
    ]


def test_the_prompt_after_an_answer_is_about_the_next_question() -> None:
    first, second = (
        ApprovalRequested(request_id=name, call_id=name, digest="d", tool=name, args={}) for name in ("one", "two")
    )
    answer = ApprovalResolved(request_id="one", call_id="one", decision="approve", by="user")
    lines = rendered(first, second, answer).splitlines()

    assert "2 questions wait; this is the answer to the first." in lines[-3]
    assert lines[-2] == "allowed: one"
    assert lines[-1].startswith("Type y for yes")


def test_other_events_are_one_line_each() -> None:
    assert rendered(said("It is\n\nfine."), said("")) == "agent: It is\n\nfine.\n"
    assert rendered(Warned(code="x", text="The disk is full.")) == "warning: The disk is full.\n"
    mode = PermissionModeChanged(old=PermissionMode.ASK, new=PermissionMode.PLAN, by="user")
    assert rendered(mode) == "mode: plan\n"
    delivered = SteeringDelivered(message_id="m", kind="steer", text="use\npytest", boundary="after step 1")
    assert rendered(delivered) == "delivered: use pytest\n"


def test_calls_of_sub_agents_name_them_and_their_texts_are_left_out() -> None:
    begun = ToolStarted(call_id="c", name="read", args={}, summary="a.py")

    assert rendered(begun, said("found it"), depth=1, agent_id="explore") == "sub-agent explore: running: read a.py\n"


def test_no_character_controls_the_terminal() -> None:
    evil = "\x1b]0;evil\x07\x9b5m\u202e\r"

    assert not set("\x1b\x07\x9b\u202e\r") & set(rendered(said(evil), ended(evil), Warned(code="x", text=evil)))


# --- ctrl+c -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("running", [True, False])
def test_ctrl_c_cancels_and_quits_only_the_second_time(running: bool) -> None:
    now, lines = [100.0], list[str]()
    agent = plain_agent(answering())
    agent.running = running

    def say(*texts: str) -> None:
        lines.extend(texts)

    typed = PlainCommands(bench_of(agent), PromptQueue(), PlainReporter(lambda _: ("",)), say, lambda: now[0])

    assert typed.absorbs_interrupt()
    assert agent.said == ([("abort", "interrupted by the user")] if running else [])
    assert "ctrl+c again quits." in lines[-1]
    assert not typed.absorbs_interrupt()
    now[0] += QUIT_SECONDS + 1
    assert typed.absorbs_interrupt()


async def test_commands_of_files_are_input_and_unknown_ones_are_not() -> None:
    class Files:
        commands = (PromptCommand("say", "[what]", "Say it"),)

        def knows(self, text: str, /) -> bool:
            return text.startswith("/say")

        def expanded(self, text: str, /) -> str:
            if "!" in text:
                raise ConfigurationError("later")
            return text.replace("/say", "Say")

        async def run(self, text: str, message: Callable[[str], str | UserMessage], /) -> None:
            lines.append(f"ran {message(text)}")

    lines = list[str]()
    scripted = plain_agent(answering())

    class Attached:
        async def attached(self, text: str, *, typed: bool) -> list[DocumentBlock]:
            assert typed
            return [FILE] if "@" in text else []

    bench = bench_of(scripted, definitions=Files(), files=Attached())
    scripted.running = True

    def say(*texts: str) -> None:
        lines.extend(texts)

    typed = PlainCommands(bench, PromptQueue(), PlainReporter(lambda _: ("",)), say)

    class Lines:
        def __init__(self) -> None:
            self._left = [b"/say hello", b"/say !", b"/unknown"]

        async def next(self) -> bytes | None:
            return self._left.pop(0) if self._left else None

    await typed.serve(Lines())  # pyright: ignore[reportArgumentType]
    await bench.prompts.run("/say now", typed=True)
    await bench.prompts.run("plain", typed=True)
    await bench.prompts.run("see @a.py:1-2", typed=True)

    assert scripted.said == [("steer", "Say hello")]
    assert scripted.prompts == ["plain", "see @a.py:1-2"]
    assert lines[:2] == ["error: later", "Unknown command: /unknown"]
    assert lines[-2:] == ["/say [what]  Say it", "ran /say now"]


async def test_a_side_question_is_answered_beside_the_other_lines() -> None:
    lines, go_on = list[str](), asyncio.Event()

    async def aside(question: str, take: Callable[[str], object]) -> SideAnswer:
        assert question == "why twice?"
        await go_on.wait()
        return SideAnswer("It rounds **twice**.\nSee price.py.", "box/tiny", "end_turn", 0.02)

    def say(*texts: str) -> None:
        lines.extend(texts)

    agent = plain_agent(answering())
    agent.running = True
    bench = bench_of(agent)
    bench.aside = aside
    typed = PlainCommands(bench, PromptQueue(), PlainReporter(lambda _: ("",)), say)

    class Lines:
        def __init__(self, *texts: bytes) -> None:
            self._left = [*texts]

        async def next(self) -> bytes | None:
            if not self._left:
                go_on.set()
                return None
            return self._left.pop(0)

    await typed.serve(Lines(b"/btw why twice?", b"steer it"))  # pyright: ignore[reportArgumentType]
    assert agent.said == [("steer", "steer it")]
    assert lines == ["Beside the conversation (box/tiny, $0.02):", "It rounds **twice**.", "See price.py."]

    go_on.clear()
    assert await typed.serve(Lines(b"/btw why twice?", b"/quit"))  # pyright: ignore[reportArgumentType]
    assert len(lines) == 3
