"""Conversion of text to statements, and refusal of text that bash may read differently."""

from collections.abc import Iterator

import pytest

from tui_agent.permissions.shell.parser import MAX_COMMANDS, MAX_DEPTH, read_script
from tui_agent.permissions.shell.syntax import (
    Branches,
    Conditional,
    Definition,
    ForEach,
    Pipeline,
    Sequence,
    SimpleCommand,
    Statement,
    Subshell,
    Unsupported,
)


def inside(statement: Statement) -> Iterator[Statement]:
    yield statement
    match statement:
        case SimpleCommand():
            below: tuple[Statement, ...] = statement.nested
        case Sequence() | Pipeline() | Branches():
            below = statement.parts
        case Conditional():
            below = (statement.first, *(part for _, part in statement.rest))
        case Subshell() | Definition():
            below = (statement.body,)
        case ForEach():
            below = (*statement.nested, statement.body)
        case Unsupported():
            below = ()
    for part in below:
        yield from inside(part)


def commands(text: str) -> list[list[str]]:
    """Return the words of every simple command, in the order found."""
    found = [part for part in inside(read_script(text)) if isinstance(part, SimpleCommand)]
    return [[word.value for word in command.words] for command in found]


def oddities(text: str) -> list[Unsupported]:
    return [part for part in inside(read_script(text)) if isinstance(part, Unsupported)]


