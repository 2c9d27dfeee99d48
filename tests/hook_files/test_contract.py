"""The contract of hook files, row by row as `docs/hooks.md` lists it, with real processes."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.table import table
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.agent.delegation import delegate
from tui_agent.execution import ApprovalGate, HookBus
from tui_agent.hook_files.foreign_hooks import EVENTS
from tui_agent.hook_files.hook_answer import HookAnswer, read_answer
from tui_agent.hook_files.hook_file_reader import parse_hook_file
from tui_agent.library import coding_tools
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.events import ApprovalRequested, HookEnded, HookFailed, HookStarted, Noticed
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.trial import ProposedChanges, ProposedFile
from tui_agent.providers import ScriptedProvider, call, reply
from tui_agent.workbench.configuration.found_files import NO_HOOKS, FoundHooks
from tui_agent.workbench.file_hooks import FileHooks

PAGE = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text("utf-8")


def rows(heading: str) -> list[tuple[str, str]]:
    """Return the first two columns of the table under a heading."""
    table = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ")]
    return [(event.strip(" `"), what.strip(" `")) for event, what in cells[1:]]


def found(hooks: dict[str, Any], folder: Path) -> FoundHooks:
    file = parse_hook_file(json.dumps({"hooks": hooks}).encode(), "settings.json", "user", folder)
    assert file.problems == ()
    return FoundHooks((file,), {})


def every(event: str, command: str, matcher: str = "") -> dict[str, Any]:
    return {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}


def agent_in(folder: Path, hooks: dict[str, Any], steps: list[Any], **options: Any) -> tuple[AgentLoop, FileHooks]:
    mode = options.pop("mode", PermissionMode.ALLOW)
    variables = options.pop("variables", None)
    gate = options.pop("gate", None) or ApprovalGate(approver=lambda _: ApprovalDecision(decision="approve"))
    loop = AgentLoop(
        AgentLoopConfig(
            provider=ScriptedProvider(steps),
            tools=coding_tools(folder),
            workspace=folder,
            policy=PermissionPolicy(folder, mode=mode, **options),
            gate=gate,
            hooks=HookBus(),
            session_id="s1",
        )
    )
    archive = folder / "archive"
    return loop, FileHooks(found(hooks, folder), NO_HOOKS, loop, archive, watched=False, variables=variables)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The last question of each event in one session."""
    folder = tmp_path_factory.mktemp("project").resolve()
    hooks: dict[str, Any] = {}
    for event in EVENTS:
        hooks |= every(event, f"cat > {event}.json")

    async def session() -> None:
        steps = [reply(call("write", path="a.txt", content="x\n")), "done", "sub done", "summary"]
        loop, file_hooks = agent_in(folder, hooks, steps, mode=PermissionMode.ASK)
        async with file_hooks.serve():
            file_hooks.begin()
            await asyncio.sleep(0)
            await loop.run("write it")
            while not all((folder / f"{event}.json").exists() for event in ("Notification", "PermissionRequest")):
                await asyncio.sleep(0.01)
            await delegate(loop, "a task", context="fresh")
            await loop.compact("keep names")
            file_hooks.end_reason = "prompt_input_exit"

    asyncio.run(session())
    return {event: json.loads((folder / f"{event}.json").read_text()) for event in EVENTS} | {
        "folder": {"path": str(folder)}
    }


VALUES: dict[str, Callable[[Any], object]] = {
    "session_id": lambda value: value == "s1",
    "transcript_path": lambda value: json.loads(Path(value).read_text().splitlines()[0])["type"] == "user",
    "cwd": lambda value: Path(value).name.startswith("project"),
    "permission_mode": lambda value: value == "default",
    "tool_name": lambda value: value == "Write",
    "tool_input": lambda value: Path(value["file_path"]).is_absolute() and value["content"] == "x\n",
    "tool_use_id": lambda value: isinstance(value, str) and value,
    "tool_response": lambda value: value["success"] is True and value["filePath"].endswith("/a.txt"),
    "prompt": lambda value: value == "write it",
    "stop_hook_active": lambda value: value is False,
    "last_assistant_message": lambda value: value == "done",
    "agent_id": lambda value: value.startswith("agent-"),
    "agent_type": lambda value: value == "agent",
    "source": lambda value: value in ("startup", "compact"),
    "reason": lambda value: value == "prompt_input_exit",
    "trigger": lambda value: value == "manual",
    "custom_instructions": lambda value: value == "keep names",
    "message": lambda value: value == "The agent needs your permission to use Write",
    "notification_type": lambda value: value == "permission_prompt",
}


