"""The table of read-only commands: its notation, and that no entry writes or runs anything."""

import re
import shutil
import subprocess

import pytest

from tui_agent.permissions.read_only_git import GIT_COMMANDS
from tui_agent.permissions.read_only_table import ALIASES, COMMANDS, parse_entry, read_only_command

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
    "jq": ["-f", "--from-file", "-L", "--arg", "--slurpfile", "--rawfile"],
    "tar": ["-x", "-c", "-C", "-I", "--to-command", "--checkpoint-action", "-r", "-u"],
    "unzip": ["-o", "-d", "-x"],
    "hostname": ["-F", "-b"],
    "iconv": ["-o", "--output"],
    "ps": ["-E", "e"],
    "strings": ["-T"],
}
GIT_DANGEROUS = ["--output", "--ext-diff", "--textconv", "-O", "--open-files-in-pager", "--upload-pack", "--exec"]


def test_the_notation() -> None:
    entry = parse_entry("PATTERN: -# -ab -c: -d<! -e= --long --text: --file< --maybe= --pattern:!")

    assert entry.operands == "PATTERN"
    assert entry.options == {
        "-a": "", "-b": "", "-c": "text", "-d": "path", "-e": "optional", "--long": "", "--text": "text",
        "--file": "path", "--maybe": "optional", "--pattern": "text",
    }  # fmt: skip
    assert entry.gives_pattern == {"-d", "--pattern"}
    assert entry.takes_number
    assert entry.joins


def test_options_that_are_never_joined() -> None:
    entry = parse_entry("ONE: ~ -ps -c:")

    assert entry.options == {"-ps": "", "-c": "text"}
    assert not entry.joins
    assert not entry.takes_number


@pytest.mark.parametrize("name", COMMANDS)
def test_every_entry_can_be_parsed(name: str) -> None:
    entry = read_only_command(name)

    assert entry is not None
    assert set(entry.options) - {option for option in entry.options if option.startswith("-")} == set()


@pytest.mark.parametrize(("name", "options"), DANGEROUS.items())
def test_no_entry_writes_runs_or_leads_out(name: str, options: list[str]) -> None:
    entry = read_only_command(name)

    assert entry is not None
    assert [option for option in options if option in entry.options] == []


@pytest.mark.parametrize("name", GIT_COMMANDS)
def test_no_git_entry_does_either(name: str) -> None:
    entry = parse_entry(GIT_COMMANDS[name])

    assert [option for option in GIT_DANGEROUS if option in entry.options] == []


def test_aliases_name_entries_or_checkers() -> None:
    assert read_only_command("egrep") == read_only_command("grep")
    assert read_only_command("no-such-command") is None
    assert all(target in COMMANDS or target == "awk" for target in ALIASES.values())


@pytest.mark.parametrize(
    "name", [name for name, text in COMMANDS.items() if "--help" in text and shutil.which(name) and name != "fd"]
)
def test_options_take_a_value_as_the_programs_help_says(name: str) -> None:
    """A value mistaken for an operand is judged too strictly; an operand mistaken for a value would be missed."""
    entry = read_only_command(name)
    assert entry is not None
    usage = subprocess.run([name, "--help"], capture_output=True, text=True, check=False).stdout

    wrong = [
        option
        for option, kind in entry.options.items()
        if kind in ("text", "path") and option.startswith("--") and option in usage and not _takes_value(option, usage)
    ]

    assert wrong == []


def _takes_value(option: str, usage: str) -> bool:
    """True if a line of a program's help shows the option with a value."""
    behind = [usage[at + len(option) :][:2] for at in range(len(usage)) if usage.startswith(option, at)]
    return any(re.match(r"[=\[]| ?[<A-Z]", text) for text in behind)
