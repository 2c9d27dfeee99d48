"""The rules of a session on `/permissions`: listed in order, added, removed, and restored by a resume."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.table import table
from tests.workbench.configuration.test_live_settings import decision, options_for
from tests.workbench.quiet_bench import open_quietly
from tui_agent.protocol.events import Noticed
from tui_agent.protocol.facts.page_facts import RuleFact
from tui_agent.protocol.trial import TrialFacts
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.session_rules import SessionRules, trial_fact
from tui_agent.workbench.workbench import Workbench

pytestmark = pytest.mark.slow


@asynccontextmanager
async def rules_in(options: LaunchOptions) -> AsyncGenerator[tuple[Workbench, SessionRules]]:
    async with open_quietly(options) as bench:
        yield bench, bench.rules


async def test_every_rule_is_listed_in_the_order_in_which_it_is_checked(tmp_path: Path) -> None:
    async with rules_in(options_for(tmp_path)) as (bench, rules):
        bench.policy.grant("bash(make:*)", "session")
        assert rules.add("deny bash(rm:*)") == ""
        found = rules.in_force()

    texts = [f"{rule.verdict} {rule.text}" for rule in found.rules if rule.origin != "default"]
    assert texts[-2:] == ["deny bash(rm:*)", "allow bash(make:*)"]
    assert found.rules[len(texts)] == RuleFact("ask", "read(.env)", "default")
    assert RuleFact("ask", "bash(date)", "--ask") in found.rules
    assert [rule.text for rule in found.rules if rule.is_session] == ["bash(rm:*)", "bash(make:*)"]
    assert not found.strictest_wins
    assert found.sandbox == "off: every command runs with your own rights"


@table(
    ("facts", "words"),
    [
        (TrialFacts(setting="auto", backend="overlay"), "a command runs in a trial first, and you keep or discard"),
        (TrialFacts(setting="auto", backend="read_only", problem="x"), "commands run behind walls and change nothing"),
        (TrialFacts(setting="auto", problem="no bwrap"), "not available, so commands ask before they run: no bwrap"),
        (TrialFacts(setting="required", problem="no bwrap"), "not available, so no command runs: no bwrap"),
    ],
)
def test_the_page_says_where_commands_run(facts: TrialFacts, words: str) -> None:
    assert trial_fact(facts).startswith(words)


async def test_a_rule_applies_from_the_moment_it_is_added_until_it_is_removed(tmp_path: Path) -> None:
    async with rules_in(options_for(tmp_path)) as (bench, rules):
        with bench.events.subscribe() as heard:
            assert rules.add("  allow bash(make:*) ") == ""
            assert decision(bench, tmp_path, "make all") == "allow"
            assert rules.add("deny bash(make install)") == ""
            assert decision(bench, tmp_path, "make install") == "deny"
            assert rules.remove("deny", "bash(make install)")
            assert decision(bench, tmp_path, "make install") == "allow"
            assert rules.remove("allow", "bash(make:*)")
            assert decision(bench, tmp_path, "make all") == "ask"
            assert not rules.remove("allow", "bash(make:*)")
            told = [envelope.event for envelope in heard.drain()]

    assert [event.text for event in told if isinstance(event, Noticed)] == [
        "Added for this session: allow bash(make:*).",
        "Added for this session: deny bash(make install).",
        "Removed from this session: deny bash(make install).",
        "Removed from this session: allow bash(make:*).",
    ]


@table(
    ("text", "refusal"),
    [
        ("", "must begin with allow, ask or deny"),
        ("bash(make:*)", "did you mean 'allow bash(make:*)'"),
        ("allow bsah(make:*)", "names no tool; did you mean bash"),
        ("allow bash()", "is empty"),
        ("allow fetch(example.org)", "domain:HOST"),
    ],
)
async def test_a_rule_that_cannot_apply_is_refused(tmp_path: Path, text: str, refusal: str) -> None:
    async with rules_in(options_for(tmp_path)) as (bench, rules):
        before = rules.in_force()

        assert refusal in rules.add(text)
        assert rules.in_force() == before
        assert bench.policy.session_rules == ()


async def test_the_same_rule_is_added_once_and_rules_of_the_settings_stay(tmp_path: Path) -> None:
    async with rules_in(options_for(tmp_path)) as (_, rules):
        assert rules.add("ask bash(make:*)") == ""
        assert rules.add("ask bash(make:*)") == "ask bash(make:*) is in force already."
        assert not rules.remove("ask", "bash(date)")


async def test_a_resumed_session_has_its_rules_and_none_that_were_removed(tmp_path: Path) -> None:
    options = replace(options_for(tmp_path), keep_session=True, session_id="s1")
    async with rules_in(options) as (bench, rules):
        await bench.agent.run("hello")
        for rule in ("allow bash(make:*)", "allow bash(true)", "deny bash(rm:*)"):
            assert rules.add(rule) == ""
        assert rules.remove("allow", "bash(true)")
    async with rules_in(replace(options, session_id=None, resume="s1")) as (_, rules):
        assert [f"{rule.verdict} {rule.text}" for rule in rules.in_force().rules if rule.is_session] == [
            "deny bash(rm:*)",
            "allow bash(make:*)",
        ]


async def test_each_tool_has_the_rules_that_apply_to_it(tmp_path: Path) -> None:
    async with rules_in(options_for(tmp_path)) as (_, rules):
        rules.add("deny edit(secret/**)")
        tools = {tool.name: tool for tool in rules.tools()}

    assert "deny edit(secret/**)" in tools["write"].rules
    assert "ask bash(date)" in tools["bash"].rules
    assert tools["read"].is_read_only
    assert not tools["bash"].is_read_only
    assert "agent" in tools
    assert all(tool.description for tool in tools.values())
