"""Values of the wrong type are refused at once, with the name of the field."""

import asyncio
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.table import table
from tui_agent.agent import (
    AgentLoop,
    AgentLoopConfig,
    AgentTool,
    Budget,
    GuardrailDecision,
    InputVerdict,
    RepetitionLimits,
    RetryPolicy,
    chain,
    consolidate,
    delegate,
)
from tui_agent.agent.loop_config import SystemText
from tui_agent.context import ContextGuard, ConversationHistory
from tui_agent.context.guard import GuardOptions
from tui_agent.protocol import Tool, user_message
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.providers import AnthropicProvider, ScriptedProvider

THING = object()
NO_TOOL = "a tool must be a Tool, a function, or an object with name, description, parameters and execute"


def config(**changes: Any) -> AgentLoopConfig:
    return AgentLoopConfig(**{"provider": ScriptedProvider(["done"]), **changes})


WRONG: dict[str, list[tuple[Any, str]]] = {
    "provider": [
        (None, "provider must be a model provider, such as AnthropicProvider(…) or ScriptedProvider(…), got None"),
        ("a-model", "provider must be a model provider"),
        (AnthropicProvider, "got the class AnthropicProvider, not an instance"),
        (SimpleNamespace(model="m"), "got a SimpleNamespace, which has no stream"),
    ],
    "tools": [
        ("x", "tools must be a list of tools and functions, got 'x'"),
        (THING, "tools must be a list of tools and functions, got an object"),
        ([THING], f"tools[0]: {NO_TOOL}, got an object"),
        ([print], "tools[0]: tool print"),
        ([lambda: 1], "tools[0]: a lambda has neither name nor description"),
        ({"name": "f"}, "tools must be a list"),
        ([Tool], f"tools[0]: {NO_TOOL}, got the class Tool, not an instance"),
    ],
    "system": [(42, "system must be text, or a function that returns it (plain or async), got 42"), (None, "got None")],
    "context": [(None, "context must be text, got None")],
    "layers": [(["x"], "layers[0] must be ContextLayer, got 'x'"), ("x", "layers must be a list of ContextLayer")],
    "workspace": [(42, "workspace must be a path or None, got 42")],
    "resources": [(42, "resources must be ToolResources, got 42")],
    "bus": [("bus", "bus must be an EventBus or None, got 'bus'")],
    "policy": [("ask", "policy must be a permission policy, such as PermissionPolicy(…), or None, got 'ask'")],
    "gate": [(42, "gate must be an ApprovalGate or None, got 42"), (print, "gate must be an ApprovalGate")],
    "hooks": [([], "hooks must be a HookBus or None, got []")],
    "options": [("parallel", "options must be ExecutionOptions, got 'parallel'"), (None, "options must be")],
    "history": [
        ("hello", "history must be a ConversationHistory or a list of messages, got 'hello'"),
        (["hello"], "history[0] must be UserMessage or AssistantMessage or ToolResultMessage, got 'hello'"),
    ],
    "open_calls": [(["c"], "open_calls[0] must be OpenCall, got 'c'")],
    "compactions": [([1], "compactions[0] must be PastCompaction, got 1")],
    "waiting": [(["hello"], "waiting[0] must be UserMessage, got 'hello'")],
    "input_filters": [([print], "input_filters[0] must be an input filter"), (print, "input_filters must be a list")],
    "guardrails": [
        ([THING], "guardrails[0] must be a guardrail, got an object"),
        ([SimpleNamespace(name="n", kind="inputs", check=print)], "guardrails[0]: guardrail n has no kind 'inputs'"),
        ([SimpleNamespace(name="n", kind="input")], "got a SimpleNamespace, which has no check"),
    ],
    "output": [(dict, "output must be an OutputFormat or None, got the class dict, not an instance")],
    "max_steps": [
        ("3", "max_steps must be a whole number or None, got '3'"),
        (2.5, "got 2.5"),
        (True, "got True"),
    ],
    "guard": [("summary", "guard must be a ContextGuard or None, got 'summary'")],
    "budget": [(100, "budget must be a Budget, got 100"), (None, "budget must be a Budget, got None")],
    "repetition": [(3, "repetition must be RepetitionLimits or None, got 3")],
    "max_tokens": [("10", "max_tokens must be a whole number of at least 1, got '10'"), (0, "got 0")],
    "temperature": [("hot", "temperature must be a number of at least 0 or None, got 'hot'"), (-1, "got -1")],
    "thinking_tokens": [(1.5, "thinking_tokens must be a whole number of at least 0, got 1.5")],
    "cache": [("no", "cache must be True or False, got 'no'")],
    "retry": [(5, "retry must be a RetryPolicy, got 5")],
    "checkpoint": [({}, "checkpoint must be a checkpoint store or None, got {}")],
    "cancellation": [(asyncio.Event, "cancellation must be a CancellationToken or None, got the class Event")],
    "before_effects": [(True, "before_effects must be a function or None, got True")],
    "before_requests": [("x", "before_requests must be a function or None, got 'x'")],
    "only_tools": [("x", "only_tools must be a function or None, got 'x'")],
    "update_tools": [("x", "update_tools must be a function or None, got 'x'")],
    "summary_provider": [("x", "summary_provider must be a function or None, got 'x'")],
    "fallback_provider": [("x", "fallback_provider must be a function or None, got 'x'")],
    "effects_published": [("x", "effects_published must be a function or None, got 'x'")],
    "run_hooks": [(print, "run_hooks must be RunHooks or None")],
    "session_id": [(None, "session_id must be text, got None")],
    "agent_id": [(7, "agent_id must be text, got 7")],
    "parent_call_id": [(7, "parent_call_id must be text or None, got 7")],
    "depth": [("1", "depth must be a whole number of at least 0, got '1'"), (-1, "got -1")],
    "usage": [({}, "usage must be a Usage, got {}")],
    "cost": [("free", "cost must be a number of at least 0 or None, got 'free'"), (float("nan"), "got nan")],
    "on_spend": [(1, "on_spend must be a function or None, got 1")],
    "parent_overrun": [(1, "parent_overrun must be a function or None, got 1")],
    "parent_wait_clock": [(1, "parent_wait_clock must be the ApprovalWaitClock of another agent or None, got 1")],
    "request_delay": [(1, "request_delay must be a RequestDelay, got 1")],
    "call_owners": [(1, "call_owners must be a dict of agent ids by call ids, got 1")],
}


