"""The catalogue of commands: its notation, and that no harmless option writes or runs anything."""

import re
import shutil
import subprocess

import pytest

from tui_agent.permissions.commands.catalogue import all_facts, canonical_name, extended, facts_of, parse_row

DANGEROUS = {
    "sort": ["-o", "--output", "-T", "--compress-program", "--files0-from", "--random-source"],
    "rg": ["--pre", "--pre-glob", "-z", "--search-zip", "--hostname-bin", "-L", "--follow", "--ignore-file", "--debug"],
    "grep": ["-R", "--dereference-recursive", "--exclude-from"],
    "tree": ["-o", "-l", "-R", "-H", "--fromfile", "--info"],
    "diff": ["-l", "--paginate", "--to-file", "--from-file", "-X", "--exclude-from"],
    "date": ["-s", "--set", "-f", "--file"],
    "file": ["-m", "--magic-file", "-C", "--compile", "-f", "--files-from", "-z", "--uncompress", "-p"],
    "fd": ["-x", "-X", "--exec", "--exec-batch", "-L", "--follow", "-l", "--list-details", "--base-directory"],
    "xxd": ["-r", "-R"],
    "ls": ["-L", "-H", "--dereference", "--dereference-command-line"],
    "du": ["-L", "--dereference", "-X", "--exclude-from", "--files0-from"],
    "wc": ["--files0-from"],
    "tail": ["-F", "--retry"],
    "jq": ["-f", "--from-file", "-L", "--slurpfile", "--rawfile"],
    "tar": ["-x", "-c", "-C", "-I", "--to-command", "--checkpoint-action", "-r", "-u"],
    "unzip": ["-o", "-d", "-x"],
    "hostname": ["-F", "-b"],
    "iconv": ["-o", "--output"],
    "ps": ["-E", "e"],
    "strings": ["-T"],
}
GIT_DANGEROUS = ["--output", "--ext-diff", "--textconv", "-O", "--open-files-in-pager", "--upload-pack", "--exec"]


READERS = {name: row for name, row in all_facts().items() if row.reads is not None}


def test_the_notation() -> None:
    options = "-# -ab -c: -d<! -e= --long --text: --file< --maybe= --pattern:!"
    row = parse_row("x", {"reads": "PATTERN", "options": options})

    assert row.reads == "PATTERN"
    assert row.options == {
        "-#": "", "-a": "", "-b": "", "-c": "text", "-d": "read", "-e": "optional", "--long": "", "--text": "text",
        "--file": "read", "--maybe": "optional", "--pattern": "text",
    }  # fmt: skip
    assert row.harmless == row.options.keys()
    assert row.reading.gives_pattern == {"-d", "--pattern"}
    assert row.joins
    assert not row.has_effects


def test_effects() -> None:
    effects = "-o> -t* -C@ -x$ -k: -i=! -n? -r&"
    row = parse_row("x", {"writes": "LAST", "options": "-k: -v", "effects": effects})

    assert row.options == {
        "-k": "text", "-v": "", "-o": "write", "-t": "into", "-C": "directory", "-x": "code", "-i": "optional",
        "-n": "", "-r": "",
    }  # fmt: skip
    assert row.harmless == {"-k", "-v"}
    assert (row.writes, row.changes.needed, row.changes.preventing, row.changes.whole) == (
        "LAST",
        {"-i"},
        {"-n"},
        {"-r"},
    )
    assert row.has_effects
    assert row.reads is None


def test_options_that_are_never_joined() -> None:
    row = parse_row("x", {"reads": "ONE", "options": "~ -ps -c:"})

    assert row.options == {"-ps": "", "-c": "text"}
    assert not row.joins


