"""Patterns of `bash(…)` rules."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.permissions.commands.script_reader import UNKNOWN
from tui_agent.permissions.rules.patterns import BORDER, command_patterns


def matches(pattern: str, *words: str) -> bool:
    return any(one.match(BORDER.join(words)) for one in command_patterns(pattern))


def may_match(pattern: str, *words: str) -> bool:
    return any(one.may_match(BORDER.join(words)) for one in command_patterns(pattern))


@table(
    ("pattern", "words", "expected"),
    [
        ("npm run build", "npm run build", True),
        ("npm run build", "npm run build x", False),
        ("npm run build", "npm run", False),
        ("npm  run\tbuild", "npm run build", True),
        ("git status:*", "git status", True),
        ("git status:*", "git status -s", True),
        ("git status:*", "git statusx", False),
        ("git status *", "git status", True),
        ("git status *", "git status -s x", True),
        ("ls*", "ls", True),
        ("ls*", "lsof", True),
        ("ls*", "ls -la", True),
        ("git * main", "git checkout main", True),
        ("git * main", "git push origin main", True),
        ("git * main", "git main", False),
        ("git * main:*", "git push main --force", True),
        ("git * main:*", "git push mainline", False),
        ("* --help", "x --help", True),
        ("a*b*c", "aXbXc", True),
        ("a*b*c", "aXcXb", False),
        ("a*b*c", "abc", True),
        ("*", "anything at all", True),
        (":*", "anything at all", True),
        ("a.c", "abc", False),
        ("a?c", "abc", False),
        ("[ab]", "a", False),
    ],
)
def test_words_match_or_not(pattern: str, words: str, expected: bool) -> None:
    assert matches(pattern, *words.split()) is expected


def test_a_blank_is_a_border_and_quotes_are_removed() -> None:
    assert not matches("rm a", "rm a")
    assert matches("rm 'a b'", "rm", "a b")
    assert matches('rm "a b"', "rm", "a b")
    assert matches("rm a\\ b", "rm", "a b")
    assert matches("rm 'a*b'", "rm", "a*b")
    assert not matches("rm 'a*b'", "rm", "axb")
    assert matches("rm 'x", "rm", "'x")


@table(
    ("pattern", "words", "expected"),
    [
        ("rm:*", f"{UNKNOWN}", True),
        ("rm:*", f"{UNKNOWN} x", True),
        ("rm:*", f"r{UNKNOWN}", True),
        ("rm:*", f"ls {UNKNOWN}", False),
        ("rm -rf:*", f"rm {UNKNOWN}", True),
        ("rm x", f"rm {UNKNOWN}", True),
        ("rm x", f"rm xy{UNKNOWN}", False),
        ("rm x", f"rm x{UNKNOWN}", True),
        ("rm *x", f"rm a{UNKNOWN}", True),
        ("rm x", "rm x", True),
    ],
)
def test_unknown_words_may_match(pattern: str, words: str, expected: bool) -> None:
    assert may_match(pattern, *words.split(" ")) is expected


def test_the_number_of_words_a_pattern_spells_out() -> None:
    (everything,) = command_patterns("*")
    (exact,) = command_patterns("npm run build")
    (prefix,) = command_patterns("timeout 5:*")
    (starred,) = command_patterns("git push *x")

    assert everything.is_everything
    assert not exact.is_everything
    assert exact.is_exact
    assert not prefix.is_exact
    assert [one.spelled_words for one in (everything, exact, prefix, starred)] == [0, 3, 2, 2]


words = st.lists(st.text(st.sampled_from("ab*-."), min_size=1, max_size=4), min_size=1, max_size=4)


@given(words)
def test_a_command_matches_the_pattern_that_spells_it_out(found: list[str]) -> None:
    pattern = " ".join(word.replace("*", "x") for word in found)

    assert matches(pattern, *pattern.split())
    assert matches(f"{pattern}:*", *pattern.split(), "more")


@given(words, words, st.integers(0, 4))
def test_a_match_may_match_with_a_part_unknown(pattern: list[str], found: list[str], at: int) -> None:
    text = " ".join(pattern)
    if matches(text, *found):
        joined = BORDER.join(found)
        hidden = joined[:at] + UNKNOWN
        assert any(one.may_match(hidden) for one in command_patterns(text))
