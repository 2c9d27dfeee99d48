"""Telling commands from messages that begin with a slash."""

from typing import Any

import pytest

from tests.support.table import table
from tui_agent.protocol.prompt_references import PromptCommand, file_mentions
from tui_agent.ui.composer.prompt_parser import (
    ShellCall,
    SlashCall,
    TargetedMessage,
    UnknownSlash,
    own_command,
    parse_shell_call,
    parse_slash_call,
    parse_targeted_message,
    pasted_media_path,
    suggestions,
)

OWN = tuple(map(PromptCommand, ("frontend:test", "deploy", "help")))


@table(
    "text",
    [
        *("help", "// a comment", "/", "fix /help", "\\/modle opus", "/ model", "/2024 was better", "/1/2"),
        *("/etc/hosts is empty", "/home/x is broken", "/home/x", "/tmp/", "/a.py fails", "/usr/bin/env: not found\n/x"),
    ],
)
def test_a_sentence_or_a_path_is_a_message(text: str) -> None:
    assert parse_slash_call(text) is None


def test_text_that_a_command_does_not_take_is_not_a_message_and_a_misspelt_command_names_the_nearest() -> None:
    for text in ("/help me with this test", "/help\nand more", "/clear it", "/rename one\ntwo"):
        assert parse_slash_call(text) == UnknownSlash(text[1:].split()[0], None, exists=True)
    assert parse_slash_call("/hlep") == UnknownSlash("hlep", "help")
    assert parse_slash_call("/modle opus") == UnknownSlash("modle", "model")
    assert parse_slash_call("/Model opus") == UnknownSlash("Model", "model")
    assert parse_slash_call("/modle\nopus") == UnknownSlash("modle", "model")
    assert parse_slash_call("/módel opus") == UnknownSlash("módel", "model")
    assert parse_slash_call("/zzzzzz") == UnknownSlash("zzzzzz", None)
    assert parse_slash_call("/etc is full") == UnknownSlash("etc", None)
    assert parse_slash_call("/frontend:tset", OWN) == UnknownSlash("frontend:tset", "frontend:test")
    assert parse_slash_call("\\/modle opus") is None


def names(draft: str, **options: Any) -> list[str | None]:
    return [entry.slash for entry in suggestions(draft, OWN, **options)]


def test_what_is_used_most_comes_first() -> None:
    uses = {"cost": 3, "files": 7, "deploy": 1}
    assert names("/", uses=uses)[:4] == ["files", "cost", "deploy", "help"]
    assert names("/c", uses=uses)[0] == "cost"
    assert names("/de", uses=uses) == ["deploy", "demo"]


@table("draft", ["/", "/c", "/co", "/d", "/s", "/f"])
def test_enter_never_runs_what_ends_a_session_or_costs_tokens_by_a_part_of_its_name(draft: str) -> None:
    often = dict.fromkeys(("clear", "compact", "quit", "demo", "fork", "stop", "init", "deploy"), 50)
    found = names(draft, uses=often)

    assert found[0] not in {"clear", "compact", "quit", "demo", "fork", "stop", "init"}
    assert draft != "/" or found[0] != "deploy"
    assert names("/clear", uses=often)[0] == "clear"


def test_own_commands_come_first_from_the_second_letter_on_unless_a_built_in_one_is_named() -> None:
    own = tuple(map(PromptCommand, ("fix", "files-of", "other:files")))
    assert [entry.slash for entry in suggestions("/fi", own)] == ["fix", "files-of", "files", "findings", "other:files"]
    assert [entry.slash for entry in suggestions("/files", own)] == ["files", "files-of", "other:files"]


def test_a_command_of_a_file_is_a_message_and_never_replaces_a_built_in_one() -> None:
    assert parse_slash_call("/deploy", OWN) is None
    assert own_command("/deploy now\nand here", OWN) is OWN[1]
    assert own_command("/deployed", OWN) is None
    assert isinstance(parse_slash_call("/help", OWN), SlashCall)
    assert parse_slash_call("/deplyo", OWN) == UnknownSlash("deplyo", "deploy")


@table(
    ("text", "expected"),
    [
        ("!ls -l", ShellCall("ls -l", "!ls -l", shared=True)),
        (" ! ls\n", ShellCall("ls", "! ls", shared=True)),
        ("!!env", ShellCall("env", "!!env", shared=False)),
        ("!a\nb", ShellCall("a\nb", "!a\nb", shared=True)),
        ("!! !x", ShellCall("!x", "!! !x", shared=False)),
        ("!", ShellCall("", "!", shared=True)),
        ("wait!", None),
        ("", None),
    ],
)
def test_an_exclamation_mark_begins_a_shell_command(text: str, expected: ShellCall | None) -> None:
    assert parse_shell_call(text) == expected


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [("@#3 use the other", "#3", "use the other"), ("@explorer look\nthere ", "explorer", "look\nthere")],
)
def test_a_word_is_aimed_at_a_call_or_an_agent(text: str, target: str, said: str) -> None:
    word = parse_targeted_message(text)

    assert word == TargetedMessage(target, said)
    assert word.number == (3 if target == "#3" else None)


@table("text", ["@", "@#3", "@#x y", "mail me@example.org now", "@ name text", "@src/a.py is wrong", " @worker hello"])
def test_other_at_signs_are_text(text: str) -> None:
    assert parse_targeted_message(text) is None


@table(
    ("text", "expected"),
    [
        ("see @shop.png, please", {"@shop.png": "shop.png"}),
        ('see @"my shop.JPG"', {'@"my shop.JPG"': "my shop.JPG"}),
        ("@a.webp @~/b.gif", {"@a.webp": "a.webp", "@~/b.gif": "~/b.gif"}),
        ("me@shop.png and @shop.py", {}),
        (
            "@a.py:10-40, @a.py:3. @a.py#L3-L9",
            {"@a.py:10-40": "a.py:10-40", "@a.py:3": "a.py:3", "@a.py#L3-L9": "a.py#L3-L9"},
        ),
        (
            '@"my shop.py:3" @src/ @report.PDF',
            {'@"my shop.py:3"': "my shop.py:3", "@src/": "src/", "@report.PDF": "report.PDF"},
        ),
        ("@/ @a.py:x @me: 3", {}),
    ],
)
def test_files_are_attached_with_an_at_sign(text: str, expected: dict[str, str]) -> None:
    assert file_mentions(text) == expected


@table(
    ("paste", "expected"),
    [
        ("/home/me/shop.png", "/home/me/shop.png"),
        ("'/home/me/my shop.png' ", "/home/me/my shop.png"),
        (r"/home/me/my\ shop.png", "/home/me/my shop.png"),
        ("file:///home/me/my%20shop.png", "/home/me/my shop.png"),
        ("~/shop.png", "~/shop.png"),
        ("shop.png", None),
        ("see /home/me/shop.png", None),
        ("/a.png\n/b.png", None),
        ("/home/me/it's.png", None),
    ],
)
def test_a_dropped_image_is_a_path_and_nothing_else(paste: str, expected: str | None) -> None:
    assert pasted_media_path(paste) == expected
