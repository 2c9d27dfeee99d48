"""Suspicions about commands: changes of protected paths, and commands that a rule forbids."""

from pathlib import Path

import pytest

from tests.permissions.conftest import SANDBOX, Desk

FOLDER = Path(__file__).parent.parent


def commands(name: str) -> list[str]:
    return (FOLDER / name).read_text("utf-8").rstrip("\n").split("\n%%\n")[1:]


@pytest.mark.slow
@pytest.mark.parametrize("rules", [(), ("allow bash", "allow edit"), ("allow bash(*)",)])
def test_a_possible_write_to_a_protected_path_needs_an_answer(desk: Desk, rules: tuple[str, ...]) -> None:
    bare, confined = desk.policy(*rules, mode="allow"), desk.policy(*rules, mode="allow", containment=SANDBOX)
    for command in commands("protected_writes.txt"):
        assert bare.check(desk.tools["bash"], {"command": command}).decision != "allow", command
        found = confined.check(desk.tools["bash"], {"command": command})
        assert found.decision != "allow" or found.confinement, command


def test_naming_a_protected_path_needs_no_answer(desk: Desk) -> None:
    policies = desk.policy(mode="allow", unknown_targets="allow"), desk.policy(mode="allow", containment=SANDBOX)
    decided = {
        (command, number): policy.check(desk.tools["bash"], {"command": command})
        for command in commands("unprotected_writes.txt")
        for number, policy in enumerate(policies)
    }

    assert [(command, found.reason) for command, found in decided.items() if found.decision != "allow"] == []


@pytest.mark.slow
def test_a_deny_rule_applies_behind_every_possible_runner(desk: Desk) -> None:
    for rules in (("deny bash(rm:*)",), ("allow bash(*)", "allow bash"), ("ask bash(rm *)",)):
        denied = (*rules, "deny bash(rm:*)")[-2:] if rules[0].startswith("allow") else rules
        policy = desk.policy(*reversed(denied), mode="allow")
        decided = {
            command: policy.check(desk.tools["bash"], {"command": command}).decision
            for command in commands("forbidden_behind.txt")
        }

        assert [command for command, decision in decided.items() if decision == "allow"] == [], denied


def test_a_deny_rule_ignores_commands_that_only_name_its_command(desk: Desk) -> None:
    decided = {
        command: desk.bash(command, "deny bash(rm:*)", mode="allow")
        for command in commands("forbidden_in_name_only.txt")
    }

    assert [(command, found.reason) for command, found in decided.items() if found.decision != "allow"] == []


def test_a_rule_that_denies_changes_holds_for_commands(desk: Desk) -> None:
    policy = desk.policy("deny edit(src/**)", "deny edit(*.lock)", "allow bash", mode="allow")
    decided = {
        command: policy.check(desk.tools["bash"], {"command": command}).decision
        for command in commands("denied_changes.txt")
    }

    assert [command for command, decision in decided.items() if decision == "allow"] == []
    for command in ("pytest src", "python3 src/lib.py", "cp src/lib.py b", "npm test", "touch notes.txt", "black tests",
                    "black --check src", "ruff check .", "gofmt -w tests", "prettier --write tests", "gunzip a.gz",
                    "gzip -c poetry.lock", "git clean -n", "git reset HEAD~1"):  # fmt: skip
        assert policy.check(desk.tools["bash"], {"command": command}).decision == "allow", command


@pytest.mark.parametrize("rules", [(), ("allow bash",), ("allow bash(*)",)])
def test_a_command_that_may_change_denied_files_needs_an_answer(desk: Desk, rules: tuple[str, ...]) -> None:
    policy = desk.policy("deny edit(README.md)", *rules, mode="allow", unknown_targets="allow")
    changing = (
        "git switch other", "git switch -c new HEAD~1", "git switch --orphan new", "git checkout other",
        "git checkout -b new HEAD~1", "git checkout -p", "git pull", "git stash", "git stash -u", "git stash pop",
        "git stash branch new", "git reset --hard", "cd src && git reset --hard", "git restore ':/README.*'",
        "git restore -p", "git merge other", "git rebase main", "git cherry-pick HEAD~1", "git am p", "git bisect good",
        "git submodule update", "git read-tree -u -m HEAD", "git unknown-alias", "frobnicate README.md",
        "frobnicate --out=README.md", "frobnicate -o README.md src", "./frobnicate src/../README.md",
    )  # fmt: skip
    harmless = (
        "git switch -c new", "git checkout -b new", "git checkout HEAD notes.txt", "git checkout -- notes.txt",
        "git stash list", "git stash drop", "git stash push notes.txt", "git reset HEAD~1", "git restore notes.txt",
        "git fetch", "git push", "git commit -m README.md", "git add .", "git bisect log", "frobnicate notes.txt",
        "frobnicate --exclude=README.md", "frobnicate README", "make README.md", "pytest README.md",
    )  # fmt: skip
    decided = {one: policy.check(desk.tools["bash"], {"command": one}).decision for one in (*changing, *harmless)}

    assert [one for one in changing if decided[one] == "allow"] == []
    assert [one for one in harmless if decided[one] != "allow"] == []
    assert desk.bash("git pull", "deny edit(x)", "allow bash(git pull)").decision == "allow"


