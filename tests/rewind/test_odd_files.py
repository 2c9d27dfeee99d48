"""Rewind with links, directories and special files: nothing is lost, and nothing outside is touched."""

import os
from pathlib import Path

import pytest

from tests.rewind.sessions import Kept, git_work_tree, kept_session
from tests.rewind.test_rewinder import go_back
from tui_agent.protocol.events import SessionRepaired, SessionRewinding
from tui_agent.providers.scripted_provider import call
from tui_agent.rewind import Rewinder
from tui_agent.rewind.restore import carry_out
from tui_agent.tools import tree_watch


async def test_a_file_that_became_a_directory_is_a_file_again_and_back(shop: Kept) -> None:
    before = shop.state
    await shop.ask("first", call("bash", command="rm price.py; mkdir -p price.py/deep; echo in > price.py/deep/in"))
    after = shop.state

    assert await go_back(shop, "first") == ()
    assert shop.state == before

    undo = next(point for point in await shop.rewinder.points() if not point.is_turn)
    outcome = await shop.rewinder.carry_out(await shop.rewinder.plan(undo), "both")
    assert (outcome.left, outcome.failed) == ((), ())
    assert shop.state == after


async def test_a_directory_that_became_a_file_is_a_directory_again_and_back(shop: Kept) -> None:
    (shop.root / "d").mkdir()
    (shop.root / "d/x").write_text("x\n")
    (shop.root / "d/y").write_text("y\n")
    before = shop.state
    await shop.ask("first", call("bash", command="rm -r d; echo file > d"))
    after = shop.state

    assert await go_back(shop, "first") == ()
    assert shop.state == before

    undo = next(point for point in await shop.rewinder.points() if not point.is_turn)
    await shop.rewinder.carry_out(await shop.rewinder.plan(undo), "both")
    assert shop.state == after


async def test_a_directory_in_the_way_that_contains_other_files_stays(shop: Kept) -> None:
    await shop.ask("first", call("bash", command="rm price.py; mkdir price.py; echo in > price.py/in"))
    (shop.root / "price.py/mine").write_text("mine\n")

    (left,) = await go_back(shop, "first")

    assert left.startswith("price.py: ")
    assert (shop.root / "price.py/mine").read_text() == "mine\n"


@pytest.mark.parametrize("in_git", [True, False], ids=["git", "plain"])
async def test_a_directory_moved_out_and_replaced_by_a_link_is_restored(
    tmp_path: Path, in_git: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_watch, "TICK_NS", 0)
    root = tmp_path / "shop"
    (root / "d").mkdir(parents=True)
    (root / "d/x").write_text("x\n")
    if in_git:
        git_work_tree(root)
    async with kept_session(root, tmp_path / "sessions") as shop:
        before = shop.state
        await shop.ask("first", call("bash", command=f"mv d {tmp_path}/outside; ln -s {tmp_path}/outside d"))

        assert await go_back(shop, "first") == ()

        assert shop.state == before
        assert (tmp_path / "outside/x").read_text() == "x\n"


async def test_nothing_is_restored_through_a_link_that_leads_out(shop: Kept, tmp_path: Path) -> None:
    (shop.root / "d").mkdir()
    (shop.root / "d/x").write_text("x\n")
    await shop.ask("first", call("bash", command="rm d/x"))
    (tmp_path / "outside").mkdir()
    (shop.root / "d").rmdir()
    (shop.root / "d").symlink_to(tmp_path / "outside")

    (left,) = await go_back(shop, "first")

    assert left.startswith("d/x: ")
    assert list((tmp_path / "outside").iterdir()) == []


async def test_a_file_that_became_a_pipe_or_a_link_is_a_file_again(shop: Kept) -> None:
    before = shop.state
    await shop.ask("first", call("bash", command="rm price.py cart.py; ln -s /etc/hostname cart.py"))
    assert await go_back(shop, "first") == ()
    assert shop.state == before

    await shop.ask("second", call("bash", command="rm price.py; mkfifo price.py"))
    (left,) = await go_back(shop, "second")
    assert "named pipe" in left


async def test_a_name_with_invalid_bytes_is_left_alone_with_a_reason(shop: Kept) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (shop.root / name).write_text("one\n")
    await shop.ask("first", call("bash", command="for f in caf*; do echo more >> $f; done; echo n > 'new\nline'"))

    plan = await shop.rewinder.plan(await shop.point("first"))

    assert {step.shown: step.kind for step in plan.steps} == {"caf\\xe9.txt": "stuck", "new\nline": "delete"}
    assert (shop.root / name).read_text() == "one\nmore\n"


async def test_a_file_that_cannot_be_saved_is_not_deleted_over_a_conflict(
    shop: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.ask("first", call("bash", command="echo new > new.py"))
    (shop.root / "new.py").write_text("mine\n")
    monkeypatch.setattr(type(shop.rewinder.contents), "_write", lambda *_, **__: False)

    (left,) = await go_back(shop, "first", "both", "new.py")

    assert left.startswith("new.py: ")
    assert (shop.root / "new.py").read_text() == "mine\n"


@pytest.mark.slow
async def test_a_rewind_over_a_rewind_after_resuming_the_session(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git_work_tree(root, price_py="one\n")
    async with kept_session(root, tmp_path / "sessions") as shop:
        await shop.ask("first", call("bash", command="echo two >> price.py"))
        await shop.ask("second", call("bash", command="echo three >> price.py"))
        state = shop.state
        await go_back(shop, "second")
        await shop.ask("other", call("bash", command="echo else >> price.py"))
    async with kept_session(root, tmp_path / "sessions", resume=shop.session.id) as again:
        undo = next(point for point in await again.rewinder.points() if not point.is_turn)
        await again.rewinder.carry_out(await again.rewinder.plan(undo), "both")
        await again.check()
        assert again.state == state
    async with kept_session(root, tmp_path / "sessions", resume=shop.session.id) as last:
        assert await go_back(last, "first") == ()
        assert last.state["price.py"][0] == "one\n"


async def test_an_interrupted_rewind_is_reported_once_and_can_be_finished(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git_work_tree(root, a_py="a\n", b_py="b\n")
    async with kept_session(root, tmp_path / "sessions") as shop:
        before = shop.state
        await shop.ask("first", call("bash", command="echo more | tee -a a.py >> b.py"))
        plan = await shop.rewinder.plan(await shop.point("first"))
        keep = shop.rewinder.keep

        async def keep_and_die() -> None:
            await keep()
            if any(isinstance(one.event, SessionRewinding) for one in shop.store.load(shop.session.id).envelopes):
                carry_out(plan.steps[0], shop.rewinder.contents)
                raise KeyboardInterrupt

        dying = Rewinder(shop.loop, shop.bus, shop.rewinder.journal, keep_and_die, shop.rewinder.contents, root)
        with pytest.raises(KeyboardInterrupt):
            await dying.carry_out(plan, "both")
        assert before != shop.state

    for warnings in (["The rewind to “first” was interrupted: some of a.py, b.py"], []):
        async with kept_session(root, tmp_path / "sessions", resume=shop.session.id) as again:
            await again.rewinder.keep()
            events = [one.event for one in again.store.load(shop.session.id).envelopes]
            assert [
                event.what.partition(" may be")[0]
                for event in events[len(again.session.envelopes) :]
                if isinstance(event, SessionRepaired)
            ] == warnings
            if not warnings:
                assert again.loop.history.length == 5  # The model was informed, too.
                assert await go_back(again, "first") == ()
                assert again.state == before
