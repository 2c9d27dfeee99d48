"""Commands that run at once: which do, and that each reports its own changes only."""

from pathlib import Path

from tests.execution.kit import call, run
from tui_agent.permissions import PermissionPolicy
from tui_agent.tools import BackgroundJobs
from tui_agent.tools.file_states import ContentStore
from tui_agent.tools.workspace import ChangingCalls
from tui_agent.workbench.built_in_tools import built_in_tools


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
