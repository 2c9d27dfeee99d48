"""Rough split of unreadable text: too many commands rather than too few."""

from tui_agent.permissions.shell.grammar import MAX_COMMANDS, fallback_commands
from tui_agent.permissions.shell.syntax import UNKNOWN


def cut(text: str) -> list[list[str]]:
    return [[word.value for word in command.words] for command in fallback_commands(text)]


def test_operators_separate_commands() -> None:
    assert cut("a b; c && d || e | f & g\n(h) `i` $(j)") == [
        ["a", "b"], ["c"], ["d"], ["e"], ["f"], ["g"], ["h"], ["i"], ["j"],
    ]  # fmt: skip


def test_quotes_protect_operators_and_are_removed() -> None:
    assert cut("'a;b' \"c d\" e\\ f \\;") == [["a;b", "c d", "e f", ";"]]


def test_grammar_words_precede_commands() -> None:
    assert cut("if ! a; then b; fi; time coproc c") == [["a"], ["b"], ["c"]]


def test_text_after_a_brace_may_be_a_command() -> None:
    assert ["rm", "z"] in cut("coproc foo { rm z; }")
    assert ["rm", "z"] in cut("f() { { rm z")


def test_redirections_and_assignments_are_found() -> None:
    [command] = fallback_commands("X=1 rm a 2>>b <c &>d")

    assert [assignment.name for assignment in command.assignments] == ["X"]
    assert [(one.operator, one.target.value) for one in command.redirects] == [(">>", "b"), ("<", "c"), ("&>", "d")]


def test_variables_are_unknown_and_braces_stay_live() -> None:
    [command] = fallback_commands("{a,b} $X ${y")

    assert [word.value for word in command.words] == ["{a,b}", UNKNOWN, UNKNOWN]
    assert command.words[0].live == {0, 2, 4}


def test_it_is_bounded() -> None:
    assert len(fallback_commands("a;" * 100_000)) == MAX_COMMANDS
    [command] = fallback_commands("a " * 50_000)
    assert len(command.words) == 1_000
    [command] = fallback_commands("a " + ">b " * 5_000)
    assert len(command.redirects) == 100
    assert fallback_commands("a " + "{ " * 50_000)