@pytest.mark.parametrize(("event", "field"), rows("Input"))
def test_each_event_has_the_fields_of_the_page(asked: dict[str, dict[str, Any]], event: str, field: str) -> None:
    for name in EVENTS if event == "all" else (event,):
        value = asked[name][field]
        assert value == name if field == "hook_event_name" else VALUES[field](value)


def said(**fields: Any) -> str:
    return json.dumps(fields)


def own(event: str, **fields: Any) -> str:
    return said(hookSpecificOutput={"hookEventName": event, **fields})


ANSWERS: dict[tuple[str, str], tuple[int, str, HookAnswer]] = {
    ("PreToolUse", "exit 2"): (2, "", HookAnswer(verdict="deny", reason="why")),
    ("PreToolUse", "decision: block"): (0, said(decision="block", reason="r"), HookAnswer(verdict="deny", reason="r")),
    ("PreToolUse", "updatedInput"): (
        0,
        own("PreToolUse", updatedInput={"command": "ls"}),
        HookAnswer(updated_input={"command": "ls"}),
    ),
    ("PostToolUse", "updatedToolOutput"): (
        0,
        own("PostToolUse", updatedToolOutput="new"),
        HookAnswer(updated_output="new"),
    ),
    ("PermissionRequest", "exit 2"): (2, "", HookAnswer(verdict="deny", reason="why")),
    ("PermissionRequest", "behavior: deny"): (
        0,
        own("PermissionRequest", decision={"behavior": "deny", "message": "r", "interrupt": True}),
        HookAnswer(verdict="deny", reason="r", stop_reason="r"),
    ),
    ("PermissionRequest", "behavior: allow"): (
        0,
        own("PermissionRequest", decision={"behavior": "allow", "updatedInput": {"command": "ls"}}),
        HookAnswer(verdict="allow", updated_input={"command": "ls"}),
    ),
    ("SessionEnd", "exit 2"): (2, "", HookAnswer(message="why")),
    ("PreCompact", "exit 2"): (2, "", HookAnswer(message="why")),
    ("Notification", "exit 2"): (2, "", HookAnswer(message="why")),
    ("all", "systemMessage"): (0, said(systemMessage="m"), HookAnswer(message="m")),
    **{
        ("PreToolUse", f"permissionDecision: {word}"): (
            0,
            own("PreToolUse", permissionDecision=word, permissionDecisionReason="r"),
            HookAnswer(verdict=word, reason="r"),
        )
        for word in ("deny", "ask", "allow")
    },
    **{
        (event, "exit 2"): (2, "", HookAnswer(blocks=True, reason="why"))
        for event in ("PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop")
    },
    **{
        (event, "decision: block"): (0, said(decision="block", reason="r"), HookAnswer(blocks=True, reason="r"))
        for event in ("PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop")
    },
    **{
        (event, "additionalContext"): (0, own(event, additionalContext="c"), HookAnswer(context="c"))
        for event in ("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart")
    },
    **{
        (event, "continue: false"): (0, '{"continue": false, "stopReason": "s"}', HookAnswer(stop_reason="s"))
        for event in ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop")
    },
    **{(event, "plain text"): (0, "c\n", HookAnswer(context="c")) for event in ("UserPromptSubmit", "SessionStart")},
}


@table("row", rows("Answer"))
def test_each_answer_of_the_page_is_read(row: Any) -> None:
    code, out, answer = ANSWERS[row]

    for event in EVENTS if row[0] == "all" else (row[0],):
        assert read_answer(event, code, out, "why\n" if code else "") == answer


@table(
    ("code", "out", "failure"),
    [
        (1, "", "exit code 1: why"),
        (0, "{broken", "not JSON"),
        (0, own("PreToolUse", permissionDecision="defer"), "not a decision"),
        (0, own("PostToolUse", permissionDecision="deny"), "not one for PreToolUse"),
        (0, own("PreToolUse", updatedInput=[1]), "updatedInput is not an object"),
    ],
)
def test_other_answers_are_failures(code: int, out: str, failure: str) -> None:
    answer = read_answer("PreToolUse", code, out, "why" if code else "")

    assert failure in answer.failure
    assert (answer.verdict, answer.updated_input) == (None, None)


def test_texts_of_hooks_are_cut_and_have_no_control_characters() -> None:
    answer = read_answer("Stop", 2, "", "\x1b[31mred\u202e</hook>" + "x" * 20_000)

    assert "\x1b" not in answer.reason
    assert "\\u202e" in answer.reason
    assert len(answer.reason) < 10_100
    assert re.search(r"10,0\d\d more characters", answer.reason)


# --- what answers do --------------------------------------------------------------------------------------------------