def test_a_row_may_extend_another() -> None:
    base = {"reads": "PATTERN", "writes": "ALL", "options": "-# -a -e:!", "effects": "-o>", "plain": {"-o": "x"}}
    row = parse_row("y", extended(base, {"reads": "PATHS", "options": "-b"}))

    assert row.options == {"-#": "", "-a": "", "-e": "text", "-o": "write", "-b": ""}
    assert row.harmless == {"-#", "-a", "-e", "-b"}
    assert row.reading.gives_pattern == {"-e"}
    assert (row.reads, row.writes, row.is_plain("-o", "x")) == ("PATHS", "NONE", True)


@pytest.mark.parametrize("row", [{"read": "PATHS"}, {"reads": "paths"}, {"writes": "SOME"}, {"runs": "maybe"}])
def test_a_faulty_row_is_refused(row: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="x"):
        parse_row("x", row)


@pytest.mark.parametrize("name", all_facts())
def test_every_row_is_read(name: str) -> None:
    row = all_facts()[name]

    assert all(option == "+" or (option.startswith("-") and len(option) > 1) for option in row.options)
    assert row.harmless | row.changes.needed | row.changes.preventing | row.changes.whole <= row.options.keys()
    assert not any(row.options[option] in ("write", "into", "code") for option in row.harmless if row.reads)


@pytest.mark.parametrize(("name", "options"), DANGEROUS.items())
def test_no_harmless_option_writes_runs_or_leads_out(name: str, options: list[str]) -> None:
    row = READERS[name]

    assert [option for option in options if option in row.harmless] == []


@pytest.mark.parametrize("name", [name for name in READERS if name.startswith("git ")])
def test_no_harmless_option_of_git_does_either(name: str) -> None:
    assert [option for option in GIT_DANGEROUS if option in READERS[name].harmless] == []


def test_other_names_are_names_of_rows() -> None:
    assert facts_of("egrep") is facts_of("grep")
    assert canonical_name("/usr/bin/egrep") == "grep"
    assert canonical_name("/usr/bin/no-such-command") == "no-such-command"
    assert facts_of("no-such-command") is None


def test_a_name_with_a_blank_is_not_a_subcommand() -> None:
    assert facts_of("git", "log") is not None
    assert facts_of("git log") is None


@pytest.mark.parametrize(
    "name", [name for name, row in READERS.items() if "--help" in row.harmless and shutil.which(name) and name != "fd"]
)
def test_options_take_a_value_as_the_programs_help_says(name: str) -> None:
    """A value mistaken for an operand is judged too strictly; an operand mistaken for a value would be missed."""
    row = READERS[name]
    usage = subprocess.run([name, "--help"], capture_output=True, text=True, check=False).stdout

    wrong = [
        option
        for option, kind in row.options.items()
        if kind in ("text", "read") and option.startswith("--") and option in usage and not _takes_value(option, usage)
    ]

    assert wrong == []


def _takes_value(option: str, usage: str) -> bool:
    """True if a line of a program's help shows the option with a value."""
    behind = [usage[at + len(option) :][:2] for at in range(len(usage)) if usage.startswith(option, at)]
    return any(re.match(r"[=\[]| ?[<A-Z]", text) for text in behind)


def test_conditions_of_a_read_only_use() -> None:
    row = parse_row("x", {"reads": "PATHS", "only": r"(?:\+[^\0]*\0)*", "needs": ["-a -b", "-c"], "selects": "-c"})
    words = parse_row("y", {"reads": "PATHS", "words": r"list\0.*"})

    assert row.reading.allows(["-ac", "+x"], ["+x"], {"-a", "-c"})
    assert not row.reading.allows(["-ac", "x"], ["x"], {"-a", "-c"})
    assert not row.reading.allows(["-c"], [], {"-c"})
    assert not row.reading.allows(["-a", "+x"], ["+x"], {"-a"})
    assert words.reading.allows(["list", "-p"], ["list"], {"-p"})
    assert not words.reading.allows(["-p", "list"], ["list"], {"-p"})


def test_another_name_of_one_word_stands_for_a_row_of_one_word() -> None:
    assert [name for name, row in all_facts().items() if " " not in name and " " in row.name] == []
