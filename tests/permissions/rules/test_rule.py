"""Syntax and scope of rules."""

from typing import Any

import pytest

from tests.support.table import table
from tui_agent.permissions import Rule
from tui_agent.permissions.rules.rule import Intent
from tui_agent.protocol.errors import ConfigurationError


@table(
    ("verdict", "text", "words"),
    [
        ("maybe", "bash", "allow, ask or deny, not 'maybe'"),
        ("allow", "", "`tool` or `tool(pattern)`"),
        ("allow", "bash(ls", "`tool` or `tool(pattern)`"),
        ("allow", "bash ls", "`tool` or `tool(pattern)`"),
        ("allow", "(ls)", "`tool` or `tool(pattern)`"),
        ("allow", "bash()", "is empty; write `bash`"),
        ("allow", "bash(  )", "is empty"),
        ("allow", "bash(a\x00b)", "is empty"),
        ("allow", "fetch(https://example.org)", "`domain:HOST`"),
        ("allow", "fetch(domain:example.org/x)", "`domain:HOST`"),
        ("allow", "fetch(domain:)", "`domain:HOST`"),
    ],
)
def test_an_error_names_source_and_reason(verdict: str, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Rule.parse(verdict, text, "config.toml:7")

    assert str(caught.value).startswith("config.toml:7: ")
    assert words in str(caught.value)
    with pytest.raises(ConfigurationError, match=r"\A(?!config)"):
        Rule.parse(verdict, text)


@table(
    ("rule", "tool", "expected"),
    [
        ("bash", "bash", True),
        ("bash", "read", False),
        ("edit", "write", True),
        ("write", "edit", False),
        ("read", "grep", True),
        ("read", "glob", True),
        ("grep", "read", False),
        ("*", "anything", True),
        ("mcp__x__*", "mcp__x__y", True),
        ("mcp__x__*", "mcp__xy__z", False),
        ("BASH", "bash", False),
    ],
)
def test_tools_that_a_rule_covers(rule: str, tool: str, expected: bool) -> None:
    assert Rule.parse("allow", rule).applies_to(tool) is expected


@table(
    ("rule", "tool", "intent", "expected"),
    [
        ("allow edit", None, "write", True),
        ("allow write", None, "write", True),
        ("allow read", None, "search", True),
        ("allow read", None, "write", False),
        ("deny bash", None, "write", False),
        ("deny edit", "notebook", "write", True),
        ("allow edit", "notebook", "write", False),
        ("deny read", "notebook", "read", True),
    ],
)
def test_a_rule_that_forbids_covers_every_tool_with_that_intent(
    rule: str, tool: str | None, intent: Intent, expected: bool
) -> None:
    verdict, text = rule.split()

    assert Rule.parse(verdict, text).applies_to_path(tool, intent) is expected


@table(
    ("given", "rule"),
    [
        ("allow bash(git status:*)", Rule.parse("allow", "bash(git status:*)")),
        ("  deny   read(~/.ssh/**) ", Rule.parse("deny", "read(~/.ssh/**)")),
        ("ask *", Rule.parse("ask", "*")),
        (("allow", "bash(ls)"), Rule.parse("allow", "bash(ls)")),
        (["deny", "write"], Rule.parse("deny", "write")),
        (Rule.parse("deny", "write", "config.toml:3"), Rule.parse("deny", "write", "config.toml:3")),
    ],
)
def test_a_rule_is_also_one_text_or_a_pair(given: Any, rule: Rule) -> None:
    assert Rule.of(given) == rule
