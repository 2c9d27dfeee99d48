"""Hooks that are commands, run by real bash."""

import asyncio
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.execution.kit import FakePolicy, Ran, ScriptedTool, call, run
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus, ProcessHook
from tui_agent.execution.process_hook import MAX_OUTPUT_BYTES, HookProcess
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import HookEnded, HookFailed
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext, ToolResult


def hook(command: str, directory: Path, **settings: Any) -> ProcessHook:
    return ProcessHook(command, directory, {"PATH": os.environ["PATH"]}, **settings)


async def asked(command: str, directory: Path, event: Any = "before_tool", **settings: Any) -> Ran:
    hooks = HookBus()
    hook(command, directory, **settings).add_to(hooks, event)
    return await run([ScriptedTool()], [call(n=1)], hooks=hooks)


def is_gone(pid: int) -> bool:
    """Return True if a process has ended or is a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def let_programs_run() -> None:
    """Sleep without letting the loop run, so that only the started process gets time."""
    time.sleep(0.02)


async def eventually_gone(pid: int) -> None:
    async with asyncio.timeout(30):
        while not is_gone(pid):
            await asyncio.sleep(0.01)


@pytest.mark.skipif(not shutil.which("pkill"), reason="pkill is not installed")
async def test_a_hook_that_ends_programs_by_their_words_does_not_end_its_own_shell(tmp_path: Path) -> None:
    ran = await asked("pkill -f 'old-formatter --watch'; echo stopped >&2; exit 2", tmp_path)

    assert ran.texts == ["stopped"]


@pytest.mark.parametrize("command", ["echo oops >&2; exit 1", "kill -9 $$", "echo '{\"action\":'", "no_such_command"])
@pytest.mark.parametrize("fail_open", [False, True])
async def test_a_failing_hook_is_published_and_stops_the_call_unless_it_may_fail_open(
    command: str, fail_open: bool, tmp_path: Path
) -> None:
    ran = await asked(command, tmp_path, fail_open=fail_open)

    assert ran.statuses == ["ok" if fail_open else "denied_hook"]
    assert ran.of(HookFailed)[0].fail_open is fail_open


FLOOD = "head -c 3000000 /dev/zero | tr '\\0' x"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (f"{FLOOD}; exit 2", "denied_hook"),
        (f"{FLOOD} >&2; exit 2", "denied_hook"),
        (f"{FLOOD} >&2", "ok"),
        (f"{FLOOD}; exit 0", "ok"),
        (f"echo '{{'; {FLOOD}", "denied_hook"),
    ],
)
async def test_a_flood_of_output_does_not_hide_the_exit_code(command: str, status: str, tmp_path: Path) -> None:
    ran = await asked(command, tmp_path)

    assert ran.statuses == [status]
    assert len(ran.texts[0]) < 2 * MAX_OUTPUT_BYTES


@pytest.mark.parametrize(
    ("command", "status", "text"),
    [
        ("echo all is well", "ok", "act {'n': 1}"),
        ("echo 'not on a friday' >&2; exit 2", "denied_hook", "not on a friday"),
        ("echo '{}'", "ok", "act {'n': 1}"),
        ('echo \'{"action": "allow"}\'', "ok", "act {'n': 1}"),
        ('echo \'{"action": "deny", "reason": "no"}\'', "denied_hook", "no"),
        ('echo \'{"action": "deny"}\'', "denied_hook", "Denied by hook"),
        ('echo \'{"action": "skip"}\'', "skipped_hook", "skipped"),
        ('echo \'{"action": "skip", "result": "known"}\'', "skipped_hook", "known"),
        ('echo \'{"action": "override", "result": {"content": "known"}}\'', "overridden", "known"),
        ('echo \'{"action": "modify", "input": {"n": 2}}\'', "ok", "act {'n': 2}"),
        ('echo \'{"action": "modify"}\'', "denied_hook", "is not an answer to before_tool"),
        ('echo \'{"action": "dance"}\'', "denied_hook", "is not an answer to before_tool"),
    ],
)
async def test_the_exit_code_and_json_on_stdout_decide(command: str, status: str, text: str, tmp_path: Path) -> None:
    ran = await asked(command, tmp_path)

    assert ran.statuses == [status]
    assert text in ran.texts[0]
    assert ran.of(HookEnded) or ran.of(HookFailed)


async def test_an_allow_answers_a_question_only_if_hooks_are_trusted(tmp_path: Path) -> None:
    hooks = HookBus()
    hook('echo \'{"action": "allow"}\'', tmp_path).add_to(hooks, "before_tool")
    for may, status in ((False, "denied_policy"), (True, "ok")):
        options = ExecutionOptions(hook_may_approve=may)
        policy = FakePolicy({"act": "ask"})

        ran = await run([ScriptedTool()], [call()], options, hooks=hooks, policy=policy, gate=ApprovalGate())

        assert ran.statuses == [status]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("true", "act {'n': 1}"),
        ('echo \'{"result": "redacted"}\'', "redacted"),
        ("echo 'not to be seen' >&2; exit 2", "not to be seen"),
        ('echo \'{"action": "deny", "reason": "hidden"}\'', "hidden"),
    ],
)
async def test_it_may_replace_a_result(command: str, text: str, tmp_path: Path) -> None:
    assert (await asked(command, tmp_path, "after_tool")).texts == [text]


CALL = {"call_id": "c", "tool": "act", "input": {"n": 1}}
RESULT = {"content": "act {'n': 1}", "is_error": False, "details": None}


@pytest.mark.parametrize(
    ("event", "rest"),
    [
        ("before_tool", {}),
        ("after_tool", {"result": RESULT}),
        ("after_tool_observer", {"status": "ok", "result": RESULT}),
    ],
)
async def test_it_receives_exactly_the_documented_fields_and_the_given_environment(
    event: str, rest: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")

    await asked("cat > seen; env > env", tmp_path, event)

    assert json.loads((tmp_path / "seen").read_text()) == {"event": event, **CALL, **rest}
    assert "secret" not in (tmp_path / "env").read_text()


async def test_an_observer_receives_the_executed_arguments_and_the_published_result(tmp_path: Path) -> None:
    async def failing(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult.of_text(f"no {arguments}", is_error=True).model_copy(update={"details": {"code": 3}})

    hooks = HookBus()
    hook('echo \'{"action": "modify", "input": {"n": 2}}\'', tmp_path).add_to(hooks, "before_tool")
    hook('echo \'{"result": {"content": "hidden", "is_error": true, "details": {"code": 4}}}\'', tmp_path).add_to(
        hooks, "after_tool"
    )
    hook("cat > seen", tmp_path).add_to(hooks, "after_tool_observer")

    await run([ScriptedTool("act", failing)], [call(n=1)], hooks=hooks)

    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["tool"], seen["input"], seen["status"]) == ("act", {"n": 2}, "error")
    assert seen["result"] == {"content": "hidden", "is_error": True, "details": {"code": 4}}


async def test_an_observer_receives_the_fields_of_a_call_with_an_unknown_tool(tmp_path: Path) -> None:
    hooks = HookBus()
    hook("cat > seen", tmp_path).add_to(hooks, "after_tool_observer")

    await run([ScriptedTool()], [call("other", n=1)], hooks=hooks)

    seen = json.loads((tmp_path / "seen").read_text())
    assert seen.keys() == {"event", "call_id", "tool", "input", "status", "result"}
    assert (seen["tool"], seen["input"], seen["status"]) == ("other", {"n": 1}, "not_found")
    assert seen["result"]["is_error"]


async def test_an_unread_question_and_a_child_that_keeps_the_output_open_delay_nothing(tmp_path: Path) -> None:
    hooks = HookBus(timeout=None)
    hook("sleep 1000 & echo $! > child; exec 0<&-; exit 2", tmp_path).add_to(hooks, "before_tool")

    ran = await run([ScriptedTool()], [call(text="x" * 1_000_000)], hooks=hooks)

    assert ran.statuses == ["denied_hook"]
    assert not ran.of(HookFailed)
    await eventually_gone(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("fail_open", [False, True])
async def test_a_hook_that_times_out_has_failed(fail_open: bool, tmp_path: Path) -> None:
    ran = await asked("sleep 1000", tmp_path, timeout=0.2, fail_open=fail_open)

    failed = ran.of(HookFailed)[0]
    assert failed.timed_out
    assert "did not answer within 0.2 s" in failed.error
    assert ran.statuses == ["ok" if fail_open else "denied_hook"]


async def test_what_left_the_group_of_a_killed_hook_is_found_by_its_mark(tmp_path: Path) -> None:
    def marked(environment: Mapping[str, str]) -> tuple[Mapping[str, str], Callable[[int], object]]:
        return {**environment, "MARK": "ours"}, end

    def end(leader: int) -> None:
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)
        # It waits for that one only, so it may have ended by now.
        with suppress(ProcessLookupError):
            os.kill(leader, signal.SIGKILL)

    script = "setsid sleep 60 & echo $! > left.new; mv left.new left; echo $MARK > mark; wait"
    process = HookProcess(("bash", "-c", script), tmp_path, {"PATH": os.environ["PATH"]}, marked)
    running = asyncio.create_task(process.run(b""))
    async with asyncio.timeout(30):
        while not (tmp_path / "mark").exists():
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert (tmp_path / "mark").read_text() == "ours\n"
    await eventually_gone(int((tmp_path / "left").read_text()))


@pytest.mark.parametrize("is_starting", [False, True])
async def test_an_abandoned_hook_is_killed_with_its_group_also_during_its_start(
    tmp_path: Path, is_starting: bool
) -> None:
    hooks, token = HookBus(), CancellationToken()
    trap = "" if is_starting else "trap '' TERM; "
    hook(f"{trap}sleep 1000 & echo $! > part; echo $$ >> part; mv part pids; wait", tmp_path).add_to(
        hooks, "before_tool"
    )

    async with asyncio.TaskGroup() as group:
        running = group.create_task(run([ScriptedTool()], [call()], hooks=hooks, cancellation=token))
        while not (tmp_path / "pids").exists():
            await asyncio.sleep(0 if is_starting else 0.01)
            if is_starting:
                let_programs_run()
        token.cancel("enough")

    assert running.result().statuses == ["cancelled"]
    for pid in (tmp_path / "pids").read_text().split():
        await eventually_gone(int(pid))


@pytest.mark.parametrize("event", ["before_tol", "before_update"])
def test_only_some_questions_can_go_to_a_command(event: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="before_tool"):
        hook("true", tmp_path).add_to(HookBus(), event)


def test_a_command_of_another_type_is_refused(tmp_path: Path) -> None:
    wrong: Any = 3

    for make, words in (
        (lambda: ProcessHook(wrong, tmp_path, {}), "ProcessHook.command must be a shell command, got 3"),
        (lambda: ProcessHook("true", wrong, {}), "ProcessHook.working_dir must be a directory, got 3"),
        (lambda: ProcessHook("true", tmp_path, wrong), "ProcessHook.environment must be a mapping"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            make()