@pytest.mark.parametrize("command", [
    "sqlite3 db '.output x'", "perl -e 'unlink \"x\"'", "node -e \"fs.unlinkSync('x')\"",
    "ruby -e 'FileUtils.rm \"x\"'",
    "python3 -c \"import os; os.remove('x')\"", "php -r 'file_put_contents(\"x\", 1);'", "perl -e 'open F, \"+<x\"'",
    "awk 'BEGIN { f = \"x\"; print > f }'", "echo \"import os; os.remove('x')\" | python3 -", "julia -e 'rm(\"x\")'",
])  # fmt: skip
def test_code_may_change_a_denied_file_without_an_ending(desk: Desk, command: str) -> None:
    assert desk.bash(command, "deny edit(x)", mode="allow").decision == "ask"
    assert desk.bash(command, "deny edit(y)", mode="allow").decision == (
        "ask" if command.startswith("awk") else "allow"
    )
    assert desk.bash("python3 -c \"print(open('x').read())\"", "deny edit(x)", mode="allow").decision == "allow"


@pytest.mark.parametrize("command", ["tar ''", 'tar "> a.tar --to-command=make', "tar '' x", "unzip ''", "git ''"])
def test_empty_words_are_judged_like_others(desk: Desk, command: str) -> None:
    assert desk.bash(command).decision == "ask"


@pytest.mark.slow
def test_prefix_rules_allow_their_commands_and_no_more(desk: Desk) -> None:
    names = ("cp", "mv", "touch", "tee", "tar", "curl", "npm", "make", "sed", "git", "mkdir", "pytest",
             "find", "rsync", "printf", "test", "[", "gcc", "zip", "vim", "ssh", "scp", "mosh", "ssh-keygen", "man",
             "sqlite3", "mapfile", "declare", "docker", "awk", "sort", "wget", "less", "nano", "emacs", "nvim", "ex",
             "ed", "openssl", "rg", "clang", "ld", "unzip", "pip", "cargo", "go", "tsc", "eslint", "ruff", "mypy",
             "black")  # fmt: skip
    rules = [f"allow bash({name}:*)" for name in names]
    past, within = (
        {command: desk.bash(command, *rules) for command in commands(f"{where}_prefix_rules.txt")}
        for where in ("past", "within")
    )

    assert [command for command, found in past.items() if found.decision == "allow"] == []
    confined = desk.policy(*rules, containment=SANDBOX)
    for command in commands("past_prefix_rules.txt"):
        found = confined.check(desk.tools["bash"], {"command": command})
        is_computed = command == "touch $X" or "$(" in command
        assert found.decision != "allow" or (is_computed and found.confinement), command
    assert [(command, found.reason) for command, found in within.items() if found.decision != "allow"] == []


