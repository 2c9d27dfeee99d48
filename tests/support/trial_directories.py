"""Layers for tests of the engine: each is a copy of the workspace, made of real files, that survives the program."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.protocol.trial import KeepSelection, KeptChanges, ProposedChanges, ProposedFile
from tui_agent.tools.file_states import ContentStore, read_file_state

RESULT = "result.json"


class CopiedLayer:
    """A copy of the workspace, beside a second one that shows what it was made from."""

    def __init__(self, workspace: Path, storage: Path) -> None:
        self.workspace = workspace
        self.storage = storage
        self.upper, self.base = storage / "upper", storage / "base"

    def make(self) -> None:
        shutil.copytree(self.workspace, self.upper)
        shutil.copytree(self.workspace, self.base)

    def changes(self) -> list[str]:
        names = {
            str(path.relative_to(root))
            for root in (self.upper, self.base)
            for path in root.rglob("*")
            if path.is_file()
        }
        return sorted(
            name
            for name in names
            if not name.startswith(".git/") and _text(self.upper / name) != _text(self.base / name)
        )

    def conflict(self, path: str) -> str:
        return (
            "" if _text(self.workspace / path) == _text(self.base / path) else "it changed in the workspace meanwhile"
        )


class CopiedLayers:
    """The layers of a session, by call."""

    def __init__(self, workspace: Path, root: Path, contents: ContentStore | None = None) -> None:
        self.workspace = workspace
        self.root = root
        self.contents = contents
        """Store for the contents of kept files, for rewinds."""

    def open(self, call_id: str) -> CopiedLayer:
        layer = CopiedLayer(self.workspace, self.root / call_id)
        layer.make()
        return layer

    def waiting(self, call_id: str) -> tuple[CopiedLayer, str] | None:
        storage = self.root / call_id
        if not (storage / RESULT).exists():
            return None
        return CopiedLayer(self.workspace, storage), (storage / RESULT).read_text()

    @property
    def left(self) -> list[str]:
        """Ids of the calls whose layers are still there."""
        return sorted(path.name for path in self.root.iterdir()) if self.root.exists() else []


class CopiedChanges:
    """The changes of a copy: `PendingChanges` with real files."""

    def __init__(self, layer: CopiedLayer, context: ToolContext, contents: ContentStore | None = None) -> None:
        self.layer = layer
        self._context = context
        self._contents = contents

    @property
    def proposed(self) -> ProposedChanges:
        files = [self._file(path) for path in self.layer.changes()]
        return ProposedChanges(layer=self.layer.storage.name, files=tuple(files))

    def _file(self, path: str) -> ProposedFile:
        old, new = _text(self.layer.base / path), _text(self.layer.upper / path)
        kind = "deleted" if new is None else "added" if old is None else "changed"
        sort = "protected" if path.startswith(".") else "workspace"
        return ProposedFile(
            path=path,
            kind=kind,
            sort=sort,
            diff=f"-{old}\n+{new}\n",
            is_text=new is not None,
            conflict=self.layer.conflict(path),
        )

    async def refresh(self) -> None:
        """Do nothing: `proposed` compares anew."""

    async def record(self, result: str) -> None:
        (self.layer.storage / RESULT).write_text(result)

    async def keep(self, selection: KeepSelection, result: str = "") -> KeptChanges:
        # Everything at once, as the journal of a real keep has it.
        await asyncio.sleep(0)
        kept: list[str] = []
        problems: list[str] = []
        for path in self.layer.changes():
            if path in selection.paths and self.layer.conflict(path) and path not in selection.overwrite:
                problems.append(f"{path}: {self.layer.conflict(path)}")
            elif path in selection.paths:
                self._keep(path, selection.texts.get(path))
                kept.append(path)
        discarded = tuple(path for path in self.layer.changes() if path not in kept)
        shutil.rmtree(self.layer.storage)
        return KeptChanges(kept=tuple(kept), discarded=discarded, problems=tuple(problems))

    def _keep(self, path: str, text: str | None) -> None:
        source, target = self.layer.upper / path, self.layer.workspace / path
        new = _text(source) if text is None else text
        target.parent.mkdir(parents=True, exist_ok=True)
        before = read_file_state(target, self._contents)
        if new is None:
            target.unlink()
        else:
            target.write_text(new)
        after = read_file_state(target, self._contents)
        change = "deleted" if after is None else "created" if before is None else "modified"
        states = {"before": before and before.model_dump(), "after": after and after.model_dump()}
        self._context.emit("file.changed", {"path": str(target), "change": change, "known": True, **states})

    async def discard(self) -> KeptChanges:
        discarded = tuple(self.layer.changes())
        shutil.rmtree(self.layer.storage)
        return KeptChanges(discarded=discarded)


class TrialTool(Tool):
    """Tool whose calls write files (`write`) or delete them (`delete`) in a layer of their own, after a while."""

    name = "command"

    def __init__(self, layers: CopiedLayers, *, timeout: float | None = None) -> None:
        self.spec = ToolSpec(name="command", description="run a command", input_schema={"type": "object"})
        self.layers = layers
        self.ran: list[str] = []
        """Calls that really ran, in the order of their starts."""
        self._timeout = timeout

    def accesses(self, arguments: JsonObject) -> Accesses:
        return Accesses(keeps=frozenset({self.layers.workspace}))

    def timeout(self, arguments: JsonObject) -> float | None:
        return self._timeout

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        if context.resumed_from:
            found = self.layers.waiting(context.resumed_from)
            if found is None:
                raise ToolError("what this command changed is gone; it was not run again")
            context.propose(CopiedChanges(found[0], context, self.layers.contents))
            return ToolResult.model_validate_json(found[1])
        self.ran.append(context.call_id)
        layer = self.layers.open(context.call_id)
        context.propose(CopiedChanges(layer, context, self.layers.contents))
        writes = arguments.get("write")
        for path, text in writes.items() if isinstance(writes, Mapping) else ():
            (layer.upper / str(path)).parent.mkdir(parents=True, exist_ok=True)
            (layer.upper / str(path)).write_text(str(text))
        for path in arguments.get("delete") or ():
            (layer.upper / str(path)).unlink()
        await asyncio.sleep(float(arguments.get("seconds") or 0))
        return ToolResult.of_text(f"ran {context.call_id}", is_error=bool(arguments.get("fails")))


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None
