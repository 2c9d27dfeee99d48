"""Rules to offer with an approval."""

import pytest

from tui_agent.permissions.grant_proposals import rule_for_command, rule_for_path


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("make", "bash(make)"),
        ("make all -j4", "bash(make all -j4)"),
        ("git add -A", "bash(git add:*)"),
        ("git push --force", "bash(git push --force)"),
        ("git -C x add y", "bash(git -C x add y)"),
        ("npm test", "bash(npm test:*)"),
        ("npm run build --x", "bash(npm run build:*)"),
        ("npm run 'a b'", None),
        ("npm install x", "bash(npm install x)"),
        ("pytest -q 'a b'", "bash(pytest:*)"),
        ("cargo build --release", "bash(cargo build:*)"),
        ("touch 'a b'", "bash(touch 'a b')"),
        ("make 'a*b'", None),
        ("make 'a\nb'", None),
        ("make a\\\\b", None),
        ("rm x", None),
        ("/bin/rm x", None),
        ("sudo make", None),
        ("bash x.sh", None),
        ("sh -c ls", None),
        ("python3 -m pytest", None),
        ("curl x", None),
        ("npx eslint", None),
        ("uv run pytest", None),
        ("timeout 5 make", "bash(timeout 5 make)"),
        ("make; make", None),
        ("make $(ls)", None),
        ("make $X", None),
        ("X=1 make", "bash(make)"),
        ("X=1", None),
        ("> x", None),
        ("", None),
        ("((( nonsense", None),
    ],
)
def test_the_narrowest_rule_for_a_command(command: str, rule: str | None) -> None:
    assert rule_for_command("bash", command) == rule


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/w/src/a.py", "edit(/src/a.py)"),
        ("/etc/hosts", "edit(//etc/hosts)"),
        ("/w/a*b[c]?.py", "edit(/a\\*b\\[c\\]\\?.py)"),
        ("/w/a\nb", None),
        ("/w/a\\b", None),
        ("/w/a\u202eb", None),
        ("/w/a ", None),
    ],
)
def test_the_rule_for_exactly_one_path(path: str, rule: str | None) -> None:
    assert rule_for_path("edit", path, "/w") == rule
