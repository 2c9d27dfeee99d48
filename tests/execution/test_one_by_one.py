"""`Auto` with conflicts must equal running the calls one by one (C2): over a real directory, with links and all."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.execution.kit import ScriptedTool, call, run
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import Auto, ExecutionOptions, Sequential
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult

SECONDS = {"read": 2, "search": 3, "write": 5, "shell": 1}


class World:
    """A small directory and the tools that work on it; each takes some time before it acts, and some after."""

    def __init__(self, around: Path) -> None:
        self.around = around
        """What links may lead to is compared, too."""
        self.root = root = around / "w"
        (root / "d").mkdir(parents=True)
        (root / "a").write_text("a0")
        (root / "d" / "b").write_text("b0")
        (root / "link").symlink_to("d")
        self.running = 0
        self.most = 0

    def tools(self) -> list[ScriptedTool]:
        return [
            ScriptedTool("read", self._timed(self._read), read_only=True, paths=self._paths("reads")),
            ScriptedTool("search", self._timed(self._search), read_only=True, paths=self._paths("searches")),
            ScriptedTool("write", self._timed(self._write), paths=self._paths("writes")),
            ScriptedTool("shell", self._timed(self._relink)),
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
        """Tools work on the path they declare: the resolved one, whatever its spelling leads through."""
        return (self.root / arguments["path"]).resolve()

    def _paths(self, kind: str) -> Callable[[JsonObject], Accesses]:
        return lambda arguments: Accesses(**{kind: frozenset({self._path(arguments)})})

    def _timed(self, act: Callable[[JsonObject], str]) -> Any:
        async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(SECONDS[context.tool_name] / 2)
            text = act(arguments)
            await asyncio.sleep(SECONDS[context.tool_name] / 2)
            self.running -= 1
            return ToolResult.of_text(text)

        return behaviour

    def _read(self, arguments: JsonObject) -> str:
        try:
            return self._path(arguments).read_text()
        except OSError as error:
            return type(error).__name__

    def _search(self, arguments: JsonObject) -> str:
        root = self._path(arguments)
        return str(
            sorted((str(path.relative_to(root)), path.read_text()) for path in root.rglob("*") if path.is_file())
        )

    def _write(self, arguments: JsonObject) -> str:
        try:
            self._path(arguments).parent.mkdir(parents=True, exist_ok=True)
            self._path(arguments).write_text(arguments["text"])
        except OSError as error:
            return type(error).__name__
        return "written"

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
asked_calls = st.lists(
    st.one_of(
        st.builds(lambda path: ("read", {"path": path}), spellings),
        st.builds(lambda path: ("search", {"path": path}), folders),
        st.builds(lambda path, text: ("write", {"path": path, "text": text}), spellings, st.sampled_from("xyz")),
        st.builds(lambda target: ("shell", {"target": target}), st.sampled_from(["d", "e", "."])),
    ),
    min_size=1,
    max_size=8,
)


def outcome(asked: list[tuple[str, JsonObject]], options: ExecutionOptions) -> tuple[list[str], dict[str, str], float]:
    """Results, the tree they left, and the virtual seconds it took."""
    with TemporaryDirectory() as directory:
        world = World(Path(directory))
        tools = world.tools()
        named = [ToolCall(id=f"c{n}", name=name, arguments=arguments) for n, (name, arguments) in enumerate(asked)]

        async def work() -> tuple[list[str], float]:
            began = asyncio.get_running_loop().time()
            ran = await run(tools, named, options)
            return ran.texts, asyncio.get_running_loop().time() - began

        texts, took = run_virtual(work())
        return texts, world.tree(), took


@settings(max_examples=150)
@given(asked_calls)
def test_auto_equals_running_the_calls_one_by_one(asked: list[tuple[str, JsonObject]]) -> None:
    one_by_one = outcome(asked, ExecutionOptions(strategy=Sequential()))
    together = outcome(asked, ExecutionOptions(strategy=Auto()))

    assert together[:2] == one_by_one[:2]
    assert together[2] <= one_by_one[2] + 1e-6


@settings(max_examples=60)
@given(asked_calls, st.integers(1, 3))
def test_permits_change_nothing_but_the_time(asked: list[tuple[str, JsonObject]], permits: int) -> None:
    assert outcome(asked, ExecutionOptions(max_concurrency=permits))[:2] == outcome(asked, ExecutionOptions())[:2]


def longest_chain(asked: list[ToolCall], paths: Callable[[ToolCall], tuple[str, str]]) -> float:
    """Length of the longest chain of calls of which each conflicts with one before it."""
    ends: list[float] = []
    for later in asked:
        kind, path = paths(later)
        before = [
            ends[number]
            for number, earlier in enumerate(asked[: len(ends)])
            if paths(earlier)[1] == path and "write" in (kind, paths(earlier)[0])
        ]
        ends.append(max(before, default=0.0) + SECONDS[kind])
    return max(ends)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(["read", "write"]), st.sampled_from("abcd")), min_size=1, max_size=12))
def test_the_time_is_that_of_the_longest_chain_of_conflicts(asked: list[tuple[str, str]]) -> None:
    named = [call(kind, f"c{number}", path=path, text="x") for number, (kind, path) in enumerate(asked)]

    *_, took = outcome(
        [(one.name, one.arguments) for one in named], ExecutionOptions(strategy=Auto(), max_concurrency=None)
    )

    assert abs(took - longest_chain(named, lambda one: (one.name, one.arguments["path"]))) < 1e-6
