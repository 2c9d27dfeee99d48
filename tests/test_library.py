"""`Agent`: an agent loop with keyword options, which also runs without an event loop."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from tests.support.server_process import ServerProcess
from tests.support.table import table
from tui_agent import (
    Agent,
    AgentLoop,
    AgentLoopConfig,
    ApprovalDecision,
    ApprovalGate,
    ApprovalRequest,
    Batched,
    ConfigurationError,
    ExecutionOptions,
    PermissionPolicy,
    ScriptedProvider,
    Tool,
    ToolCallProgress,
    ToolContext,
    UserMessage,
    call,
    coding_tools,
    delegate,
    function_tool,
    library,
    reply,
)
from tui_agent.library import MoreOptions
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.providers.scripted_provider import Step

HEED_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""First line of programs that get SIGINT: they would inherit that a test run in the background ignores it."""


class Invoice(BaseModel):
    """Invoice of a seller."""

    total: float


@function_tool()
async def pay(amount: int) -> str:
    """Pays an amount."""
    return f"paid {amount}"


@function_tool(read_only=True)
async def look() -> str:
    """Looks."""
    return "seen"


PAY: list[Step] = [reply(call("pay", amount=1)), "That is all."]


def said(text: str) -> dict[str, Any]:
    return {"blocks": [{"type": "text", "text": text}]}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess([said("one"), said("two"), said("three"), said("four")], tmp_path) as process:
        yield process


def result_of(agent: Agent[Any]) -> str:
    (result,) = [message.text for message in agent.history.messages() if message.role == "tool_result"]
    return result


# --- options ----------------------------------------------------------------------------------------------------------


def test_every_option_of_the_loop_can_be_passed() -> None:
    own = set(Agent.__init__.__annotations__) | set(MoreOptions.__annotations__)
    for_sub_agents = {"parent_call_id", "depth", "on_spend", "parent_overrun", "parent_wait_clock", "call_owners"}
    for_sub_agents |= {"request_delay"}
    for_sessions = {"open_calls", "compactions"}
    renamed = {"provider", "output", "resources"}

    missing = {field.name for field in fields(AgentLoopConfig)} - own

    assert missing == for_sub_agents | for_sessions | renamed


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"Agent has no option 'max_step'; did you mean max_steps\?"):
        Agent(ScriptedProvider(), max_step=3)  # pyright: ignore[reportCallIssue]


def test_options_that_exclude_each_other_are_refused(tmp_path: Path) -> None:
    policy, gate = PermissionPolicy(tmp_path), ApprovalGate()
    snapshot = Agent(ScriptedProvider()).dump()
    with pytest.raises(ConfigurationError, match="a policy, or a mode and rules"):
        Agent(ScriptedProvider(), policy=policy, mode="allow")
    with pytest.raises(ConfigurationError, match="approve or a gate"):
        Agent(ScriptedProvider(), approve=lambda request: True, gate=gate)
    with pytest.raises(ConfigurationError, match="a snapshot or a history"):
        Agent(ScriptedProvider(), snapshot=snapshot, history=[UserMessage(content=())])
    with pytest.raises(ConfigurationError, match=r"approve must be a function, got 'always'; .* mode=\"allow\""):
        Agent(ScriptedProvider(), approve="always")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match=r"snapshot of AgentLoop.restore must be an AgentLoopSnapshot"):
        Agent(ScriptedProvider(), snapshot="{}")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match=r"workspace must be a directory, got .*nowhere"):
        Agent(ScriptedProvider(), workspace=tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match=r"PermissionPolicy.mode .*ask"):
        Agent(ScriptedProvider(), mode="yolo")  # pyright: ignore[reportArgumentType]


