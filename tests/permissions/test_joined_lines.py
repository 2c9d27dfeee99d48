"""Line continuations: bash joins lines before it reads anything else, and no join loosens a decision."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_agent.permissions import is_read_only_command

JOIN = "\\\n"

CHANGING = (
    *('echo "$(touch PWN)"', 'echo "`touch PWN`"', "echo $[$(touch PWN)]", "echo {a,$(touch PWN)}"),
    *('x=\'$(touch PWN)\'; echo "${x@P}"', "x='a[$(touch PWN)]'; echo \"$((x))\"", 'echo "${y:=$(touch PWN)}"'),
    *("cat <<EOF\n$(touch PWN)\nEOF", 'cat <<"EOF"\n$(touch PWN)\nEOF\ntouch PWN', 'cat <<< "$(touch PWN)"'),
    *("cat <(touch PWN)", "echo a > PWN", "echo a &> PWN", "echo a | tee PWN", "ls; touch PWN", "ls |& touch PWN"),
    *('[[ -n "$(touch PWN)" ]]', 'case "$(touch PWN)" in a) ;; esac', "for i in $(touch PWN); do echo $i; done"),
    *("echo $'a'$(touch PWN)", "echo 'a'\"$(touch PWN)\"", 'echo "$( echo "$(touch PWN)")"'),
    'git log "--grep=$(touch PWN)"',
    *("sed -n 1wPWN a.txt", "awk '{print > \"PWN\"}' a.txt", "find . -exec touch PWN \\;", "sort -o PWN a.txt"),
    *("! touch PWN", "(touch PWN)", "f() { touch PWN; }; f", "eval touch PWN", 'sh -c "touch PWN"'),
    "declare x=$(touch PWN)",
)  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("joined")
    (root / "a.txt").write_text("x\n")
    return root


def joined(command: str) -> Iterator[str]:
    """Yield the command with one line continuation inserted, at each offset."""
    for place in range(1, len(command)):
        yield f"{command[:place]}{JOIN}{command[place:]}"


@pytest.mark.parametrize("command", CHANGING)
def test_an_allowed_command_with_a_joined_line_changes_nothing(workspace: Path, command: str) -> None:
    assert not is_read_only_command(command, workspace)
    for spelling in joined(command):
        if is_read_only_command(spelling, workspace):
            # A join inside single quotes is text, and may make the command harmless.
            run = ("bash", "--noprofile", "--norc", "-c", spelling)
            subprocess.run(run, cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
            assert [path.name for path in workspace.iterdir()] == ["a.txt"], spelling


@pytest.mark.parametrize("opened", ["(touch PWN)", "{x@P}", "((x))", "x", "@", "`ls`"])
@pytest.mark.parametrize("form", ['echo "$\\\n{}"', "echo $\\\n{}", "cat <<EOF\n$\\\n{}\nEOF", 'echo "$\\\n\\\n{}"'])
def test_a_dollar_before_a_joined_line_is_never_text(workspace: Path, form: str, opened: str) -> None:
    assert not is_read_only_command(form.replace("{}", opened), workspace)


@pytest.mark.parametrize("command", ['echo "a\\\nb"', "ls \\\n  -la", "git log \\\n --oneline", 'echo "a$" \\\n b'])
def test_ordinary_joined_lines_run(workspace: Path, command: str) -> None:
    assert is_read_only_command(command, workspace)
