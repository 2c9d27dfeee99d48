"""Which commands only look: the table with what it cannot say."""

import pytest

from tui_agent.permissions.read_only_check import is_reader, own_name, read_only_use
from tui_agent.permissions.read_only_options import Use
from tui_agent.permissions.shell_syntax import UNKNOWN, SimpleCommand

RAW = SimpleCommand("", ())


def use_of(text: str) -> Use | None:
    return read_only_use(text.split(" "), RAW)


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("ls", Use((".",))),
        ("/bin/ls a", Use(("a",))),
        ("ls -R a", Use((), listed=("a",))),
        ("ls -R", Use((), listed=(".",))),
        ("echo -z --what " + UNKNOWN, Use()),
        ("grep x a", Use(("a",))),
        ("grep -r x a", Use((), ("a",))),
        ("grep -r x", Use((), (".",))),
        ("grep -rf p x a", Use(("p",), ("x", "a"))),
        ("egrep x a", Use(("a",))),
        ("diff a b", Use(("a", "b"), only_files=True)),
        ("diff --no-dereference -r a b", Use((), ("a", "b"))),
        ("diff -r a b", Use((), ("a", "b"), follows_links=True)),
        ("zcat a.gz", Use(("a.gz",))),
        ("gzip -dc a.gz", Use(("a.gz",))),
        ("jq --arg x y .a f", Use(("f",))),
        ("date -r a", Use(("a",))),
        ("set -euo pipefail", Use()),
        ("read -r a B", Use()),
        ("printenv PATH", Use()),
        ("tar tzf a.tgz", Use(("a.tgz",))),
        ("tar -tf a.tar m", Use(("a.tar", "m"))),
        ("unzip -l a.zip", Use(("a.zip",))),
        ("date -u +%F", Use()),
        ("ps aux", Use()),
        ("ps -eo pid,comm", Use()),
        ("jq .a f", Use(("f",))),
        ("cd", Use(("~",))),
        ("cd -P -- a", Use(("a",))),
        ("command -v x", Use()),
        ("python3 --version", Use()),
        ("java -version", Use()),
    ],
)
def test_what_looks(text: str, use: Use) -> None:
    assert use_of(text) == use


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
def test_what_may_do_more(text: str) -> None:
    assert use_of(text) is None


def test_names() -> None:
    assert own_name("/usr/bin/egrep") == "grep"
    assert is_reader("/bin/cat")
    assert is_reader("git")
    assert not is_reader("rm")
