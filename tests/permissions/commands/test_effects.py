"""Effects of a command, as far as its words tell."""

import pytest

from tui_agent.permissions.commands.analysis import invocation_of
from tui_agent.permissions.commands.invocation import Invocation
from tui_agent.permissions.shell.syntax import SimpleCommand, Word


def effects(text: str, heredoc: str | None = None) -> Invocation:
    words = text.split(" ")
    command = SimpleCommand(text, tuple(Word(word) for word in words), heredoc=heredoc)
    return invocation_of(words, command, words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dd if=a of=b", ["b"]),
        ("find . -delete", ["./**"]),
        ("find a b -name x -delete", ["a", "b"]),
        ("find . -fprint x", ["x"]),
        ("find . -name x", []),
        ("tar cf a.tar b", ["a.tar"]),
        ("tar -czf a.tar b", ["a.tar"]),
        ("tar -c -f - b", []),
        ("tar cf host:a.tar b", []),
        ("tar --create --file=a.tar b", ["a.tar"]),
        ("tar xf a.tar", ["."]),
        ("tar xf a.tar -C d", ["d"]),
        ("tar -x --directory d -f a", ["d"]),
        ("tar -xf a -Cd", ["d"]),
        ("tar tf a.tar", []),
        ("tar", []),
        ("unzip a.zip", ["."]),
        ("unzip a.zip -d d", ["d"]),
        ("unzip -l a.zip", []),
        ("git diff --output=x", ["x"]),
        ("git diff --output x", ["x"]),
        ("git archive -o x HEAD", ["x"]),
        ("git config -f x a.b c", ["x"]),
        ("git rm a b", ["a", "b"]),
        ("git checkout -- a", ["a"]),
        ("git clone u d", ["d"]),
        ("git clone u", ["."]),
        ("git init d", ["d"]),
        ("git worktree add d", ["d"]),
        ("git worktree list", []),
        ("git bundle create x HEAD", ["x"]),
        ("git submodule add u d", ["d"]),
        ("git", []),
        ("git -C", []),
        ("ls a", []),
        ("cp -l a b", ["b", "b/a", "a"]),
        ("ln a b", ["b", "b/a", "a"]),
        ("sed -n p f", []),
    ],
)
def test_changed_paths(text: str, expected: list[str]) -> None:
    assert [f"{write.path}{'/**' if write.whole else ''}" for write in effects(text).writes] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("frobnicate a --out=b -oc", ["a", "out=b", "b", "--out", "out", "c", "-oc", "oc"]),
        ("frobnicate --ignore a b", ["b"]),
        ("frobnicate --exclude=a b", ["b"]),
        ("frobnicate --ignore --x a", ["x", "a"]),
        ("ln -s a b", ["a"]),
        ("ls a", []),
        ("bash x", []),
    ],
)
def test_possibly_changed_paths(text: str, expected: list[str]) -> None:
    assert [mention.path for mention in effects(text).mentions] == expected


def test_programs_in_other_languages_are_collected() -> None:
    assert effects("python3 -c open('x')").code == ("open('x')",)
    assert effects("python3 -", heredoc="print(1)").code == ("print(1)",)
    assert effects("awk system(1) f").code == ("system(1)", "f")
    assert effects("awk {print} f").code == ()
    assert effects("sed s/a/b/e f").code == ("s/a/b/e", "f")


def test_a_search_may_change_its_matches() -> None:
    for text in ("find a -name x -delete", "find a -exec rm {} ;", "find a -ok frobnicate {} ;"):
        assert effects(text).changes_matches
    for text in ("find a -name x", "find a -exec cat {} ;", "find a -exec grep -l x {} +"):
        assert not effects(text).changes_matches


def test_directories_that_a_command_changes_to() -> None:
    assert effects("git -C d --git-dir x rm a").runs_in == "d"
    assert effects("git -C d").runs_in == "d"
    assert effects("patch -d d f").runs_in == "d"
    assert invocation_of([], SimpleCommand("", ()), []) == Invocation()
