"""Known values of a script's variables."""

import pytest

from tests.permissions.conftest import Desk


@pytest.mark.parametrize(
    "text",
    ["x=README.md; cat $x", 'F="src/lib.py" && wc -l "$F"', "d=src; for f in $d/*.py; do cat $f; done",
     "x=a; x=README.md; cat $x", "for f in README.md; do g=$f; cat $g; done", "x=README.md; (cat $x)",
     "x=README.md; if true; then cat $x; fi", "x=README.md; ls | grep $x", "x=$(ls); wc -l $x", "(x=README.md; cat $x)",
     "x=$(git rev-parse HEAD); echo $x", "n=$(ls | wc -l); [ $n -gt 3 ]", "ls | while read -r f; do wc -l $f; done",
     "x=README.md; while read l; do cat $x; done < notes.txt", "for f in *; do [ -f $f ] && echo $f; done"],
)  # fmt: skip
def test_values_that_are_certain(desk: Desk, text: str) -> None:
    decision = desk.bash(text)

    assert decision.decision == "allow", decision.reason


@pytest.mark.parametrize(
    "text",
    ["cat $x", "x=README.md; unset x; cat $x", "x=README.md; eval y=1; cat $x", "x=README.md; printf -v x a; cat $x",
     "x=$(cat notes.txt); cat $x", 'x=$(ls); cat "$x"', "f() { cat $x; }; f; x=README.md", "x=README.md; y+=a; cat $y",
     "[ -f a ] && x=README.md; cat $x", "[ -f a ] || x=README.md; cat $x", "while x=README.md; do ls; done; cat $x",
     "case a in b) x=README.md;; esac; cat $x", "x=/etc/passwd; cat $x", "x='README.md /etc/passwd'; cat $x"],
)  # fmt: skip
def test_values_that_are_uncertain(desk: Desk, text: str) -> None:
    assert desk.bash(text).decision == "ask"


@pytest.mark.parametrize(
    "text",
    ["ls src | xargs cat < notes.txt", "ls src | xargs cat <<< /etc/passwd", "ls src | { xargs cat; } < notes.txt",
     "ls src | while read -r f; do cat $f; done < notes.txt", "f() { xargs cat; }; ls src | f < notes.txt",
     "ls src | while read -r f < notes.txt; do cat $f; done",
     "ls src | while true; do read -r f <<< /etc/passwd; cat $f; done",
     "ls src | while true; do while read -r f; do cat $f; done < notes.txt; done",
     "ls src | while true; do while read -r f; do cat $f; done <<< /etc/passwd; done",
     "ls src | while true; do printf /etc/passwd | while read -r f; do cat $f; done; done",
     "f() { while read -r f; do wc -l $f; done; }; ls src | f; f < notes.txt",
     "f() { while read -r f; do wc -l $f; done; }; ls src | f; tail notes.txt | f"],
)  # fmt: skip
def test_lines_of_another_input_are_uncertain(desk: Desk, text: str) -> None:
    assert desk.bash(text).decision == "ask"


@pytest.mark.parametrize("rule", ["deny bash(rm:*)", "deny read(README.md)"])
def test_rules_apply_to_the_values(desk: Desk, rule: str) -> None:
    assert desk.bash("x=README.md; cat $x; rm $x", rule, "allow bash(rm:*)").decision == "deny"


def test_a_loop_is_judged_once_for_each_value(desk: Desk) -> None:
    assert desk.bash("for x in log status; do git $x; done", "allow bash(x)").parts[-1].text == "git $x"
    for text in ("for x in log commit; do git $x; done", "for x in p 'w y'; do sed $x README.md; done"):
        assert desk.bash(text).decision == "ask", text
