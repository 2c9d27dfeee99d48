"""`awk` programs that only print, and others."""

import pytest

from tui_agent.permissions.commands.text_scripts import awk_reads
from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand


@pytest.mark.parametrize(
    "program",
    [
        "{print $1}",
        "NR==1",
        "/a\\.b/ {print}",
        "{s+=$1} END {print s}",
        "$1 > 3 {print $2}",
        "NR>=1 && NR<=3",
        "NR==1 || NR==3",
        'BEGIN {FS=","} {printf "%s\\n", $1}',
        "length > 80",
        "{if ($1 > 5) print $1}",
        "BEGIN{for(i=0;i<3;i++) print i}",
        '/a|b/ {n++} END {print n/NR*100 "%"}',
        "/a>b/ {print}",
        '{print "a|b > c"}',
        "END {if (n > 0) print s/n}",
        "{a[$1]++} END {for (k in a) print k, a[k]}",
        '{x = "a" > "b"}',
        '{print ($1 > 2 ? "a" : "b")}',
    ],
)
def test_awk_programs_that_print(program: str) -> None:
    use = awk_reads(["awk", "-F", ",", "-v", "x=1", program, "a", "x=2", "-", "b"], SimpleCommand("", ()))

    assert use is not None
    assert use.paths == ("a", "b")


@pytest.mark.parametrize(
    "program",
    [
        '{print > "x"}',
        '{print | "sh"}',
        'BEGIN{system("x")}',
        "{getline}",
        'BEGIN{while(("x"|getline)>0);}',
        '@load "x"',
        '{print ENVIRON["X"]}',
        'BEGIN{ARGV[1]="x"}',
        '$1 > 2 {print > "x"}',
        'print > "x"',
        'function f(){print > "x"}',
        '{close("x")}',
        '{print a / b > "f" / c}',
        '{print length / 2 > "f" / c}',
        'BEGIN{printf /"/ > "f" "/"}',
        '{print $/"/ > "f" /x"/}',
        '{for (;;print > "f") x}',
        '{print (1)/"x" > "f" "/"}',
        '{x = y ~ /[/]/ > "f" /"/}',
        '{print "a',
        "/a",
        "# x\n{print}",
        '{print |& "x"}',
        '{printf("x") > "f"}',
        '{print($1)>"f"}',
        '{print ("a") > ("f")}',
    ],
)
def test_awk_programs_that_may_do_more(program: str) -> None:
    assert awk_reads(["awk", program, "f"], SimpleCommand("", ())) is None


def test_awk_needs_a_program_in_its_words() -> None:
    assert awk_reads(["awk"], SimpleCommand("", ())) is None
    assert awk_reads(["awk", "-f", "x"], SimpleCommand("", ())) is None
    assert awk_reads(["awk", UNKNOWN], SimpleCommand("", ())) is None
