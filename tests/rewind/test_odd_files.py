"""Rewind with links, directories and special files: nothing is lost, and nothing outside is touched."""

import os
from pathlib import Path

import pytest

from tests.rewind.sessions import Kept, git_work_tree, kept_session
from tests.rewind.test_rewinder import go_back
from tui_agent.protocol.events import SessionRepaired, SessionRewinding
from tui_agent.providers.scripted_provider import call
from tui_agent.rewind import Rewinder
from tui_agent.rewind.planner import carry_out
from tui_agent.tools import tree_watch
from tui_agent.tools.atomic_write import temporary_name
from tui_agent.tools.file_states import CONTENT_LIMIT, MOST_FILES


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


def events_of_rewind(shop: Kept) -> list[SessionRewinding]:
    envelopes = shop.store.load(shop.session.id).envelopes
    return [one.event for one in envelopes if isinstance(one.event, SessionRewinding)]


NAMED_IGNORED = {
    # command: ignored files that are as before after a rewind
    "rm a.py; rm .env": ".env",
    "rm -f -- '.env' \"sub/.secret\"": ".env sub/.secret",
    "cd sub && rm .secret": "sub/.secret",
    "rm *.local": "one.local two.local",
    "sed -i s/x/y/ .env": ".env",
    "echo more >>.env; X=1": ".env",
    "rm -rf dist": "dist/deep/b dist/a",
    "mv .env dist/c": ".env",
    "cp a.py new.local; touch new.local": "",
}


async def test_ignored_files_that_a_command_names_are_restored(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    for name in (".env", "sub/.secret", "one.local", "two.local", "dist/a", "dist/deep/b"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    git_work_tree(root, a_py="a\n", _gitignore=".env\n.secret\n*.local\ndist/\n")
    async with kept_session(root, tmp_path / "sessions") as shop:
        before, wrong = shop.state, list[str]()
        for command, names in NAMED_IGNORED.items():
            await shop.ask(command, call("bash", command=command))
            changed = {name for name in before if shop.state.get(name) != before[name]}
            if not {*names.split()} <= changed:
                wrong.append(f"{command}: changed only {changed}")
            await go_back(shop, command)
            if {name: shop.state.get(name) for name in before} != before:
                wrong.append(f"{command}: {shop.state}")
    assert wrong == []


async def test_a_named_directory_with_too_many_files_is_named_as_not_covered(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git_work_tree(root, a_py="a\n", _gitignore="many/\n*.big\n")
    (root / "many").mkdir()
    with (root / "one.big").open("wb") as file:
        file.truncate(CONTENT_LIMIT + 1)
    for number in range(MOST_FILES + 1):
        (root / "many" / str(number)).touch()
    async with kept_session(root, tmp_path / "sessions") as shop:
        await shop.ask("look", call("bash", command="ls many one.big > b.txt"))
        assert (await shop.rewinder.plan(await shop.point("look"))).notes == ()
        await shop.ask("remove", call("bash", command="rm -rf many; rm a.py one.big"))
        plan = await shop.rewinder.plan(await shop.point("remove"))
        outcome = await shop.rewinder.carry_out(plan, "both")

    assert [note.partition(":")[0] for note in plan.notes] == ["many/"]
    assert (outcome.done, outcome.left) == (("a.py",), ("one.big", "many/"))
    assert "These files were not restored: one.big, many/" in shop.loop.history.messages()[-1].text


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
                (root / temporary_name("b.py", events_of_rewind(shop)[-1].mark)).write_text("half")
                raise KeyboardInterrupt

        dying = Rewinder(shop.loop, shop.bus, shop.rewinder.journal, keep_and_die, shop.rewinder.contents, root)
        with pytest.raises(KeyboardInterrupt):
            await dying.carry_out(plan, "both")
        assert before != shop.state

    assert len(list(root.glob(".*.tmp"))) == 1
    for warnings in (["The rewind to “first” was interrupted: some of a.py, b.py"], []):
        async with kept_session(root, tmp_path / "sessions", resume=shop.session.id) as again:
            await again.rewinder.keep()
            assert list(root.glob(".*.tmp")) == []
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
