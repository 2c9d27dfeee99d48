"""Changes of a command in a trial are kept or discarded once, in call order, by rule, mode or answer."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.execution.kit import FakePolicy, Ran, ScriptedTool, call, run
from tests.support.table import table
from tests.support.trial_directories import CopiedChanges, CopiedLayer, CopiedLayers, TrialTool
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import (
    ApprovalGate,
    Auto,
    Batched,
    ExecutionOptions,
    Parallel,
    Sequential,
)
from tui_agent.execution.pipeline.settle_changes import check_changes, preview_of
from tui_agent.protocol.cancellation import PROGRAM_QUIT, CancellationToken
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    ChangesDiscarded,
    ChangesKept,
    Warned,
)
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import (
    ApprovalDecision,
    ApprovalRequest,
    ChangesDecision,
    PermissionDecision,
    PermissionMode,
)
from tui_agent.protocol.tool import Accesses, Tool, ToolContext, ToolResult
from tui_agent.protocol.trial import (
    KeepSelection,
    KeptChanges,
    Place,
    ProposedChanges,
    ProposedFile,
    ProposedTree,
)

YES, NO = ApprovalDecision(decision="approve"), ApprovalDecision(decision="deny")


@dataclass
class TrialPolicy(FakePolicy):
    """Policy that lets commands run in a trial, and decides on changes by mode; `kept` is kept by a rule."""

    place: Place = "trial"
    kept: tuple[str, ...] = ()
    broken: bool = False
    judged: list[ProposedChanges] = field(default_factory=list[ProposedChanges])

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        decision = super().check(tool, arguments)
        return decision.model_copy(update={"place": self.place}) if tool.name == "command" else decision

    def check_changes(self, changes: ProposedChanges) -> ChangesDecision:
        self.judged.append(changes)
        if self.broken:
            raise OSError("no settings")
        paths = tuple(file.path for file in changes.files)
        kept = paths if any(rule == "edit(/**)" for rule, _ in self.granted) else self.kept
        asked = tuple(path for path in paths if path not in kept)
        if self.mode is PermissionMode.PLAN:
            return ChangesDecision(decision="deny", source="mode", reason="plan mode changes nothing")
        if self.mode is PermissionMode.ALLOW:
            return ChangesDecision(decision="allow", source="mode", reason="mode allow", kept=paths)
        return ChangesDecision(
            decision="ask" if asked else "allow",
            source="rule",
            reason="a command changed files",
            kept=kept,
            asked=asked,
            rules=("edit(/a)", "edit(/**)"),
        )


class Bench:
    """A workspace with two files, layers of it, and a tool that runs in them."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspace"
        self.workspace.mkdir(parents=True)
        for name in ("a", "b"):
            (self.workspace / name).write_text(f"old {name}")
        self.layers = CopiedLayers(self.workspace, root / "layers")
        self.tool = TrialTool(self.layers)
        self.policy = TrialPolicy()

    @property
    def files(self) -> dict[str, str]:
        found = (path for path in self.workspace.rglob("*") if path.is_file())
        return {str(path.relative_to(self.workspace)): path.read_text() for path in found}

    async def run(self, *arguments: JsonObject, answers: Any = None, tools: Sequence[Tool] = (), **more: Any) -> Ran:
        """Run one command for each of the arguments; without `answers` no one can answer."""
        asked = [call("command", f"c{index}", **one) for index, one in enumerate(arguments)]
        gate = more.pop("gate", None) or ApprovalGate(approver=answers)
        more.setdefault("policy", self.policy)
        return await run([self.tool, *tools], more.pop("calls", asked), more.pop("options", None), gate=gate, **more)

    async def run_until_asked(self, act: Callable[[ApprovalGate], object], *arguments: JsonObject, **more: Any) -> Ran:
        """Run commands, and let `act` happen once a question waits."""
        gate = ApprovalGate(interactive=True)

        async def user() -> None:
            while not gate.pending:
                await asyncio.sleep(0)
            act(gate)

        async with asyncio.TaskGroup() as group:
            group.create_task(user())
            return await self.run(*arguments, gate=gate, **more)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def answering(*answers: ApprovalDecision) -> Callable[[ApprovalRequest], ApprovalDecision]:
    left = list(answers)
    return lambda request: left.pop(0)


def selecting(*paths: str, **more: Any) -> ApprovalDecision:
    return ApprovalDecision(decision="approve", input={"paths": list(paths), **more})


BOTH: JsonObject = {"write": {"a": "new a", "b": "new b"}}


