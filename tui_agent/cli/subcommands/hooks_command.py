"""`tui-agent hooks`: runs the hook commands for a call without running the call."""

import asyncio
import difflib
import json
import os
from pathlib import Path
from typing import get_args

import click

from tui_agent.agent.agent_tool import AGENT_SPEC
from tui_agent.cli.built_in_tools import built_in_tools
from tui_agent.cli.hook_commands import command_hooks
from tui_agent.cli.launch_options import OneOf
from tui_agent.cli.process.controlling_terminal import say
from tui_agent.execution.hook_dispatch import ask_after_tool, ask_before_tool, observe_end
from tui_agent.execution.process_hook import ProcessHookEvent
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import AgentEvent, HookEnded, HookFailed, ToolEnded
from tui_agent.protocol.messages import JsonObject, ToolCall, is_object
from tui_agent.protocol.tool import ToolResult
from tui_agent.settings import HookSettings, Locations, Settings, load_settings

HOOK_FAILED = 1
"""Exit code if a command failed."""


@click.group()
def hooks() -> None:
    """Try hook commands."""


@hooks.command(name="test")
@click.argument("event", type=OneOf(get_args(ProcessHookEvent)))
@click.argument("tool")
@click.argument("input_json")
@click.option("--result", default="", metavar="TEXT", help="The tool's result, for after_tool and after_tool_observer.")
def test_hooks(event: ProcessHookEvent, tool: str, input_json: str, result: str) -> int:
    """Run the hook commands for one call.

    Runs every `[[hooks]]` command for EVENT, and prints its answer and duration. The call itself does not run. Every
    command gets INPUT_JSON as it is, also after one that denies the call or changes the input. The exit code is 1 if a
    command failed.
    """
    _expect_tool(tool)
    call = ToolCall(id="call_test", name=tool, arguments=_arguments(input_json))
    of_event = [hook for hook in _settings().hooks if hook.on == event]
    if not of_event:
        say(f"no hook is set for {event}; add one with [[hooks]] in {Locations.of_user(os.environ).user_file}")
        return 0
    answers = [asyncio.run(_answer_of(hook, call, result)) for hook in of_event]
    for hook, answer in zip(of_event, answers, strict=True):
        say(f"{_describe(hook, answer)}  {hook.command}")
    return HOOK_FAILED if any(isinstance(answer, HookFailed) for answer in answers) else 0


async def _answer_of(hook: HookSettings, call: ToolCall, result: str) -> HookEnded | HookFailed:
    """Run one command and return the event that the engine publishes about it."""
    hook_bus, bus = command_hooks([hook], Path.cwd()), EventBus()
    with bus.subscribe(merge=False) as subscription:
        match hook.on:
            case "before_tool":
                await ask_before_tool(hook_bus, call, None, call.arguments, bus)
            case "after_tool":
                await ask_after_tool(hook_bus, call, call.arguments, ToolResult.of_text(result), bus)
            case "after_tool_observer":
                await observe_end(hook_bus, _ended(call, result), call.arguments, bus)
        events: list[AgentEvent] = [envelope.event for envelope in subscription.drain()]
    return next(event for event in events if isinstance(event, HookEnded | HookFailed))


def _ended(call: ToolCall, result: str) -> ToolEnded:
    content = ToolResult.of_text(result).content
    return ToolEnded(call_id=call.id, name=call.name, index=0, status="ok", is_error=False, content=content)


def _describe(hook: HookSettings, answer: HookEnded | HookFailed) -> str:
    """Return the answer, its duration and its reason in one line."""
    if isinstance(answer, HookFailed):
        error = f"no answer within {hook.timeout:g} s" if answer.timed_out else answer.error
        return f"failed      ({error}; {'the call continues' if answer.fail_open else 'the call is denied'})"
    # An observer decides nothing; its event has the action of a hook that lets the call pass.
    action = "done" if hook.on == "after_tool_observer" else answer.action
    reason = f" ({answer.reason})" if answer.reason else ""
    return f"{action:<8} {answer.ms:4.0f} ms{reason}"


def _expect_tool(name: str) -> None:
    known = [*(tool.name for tool in built_in_tools(Path.cwd())), AGENT_SPEC.name]
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        raise click.UsageError(f"no tool {name!r}; " + (f"did you mean {near[0]}?" if near else ", ".join(known)))


def _arguments(input_json: str) -> JsonObject:
    try:
        arguments: object = json.loads(input_json)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise click.UsageError(f"the input is not valid JSON: {reason}") from error
    if not is_object(arguments):
        raise click.UsageError('the input must be a JSON object, such as {"command":"ls"}')
    return arguments


def _settings() -> Settings:
    # Hooks never come from a project, so its settings are not loaded.
    return load_settings(Locations.of_user(os.environ)).settings
