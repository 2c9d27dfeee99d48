"""Promise: the list of read-only commands lets nothing run that changes a file, runs a program or reads elsewhere."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tests.support.command_corpora import all_commands
from tests.support.examples import examples
from tests.support.table import table
from tui_agent.permissions import PermissionPolicy, is_read_only_command
from tui_agent.permissions.commands.safe_commands import safe_commands, safe_read

OPERANDS = {
    "files": "notes.txt",
    "tree": "src",
    "pattern": "hello notes.txt",
    "text": "1",
    "plus": "+%s",
    "format": "x",
}
VALUES = {"-type": "f", "-size": "1", "-perm": "644", "-L": "1", "-user": "root", "-s": ","}
MARK = "ran-another-program"
PROGRAM_VARIABLES = (
    "PAGER",
    "GIT_PAGER",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "LESSOPEN",
    "TAR_OPTIONS",
)


def snapshot(root: Path) -> dict[str, object]:
    """Return everything below a directory that a command could change."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[str(path)] = (status.st_mode, content if path.name != "index" else None)
    return found


def run(root: Path, commands: list[str]) -> None:
    """Run commands one after the other, with variables that name programs for a terminal."""
    environment = {**os.environ, **dict.fromkeys(PROGRAM_VARIABLES, f"touch {root}/{MARK}; true"), "HOME": str(root)}
    script = "\n".join(f"(\n{command}\n) </dev/null >/dev/null 2>&1" for command in commands)
    subprocess.run(("bash", "-c", script), cwd=root, env=environment, check=False, timeout=300)


@pytest.fixture
def repository(desk: Desk) -> Path:
    """The workspace as a real repository with a commit."""
    shutil.rmtree(desk.root / ".git")
    (desk.root / "links" / "git").unlink()
    for words in ("init -q", "add -A", "-c user.name=x -c user.email=x@y commit -q -m x"):
        subprocess.run(("git", *words.split()), cwd=desk.root, check=True)
    (desk.root / "notes.txt").write_text("hello again\n", "utf-8")
    return desk.root


def test_every_option_of_the_list_changes_nothing(repository: Path) -> None:
    commands = ["sleep 0"]
    for name, entry in safe_commands().items():
        operand = OPERANDS.get(entry.operands, "")
        options = [*entry.flags, *(f"{option} {VALUES.get(option, '1')}" for option in entry.valued)]
        options = [option.replace("-#", "-1") for option in options]
        commands += [f"{name} {option} {operand}".strip() for option in ("", *sorted(options)) if name != "sleep"]
    commands = [command for command in commands if command.split()[0] != "find" or command.endswith("src")]
    commands = [f"find src {command[5:-4]}" if command.startswith("find ") else command for command in commands]
    assert [command for command in commands if safe_read(shlex.split(command)) is None] == []
    before = snapshot(repository)
    run(repository, commands)
    assert snapshot(repository) == before


def test_no_line_of_the_corpora_that_the_list_allows_changes_anything(repository: Path) -> None:
    safe = [line for line in all_commands() if is_read_only_command(line, repository) and "sleep" not in line]
    assert len(safe) > 300
    before = snapshot(repository)
    run(repository, safe[:: 1 if examples(400) == 400 else 8])
    assert snapshot(repository) == before


REFUSED = (
    *("find . -exec rm x ;", "find . -delete", "find . -fprintf x y", "find . -ok rm ;", "find -L .",),
    *("find . -files0-from x", "sort -o x notes.txt", "sort notes.txt -ox", "sort --output=x", "sort --outp x",),
    *("sort --compress-program=x", "sort -T x", "rg --pre x y", "rg --hostname-bin x y", "rg -z x", "rg -f x y",),
    *("rg --hidden-bin x", "fd -x rm", "xxd -r a b", "uniq a b", "tree -o x", "file -C -m x", "file -m x y",),
    *("date -s x", "date 0101", "man -P x ls", "less x", "env", "printenv", "export", "printf -v x y",),
    *("printf '%n' 'a[$(x)]'", "printf '%-5n' x", "test -v x", "[ -v x ]", "declare x", "read x", "let x=1",),
    *("git -c a=b status", "git diff --output=x", "git diff --ext-diff", "git log --textconv", "git grep -O x",),
    *("git ls-remote x", "git grep --open-files-in-pager x", "git -C .. status", "git --git-dir=x log",),
    *("git branch x", "git branch -D x", "git tag x", "git remote add x y", "git reflog expire", "git stash",),
    *("git diff --outp=x", "git log ../x", "git diff /etc/passwd x", "git diff --no-index a b",),
    *("git status --untracked=x", "git rev-parse --sq-quote x", "git show :/x", "git config a b",),
    *("cat /etc/hostname", "cat ../outside/secret.txt", "cat links/secret", "ls links/out", "grep -R x .",),
    *("grep -f x y", "cat ~/x", "cat notes.txt > x", "cat < notes.txt", "cat $x", "cat *.txt",),
    *("X=1 cat notes.txt", "/bin/cat notes.txt", "./cat x", "cd .. && ls", "cd links/out && ls",),
    *("cd nowhere; cat ../x", "true | cd src; cat ../../x", "cd; ls", "cd -; ls", "cd a b",),
    *("cat notes.txt && rm x", "cat notes.txt | tee x", "cat notes.txt & ls", "diff -r src sub", "diff src sub",),
    *("strings @x", "ls --sort", "wc --files0-from=x", "du --files0-from=x", "head --lines", "cut -d",),
    *("tail -f notes.txt", "watch ls", "ls\x0cx", "((1))", "awk 1 x", "sed -n 1w x", "jq . x", "python3 -V x",),
    *("cat /proc/self/environ", "stat ~root", "ls -L links",),
)  # fmt: skip


def test_everything_else_asks_where_no_trial_works(desk: Desk) -> None:
    assert [line for line in REFUSED if desk.bash(line).decision == "allow"] == []


ALLOWED = (
    *("git status && ls -la | head -20", "cat src/lib.py", "cd src && cat app/main.py ../notes.txt",),
    *("grep -rn 'def x' src", "git log --oneline -5", "git diff HEAD~1 --stat", "find . -name '*.py' -type f",),
    *("wc -l notes.txt 2>/dev/null", "rg -n x", "ls src; pwd", "head -n5 notes.txt",),
    *("sort -t, -k2 data.csv | cut -d, -f1", "echo 'a b'", "git branch -a", "", "# x",),
)  # fmt: skip


@table("mode", ["ask", "plan", "deny", "accept_edits"])
def test_plain_reading_needs_no_answer_in_any_mode(desk: Desk, mode: str) -> None:
    assert [line for line in ALLOWED if desk.bash(line, mode=mode).decision != "allow"] == []


def test_git_needs_a_trusted_folder_and_rules_on_reading_hold(desk: Desk) -> None:
    untrusted = PermissionPolicy(desk.root, is_trusted=False)
    assert untrusted.check(desk.tools["bash"], {"command": "git status"}).decision == "ask"
    assert untrusted.check(desk.tools["bash"], {"command": "ls"}).decision == "allow"
    assert desk.bash("cat src/lib.py", "ask read(src/**)").decision == "ask"
    assert desk.bash("grep -r x .", "deny read(secrets/**)").decision != "allow"
    assert desk.bash("cat .env").decision == "ask"
