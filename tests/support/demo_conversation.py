"""Conversations with the offline model's policy, as the engine has them: request in, answer out, results returned."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.support.wire_rules import problems_of
from tui_agent.protocol.messages import JsonObject
from tui_agent.providers.demo.demo_policy import next_turn
from tui_agent.providers.demo.demo_task import DemoTurn, read_request
from tui_agent.providers.demo.guided_tour import DemoWorkspace

ALL_TOOLS = ("read", "write", "edit", "bash", "glob", "grep", "todo")
WORKSHOP = DemoWorkspace("/tmp/tour", "python3 -m pytest -q /tmp/tour")
POSTPONED = "Skipped due to queued user message. Not run: the user sent a message first; read it, then decide."

Result = str | tuple[str, bool]
"""Text of a result, and True if it is an error."""
Execute = Callable[[str, JsonObject], Result]


def done(name: str, arguments: JsonObject) -> Result:
    """Return the same successful result for every call."""
    return f"{name} worked"


@dataclass
class DemoConversation:
    """Conversation with the policy."""

    execute: Execute = done
    tools: Iterable[str] = ALL_TOOLS
    demo_workspace: DemoWorkspace = WORKSHOP
    messages: list[dict[str, Any]] = field(default_factory=list)
    turns: list[DemoTurn] = field(default_factory=list)

    @property
    def last(self) -> DemoTurn:
        return self.turns[-1]

    def ask(self, *words: str) -> DemoTurn:
        """Send a prompt and return the first answer; further words are queued messages behind it."""
        self._say("user", *({"type": "text", "text": text} for text in words))
        return self._answer()

    def go_on(self, *words: str) -> DemoTurn:
        """Run the calls of the last answer and return the next one; `words` are messages the user wrote meanwhile."""
        calls = [block for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
        results = [self._result(call) for call in calls]
        self._say("user", *results, *({"type": "text", "text": text} for text in words))
        return self._answer()

    def finish(self, most: int = 20) -> DemoTurn:
        """Run calls until an answer has none, and return that answer."""
        while self.last.calls:
            assert len(self.turns) < most, "the conversation does not end"
            self.go_on()
        return self.last

    def request(self) -> dict[str, Any]:
        tools = [{"name": name, "description": name, "input_schema": {"type": "object"}} for name in self.tools]
        return {"model": "m", "max_tokens": 10, "stream": True, "tools": tools, "messages": self.messages}

    def _answer(self) -> DemoTurn:
        body = json.loads(json.dumps(self.request()))
        assert problems_of(body) == []
        turn = next_turn(read_request(body), self.demo_workspace)
        assert turn == next_turn(read_request(body), self.demo_workspace), "the same request has the same answer"
        assert bool(turn.calls) == (turn.waits is not None)
        calls = [
            {"type": "tool_use", "id": f"c{len(self.turns)}_{number}", "name": call.name, "input": call.arguments}
            for number, call in enumerate(turn.calls)
        ]
        text = [{"type": "text", "text": turn.text}] if turn.text else []
        self._say("assistant", *text, *calls)
        self.turns.append(turn)
        return turn

    def _result(self, call: dict[str, Any]) -> dict[str, Any]:
        result = self.execute(call["name"], call["input"])
        text, is_error = result if isinstance(result, tuple) else (result, False)
        content = [{"type": "text", "text": text}]
        return {"type": "tool_result", "tool_use_id": call["id"], "content": content, "is_error": is_error}

    def _say(self, role: str, *blocks: dict[str, Any]) -> None:
        self.messages.append({"role": role, "content": list(blocks)})


def called(turn: DemoTurn) -> list[tuple[str, Any]]:
    """Return the names of an answer's calls, each with its most significant argument."""
    return [
        (call.name, next((call.arguments[key] for key in ("command", "path", "pattern") if key in call.arguments), ""))
        for call in turn.calls
    ]
