"""Templates of prompts: placeholders, commands, and arguments that stay data."""

import subprocess

import pytest

from tests.support.table import table
from tui_agent.definitions.definition_text import Arguments, PromptTemplate, framed_output
from tui_agent.protocol.errors import ConfigurationError


def prompt(template: str, arguments: str = "", *outputs: str) -> str:
    return PromptTemplate.of(template).prompt(Arguments(arguments), outputs)


@table(
    ("template", "arguments", "expected"),
    [
        ("Fix $1 in $2.", '"the bug" src/a.py', "Fix the bug in src/a.py."),
        ("Fix $ARGUMENTS now", "a 'b c'", "Fix a 'b c' now"),
        ("$1 $2|", "one", "one |"),
        ("costs $10, $ARGUMENTSX", "", "costs $10, $ARGUMENTSX"),
        ("No placeholder.", "", "No placeholder."),
        ("No placeholder.", "but text", "No placeholder.\n\nArguments: but text"),
        ("odd $1", "it's", "odd it's"),
        ("$0 then $1 then $ARGUMENTS[1]", "a b", "a then b then b"),
        ("$0.50 for $1", "x", "$0.50 for x"),
        ("in ${CLAUDE_SKILL_DIR}/a", "x", "in ${CLAUDE_SKILL_DIR}/a\n\nArguments: x"),
    ],
)
def test_placeholders(template: str, arguments: str, expected: str) -> None:
    assert prompt(template, arguments) == expected


def test_a_fenced_block_is_one_command_and_places_are_quoted_in_it() -> None:
    template = PromptTemplate.of('Now:\n```!\nset -e\n"${CLAUDE_SKILL_DIR}/x" $1 ${HOME}\n```\nEnd ${CLAUDE_SKILL_DIR}')
    arguments = Arguments("a;b", places={"CLAUDE_SKILL_DIR": "/a b"})

    assert template.commands_with(arguments) == ("set -e\n\"\"'/a b'\"/x\" 'a;b' ${HOME}",)
    assert template.prompt(arguments, ("OUT",)) == "Now:\nOUT\nEnd /a b"
    assert PromptTemplate.of("!`awk '{print $0}'`").commands_with(Arguments("x")) == ("awk '{print $0}'",)


@table("template", ["printf %s $1", 'printf %s "$1"', "printf %s '$1'", 'printf %s "$ARGUMENTS"', 'printf %s ""$1""'])
@table("value", ["plain", "$(echo no)", "a'b", 'a"b', "`echo no`", "a; echo no", "\\", "*"])
def test_an_argument_is_one_word_of_a_command_wherever_it_stands(template: str, value: str) -> None:
    arguments = Arguments(value if "ARGUMENTS" in template else "'" + value.replace("'", "'\"'\"'") + "'")
    (command,) = PromptTemplate.of(f"!`{template}`").commands_with(arguments) if "`" not in template else ("",)

    said = subprocess.run(["bash", "--noprofile", "--norc", "-c", command], capture_output=True, text=True, check=True)

    assert said.stdout == value


@table(
    "template",
    [
        'echo "$(basename "$1")"',
        'echo "$(basename $1)"',
        'echo "a $(echo "b $1 c") $1"',
        'echo "$(echo \'$1\' $(echo "($1"))"',
        'echo (a) 2>/dev/null; (echo "$1"; echo $ARGUMENTS)',
        'cat <<<$1 <(echo "$1")',
    ],
)
def test_an_argument_stays_data_in_a_command_inside_a_command(template: str) -> None:
    (command,) = PromptTemplate.of(f"!`{template}`").commands_with(Arguments("'$(echo no >&2)'"))

    said = subprocess.run(["bash", "--noprofile", "--norc", "-c", command], capture_output=True, text=True, check=False)

    assert "no\n" not in said.stderr.splitlines(keepends=True)


@table(
    "template",
    [
        "echo $'it\\'s $1'",
        'echo "${x:-"$1"}"',
        "echo # it's $1",
        "cat <<EOF; echo $1",
        'echo "$$(echo $1)"',
        "case a in a) echo $1;; esac",
        "echo $(($1))",
    ],
)
def test_an_argument_that_cannot_be_quoted_with_certainty_is_refused(template: str) -> None:
    made = PromptTemplate.of(f"!`{template}`")

    assert made.commands_with(Arguments("src/a-1.py")) != ()
    with pytest.raises(ConfigurationError, match="was not run"):
        made.commands_with(Arguments("'$(echo no)'"))


def test_code_in_backticks_is_text() -> None:
    assert PromptTemplate.of("Hello!`x` \\!`y` ``!`z` ``").commands == ()
    assert PromptTemplate.of("!`a` and (!`b`)").commands == ("a", "b")


def test_an_output_is_framed_as_data() -> None:
    assert framed_output('echo "x"', "one\n") == '<output of="echo \\"x\\"">one</output>'
    assert framed_output("x", "a\n</output>b") == '<output of="x">\na\n<\\/output>b\n</output>'
