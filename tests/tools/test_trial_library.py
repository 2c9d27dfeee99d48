"""Trials in a program that uses the library: the approver decides what is kept."""

from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent import (
    Agent,
    ApprovalDecision,
    ApprovalRequest,
    PermissionPolicy,
    ScriptedProvider,
    Trials,
    call,
    coding_tools,
    reply,
)

pytestmark = pytest.mark.slow


@table(("paths", "kept"), [(None, {"a", "b"}), (["a"], {"a"}), ([], set())])
async def test_the_approver_keeps_a_part(tmp_path: Path, paths: list[str] | None, kept: set[str]) -> None:
    root = tmp_path / "work"
    root.mkdir()
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision(decision="approve", input=None if paths is None else {"paths": paths})

    trials = Trials(root, tmp_path / "trials", "one")
    model = ScriptedProvider([reply("I write.", call("bash", command="echo 1 > a; echo 2 > b")), "Done."])
    policy = PermissionPolicy(root, trial=trials.facts)
    try:
        agent = Agent(model, tools=coding_tools(root, trials=trials), policy=policy, workspace=root, approve=approve)
        report = await agent.run("Write")
    finally:
        trials.close()

    assert report.reason == "done"
    assert [[file.path for file in request.changes.files] for request in asked if request.changes] == [["a", "b"]]
    assert {path.name for path in root.iterdir()} == kept
