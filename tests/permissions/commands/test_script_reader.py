"""Promise: a plain line is read as bash reads it, and every text gets an answer."""

import re
import subprocess
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples, sample
from tests.support.table import table
from tui_agent.permissions.commands.script_reader import UNKNOWN, read_script

_SHOW = """exec 3>&1; command_not_found_handle() { printf '%s\\0' "$@" $'\\n' >&3; }; PATH=/nowhere; enable -n [;"""
"""Makes bash print the words of every command instead of running it."""
PIECES = (
    *("a", "b2", "-x", "x=1", "ü", "{}", "a{b", "HEAD~2", "@{1}", "[", "a]", "#", "b#c", "!", "=", "x%n", "+", ","),
    *("'a b'", '"a b"', "'$x'", '"a\'b"', "'a\"b'", '"a\\"b"', '"\\\\"', '"\\a"', "\\a", "\\ ", "\\$", "\\'", '\\"'),
    *("''", '""', "^"),
    *("$'a\\nb'", "$'\\x41'", "$'\\''", '"$ "', "$", "\\\n", '"a\\\nb"', "\\\\", "\\;", "\\&", "\\|"),
    *(" ", "  ", "\t", " ", " ", "&&", "||", "|", ";", "\n", " && ", " ; ", "2>&1", ">/dev/null", "2>/dev/null"),
    *("$x", "$(a)", "`a`", "*", "~", "(", ")", "&", ">", "<", "{a,b}", "<<<a", "\\", "'", '"'),
)  # fmt: skip


def bash_words(line: str) -> list[list[str]] | None:
    """Return argv of each command as bash runs it; None if it refuses the line."""
    done = subprocess.run(
        ("bash", "--noprofile", "--norc", "-c", f"{_SHOW}\n{line}"), capture_output=True, check=False, timeout=10
    )
    if b"syntax error" in done.stderr or b"unexpected EOF" in done.stderr:
        return None
    return [one.split("\0")[:-1] for one in done.stdout.decode("utf-8", "replace").split("\n\0") if one]


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join))
def test_words_of_a_plain_line_are_those_of_bash(line: str) -> None:
    script = read_script(line)
    names = [command.argv[0] for command in script.commands if command.argv]
    # Of others, bash runs only some parts, or all at once, or none.
    is_simple = not re.search(r"[|!%]|>&\d\d", line) and not any("/" in name for name in names)
    if not (script.is_plain and is_simple):
        return
    found = bash_words(line)

    assert found is None or found == [list(command.argv) for command in script.commands], (line, script)


@table(
    ("line", "is_plain", "commands"),
    [
        ("git status && ls -la | grep 'a b' 2>&1 >/dev/null; echo x", True, "git status|ls -la|grep a b|echo x"),
        ("find . -name x -exec rm {} \\;", True, "find . -name x -exec rm {} ;"),
        ("A=1 make # comment", True, "make"),
        ("! grep x y", True, "grep x y"),
        ("cu\\rl 'x' c\"u\"rl $'\\x63url'", True, "curl x curl curl"),
        ("a > b", False, "a"),
        ("a $(b `c`)", False, "a ?|b ?|c"),
        ("a ${x:-$(b)} \"$(c)\" $((1 + $(d)))", False, "a ? ? ?|b|c|d"),
        ("a <(b) >(c)", False, "a ? ?|b|c"),
        ("(a); { b; }; c &", False, "a|b|c"),
        ("if a; then b; elif c; then d; else e; fi", False, "a|b|c|d|e"),
        ("for x in 1 2; do a $x; done; while b; do c; done", False, "for x in 1 2|a ?|b|c"),
        ("case $x in (a) b;; c|d) e; f;; esac; g", False, "case|b|e|f|g"),
        ('echo "$(case x in x) a;; esac)"; b', False, "echo ?|case|a|b"),
        ("case $x\nin\na)\nb;;\nesac; c", False, "case|b|c"),
        ("case x in a) (b); c\nd ;; esac; e", False, "case|b|c|d|e"),
        ("case x in a) cat <<E\n$(b)\nE\nc;; esac", False, "case|cat|b|c"),
        ("case x in esac; case y; b", False, "case|case|b"),
        ("x $[1 + $(a)] `b \\`c\\`` d", False, "x ? ? d|a|b ?|c"),
        ("x $'\\q'", True, "x \\q"),
        ("f() { a; }; function g { b; }; coproc N { c; }", False, "f|a|function g { b|b|N { c|c"),
        ("((1<<2)); a\n2\nb", False, "a|2|b"),
        ("((1<<E))\na\nE", False, "a|E"),
        ("$((a); b)", False, "?|a|b"),
        ("x=(a $(b)) c", False, "c|b"),
        ("cat <<E\na\n$(b)\nE\nc", False, "cat|b|c"),
        ("cat <<'E'\n$(a)\nE\nb", False, "cat|b"),
        ("cat <<E <<F\na\nE\n$(b)\nF\nc", False, "cat|b|c"),
        ("[[ a && b < c ]] && d", False, "[[ a b  c ]]|d"),
        ("echo ${x:-\"}'\"}; a; echo \"'\"", False, "echo ?|a|echo '"),
        ("{a,b} c", False, "? c"),
        ("r* x", False, "? x"),
        ("a\rb", False, "a\rb"),
        ("", True, ""),
    ],
)  # fmt: skip
def test_every_command_of_a_text_is_found(line: str, is_plain: bool, commands: str) -> None:
    script = read_script(line)

    shown = [" ".join(command.argv).replace(UNKNOWN, "?") for command in script.commands if command.argv]
    assert (script.is_plain, "|".join(shown)) == (is_plain, commands)


def calls_made(work: Callable[[], object]) -> int:
    """Return the number of Python calls, a measure of work that is the same on every machine."""
    count = 0

    def counting(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


LONG = (
    *("(", "$(", "((", "`", "{", "{ a ", "a;", "cat <<A\n", "'", "$'", "${", "((a)", "\\", "a ", "[[ ", "case x in "),
    *("\n", "<(", "$[ ", "x=(", "((((a) b) c) ", '"$(', "echo `a` ", "#", ">", "a=b ", "[a", "{a", "{a,", "if a; "),
    *("for x in ", "a) b;; ", "x=([", "é", "\t", "&", "f() {", "${x:-", "'\"", "$((1+", "bash -c '", "esac "),
)


@pytest.mark.slow
@table("piece", sample(LONG, 4))
def test_a_megabyte_of_any_text_is_read_with_bounded_work(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))

    assert calls_made(lambda: read_script(text)) < 2_500_000
    assert not read_script(text).is_plain


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=100) | st.lists(st.sampled_from((*PIECES, *LONG)), max_size=30).map("".join))
def test_every_text_can_be_read(text: str) -> None:
    script = read_script(text)

    assert all(isinstance(word, str) for command in script.commands for word in command.argv)
