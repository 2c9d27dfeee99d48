"""`tui-agent hooks`: what the commands say that are asked about calls, without running the call (P47)."""

import asyncio
import difflib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import click

from tui_agent.agent.agent_tool import AGENT_SPEC
from tui_agent.execution import HookBus, ProcessHook
from tui_agent.execution.hook_dispatch import ask_after_tool, ask_before_tool, observe_end
from tui_agent.execution.process_hook import ProcessHookEvent
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import AgentEvent, HookEnded, HookFailed, ToolEnded
from tui_agent.protocol.messages import JsonObject, ToolCall, is_object
from tui_agent.protocol.tool import ToolResult
from tui_agent.settings import HookSettings, Locations, Settings, load_settings
from tui_agent.tools.child_environment import child_environment

from .choices import OneOf
from .controlling_terminal import say
from .rules_and_tools import built_in_tools

HOOK_FAILED = 1
"""The exit code where a command gave no answer."""


def command_hooks(hooks: Iterable[HookSettings], working_dir: Path) -> HookBus:
    """The commands that are asked about calls; they are told no secrets."""
    bus = HookBus()
    environment = child_environment(os.environ)
    for hook in hooks:
        command = ProcessHook(hook.command, working_dir, environment, hook.timeout, hook.strict)
        command.add_to(bus, hook.on)
    return bus


@click.group()
def hooks() -> None:
    """Tries the commands that are asked about calls."""


@hooks.command(name="test")
@click.argument("event", type=OneOf(get_args(ProcessHookEvent)))
@click.argument("tool")
@click.argument("input_json")
@click.option("--result", default="", metavar="TEXT", help="What the tool gave, for after_tool and its observers.")
def test_hooks(event: ProcessHookEvent, tool: str, input_json: str, result: str) -> int:
    """Asks every `[[hooks]]` command for EVENT about one call, and says what each answered and how long it took.

    Nothing runs but these commands. Each is asked with the input as given here, also behind one that says no. Exit code
    1: one of them failed.
    """
    _expect_tool(tool)
    call = ToolCall(id="call_test", name=tool, arguments=_arguments(input_json))
    of_event = [hook for hook in _settings().hooks if hook.on == event]
    if not of_event:
        say(f"no command is asked {event}; one is set with [[hooks]] in {Locations.of_user(os.environ).user_file}")
        return 0
    answers = [asyncio.run(_answer_of(hook, call, result)) for hook in of_event]
    for hook, answer in zip(of_event, answers, strict=True):
        say(f"{_in_words(hook, answer)}  {hook.command}")
    return HOOK_FAILED if any(isinstance(answer, HookFailed) for answer in answers) else 0


async def _answer_of(hook: HookSettings, call: ToolCall, result: str) -> HookEnded | HookFailed:
    """What one command answers, as the engine tells it."""
    asked, bus = command_hooks([hook], Path.cwd()), EventBus()
    with bus.subscribe(merge=False) as told:
        match hook.on:
            case "before_tool":
                await ask_before_tool(asked, call, None, call.arguments, bus)
            case "after_tool":
                await ask_after_tool(asked, call, call.arguments, ToolResult.of_text(result), bus)
            case "after_tool_observer":
                await observe_end(asked, _ended(call, result), call.arguments, bus)
        events: list[AgentEvent] = [envelope.event for envelope in told.drain()]
    return next(event for event in events if isinstance(event, HookEnded | HookFailed))


def _ended(call: ToolCall, result: str) -> ToolEnded:
    content = ToolResult.of_text(result).content
    return ToolEnded(call_id=call.id, name=call.name, index=0, status="ok", is_error=False, content=content)


def _in_words(hook: HookSettings, answer: HookEnded | HookFailed) -> str:
    """One line: what it did, how long that took, and why."""
    if isinstance(answer, HookFailed):
        what = f"no answer within {hook.timeout:g} s" if answer.timed_out else answer.error
        return f"failed      ({what}; {'the call goes on' if answer.fail_open else 'the call is denied'})"
    reason = f" ({answer.reason})" if answer.reason else ""
    return f"{answer.action:<8} {answer.ms:4.0f} ms{reason}"


def _expect_tool(name: str) -> None:
    known = [*(tool.name for tool in built_in_tools(Path.cwd())), AGENT_SPEC.name]
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        raise click.UsageError(f"no tool {name!r}; " + (f"did you mean {near[0]}?" if near else ", ".join(known)))


def _arguments(input_json: str) -> JsonObject:
    try:
        arguments: object = json.loads(input_json)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise click.UsageError(f"the tool's input is no JSON: {why}") from error
    if not is_object(arguments):
        raise click.UsageError('the tool\'s input must be a JSON object, such as {"command":"ls"}')
    return arguments


def _settings() -> Settings:
    # Hooks never come from a project, so nothing of it is read.
    return load_settings(Locations.of_user(os.environ)).settings
