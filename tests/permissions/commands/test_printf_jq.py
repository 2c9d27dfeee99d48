"""Small languages in arguments."""

import pytest

from tui_agent.permissions.commands.printf_jq import is_plain_jq, printf_reads
from tui_agent.permissions.shell.syntax import UNKNOWN


@pytest.mark.parametrize(
    "words", [["%s\\n", "a"], ["--", "%5.2f"], ["a%%b"], ["%-10s|%*d"], ["%(%F)T"], ["x", UNKNOWN]]
)
def test_printf_formats_that_print(words: list[str]) -> None:
    assert printf_reads(["printf", *words]) is not None


@pytest.mark.parametrize(
    "words", [[], ["-v", "x", "y"], ["%n"], ["%s%n", "a"], [UNKNOWN], ["-x"], ["--"], ["%"], ["%y"]]
)
def test_printf_formats_that_may_do_more(words: list[str]) -> None:
    assert printf_reads(["printf", *words]) is None


def test_jq_programs_that_read_elsewhere() -> None:
    assert is_plain_jq(".a | keys[] | select(.x > 1)")
    for program in ("env", "$ENV.X", 'import "x" as x; .', 'include "x"; .'):
        assert not is_plain_jq(program)
