"""Promise: spelling does not get round a rule that denies or asks; an allow rule is never wider than its words."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.permissions.conftest import OVERLAY, Desk
from tests.support.command_corpora import corpus
from tests.support.examples import examples
from tests.support.table import table
from tui_agent.permissions.commands.wrappers import WRAPPERS

SPELLINGS = (
    *("canary x", "'canary' x", "can\\ary x", 'c"ana"ry x', "$'\\x63anary' x", "/usr/bin/canary x", "./canary x"),
    *("X=1 canary x", "canary x 2>/dev/null", "canary x > y", "> y canary x", "\\canary x", "canary<<<x"),
    "canary \\\n x",
)  # fmt: skip
"""One command in many spellings."""
WRAPS = (
    *(
        "{}",
        "ls # {}\n{}",
        "ls && {}",
        "ls; {}",
        "ls | {}",
        "{} | cat",
        "{} &",
        "ls\n{}",
        "! {}",
        "time {}",
        "( {} )",
        "{ {}; }",
    ),
    *("echo $({})", 'echo "$({})"', "echo `{}`", "cat <({})", "if {}; then ls; fi", "while {}; do ls; done", "x=$({})"),
    *("for i in 1; do {}; done", "case a in a) {};; esac", "f() { {}; }; f", "coproc {}", "echo ${x:-$({})}"),
    *("cat <<E\n$({})\nE", "[[ -n $({}) ]]", "((x=$({})))", "x=(a $({}))", "coproc N { {}; }"),
)
"""Commands around one that still runs."""
BEHIND = (
    *("env {}", "env -u A B=1 {}", "env -S '{}'", "timeout 5 {}", "timeout -k 1 5 {}", "nice -n 5 {}", "nohup {}"),
    "sudo {}",
    *("sh -c '{}'", "bash -ec '{}'", "bash -c 'ls; {}'", "eval '{}'", "eval {}", "xargs {}", "xargs -n1 {}"),
    "find . -exec {} ;",
    *("find . -execdir {} +", "command {}", "exec {}", "stdbuf -oL {}", "trap '{}' EXIT", "env timeout 5 sh -c '{}'"),
    *("bash <<E\n{}\nE", "sh <<< '{}'", "echo {} | sh", "watch '{}'", "setsid {}", "busybox {}", "/usr/bin/env {}"),
)  # fmt: skip


@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_a_forbidden_command_is_found_in_every_spelling(desk: Desk, verdict: str) -> None:
    lines = [wrap.replace("{}", spelled) for wrap in WRAPS for spelled in SPELLINGS]
    lines += [wrap.replace("{}", "canary x") for wrap in BEHIND]
    lines += [f"{name} {'1 ' * own}canary x" for name, (_, own) in WRAPPERS.items()]
    for facts in ({}, {"trial": OVERLAY}):
        policy = desk.policy(f"{verdict} bash(canary:*)", mode="allow", **facts)
        found = [line for line in lines if policy.check(desk.tools["bash"], {"command": line}).decision != verdict]
        assert found == []


@table("line", ["$x -rf y", "c?nary x", "{canary,x}", "$(echo canary) x", "~/$x", "`x`", '"${a[@]}"', "$x/y"])
def test_an_unclear_command_asks_if_a_rule_forbids_some(desk: Desk, line: str) -> None:
    for facts, place in (({}, "outside"), ({"trial": OVERLAY}, "trial")):
        policy = desk.policy("deny bash(canary:*)", mode="allow", **facts)
        decision = policy.check(desk.tools["bash"], {"command": line})
        assert (decision.decision, decision.place) == ("ask", place)
    assert desk.policy(trial=OVERLAY).check(desk.tools["bash"], {"command": line}).decision == "allow"


def test_a_text_that_is_not_read_to_its_end_asks_if_a_rule_forbids_some(desk: Desk) -> None:
    for line in ("echo " + "x" * 200_000, "ls;" * 2_000, "$(" * 100 + ")" * 100):
        assert desk.bash(line, "deny bash(canary:*)", mode="allow").decision == "ask"
    assert desk.bash("canary; " + "ls;" * 2_000, "deny bash(canary:*)", mode="allow").decision == "deny"


@table(
    "line",
    [
        *("echo canary", "git commit -m 'canary x'", "grep -rn canary src", "cat canary.txt", "npm run canary"),
        "ls canary",
        *("cat > x <<'E'\ncanary x\nE", "echo x # canary y", "command -v canary", "timeout 5 pytest -k canary"),
        "git canary",
    ],
)  # fmt: skip
def test_a_word_alone_is_not_a_command(desk: Desk, line: str) -> None:
    assert desk.bash(line, "deny bash(canary:*)", mode="allow").decision == "allow"


def test_git_is_found_behind_its_options(desk: Desk) -> None:
    for line in ("git push", "git -C . push", "git -c a=b --no-pager push origin", "git --git-dir=x push"):
        assert desk.bash(line, "deny bash(git push:*)", mode="allow").decision == "deny"
    assert desk.bash("git log --grep push", "deny bash(git push:*)", mode="allow").decision == "allow"


ALLOWED = "make test"
MORE = (
    *(" > x", " >> x", " < x", " 2> x", " && rm x", "; rm x", " | tee x", " || rm x", "\nrm x", " &", " & rm x", " $x"),
    *(" $(rm x)", " `rm x`", " <(rm x)", " *.py", " {a,b}", " ~/x", ' "$x"', " <<E\nx\nE", " <<<x", " >&x", " &> x"),
)


@table("more", MORE)
def test_an_allow_rule_is_never_wider_than_its_words(desk: Desk, more: str) -> None:
    rules = ("allow bash(make test:*)",)
    assert desk.bash(ALLOWED, *rules).decision == "allow"
    assert desk.bash(ALLOWED + more, *rules).decision == "ask"
    inside = desk.policy(*rules, trial=OVERLAY).check(desk.tools["bash"], {"command": ALLOWED + more})
    assert (inside.decision, inside.place) == ("allow", "trial")


@table("wrap", [*WRAPS[10:], *BEHIND, "X=1 {}", "LD_PRELOAD=x {}", "/bin/{}", "PATH=. {}", "f(){ {}; }"])
def test_an_allow_rule_looks_through_nothing(desk: Desk, wrap: str) -> None:
    line = wrap.replace("{}", ALLOWED)
    decision = desk.policy("allow bash(make:*)", trial=OVERLAY).check(desk.tools["bash"], {"command": line})

    assert (decision.decision, decision.place) == ("allow", "trial")


def test_a_star_in_a_url_allows_no_further_words(desk: Desk) -> None:
    rule = "bash(curl -s http://localhost:3000/*)"
    policy = desk.policy(f"allow {rule}", trial=OVERLAY)
    for line, place in (
        ("curl -s http://localhost:3000/version", "outside"),
        ("curl -s http://localhost:3000/a -o /etc/x", "trial"),
        ("curl -s http://localhost:3000/a http://h/b", "trial"),
        ("curl -s http://localhost:30001/a", "trial"),
        ("curl -s http://localhost:3000/$X", "trial"),
    ):
        assert policy.check(desk.tools["bash"], {"command": line}).place == place, line
    # What forbids stays as wide as it is written.
    assert desk.bash("curl -s http://localhost:3000/a -o x", f"deny {rule}").decision == "deny"


def test_typical_lines_run_outside_under_their_rules(desk: Desk) -> None:
    rules = ("allow bash(make:*)", "allow bash(npm run build)", "allow bash(X=1 ./run.sh:*)")
    lines = "make -j4 2>&1 | tail -20|cd src && make|npm run build|CI=1 make|X=1 ./run.sh a|make 'a b' && git status"
    policy = desk.policy(*rules, trial=OVERLAY)
    for line in lines.replace(" | ", " % ").split("|"):
        decision = policy.check(desk.tools["bash"], {"command": line.replace("%", "|")})
        assert (decision.decision, decision.place) == ("allow", "outside"), line


def test_a_line_that_names_a_denied_path_does_not_run_outside(desk: Desk) -> None:
    for line in (
        "rm src/lib.py",
        "x=src/lib.py; rm $x",
        'python3 -c \'open("src/lib.py", "w")\'',
        "dd of=src/x",
        "rm -rf src",
    ):
        for rules in (("allow bash",), ("allow bash(rm:*)",), ()):
            mode = "ask" if rules else "allow"
            policy = desk.policy(*rules, "deny edit(src/**)", mode=mode, trial=OVERLAY)
            assert policy.check(desk.tools["bash"], {"command": line}).place == "trial", (line, rules)
            assert desk.bash(line, *rules, "deny edit(src/**)", mode=mode).decision == "ask"
    assert desk.bash("cat secrets/key.pem", "deny read(secrets/**)", mode="allow").decision == "deny"


def test_without_a_trial_protected_paths_ask_and_rules_are_obeyed(desk: Desk) -> None:
    for line in (
        "rm -rf node_modules",
        "rm .git/index.lock",
        "echo x > .git/config",
        "mv node_modules /tmp/x",
        "touch .husky/x",
    ):
        assert desk.bash(line, mode="allow").decision == "ask"
        assert desk.bash(line, "allow bash(*)").decision == "allow"
        trial = desk.policy(mode="allow", trial=OVERLAY).check(desk.tools["bash"], {"command": line})
        assert (trial.decision, trial.place) == ("allow", "outside")
    assert desk.bash("rm -rf node_modules", "allow bash(rm -rf node_modules)").decision == "allow"


def test_no_corpus_line_is_denied_without_a_rule(desk: Desk) -> None:
    for name in ("hostile_commands", "everyday_commands", "protected_writes", "forbidden_behind"):
        for mode in ("ask", "allow", "accept_edits"):
            policies = (desk.policy(mode=mode), desk.policy(mode=mode, trial=OVERLAY))
            for command in corpus(name)[:: 1 if examples(400) == 400 else 7]:
                found = [policy.check(desk.tools["bash"], {"command": command}) for policy in policies]
                assert all(one.decision != "deny" or one.source == "invalid" for one in found), command
                assert mode == "allow" or found[1].place == "trial" or found[1].source == "invalid", command


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from((*SPELLINGS, *MORE, "make test", " ", ";", "ls", "$(", ")", "'")), max_size=6).map("".join)
)
def test_stricter_modes_are_stricter(desk: Desk, line: str) -> None:
    rules = ("deny bash(canary y:*)", "ask bash(canary:*)", "allow bash(make:*)")
    ranks = {"allow": 0, "ask": 1, "deny": 2}
    allow, edits, ask, plan, deny = (
        ranks[desk.bash(line, *rules, mode=mode).decision] for mode in ("allow", "accept_edits", "ask", "plan", "deny")
    )

    assert allow <= edits <= ask <= min(plan, deny)
