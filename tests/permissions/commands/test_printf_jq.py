"""Small languages in arguments."""

import pytest

from tui_agent.permissions.commands.analysis import read_only_use
from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand


def is_plain(*words: str) -> bool:
    return read_only_use(words, SimpleCommand("", ())) is not None


@pytest.mark.parametrize(
    "words", [["%s\\n", "a"], ["--", "%5.2f"], ["a%%b"], ["%-10s|%*d"], ["%(%F)T"], ["x", UNKNOWN]]
)
def test_printf_formats_that_print(words: list[str]) -> None:
    assert is_plain("printf", *words)


@pytest.mark.parametrize(
    "words", [[], ["-v", "x", "y"], ["%n"], ["%s%n", "a"], [UNKNOWN], ["-x"], ["--"], ["%"], ["%y"]]
)
def test_printf_formats_that_may_do_more(words: list[str]) -> None:
    assert not is_plain("printf", *words)


def test_jq_programs_that_read_elsewhere() -> None:
    assert is_plain("jq", ".a | keys[] | select(.x > 1)")
    for program in ("env", "$ENV.X", 'import "x" as x; .', 'include "x"; .'):
        assert not is_plain("jq", program)
