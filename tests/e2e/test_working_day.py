"""Questions in a working day: everyday calls in a Python, a Node and a C project, run by the whole program in order.

All nine days run if the variable `WORKING_DAYS` is `all`, one otherwise.
"""

import json
import os
import subprocess
from typing import Any

import pytest

from .script import Reply, call, calls, says
from .test_headless import piped
from .user_machine import UserMachine

pytestmark = pytest.mark.slow

Calls = tuple[tuple[str, Any], ...]
PYTHON: Calls = (
    ("bash", "git status"),
    ("glob", "**/*.py"),
    ("read", "src/app/core.py"),
    ("grep", "def "),
    ("bash", "python -m pytest -q 2>&1 | tail -20"),
    ("edit", ("src/app/core.py", "return a - b", "return a + b")),
    ("bash", "pytest -q tests/test_core.py"),
    ("read", "tests/test_core.py"),
    ("edit", ("tests/test_core.py", "assert add(1, 2) == 3", "assert add(1, 2) == 3\n    assert add(0, 0) == 0")),
    ("write", ("src/app/util.py", "def foo():\n    return 1\n")),
    ("bash", "ruff check . --fix"),
    ("bash", "source .venv/bin/activate && pytest -q"),
    ("bash", "git diff --stat"),
    ("bash", "git add -A && git commit -q -m 'Fix add'"),
    ("bash", "git log --oneline -5"),
    ("bash", "python -m pytest tests -x"),
    ("bash", "PYTHONPATH=src pytest -q tests"),
    ("bash", ".venv/bin/pytest -q"),
    ("bash", "pip show pytest"),
    ("edit", ("src/app/__init__.py", "VERSION = 1", "VERSION = 2")),
    ("bash", "ruff check . --fix"),
    ("bash", "PYTHONPATH=src pytest -q"),
    ("bash", "rm -f src/app/old.py"),
    ("bash", "source .venv/bin/activate && pytest -q tests"),
    ("bash", "git add src && git commit -q -m 'Add util'"),
)
NODE: Calls = (
    ("bash", "git status --short"),
    ("read", "package.json"),
    ("glob", "src/**/*.js"),
    ("bash", "npm ls --depth=0"),
    ("bash", "npm test 2>&1 | tail -5"),
    ("edit", ("src/index.js", "const port = 3000", "const port = process.env.PORT || 3000")),
    ("bash", "npm test"),
    ("bash", "npm run lint"),
    ("bash", "npx tsc --noEmit"),
    ("bash", "npm run build"),
    ("write", ("src/health.js", "module.exports = () => 'ok'\n")),
    ("bash", "npx eslint src --fix"),
    ("twice", "npm install --no-audit lodash 2>&1 | tail -3"),
    ("bash", "git add . && git commit -q -m 'Add health'"),
    ("bash", "git diff HEAD~1 --stat"),
    ("bash", "node --check src/index.js"),
    ("bash", "node --check src/health.js"),
    ("bash", "npx tsc --noEmit -p ."),
    ("edit", ("src/a.js", "// TODO", "// DONE")),
    ("bash", "npm test -- --watch=false"),
    ("bash", "rm -rf dist"),
    ("bash", "npm run build"),
    ("twice", "curl -s http://localhost:3000/health"),
    ("twice", "curl -s http://localhost:3000/version"),
    ("bash", "git commit -q -am 'Use health'"),
)
C: Calls = (
    ("bash", "git log --oneline | head"),
    ("bash", "ls -la src include"),
    ("read", "src/main.c"),
    ("grep", "malloc"),
    ("bash", "make"),
    ("bash", "make test"),
    ("edit", ("src/main.c", "return 1;", "return 0;")),
    ("bash", "make -j4 2>&1 | grep -E 'error|warning' | head"),
    ("bash", "./app --help"),
    ("bash", "gcc -Wall -Iinclude -o app src/main.c && ./app"),
    ("bash", "make clean && make -j$(nproc)"),
    ("write", ("include/x.h", "#pragma once\n")),
    ("bash", "cat src/main.c | head -20"),
    ("bash", "git add -A && git commit -q -m 'Fix exit code'"),
    ("bash", "git diff HEAD~1"),
    ("edit", ("src/main.c", "return 0;", "return 0 ;")),
    ("edit", ("include/x.h", "#pragma once", "#pragma once\n#define X 1")),
    ("bash", "make -s"),
    ("bash", "./app --version"),
    ("bash", "git fetch"),
    ("bash", "make -n install"),
    ("bash", "gcc -Wall -Wextra -Iinclude -o app src/main.c"),
    ("bash", "make test"),
    ("bash", "rm -f src/main.o"),
    ("bash", "git commit -q -am 'Tidy up'"),
)
PROGRAM = '#!/bin/sh\nexec {} "$@"\n'
FILES = {
    "python": {
        # Each plugin of this environment would take its part of every start.
        "pyproject.toml": '[project]\nname = "app"\nversion = "1"\n[tool.pytest.ini_options]\naddopts = "'
        + " ".join(f"-p no:{name}" for name in ("textual-snapshot", "syrupy", "hypothesispytest", "asyncio", "anyio"))
        + '"\n',
        ".gitignore": ".venv/\n__pycache__/\nbuild/\n",
        "src/app/__init__.py": "VERSION = 1\n",
        "src/app/core.py": "def add(a, b):\n    return a - b\n",
        "src/app/old.py": "x=1\n",
        "tests/test_core.py": "import sys\n\nsys.path.insert(0, 'src')\nfrom app.core import add\n\n\n"
        "def test_add():\n    assert add(1, 2) == 3\n",
        ".venv/bin/activate": "true\n",
        ".venv/bin/pytest": PROGRAM.format("pytest"),
    },
    "node": {
        "package.json": '{"name": "web", "version": "1.0.0", "scripts": {"test": "node --test", "lint": "echo lint", '
        '"build": "mkdir -p dist && cp src/index.js dist/", "dev": "node src/index.js"}}\n',
        ".gitignore": "node_modules/\nbuild/\n",
        # Without it the count would depend on the network.
        ".npmrc": "registry=http://127.0.0.1:9/\nfetch-retries=0\n",
        "src/index.js": "const port = 3000\nif (!process.argv.includes('--version')) console.log(port)\n",
        "src/a.js": "// TODO\n",
        "node_modules/.bin/tsc": PROGRAM.format("true"),
        "node_modules/.bin/eslint": PROGRAM.format("true"),
    },
    "c": {
        "Makefile": "app: src/main.c\n\tgcc -Iinclude -o app src/main.c\n\ntest: app\n\t-./app\n\n"
        "clean:\n\trm -f app\n\ninstall: app\n\tcp app /usr/local/bin\n",
        ".gitignore": "app\nbuild/\n",
        "src/main.c": '#include <stdio.h>\n#include "y.h"\n\nint main(void) {\n    puts("hi");\n    return 1;\n}\n',
        "include/y.h": "#pragma once\n",
    },
}
DAYS = {"python": PYTHON, "node": NODE, "c": C}
WAYS = {"yes": ("ask", False), "rules": ("ask", True), "accept_edits": ("accept_edits", True)}
"""With a yes each time, with the rule that is offered first, and with it in accept_edits."""
QUESTIONS = {
    "python": {"yes": 7, "rules": 3, "accept_edits": 2},
    "node": {"yes": 11, "rules": 5, "accept_edits": 4},
    "c": {"yes": 8, "rules": 4, "accept_edits": 2},
}
GOALS = {"yes": 26, "rules": 12, "accept_edits": 10}
"""Most questions of the 75 calls of the three days."""
RUNS = [(name, way) for name in DAYS for way in WAYS]


