"""What the question about a call tells of rules: the files that would keep them, and what they would have answered."""

from collections.abc import Sequence
from pathlib import Path

from tui_agent.agent import AgentLoop
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.messages import AssistantMessage, ToolCall
from tui_agent.protocol.permissions import GrantScope
from tui_agent.protocol.tool import Tool
from tui_agent.settings import Locations

from .rule_store import RuleStore
from .rules_and_tools import tool_finder

MOST_CALLS = 200
"""Calls, the newest ones, that are looked at: a person waits for the answer."""


class RuleImpact:
    """Implements `ui.bridge.services.GrantFacts` for one agent."""

    def __init__(self, loop: AgentLoop, policy: PermissionPolicy, locations: Locations, root: Path) -> None:
        self._loop = loop
        self._policy = policy
        self._store = RuleStore(locations, root)
        self._find = tool_finder(root)

    def file_of(self, scope: GrantScope) -> str | None:
        """The file that keeps rules of a scope."""
        path = self._store.file_of(scope)
        return None if path is None else str(path)

    def answered(self, rule: str, but_call: str) -> Sequence[str]:
        """The calls of this session that asked, or would ask now, and would pass with the rule."""
        lines = rule.splitlines()
        messages = [message for message in self._loop.history.messages() if isinstance(message, AssistantMessage)]
        calls = [call for message in messages for call in message.tool_calls if call.id != but_call]
        return [_words(call) for call in calls[-MOST_CALLS:] if self._is_answered(lines, call, self._find(call.name))]

    def _is_answered(self, lines: Sequence[str], call: ToolCall, tool: Tool | None) -> bool:
        """Whether the call asks as things are, and would pass with the rule."""
        if tool is None or call.malformed is not None:
            return False
        asks = self._policy.check(tool, call.arguments).decision == "ask"
        return asks and self._policy.passes_with(lines, tool, call.arguments)


def _words(call: ToolCall) -> str:
    """The call's name and the first text it is given."""
    given = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    return f"{call.name}  {given}"
