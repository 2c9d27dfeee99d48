"""Little languages inside words."""

import pytest

from tui_agent.permissions.read_only_scripts import awk_use, is_plain_jq, printf_use, sed_use
from tui_agent.permissions.shell_syntax import PIPE, UNKNOWN


@pytest.mark.parametrize(
    "script",
    ["p", "5p", "1,5p", "$p", "1~2p", "/a/p", "/a\\/b/,/c/p", "/a/I,+3p", "5q", "/x/!d", "s/a/b/", "s/a/b/gI2",
     "s|a|b|", "s,a,b,g", "s#a#b#p", "p;d", "1p\n2p", "=", "s/a\\/b/c/", "1!p", "$!d", "/a/s/b/c/;5q"],
)  # fmt: skip
def test_sed_scripts_that_print(script: str) -> None:
    assert sed_use(["sed", "-n", script, "f"]) is not None


@pytest.mark.parametrize(
    "script",
    ["w x", "1w x", "s/a/b/w x", "s/a/b/e", "1e ls", "e", "r x", "R x", "W x", "a x", "i\\x", "c x", "y/a/b/", "{p}",
     "b", "t", "F x", "s/a/b", "/a", "p x", "s/a/b/;w x", "p}", "s/a/b/ge", "s/a\nb/c/", "v", "z", "l", "N", "D"],
)  # fmt: skip
def test_sed_scripts_that_may_do_more(script: str) -> None:
    assert sed_use(["sed", script, "f"]) is None


def test_sed_options() -> None:
    use = sed_use(["sed", "-n", "-e", "p", "--expression=d", "a", "-", "b", PIPE])
    assert use is not None
    assert use.paths == ("a", "b")
    for words in (
        ["sed"],
        ["sed", "-i", "p", "f"],
        ["sed", "-f", "x"],
        ["sed", "-n", UNKNOWN],
        ["sed", "-e", "w x", "f"],
    ):
        assert sed_use(words) is None


@pytest.mark.parametrize(
    "program",
    ["{print $1}", "NR==1", "/a\\.b/ {print}", "{s+=$1} END {print s}", "$1 > 3 {print $2}", "NR>=1 && NR<=3",
     "NR==1 || NR==3", "BEGIN {FS=\",\"} {printf \"%s\\n\", $1}", "length > 80"],
)  # fmt: skip
def test_awk_programs_that_print(program: str) -> None:
    use = awk_use(["awk", "-F", ",", "-v", "x=1", program, "a", "x=2", "-", "b"])

    assert use is not None
    assert use.paths == ("a", "b")


@pytest.mark.parametrize(
    "program",
    ["{print > \"x\"}", "{print | \"sh\"}", "BEGIN{system(\"x\")}", "{getline}", "BEGIN{while((\"x\"|getline)>0);}",
     "@load \"x\"", "{print ENVIRON[\"X\"]}", "BEGIN{ARGV[1]=\"x\"}", "$1 > 2 {print > \"x\"}", "print > \"x\"",
     "function f(){print > \"x\"}", "{close(\"x\")}", "{x = \"a\" > \"b\"}", "/a>b/ {print}"],
)  # fmt: skip
def test_awk_programs_that_may_do_more(program: str) -> None:
    assert awk_use(["awk", program, "f"]) is None


def test_awk_needs_a_program_in_its_words() -> None:
    assert awk_use(["awk"]) is None
    assert awk_use(["awk", "-f", "x"]) is None
    assert awk_use(["awk", UNKNOWN]) is None


@pytest.mark.parametrize(
    "words", [["%s\\n", "a"], ["--", "%5.2f"], ["a%%b"], ["%-10s|%*d"], ["%(%F)T"], ["x", UNKNOWN]]
)
def test_printf_formats_that_print(words: list[str]) -> None:
    assert printf_use(["printf", *words]) is not None


@pytest.mark.parametrize(
    "words", [[], ["-v", "x", "y"], ["%n"], ["%s%n", "a"], [UNKNOWN], ["-x"], ["--"], ["%"], ["%y"]]
)
def test_printf_formats_that_may_do_more(words: list[str]) -> None:
    assert printf_use(["printf", *words]) is None


def test_jq_programs_that_look_elsewhere() -> None:
    assert is_plain_jq(".a | keys[] | select(.x > 1)")
    for program in ("env", "$ENV.X", 'import "x" as x; .', 'include "x"; .'):
        assert not is_plain_jq(program)