@table(("field", "value", "words"), [(field, value, words) for field, wrong in WRONG.items() for value, words in wrong])
def test_every_field_of_a_configuration_refuses_the_wrong_type(field: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        config(**{field: value})
    assert str(caught.value).startswith(f"AgentLoopConfig.{field}")
    assert words in str(caught.value)
    with pytest.raises(ConfigurationError, match=f"^AgentLoopConfig.{field}"):
        replace(config(), **{field: value})


def test_the_table_lists_every_field() -> None:
    assert set(WRONG) == {field.name for field in fields(AgentLoopConfig)}


def search(query: str) -> str:
    """Search."""
    return query


async def words() -> str:
    return "be brief"


@table("system", ["be brief", lambda: "be brief", words])
def test_values_of_the_right_type_are_accepted(system: SystemText) -> None:
    history = [user_message("hello")]
    made = config(tools=iter([search]), system=system, workspace=".", max_steps=0, history=history, temperature=0)

    assert [tool.name for tool in AgentLoop(made).child_config("a", None).tools if isinstance(tool, Tool)] == ["search"]
    assert made.history == tuple(history)
    assert config(history=ConversationHistory(history), workspace=Path(), max_steps=-1).max_steps == -1


@table(
    ("make", "arguments", "words"),
    [
        (config, {"max_step": 3}, "AgentLoopConfig has no field 'max_step'; did you mean max_steps?"),
        (config, {"sytem": ""}, "did you mean system?"),
        (Budget, {"token": 3}, "Budget has no field 'token'; did you mean tokens?"),
        (Budget, {"zzz": 3}, "Budget has no field 'zzz'; it has tokens, cost_usd, seconds"),
        (Budget, {"tokens": "x"}, "Budget.tokens must be more than 0 or None, got 'x'"),
        (Budget, {"tokens": True}, "Budget.tokens must be"),
        (Budget, {"cost_usd": float("inf")}, "Budget.cost_usd must be more than 0 or None, got inf"),
        (Budget, {"seconds": [1]}, "Budget.seconds must be more than 0 or None, got [1]"),
        (RetryPolicy, {"max_attempts": "x"}, "RetryPolicy.max_attempts must be a whole number of at least 1, got 'x'"),
        (RetryPolicy, {"max_attempts": 0}, "RetryPolicy.max_attempts must be"),
        (RetryPolicy, {"first_wait": -1}, "RetryPolicy.first_wait must be 0 seconds or more, got -1"),
        (RetryPolicy, {"longest_wait": "30"}, "RetryPolicy.longest_wait must be 0 seconds or more, got '30'"),
        (RetryPolicy, {"longest_retry_after": None}, "RetryPolicy.longest_retry_after must be"),
        (RetryPolicy, {"attempts": 3}, "did you mean max_attempts?"),
        (
            RepetitionLimits,
            {"nudge_at": "x"},
            "RepetitionLimits.nudge_at must be a whole number of at least 0, got",
        ),
        (RepetitionLimits, {"stop_at": 7.5}, "RepetitionLimits.stop_at must be a whole number"),
        (RepetitionLimits, {"stopat": 7}, "did you mean stop_at?"),
        (GuardrailDecision, {"passed": "no"}, "GuardrailDecision.passed must be True or False, got 'no'"),
        (GuardrailDecision, {"passed": True, "tripwire": 1}, "GuardrailDecision.tripwire must be True or False, got 1"),
        (GuardrailDecision, {"passed": False, "reason": None}, "GuardrailDecision.reason must be text, got None"),
        (
            GuardrailDecision,
            {"passed": True, "severity": "hi"},
            "unknown GuardrailDecision.severity 'hi'; did you mean high",
        ),
        (GuardrailDecision, {"pass": True}, "GuardrailDecision has no field 'pass'; did you mean passed?"),
        (InputVerdict, {"action": "block"}, "unknown InputVerdict.action 'block'; did you mean"),
        (InputVerdict, {"text": 3}, "InputVerdict.text must be text, got 3"),
        (GuardOptions, {"trigger": "0.8"}, "GuardOptions.trigger must be a number of at least 0, got '0.8'"),
        (GuardOptions, {"keep_steps": 2.5}, "GuardOptions.keep_steps must be a whole number"),
        (GuardOptions, {"strategy": "sumary"}, "unknown GuardOptions.strategy 'sumary'; did you mean summary?"),
        (GuardOptions, {"on_unknown": "raise"}, "unknown GuardOptions.on_unknown 'raise'"),
        (GuardOptions, {"plan_tool": None}, "GuardOptions.plan_tool must be the name of a tool, got None"),
        (ContextGuard, {"options": "summary"}, "ContextGuard.options must be GuardOptions or None, got 'summary'"),
        (AgentTool, {"parent": "main"}, "AgentTool.parent must be an AgentLoop, got 'main'"),
        (AgentLoop, {"config": ScriptedProvider([])}, "must be an AgentLoopConfig(provider=…), got a ScriptedProvider"),
    ],
)
def test_everything_else_refuses_the_wrong_type_and_a_misspelt_name(
    make: Any, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make(**arguments)
    assert words in str(caught.value)


@table(
    ("run", "arguments", "words"),
    [
        (delegate, {"parent": "main"}, "the parent of a sub-agent must be an AgentLoop, got 'main'"),
        (delegate, {"task": 3}, "delegate(task) must be text, got 3"),
        (delegate, {"context": "forked"}, "unknown context of a sub-agent 'forked'; did you mean fork?"),
        (delegate, {"tools": "search"}, "delegate(tools=…) must be a list of names of tools or None, got 'search'"),
        (delegate, {"tools": [search]}, "delegate(tools=…)[0] must be the name of a tool, got a function"),
        (delegate, {"max_steps": "3"}, "AgentLoopConfig.max_steps must be a whole number or None, got '3'"),
        (delegate, {"cancellation": "now"}, "the cancellation of a sub-agent must be a CancellationToken or None"),
        (consolidate, {"tasks": "abc"}, "consolidate(tasks) must be a list of tasks, got 'abc'"),
        (consolidate, {"tasks": ["a", 3]}, "consolidate(tasks)[1] must be text, got 3"),
        (consolidate, {"request": None}, "consolidate(request=…) must be text, got None"),
        (consolidate, {"rounds": "2"}, "consolidate(rounds=…) must be a whole number, got '2'"),
        (consolidate, {"judge": True}, "consolidate(judge=…) must be a function or None, got True"),
        (chain, {"links": ["upper"]}, "chain(links)[0] must be an AgentLoop or a function"),
        (chain, {"links": 3}, "chain(links) must be a list of AgentLoops and functions, got 3"),
        (chain, {"text": 3}, "chain(text) must be text, got 3"),
    ],
)
async def test_work_of_several_agents_refuses_the_wrong_type(run: Any, arguments: dict[str, Any], words: str) -> None:
    loop = AgentLoop(config())
    right: dict[Any, dict[str, Any]] = {
        delegate: {"parent": loop, "task": "look"},
        consolidate: {"parent": loop, "tasks": ["a"]},
        chain: {"links": [loop], "text": "x"},
    }
    with pytest.raises(ConfigurationError) as caught:
        await run(**{**right[run], **arguments})
    assert words in str(caught.value)


async def test_messages_to_an_agent_are_checked_too() -> None:
    loop: Any = AgentLoop(config())

    with pytest.raises(ConfigurationError, match="ExecutionOptions, got 'parallel'"):
        loop.set_options("parallel")
    with pytest.raises(ConfigurationError, match=r"unknown permission mode 'planned'; did you mean plan\?"):
        loop.set_mode("planned")
    with pytest.raises(ConfigurationError, match="an ApprovalDecision"):
        loop.resolve_approval("ask_1", "approve")
    with pytest.raises(ConfigurationError, match="an ApprovalDecision"):
        await loop.resume_with_approval("c", True)
    with pytest.raises(ConfigurationError, match="a CancellationToken or None, got 'now'"):
        await loop.run("x", cancellation="now")
    with pytest.raises(ConfigurationError, match=r"an AgentLoopSnapshot, got \{\}"):
        AgentLoop.restore({}, config())  # type: ignore[arg-type] — that is the case
    with pytest.raises(ConfigurationError, match="an AgentLoopConfig, got None"):
        AgentLoop.restore(loop.dump(), None)  # type: ignore[arg-type] — that is the case


async def test_a_run_and_its_agent_refuse_a_wrong_list_of_tools_and_a_wrong_provider() -> None:
    loop: Any = AgentLoop(config())

    with pytest.raises(ConfigurationError, match=r"run\(tools=…\) must be a list of tools .*, got a function"):
        await loop.run("x", tools=search)
    with pytest.raises(ConfigurationError, match=r"AgentLoop.provider must be a model provider.*, got 'a-model'"):
        loop.provider = "a-model"

    assert (await loop.run("x")).reason == "done"