@pytest.mark.parametrize(
    ("answers", "files", "note"),
    [
        ([NO], {"a": "old a", "b": "old b"}, "discarded: a, b (the user did not want them)"),
        (
            [ApprovalDecision(decision="deny", note="keep my names")],
            {"a": "old a", "b": "old b"},
            "discarded: a, b (the user did not want them. The user said: keep my names)",
        ),
        ([ApprovalDecision(decision="skip")], {"a": "old a", "b": "old b"}, "discarded: a, b (skipped)"),
        (
            [ApprovalDecision(decision="skip", note="later")],
            {"a": "old a", "b": "old b"},
            "discarded: a, b (the user skipped the question. The user said: later)",
        ),
        ([selecting("a", overwrite=["b"]), YES], {"a": "new a", "b": "new b"}, "kept: a, b"),
        ([selecting("b")], {"a": "old a", "b": "new b"}, "kept: b; discarded: a (not chosen by the user)"),
        (
            [selecting("a", texts={"a": "mine"})],
            {"a": "mine", "b": "old b"},
            "kept: a; discarded: b (not chosen by the user)",
        ),
        ([selecting()], {"a": "old a", "b": "old b"}, "discarded: a, b (not chosen by the user)"),
        ([selecting("a", "../../etc/passwd"), selecting("a", "b")], {"a": "new a", "b": "new b"}, "kept: a, b"),
        ([ApprovalDecision(decision="approve", input={"paths": 7}), YES], {"a": "new a", "b": "new b"}, "kept: a, b"),
        ([selecting("c")] * 9, {"a": "old a", "b": "old b"}, "discarded: a, b (no answer fitted the changes)"),
    ],
)
async def test_answers(bench: Bench, answers: list[ApprovalDecision], files: dict[str, str], note: str) -> None:
    ran = await bench.run(BOTH, answers=answering(*answers))

    assert bench.files == files
    assert ran.texts == [f"ran c0\n[{note}]"]
    assert bench.layers.left == []
    unfit = len(ran.of(ApprovalRequested)) - ("no answer" not in note)
    assert len([event for event in ran.of(Warned) if event.code == "bad_selection"]) == unfit


async def test_a_note_reaches_the_model_and_a_result_of_the_user_replaces_the_output(bench: Bench) -> None:
    said = ApprovalDecision(decision="approve", note="well done", override_result=ToolResult.of_text("other text"))
    ran = await bench.run(BOTH, answers=answering(said))

    assert bench.files == {"a": "new a", "b": "new b"}
    assert ran.texts == ["[The user said: well done]\nother text\n[kept: a, b]"]


@pytest.mark.parametrize(
    ("policy", "files", "note", "questions"),
    [
        (TrialPolicy(), {}, "discarded: a, b (no one can answer here)", 1),
        (TrialPolicy(kept=("a",)), {"a": "new a"}, "kept: a; discarded: b (no one can answer here)", 1),
        (TrialPolicy(kept=("a", "b")), {"a": "new a", "b": "new b"}, "kept: a, b", 0),
        (TrialPolicy(mode=PermissionMode.PLAN), {}, "discarded: a, b (plan mode changes nothing)", 0),
        (TrialPolicy(mode=PermissionMode.ALLOW), {"a": "new a", "b": "new b"}, "kept: a, b", 0),
        (
            TrialPolicy(broken=True),
            {},
            "discarded: a, b (the permission policy failed, so nothing is kept (OSError: no settings))",
            0,
        ),
        (FakePolicy(), {}, "discarded: a, b (no one can answer here)", 1),
    ],
)
async def test_without_anyone_to_answer(
    bench: Bench, policy: Any, files: dict[str, str], note: str, questions: int
) -> None:
    ran = await bench.run(BOTH, policy=policy)

    assert bench.files == {"a": "old a", "b": "old b", **files}
    assert (ran.texts, len(ran.of(ApprovalRequested))) == ([f"ran c0\n[{note}]"], questions)
    assert bench.layers.left == []


async def test_protected_files_are_never_kept_by_the_policy(bench: Bench) -> None:
    bench.policy.mode = PermissionMode.ALLOW
    await bench.run({"write": {".envrc": "run this", "a": "new a"}})

    assert bench.files == {"a": "new a", "b": "old b"}


async def test_a_rule_is_stored_and_decides_the_questions_that_wait(bench: Bench) -> None:
    answer = ApprovalDecision(decision="approve", scope="session", rule="edit(/**)", input={"paths": ["a"]})
    ran = await bench.run_until_asked(
        lambda gate: gate.resolve(gate.pending[0].request_id, answer), {"write": {"a": "1"}}, {"write": {"b": "2"}}
    )

    assert bench.policy.granted == [("edit(/**)", "session")]
    assert bench.files == {"a": "1", "b": "2"}
    assert [event.by for event in ran.of(ChangesKept)] == ["user", "policy"]
    assert ran.of(ApprovalResolved)[0].rule == "edit(/**)"


