"""Commands that run at once: which do, and that each reports its own changes only."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.execution.kit import Ran, call, run
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.events import ToolBlockedOn
from tui_agent.tools import BackgroundJobs
from tui_agent.tools.file_states import ContentStore
from tui_agent.tools.workspace import ChangingCalls
from tui_agent.workbench.built_in_tools import built_in_tools

WAIT = "until [ -e ../go ]; do sleep 0.01; done"
"""Waits for a file that only the test makes."""


@asynccontextmanager
async def go_when_there(root: Path, *names: str) -> AsyncGenerator[None]:
    """End the commands that wait as soon as these files exist."""

    async def work() -> None:
        while not all((root / name).exists() for name in names):
            await asyncio.sleep(0.01)
        (root.parent / "go").touch()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        yield
        task.cancel()


async def run_all(root: Path, *commands: str | tuple[str, str]) -> Ran:
    """Run commands, and writes of a path and a content, as calls of one message."""
    contents = ContentStore(root.parent / "contents")
    asked = [
        call("bash", f"c{number}", command=given, timeout=120)
        if isinstance(given, str)
        else call("write", f"c{number}", path=given[0], content=given[1])
        for number, given in enumerate(commands)
    ]
    async with BackgroundJobs() as jobs:
        tools = built_in_tools(root, root.parent / "spool", contents=contents, jobs=jobs)
        return await run(tools, asked, policy=PermissionPolicy(root, mode="allow"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return (tmp_path / "work").resolve()


async def test_an_edit_knows_what_an_own_command_changed(root: Path) -> None:
    (root / "f.py").write_text("".join(f"line{number} = {number}\n" for number in range(1, 10)))
    contents, texts = ContentStore(root.parent / "contents"), list[str]()
    async with BackgroundJobs() as jobs:
        tools = built_in_tools(root, root.parent / "spool", contents=contents, jobs=jobs)
        for asked in (
            call("read", path="f.py"),
            call("bash", command="sed -i 's/line5 = 5/line5 = 55/' f.py"),
            call("edit", path="f.py", old_string="line5 = 55", new_string="line5 = 6"),
            call("bash", command="sed -i 's/line7 = 7/line7 = 77/' f.py"),
            call("edit", path="f.py", old_string="line1 = 1", new_string="line1 = 2"),
        ):
            texts += (await run(tools, [asked], policy=PermissionPolicy(root, mode="allow"))).texts

    assert "-line5 = 5\n+line5 = 55" in texts[2]
    assert "+line7 = 77" in texts[4]
    assert (root / "f.py").read_text().startswith("line1 = 2\n")
    assert "line5 = 6\n" in (root / "f.py").read_text()


async def test_a_command_with_unknown_accesses_runs_alone(root: Path) -> None:
    ran = await run_all(root, "bash -c 'sleep 0.1; echo 1 > a'", "ls", "python3 -c 'print(open(\"a\").read())'")

    assert ran.texts[1:] == ["a", "1\n"]
    assert [event.call_id for event in ran.of(ToolBlockedOn)] == ["c1", "c2", "c2"]


def test_a_change_is_reported_by_the_calls_that_may_have_made_it() -> None:
    calls = ChangingCalls()
    a, b, other = Path("/w/a"), Path("/w/b"), Path("/w/other")
    with calls.entered({a}) as first:
        with calls.entered({b}) as second:
            assert [one.may_have_changed(a / "below") for one in (first, second)] == [True, False]
            assert [one.may_have_changed(b) for one in (first, second)] == [False, True]
            assert [one.may_have_changed(other) for one in (first, second)] == [True, True]
        assert not first.may_have_changed(b)
    with calls.entered(None) as unknown, calls.entered({b}) as second:
        assert [one.may_have_changed(b) for one in (unknown, second)] == [False, True]
        assert [one.may_have_changed(other) for one in (unknown, second)] == [True, False]
    with calls.entered({a}), calls.entered({b}) as second:
        temporary = [Path("/w/.a.0123456789abcdef.tmp"), Path("/w/.b.0123456789abcdef.tmp")]
        assert [second.may_have_changed(path) for path in temporary] == [False, True]
    with calls.entered({a}) as alone:
        assert alone.may_have_changed(other)
