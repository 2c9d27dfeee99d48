"""`Auto` with conflicts must equal running the calls one at a time: over a real directory with links."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.execution.bench import Bench
from tests.execution.kit import ScriptedTool, run
from tests.support.examples import examples
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import Auto, ExecutionOptions, Sequential
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult

SECONDS = {"read": 2, "search": 3, "write": 5, "shell": 1, "mix": 4, "status": 2}


class Mix(ScriptedTool):
    """Tool that reads, searches and writes any number of paths; it only reads if it writes none."""

    def is_read_only(self, arguments: JsonObject) -> bool:
        return not arguments["writes"]

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        return not arguments["writes"]


class World:
    """Small directory and the tools that work on it; each tool takes some time before and after it acts."""

    def __init__(self, around: Path) -> None:
        self.around = around
        """Targets of links, which are compared, too."""
        self.root = root = around / "w"
        (root / "d").mkdir(parents=True)
        (root / "a").write_text("a0")
        (root / "d" / "b").write_text("b0")
        (root / "link").symlink_to("d")

    def tools(self) -> list[ScriptedTool]:
        return [
            ScriptedTool("read", self._timed(self._read), read_only=True, paths=self._paths("reads")),
            ScriptedTool("search", self._timed(self._search), read_only=True, paths=self._paths("searches")),
            ScriptedTool("write", self._timed(self._write), paths=self._paths("writes")),
            ScriptedTool("shell", self._timed(self._relink)),
            Mix("mix", self._timed(self._mix), paths=self._mixed_paths),
            ScriptedTool("status", self._timed(lambda arguments: str(self.tree())), read_only=True),
        ]

    def tree(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for place, folders, files in os.walk(self.around):
            for name in [*folders, *files]:
                path = Path(place) / name
                if path.is_symlink():
                    found[str(path.relative_to(self.around))] = f"-> {os.readlink(path)}"
                elif path.is_file():
                    found[str(path.relative_to(self.around))] = path.read_text()
        return found

    def _path(self, arguments: JsonObject) -> Path:
        """Open the declared, resolved path, whatever its spelling leads through."""
        return (self.root / arguments["path"]).resolve()

    def _paths(self, kind: str) -> Callable[[JsonObject], Accesses]:
        return lambda arguments: Accesses(**{kind: frozenset({self._path(arguments)})})

    def _timed(self, act: Callable[[JsonObject], str]) -> Any:
        async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
            await asyncio.sleep(SECONDS[context.tool_name] / 2)
            text = act(arguments)
            await asyncio.sleep(SECONDS[context.tool_name] / 2)
            return ToolResult.of_text(text)

        return behaviour

    def _read(self, arguments: JsonObject) -> str:
        try:
            return self._path(arguments).read_text()
        except OSError as error:
            return type(error).__name__

    def _search(self, arguments: JsonObject) -> str:
        root = self._path(arguments)
        found = [path for path in root.rglob("*") if path.is_file()] if root.is_dir() else []
        return str(sorted((str(path.relative_to(root)), path.read_text()) for path in found))

    def _write(self, arguments: JsonObject) -> str:
        try:
            self._path(arguments).parent.mkdir(parents=True, exist_ok=True)
            self._path(arguments).write_text(arguments["text"])
        except OSError as error:
            return type(error).__name__
        return "written"

    def _mixed_paths(self, arguments: JsonObject) -> Accesses:
        sets = {kind: [self._path({"path": path}) for path in arguments[kind]] for kind in ("reads", "writes")}
        searches = [self._path({"path": path}) for path in arguments["searches"]]
        return Accesses(frozenset(sets["reads"]), frozenset(sets["writes"]), frozenset(searches))

    def _mix(self, arguments: JsonObject) -> str:
        seen = [self._read({"path": path}) for path in arguments["reads"]]
        seen += [self._search({"path": path}) for path in arguments["searches"]]
        made = [self._write({"path": path, "text": f"{len(seen)}{seen}"[:80]}) for path in arguments["writes"]]
        return str([*seen, *made])

    def _relink(self, arguments: JsonObject) -> str:
        link = self.root / "link"
        if link.is_symlink():
            link.unlink()
            link.symlink_to(arguments["target"])
        return "linked"


spellings = st.sampled_from(
    ["a", "d/b", "link/b", "./a", "d/../a", "link/../d/b", "d/e/f", "link/e/f", "new", "d/e", "e/a"]
)
folders = st.sampled_from([".", "d", "link", "d/e", "e"])
mixed = st.fixed_dictionaries(
    {
        "reads": st.lists(spellings, max_size=2),
        "writes": st.lists(spellings, max_size=2),
        "searches": st.lists(folders, max_size=1),
    }
)
asked_calls = st.lists(
    st.one_of(
        st.builds(lambda sets: ("mix", sets), mixed),
        st.just(("status", {})),
        st.builds(lambda path: ("read", {"path": path}), spellings),
        st.builds(lambda path: ("search", {"path": path}), folders),
        st.builds(lambda path, text: ("write", {"path": path, "text": text}), spellings, st.sampled_from("xyz")),
        st.builds(lambda target: ("shell", {"target": target}), st.sampled_from(["d", "e", "."])),
    ),
    min_size=1,
    max_size=8,
)


def named(asked: list[tuple[str, JsonObject]]) -> list[ToolCall]:
    return [ToolCall(id=f"c{n}", name=name, arguments=arguments) for n, (name, arguments) in enumerate(asked)]


def outcome(
    asked: list[tuple[str, JsonObject]], options: ExecutionOptions, *, pause: float | None = None
) -> tuple[list[str], dict[str, str], float]:
    """Return results, the tree they left, and the virtual seconds; with a `pause`, the calls arrive one at a time."""
    with TemporaryDirectory() as directory:
        world = World(Path(directory))

        async def work() -> tuple[list[str], float]:
            began = asyncio.get_running_loop().time()
            if pause is None:
                texts = (await run(world.tools(), named(asked), options)).texts
            else:
                texts = await streamed(world.tools(), named(asked), options, pause)
            return texts, asyncio.get_running_loop().time() - began

        texts, took = run_virtual(work())
        return texts, world.tree(), took


async def streamed(
    tools: list[ScriptedTool], asked: list[ToolCall], options: ExecutionOptions, pause: float
) -> list[str]:
    """Return results of calls that arrive with pauses, as an answer streams; validated."""
    bench = Bench(tools, options)
    async with bench.scheduler as scheduler:
        for one in asked:
            scheduler.submit(one)
            await asyncio.sleep(pause)
        result = await scheduler.finish()
    return [message.text for message in result.tool_results]


ONE_BY_ONE = ExecutionOptions(strategy=Sequential())


@pytest.mark.slow
@settings(max_examples=examples(300, 60))
@given(asked_calls, st.none() | st.sampled_from([0.0, 0.7, 2.0]), st.none() | st.integers(1, 3))
def test_auto_equals_running_the_calls_one_at_a_time(
    asked: list[tuple[str, JsonObject]], pause: float | None, permits: int | None
) -> None:
    """Also if they start while the answer streams; the number of slots changes only the time."""
    one_by_one = outcome(asked, ONE_BY_ONE)
    together = outcome(asked, ExecutionOptions(strategy=Auto(), max_concurrency=permits), pause=pause)

    assert together[:2] == one_by_one[:2]
    if pause is None:
        assert together[2] <= one_by_one[2] + 1e-6