@pytest.mark.parametrize(
    ("command", "rules", "expected"),
    [
        # a rule of several words needs all of them
        ("frobnicate git push", "deny bash(git push:*)", "ask"),
        ("frobnicate git -C x push", "deny bash(git push:*)", "ask"),
        ("frobnicate git pull", "deny bash(git push:*)", "allow"),
        ("git -c alias.p=push p", "deny bash(git push:*)", "ask"),
        ("git checkout push", "deny bash(git push:*)", "allow"),
        # a subcommand counts however it is spelled, and an alias may be any
        ("git-push", "deny bash(git push:*)", "deny"),
        ("/usr/lib/git-core/git-push origin x", "deny bash(git push:*)", "deny"),
        ("$(git --exec-path)/git-push", "deny bash(git push:*)", "deny"),
        ("hub push", "deny bash(git push:*)", "deny"),
        ("git --shallow-file x push", "deny bash(git push:*)", "deny"),
        ("git send-pack origin x", "deny bash(git push:*)", "deny"),
        ("git remote-https origin u", "deny bash(git push:*)", "deny"),
        ("git subtree push -P x o m", "deny bash(git push:*)", "deny"),
        ("git subtree pull -P x o m", "deny bash(git push:*)", "allow"),
        ("git svn dcommit", "deny bash(git push:*)", "deny"),
        ("git lfs push o x", "deny bash(git push:*)", "deny"),
        ("git for-each-repo --config=x push", "deny bash(git push:*)", "deny"),
        ("frobnicate git-push", "deny bash(git push:*)", "ask"),
        ("xargs git-push", "deny bash(git push:*)", "deny"),
        ("git p", "deny bash(git push:*)", "ask"),
        ("git p", "allow bash(git:*);ask bash(git reset:*)", "allow"),
        ("git p", "ask bash(git reset:*);allow bash(git:*)", "ask"),
        ("git p", "deny bash(rm:*)", "allow"),
        ("git stage x", "ask bash(git add:*)", "ask"),
        ("git remote update", "deny bash(git push:*)", "allow"),
        ("npm --prefix x publish", "ask bash(npm publish:*)", "ask"),
        ("kubectl -n x delete pod y", "deny bash(kubectl delete:*)", "ask"),
        ("kubectl -n x get pod y", "deny bash(kubectl delete:*)", "allow"),
        # a pattern without a boundary, with a star, exactly
        ("frobnicate rmdir", "deny bash(rm*)", "ask"),
        ("frobnicate rmdir", "deny bash(rm:*)", "allow"),
        ("frobnicate rm -rf x", "deny bash(rm * x)", "ask"),
        ("frobnicate rm -rf y", "deny bash(rm * x)", "allow"),
        ("frobnicate rm x", "deny bash(rm x)", "ask"),
        ("frobnicate rm y", "deny bash(rm x)", "allow"),
        # a rule that spells the command out answers the suspicion
        ("frobnicate rm x", "allow bash(frobnicate rm x);deny bash(rm:*)", "allow"),
        ("frobnicate rm x", "allow bash(frobnicate:*);deny bash(rm:*)", "ask"),
        ("frobnicate .git/x", "allow bash(frobnicate .git/x)", "allow"),
        ("frobnicate .git/x", "allow bash(frobnicate:*)", "ask"),
        # rules for other tools, and those for everything, name no command
        ("frobnicate rm x", "deny edit(rm)", "allow"),
        ("frobnicate rm x", "allow bash(frobnicate:*);ask bash", "allow"),
    ],
)
def test_rules_behind_an_unknown_program(desk: Desk, command: str, rules: str, expected: str) -> None:
    decision = desk.bash(command, *rules.split(";"), mode="allow")

    assert decision.decision == expected, decision.reason


@pytest.mark.parametrize(
    "command",
    [
        "npm test",
        "pytest -q",
        "make -j4 all",
        "cargo build",
        "git commit -m 'rm .git/x'",
        "mkdir -p build && cd build && cmake ..",
    ],
)
def test_everyday_commands_run_under_everyday_rules(desk: Desk, command: str) -> None:
    allowed = ("npm", "pytest", "make", "cargo", "git commit", "mkdir", "cmake", "cd")
    rules = [*(f"allow bash({name}:*)" for name in allowed), "deny bash(rm:*)", "ask bash(curl:*)", "deny edit(.env)"]

    assert desk.bash(command, *rules).decision == "allow"


def test_a_private_path_in_a_variable_needs_an_answer(desk: Desk, tmp_path: Path) -> None:
    private = tmp_path / "our-settings"
    policy = desk.policy("allow bash", mode="allow", private=[private])

    for command in (
        f"x={private}/a; touch $y", "touch $XDG_CONFIG_HOME/our-settings/a",
        "x=$XDG_CONFIG_HOME/our-settings; touch $x/a",
        f"frobnicate 'write {private}/a'", f"echo {private}/a | xargs touch",
    ):  # fmt: skip
        assert policy.check(desk.tools["bash"], {"command": command}).decision == "ask", command


def test_many_words_hide_nothing(desk: Desk) -> None:
    many = " ".join(f"a{number}" for number in range(1_000))

    assert desk.bash(f"frobnicate {many} .git/config", mode="allow").decision == "ask"
    assert desk.bash(f"frobnicate {many} rm x", "deny bash(rm:*)", mode="allow").decision == "ask"
    assert desk.bash(f"frobnicate {many} {many} {many}", "deny bash(rm:*)", mode="allow").decision == "ask"
