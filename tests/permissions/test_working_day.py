"""Questions in a working day: everyday calls in a Python, a Node and a C project, asked of the checker in order."""

import subprocess
from pathlib import Path

import pytest

from tests.support.sample_tools import sample_tools
from tui_agent.permissions import PermissionPolicy

PYTHON = (
    ("bash", "git status"),
    ("glob", "**/*.py"),
    ("read", "src/app/core.py"),
    ("grep", "def "),
    ("bash", "python -m pytest -q 2>&1 | tail -20"),
    ("edit", "src/app/core.py"),
    ("bash", "pytest -q tests/test_core.py"),
    ("read", "tests/test_core.py"),
    ("edit", "tests/test_core.py"),
    ("write", "src/app/util.py"),
    ("bash", "ruff check . --fix"),
    ("bash", "source .venv/bin/activate && pytest -q"),
    ("bash", "git diff --stat"),
    ("bash", "git add -A && git commit -q -m 'Fix add'"),
    ("bash", "git log --oneline -5"),
    ("bash", "python -m pytest tests -x"),
    ("bash", "PYTHONPATH=src pytest -q tests"),
    ("bash", ".venv/bin/pytest -q"),
    ("bash", "pip show pytest"),
    ("edit", "src/app/__init__.py"),
    ("bash", "ruff check . --fix"),
    ("bash", "PYTHONPATH=src pytest -q"),
    ("bash", "rm -f src/app/old.py"),
    ("bash", "source .venv/bin/activate && pytest -q tests"),
    ("bash", "git add src && git commit -q -m 'Add util'"),
)
NODE = (
    ("bash", "git status --short"),
    ("read", "package.json"),
    ("glob", "src/**/*.js"),
    ("bash", "npm ls --depth=0"),
    ("bash", "npm test 2>&1 | tail -5"),
    ("edit", "src/index.js"),
    ("bash", "npm test"),
    ("bash", "npm run lint"),
    ("bash", "npx tsc --noEmit"),
    ("bash", "npm run build"),
    ("write", "src/health.js"),
    ("bash", "npx eslint src --fix"),
    ("bash", "npm install --no-audit lodash 2>&1 | tail -3"),
    ("bash", "git add . && git commit -q -m 'Add health'"),
    ("bash", "git diff HEAD~1 --stat"),
    ("bash", "node --check src/index.js"),
    ("bash", "node --check src/health.js"),
    ("bash", "npx tsc --noEmit -p ."),
    ("edit", "src/a.js"),
    ("bash", "npm test -- --watch=false"),
    ("bash", "rm -rf dist"),
    ("bash", "npm run build"),
    ("bash", "curl -s http://localhost:3000/health"),
    ("bash", "curl -s http://localhost:3000/version"),
    ("bash", "git commit -q -am 'Use health'"),
)
C = (
    ("bash", "git log --oneline | head"),
    ("bash", "ls -la src include"),
    ("read", "src/main.c"),
    ("grep", "malloc"),
    ("bash", "make"),
    ("bash", "make test"),
    ("edit", "src/main.c"),
    ("bash", "make -j4 2>&1 | grep -E 'error|warning' | head"),
    ("bash", "./app --help"),
    ("bash", "gcc -Wall -Iinclude -o app src/main.c && ./app"),
    ("bash", "make clean && make -j$(nproc)"),
    ("write", "include/x.h"),
    ("bash", "cat src/main.c | head -20"),
    ("bash", "git add -A && git commit -q -m 'Fix exit code'"),
    ("bash", "git diff HEAD~1"),
    ("edit", "src/main.c"),
    ("edit", "include/x.h"),
    ("bash", "make -s"),
    ("bash", "./app --version"),
    ("bash", "git fetch"),
    ("bash", "make -n install"),
    ("bash", "gcc -Wall -Wextra -Iinclude -o app src/main.c"),
    ("bash", "make test"),
    ("bash", "rm -f src/main.o"),
    ("bash", "git commit -q -am 'Tidy up'"),
)
FILES = {
    "python": "pyproject.toml src/app/__init__.py src/app/core.py src/app/old.py tests/test_core.py .venv/bin/activate "
    ".venv/bin/pytest",
    "node": "package.json src/index.js src/a.js dist/index.js node_modules/.bin/tsc node_modules/.bin/eslint",
    "c": "Makefile src/main.c include/y.h app",
}
ARGUMENTS = {"bash": "command", "glob": "pattern", "grep": "pattern"}


@pytest.fixture(params=[("python", PYTHON), ("node", NODE), ("c", C)], ids=["python", "node", "c"])
def day(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, tuple[tuple[str, str], ...]]:
    name, calls = request.param
    root = tmp_path.resolve()
    for file in FILES[name].split():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("x\n", "utf-8")
    (root / ".gitignore").write_text(".venv/\nnode_modules/\napp\nbuild/\n", "utf-8")
    for words in ("init -q", "add -A", "-c user.name=x -c user.email=x@y commit -q -m x"):
        subprocess.run(("git", *words.split()), cwd=root, check=True)
    return name, root, calls


def questions(root: Path, calls: tuple[tuple[str, str], ...], mode: str, *, grants: bool) -> list[str]:
    """Return the calls that ask, if each is answered yes, with the first rule that is offered or only once."""
    policy, tools = PermissionPolicy(root, mode=mode), sample_tools(root)
    asked: list[str] = []
    for tool, subject in calls:
        arguments = {ARGUMENTS.get(tool, "path"): subject}
        decision = policy.check(tools[tool], arguments)
        assert decision.decision != "deny", (subject, decision.reason)
        if decision.decision == "ask":
            rule = policy.grant_rule(tools[tool], arguments)
            asked.append(f"{tool} {subject}: {decision.reason} -> {rule}")
            if grants and rule:
                policy.grant(rule, "session")
    return asked


LIMITS = {"python": (17, 10, 8), "node": (18, 10, 9), "c": (19, 8, 6)}
"""Most questions a day: without grants, with the first offer taken each time, and with it in accept_edits."""


def test_a_granted_command_does_not_ask_again(day: tuple[str, Path, tuple[tuple[str, str], ...]]) -> None:
    name, root, calls = day
    asked = [
        questions(root, calls, mode, grants=grants)
        for mode, grants in (("ask", False), ("ask", True), ("accept_edits", True))
    ]

    assert len(calls) == 25
    found = tuple(map(len, asked))
    assert all(count <= most for count, most in zip(found, LIMITS[name], strict=True)), (found, asked)
