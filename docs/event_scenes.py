"""Small runs of the real engine, one for each sequence in `docs/events.md`.

The model is scripted, the tools are small but real, and each run is driven by its events, never by the clock.
"""

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_agent.agent import AgentLoop, AgentLoopConfig, RetryPolicy
from tui_agent.execution import ApprovalGate, Batched, ExecutionOptions, HookBus, Parallel, Sequential
from tui_agent.permissions import PermissionMode, PermissionPolicy, Rule
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.hooks import BeforeTool, DenyCall
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Accesses, PathSubject, Subject, Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.protocol.trial import KeepSelection, KeptChanges, ProposedChanges, ProposedFile
from tui_agent.providers import ScriptedProvider, Wait, call, fail, reply
from tui_agent.providers.scripted_provider import Call, Step


class Notes:
    """A folder of notes. A call for a held note starts and then waits until the note is released."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "plan.txt").write_text("Paint the door.", "utf-8")
        (root / "todo.txt").write_text("Buy paint.", "utf-8")
        self.held: set[str] = set()
        """Names of notes whose calls wait."""
        self.go_on: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """Released notes: set the event of a name to let its calls continue."""

    async def turn(self, name: str) -> Path:
        """Return the note's file once it is released."""
        if name in self.held:
            await self.go_on[name].wait()
        return self.root / name


class ReadNote(Tool):
    """Reads a note."""

    spec = ToolSpec(
        name="read",
        description="Reads a note.",
        input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    )

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def is_read_only(self, arguments: JsonObject) -> bool:
        return True

    def accesses(self, arguments: JsonObject) -> Accesses:
        return Accesses(reads=frozenset({self._notes.root / arguments["path"]}))

    def subject(self, arguments: JsonObject) -> Subject:
        return PathSubject(arguments["path"], "read")

    def interruptible(self, arguments: JsonObject) -> bool:
        return True

    def summarise(self, arguments: JsonObject) -> str:
        return str(arguments.get("path", ""))

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        note = await self._notes.turn(arguments["path"])
        if not note.is_file():
            raise ToolError(f"there is no note {note.name}")
        return ToolResult.of_text(note.read_text("utf-8"))


class WriteNote(Tool):
    """Writes a note."""

    spec = ToolSpec(
        name="write",
        description="Writes a note.",
        input_schema={
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["path", "text"],
        },
    )

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def accesses(self, arguments: JsonObject) -> Accesses:
        return Accesses(writes=frozenset({self._notes.root / arguments["path"]}))

    def subject(self, arguments: JsonObject) -> Subject:
        return PathSubject(arguments["path"], "write")

    def summarise(self, arguments: JsonObject) -> str:
        return str(arguments.get("path", ""))

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        note = await self._notes.turn(arguments["path"])
        note.write_text(arguments["text"], "utf-8")
        return ToolResult.of_text(f"wrote {note.name}")


class ShortenedNotes:
    """The notes without their last word, beside the real ones."""

    def __init__(self, notes: Notes, context: ToolContext) -> None:
        self._notes = notes
        self._context = context
        self._texts = {path.name: path.read_text("utf-8").rsplit(" ", 1)[0] for path in sorted(notes.root.iterdir())}

    @property
    def proposed(self) -> ProposedChanges:
        """Every note."""
        files = (ProposedFile(path=name, kind="changed", sort="workspace", removed=1, added=1) for name in self._texts)
        return ProposedChanges(layer="layer_1", files=tuple(files))

    async def refresh(self) -> None:
        """Change nothing: no other call changes the notes."""

    async def record(self, result: str) -> None:
        """Keep nothing: this session is not resumed."""

    async def keep(self, selection: KeepSelection, result: str = "") -> KeptChanges:
        """Write the selected notes."""
        for name in selection.paths:
            (self._notes.root / name).write_text(self._texts[name], "utf-8")
            self._context.emit("file.changed", {"path": name, "change": "modified"})
        discarded = tuple(name for name in self._texts if name not in selection.paths)
        return KeptChanges(kept=selection.paths, discarded=discarded)

    async def discard(self) -> KeptChanges:
        """Forget the shortened notes."""
        return KeptChanges(discarded=tuple(self._texts))


