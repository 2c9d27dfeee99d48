"""Questions of servers: forms and pages for the user, requests to the model."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.headless.scripted_agent import bench_of
from tests.mcp.pools import hostile, running
from tests.mcp.test_agent import config_file
from tests.support.table import table
from tests.workbench.configuration.test_live_settings import options_for
from tests.workbench.quiet_bench import open_quietly
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.execution import ApprovalGate
from tui_agent.headless.command_handler import CommandHandler, PromptQueue
from tui_agent.headless.plain_commands import PlainCommands
from tui_agent.headless.plain_mode_output import OpenQuestion, PlainReporter
from tui_agent.mcp.client_callbacks import fields_of
from tui_agent.mcp.server_parts import (
    QuestionAnswer,
    SampledMessage,
    SamplingAnswer,
    SamplingRequest,
    ServerQuestions,
)
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import ApprovalRequested
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.pipes import InputLine
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.providers import ScriptedProvider, call, reply
from tui_agent.workbench.tool_servers import ServerAnswers

PROPERTIES: dict[str, Any] = {
    "name": {"type": "string", "title": "Your\u202e name", "minLength": 2, "maxLength": 5},
    "mail": {"type": "string", "format": "email"},
    "day": {"type": "string", "format": "date"},
    "age": {"type": "integer", "minimum": 18, "maximum": 99, "default": 20},
    "share": {"type": "number"},
    "sure": {"type": "boolean", "default": True},
    "colour": {"type": "string", "oneOf": [{"const": "r", "title": "red"}, {"const": "g", "title": "green"}]},
    "size": {"type": "string", "enum": ["s", "m"], "default": "xl"},
    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "maxItems": 2},
    "api_key": {"type": "string"},
}
FORM = {"type": "object", "properties": PROPERTIES, "required": ["name"]}


def question() -> ServerQuestion:
    return ServerQuestion(server="h", kind="form", fields=fields_of(FORM))


@table(
    ("values", "problem"),
    [
        ({"name": "Ada", "age": 30.0, "sure": False, "colour": "green", "tags": ["a", "c"]}, ""),
        ({}, "Your\\u202e name: a value is required"),
        ({"name": "A"}, "at least 2 characters"),
        ({"name": "Ada Lovelace"}, "at most 5 characters"),
        ({"name": 3}, "text is expected"),
        ({"name": "Ada", "mail": "nowhere"}, "an e-mail address is expected"),
        ({"name": "Ada", "day": "31.3."}, "a date such as 2026-03-31 is expected"),
        ({"name": "Ada", "age": 17}, "age: at least 18"),
        ({"name": "Ada", "age": 20.5}, "a whole number is expected"),
        ({"name": "Ada", "age": True}, "a whole number is expected"),
        ({"name": "Ada", "share": float("nan")}, "not a number"),
        ({"name": "Ada", "share": 10**400}, "not a number"),
        ({"name": "Ada", "sure": "yes"}, "true or false is expected"),
        ({"name": "Ada", "size": "xl"}, "it is not one of the choices"),
        ({"name": "Ada", "tags": ["a", "b", "c"]}, "at most 2 choices"),
        ({"name": "Ada", "tags": ["a", "a"]}, "different texts are expected"),
        ({"name": "Ada", "more": 1}, "the form has no field more"),
    ],
)
def test_values_are_checked_against_the_form(values: dict[str, object], problem: str) -> None:
    if not problem:
        expected = {"name": "Ada", "age": 30, "sure": False, "colour": "g", "tags": ["a", "c"]}
        assert question().content(values) == expected
        return
    with pytest.raises(ValueError, match=r".") as raised:
        question().content(values)
    assert problem in str(raised.value)


@table(
    "schema",
    [
        {"type": "array"},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {"type": ["string"]}}},
        {"properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"a": {"enum": [1, 2]}}},
        {"properties": {str(n): {"type": "string"} for n in range(100)}},
        {"properties": {"a": {"enum": [str(n) for n in range(1_000)]}}},
    ],
)
def test_a_schema_that_is_not_a_form_is_refused(schema: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        fields_of(schema)


class FakeAgent:
    """An agent with one open question."""

    running = True

    def __init__(self) -> None:
        question = ServerQuestion(server="h", kind="form", fields=fields_of(FORM))
        request = ApprovalRequest(request_id="q", call_id="", digest="", tool="mcp__h", args={}, question=question)
        self.pending_calls = [request]
        self.decisions: list[ApprovalDecision] = []

    def resolve_approval(self, request_id: str, decision: ApprovalDecision, /, *, by: str = "user") -> bool:
        self.decisions.append(decision)
        return True


class Lines:
    """The input of a client."""

    def __init__(self, *lines: JsonObject) -> None:
        self._lines = [json.dumps(line).encode() for line in lines]

    async def next(self) -> InputLine | None:
        return InputLine(self._lines.pop(0)) if self._lines else None


async def test_a_client_answers_a_form_and_a_wrong_answer_leaves_it_open() -> None:
    agent, errors = FakeAgent(), list[str]()
    line: JsonObject = {"type": "approval", "request_id": "q", "decision": "approve"}
    handler = CommandHandler(bench_of(agent), PromptQueue(), lambda text, _: errors.append(text))

    await handler.serve(Lines(line, {**line, "input": {"name": "Ada"}}, {**line, "decision": "skip"}))  # type: ignore[arg-type]

    assert errors == ["Line 1 of the input was skipped: the form of h: Your\\u202e name: a value is required"]
    assert [(one.decision, one.input) for one in agent.decisions] == [("approve", {"name": "Ada"}), ("skip", None)]


async def test_a_form_is_answered_in_plain_mode() -> None:
    agent, said = FakeAgent(), list[str]()
    reporter = PlainReporter(lambda request: [request.tool], clock=lambda: 0.0)
    reporter.questions["q"] = OpenQuestion(agent.pending_calls[0], -10.0)
    commands = PlainCommands(
        bench_of(agent), PromptQueue(), reporter, lambda *lines: said.extend(lines), clock=lambda: 0.0
    )  # type: ignore[arg-type]

    for line in ("y", "name=A", "nobody=1", "name=Ada; age=30; tags=a,c"):
        await commands._handle(line)

    assert "Type the answer as NAME=VALUE" in said[0]
    assert [text for text in said if "not sent" in text] == [
        "The form was not sent: Your\\u202e name: at least 2 characters.",
        "The form was not sent: it has no field nobody.",
    ]
    assert agent.decisions[0].input == {"name": "Ada", "age": 30, "tags": ["a", "c"]}


def answered(result: str) -> Any:
    return json.loads(result.partition("\n")[2])


async def test_questions_reach_the_user_and_answers_the_server() -> None:
    asked: list[ServerQuestion] = []
    extended: list[str] = []
    answers = [
        QuestionAnswer("accept", {"name": "Ada"}),
        QuestionAnswer("decline"),
        QuestionAnswer("accept"),
        QuestionAnswer("accept"),
    ]

    async def ask(question: ServerQuestion) -> QuestionAnswer:
        asked.append(question)
        if len(asked) > 4:
            await asyncio.Event().wait()
        return answers[len(asked) - 1]

    questions = ServerQuestions(ask=ask, extend_call=lambda call_id, _: extended.append(call_id))
    async with running(hostile("questions"), questions=questions) as servers:
        assert answered((await servers.call("ask")).text) == {"action": "accept", "content": {"name": "Ada"}}
        assert answered((await servers.call("ask")).text) == {"action": "decline"}
        page = {"mode": "url", "message": "Pay\u202e", "url": "https://pay.example/1", "elicitationId": "1"}
        assert answered((await servers.call("ask", {"params": page})).text) == {"action": "accept"}
        with pytest.raises(ToolError, match=r"needed the user to open a page first, which they agreed to. Repeat"):
            await servers.call("page")

        # A question ends with the call that it belongs to; the server may be wrong in any way.
        assert (await servers.call("leave")).text.endswith("left")
        for url in ("file:///etc/passwd", "javascript:1", "x" * 9, *DECEPTIVE_URLS):
            refused = answered((await servers.call("ask", {"params": {**page, "url": url}})).text)
            assert "not a plain web address" in refused["message"]
        refused = answered((await servers.call("ask", {"method": "sampling/createMessage", "params": SAMPLE})).text)
        assert refused["message"] == "Sampling not supported"

    assert [one.kind for one in asked] == ["form", "form", "url", "url", "url"]
    assert {one.server for one in asked} == {"h"}
    assert asked[2].message == "Pay\\u202e"
    assert set(extended) == {"call"}


DECEPTIVE_URLS = (
    "https://a@b.example/",
    "https://ex\u0430mple.com/",
    "https://evil.example\\.bank.example/",
    "https://evil.example%2f.bank.example/",
    "https://evil.example:1\\.bank.example/",
)
"""Addresses of another host than the reader takes them for."""

SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Hi\u200b"}}],
    "systemPrompt": "Be brief.",
    "maxTokens": 10,
    "stopSequences": ["END"],
}


async def test_a_server_asks_the_model_only_if_its_settings_allow_it() -> None:
    asked: list[SamplingRequest] = []

    async def sample(request: SamplingRequest) -> SamplingAnswer:
        asked.append(request)
        if len(asked) > 1:
            raise ToolError("The user rejected the sampling request.")
        return SamplingAnswer("Hello END and more", "model-1", "end_turn")

    wanted = {"method": "sampling/createMessage", "params": SAMPLE}
    async with running(hostile(sampling=True), questions=ServerQuestions(sample=sample)) as servers:
        said = answered((await servers.call("ask", wanted)).text)
        assert said == {
            "role": "assistant",
            "content": {"type": "text", "text": "Hello "},
            "model": "model-1",
            "stopReason": "stopSequence",
        }
        said = answered((await servers.call("ask", wanted)).text)
        assert said == {"code": -1, "message": "The user rejected the sampling request."}
        sound = {"role": "user", "content": {"type": "audio", "data": "", "mimeType": "audio/wav"}}
        said = answered((await servers.call("ask", {**wanted, "params": {**SAMPLE, "messages": [sound]}})).text)
        assert said["message"] == "content of type audio is not supported in sampling requests"

    assert len(asked) == 2
    assert (asked[0].system, asked[0].max_tokens) == ("Be brief.", 10)
    assert asked[0].messages[0].blocks[0].text == "Hi\\u200b"  # pyright: ignore


async def test_a_question_passes_the_approval_gate_and_its_secrets_stay_out_of_events(tmp_path: Path) -> None:
    options = replace(options_for(tmp_path), rules=(("allow", "mcp__h__*"),), mcp_config=config_file(tmp_path))
    form = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "password": {"type": "string"}},
        "required": ["name"],
    }
    ask = call("mcp__h__ask", params={"mode": "form", "message": "Who?", "requestedSchema": form})
    async with open_quietly(options) as bench:
        asked: list[ApprovalRequest] = []

        def approve(request: ApprovalRequest) -> ApprovalDecision:
            asked.append(request)
            return ApprovalDecision(decision="approve", input={"name": "Ada", "password": "hunter2"})

        bench.agent.gate.approver = approve
        bench.agent.provider = ScriptedProvider([reply(ask), reply("done")])
        with bench.events.subscribe() as subscription:
            await bench.agent.run("go")
            events = subscription.drain()

        assert asked[0].question is not None
        assert [field.name for field in asked[0].question.fields] == ["name", "password"]
        resolved = [one.event for one in events if one.type == "approval.resolved"]
        assert [event.answers for event in resolved] == [{"name": "Ada"}]  # pyright: ignore
        hidden = [one for one in events if "hunter2" in one.to_json()]
        assert {one.type for one in hidden} <= {"tool.ended", "message.started", "message.ended", "context.usage"}, (
            "only the server itself repeats it"
        )

    # Without a user, the question is declined at once.
    async with open_quietly(options, watched=False) as bench:
        bench.agent.provider = ScriptedProvider([reply(ask), reply("done")])
        with bench.events.subscribe() as subscription:
            await bench.agent.run("go")
            events = subscription.drain()
        texts = [one.to_json() for one in events if one.type == "tool.ended"]
        assert "decline" in texts[0]
        assert any(isinstance(one.event, ApprovalRequested) for one in events)


async def test_the_user_agrees_to_a_request_to_the_model_and_its_usage_counts() -> None:
    requests: list[ApprovalRequest] = []
    decisions = [ApprovalDecision(decision="approve"), ApprovalDecision(decision="deny")]

    def decide(request: ApprovalRequest) -> ApprovalDecision:
        requests.append(request)
        return decisions[len(requests) - 1]

    provider = ScriptedProvider([reply("Hello")])
    loop = AgentLoop(AgentLoopConfig(provider=provider, gate=ApprovalGate(approver=decide)))
    answers = ServerAnswers(loop)
    messages = (SampledMessage("user", (TextBlock(text="Hi"),)),)
    wanted = SamplingRequest("h", messages, "Be brief.", 1_000_000, 0.5)

    with loop.bus.subscribe() as subscription:
        assert (await answers.sample(wanted)).text == "Hello"
        kinds = [envelope.type for envelope in subscription.drain()]
    with pytest.raises(ToolError, match="The user rejected"):
        await answers.sample(wanted)

    limit = provider.model.max_output_tokens
    shown = {"model": provider.model.name, "max_tokens": limit, "system": "Be brief.", "1. user": "Hi"}
    assert requests[0].args == shown
    assert (provider.requests[0].max_tokens, provider.requests[0].temperature) == (limit, 0.5)
    assert len(provider.requests) == 1
    assert "usage.updated" in kinds
    assert loop.history.length == 0, "it is not part of the conversation"
