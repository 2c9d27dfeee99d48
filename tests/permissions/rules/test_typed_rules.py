"""Rules that the user types for a grant: never wider than a proposed one could be, and refused in words."""

from tests.permissions.conftest import Desk
from tests.support.table import table
from tui_agent.permissions import PermissionPolicy, Rule

COMMIT = {"command": "git commit -am x"}
WRITE = {"path": "src/a.py"}


@table(
    ("tool", "arguments", "rule"),
    [
        ("bash", COMMIT, "bash(git commit -am:*)"),
        ("bash", COMMIT, "  bash(git commit -am x)  "),
        ("bash", {"command": "make all -j4"}, "bash(make all:*)"),
        ("bash", {"command": "make all -j4"}, "bash(make:*)"),
        ("bash", {"command": "python3 -m pytest -q"}, "bash(python3 -m pytest:*)"),
        ("bash", {"command": "pytest tests/x.py -q"}, "bash(pytest tests/x.py:*)"),
        ("bash", {"command": "npm run build -- --fast"}, "bash(npm run build -- --fast)"),
        ("bash", {"command": "pytest -q && make all -j4"}, "bash(pytest:*)\nbash(make all -j4)"),
        ("write", WRITE, "write(/src/*.py)"),
        ("write", WRITE, "write(src/**)"),
        ("write", WRITE, "write(/**)"),
        ("read", {"path": "/etc/hostname"}, "read(//etc/hostname)"),
        ("fetch", {"url": "https://docs.python.org/3/"}, "fetch(domain:docs.python.org)"),
    ],
)
def test_a_narrow_rule_may_be_typed(desk: Desk, tool: str, arguments: dict[str, object], rule: str) -> None:
    policy = desk.policy()

    assert policy.grant_refusal(rule, desk.tools[tool], arguments) == ""
    policy.grant(rule, "session")
    assert policy.check(desk.tools[tool], arguments).decision == "allow"


@table(
    ("tool", "arguments", "rule", "words"),
    [
        ("bash", COMMIT, "", "Type a rule"),
        ("bash", COMMIT, "bash(git commit", "must be `tool`"),
        ("bash", COMMIT, "bash()", "is empty"),
        ("bash", COMMIT, "bash", "every command"),
        ("bash", COMMIT, "bash(*)", "every command"),
        ("bash", COMMIT, "bash(:*)", "every command"),
        ("bash", COMMIT, "*", "must be one for bash"),
        ("bash", COMMIT, "ba*(git commit:*)", "must be one for bash"),
        ("bash", COMMIT, "write(/**)", "must be one for bash"),
        ("bash", COMMIT, "bash(git:*)", "allows too much"),
        ("bash", COMMIT, "bash(git push:*)", "allows too much"),
        ("bash", COMMIT, "bash(git -c:*)", "allows too much"),
        ("bash", COMMIT, "bash(git * x)", "match any text"),
        ("bash", COMMIT, "bash(git com*)", "match any text"),
        ("bash", COMMIT, "bash(make test:*)", "would not allow the call"),
        ("bash", COMMIT, "bash(git commit -am:*)\nbash(make test:*)", "does not need `bash(make test:*)`"),
        ("bash", COMMIT, "\n".join(f"bash(make {n})" for n in range(9)), "At most 8"),
        *(
            ("bash", COMMIT, f"bash({command})", "No rule for")
            for command in (
                "rm:*",
                "rm x",
                "/bin/rm:*",
                "'rm':*",
                '"curl" x:*',
                "curl:*",
                "python3 -m x:*",
                "bash -c:*",
                "npx jesty:*",
                "env rm:*",
                "xargs:*",
                "sudo make:*",
                "uvx ruff:*",
            )
        ),
        ("bash", COMMIT, "bash(timeout 5 rm:*)", "allows too much"),
        ("bash", COMMIT, "bash(FOO=1 rm x)", "cannot begin with a variable"),
        ("bash", COMMIT, "bash(cp a:*)", "allows too much"),
        ("bash", COMMIT, "bash(stack exec:*)", "allows too much"),
        ("bash", {"command": "python3 x"}, "bash(python3 x)", "No rule is narrow enough"),
        ("write", WRITE, "write", "every file"),
        ("write", WRITE, "read(/**)", "must be one for edit or write"),
        ("write", WRITE, "write(//**)", "Outside the workspace"),
        ("write", WRITE, "write(~/**)", "Outside the workspace"),
        ("write", WRITE, "write(/docs/**)", "would not allow the call"),
        ("read", {"path": "/etc/hostname"}, "read(//etc/**)", "Outside the workspace"),
        ("read", {"path": "/etc/hostname"}, "read(//etc)", "Outside the workspace"),
        ("fetch", {"url": "https://docs.python.org/3/"}, "fetch(domain:*.python.org)", "only taken as proposed"),
        ("fetch", {"url": "https://docs.python.org/3/"}, "fetch", "only taken as proposed"),
        ("write", {"path": ".git/x"}, "write(/.git/x)", "No rule is narrow enough"),
    ],
)
def test_any_other_is_refused_in_words(
    desk: Desk, tool: str, arguments: dict[str, object], rule: str, words: str
) -> None:
    policy = desk.policy()

    assert words in policy.grant_refusal(rule, desk.tools[tool], arguments)
    assert policy.check(desk.tools[tool], arguments).source != "grant", "a check grants nothing"


def test_a_typed_rule_never_overrides_a_deny_rule(desk: Desk) -> None:
    policy = PermissionPolicy(desk.root, rules=[Rule.parse("deny", "bash(git commit:*)")])

    assert policy.grant_refusal("bash(git commit:*)", desk.tools["bash"], COMMIT) != ""
