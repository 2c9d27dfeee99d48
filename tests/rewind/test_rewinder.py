"""Rewind with a real agent, real files, a real shell and a real repository."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.rewind.sessions import Kept, git_work_tree, kept_session
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.errors import AlreadyRunningError
from tui_agent.protocol.events import FileChanged, SessionRewinding, SessionRewound
from tui_agent.protocol.facts.change_facts import Scope
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.providers.scripted_provider import Call, call
from tui_agent.rewind.planner import CHANGED_BETWEEN, CHANGED_LATER, CHANGED_SINCE, NOT_KEPT


async def go_back(shop: Kept, words: str, scope: Scope = "both", *overwritten: str) -> tuple[str, ...]:
    """Rewind to before a user message; return the files that were not restored."""
    plan = await shop.rewinder.plan(await shop.point(words))
    outcome = await shop.rewinder.carry_out(plan, scope, {shop.root / name for name in overwritten})
    await shop.check()
    return (*outcome.left, *outcome.failed)


async def test_files_and_conversation_are_restored(shop: Kept) -> None:
    await shop.ask("first", call("bash", command="echo more >> price.py"))
    state, messages = shop.state, tuple(shop.loop.history.messages())
    await shop.ask(
        "second",
        call("write", path="new.py", content="new\n"),
        call("read", path="price.py"),
        call("edit", path="price.py", old_string="one", new_string="eins"),
        call("bash", command="rm cart.py; mkdir -p a/b; echo deep > a/b/c; ln -s price.py link; chmod +x price.py"),
    )

    assert await go_back(shop, "second") == ()

    assert shop.state == state
    assert tuple(shop.loop.history.messages()) == messages


@pytest.mark.parametrize("is_kept", [True, False])
async def test_changes_of_a_trial_are_undone_exactly_if_they_were_kept(tmp_path: Path, is_kept: bool) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git_work_tree(root, price_py="one\n", cart_py="two\n")
    answer = ApprovalDecision(decision="approve", input={"paths": ["new.py", "price.py"] if is_kept else []})
    gate = ApprovalGate(approver=lambda request: answer)
    async with kept_session(root, tmp_path / "sessions", gate=gate) as kept:
        state = kept.state
        await kept.ask("tidy", call("command", write={"new.py": "new\n", "price.py": "1\n"}, delete=["cart.py"]))
        assert (kept.state != state) is is_kept
        assert (root / "cart.py").exists()
        (root / "cart.py").write_text("the user's\n")
        plan = await kept.rewinder.plan(await kept.point("tidy"))
        assert {step.path.name for step in plan.steps} == ({"new.py", "price.py"} if is_kept else set())
        assert await go_back(kept, "tidy") == ()
        (root / "cart.py").write_text("two\n")
        assert kept.state == state


async def test_a_rewind_is_published_and_returns_the_message_as_draft(shop: Kept) -> None:
    await shop.ask("first", call("write", path="new.py", content="new\n"))

    plan = await shop.rewinder.plan(await shop.point("first"))
    with shop.bus.subscribe() as subscription:
        outcome = await shop.rewinder.carry_out(plan, "both")
        published = [envelope.event for envelope in subscription.drain()]

    assert outcome.draft == "first"
    assert plan.messages == 4
    changed = next(event for event in published if isinstance(event, FileChanged))
    assert (changed.change, changed.call_id, changed.removed) == ("deleted", None, 1)
    rewound = next(event for event in published if isinstance(event, SessionRewound))
    assert (rewound.conversation, rewound.removed, rewound.files, rewound.left) == (True, 4, ("new.py",), ())


@pytest.mark.parametrize(("scope", "content"), [("files", "one\n"), ("conversation", "one\nmore\n")])
async def test_a_rewind_of_files_or_of_the_conversation_alone_informs_the_model(
    shop: Kept, scope: Scope, content: str
) -> None:
    await shop.ask("first", call("bash", command="echo more >> price.py"))
    before = shop.loop.history.messages()

    assert await go_back(shop, "first", scope) == ()

    assert shop.state["price.py"][0] == content
    *kept, notice = shop.loop.history.messages()
    assert kept == (list(before) if scope == "files" else [])
    assert isinstance(notice, UserMessage)
    assert (notice.kind, "price.py" in notice.text) == ("notice", True)


async def test_a_file_someone_else_changed_since_is_left_alone_and_shown(shop: Kept) -> None:
    await shop.ask("first", call("bash", command="echo more | tee -a price.py >> cart.py"))
    (shop.root / "price.py").write_text("one\nmore\nmine\n", "utf-8")

    plan = await shop.rewinder.plan(await shop.point("first"))
    conflict = next(step for step in plan.steps if step.is_conflict)
    assert (conflict.shown, conflict.problem) == ("price.py", CHANGED_SINCE)
    assert "+mine" in conflict.diff
    assert await go_back(shop, "first") == ("price.py",)

    assert (shop.state["price.py"][0], shop.state["cart.py"][0]) == ("one\nmore\nmine\n", "two\n")
    (notice,) = shop.loop.history.messages()
    assert isinstance(notice, UserMessage)
    assert "price.py" in notice.text
    assert "cart.py" not in notice.text


async def test_a_conflict_is_overwritten_if_the_user_includes_it_and_can_be_undone(shop: Kept) -> None:
    await shop.ask("first", call("bash", command="echo more >> price.py"))
    (shop.root / "price.py").write_text("mine\n", "utf-8")

    assert await go_back(shop, "first", "both", "price.py") == ()
    assert shop.state["price.py"][0] == "one\n"

    undo = next(point for point in await shop.rewinder.points() if not point.is_turn)
    await shop.rewinder.carry_out(await shop.rewinder.plan(undo), "files")
    assert shop.state["price.py"][0] == "mine\n"


async def test_a_file_someone_else_changed_in_between_is_left_alone(shop: Kept) -> None:
    await shop.ask("first", call("bash", command="echo more >> price.py"))
    (shop.root / "price.py").write_text("one\nmore\nmine\n", "utf-8")
    await shop.ask("second", call("bash", command="echo again >> price.py"))

    plan = await shop.rewinder.plan(await shop.point("first"))
    (step,) = plan.steps
    assert (step.problem, step.is_conflict) == (CHANGED_BETWEEN, True)
    assert "+mine" in step.diff

    assert await go_back(shop, "second") == ()
    assert shop.state["price.py"][0] == "one\nmore\nmine\n"


async def test_a_file_that_changes_after_the_plan_is_left_alone(shop: Kept) -> None:
    await shop.ask("first", call("bash", command="echo more >> price.py"))
    plan = await shop.rewinder.plan(await shop.point("first"))
    (shop.root / "price.py").write_text("mine\n", "utf-8")

    outcome = await shop.rewinder.carry_out(plan, "both")

    assert shop.state["price.py"][0] == "mine\n"
    assert outcome.done == ()
    assert "price.py" in outcome.failed[0]


async def test_the_changes_of_one_call_are_undone(shop: Kept) -> None:
    await shop.ask("first", Call("bash", {"command": "echo more | tee -a price.py >> cart.py"}, "c1"))
    await shop.ask("second", Call("bash", {"command": "echo again >> cart.py"}, "c2"))
    messages = shop.loop.history.length

    plan = await shop.rewinder.plan_for_call("c1", "bash")
    problems = {step.shown: step.problem for step in plan.steps}
    outcome = await shop.rewinder.carry_out(plan, "files")
    await shop.check()

    assert problems == {"price.py": "", "cart.py": CHANGED_LATER}
    assert (outcome.done, outcome.left) == (("price.py",), ("cart.py",))
    assert (shop.state["price.py"][0], shop.state["cart.py"][0]) == ("one\n", "two\nmore\nagain\n")
    assert shop.loop.history.length == messages + 1


async def test_protected_files_that_a_command_changed_are_undone(shop: Kept) -> None:
    config = (shop.root / ".git" / "config").read_bytes()
    command = "echo evil >> .git/config; echo evil > .git/hooks/pre-commit; mkdir -p sub/.git; echo x > sub/.git/config"
    await shop.ask("first", Call("bash", {"command": command}, "c1"))

    plan = await shop.rewinder.plan_for_call("c1", "bash")
    outcome = await shop.rewinder.carry_out(plan, "files")

    assert sorted(outcome.done) == [".git/config", ".git/hooks/pre-commit", "sub/.git/config"]
    assert (shop.root / ".git" / "config").read_bytes() == config
    assert not (shop.root / ".git" / "hooks" / "pre-commit").exists()
    assert not (shop.root / "sub" / ".git" / "config").exists()


async def test_moments_count_the_changes_since(shop: Kept) -> None:
    await shop.ask("first", call("bash", command="echo more >> price.py"))
    await shop.ask("second", call("bash", command="echo x >> price.py; echo y >> cart.py"))

    points = await shop.rewinder.points()

    assert [(point.text, point.files, point.added, point.removed) for point in points] == [
        ("second", 2, 2, 0),
        ("first", 2, 3, 0),
    ]


async def test_a_file_that_was_not_saved_stays_with_a_reason(shop: Kept) -> None:
    big = shop.root / "big.bin"
    big.write_bytes(os.urandom(64) * 65_536)
    await shop.ask("first", call("bash", command="echo x >> big.bin"))
    size = big.stat().st_size

    plan = await shop.rewinder.plan(await shop.point("first"))
    assert [(step.kind, step.problem) for step in plan.steps] == [("stuck", NOT_KEPT)]
    assert await go_back(shop, "first") == ("big.bin",)

    assert big.stat().st_size == size


async def test_a_rewind_is_refused_during_a_run(shop: Kept) -> None:
    await shop.ask("first", call("bash", command="echo more >> price.py"))
    plan = await shop.rewinder.plan(await shop.point("first"))

    class Busy:
        running = True

        def apply_rewind(self, *_: object) -> None:
            raise AssertionError

    busy = type(shop.rewinder)(
        Busy(), shop.bus, shop.rewinder.journal, shop.rewinder.keep, shop.rewinder.contents, shop.root
    )
    with pytest.raises(AlreadyRunningError):
        await busy.carry_out(plan, "both")

    assert shop.state["price.py"][0] == "one\nmore\n"


async def test_a_fork_rewinds_independently(shop: Kept, tmp_path: Path) -> None:
    await shop.ask("first", call("bash", command="echo more >> price.py"))
    await shop.rewinder.keep()
    copy = shop.store.fork(shop.session.id)
    shop.store.delete(copy.id)
    copy = shop.store.fork(shop.session.id)

    async with kept_session(shop.root, tmp_path / "sessions", resume=copy.id) as forked:
        assert await go_back(forked, "first") == ()

    assert shop.state["price.py"][0] == "one\n"


def cut_behind(shop: Kept, kind: str) -> str:
    """Cut a session's journal right after the last event of this type, as a kill would; return its id."""
    assert shop.session.path is not None
    lines = shop.session.path.read_bytes().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if f'"type":"{kind}"'.encode() in line)
    shop.store.files_path(shop.session.id).rename(shop.store.files_path("killed"))
    shop.session.path.with_stem("killed").write_bytes(b"".join(lines[: last + 1]))
    return "killed"