async def test_a_rule_that_cannot_be_stored_keeps_the_changes_this_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(rule: str, scope: str) -> str | None:
        raise OSError("no space left")

    monkeypatch.setattr(bench.policy, "grant", full)
    answer = ApprovalDecision(decision="approve", scope="session", rule="edit(/**)")
    ran = await bench.run(BOTH, answers=answering(answer))

    assert bench.files == {"a": "new a", "b": "new b"}
    assert [event.rule for event in ran.of(ChangesKept)] == [None]
    assert any("no space left" in event.text for event in ran.of(Warned))


@pytest.mark.parametrize(
    ("mode", "files", "note"),
    [
        (PermissionMode.PLAN, {"a": "old a", "b": "old b"}, "discarded: a, b (plan mode changes nothing)"),
        (PermissionMode.ALLOW, {"a": "new a", "b": "new b"}, "kept: a, b"),
    ],
)
async def test_a_changed_mode_answers_the_question(
    bench: Bench, mode: PermissionMode, files: dict[str, str], note: str
) -> None:
    def change(gate: ApprovalGate) -> None:
        bench.policy.mode = mode
        gate.reconsider()

    ran = await bench.run_until_asked(change, BOTH)

    assert bench.files == files
    assert ran.texts == [f"ran c0\n[{note}]"]


async def test_a_conflict_is_kept_by_a_choice_only(bench: Bench) -> None:
    def answer(request: ApprovalRequest) -> ApprovalDecision:
        (bench.workspace / "a").write_text("the user's")
        return YES

    ran = await bench.run(BOTH, answers=answer)

    assert bench.files == {"a": "the user's", "b": "new b"}
    assert ran.of(ChangesDiscarded)[0].paths == ("a",)
    assert "a: it changed in the workspace meanwhile" in ran.texts[0]


@pytest.mark.parametrize(("reason", "left"), [("cancelled by the user", []), (f"{PROGRAM_QUIT} (SIGTERM)", ["c0"])])
async def test_a_cancelled_question_discards_and_an_exit_leaves_it(bench: Bench, reason: str, left: list[str]) -> None:
    token = CancellationToken()
    ran = await bench.run_until_asked(lambda gate: token.cancel(reason), BOTH, cancellation=token)

    assert bench.files == {"a": "old a", "b": "old b"}
    assert bench.layers.left == left
    ended = ran.ended("c0")
    assert (ended.status, ended.error_kind) == ("cancelled", "not_begun" if left else "cancelled")
    assert "ran c0" in ran.texts[0]
    assert len(ran.of(ChangesDiscarded)) == (0 if left else 1)
    assert not ran.of(ChangesKept)


async def test_a_command_that_is_cancelled_while_it_runs_keeps_nothing(bench: Bench) -> None:
    token = CancellationToken()

    async def user() -> None:
        while not bench.tool.ran:
            await asyncio.sleep(0)
        token.cancel("cancelled by the user")

    async with asyncio.TaskGroup() as group:
        group.create_task(user())
        ran = await bench.run({**BOTH, "seconds": 60}, answers=answering(YES), cancellation=token)

    assert bench.files == {"a": "old a", "b": "old b"}
    assert (bench.layers.left, ran.statuses) == ([], ["cancelled"])
    assert not ran.of(ApprovalRequested)
    assert not ran.of(ChangesKept)


async def test_many_paths_are_counted_and_not_named(bench: Bench) -> None:
    ran = await bench.run({"write": {f"n{number}": "new" for number in range(60)}}, answers=answering(YES))

    assert ran.texts == ["ran c0\n[kept: 60 files]"]
    (kept,) = ran.of(ChangesKept)
    assert (kept.count, len(kept.paths)) == (60, 60)


def test_a_preview_names_what_no_diff_shows() -> None:
    diff = Diff("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n")
    files = (
        ProposedFile(path="a", kind="changed", sort="workspace", diff=diff),
        ProposedFile(path="b", kind="changed", sort="workspace", diff=diff, conflict="it changed", has_more=True),
        ProposedFile(path="c", kind="added", sort="workspace", note="binary"),
        ProposedFile(path="d", kind="changed", sort="protected", diff=diff, runs_later="git runs it"),
        ProposedFile(path="e", kind="added", sort="refused", note="a device"),
    )
    trees = (ProposedTree(path="build/", sort="workspace", files=2),)
    preview = preview_of(ProposedChanges(layer="x", files=files, trees=trees, repository=("1 commit",)))

    assert preview.note.splitlines() == [
        *("b changed (in conflict: it changed; cut)", "c added (binary)", "protected: d changed (git runs it)"),
        *("never kept: e (a device)", "build/: 2 files", "in the repository: 1 commit"),
    ]


