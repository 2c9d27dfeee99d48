"""Options are parsed as the command parses them; all others are refused."""

import pytest

from tui_agent.permissions.commands.argv import Arguments, exact_arguments, is_known
from tui_agent.permissions.commands.catalogue import CommandFacts, parse_row
from tui_agent.permissions.commands.invocation import Reads
from tui_agent.permissions.commands.row_effects import reads_by_row
from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN, VARIABLE


def parse_entry(entry: str) -> CommandFacts:
    reads, _, options = entry.partition(":")
    return parse_row("x", {"reads": reads, "options": options})


ENTRY = parse_entry("PATHS: -# -ab -n: -f< -c= --all --num: --file< --colour=")


def sorted_words(*words: str) -> Arguments | None:
    return exact_arguments(ENTRY, words)


@pytest.mark.parametrize(
    ("words", "operands", "given"),
    [
        (["x", "y"], ["x", "y"], set()),
        (["-a", "x", "-b"], ["x"], {"-a", "-b"}),
        (["-ab", "x"], ["x"], {"-a", "-b"}),
        (["-n", "5", "x"], ["x"], {"-n"}),
        (["-n5", "x"], ["x"], {"-n"}),
        (["-an5", "x"], ["x"], {"-a", "-n"}),
        (["-an", "5", "x"], ["x"], {"-a", "-n"}),
        (["-c", "x"], ["x"], {"-c"}),
        (["-cred", "x"], ["x"], {"-c"}),
        (["--num=5", "x"], ["x"], {"--num"}),
        (["--num", "5", "x"], ["x"], {"--num"}),
        (["--colour", "x"], ["x"], {"--colour"}),
        (["--colour=red", "x"], ["x"], {"--colour"}),
        (["--all", "--", "-z", "--what"], ["-z", "--what"], {"--all"}),
        (["-5", "x"], ["x"], set()),
        (["-", "x"], ["-", "x"], set()),
        ([PIPE], [PIPE], set()),
    ],
)
def test_words_are_parsed(words: list[str], operands: list[str], given: set[str]) -> None:
    options = sorted_words(*words)

    assert options is not None
    assert options.operands == operands
    assert set(options.given) == given


@pytest.mark.parametrize(
    "words",
    [
        ["-z"], ["-az"], ["--unknown"], ["--al"], ["--all=1"], ["-n"], ["--num"], [UNKNOWN], [VARIABLE], ["-n",
        UNKNOWN], ["--", UNKNOWN], [f"a{PIPE}"], ["--num=" + UNKNOWN], ["-5x"], ["-n" + UNKNOWN],
    ],
)  # fmt: skip
def test_unknown_words_are_refused(words: list[str]) -> None:
    assert sorted_words(*words) is None


def test_values_that_are_paths_are_read() -> None:
    for words in (["-f", "p"], ["-fp"], ["--file=p"], ["--file", "p"]):
        options = sorted_words(*words)
        assert options is not None
        assert options.paths == ["p"]
    stdin = sorted_words("-f", "-")
    assert stdin is not None
    assert stdin.paths == []


@pytest.mark.parametrize(
    ("entry", "words", "expected"),
    [
        ("ANY:", ["x"], Reads()),
        ("TEXT:", ["x"], Reads()),
        ("NONE:", [], Reads()),
        ("NONE:", ["x"], None),
        ("ONE:", ["x"], Reads(("x",))),
        ("ONE:", ["x", "y"], None),
        ("TWO:", ["x", "y"], Reads(("x", "y"))),
        ("TWO:", ["x", "y", "z"], None),
        ("PATHS:", ["x", "-", PIPE], Reads(("x",))),
        ("LIST:", [], Reads((".",))),
        ("LIST:", ["x"], Reads(("x",))),
        ("TREES:", [], Reads((), (".",))),
        ("TREES:", ["x"], Reads((), ("x",))),
        ("PATTERN: -e:!", ["p", "x"], Reads(("x",))),
        ("PATTERN: -e:!", ["-e", "p", "x"], Reads(("x",))),
        ("PATTERN: -f<!", ["-f", "p", "x"], Reads(("p", "x"))),
        ("SEARCH:", ["p"], Reads((), (".",))),
        ("SEARCH:", ["p", "x"], Reads((), ("x",))),
        ("SEARCH: --files!", ["--files", "x"], Reads((), ("x",))),
    ],
)
def test_reads_follow_from_the_entry(entry: str, words: list[str], expected: Reads | None) -> None:
    command = parse_entry(entry)
    options = exact_arguments(command, words)

    assert options is not None
    assert reads_by_row(command, options) == expected


def test_options_that_are_not_joined_stand_alone() -> None:
    entry = parse_entry("ONE: ~ -ps -c: -s:")

    assert exact_arguments(entry, ["-ps", "x"]) is not None
    assert exact_arguments(entry, ["-c", "4", "x"]) is not None
    assert exact_arguments(entry, ["-p", "x"]) is None
    assert exact_arguments(entry, ["-c4", "x"]) is None
    assert exact_arguments(entry, ["-c"]) is None


def test_only_certain_words_are_known() -> None:
    assert [is_known(word) for word in ("a", PIPE, UNKNOWN, f"a{VARIABLE}", f"{PIPE}a")] == [
        True,
        True,
        False,
        False,
        False,
    ]