async def test_a_cancelled_rewind_reports_what_it_did(shop: Kept) -> None:
    await shop.ask("first", call("write", path="new.py", content="new\n"), call("write", path="b.py", content="b\n"))
    plan = await shop.rewinder.plan(await shop.point("first"))
    with shop.bus.subscribe() as subscription:
        going = asyncio.ensure_future(shop.rewinder.carry_out(plan, "both"))
        async for batch in subscription.batches():
            if any(isinstance(one.event, SessionRewinding) for one in batch):
                break
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        published = [one.event for one in subscription.drain() if isinstance(one.event, SessionRewound)]

    assert [(event.conversation, {*event.files, *event.left}) for event in published] == [(False, {"new.py", "b.py"})]
    await shop.check()


async def test_an_interrupted_call_is_named_because_its_changes_are_unknown(shop: Kept) -> None:
    await shop.ask("first", call("edit", path="price.py", old_string="one", new_string="eins"))
    killed = cut_behind(shop, "tool.started")

    async with kept_session(shop.root, shop.store.root, killed) as again:
        plan = await again.rewinder.plan(await again.point("first"))
        assert [note[:48] for note in plan.notes] == ["the program ended during edit price.py (+1 −1): "]
        await again.rewinder.carry_out(plan, "both")
        await again.check()
        assert "the changes of that call are unknown" in again.loop.history.messages()[-1].text
