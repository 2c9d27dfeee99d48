"""Questions that go elsewhere: to real commands and a real server on the loopback interface, and their answers."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.table import table
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.execution import ApprovalGate
from tui_agent.library import coding_tools
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import ApprovalResolved, ToolEnded, Warned
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.server_question import FieldChoice, FormField, ServerQuestion
from tui_agent.providers import ScriptedProvider, call, reply
from tui_agent.providers.demo.loopback_http import HttpReply, HttpRequest, LoopbackServer
from tui_agent.settings import NotifySettings
from tui_agent.workbench.notifiers import MAX_ARGUMENTS, Notifiers, Tokens

ASK = call("write", path="a.txt", content="x\n")


class Server(LoopbackServer):
    """Server that keeps what it gets, and answers by a function of the question."""

    def __init__(self, answer: Callable[[Any], Any] = lambda _: None, status: int = 200) -> None:
        super().__init__(self._reply)
        self.requests: list[HttpRequest] = []
        self.said, self.status = answer, status

    async def _reply(self, request: HttpRequest, reply: HttpReply) -> None:
        self.requests.append(request)
        is_json = request.headers.get("content-type") == "application/json"
        answer: Any = self.said(json.loads(request.body) if is_json else None)
        if answer is asyncio.sleep:
            await asyncio.sleep(60)
            return
        await reply.send_json(self.status, answer or {})


def agent_in(folder: Path, *notifiers: NotifySettings, watched: bool = True, step: Any = ASK) -> AgentLoop:
    """Return an agent that asks about one call."""
    gate = ApprovalGate(interactive=watched)
    config = AgentLoopConfig(
        provider=ScriptedProvider([reply(step), "done"]),
        tools=coding_tools(folder),
        workspace=folder,
        policy=PermissionPolicy(folder, mode=PermissionMode.ASK),
        gate=gate,
        session_id="s1",
    )
    loop = AgentLoop(config)
    gate.approver = Notifiers(notifiers, "s1", folder, loop.bus, watched=watched).ask
    return loop


async def outcome(loop: AgentLoop, user: ApprovalDecision | None = None) -> tuple[ApprovalResolved, ToolEnded, str]:
    """Run the agent; return the answer, the end of the call and the warnings. The user answers after a warning."""

    def answer(_: object) -> None:
        if user is not None:
            loop.config.gate.resolve(loop.config.gate.pending[0].request_id, user)  # type: ignore[union-attr]

    loop.bus.on(Warned, answer)
    with loop.bus.subscribe() as subscription:
        async with asyncio.timeout(60):
            await loop.run("go")
        events = [envelope.event for envelope in subscription.drain()]
    (resolved,) = [event for event in events if isinstance(event, ApprovalResolved)]
    (ended,) = [event for event in events if isinstance(event, ToolEnded)]
    return resolved, ended, "\n".join(event.text for event in events if isinstance(event, Warned))


def signed(question: Any, **fields: Any) -> dict[str, Any]:
    return {"token": question["token"], "answer": "allow"} | fields


def notifier(**fields: Any) -> NotifySettings:
    return NotifySettings.model_validate({"name": "phone", "after": 0, "answers": True, **fields})


async def test_a_server_gets_the_question_and_allows_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONE_TOKEN", "tk_0123456789abcdef")
    step = call("write", path="a.txt", content="tk_0123456789abcdef ghp_0123456789abcdefghij")
    async with Server(signed) as server:
        loop = agent_in(tmp_path, notifier(url=server.base_url + "/q", token_env="PHONE_TOKEN"), step=step)
        resolved, ended, warnings = await outcome(loop)

    (request,) = server.requests
    question = json.loads(request.body)
    assert (resolved.decision, resolved.by, resolved.via, resolved.scope) == ("approve", "user", "phone", "once")
    assert (ended.status, warnings) == ("ok", "")
    assert request.headers["authorization"] == "Bearer tk_0123456789abcdef"
    assert question["args"] == {"path": "a.txt", "content": "[hidden] [hidden]"}
    assert (question["session"], question["call"], question["answers"]) == ("s1", resolved.call_id, ["allow", "deny"])
    assert str(tmp_path) in question["text"]


@table(
    ("changed", "warning"),
    [
        ({"token": "x"}, "the token is not that of this question"),
        ({"token": None}, "the token is not that of this question"),
        ({"token": "\ud83d.x"}, "the token is not that of this question"),
        ({"answer": "always"}, "'always' is not allow or deny"),
        ({"scope": "session"}, "'scope' is not for answers from elsewhere"),
        ({"rule": "bash"}, "'rule' is not for answers from elsewhere"),
        ({"input": {"path": "b.txt"}}, "'input' is only for forms"),
        ({"note": 3}, "its answer does not count"),
    ],
)
async def test_an_answer_that_does_not_count_changes_nothing(
    changed: dict[str, Any], warning: str, tmp_path: Path
) -> None:
    async with Server(lambda question: signed(question, **changed)) as server:
        loop = agent_in(tmp_path, notifier(url=server.base_url))
        resolved, _, warnings = await outcome(loop, ApprovalDecision(decision="deny", note="mine"))

    assert (resolved.decision, resolved.via, resolved.note) == ("deny", "", "mine")
    assert warning in warnings
    assert not (tmp_path / "a.txt").exists()


async def test_the_first_answer_wins_and_ends_the_other_questions(tmp_path: Path) -> None:
    async with Server(lambda _: asyncio.sleep) as slow, Server(signed) as fast:
        slow_command = notifier(command=f"echo $$ > {tmp_path}/pid; exec sleep 60", name="script")
        others = (slow_command, notifier(url=slow.base_url, name="slow"))
        resolved, ended, warnings = await outcome(agent_in(tmp_path, *others, notifier(url=fast.base_url)))

    assert (resolved.via, ended.status, warnings) == ("phone", "ok", "")


async def test_ntfy_gets_text_and_its_answer_never_counts(tmp_path: Path) -> None:
    async with Server(lambda _: {"id": "1", "answer": "allow"}) as server:
        pushed = NotifySettings(ntfy=server.base_url + "/topic", after=0)

        async def user_answers() -> None:
            while not server.requests:
                await asyncio.sleep(0.01)
            assert loop.config.gate is not None
            loop.config.gate.resolve(loop.config.gate.pending[0].request_id, ApprovalDecision(decision="approve"))

        loop = agent_in(tmp_path, pushed)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(user_answers())
            resolved, _, warnings = await outcome(loop)

    (request,) = server.requests
    assert (request.headers["title"], request.target, warnings) == ("tui-agent: write", "/topic", "")
    assert "a.txt" in request.body.decode()
    assert b"token" not in request.body
    assert resolved.via == ""


@table(
    ("fields", "words"),
    [
        ({"command": "exit 3"}, "exit code 3"),
        ({"command": "echo '{}'"}, ""),
        ({"command": "sleep 60", "timeout": 0.05}, ""),
        ({"url": "http://127.0.0.1:9/"}, "its server cannot be reached"),
        ({"url": "http://127.0.0.1:9/", "token_env": "NOT_SET_HERE"}, "the variable NOT_SET_HERE is not set"),
    ],
)
async def test_without_a_user_a_call_is_denied_if_no_answer_comes(
    fields: dict[str, Any], words: str, tmp_path: Path
) -> None:
    resolved, ended, warnings = await outcome(agent_in(tmp_path, notifier(**fields), watched=False))

    assert (resolved.decision, resolved.by, ended.status) == ("deny", "nobody", "denied_policy")
    assert "no answer from phone" in resolved.note
    assert words in warnings
    assert bool(words) == bool(warnings)


async def test_a_refusal_of_the_server_is_named_and_a_long_input_can_only_be_denied(tmp_path: Path) -> None:
    step = call("write", path="a.txt", content="x" * MAX_ARGUMENTS)
    async with Server(status=403) as server:
        loop = agent_in(tmp_path, notifier(url=server.base_url), watched=False, step=step)
        _, _, warnings = await outcome(loop)

    question = json.loads(server.requests[0].body)
    assert "its server answers with status 403" in warnings
    assert (question["args"], question["answers"]) == (None, ["deny"])


@table(
    ("given", "values"),
    [({"size": "big"}, {"size": "big"}), ({"size": "huge"}, None), ({}, None), (None, None), ({"other": 1}, None)],
)
async def test_a_form_is_answered_with_its_values(given: Any, values: Any, tmp_path: Path) -> None:
    field = FormField(name="size", kind="choice", choices=(FieldChoice(value="big"),), required=True)
    question = ServerQuestion(server="shop", kind="form", message="Which size?", fields=(field,))
    request = ApprovalRequest(call_id="", digest="", tool="", args={}, question=question)
    async with Server(lambda question: signed(question, input=given)) as server:
        asking = Notifiers([notifier(url=server.base_url)], "s1", tmp_path, EventBus(), watched=True)
        decision = await asking.ask(request)

    asked = json.loads(server.requests[0].body)
    assert (asked["title"], asked["question"]["fields"][0]["name"]) == ("tui-agent: shop", "size")
    assert asked["text"].splitlines()[:2] == ["Which size?", "size (big)"]
    assert (decision.input if decision else None) == values


def test_a_token_is_good_for_one_answer_of_one_notifier_to_one_question_in_time() -> None:
    tokens, request = Tokens(), ApprovalRequest(call_id="1", digest="d", tool="bash", args={})
    other = ApprovalRequest(call_id="1", digest="e", tool="bash", args={})
    token = tokens.new("phone", request, 60)

    assert not tokens.use(token, "script", request)
    assert not tokens.use(token, "phone", other)
    assert not Tokens().use(token, "phone", request)
    assert tokens.use(token, "phone", request)
    assert not tokens.use(token, "phone", request)
    assert not tokens.use(tokens.new("phone", request, -1), "phone", request)


@table(
    ("fields", "words"),
    [
        ({}, "one of command, url and ntfy"),
        ({"command": "x", "url": "https://a.b"}, "one of command, url and ntfy"),
        ({"command": "python3"}, "would run its input as a script"),
        ({"url": "ftp://a"}, "is not a URL"),
        ({"ntfy": "https://ntfy.sh/x", "answers": True}, "ntfy only informs"),
        ({"url": "http://10.0.0.1/x", "answers": True}, "answers of another machine need https"),
    ],
)
def test_wrong_notifiers_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        NotifySettings(**fields)
