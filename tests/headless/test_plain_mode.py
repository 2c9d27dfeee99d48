"""Plain mode: a conversation in lines. Answers, steering and commands are typed; every event is one line."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.headless.scripted_agent import Part, Program, ScriptedAgent, answering, bench_of, report, until_aborted
from tests.support.table import table
from tui_agent.headless import HeadlessOptions
from tui_agent.headless.command_handler import PromptQueue
from tui_agent.headless.plain_commands import PlainCommands
from tui_agent.headless.plain_mode_output import PlainReporter
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
from tui_agent.protocol.messages import AssistantMessage, JsonObject, TextBlock, UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.tools import AskUserTool, PresentPlanTool
from tui_agent.workbench.workbench import Workbench

PLAIN = HeadlessOptions(None, "plain", "plain")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an answer count as soon as its question is written."""
    monkeypatch.setattr("tui_agent.headless.plain_commands.READING_SECONDS", 0.0)


async def line_with(program: Program, text: str) -> str:
    """Return the next line that contains a text."""
    while (line := await program.next_line(program.output)) is not None:
        if text in line.decode():
            return line.decode()
    raise AssertionError(f"{text!r} was never written")


def asking(seen: list[ApprovalDecision], question: ServerQuestion | None = None) -> Part:
    async def part(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
        seen.append(await agent.call("bash", asks=True, question=question))
        return report(text="")

    return part


async def answer(hint: str, *lines: str, question: ServerQuestion | None = None) -> ApprovalDecision:
    """Type lines once a question with this hint is shown, and return its answer."""
    seen: list[ApprovalDecision] = []
    async with Program(ScriptedAgent(asking(seen, question)), PLAIN) as program:
        program.send("begin")
        await line_with(program, hint)
        program.send(*lines)
        await line_with(program, "Type the next")
    (found,) = seen
    return found


async def test_a_line_steers_a_run_and_a_follow_up_waits() -> None:
    agent = ScriptedAgent(until_aborted)
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
    found = await answer("Type y for yes", line)

    assert (found.decision, found.note) == (decision, note)


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
    found = await answer("y for the defaults, k to let the agent decide", "wait a moment", line, question=asked)

    assert found.input == values


@table(("line", "values"), [("y", {"mode": "ask"}), ("s", {"mode": "accept_edits"}), ("n use more steps", None)])
async def test_a_plan_is_accepted_by_a_letter(line: str, values: JsonObject | None) -> None:
    asked = PresentPlanTool(lambda: PermissionMode.PLAN, lambda _: None).question({"plan": "1. Look"})
    hint = "s to accept it and keep edits, n to decline, n TEXT to say what to change"
    found = await answer(hint, line, question=asked)

    assert (found.input, found.note) == (values, "" if values else "use more steps")


async def test_any_other_line_over_a_question_is_a_message() -> None:
    seen: list[ApprovalDecision] = []
    agent = ScriptedAgent(asking(seen))
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
    async with Program(ScriptedAgent(asking(seen)), PLAIN) as program:
        program.send("begin")
        await line_with(program, "Type y for yes")
        program.send("y")
        await line_with(program, "did not answer it")
        await line_with(program, "Type y for yes")

    (answer,) = seen
    assert answer.decision == "deny", "the end of the input denies what is open"


async def test_a_rule_is_offered_only_where_one_can_be_stored() -> None:
    seen: list[ApprovalDecision] = []
    async with Program(ScriptedAgent(asking(seen)), PLAIN) as program:
        program.send("begin")
        assert "a for yes" not in await line_with(program, "Type y for yes")
        program.send("a", "w", "k")
        await line_with(program, "No rule can be stored")
        await line_with(program, "no rule was checked")
        await line_with(program, "Type the next")

    assert [answer.decision for answer in seen] == ["skip"]


async def test_unknown_commands_shell_commands_and_help_are_not_sent() -> None:
    agent = ScriptedAgent(answering())
    async with Program(agent, PLAIN) as program:
        program.send("/hlep", "!ls", "/stop", "/mode nowhere", "", "/help")
        await line_with(program, "Unknown command: /hlep")
        await line_with(program, "need the full screen")
        await line_with(program, "Nothing is running")
        await line_with(program, "Unknown command: /mode nowhere")
        await line_with(program, "ctrl+c cancels")

    assert agent.prompts == []


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


# --- commands ---------------------------------------------------------------------------------------------------------


class Lines:
    """Input that is typed at once."""

    def __init__(self, *texts: bytes, at_end: Callable[[], object] = lambda: None) -> None:
        self._left, self._at_end = [*texts], at_end

    async def next(self) -> bytes | None:
        if not self._left:
            self._at_end()
            return None
        return self._left.pop(0)


def commands_with(shown: list[str], **parts: Any) -> tuple[ScriptedAgent, Workbench, PlainCommands]:
    """Return a running agent whose plain mode shows its lines in a list."""
    agent = ScriptedAgent(answering())
    agent.running = True
    bench = bench_of(agent, **parts)
    return agent, bench, PlainCommands(bench, PromptQueue(), PlainReporter(lambda _: ("",)), lambda *a: shown.extend(a))


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
    agent, bench, typed = commands_with(lines, definitions=Files())

    await typed.serve(Lines(b"/say hello", b"/say !", b"/unknown"))  # pyright: ignore[reportArgumentType]
    await bench.prompts.run("/say now", typed=True)
    await bench.prompts.run("plain", typed=True)

    assert (agent.said, agent.prompts) == ([("steer", "Say hello")], ["plain"])
    assert lines[:2] == ["error: later", "Unknown command: /unknown"]
    assert lines[-2:] == ["/say [what]  Say it", "ran /say now"]


async def test_a_side_question_is_answered_beside_the_other_lines() -> None:
    lines, go_on = list[str](), asyncio.Event()

    async def aside(question: str, take: Callable[[str], object]) -> SideAnswer:
        assert question == "why twice?"
        await go_on.wait()
        return SideAnswer("It rounds **twice**.\nSee price.py.", "box/tiny", "end_turn", 0.02)

    agent, bench, typed = commands_with(lines)
    bench.aside = aside

    await typed.serve(Lines(b"/btw why twice?", b"steer it", at_end=go_on.set))  # pyright: ignore[reportArgumentType]
    assert agent.said == [("steer", "steer it")]
    assert lines == ["Beside the conversation (box/tiny, $0.02):", "It rounds **twice**.", "See price.py."]

    go_on.clear()
    assert await typed.serve(Lines(b"/btw why twice?", b"/quit"))  # pyright: ignore[reportArgumentType]
    assert len(lines) == 3
