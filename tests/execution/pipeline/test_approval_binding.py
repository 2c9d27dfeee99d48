"""An approval covers what the dialog showed: real tools and a real policy, while files change."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.execution.kit import Ran, call, run
from tui_agent.execution import ApprovalGate, Auto, ExecutionOptions, Sequential
from tui_agent.execution.pipeline.approval_stage import MAX_QUESTIONS
from tui_agent.permissions import PermissionPolicy, is_read_only_command
from tui_agent.protocol.events import ApprovalRequested
from tui_agent.protocol.messages import ToolCall
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.tool import Tool
from tui_agent.tools import Workspace, default_tools

Meanwhile = Callable[[], object]


class Scene:
    """Workspace, a directory outside it, and a user who lets things happen before each answer."""

    def __init__(self, directory: Path) -> None:
        self.root, self.outside = directory / "work", directory / "outside"
        for place in (self.root / "d", self.root / "e", self.outside):
            place.mkdir(parents=True)
        (self.root / "d" / "a").write_text("old\n")
        (self.outside / "a").write_text("secret\n")
        self.tools: list[Tool] = default_tools(
            Workspace(self.root, spool_dir=directory / "spool"),
            is_read_only_command=lambda command: is_read_only_command(command, self.root),
        )

    async def play(
        self, *calls: ToolCall, meanwhile: tuple[Meanwhile, ...] = (), approvals: int = 99, at_once: bool = False
    ) -> Ran:
        """Run calls in sequence; each question sees the next action of `meanwhile` before its answer."""
        happens, answers = iter(meanwhile), iter(range(approvals))

        def answer(request: ApprovalRequest) -> ApprovalDecision:
            next(happens, lambda: None)()
            return ApprovalDecision(decision="deny" if next(answers, None) is None else "approve")

        options = ExecutionOptions(strategy=Auto() if at_once else Sequential())
        gate = ApprovalGate(approver=answer)
        return await run(self.tools, list(calls), options, policy=PermissionPolicy(self.root), gate=gate)

    def replace(self, name: str, text: str) -> None:
        """Save a file as many editors do."""
        (self.root / "new").write_text(text)
        os.replace(self.root / "new", self.root / name)

    def swap_directory(self) -> None:
        (self.root / "d").rename(self.root / "old")
        (self.root / "e").rename(self.root / "d")

    def swap_for_link(self) -> None:
        (self.root / "d").rename(self.root / "old")
        (self.root / "d").symlink_to(self.outside)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def questions(ran: Ran) -> list[ApprovalRequested]:
    return ran.of(ApprovalRequested)


async def test_a_directory_that_became_a_link_needs_approval_again(scene: Scene) -> None:
    ran = await scene.play(call("write", path="d/new", content="x"), meanwhile=(scene.swap_for_link,), approvals=1)

    first, again = questions(ran)
    assert first.targets == (str(scene.root / "d" / "new"),)
    assert again.targets == (str(scene.outside / "new"),)
    assert again.reason.endswith("asked again: what it would touch or run changed since")
    assert ran.statuses == ["denied_user"]
    assert os.listdir(scene.outside) == ["a"]


async def test_another_directory_of_the_same_name_needs_approval_again(scene: Scene) -> None:
    ran = await scene.play(call("write", path="d/new", content="x"), meanwhile=(scene.swap_directory,))

    first, again = questions(ran)
    assert "asked again" not in first.reason
    assert again.reason.endswith(f"asked again: {scene.root / 'd'} was replaced since")
    assert ran.statuses == ["ok"]
    assert (scene.root / "d" / "new").read_text() == "x"
    assert os.listdir(scene.root / "old") == ["a"]


async def test_another_file_of_the_same_name_needs_approval_before_it_is_read(scene: Scene) -> None:
    outside = scene.root.parent / "notes"
    outside.write_text("harmless")

    def swap() -> None:
        os.link(scene.outside / "a", outside.with_name("other"))
        os.replace(outside.with_name("other"), outside)

    ran = await scene.play(call("read", path=str(outside)), meanwhile=(swap,), approvals=1)

    assert len(questions(ran)) == 2
    assert ran.statuses == ["denied_user"]
    assert "secret" not in ran.texts[0]


@pytest.mark.parametrize(
    "command",
    ["sh run.sh", "bash -e ./run.sh x", "./run.sh", ". ./run.sh", "bash < run.sh", "python3 run.sh",
     "env A=b sh run.sh", "cd d && sh ../run.sh", "true; timeout 9 sh run.sh", "make -f run.sh"],
)  # fmt: skip
async def test_a_script_that_changed_after_the_question_needs_another_answer(scene: Scene, command: str) -> None:
    script = scene.root / "run.sh"
    script.write_text("print:\n")
    script.chmod(0o755)

    def swap() -> None:
        script.write_text("id > PWNED\n")

    ran = await scene.play(call("bash", command=command), meanwhile=(swap,), approvals=1)

    assert [one.reason.endswith("asked again: what it would touch or run changed since") for one in questions(ran)] == [
        False,
        True,
    ]
    assert ran.statuses == ["denied_user"]


async def test_a_script_that_stays_needs_one_answer(scene: Scene) -> None:
    (scene.root / "run.sh").write_text("echo ran\n")
    ran = await scene.play(call("bash", command="sh run.sh"), meanwhile=(lambda: scene.replace("d/a", "x"),))

    assert (len(questions(ran)), ran.texts[0].strip()) == (1, "ran")


async def test_the_targets_of_a_command_are_checked_again(scene: Scene) -> None:
    ran = await scene.play(call("bash", command="echo x > d/new"), meanwhile=(scene.swap_directory,), approvals=1)

    assert len(questions(ran)) == 2
    assert ran.statuses == ["denied_user"]
    assert not (scene.root / "d" / "new").exists()


async def test_a_file_saved_with_the_same_content_needs_no_further_approval(scene: Scene) -> None:
    ran = await scene.play(
        call("read", "r", path="d/a"),
        call("edit", path="d/a", old_string="old", new_string="new"),
        meanwhile=(lambda: scene.replace("d/a", "old\n"),),
    )

    assert len(questions(ran)) == 1
    assert (scene.root / "d" / "a").read_text() == "new\n"


@pytest.mark.parametrize("tool", ["write", "edit"])
async def test_a_file_saved_with_other_content_fails_without_a_question(scene: Scene, tool: str) -> None:
    change = {"content": "x"} if tool == "write" else {"old_string": "old", "new_string": "new"}
    ran = await scene.play(
        call("read", "r", path="d/a"),
        call(tool, path="d/a", **change),
        meanwhile=(lambda: scene.replace("d/a", "old and more\n"),),
    )

    assert len(questions(ran)) == 1
    assert ran.statuses == ["ok", "error"]
    assert "changed on disk since it was last read" in ran.texts[1]
    assert "+old and more" in ran.texts[1]
    assert (scene.root / "d" / "a").read_text() == "old and more\n"


async def test_an_edit_whose_text_is_not_in_the_file_fails_without_a_question(scene: Scene) -> None:
    ran = await scene.play(call("edit", path="d/a", old_string="missing", new_string="new"), at_once=True)

    assert questions(ran) == []
    assert ran.statuses == ["error"]
    assert "old_string was not found" in ran.texts[0]


async def test_a_file_changed_since_it_was_read_fails_without_a_question(scene: Scene) -> None:
    read = next(tool for tool in scene.tools if tool.name == "read")
    await run([read], [call("read", path="d/a")], policy=PermissionPolicy(scene.root))
    scene.replace("d/a", "old and more\n")
    edit = call("edit", path="d/a", old_string="old", new_string="new")
    ran = await scene.play(edit, at_once=True)

    assert questions(ran) == []
    assert ran.statuses == ["error"]
    assert "changed on disk since it was last read" in ran.texts[0]
    again = await scene.play(edit, at_once=True)
    assert (len(questions(again)), again.statuses) == (1, ["ok"])


async def test_an_edit_that_an_earlier_call_makes_possible_needs_approval(scene: Scene) -> None:
    ran = await scene.play(
        call("edit", "1", path="d/a", old_string="old", new_string="middle"),
        call("edit", "2", path="d/a", old_string="middle", new_string="new"),
        at_once=True,
    )

    assert len(questions(ran)) == 2
    assert ran.statuses == ["ok", "ok"]
    assert "new" in (scene.root / "d" / "a").read_text()


async def test_an_edit_outside_the_workspace_needs_approval_even_if_it_would_fail(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The error quotes the file, which the model may not read without an answer."""
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text("password = 1\n")
    ran = await scene.play(
        call("edit", path=str(secret), old_string="passwort = 1", new_string="x"), approvals=0, at_once=True
    )

    assert len(questions(ran)) == 1
    assert "password" not in ran.texts[0]


