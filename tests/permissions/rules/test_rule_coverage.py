"""Words that a rule for a command does not cover; more of them are in `past_prefix_rules.txt`."""

from pathlib import Path

import pytest

from tests.permissions.conftest import SANDBOX, Desk
from tui_agent.permissions.commands.catalogue import all_facts


@pytest.mark.parametrize(
    ("command", "rule", "decision"),
    [
        ("find src -name x -delete", "allow bash(find:*)", "ask"),
        ("find src -name x -delete", "allow bash(find src -name x -delete)", "allow"),
        ("find src -name y -delete", "allow bash(find src -name x -delete)", "ask"),
        ("find src -name x -fprint y", "allow bash(find src -name x -fprint:*)", "allow"),
        ("tar cf b.tar -I zstd src", "allow bash(tar cf b.tar -I zstd:*)", "allow"),
        ("tar cf b.tar -I gzip src", "allow bash(tar cf b.tar -I zstd:*)", "ask"),
        ("tar cf b.tar -I zstd --rsh-command=x src", "allow bash(tar cf b.tar -I zstd:*)", "ask"),
        ("rsync -a -e ssh src h:x", "allow bash(rsync * -e ssh *)", "allow"),
        ("sed -n p a.txt --in-place", "allow bash(sed -n:*)", "ask"),
        ("sed -n -Ei.bak p a.txt", "allow bash(sed -n:*)", "ask"),
        ("sed -n --in-pl p a.txt", "allow bash(sed -n:*)", "ask"),
        ("sed -n p a.txt", "allow bash(sed -n:*)", "allow"),
        ("sed -i s/a/b/ a.txt", "allow bash(sed:*)", "allow"),
        ("git bundle create x HEAD", "allow bash(git bundle create:*)", "allow"),
        ("git archive -o x HEAD", "allow bash(git archive:*)", "ask"),
        ("git archive -o x HEAD", "allow bash(git archive -o:*)", "allow"),
        ("chroot . ls", "allow bash(chroot:*)", "ask"),
        ("pytest -p evil", "allow bash(pytest -p evil:*)", "allow"),
        # to the shell `[a]` and `?` are patterns, in a rule they are not
        ("touch [a]", "allow bash(touch [a])", "ask"),
        ("touch '[a]'", "allow bash(touch [a])", "allow"),
        ("touch [a]", "allow bash(touch:*)", "allow"),
        ("touch a?", "allow bash(touch a?)", "ask"),
        ("touch a?", "allow bash(touch a*)", "allow"),
        ("touch [a]", "deny bash(touch [a])", "deny"),
        ("[ -n x ]", "allow bash([ -n x ])", "allow"),
        # only blanks separate words
        ("touch 'a\u2028b'", "allow bash(touch a\u2028b)", "allow"),
        ("touch a\u2028b", "allow bash(touch a\u2028b)", "allow"),
        ("touch a b", "allow bash(touch a\u2028b)", "ask"),
        ("touch\u00a0a", "allow bash(touch:*)", "ask"),
        ("touch\u2028a", "allow bash(touch:*)", "ask"),
        ("touch a", "allow bash(touch\u3000:*)", "ask"),
    ],
)
def test_a_rule_covers_what_it_spells_out(desk: Desk, command: str, rule: str, decision: str) -> None:
    found = desk.bash(command, rule)

    assert found.decision == decision, found.reason


def test_a_grant_with_an_unusual_separator_is_one_rule(desk: Desk) -> None:
    arguments = {"command": "frobnicate 'a\u2028b'"}
    policy = desk.policy()
    rule = policy.grant_rule(desk.tools["bash"], arguments)

    assert rule is not None
    policy.grant(rule, "session")
    assert policy.check(desk.tools["bash"], arguments).decision == "allow"
    assert len(policy.session_rules) == 1


@pytest.mark.parametrize(
    "command",
    ["rm -rf .", "rm -rf ./src/..", "rm -rf $PWD", "rm -rf src/../../work", "rm -rf ..", "rm -rf ~", "rm -rf /",
     "chmod -R 700 .", "mv . ../x", "find . -delete", "rm -rf ./*/.."],
)  # fmt: skip
def test_only_the_exact_rule_lets_a_command_change_the_whole_workspace(tmp_path: Path, command: str) -> None:
    (tmp_path / "work" / "src").mkdir(parents=True)
    desk = Desk(tmp_path / "work")
    name = command.split(" ")[0]

    for rules in (("allow bash",), ("allow bash(*)", "allow edit"), (f"allow bash({name}:*)",)):
        for containment in (SANDBOX.model_copy(update={"works": works}) for works in (False, True)):
            found = desk.bash(command, *rules, mode="allow", containment=containment)
            assert found.decision == "ask", (rules, found.reason)
    if command in ("rm -rf .", "find . -delete"):
        assert desk.bash(command, f"allow bash({command})").decision == "allow"


def test_every_known_command_is_judged_without_arguments_under_its_own_rule(desk: Desk) -> None:
    for name in (*all_facts(), "printf", "test", "[", "find", "sed", "awk", "tar"):
        assert desk.bash(name, f"allow bash({name}:*)").decision in ("allow", "ask")
