"""Tasks from TOML and JSON lines: values, attempts, fields, and mistakes with line and field."""

from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.fleet.task_file import read_line_tasks, read_toml_tasks
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import PermissionMode

HERE = Path("/fleet")


def test_values_at_the_top_hold_for_all_tasks() -> None:
    content = b"""
prompt = "Replace {old} with {new} in {repo}; keep {{braces}}"
verify = "make test"
budget = 2.5
new = "after"
permissions.deny = ["fetch(*)"]

[[task]]
repo = "one"
old = "before"

[[task]]
repo = "https://host.invalid/two.git"
ref = "main"
old = 3
new = "later"
n = 2
timeout = 60
[task.permissions]
mode = "plan"
"""
    first, second, third = read_toml_tasks(content, HERE)

    assert [first.id, second.id, third.id] == ["1", "2.1", "2.2"]
    assert first.prompt == "Replace before with after in one; keep {braces}"
    assert first.repo == "/fleet/one"
    assert (first.verify, first.budget, first.timeout) == ("make test", 2.5, None)
    assert first.permissions.deny == ("fetch(*)",)
    assert first.permissions.mode is PermissionMode.ACCEPT_EDITS
    assert second.prompt == "Replace 3 with later in https://host.invalid/two.git; keep {braces}"
    assert (second.ref, second.timeout, second.attempt, third.attempt) == ("main", 60, 1, 2)
    assert second.permissions.mode is PermissionMode.PLAN
    assert second.permissions.deny == ()


def test_each_line_of_json_is_a_task() -> None:
    content = b'{"prompt": "Go", "repo": "git@host:a/b"}\n\n{"prompt": "{x}", "repo": "/r", "x": "y"}'

    units = read_line_tasks(content, HERE)

    assert [(unit.id, unit.prompt, unit.repo) for unit in units] == [("1", "Go", "git@host:a/b"), ("2", "y", "/r")]


MISTAKES = {
    b'prompt = "Go"\n': "no [[task]]",
    b'prompt = "Go"\n[[task]]\nref = "x"\n': "line 2: repo: is missing",
    b'[[task]]\nrepo = "r"\n': "line 1: prompt: is missing",
    b'prompt = "Go"\n[[task]]\nrepo = "r"\n\nn = 0\n': "line 5: n: ",
    b'prompt = "Go"\nbudget = -1\n[[task]]\nrepo = "r"\n': "line 2: budget: ",
    b'prompt = "Do {what}"\n[[task]]\nrepo = "r"\n': "line 1: prompt: no field {what}",
    b'prompt = "Do {{what}}"\nwhat = "x"\n[[task]]\nrepo = "r"\n': (
        "line 1: prompt: {{what}} is text in braces, not the field; write {what}"
    ),
    b'prompt = "Do {"\n[[task]]\nrepo = "r"\n': "line 1: prompt: ",
    b'prompt = "Go"\n[[task]]\nrepo = "r"\nfiles = ["a"]\n': "line 4: files: unknown",
    b'prompt = "Go"\n[[task]]\nrepo = "https://me:pw@host/r"\n': "line 3: repo: a URL with a password",
    b'prompt = "Go"\n[[task]]\nrepo = "https://github_pat_11ABCDEFGH@host/r"\n': "line 3: repo: a URL with a",
    b'prompt = "Go"\n[[task]]\nrepo = "--upload-pack=x"\n': "line 3: repo: not a path",
    b'prompt = "Go"\n[[task]]\nrepo = "r"\nref = "a b"\n': "line 4: ref: ",
    b'prompt = "Go"\n[[task]]\nrepo = "r"\n[task.permissions]\nmode = "allow"\n': "line 4: permissions.mode: ",
    b'prompt = "Go"\n[[task]]\nrepo = "r"\n[task.permissions]\nalow = ["bash"]\n': (
        "line 4: permissions.alow: unknown; did you mean allow?"
    ),
    b'prompt = "Go"\npermissions = ["allow bash(*)"]\n[[task]]\nrepo = "r"\n': (
        "line 2: permissions: must be a table of mode, allow, ask, deny"
    ),
    b'prompt = "Go"\nverfy = "make"\n[[task]]\nrepo = "r"\n': (
        "line 2: verfy: unknown, and the prompt does not use it; did you mean verify?"
    ),
    b'prompt = "Go {new}"\nverify = "grep {new} a"\n[[task]]\nrepo = "r"\nnew = 1\n': (
        "line 2: verify: {new} is filled in only in prompts"
    ),
    b'prompt = "Go\n': "line 1",
}


@table("content", MISTAKES)
def test_a_mistake_is_named_with_line_and_field(content: bytes) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_toml_tasks(content, HERE)

    assert MISTAKES[content] in str(caught.value)


def test_a_field_of_the_prompt_may_be_named_almost_like_a_key_and_a_command_may_have_braces() -> None:
    content = b'prompt = "Use {model_}"\nverify = "x=${repo} awk {print}"\n[[task]]\nrepo = "r"\nmodel_ = "a"\n'

    assert read_toml_tasks(content, HERE)[0].prompt == "Use a"


def test_all_mistakes_are_named_at_once() -> None:
    content = b'{"prompt": "Go"}\n{"repo": "r"}\n'

    with pytest.raises(ConfigurationError) as caught:
        read_line_tasks(content, HERE)

    assert "line 1: repo: is missing" in str(caught.value)
    assert "line 2: prompt: is missing" in str(caught.value)
    with pytest.raises(ConfigurationError, match="line 2: no JSON"):
        read_line_tasks(b'{"prompt": "Go", "repo": "r"}\n{oops\n', HERE)
    with pytest.raises(ConfigurationError, match="no task"):
        read_line_tasks(b"\n", HERE)