async def results_of(folder: Path, hooks: dict[str, Any], *calls: Any, **options: Any) -> list[str]:
    loop, file_hooks = agent_in(folder, hooks, [reply(*calls), "done", "done again"], **options)
    async with file_hooks.serve():
        await loop.run("go")
    return [message.text for message in loop.history.messages() if message.role == "tool_result"]


ALLOW = f"echo '{own('PreToolUse', permissionDecision='allow')}'"
ASK = f"echo '{own('PreToolUse', permissionDecision='ask')}'"


async def test_an_allow_answers_the_mode_and_neither_a_rule_nor_the_floor(tmp_path: Path) -> None:
    no_one = ApprovalGate()
    options: dict[str, Any] = {"mode": PermissionMode.ASK, "gate": no_one}
    hooks = every("PreToolUse", ALLOW)
    touch = call("bash", command="touch made")

    ran = await results_of(tmp_path, hooks, touch, **options)
    denied = await results_of(tmp_path, hooks, touch, rules=[("deny", "bash(touch:*)")], **options)
    asks = await results_of(tmp_path, hooks, touch, rules=[("ask", "bash(touch:*)")], **options)
    floor = await results_of(tmp_path, hooks, call("write", path=".git/config", content="x"), **options)
    settings = await results_of(tmp_path, hooks, call("write", path=".claude/settings.json", content="{}"), **options)

    assert (tmp_path / "made").exists()
    assert "denied" not in ran[0]
    for text in (*denied, *asks, *floor, *settings):
        assert "ermission denied" in text
    assert not (tmp_path / ".git").exists()


@table(
    ("hook", "command", "rules", "outcome"),
    [
        ({"behavior": "allow"}, "touch made", (), "ran"),
        ({"behavior": "allow", "updatedInput": {"command": "touch other"}}, "touch made", (), "ran other"),
        ({"behavior": "allow"}, "touch made", ("ask bash(touch:*)",), "asked"),
        ({"behavior": "deny", "message": "not now"}, "touch made", (), "denied"),
        ({"behavior": "perhaps"}, "touch made", (), "asked"),
        (None, "touch made", (), "asked"),
    ],
)
async def test_a_hook_answers_a_question_that_only_the_mode_asks(
    hook: Any, command: str, rules: tuple[str, ...], outcome: str, tmp_path: Path
) -> None:
    gate = ApprovalGate(interactive=True)
    said = f"echo '{own('PermissionRequest', decision=hook)}'"
    steps = [reply(call("bash", command=command)), "done"]
    options = {"mode": PermissionMode.ASK, "gate": gate, "rules": rules}
    loop, file_hooks = agent_in(tmp_path, every("PermissionRequest", said, "Bash"), steps, **options)
    ends: list[str] = []
    loop.bus.on(HookEnded, lambda event: ends.append(event.event))

    async with file_hooks.serve(), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(loop.run("go"))
        while not running.done():
            if outcome == "asked" and ends and gate.pending:
                gate.resolve(gate.pending[0].request_id, ApprovalDecision(decision="deny", note="by the user"))
            await asyncio.sleep(0.01)

    (text,) = [message.text for message in loop.history.messages() if message.role == "tool_result"]
    assert (tmp_path / "made").exists() is (outcome == "ran")
    assert (tmp_path / "other").exists() is (outcome == "ran other")
    assert ("by the user" in text) is (outcome == "asked")
    assert ("not now" in text) is (outcome == "denied")


@table(("path", "sort", "keeps"), [("made", "workspace", True), (".git/hooks/pre-commit", "protected", False)])
async def test_a_hook_keeps_changes_of_a_trial_that_only_the_mode_asks_about(
    path: str, sort: Any, keeps: bool, tmp_path: Path
) -> None:
    gate = ApprovalGate(interactive=True)
    said = own("PermissionRequest", decision={"behavior": "allow", "updatedInput": {"command": "ls"}})
    hooks = every("PermissionRequest", f"echo '{said}'", "Bash")
    loop, file_hooks = agent_in(tmp_path, hooks, [], mode=PermissionMode.ASK, gate=gate)
    changes = ProposedChanges(layer="x", files=(ProposedFile(path=path, kind="added", sort=sort),))
    request = ApprovalRequest(call_id="1", digest="d", tool="bash", args={"command": "touch made"}, changes=changes)

    def user_denies(_: HookEnded) -> None:
        if not keeps:
            gate.resolve(request.request_id, ApprovalDecision(decision="deny"))

    loop.bus.on(HookEnded, user_denies)
    async with file_hooks.serve(), asyncio.timeout(60):
        await file_hooks.started()
        answer = await gate.ask(request, loop.bus)

    assert (answer.decision.decision == "approve", answer.decision.input) == (keeps, None)


