"""Files that a search certainly excludes, compared with the real search, and the effect on rules."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tests.support.programs import development_program
from tui_agent.permissions.commands.analysis import read_only_use
from tui_agent.permissions.shell.syntax import SimpleCommand

NAMES = (
    ".env",
    ".env.py",
    "a.py",
    "a.md",
    "sub/.env",
    "sub/b.py",
    ".hid/c.py",
    ".hid/d",
    "out/e.py",
    "out/.f",
    "x.pyi",
)
SEARCHES = """
grep -rl x .
grep -rl --include='*.py' x .
grep -rl --include='*.py' --include='*.md' x .
grep -rl --exclude=.env x .
grep -rl --exclude='.*' --exclude-dir='.*' x .
grep -rl --exclude-dir=sub --exclude-dir=out x .
grep -rl --include='*.py' --exclude-dir=.hid x .
rg -l x .
rg -l x . -t py
rg -l x . -g '*.py'
rg -l x . -g '!*.py'
rg -l x . -g '.*'
rg -l x . -g '!sub' --hidden
rg -l x . --hidden -g '!.env'
rg -l x . -uu -t py
rg -l x . -t rust
"""
ALLOWED = """
ls -R
find . -name '*.py'
find . -name .env
tree -L 2
du -a
fd -H env
rg --files --hidden
rg hello
rg hello -t py
rg hello -g '*.py'
rg --hidden hello -g '!.env'
grep -rn --include='*.py' hello .
grep -rn --exclude='.env*' hello .
grep -rn hello src
find . -type f -name '*.py' -exec cat {} +
find . -type f -exec echo {} +
git status
git diff --stat
git diff -- src
git diff -- '*.py'
git log --stat
git log -p -- src
git show HEAD --name-only
git show HEAD -- src tests
git show HEAD:src/lib.py
git grep hello -- src
git blame src/lib.py
git stash list
"""
QUESTIONED = """
rg --hidden hello
rg -uu hello
rg hello -g '*'
rg hello -g '.e*'
rg hello -g '!*.py' --hidden
rg hello --iglob '!.ENV' --hidden
grep -rn hello .
grep -rn hello . --include='.e*'
grep -rn hello . --exclude-dir=src
grep -r hello . --exclude='*.py' --include=.env
find . -type f -exec cat {} +
find . -type f -name '.e*' -exec head {} +
find . -type f | xargs cat
git diff
git diff --stat -p
git diff -- .
git diff -- ../.env
git diff -- ':!src'
git diff -- '*'
cd src && git diff
git log -p
git show HEAD
git show HEAD:.env
cd src && git show HEAD:.env
git grep hello
git stash list -p
git stash show -p
cat .env
tar cf x.tar .
"""


def test_every_file_that_is_read_passes_the_filter(tmp_path: Path) -> None:
    programs = {"rg": development_program("rg"), "grep": "grep"}
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n", "utf-8")
    for text in SEARCHES.strip().split("\n"):
        words = shlex.split(text)
        done = subprocess.run([programs[words[0]], *words[1:]], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        found = done.stdout.split()
        use = read_only_use(words, SimpleCommand("", ()))
        assert use is not None, text
        seen = {name for name in NAMES if use.includes is None or use.includes.includes(name)}

        assert {name.removeprefix("./") for name in found} <= seen, text
        assert use.includes is None or len(seen) < len(NAMES), text


@pytest.mark.parametrize("where", [".env", "sub/deep/.env"])
def test_a_rule_about_a_file_asks_only_where_it_may_be_read(desk: Desk, where: str) -> None:
    (desk.root / where).write_text("SECRET=1\n", "utf-8")
    policy = desk.policy("deny read(.env)")
    allowed, asked = (
        {text: policy.check(desk.tools["bash"], {"command": text}) for text in texts.strip().split("\n")}
        for texts in (ALLOWED, QUESTIONED)
    )

    assert [(text, found.reason) for text, found in allowed.items() if found.decision != "allow"] == []
    assert [text for text, found in asked.items() if found.decision == "allow" and ":.env" not in text] == []


def test_a_denied_directory_needs_an_answer_unless_excluded(desk: Desk) -> None:
    for command, decision in (
        ("rg hello", "ask"), ("rg hello -g '!secrets'", "allow"), ("grep -rn --exclude-dir=secrets x .", "allow"),
        ("grep -rn --include='*.pem' x .", "ask"), ("ls secrets", "deny"), ("rg hello secrets", "deny"),
    ):  # fmt: skip
        assert desk.bash(command, "deny read(secrets/**)").decision == decision, command
    for command in ("rg hello -g '*.txt'", "grep -r x --include='n*' .", "git grep x -- '*.txt'"):
        assert desk.bash(command, "deny read(/notes.txt)").decision == "ask", command
        assert desk.bash(command, "deny read(/README.md)").decision == "allow", command


def test_many_other_files_are_no_reason_to_ask(desk: Desk) -> None:
    (desk.root / "many").mkdir()
    for number in range(1_100):
        (desk.root / "many" / str(number)).touch()

    assert desk.bash("grep -rn x .", "deny read(.env)").decision == "allow"
    assert desk.bash("grep -rn x .", "deny read(**/a/*.b)").decision == "ask"


@pytest.mark.parametrize(
    "command",
    ["rg -. x", "rg --follow x .", "grep -R x .", "grep -nR x", "grep --recurs x .", "ack x", "diff -r . links",
     "git format-patch --stdout HEAD~1", "git log -p --ext-diff", "git stash show -p --ext-diff"],
)  # fmt: skip
def test_searches_with_other_options_need_an_answer(desk: Desk, command: str) -> None:
    (desk.root / ".env").write_text("x\n", "utf-8")

    assert desk.bash(command, "deny read(.env)", mode="allow").decision == "ask"
    assert desk.bash(command, mode="allow").decision == "allow"
