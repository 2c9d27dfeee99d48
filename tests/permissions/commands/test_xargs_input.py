"""Commands that `xargs` and `find -exec` may pass names to."""

import shutil
import subprocess

import pytest

from tests.permissions.conftest import Desk
from tui_agent.permissions.commands.analysis import accepts_any_files
from tui_agent.permissions.commands.wrappers import splits_at_nul
from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand, Word


@pytest.mark.parametrize(
    "text",
    ["cat", "head -3", "grep -n x", "rg x src", "wc -l", "sed -n 1p", "git log --", "echo a", "printf %s", "jq .a",
     "grep -e x", "ls -la", "du -sh"],
)  # fmt: skip
def test_commands_that_treat_all_names_alike(text: str) -> None:
    assert accepts_any_files(text.split(" "))


@pytest.mark.parametrize(
    "text",
    ["", "rm", "sed", "sed -n", "awk", "git", "git log", "git show", "tar", "tar tf", "find", "diff", "uniq", "head -n",
     "grep", "rg", "jq", "printf", "date", "test -f", "cd", "sort -o", f"cat {UNKNOWN}"],
)  # fmt: skip
def test_commands_that_treat_the_first_name_differently(text: str) -> None:
    assert not accepts_any_files(text.split(" "))


@pytest.mark.parametrize(
    ("text", "is_nul_separated"),
    [("xargs cat", False), ("xargs -0 cat", True), ("xargs -r0 cat", True), ("xargs --null cat", True),
     ("xargs -a x cat", None), ("xargs --arg-file=x cat", None), ("xargs -d / cat", None), (r"xargs -d \n cat", False)],
)  # fmt: skip
def test_separators_of_xargs(text: str, is_nul_separated: bool | None) -> None:
    words = tuple(Word(word) for word in text.split(" "))

    assert splits_at_nul(SimpleCommand(text, words)) is is_nul_separated


@pytest.mark.parametrize(
    ("target", "decision"), [("lib.py", "allow"), ("/etc/hostname", "ask"), ("../README.md", "allow")]
)
def test_links_are_allowed_if_none_leads_out(desk: Desk, target: str, decision: str) -> None:
    (desk.root / "src" / "link.py").symlink_to(target)

    assert desk.bash("find src -name '*.py' | xargs cat").decision == decision
    assert desk.bash("find src -name '*.py' -exec cat {} +").decision == decision
    assert desk.bash("cat $(find src -name '*.py')").decision == decision
    assert desk.bash("find src -name '*.py' | while read -r f; do cat \"$f\"; done").decision == decision
    assert desk.bash("find src -type f -name '*.py' | xargs cat").decision == "allow"


@pytest.mark.parametrize("name", ["a b", "-rf", "it's", 'q"', "back\\slash", "line\nend"])
def test_ambiguous_names_need_an_answer(desk: Desk, name: str) -> None:
    (desk.root / name).touch()

    for command in ("ls | xargs cat", "cat $(ls)", "ls | while read f; do cat $f; done", "rg -l x | xargs cat"):
        assert desk.bash(command).decision == "ask", command


@pytest.mark.parametrize(
    "text",
    ["git ls-files | xargs cat", "git ls-files -z | xargs -0 wc -l", "wc -l $(git ls-files '*.py')",
     "f=$(git ls-files); wc -l $f",
     "git ls-files | grep py | xargs -n1 dirname", 'git ls-files | while read -r f; do head -3 "$f"; done',
     "for f in $(git ls-files); do wc -l $f; done"],
)  # fmt: skip
def test_tracked_files_may_be_passed_on_unless_one_leads_out(desk: Desk, text: str) -> None:
    shutil.rmtree(desk.root / ".git")
    subprocess.run(("git", "init", "-q"), cwd=desk.root, check=True)
    subprocess.run(("git", "add", "src", "README.md"), cwd=desk.root, check=True)
    assert desk.bash(text).decision == "allow"

    (desk.root / "src" / "lib.py").unlink()
    (desk.root / "src" / "lib.py").symlink_to("/etc/passwd")
    is_name_only = "dirname" in text
    assert desk.bash(text).decision == ("allow" if is_name_only else "ask")


def test_rules_apply_to_passed_names(desk: Desk) -> None:
    for command in ("ls | xargs cat", "cat $(ls)", "f=$(ls); cat $f", "ls | while read f; do cat $f; done"):
        assert desk.bash(command, "deny read(notes.txt)").decision == "deny", command
