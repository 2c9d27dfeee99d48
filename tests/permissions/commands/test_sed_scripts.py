"""`sed` scripts that only print, and others."""

import pytest

from tui_agent.permissions.commands.text_scripts import sed_reads
from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN, SimpleCommand


@pytest.mark.parametrize(
    "script",
    [
        "p",
        "5p",
        "1,5p",
        "$p",
        "1~2p",
        "/a/p",
        "/a\\/b/,/c/p",
        "/a/I,+3p",
        "5q",
        "/x/!d",
        "s/a/b/",
        "s/a/b/gI2",
        "s|a|b|",
        "s,a,b,g",
        "s#a#b#p",
        "\\|a|d",
        "p;d",
        "1p\n2p",
        "=",
        "s/a\\/b/c/",
        "1!p",
        "$!d",
        "/a/s/b/c/;5q",
        "/a/{p;q}",
        "/a/{p;q;}",
        "y/a/b/",
        "{p}",
        "$!{h;d};x;G",
        "1!G;h;$!d",
        ":a;N;$!ba;s/\\n/ /g",
        "b",
        "t",
        "i\\x",
        "a x",
        "c x",
        "F",
        "z",
        "l",
        "N",
        "D",
        "0,/x/p",
        "/a/,/b/{/a/!{/b/!p}}",
        "# words\np",
    ],
)
def test_sed_scripts_that_print(script: str) -> None:
    assert sed_reads(["sed", "-n", script, "f"], SimpleCommand("", ())) is not None


@pytest.mark.parametrize(
    "script",
    [
        "w x",
        "1w x",
        "s/a/b/w x",
        "s/a/b/e",
        "1e ls",
        "e",
        "r x",
        "R x",
        "W x",
        "F x",
        "s/a/b",
        "/a",
        "p x",
        "s/a/b/;w x",
        "p}",
        "s/a/b/ge",
        "s/a\nb/c/",
        "v",
        "{p",
        "{w x\n}",
        "b a;w x",
        "s/[/]/w x/",
        "a\\",
        "a x\\\nw y",
        "/a/{p;w x",
        "y/a/b/;r x",
        ": a w",
        "}",
        "1,p",
        "s/a/b/ w x",
    ],
)
def test_sed_scripts_that_may_do_more(script: str) -> None:
    assert sed_reads(["sed", script, "f"], SimpleCommand("", ())) is None


def test_sed_options() -> None:
    use = sed_reads(["sed", "-n", "-e", "p", "--expression=d", "a", "-", "b", PIPE], SimpleCommand("", ()))
    assert use is not None
    assert use.paths == ("a", "b")
    for words in (
        ["sed"],
        ["sed", "-i", "p", "f"],
        ["sed", "-f", "x"],
        ["sed", "-n", UNKNOWN],
        ["sed", "-e", "w x", "f"],
    ):
        assert sed_reads(words, SimpleCommand("", ())) is None
