"""Whatever agent and user do to the same files in any order, a rewind loses no change of the user."""

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rewind.sessions import Kept, State, git_work_tree, kept_session
from tui_agent.providers.scripted_provider import Call, call

NAMES = ("a", "b", "c", "d/e")

names = st.sampled_from(NAMES)
agent_actions = st.one_of(
    st.tuples(st.just("write"), names),
    st.tuples(st.just("append"), names),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("move"), names),
    st.tuples(st.just("chmod"), names),
    st.tuples(st.just("link"), names),
)
person_actions = st.one_of(st.tuples(st.just("mine"), names), st.tuples(st.just("gone"), names))
turns = st.lists(
    st.tuples(st.lists(agent_actions, min_size=1, max_size=3), st.lists(person_actions, max_size=2)),
    min_size=1,
    max_size=4,
)


@dataclass
class Past:
    """Records of a naive observer."""

    states: list[State] = field(default_factory=list[State])
    """Files before each turn."""
    mine: list[State] = field(default_factory=list[State])
    """Contents of the files the user changed after each turn; no entry for a deleted file."""
    touched: list[set[str]] = field(default_factory=list[set[str]])
    """The names of those files."""
    count: int = 0

    def unique(self) -> str:
        self.count += 1
        return f"line {self.count}\n"


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(turns, st.integers(0, 3), st.booleans())
def test_unchanged_files_are_restored_and_changes_of_others_stay(
    turns: list[tuple[list[tuple[str, str]], list[tuple[str, str]]]], back: int, in_git: bool
) -> None:
    asyncio.run(play(turns, min(back, len(turns) - 1), in_git=in_git))


async def play(turns: list[tuple[list[tuple[str, str]], list[tuple[str, str]]]], back: int, *, in_git: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="rewind-"))
    try:
        root = folder / "root"
        (root / "d").mkdir(parents=True)
        for name in NAMES[:2]:
            (root / name).write_text("begun\n", "utf-8")
        if in_git:
            git_work_tree(root)
        async with kept_session(root, folder / "sessions") as kept:
            past = Past()
            for number, (actions, person) in enumerate(turns):
                past.states.append(kept.state)
                await kept.ask(f"turn {number}", *(call_of(action, past) for action in actions))
                left = kept.state
                for action in person:
                    person_does(root, action, past)
                now = kept.state
                past.touched.append({name for name in NAMES if now.get(name) != left.get(name)})
                past.mine.append(now)
            await look_back(kept, past, back)
    finally:
        shutil.rmtree(folder)


async def look_back(kept: Kept, past: Past, back: int) -> None:
    state, messages = kept.state, tuple(kept.loop.history.messages())
    plan = await kept.rewinder.plan(await kept.point(f"turn {back}"))
    await kept.rewinder.carry_out(plan, "both")
    await kept.check()

    theirs = set().union(*past.touched[back:])
    now, then = kept.state, past.states[back]
    for name in now.keys() | then.keys() | state.keys():
        if name not in theirs:
            assert now.get(name) == then.get(name), name
            continue
        # No change of the user is lost: the file is as it is now, or as the user left it before the agent.
        left = [mine.get(name) for mine, touched in zip(past.mine, past.touched, strict=True) if name in touched]
        assert now.get(name) in (state.get(name), *left), name
        assert now.get(name) == state.get(name) or name not in past.touched[-1], name

    undo = next(point for point in await kept.rewinder.points() if not point.is_turn)
    await kept.rewinder.carry_out(await kept.rewinder.plan(undo), "both")
    await kept.check()
    assert kept.state == state
    assert tuple(kept.loop.history.messages()) == messages


def call_of(action: tuple[str, str], past: Past) -> Call:
    kind, name = action
    text = past.unique()
    if kind == "write":
        return call("bash", command=f"rm -f {name}; cat > {name} <<< '{text.strip()}'")
    commands = {
        "append": f"test -L {name} || echo '{text.strip()}' >> {name}",
        "remove": f"rm -f {name}",
        "move": f"mv {name} moved-{text.split()[1]}",
        "chmod": f"test -L {name} || chmod 7{past.count % 8}0 {name}",
        "link": f"ln -s nowhere-{past.count} {name}",
    }
    return call("bash", command=commands[kind])


def person_does(root: Path, action: tuple[str, str], past: Past) -> None:
    kind, name = action
    path = root / name
    if path.is_symlink():
        return
    if kind == "gone":
        path.unlink(missing_ok=True)
    else:
        path.write_text(f"mine {past.unique()}", "utf-8")
