"""Expansion of words, compared with bash in a real directory."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tui_agent.permissions.shell.expansion import MAX_VALUES, Expander, Value, has_glob
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import UNKNOWN, Sequence, SimpleCommand, Word

Bindings = dict[str, tuple[str, ...]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path))
    for name in ("a.py", "b.py", ".hidden", "src/x.py", "src/y.txt", "src/deep/z.py", "[x]", "-n", "sp ace", "é"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return root


def word_of(text: str) -> Word:
    statement = read_script(f"printf {text}")
    assert isinstance(statement, Sequence)
    [command] = statement.parts
    assert isinstance(command, SimpleCommand)
    return command.words[1]


def expanded(text: str, place: Path | None, values: dict[str, tuple[str, ...]] | None = None) -> list[str]:
    bindings = {name: Value("text", texts) for name, texts in (values or {}).items()}
    return list(Expander().expand(word_of(text), str(place) if place else None, bindings))


def by_bash(text: str, place: Path) -> list[str]:
    script = f"printf '%s\\n' {text}"
    done = subprocess.run(["bash", "--noprofile", "--norc", "-c", script], capture_output=True, cwd=place, check=True)
    return done.stdout.decode("utf-8").split("\n")[:-1]


@pytest.mark.parametrize(
    "text",
    [
        "*.py", "*", "src/*", "*/*.py", "src/d*/z*", "nomatch*", "\\*.py", "'*'.py", "*/", "./*.py", "*a*p*",
        "src//*.py", "{a,z}*.py", "~", "~/x", "$HOME/x", '"$PWD"/*.py', "/usr/li*", "[x", "a.py", "'~'", "x~",
        "**/*.py", "src/../*.py", "~root", "~root/x", "~+", "~+/*.py", "~no-such-user/x",
    ],
)  # fmt: skip
def test_it_agrees_with_bash(text: str, place: Path) -> None:
    assert sorted(expanded(text, place)) == sorted(by_bash(text, place))


@pytest.mark.parametrize("text", ["[ab].py", "?.py", "??", "[[]x]", "[!a].py", "s?c/*", ".*", "s[[:lower:]]c/*",
                                  "[[=a=]].py", "[[.a.]].py", "[!]b].py", "[^]].py", "[]a].py", "[a[b].py",
                                  "[[:alpha:][:digit:]].py", "['a]'].py", "[a-c]*[y].py", "[a,b].py", "sr[[:lower:]",
                                  ])  # fmt: skip
def test_inexact_patterns_match_more_rather_than_less(text: str, place: Path) -> None:
    assert set(by_bash(text, place)) <= set(expanded(text, place))


PARTS = ("[", "]", "!", "^", "-", "[:lower:]", "[=i=]", "[.i.]", "[!a]", "[a-z]", "*", "?", "'", '"', "\\", *"abhiy.x")


@given(parts=st.lists(st.sampled_from(PARTS), min_size=2, max_size=7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_brackets_match_more_in_bash(parts: list[str], place: Path) -> None:
    pattern = "".join(parts)
    try:
        found = expanded(pattern, place)
    except (AssertionError, ValueError):
        assume(False)  # Text that is not one word.
        raise
    # Shells from bash 5.2 on do not match `..`, and keep the pattern.
    assert any(UNKNOWN in word for word in found) or set(by_bash(pattern, place)) - {pattern} <= set(found)


def test_unknown_parts_are_marked(place: Path) -> None:
    for text in ("$x", "~-/x", "~1/x", "~+", "a$(ls)", "$x*", '"$x"'):
        assert any(UNKNOWN in value for value in expanded(text, None if text == "~+" else place)), text
    assert expanded("*.py", None) == [f"{UNKNOWN}.py"]
    assert expanded('"/a/$x"/*/b/c', place) == [f"/a/{UNKNOWN}/b/c"]
    assert expanded("$PWD", None) == [UNKNOWN]


@pytest.mark.parametrize("text", ['~""/x', '~"root"/x', "~ro''ot/x", "~r\\oot", "~'/x'"])
def test_a_partly_quoted_tilde_is_uncertain(text: str, place: Path) -> None:
    assert by_bash(text, place)[0].startswith("~")
    assert all(UNKNOWN in value for value in expanded(text, place))


def test_loop_variables_take_their_values(place: Path) -> None:
    assert expanded("$f", place, {"f": ("a", "b")}) == ["a", "b"]
    assert expanded("x${f}y$f", place, {"f": ("1",)}) == ["x1y1"]
    assert expanded("$f/*.py", place, {"f": ("src",)}) == ["src/x.py"]
    assert expanded("*.p$f", place, {"f": ("y",)}) == ["a.py", "b.py"]


def test_a_value_that_would_be_split_is_unknown_unless_quoted(place: Path) -> None:
    assert expanded("$f", place, {"f": ("a b",)}) == [UNKNOWN]
    assert expanded('"$f"', place, {"f": ("a b",)}) == ["a b"]
    assert expanded("$f", place, {"f": ("*",)}) == [UNKNOWN]
    assert expanded("$f", place, {"f": ("",)}) == [UNKNOWN]


def test_it_is_bounded(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"f{number}").touch()
    many = {"f": tuple(f"v{n}" for n in range(60))}

    assert expanded("$f$f", tmp_path, many) == [UNKNOWN]
    assert expanded("{1..60}$f", tmp_path, many) == [UNKNOWN]
    assert MAX_VALUES < 3_600


def test_all_words_of_a_script_share_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.permissions.shell.expansion.MAX_ENTRIES", 3)
    for name in ("a", "b"):
        (tmp_path / name).touch()
    expander = Expander()

    assert sorted(expander.expand(word_of("*"), str(tmp_path), {})) == ["a", "b"]
    assert expander.expand(word_of("*"), str(tmp_path), {}) == (UNKNOWN,)


def test_only_live_patterns_are_patterns() -> None:
    assert has_glob(word_of("a*"))
    assert not has_glob(word_of("'a*'"))