def test_only_an_agent_with_a_workspace_is_the_coding_agent(tmp_path: Path) -> None:
    plain, coding = ScriptedProvider(["ok"]), ScriptedProvider(["ok"])

    Agent(plain).run_sync("x")
    Agent(coding, workspace=tmp_path).run_sync("x")

    assert plain.requests[0].system == ()
    assert "a coding agent" in coding.requests[0].system[0].text
    assert str(tmp_path) in coding.requests[0].system[-1].text


def test_an_agent_works_in_the_directory_of_its_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "shop.py").write_text("price = 1\n")
    monkeypatch.chdir(here)
    steps: list[Step] = [
        reply(call("read", path="shop.py")),
        reply(call("edit", path="shop.py", old_string="1", new_string="2"), call("bash", command="pwd")),
        reply(call("write", path="n.txt", content="new\n")),
        "Done.",
    ]
    requests: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        requests.append(request)
        return True

    asked = Agent(ScriptedProvider(steps), tools=coding_tools(there), approve=approve)
    asked.run_sync("go")
    edits = Agent(
        ScriptedProvider(steps), tools=coding_tools("../there"), mode="accept_edits", rules=["allow bash(pwd)"]
    )
    edits.run_sync("go")

    targets = [target for request in requests for target in request.targets if request.tool != "bash"]
    assert set(targets) == {str(there / "shop.py"), str(there / "n.txt")}
    assert (here / "shop.py").read_text() == "price = 1\n"
    assert [path.name for path in here.iterdir()] == ["shop.py"]
    assert (there / "n.txt").exists()
    assert str(there) in [m.text for m in asked.history.messages() if m.role == "tool_result"][2]