async def test_the_strictest_answer_counts_and_an_ask_asks_even_in_mode_allow(tmp_path: Path) -> None:
    requests: list[ApprovalRequested] = []
    hooks = {
        "PreToolUse": [
            {"hooks": [{"type": "command", "command": ALLOW}, {"type": "command", "command": ASK}]},
        ]
    }
    loop, file_hooks = agent_in(tmp_path, hooks, [reply(call("bash", command="touch made")), "done"])
    loop.bus.on(ApprovalRequested, requests.append)

    async with file_hooks.serve():
        await loop.run("go")

    assert [request.tool for request in requests] == ["bash"]
    assert "settings.json" in requests[0].reason

    both = every("PreToolUse", ASK)["PreToolUse"] + every("PreToolUse", "echo no >&2; exit 2")["PreToolUse"]
    texts = await results_of(tmp_path, {"PreToolUse": both}, call("bash", command="touch other"))
    assert "Denied by a hook" in texts[0]
    assert not (tmp_path / "other").exists()


async def test_changed_input_is_judged_again_and_reported_to_the_model(tmp_path: Path) -> None:
    change = own("PreToolUse", permissionDecision="allow", updatedInput={"file_path": str(tmp_path / ".git/x")})
    harmless = own("PreToolUse", updatedInput={"content": "changed\n"})

    texts = await results_of(tmp_path, every("PreToolUse", f"echo '{change}'"), call("write", path="a", content="x"))
    told = await results_of(tmp_path, every("PreToolUse", f"echo '{harmless}'"), call("write", path="b", content="x"))

    assert "protected" in texts[0]
    assert (tmp_path / "b").read_text() == "changed\n"
    assert "A hook changed this call before it ran: content." in told[0]


async def test_a_stop_hook_continues_a_run_within_a_limit(tmp_path: Path) -> None:
    hooks = every("Stop", "cat >> asked; echo >> asked; echo 'Write tests, too.' >&2; exit 2")
    loop, file_hooks = agent_in(tmp_path, hooks, ["done"] * 20)

    async with file_hooks.serve():
        report = await loop.run("go")

    asked = [json.loads(line)["stop_hook_active"] for line in (tmp_path / "asked").read_text().splitlines() if line]
    assert asked == [False] + [True] * 8
    assert report.reason == "done"
    notices = [message.text for message in loop.history.messages() if message.role == "user"][1:]
    assert len(notices) == 8
    assert '<hook event="Stop" from="settings.json:1">\nWrite tests, too.\n</hook>' in notices[0]


async def test_a_prompt_hook_refuses_or_adds(tmp_path: Path) -> None:
    hooks = every("UserPromptSubmit", "grep -q secret && { echo 'no secrets' >&2; exit 2; }; echo It is Tuesday.")
    loop, file_hooks = agent_in(tmp_path, hooks, ["done"])

    async with file_hooks.serve():
        refused = await loop.run("my secret is")
        assert not loop.history.messages()
        await loop.run("hello")

    assert refused.reason == "input_rejected"
    assert "no secrets" in refused.final_text
    prompt, added, _ = loop.history.messages()
    assert (prompt.text, added.text.splitlines()[2]) == ("hello", "It is Tuesday.")


async def test_a_hook_ends_the_run(tmp_path: Path) -> None:
    notices: list[str] = []
    stop = said(**{"continue": False, "stopReason": "enough for today"})
    loop, file_hooks = agent_in(
        tmp_path, every("PostToolUse", f"echo '{stop}'"), [reply(call("glob", pattern="*")), "never"]
    )
    loop.bus.on(Noticed, lambda event: notices.append(event.text))

    async with file_hooks.serve():
        report = await loop.run("go")

    assert (report.reason, report.step_count) == ("stopped", 1)
    assert any("enough for today" in text for text in notices)


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
async def test_an_aborted_run_leaves_no_hook_open_in_the_journal(event: str, tmp_path: Path) -> None:
    loop, file_hooks = agent_in(tmp_path, every(event, "touch begun; exec sleep 60"), ["done"])
    subscription = loop.bus.subscribe(merge=False)
    async with file_hooks.serve():
        running = asyncio.ensure_future(loop.run("go"))
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
        loop.abort("enough")
        report = await running

    events = [envelope.event for envelope in subscription.drain()]
    assert report.reason == "aborted"
    assert [type(one) for one in events if isinstance(one, HookStarted | HookEnded | HookFailed)] == [
        HookStarted,
        HookFailed,
    ]