class ShortenNotes(Tool):
    """Shortens all notes in a trial."""

    spec = ToolSpec(name="shorten", description="Shortens all notes.", input_schema={"type": "object"})

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.propose(ShortenedNotes(self._notes, context))
        return ToolResult.of_text("shortened 2 notes")


class Stage:
    """One agent with a folder of notes, and a user who reacts to its events."""

    def __init__(self, root: Path) -> None:
        self.notes = Notes(root)
        self.bus = EventBus()
        self.loop: AgentLoop | None = None

    async def run(
        self,
        text: str,
        steps: Iterable[Step],
        *,
        mode: PermissionMode = PermissionMode.ALLOW,
        rules: Iterable[Rule] = (),
        options: ExecutionOptions | None = None,
        hooks: HookBus | None = None,
        user: Callable[[AgentLoop], Awaitable[None]] | None = None,
        tools: Iterable[Tool] = (),
    ) -> None:
        """Run the agent to its end, with `user` beside it."""
        loop = AgentLoop(
            AgentLoopConfig(
                provider=ScriptedProvider(steps),
                tools=[ReadNote(self.notes), WriteNote(self.notes), *tools],
                system="",
                bus=self.bus,
                policy=PermissionPolicy(self.notes.root, rules=tuple(rules), mode=mode),
                gate=ApprovalGate(interactive=True),
                options=options or ExecutionOptions(),
                hooks=hooks,
                retry=RetryPolicy(first_wait=0),
            )
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(loop.run(text))
            if user is not None:
                await user(loop)

    async def told(self, type_name: str, **fields: object) -> Any:
        """Wait for the first event of this type with these fields and return it."""
        with self.bus.subscribe(merge=False, since=0) as subscription:
            async for batch in subscription.batches():
                for envelope in batch:
                    event: Any = envelope.event
                    if event.type == type_name and all(getattr(event, name) == it for name, it in fields.items()):
                        return event
        raise AssertionError("the bus is never closed here")


@dataclass(frozen=True, slots=True)
class Scene:
    """One sequence of the page."""

    title: str
    words: str
    """Description of the sequence."""
    play: Callable[[Stage], Awaitable[None]]
    whole: bool = False
    """True to show also the events that the other trees leave out."""


async def record(scene: Scene) -> list[Envelope]:
    """Play a scene and return all events, unmerged and in order."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder).resolve())
        with stage.bus.subscribe(merge=False) as subscription:
            await scene.play(stage)
            return subscription.drain()


async def _one_call(stage: Stage) -> None:
    await stage.run("What is the plan?", [reply("Let me look.", call("read", path="plan.txt")), "Paint the door."])


async def _parallel(stage: Stage) -> None:
    stage.notes.held = {"plan.txt", "lost.txt"}

    async def user(loop: AgentLoop) -> None:
        await stage.told("tool.ended", call_id="call_3")
        stage.notes.go_on["lost.txt"].set()
        await stage.told("tool.ended", call_id="call_2")
        stage.notes.go_on["plan.txt"].set()

    names = ("plan.txt", "lost.txt", "todo.txt")
    steps = [reply(*(call("read", path=name) for name in names)), "One of them is lost."]
    await stage.run("Read all three notes.", steps, options=ExecutionOptions(stream_tools="off"), user=user)


async def _conflict(stage: Stage) -> None:
    steps = [
        reply(call("write", path="plan.txt", text="Paint the wall."), call("read", path="plan.txt")),
        "The plan is changed.",
    ]
    await stage.run("Change the plan and show it.", steps)


async def _streaming(stage: Stage) -> None:
    read = asyncio.Event()

    async def user(loop: AgentLoop) -> None:
        await stage.told("tool.ended", call_id="call_1")
        read.set()

    answer = reply("I look at the plan", call("read", path="plan.txt"), Wait(read), "and say meanwhile what it is for.")
    await stage.run("Explain the plan.", [answer, "It is about the door."], user=user)


async def _steering(stage: Stage) -> None:
    stage.notes.held = {"plan.txt"}

    async def user(loop: AgentLoop) -> None:
        await stage.told("tool.ended", call_id="call_3")
        loop.steer("Once is enough.")
        await stage.told("tool.ended", call_id="call_2")
        stage.notes.go_on["plan.txt"].set()

    steps = [
        reply(
            call("write", path="plan.txt", text="Paint the wall."),
            call("write", path="plan.txt", text="Paint the wall blue."),
            call("read", path="todo.txt"),
        ),
        "As you like.",
    ]
    options = ExecutionOptions(stream_tools="off")
    await stage.run("Change the plan twice and read the list.", steps, options=options, user=user)


async def _steered(stage: Stage, calls: Iterable[Call], options: ExecutionOptions) -> None:
    """Send a message while the first call runs, then let that call continue."""
    stage.notes.held = {"plan.txt"}

    async def user(loop: AgentLoop) -> None:
        await stage.told("tool.started", call_id="call_1")
        loop.steer("Once is enough.")
        if options.steering != "interrupt":
            stage.notes.go_on["plan.txt"].set()

    await stage.run("Look after the notes.", [reply(*calls), "As you like."], options=options, user=user)


async def _steering_between_calls(stage: Stage) -> None:
    calls = [call("read", path="plan.txt"), call("read", path="todo.txt"), call("write", path="todo.txt", text="Rest.")]
    await _steered(stage, calls, ExecutionOptions(strategy=Sequential()))


async def _steering_between_batches(stage: Stage) -> None:
    calls = [call("read", path=name) for name in ("plan.txt", "todo.txt", "todo.txt")]
    await _steered(stage, calls, ExecutionOptions(strategy=Batched(2)))


async def _steering_after_batch(stage: Stage) -> None:
    calls = [call("read", path="plan.txt"), call("write", path="todo.txt", text="Rest.")]
    await _steered(stage, calls, ExecutionOptions(strategy=Parallel()))


async def _steering_interrupt(stage: Stage) -> None:
    calls = [call("read", path="plan.txt"), call("write", path="plan.txt", text="Paint the wall.")]
    options = ExecutionOptions(steering_mode="interrupt", stream_tools="off", grace=0)
    await _steered(stage, calls, options)


async def _veto(stage: Stage) -> None:
    def keep_the_plan(question: BeforeTool) -> DenyCall | None:
        return DenyCall("the plan stays as it is") if question.arguments["path"] == "plan.txt" else None

    hooks = HookBus()
    hooks.before_tool(keep_the_plan)
    steps = [reply(call("write", path="plan.txt", text="Paint the wall.")), "Then it stays."]
    await stage.run("Change the plan.", steps, hooks=hooks)


async def _approval(stage: Stage) -> None:
    async def user(loop: AgentLoop) -> None:
        request = await stage.told("approval.requested")
        loop.resolve_approval(request.request_id, ApprovalDecision(decision="approve"))

    steps = [reply(call("write", path="plan.txt", text="Paint the wall.")), "Done."]
    await stage.run("Change the plan.", steps, mode=PermissionMode.ASK, user=user)


async def _trial(stage: Stage) -> None:
    async def user(loop: AgentLoop) -> None:
        request = await stage.told("approval.requested")
        loop.resolve_approval(request.request_id, ApprovalDecision(decision="approve", input={"paths": ["plan.txt"]}))

    steps = [reply(call("shorten")), "Shortened."]
    rules = [Rule.parse("allow", "shorten")]
    shorten = ShortenNotes(stage.notes)
    await stage.run("Shorten the notes.", steps, mode=PermissionMode.ASK, rules=rules, user=user, tools=[shorten])


async def _denials(stage: Stage) -> None:
    async def user(loop: AgentLoop) -> None:
        request = await stage.told("approval.requested")
        loop.resolve_approval(request.request_id, ApprovalDecision(decision="deny", note="keep the plan"))

    steps = [
        reply(
            call("write", path="todo.txt", text="Buy a brush."),
            call("write", path="plan.txt", text="Paint the wall."),
        ),
        "Then I change nothing.",
    ]
    rules = [Rule.parse("deny", "write(todo.txt)")]
    await stage.run("Change both notes.", steps, mode=PermissionMode.ASK, rules=rules, user=user)


async def _timeout(stage: Stage) -> None:
    stage.notes.held = {"plan.txt"}
    steps = [reply(call("read", path="plan.txt")), "It cannot be read."]
    await stage.run("What is the plan?", steps, options=ExecutionOptions(tool_timeout=0.01, grace=0.01))


async def _cancel(stage: Stage) -> None:
    stage.notes.held = {"plan.txt"}

    async def user(loop: AgentLoop) -> None:
        await stage.told("tool.blocked_on", call_id="call_2")
        loop.abort("interrupted by the user")

    steps = [
        reply(
            call("write", path="plan.txt", text="Paint the wall."),
            call("write", path="plan.txt", text="Paint the wall blue."),
        ),
    ]
    await stage.run("Change the plan twice.", steps, options=ExecutionOptions(grace=0.01), user=user)


async def _adoption(stage: Stage) -> None:
    stage.notes.held = {"plan.txt"}
    began = asyncio.Event()

    async def user(loop: AgentLoop) -> None:
        await stage.told("tool.started", call_id="call_1")
        began.set()
        await stage.told("tool.started", call_id="call_2")
        stage.notes.go_on["plan.txt"].set()

    cut = reply(call("read", path="plan.txt"), Wait(began), fail("network", "the connection was closed"))
    whole = reply(call("read", path="plan.txt"))
    await stage.run("What is the plan?", [cut, whole, "To paint the door."], user=user)


async def _retry(stage: Stage) -> None:
    cut = reply("The plan is", fail("network", "the connection was closed"))
    await stage.run("What is the plan?", [cut, "The plan is to paint the door."])


SCENES = (
    Scene(
        "One call",
        "All events, frequent ones included. The calls of an answer are queued while it streams; their results follow "
        "in call order, then the next step sends a request to the model.",
        _one_call,
        whole=True,
    ),
    Scene(
        "Parallel calls, one of which fails",
        "Calls without a conflict run at the same time and end in any order. A failure does not affect the others. The"
        " result messages follow in call order. (With `stream_tools=off`; otherwise each call starts as it arrives.)",
        _parallel,
    ),
    Scene(
        "A conflict: a write, then a read of the same file",
        "The read waits for the call that writes the same file; `tool.blocked_on` with the reason `group` names that "
        "call.",
        _conflict,
    ),
    Scene(
        "A read that starts while the model still streams",
        "A read-only call that needs no approval starts as soon as its block is complete, before its message ends.",
        _streaming,
    ),
    Scene(
        "Steering between calls",
        "Mode `between_calls`, which `Sequential` implies: the running call finishes, every later one is skipped, and "
        "the message follows the results.",
        _steering_between_calls,
    ),
    Scene(
        "Steering between batches",
        "Mode `between_batches`, which `Batched` implies: the running batch finishes; no later one starts.",
        _steering_between_batches,
    ),
    Scene(
        "Steering after the batch",
        "Mode `after_batch`, which `Parallel` implies: no call is skipped; the message follows all results.",
        _steering_after_batch,
    ),
    Scene(
        "Steering that interrupts",
        "Mode `interrupt`: a running call that is interruptible is cancelled at once, and no other call starts.",
        _steering_interrupt,
    ),
    Scene(
        "Steering before effects",
        "The default mode, `before_effects`: the running call finishes, later calls with effects are skipped, reads "
        "run, and the message follows the results. (Also with `stream_tools=off`.)",
        _steering,
    ),
    Scene(
        "A veto",
        "A `before_tool` hook denies the call with a reason; the call ends without a start.",
        _veto,
    ),
    Scene(
        "An approval, answered",
        "The request for approval belongs to its call and is resolved exactly once, before the call ends.",
        _approval,
    ),
    Scene(
        "A command in a trial, kept in part",
        "The command has run before the question. What the answer names is kept, and a `file.changed` follows for each "
        "file; the rest is discarded. All of it comes before the end of the call.",
        _trial,
    ),
    Scene(
        "Two denials",
        "One by a rule, without a request for approval, and one by the user. The model reads both as results, and the "
        "run continues.",
        _denials,
    ),
    Scene(
        "A timeout",
        "The call's token is set, then its task is cancelled; its result says so, and the run continues.",
        _timeout,
    ),
    Scene(
        "A cancel",
        "The token of the running call is set, then its task is cancelled; the waiting call never runs. Both get a "
        "result, so that the conversation stays valid.",
        _cancel,
    ),
    Scene(
        "A retry after a cut stream",
        "The partial message is discarded, and the request is retried; nothing of it stays in the conversation.",
        _retry,
    ),
    Scene(
        "A retry that takes over a call",
        "The read had started when the stream broke. The same call of the next answer takes over its execution "
        "(`adopted_from`): the tool runs once and has one result.",
        _adoption,
    ),
)
"""Every sequence, in the order of the page."""