def test_two_working_directories_are_refused_at_construction(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    tools, policy = coding_tools(tmp_path), PermissionPolicy(other)
    refused: list[Callable[[], object]] = [
        lambda: Agent(ScriptedProvider(), tools=tools, workspace=other),
        lambda: Agent(ScriptedProvider(), tools=tools, policy=policy),
        lambda: Agent(ScriptedProvider(), workspace=tmp_path, policy=policy),
        lambda: Agent(ScriptedProvider(), tools=[tools[0], *coding_tools(other)[1:]]),
        lambda: Agent(ScriptedProvider(["x"]), tools=tools).run_sync("go", tools=[renamed(coding_tools(other)[0])]),
        lambda: Agent.from_config(AgentLoopConfig(ScriptedProvider(), tools=tools, workspace=other)),
        lambda: AgentLoop(AgentLoopConfig(ScriptedProvider(), tools=tools, policy=policy)),
    ]

    for construct in refused:
        with pytest.raises(ConfigurationError, match=r"two working directories: .*; pass the same one to both"):
            construct()
    Agent(ScriptedProvider(), tools=tools, workspace=tmp_path / "link", policy=PermissionPolicy(tmp_path / "link"))


def renamed(tool: Tool) -> Tool:
    tool.spec = tool.spec.model_copy(update={"name": "second"})
    return tool


# --- permissions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "result"), [(True, "paid 1"), (False, "denied")])
def test_a_plain_function_approves_in_a_thread(answer: bool, result: str) -> None:
    asked: list[tuple[str, bool]] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append((request.tool, threading.current_thread() is threading.main_thread()))
        return answer

    agent = Agent(ScriptedProvider(PAY), tools=[pay], approve=approve)

    agent.run_sync("pay")

    assert asked == [("pay", False)]
    assert result in result_of(agent)


@table("answer", [None, "yes", 1])
def test_an_invalid_answer_denies(answer: Any) -> None:
    agent = Agent(ScriptedProvider(PAY), tools=[pay], approve=lambda request: answer)

    agent.run_sync("pay")

    assert f"approve returned {answer!r}; it must return True, False or an ApprovalDecision" in result_of(agent)


async def test_a_cancelled_request_does_not_wait_for_its_approver() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def approve(request: ApprovalRequest) -> bool:
        asked.set()
        return go_on.wait(60)

    agent = Agent(ScriptedProvider(PAY), tools=[pay], approve=approve)
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(agent.run("pay"))
        await asyncio.to_thread(asked.wait)
        agent.abort("enough")
        report = await run
    go_on.set()

    assert report.reason == "aborted"


# --- code without an event loop ---------------------------------------------------------------------------------------


async def test_inside_a_running_loop_the_error_names_the_async_method() -> None:
    agent = Agent(ScriptedProvider(["hi"]))

    with pytest.raises(ConfigurationError, match=r"use `await agent.run\(…\)`"):
        agent.run_sync("x")
    with pytest.raises(ConfigurationError, match=r"use `await agent.aclose\(…\)`"):
        agent.close()

    assert (await agent.run("x")).output == "hi"


@pytest.mark.slow
def test_closing_closes_a_named_model_but_not_a_provider_object(server: ServerProcess) -> None:
    provider = ScriptedProvider(["hi"])
    with Agent(provider) as agent:
        agent.run_sync("x")
    by_name = Agent("some-model")
    by_name.close()

    assert not provider.closed
    assert by_name.run_sync("x").error_kind == "unavailable"


@pytest.mark.slow
def test_a_program_without_close_ends_without_a_warning(server: ServerProcess) -> None:
    program = """
        from tui_agent import Agent
        agent = Agent("some-model")
        print(agent.run_sync("1").output, agent.run_sync("2").output)
    """

    done = run_program(program, server)

    assert (done.returncode, done.stdout, done.stderr) == (0, "one two\n", "")


@pytest.mark.slow
def test_ctrl_c_aborts_the_run_and_leaves_the_conversation_valid(server: ServerProcess) -> None:
    program = """
        import os, signal
        from tui_agent import Agent, ScriptedProvider, call, function_tool, reply
        import asyncio

        @function_tool(read_only=True)
        async def wait() -> str:
            "Waits."
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(600)
            return "done"

        agent = Agent(ScriptedProvider([reply("I wait.", call("wait")), "Here I am."]), tools=[wait])
        try:
            agent.run_sync("Wait.")
        except KeyboardInterrupt:
            print("interrupted", agent.reports[-1].reason)
        for message in agent.history.messages():
            print(message.role, message.text)
        print(agent.run_sync("Still there?").output)
    """

    done = run_program(program, server)

    assert done.stderr == ""
    assert done.stdout.splitlines()[:3] == ["interrupted aborted", "user Wait.", "assistant I wait."]
    assert done.stdout.splitlines()[3].startswith("tool_result ")
    assert done.stdout.splitlines()[4:] == ["Here I am."]


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_a_blocked_approver(server: ServerProcess) -> None:
    program = """
        import threading
        from tui_agent import Agent, ScriptedProvider, call, function_tool, reply

        @function_tool()
        async def pay() -> str:
            "Pays."
            return "paid"

        def approve(request):
            print("asked", flush=True)
            threading.Event().wait()

        agent = Agent(ScriptedProvider([reply(call("pay"))]), tools=[pay], approve=approve)
        try:
            agent.run_sync("Pay.")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    arguments = [sys.executable, "-W", "error", "-c", HEED_INTERRUPTS + dedent(program)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate()

    assert (process.returncode, out, errors) == (0, "interrupted\n", "")


def test_a_tool_that_raises_keyboard_interrupt_does_not_affect_the_next_run() -> None:
    def give_up() -> str:
        """Give up."""
        raise KeyboardInterrupt

    agent = Agent(ScriptedProvider([reply(call("give_up")), "Here I am."]), tools=[give_up], mode="allow")

    with pytest.raises(KeyboardInterrupt):
        agent.run_sync("Try.")

    assert not agent.running
    assert [message.role for message in agent.history.messages()] == ["user", "assistant", "tool_result"]
    assert agent.run_sync("Still there?").output == "Here I am."


@pytest.mark.slow
def test_a_run_is_steered_from_another_thread(capfd: pytest.CaptureFixture[str]) -> None:
    begun = threading.Event()

    @function_tool(read_only=True)
    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(ScriptedProvider([reply(call("wait")), reply(call("wait"))]), tools=[wait])
    steered: list[str] = []

    def steer() -> None:
        begun.wait()
        steered.append(agent.steer("First.").text)
        steered.append(agent.follow_up("Then.").text)
        with pytest.raises(ConfigurationError, match="empty"):
            agent.steer("")
        begun.clear()
        agent.abort("enough")

    with in_thread(steer):
        first = agent.run_sync("Wait.")
    with in_thread(lambda: (begun.wait(), agent.stop(), agent.abort("again"))):
        second = agent.run_sync()

    assert (first.reason, first.error, second.reason, steered) == ("aborted", "enough", "aborted", ["First.", "Then."])
    assert agent.steer("Later.").text == "Later."
    assert capfd.readouterr().err == ""


def test_steering_a_run_that_ends_meanwhile_does_not_wait_for_its_loop() -> None:
    """The loop of `run_sync` stops with the run, and drops work that was scheduled there."""
    agent = Agent(ScriptedProvider([]))
    loop = asyncio.new_event_loop()
    agent._loop = loop  # pyright: ignore[reportPrivateUsage] - as if the run had just ended

    queued = agent.steer("Too late?")
    loop.close()
    agent.abort()

    assert agent.waiting_messages == (queued,)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_leaves_the_loop_of_its_parent_alone(server: ServerProcess) -> None:
    """A call in a thread wakes the loop; a loop whose child process closed a shared selector would not notice."""
    program = """
        import logging, os
        from tui_agent import Agent, ScriptedProvider, call

        logging.getLogger("asyncio").setLevel(logging.ERROR)  # Not what took long on a busy machine.

        def look() -> str:
            "Look."
            return "seen"

        agent = Agent(ScriptedProvider([call("look"), "I saw it."] * 3), tools=[look], mode="allow")
        print(agent.run_sync("1").output, flush=True)
        child = os.fork()
        if not child:
            print("child", agent.run_sync("2").output, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print("parent", agent.run_sync("2").output)
    """

    done = run_program(program, server, "-X", "dev")

    assert (done.stderr, done.stdout.splitlines()) == ("", ["I saw it.", "child I saw it.", "parent I saw it."])


@contextmanager
def in_thread(work: Callable[[], object]) -> Iterator[None]:
    """Do something in another thread meanwhile, and wait for it."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        yield
        done.result()


def run_program(program: str, server: ServerProcess, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-W", "error", *options, "-c", HEED_INTERRUPTS + dedent(program)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, env=server.environment)


# --- output -----------------------------------------------------------------------------------------------------------


async def test_a_pending_call_is_answered_after_a_snapshot() -> None:
    model = ScriptedProvider([reply(call("pay", amount=1)), '{"total": 1}'])
    waiting = asyncio.Event()
    gate = ApprovalGate(interactive=True)
    gate.on_request = lambda request: waiting.set()
    first = Agent(model, tools=[pay], gate=gate, output_type=Invoice)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(first.run("Pay."))
        await waiting.wait()
        kept = first.dump()
        first.abort()

    again = Agent(model, tools=[pay], output_type=Invoice, snapshot=kept)
    (request,) = again.pending_calls
    report = await again.resume_with_approval(request.call_id, ApprovalDecision(decision="approve"))

    assert report is not None
    assert report.output == Invoice(total=1)
    assert result_of(again) == "paid 1"
    assert await again.resume_with_approval("no such call", ApprovalDecision(decision="deny")) is None


# --- what the owner hands to the tools --------------------------------------------------------------------------------


class Shop:
    """Prices by name."""

    def __init__(self, **prices: int) -> None:
        self.prices = prices


@function_tool(read_only=True)
async def price(name: str, context: ToolContext[Shop]) -> str:
    """Look up a price."""
    return f"{context.deps.prices[name]} in {context.workspace and context.workspace.name}"


async def test_tools_find_deps_and_workspace_in_their_context_also_in_sub_agents(tmp_path: Path) -> None:
    shop, ask = Shop(tea=3), reply(call("price", name="tea"))
    agent = Agent(ScriptedProvider([ask, "3", ask, "3", ask, "3"]), tools=[price], deps=shop, workspace=tmp_path)

    await agent.run("What does tea cost?")
    reports = [await delegate(agent, "tea", context=context) for context in ("fresh", "fork")]

    results = [message.text for message in agent.history.messages() if message.role == "tool_result"]
    assert results == [f"3 in {tmp_path.name}"]
    assert [report.reason for report in reports] == ["done"] * 2
    seen = [m.text for request in agent.provider.requests for m in request.messages if m.role == "tool_result"]  # pyright: ignore
    assert set(seen) == {f"3 in {tmp_path.name}"}


async def test_deps_of_another_type_are_refused_when_a_tool_is_given() -> None:
    words = r"takes a ToolContext\[Shop\], but the agent('s deps are of type dict| has none); pass a Shop as deps="
    for construct in (
        lambda: Agent(ScriptedProvider(), tools=[price]),
        lambda: Agent(ScriptedProvider(), tools=[price], deps={"tea": 3}),
        lambda: AgentLoop(AgentLoopConfig(ScriptedProvider(), tools=[price])),
    ):
        with pytest.raises(ConfigurationError, match=words):
            construct()
    with pytest.raises(ConfigurationError, match=words):
        await Agent(ScriptedProvider(["x"])).run("go", tools=[price])
    with pytest.raises(ConfigurationError, match=words):
        Agent(ScriptedProvider()).add_tool(price)


def test_coding_tools_without_a_directory_follow_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "name.txt").write_text(folder.name)
    monkeypatch.chdir(here)
    few = [tool for tool in coding_tools() if tool.name in ("read", "edit")]
    steps = [
        reply(call("read", path="name.txt")),
        reply(call("edit", path="name.txt", old_string="there", new_string="x")),
    ]
    agent = Agent(ScriptedProvider([*steps, "done"]), tools=[*few, look], workspace=there, mode="accept_edits")

    agent.run_sync("go").raise_for_reason()

    assert (there / "name.txt").read_text() == "x"
    assert (here / "name.txt").read_text() == "here"
    Agent(ScriptedProvider(), tools=few, policy=PermissionPolicy(here))
    with pytest.raises(ConfigurationError, match="two working directories"):
        Agent(ScriptedProvider(), tools=[*few, renamed(coding_tools(here)[0])], workspace=there)


def test_a_strategy_and_the_models_of_shipped_endpoints_have_the_names_of_the_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("ANTHROPIC_BASE_URL", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    agent = Agent("ollama/qwen", strategy="batched:2", options=ExecutionOptions(tool_timeout=5))

    assert (agent.provider.model.name, agent.config.options.strategy) == ("ollama/qwen", Batched(2))
    assert agent.config.options.tool_timeout == 5
    assert Agent("anthropic/claude-haiku-4-5").provider.model.name == "claude-haiku-4-5"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
    kinds = [type(Agent(name).provider).__name__ for name in ("openai/gpt-5", "bedrock/claude-haiku-4-5")]
    assert kinds == ["OpenAiProvider", "CloudProvider"]
    refused = {
        "olama/qwen": r"no provider 'olama'.*did you mean ollama/qwen\?",
        "openrouter/qwen": "no key for openrouter: set OPENROUTER_API_KEY",
    }
    for name, words in refused.items():
        with pytest.raises(ConfigurationError, match=words):
            Agent(name)
    with pytest.raises(ConfigurationError, match="unknown strategy 'both'"):
        Agent(ScriptedProvider(), strategy="both")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    assert Agent("any/model").provider.model.name == "any/model", "an address of one's own knows its names"


async def test_a_stream_has_the_progress_and_the_output_of_calls() -> None:
    @function_tool(read_only=True)
    async def work(context: ToolContext) -> str:
        """Work."""
        context.progress("half", 0.5)
        context.output("line\n")
        context.update("part")
        return "done"

    agent = Agent(ScriptedProvider([reply(call("work")), "That is all."]), tools=[work])
    events = [event async for event in agent.stream("go") if type(event).__name__.startswith("ToolCall")]

    kinds = [type(event).__name__ for event in events]
    assert kinds == ["ToolCallStart", *["ToolCallProgress"] * 3, "ToolCallEnd"]
    seen = [(event.text, event.fraction, event.is_output) for event in events if isinstance(event, ToolCallProgress)]
    assert seen == [("half", 0.5, False), ("line\n", None, True), ("part", None, False)]


def hostile_entry(*flags: str) -> dict[str, Any]:
    server = Path(__file__).parent / "mcp" / "servers" / "hostile.py"
    return {"command": sys.executable, "args": [str(server), *flags], "startup_timeout": 60}


def test_tool_servers_start_with_the_first_run_and_stay_until_the_agent_is_closed(tmp_path: Path) -> None:
    log = tmp_path / "received"
    steps = [reply(call("mcp__h__echo", text="one")), "1", reply(call("mcp__h__echo", text="two")), "2"]
    mcp = {"h": hostile_entry("--log", str(log))}
    with Agent(ScriptedProvider(steps), mcp=mcp, rules=["allow mcp__h__*"]) as agent:
        assert not log.exists()
        for _ in range(2):
            agent.run_sync("go").raise_for_reason()

    texts = [message.text.partition("\n")[2] for message in agent.history.messages() if message.role == "tool_result"]
    assert texts == ["one", "two"]
    assert log.read_text().count('"initialize"') == 1, "one server for both runs"


async def test_tool_servers_have_every_form_and_their_calls_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = hostile_entry()
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"h": entry}}))
    record = ToolServer(command=entry["command"], args=tuple(entry["args"]), startup_timeout=60)
    forms: list[Any] = [file, str(file), [{"name": "h", **entry}], [{"h": record}], {"mcpServers": {"h": entry}}]
    for form in forms:
        async with Agent(ScriptedProvider([reply(call("mcp__h__echo", text="x")), "ok"]), mcp=form) as agent:
            await agent.run("go")
            assert "no approver is available" in agent.history.messages()[2].text
    wrong: dict[str, Any] = {
        "h: not used: 'envFile' is not supported": {"h": {"command": "x", "envFile": "y"}},
        "an object `mcpServers` was expected": {"h": 3},
        "takes entries as in .mcp.json": ["uvx"],
        "cannot be read: No such file": tmp_path / "none.json",
        "'a__b' is not a name of a server": {"a__b": record},
    }
    for words, form in wrong.items():
        with pytest.raises(ConfigurationError, match=words):
            Agent(ScriptedProvider(), mcp=form)
    monkeypatch.setattr(library, "find_spec", lambda name: None)
    for option in ({"mcp": {"h": entry}}, {"tracing": "http://127.0.0.1:9"}):
        with pytest.raises(ConfigurationError, match=r"install"):
            Agent(ScriptedProvider(), **option)


async def test_each_run_is_traced() -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    for target in (provider, provider.get_tracer("mine")):
        agent = Agent(ScriptedProvider([reply(call("look")), "seen", "again"]), tools=[look], tracing=target)
        await agent.run("go")
        await agent.run("go")

    names = [span.name for span in spans.get_finished_spans()]
    assert names.count("invoke_agent main") == 4
    assert names.count("execute_tool look") == 2
    with pytest.raises(ConfigurationError, match="tracing must be the address of a collector"):
        await Agent(ScriptedProvider(["x"]), tracing=3).run("go")