def is_unreadable(text: str) -> bool:
    return any(oddity.unreadable for oddity in oddities(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls", [["ls"]]),
        ("a; b\nc & d", [["a"], ["b"], ["c"], ["d"]]),
        ("a && b || c", [["a"], ["b"], ["c"]]),
        ("a | b |& c", [["a"], ["b"], ["c"]]),
        ("(a; b)", [["a"], ["b"]]),
        ("{ a; b; }", [["a"], ["b"]]),
        ("! a", [["a"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done", [["a"], ["b"]]),
        ("until a; do b; done", [["a"], ["b"]]),
        ("for x in 1 2; do a; done", [["a"]]),
        ("for x; do a; done", [["a"]]),
        ("case x in a|b) c;; (d) e ;& *) f;; esac", [["c"], ["e"], ["f"]]),
        ("f() { a; }", [["a"]]),
        ("function f { a; }", [["a"]]),
        ("[ -f x ] && a", [["[", "-f", "x", "]"], ["a"]]),
        ("[[ -f x && $y == z* ]]", [["[[", "-f", "x", "&", "&", "\ud801", "==", "z*", "]]"]]),
        ("export A=1 B", [["export", "A=1", "B"]]),
        ("unset A", [["unset", "A"]]),
        ("a # comment\nb", [["a"], ["b"]]),
        ("# only a comment", []),
        ("", []),
        ("a \\\n  b", [["a", "b"]]),
        ("find . >out -delete", [["find", ".", "-delete"]]),
        (">out find . -delete", [["find", ".", "-delete"]]),
        ("a && b >out -x", [["a"], ["b", "-x"]]),
        ("a | b 2>&1 -x", [["a"], ["b", "-x"]]),
        ("find .<&- -delete", [["find", ".", "-delete"]]),
        ("cat <<< a -n b", [["cat", "-n", "b"]]),
        ("cat <<EOF -n b\nx\nEOF", [["cat", "-n", "b"]]),
        ("cat <<EOF > o -n\nx\nEOF\nls", [["cat", "-n"], ["ls"]]),
        ("cat <<EOF | sh\nx\nEOF", [["cat"], ["sh"]]),
        ("cat <<EOF && rm x\nx\nEOF", [["cat"], ["rm", "x"]]),
        ("while a; do b; done <<EOF\nx\nEOF", [["a"], ["b"], []]),
        ("a | b | c && d", [["a"], ["b"], ["c"], ["d"]]),
        ("a && b > out | c", [["a"], ["b"], ["c"]]),
        ("cat <<EOF | wc && ls\na\nEOF", [["cat"], ["wc"], ["ls"]]),
        ("a && cat - <<EOF | sh || b\nx\nEOF", [["a"], ["cat", "-"], ["sh"], ["b"]]),
        ("> x", [[]]),
        ("echo `if a; then b; fi` c", [["echo", "\ud801", "c"], ["a"], ["b"]]),
        ("ls \u0663>y", [["ls", "\u0663"]]),
        ("ls -n2>y", [["ls", "-n2"]]),
        ("cat <<<\\\tx; ls", [["cat"], ["ls"]]),
        ("cat -<<EOF\nEOF\nls", [["cat", "-"], ["ls"]]),
        ("rm $(< list)", [["rm", "\ud801"], []]),
        ("ls\\\n&& a", [["ls"], ["a"]]),
        ("A=1", [[]]),
        ("A=1 B=2", [[]]),
    ],
)
def test_every_simple_command_is_found(text: str, expected: list[list[str]]) -> None:
    assert commands(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "echo $(rm x)",
        "echo `rm x`",
        'echo "a $(rm x) b"',
        "echo ${y:-$(rm x)}",
        "echo $((1 + $(rm x)))",
        "cat <(rm x)",
        "tee >(rm x)",
        "A=$(rm x)",
        "A=$(rm x) ls",
        "a[$(rm x)]=1",
        "A=($(rm x)) ls",
        "ls > $(rm x)",
        "cat <<< $(rm x)",
        "cat <<EOF\n$(rm x)\nEOF",
        "for y in $(rm x); do :; done",
        "case $(rm x) in a) ;; esac",
        "case a in $(rm x)) ;; esac",
        "[ $(rm x) = y ]",
        "[[ $(rm x) == y ]]",
        "[[ a && <(rm x) ]]",
        "(( $(rm x) ))",
        "for ((i=$(rm x); i<1; i++)); do :; done",
        "export A=$(rm x)",
        "f() { echo $(rm x); }",
        "echo $(echo $(echo $(rm x)))",
    ],
)
def test_substitutions_are_found_in_every_position(text: str) -> None:
    assert ["rm", "x"] in commands(text)
    assert not is_unreadable(text)


@pytest.mark.parametrize(
    "text",
    [
        "time { ls; rm y; }",
        "time -p { ls; }",
        "coproc foo { rm z; }",
        "coproc ls",
        "select x in a; do ls; done",
        "echo a\\\nb",
        "cat <<A <<B\nx\nA\ny\nB",
        "cat <<EOF; rm x\na\nEOF",
        "cat <<EOF\na",
        "cat <<EOF\n EOF\ntouch x\nEOF",
        "cat <<EOF\nEOF \ntouch x\nEOF",
        "cat <<EOF\na\\\nEOF\nEOF",
        "cat <<$x\na",
        "ls {fd}>x",
        'echo $"a"',
        "ls <>x",
        "[ a > b ]",
        "[[ ,<(rm x) == y ]]",
        "[ #c = x ]\nls",
        "ls #x \\\nrm y",
        "{ls;}",
        "! ((ls))",
        "((ls); (pwd))",
        "ls !(x)",
        "cd() { :; }",
        "f$x() { ls; }",
        "`echo \\`ls\\``",
        "for x ina b; do ls; done",
        "for x in\na; do ls; done",
        '`echo "a"`',
        "ls\x0brm",
        "ls; ;; rm",
        "if ls;; then :; fi",
        "if a; then`b` c; fi",
        "a | ! b",
        "A=(a)#b",
        "A=(a)b c",
        "! " * 1_000 + "ls",
        "".join(f"a{at}[;" for at in range(500)) + "]" * 500,
        "a &\\\n& b",
        "a >\\\n> b",
        "ls\\\n-la",
        "ls 2\\\n>x",
        "cat <<EOF 'a\nb'\nx\nEOF",
        "cat <<EOF $(ls\n)\nx\nEOF",
        "( " * (MAX_DEPTH + 2) + "ls" + " )" * (MAX_DEPTH + 2),
        "ls;" * (MAX_COMMANDS + 1),
        "ls " + "<a " * 101,
        "\ud800",
    ],
)
def test_text_that_bash_may_read_differently_is_refused(text: str) -> None:
    assert is_unreadable(text)


@pytest.mark.parametrize(
    "text",
    [
        "((x++))",
        "echo $((x))",
        "echo ${!x}",
        "echo ${x@P}",
        "echo ${a[$i]}",
        "a[x]=1",
        "A=(1 $x)",
        "A=([0]=x)",
        "A=(*)",
        "echo $[x]",
    ],
)
def test_forms_that_evaluate_variables_are_marked(text: str) -> None:
    found = oddities(text)

    assert found
    assert not any(oddity.unreadable for oddity in found)


@pytest.mark.parametrize(
    "text",
    ["echo $((1+2))", "echo ${x}", "echo ${#x}", "echo ${x:-y}", "echo ${x%.*}", "echo ${a[0]}", "echo ${x:0:3} $? $$"],
)
def test_plain_expansions_are_not_marked(text: str) -> None:
    assert oddities(text) == []


def test_a_command_keeps_its_parts() -> None:
    [part] = [
        part for part in inside(read_script("A=1 B='x y' git -C d log >>o 2>&1 <i")) if isinstance(part, SimpleCommand)
    ]

    assert part.text == "A=1 B='x y' git -C d log >>o 2>&1 <i"
    assert part.name == "git"
    assert [(one.name, one.value.value) for one in part.assignments] == [("A", "1"), ("B", "x y")]
    assert [(one.operator, one.target.value, one.text) for one in part.redirects] == [
        (">>", "o", ">>o"),
        (">&", "1", "2>&1"),
        ("<", "i", "<i"),
    ]


def test_a_quoted_here_document_expands_nothing() -> None:
    text = "git commit -F - <<'EOF'\nfix `this` $(and that)\nEND OF\nEOF"

    [command] = [part for part in inside(read_script(text)) if isinstance(part, SimpleCommand)]

    assert command.heredoc == "fix `this` $(and that)\nEND OF\n"


def test_leading_tabs_of_a_here_document_are_stripped_if_requested() -> None:
    assert commands("cat <<-EOF\n\tx\n\tEOF\nls") == [["cat"], ["ls"]]
    assert is_unreadable("cat <<EOF\n\tx\n\tEOF\nls")


def test_long_chains_are_not_deep_nesting() -> None:
    assert len(commands(" && ".join(["ls"] * 300))) == 300


def test_unreadable_text_comes_with_rough_commands() -> None:
    assert ["rm", "-rf", "x"] in commands("ls; 'rm' -r\\f x; )")
