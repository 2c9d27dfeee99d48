"""Recognition of read-only commands: the table, and the conditions it cannot express."""

import pytest

from tui_agent.permissions.commands.analysis import is_mostly_read_only, read_only_use
from tui_agent.permissions.commands.catalogue import canonical_name
from tui_agent.permissions.commands.invocation import Reads
from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand

RAW = SimpleCommand("", ())


def reads_of(text: str) -> Reads | None:
    return read_only_use(text.split(" "), RAW)


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("ls", Reads((".",))),
        ("/bin/ls a", Reads(("a",))),
        ("ls -R a", Reads((), listed=("a",))),
        ("ls -R", Reads((), listed=(".",))),
        ("echo -z --what " + UNKNOWN, Reads()),
        ("grep x a", Reads(("a",))),
        ("grep -r x a", Reads((), ("a",))),
        ("grep -r x", Reads((), (".",))),
        ("grep -rf p x a", Reads(("p",), ("x", "a"))),
        ("egrep x a", Reads(("a",))),
        ("diff a b", Reads(("a", "b"), only_files=True)),
        ("diff --no-dereference -r a b", Reads((), ("a", "b"))),
        ("diff -r a b", Reads((), ("a", "b"), follows_links=True)),
        ("zcat a.gz", Reads(("a.gz",))),
        ("gzip -dc a.gz", Reads(("a.gz",))),
        ("jq --arg x y .a f", Reads(("f",))),
        ("date -r a", Reads(("a",))),
        ("set -euo pipefail", Reads()),
        ("read -r a B", Reads()),
        ("printenv PATH", Reads()),
        ("tar tzf a.tgz", Reads(("a.tgz",))),
        ("tar -tf a.tar m", Reads(("a.tar", "m"))),
        ("unzip -l a.zip", Reads(("a.zip",))),
        ("date -u +%F", Reads()),
        ("ps aux", Reads()),
        ("ps -eo pid,comm", Reads()),
        ("jq .a f", Reads(("f",))),
        ("cd", Reads(("~",))),
        ("cd -P -- a", Reads(("a",))),
        ("command -v x", Reads()),
        ("python3 --version", Reads()),
        ("java -version", Reads()),
    ],
)
def test_read_only_commands(text: str, use: Reads) -> None:
    assert reads_of(text) == use


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nope",
        "./ls",
        "a/ls",
        UNKNOWN,
        "date 0101",
        "ps e",
        "ps -o environ",
        "jq env f",
        "tar xf a",
        "tar -t",
        "tar tf h:a",
        "unzip a",
        "unzip -l",
        "cd a b",
        "cd - x",
        f"cd {UNKNOWN}",
        "command ls",
        "command",
        "python3 -c 1",
        "yarn --version",
        "zcat a",
        "gzip a.gz",
        "gzip -d a.gz",
        "top",
        "netstat -t",
        "man ./x",
        "yq load f",
        "less +x f",
        "set -a",
        "set -o posix",
        "set --",
        "read PATH",
        "read -a x",
        "printenv",
        "unzip -p *.zip",
        "jq --arg x",
        "ls --nope",
        "python3 --version x",
    ],
)
def test_commands_that_may_do_more(text: str) -> None:
    assert reads_of(text) is None


def test_names_of_commands() -> None:
    assert canonical_name("/usr/bin/egrep") == "grep"
    assert is_mostly_read_only("/bin/cat")
    assert is_mostly_read_only("git")
    assert not is_mostly_read_only("rm")