def project(machine: UserMachine, name: str) -> None:
    """Make the project with one commit."""
    for path, text in FILES[name].items():
        (machine.work / path).parent.mkdir(parents=True, exist_ok=True)
        (machine.work / path).write_text(text, "utf-8")
        if "/bin/" in path or "/.bin/" in path:
            (machine.work / path).chmod(0o755)
    (machine.home / ".gitconfig").write_text("[user]\n\tname = Ann\n\temail = ann@example.org\n", "utf-8")
    for words in (("init", "-qb", "main"), ("add", "-A"), ("commit", "-qm", "Begin")):
        subprocess.run(("git", *words), cwd=machine.work, env={**os.environ, **machine.environment}, check=True)


def script_of(day: Calls) -> list[Reply]:
    """Return the model's answers: one call each; what needs a network is repeated outside."""
    kinds = {"glob": "pattern", "grep": "pattern", "read": "path", "bash": "command"}
    replies: list[Reply] = []
    for tool, subject in day:
        if tool == "edit":
            path, old, new = subject
            replies.append(calls(call("edit", path=path, old_string=old, new_string=new)))
        elif tool == "write":
            replies.append(calls(call("write", path=subject[0], content=subject[1])))
        elif tool == "twice":
            replies += [calls(call("bash", command=subject)), calls(call("bash", command=subject, sandbox=False))]
        else:
            replies.append(calls(call(tool, **{kinds[tool]: subject})))
    return [*replies, says("Done.")]


def questions(machine: UserMachine, day: Calls, mode: str, *, grants: bool) -> list[str]:
    """Return the questions of a day, if each is answered yes, with the first rule that is offered or only once."""
    asked: list[str] = []
    with piped(machine, script_of(day), "--permission-mode", mode, "--max-steps", "40", "work") as (program, _):
        for line in iter(program.process.stdout.readline, ""):
            program.events.append(event := json.loads(line))
            if event["type"] == "run.ended":
                break
            if event["type"] != "approval.requested":
                continue
            data = event["data"]
            rule = data["session_rule"]
            asked.append(f"{data['summary']}: {data['reason']} -> {rule}")
            stored = {"scope": "session"} if grants and rule else {}
            program.tell(type="approval", request_id=data["request_id"], decision="approve", **stored)
        assert program.end() == 0
    return asked


@pytest.mark.parametrize(("name", "way"), RUNS if os.environ.get("WORKING_DAYS") == "all" else RUNS[:1])
def test_a_working_day_has_few_questions(machine: UserMachine, name: str, way: str) -> None:
    assert len(DAYS[name]) == 25
    assert sum(counted[way] for counted in QUESTIONS.values()) <= GOALS[way]
    project(machine, name)
    mode, grants = WAYS[way]

    asked = questions(machine, DAYS[name], mode, grants=grants)

    assert len(asked) == QUESTIONS[name][way], asked