async def test_an_unread_file_that_is_replaced_needs_approval_again(scene: Scene) -> None:
    ran = await scene.play(
        call("edit", path="d/a", old_string="old", new_string="new"),
        meanwhile=(lambda: scene.replace("d/a", "what was old\n"),),
        approvals=1,
    )

    first, again = questions(ran)
    assert first.preview is not None
    assert again.preview is not None
    assert "what was old" in again.preview.text
    assert (scene.root / "d" / "a").read_text() == "what was old\n"


async def test_a_deleted_file_needs_approval_again_before_it_is_created(scene: Scene) -> None:
    ran = await scene.play(
        call("read", "r", path="d/a"),
        call("write", path="d/a", content="x"),
        meanwhile=((scene.root / "d" / "a").unlink,),
        approvals=1,
    )

    assert len(questions(ran)) == 2
    assert not (scene.root / "d" / "a").exists()


async def test_changes_by_calls_of_the_same_message_need_no_further_approval(scene: Scene) -> None:
    """All questions come before the first call runs."""
    ran = await scene.play(
        call("write", "1", path="x/y/1", content="x"),
        call("write", "2", path="x/y/2", content="x"),
        call("edit", "3", path="d/a", old_string="old", new_string="new"),
        call("edit", "4", path="d/a", old_string="new", new_string="newer"),
        call("bash", "5", command="sed -i s/newer/newest/ d/a"),
        call("bash", "6", command="cp d/a x/y/1"),
        at_once=True,
    )

    assert [question.call_id for question in questions(ran)] == ["1", "2", "3", "4", "5", "6"]
    assert ran.statuses == ["ok"] * 6
    assert (scene.root / "x" / "y" / "1").read_text() == "newest\n"


async def test_a_call_whose_target_keeps_changing_does_not_run(scene: Scene) -> None:
    def swap() -> None:
        other = scene.root / "other"
        (scene.root / "d").rename(other)
        (scene.root / "e").rename(scene.root / "d")
        other.rename(scene.root / "e")

    ran = await scene.play(call("write", path="d/new", content="x"), meanwhile=(swap,) * 99)

    assert len(questions(ran)) == MAX_QUESTIONS
    assert ran.statuses == ["denied_policy"]
    assert not (scene.root / "d" / "new").exists()
    assert not (scene.root / "e" / "new").exists()