@table(
    ("changes", "reason"),
    [
        (ProposedChanges(layer="x", problem="it is too large"), "it is too large"),
        (
            ProposedChanges(layer="x", files=(ProposedFile(path="e", kind="added", sort="refused"),)),
            "nothing of it can be kept",
        ),
    ],
)
def test_what_cannot_be_kept_is_not_asked_about(changes: ProposedChanges, reason: str) -> None:
    services: Any = SimpleNamespace(policy=TrialPolicy())
    decision = check_changes(services, changes)

    assert (decision.decision, decision.reason) == ("deny", reason)


async def test_changes_that_cannot_be_shown_are_discarded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CopiedLayer, "changes", lambda self: 1 / 0)
    ran = await bench.run(BOTH, answers=answering(YES))

    assert bench.files == {"a": "old a", "b": "old b"}
    assert "what the command changed cannot be shown: division by zero" in ran.texts[0]


async def test_a_failure_of_the_layer_keeps_the_rest_of_the_call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(self: CopiedChanges, selection: KeepSelection, result: str = "") -> KeptChanges:
        raise OSError("no space left")

    monkeypatch.setattr(CopiedChanges, "keep", full)
    ran = await bench.run(BOTH, answers=answering(YES))

    assert bench.files == {"a": "old a", "b": "old b"}
    assert "the changes could not be kept: no space left" in ran.texts[0]
    assert ran.of(ChangesDiscarded)[0].paths == ("a", "b")


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=5), st.data()
)
def test_calls_are_kept_in_call_order_and_each_path_once(
    tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[int, str, bool]], data: st.DataObject
) -> None:
    bench = Bench(tmp_path_factory.mktemp("order"))
    limit = data.draw(st.sampled_from([1, 2, None]))
    arguments = [{"seconds": seconds, "write": {name: f"by {place}"}} for place, (seconds, name, _) in enumerate(plan)]
    answers = {f"c{place}": YES if yes else NO for place, (_, _, yes) in enumerate(plan)}
    waits = data.draw(st.lists(st.integers(0, 3), min_size=len(plan), max_size=len(plan)))

    async def user(request: ApprovalRequest) -> ApprovalDecision:
        await asyncio.sleep(waits[int(request.call_id[1:])])
        return answers[request.call_id]

    strategy = data.draw(st.sampled_from([Auto(), Sequential(), Parallel(), Batched(2)]))
    options = ExecutionOptions(max_concurrency=limit, strategy=strategy)
    ran = run_virtual(bench.run(*arguments, answers=user, options=options))

    expected = {"a": "old a", "b": "old b"}
    written: set[str] = set()
    for place, (_, name, yes) in enumerate(plan):
        if yes and name not in written:
            expected[name] = f"by {place}"
            written.add(name)
    assert [event.call_id for event in ran.of(ApprovalRequested)] == [f"c{place}" for place in range(len(plan))]
    if limit is None and isinstance(strategy, Auto | Parallel):
        assert bench.files == expected
    assert len(bench.tool.ran) == len(plan)
    assert bench.layers.left == []


async def test_other_calls_wait_for_what_is_kept_and_commands_do_not_wait_for_one_another(bench: Bench) -> None:
    running: set[str] = set()
    together: list[int] = []

    class Watched(TrialTool):
        async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
            running.add(context.call_id)
            together.append(len(running))
            try:
                return await super().execute(arguments, context)
            finally:
                running.discard(context.call_id)

    async def read(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult.of_text((bench.workspace / "a").read_text())

    bench.tool = Watched(bench.layers)
    reader = ScriptedTool("read", read, read_only=True, paths=lambda _: Accesses.of(reads=bench.workspace / "a"))
    asked = [
        call("read", "r0"),
        call("command", "c0", write={"a": "1"}, seconds=0.02),
        call("command", "c1", write={"b": "2"}, seconds=0.02),
        call("read", "r1"),
    ]
    ran = await bench.run(calls=asked, tools=[reader], answers=answering(YES, YES))

    assert [ran.texts[0], ran.texts[3]] == ["old a", "1"]
    assert max(together) == 2


async def test_a_command_outside_of_the_trial_conflicts_with_everything(bench: Bench) -> None:
    bench.policy.place = "outside"
    ran = await bench.run({"seconds": 0.01}, {"seconds": 0.01}, answers=answering(YES))
    order = [line for line in ran.types if line.startswith(("tool.started", "tool.ended"))]
    assert order == ["tool.started c0", "tool.ended c0", "tool.started c1", "tool.ended c1"]
