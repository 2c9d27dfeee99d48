"""Promise: the text of a command decides its place only by deny, ask and allow rules, and by the mode."""

from pathlib import Path

import pytest

from tests.support.sample_tools import sample_tools
from tests.support.table import table
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.trial import TrialFacts

OVERLAY = TrialFacts(setting="auto", backend="overlay")
REQUIRED = TrialFacts(setting="required", backend="overlay")
HOW = {"": {}, "outside": {"sandbox": False}, "background": {"run_in_background": True}}
RULES = ("deny bash(curl:*)", "ask bash(make deploy:*)", "allow bash(make test:*)", "allow bash(git commit:*)")


def _decide(workspace: Path, command: str, mode: str = "ask", facts: TrialFacts = OVERLAY, how: str = "") -> str:
    policy = PermissionPolicy(workspace, rules=RULES, mode=mode, trial=facts)
    decision = policy.check(sample_tools(workspace)["bash"], {"command": command, **HOW[how]})
    return f"{decision.decision} {decision.place}"


@table(
    ("command", "mode", "expected"),
    [
        ("ls", "ask", "allow trial"),
        ("rm -rf node_modules .git", "ask", "allow trial"),
        ("curl x.example", "ask", "deny nowhere"),
        ("ls && env curl x.example", "allow", "deny nowhere"),
        ("make deploy", "ask", "ask outside"),
        ("make test", "ask", "allow outside"),
        ("make test && git commit -m 'a b' 2>&1", "ask", "allow outside"),
        ("make test > log", "ask", "allow trial"),
        ("make test $X", "ask", "allow trial"),
        ("make test; (git commit)", "ask", "allow trial"),
        ("{ make test; }", "ask", "allow trial"),
        ("make test *", "ask", "allow trial"),
        ("make test && rm x", "ask", "allow trial"),
        ("rm x", "allow", "allow outside"),
        ("make test", "plan", "allow trial"),
        ("rm x", "plan", "allow trial"),
        ("rm x", "deny", "allow trial"),
        ("rm x", "accept_edits", "allow trial"),
    ],
)
def test_rules_and_mode_choose_the_place(tmp_path: Path, command: str, mode: str, expected: str) -> None:
    assert _decide(tmp_path, command, mode) == expected


def test_where_a_trial_is_required(tmp_path: Path) -> None:
    assert _decide(tmp_path, "rm x", "allow", REQUIRED) == "allow trial"
    nothing_works = TrialFacts(setting="required", problem="no user namespaces")
    assert _decide(tmp_path, "ls", "allow", nothing_works) == "deny nowhere"


@pytest.mark.parametrize("how", ["outside", "background"])
def test_a_command_outside_needs_a_rule_or_an_answer(tmp_path: Path, how: str) -> None:
    assert _decide(tmp_path, "npm start", how=how) == "ask outside"
    assert _decide(tmp_path, "npm start", "allow", how=how) == "allow outside"
    assert _decide(tmp_path, "npm start", "plan", how=how) == "deny nowhere"
    assert _decide(tmp_path, "make test", how=how) == "allow outside"


@table("mode", ["ask", "accept_edits", "allow"])
@table("command", ["git status", "make test && /usr/bin/git commit -m x", "timeout 9 git commit"])
def test_git_in_an_untrusted_folder_runs_outside_only_after_an_answer(tmp_path: Path, command: str, mode: str) -> None:
    rules = (*RULES, "allow bash(git status)", "allow bash(timeout:*)")
    bash = sample_tools(tmp_path)["bash"]
    for facts, expected in ((OVERLAY, "allow trial"), (TrialFacts(), "ask outside")):
        policy = PermissionPolicy(tmp_path, rules=rules, mode=mode, trial=facts, is_trusted=False)
        decision = policy.check(bash, {"command": command})
        assert f"{decision.decision} {decision.place}" == expected, decision.reason


def test_where_a_rule_denies_changes_mode_allow_runs_commands_in_the_trial(tmp_path: Path) -> None:
    for rule, expected in (("deny edit(/src/**)", "allow trial"), ("deny read(/src/**)", "allow outside")):
        policy = PermissionPolicy(tmp_path, rules=(rule,), mode="allow", trial=OVERLAY)
        bash = sample_tools(tmp_path)["bash"]
        decision = policy.check(bash, {"command": "black ."})
        assert f"{decision.decision} {decision.place}" == expected
    leaving = PermissionPolicy(tmp_path, rules=("deny write(/src/**)",), mode="allow", trial=OVERLAY)
    assert leaving.check(sample_tools(tmp_path)["bash"], {"command": "black .", "sandbox": False}).decision == "ask"
