"""`tui-agent hooks`: lists the hooks, and runs them for a call or another cause without causing it."""

import asyncio
import difflib
import json
import os
import time
from pathlib import Path
from typing import get_args

import click

from tui_agent.agent.agent_tool import AGENT_SPEC
from tui_agent.cli.command_words import OneOf
from tui_agent.cli.process.controlling_terminal import say
from tui_agent.execution.hook_dispatch import ask_after_tool, ask_before_tool, observe_end
from tui_agent.execution.process_hook import ProcessHookEvent
from tui_agent.hook_files.foreign_hooks import ABOUT_CALLS, EVENTS, FileHookEvent, as_event
from tui_agent.hook_files.tool_vocabulary import (
    foreign_input,
    foreign_name,
    foreign_result,
    names_of_tool,
    tool_of_name,
)
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import AgentEvent, HookEnded, HookFailed, ToolEnded
from tui_agent.protocol.facts.page_facts import HookFact
from tui_agent.protocol.messages import JsonObject, ToolCall, is_object
from tui_agent.protocol.tool import ToolResult
from tui_agent.settings import HookSettings, Locations, load_settings
from tui_agent.workbench.built_in_tools import built_in_tools
from tui_agent.workbench.configuration.found_files import own_hooks
from tui_agent.workbench.configuration.named_endpoints import withhold_named_secrets
from tui_agent.workbench.configuration.project_trust import folder_trust
from tui_agent.workbench.file_hooks import matched_hooks, rule_fits, run_hook
from tui_agent.workbench.plugins.plugin_loader import load_plugins
from tui_agent.workbench.session_hooks import hook_facts
from tui_agent.workbench.user_commands import command_hooks

HOOK_FAILED = 1
"""Exit code if a command failed."""


@click.group()
def hooks() -> None:
    """List and try hooks."""


@hooks.command(name="list")
def list_hooks() -> int:
    """List the hooks of your settings, of plugins and of hook files, with the origin of each."""
    facts = _facts()
    for fact in facts:
        if not fact.event:
            say(f"not used     {fact.problem}")
            continue
        matcher = f"({fact.matcher})" if fact.matcher else ""
        state = f"  does not run: {fact.problem}" if fact.problem else ""
        say(f"{fact.event}{matcher}: {fact.command}  ({fact.origin}){state}")
    if not facts:
        say(f"no hooks: neither [[hooks]] in {_user_file()} nor hooks in .claude/settings.json")
    return 0


@hooks.command(name="test")
@click.argument("event", type=OneOf((*get_args(ProcessHookEvent), *EVENTS)))
@click.argument("tool", required=False)
@click.argument("input_json", required=False)
@click.option("--result", default="", metavar="TEXT", help="The tool's result, for the events after a call.")
def test_hooks(event: str, tool: str | None, input_json: str | None, result: str) -> int:
    """Run the hooks of an event, for one call: EVENT TOOL INPUT_JSON.

    Runs every `[[hooks]]` command, or every hook of hook files that you accepted, for EVENT, and prints its answer and
    duration. The call itself does not run. Every command gets INPUT_JSON as it is, also after one that denies the call
    or changes the input. Events of hook files that are not about a call take only INPUT_JSON, with the fields of the
    event. The exit code is 1 if a command failed.
    """
    if (file_event := as_event(event)) is not None:
        return _test_hook_files(file_event, tool, input_json, result)
    if tool is None or input_json is None:
        raise click.UsageError(f'{event} needs a tool and its input, such as bash \'{{"command":"ls"}}\'')
    _expect_tool(tool)
    call = ToolCall(id="call_test", name=tool, arguments=_arguments(input_json))
    # `[[hooks]]` never come from a project, so its settings are not loaded.
    of_event = [hook for hook in load_settings(_locations()).settings.hooks if hook.on == event]
    if not of_event:
        say(f"no hook is set for {event}; add one with [[hooks]] in {_user_file()}")
        return 0
    answers = [asyncio.run(_answer_of(hook, call, result)) for hook in of_event]
    for hook, answer in zip(of_event, answers, strict=True):
        say(f"{_describe(hook, answer)}  {hook.command}")
    return HOOK_FAILED if any(isinstance(answer, HookFailed) for answer in answers) else 0


def _test_hook_files(event: FileHookEvent, tool: str | None, input_json: str | None, result: str) -> int:
    """Run the hooks of hook files for one call, or another cause."""
    folder, subjects, arguments, fields = Path.cwd(), (), dict[str, object](), dict[str, object]()
    if event in ABOUT_CALLS:
        if tool is None or input_json is None:
            raise click.UsageError(f'{event} needs a tool and its input, such as Bash \'{{"command":"ls"}}\'')
        name, arguments = tool_of_name(tool), _arguments(input_json)
        subjects = names_of_tool(name)
        fields = {"tool_name": foreign_name(name), "tool_input": foreign_input(name, arguments, folder)}
        if event == "PostToolUse":
            fields["tool_response"] = foreign_result(name, arguments, result, folder)
    elif input_json is not None:
        raise click.UsageError(f"{event} is not about a call; it takes only the fields of its input as JSON")
    elif tool is not None:
        fields = _arguments(tool)
    # As in a session, so that a hook that needs a secret fails here as it would there.
    withhold_named_secrets(load_settings(_locations()).settings)
    trust = folder_trust(folder, _locations())
    # Said first: the list of answers below is without those of the project.
    if trust.hooks_refusal:
        say(trust.hooks_refusal)
    matched = matched_hooks((*own_hooks(folder).hooks, *trust.hooks.hooks), event, subjects)
    if subjects:
        found = next((one for one in built_in_tools(folder) if one.name == subjects[-1]), None)
        matched = tuple(hook for hook in matched if rule_fits(hook.rule, found, arguments, folder))
    if not matched:
        say(f"no hook of a hook file is for {event}{f' of {tool}' if subjects else ''}")
        return 0
    common = {"session_id": "test", "transcript_path": os.devnull, "cwd": str(folder), "permission_mode": "default"}
    question = json.dumps(common | {"hook_event_name": event} | fields).encode()
    failed = 0
    for hook in matched:
        began = time.monotonic()
        answer = asyncio.run(run_hook(hook, question, folder, hook.timeout))
        details = (answer.failure, answer.reason, answer.context, answer.message, answer.stop_reason)
        detail = " · ".join(" ".join(text.split()) for text in details if text)
        changes = f" · input: {json.dumps(answer.updated_input)}" if answer.updated_input else ""
        ms = (time.monotonic() - began) * 1000
        say(f"{answer.word:<8} {ms:4.0f} ms{f' ({detail})' if detail else ''}{changes}  {hook.line}  ({hook.source})")
        failed += bool(answer.failure)
    return HOOK_FAILED if failed else 0


def _facts() -> tuple[HookFact, ...]:
    folder, loaded = Path.cwd(), load_settings(_locations())
    trust = folder_trust(folder, _locations())
    why_not = trust.hooks_refusal.partition(" not run: ")[2] or "you did not accept it"
    runs = (*own_hooks(folder).hooks, *trust.hooks.hooks) if loaded.settings.hook_files else ()
    return hook_facts(loaded, load_plugins(loaded.settings, folder), folder, runs, why_not=why_not)


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


def _locations() -> Locations:
    return Locations.of_user()


def _user_file() -> Path:
    return _locations().user_file
