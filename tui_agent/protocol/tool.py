"""What a tool is: it brings its own words, so that no central switch knows any tool by name (S1-26, S1-27).

A tool works on `JsonObject` arguments; `tui_agent.tools.typed_tool` adds a typed arguments model on top.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, Field

from .cancellation import CancellationToken
from .messages import AssistantMessage, FrozenModel, JsonObject, is_object
from .reports import Metric, MetricValue
from .tool_result import ToolResult, as_tool_result

ExecutionMode = Literal["shared", "sequential"]
"""`sequential`: this tool's calls are a barrier; nothing of the same message runs beside them (C1)."""

Verdict = Literal["allow", "ask", "deny"]
"""What a judgement of a call comes to (S1-18)."""

Timeout: TypeAlias = float | Literal["default"] | None
"""Seconds, or the engine's configured time; None: no engine timeout, because the tool keeps its own or needs none."""


class ToolSpec(FrozenModel):
    """What the model is shown of a tool."""

    name: str
    description: str
    input_schema: JsonObject


class Preview(FrozenModel):
    """What a call would do, shown before it is allowed."""

    kind: Literal["diff", "command", "text"]
    text: str
    """A unified diff, a command, or plain words."""
    path: str | None = None
    """The resolved file a diff is about."""
    note: str = ""
    """Notes beside the text, one a line: how the call would run, such as in a sandbox, or what else it would change."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """The resolved paths a call touches; two calls may overlap when no write of one meets an access of the other."""

    reads: frozenset[Path] = frozenset()
    writes: frozenset[Path] = frozenset()
    searches: frozenset[Path] = frozenset()
    """Directories read with everything below them."""

    @classmethod
    def of(
        cls,
        reads: Iterable[Path | str] | Path | str = (),
        writes: Iterable[Path | str] | Path | str = (),
        searches: Iterable[Path | str] | Path | str = (),
    ) -> "Accesses":
        """Return the accesses of one or several paths, which are resolved, links included.

        Relative paths start at the process's working directory.
        """
        return cls(_resolved(reads), _resolved(writes), _resolved(searches))


@dataclass(frozen=True, slots=True)
class JudgedTarget:
    """A resolved path by which a call was judged, and what has to be met on the way when it is opened."""

    path: str
    identities: tuple[tuple[str, int, int], ...] = ()
    """Path, device and inode of what was there when a person was asked: of the target, if it existed, and of the
    nearest directory above it; empty where nobody was asked."""


@dataclass(frozen=True, slots=True)
class PathSubject:
    """A permission subject: a path as the call gave it."""

    path: str
    intent: Literal["read", "write", "search"]


@dataclass(frozen=True, slots=True)
class CommandSubject:
    """A permission subject: a shell command, byte for byte as it would run."""

    command: str


@dataclass(frozen=True, slots=True)
class UrlSubject:
    """A permission subject: an address to fetch."""

    url: str


Subject = PathSubject | CommandSubject | UrlSubject
"""What a rule's pattern is compared with; a tool without one is matched by its name alone (P59)."""


class ContentUpdate(FrozenModel):
    """A partial result: `context.update`."""

    partial: ToolResult


class ProgressUpdate(FrozenModel):
    """A line of progress: `context.progress`."""

    text: str
    fraction: float | None = Field(default=None, ge=0.0, le=1.0)


class OutputUpdate(FrozenModel):
    """Output as it comes: `context.output`."""

    chunk: str
    stream: Literal["stdout", "stderr"] = "stdout"
    bytes_total: int = 0
    """All bytes of this stream so far, also those not shown; 0: the engine counts those it is told."""


class DataUpdate(FrozenModel):
    """Typed data: `context.emit` (S3-16)."""

    kind: str
    data: JsonObject


ToolUpdate = ContentUpdate | ProgressUpdate | OutputUpdate | DataUpdate


class StartedProcess(FrozenModel):
    """The first process of a program that a call started, recorded so that a later tui-agent finds it after a crash."""

    pid: int
    """Also the id of its process group and its session; 0 if only the mark is known."""
    started: int
    """Start time in clock ticks since the system started; it differs if the id was reused."""
    boot: str = ""
    """Id of the system's boot; empty if it has none."""
    mark: str
    """Mark of every process that the program starts."""


def _deny_all(name: str, arguments: JsonObject) -> Verdict:
    """Stands for a policy where there is no engine: nothing is allowed."""
    return "deny"


def _drop(update: object) -> None:
    """Discards reports of a call without an engine."""


@dataclass(slots=True)
class ToolContext:
    """What a running call may know and tell (S0-29, S4-9).

    All reporting is synchronous and may happen any number of times (S2-26). It never fails the call: what does not fit
    is made to.
    """

    call_id: str
    tool_name: str
    step: int = 0
    cancellation: CancellationToken = field(default_factory=CancellationToken)
    """A child of the run's token, also set when this call times out."""
    report: Callable[[ToolUpdate], None] = _drop
    """Where updates go; the engine keeps their order and ends before the call's own end is told."""
    metrics: dict[str, Metric] = field(default_factory=dict[str, Metric])
    """Values for the call's report (C57)."""
    targets: tuple[JudgedTarget, ...] = ()
    """The resolved paths the call was judged by: a tool opens these and resolves nothing again; empty: none were."""
    answer: AssistantMessage | None = None
    """The answer the call stands in; None where it began before that was complete (S3-15)."""
    can_use: Callable[[str, JsonObject], Verdict] = _deny_all
    """How another call, by tool name and arguments, would be judged now; starts nothing, asks nobody (S3-15)."""
    mark: str = ""
    """Mark for every process that this call starts, recorded before the call began; empty: the tool makes its own."""
    report_process: Callable[[StartedProcess], None] = _drop
    """Records a program that this call started and that ends with it. Call it on the event loop."""

    @property
    def tool_call_id(self) -> str:
        """The same as `call_id`, under the name S0-29 gives it."""
        return self.call_id

    @property
    def cancel(self) -> CancellationToken:
        """The same as `cancellation`, under the name S0-29 gives it."""
        return self.cancellation

    @property
    def signal(self) -> CancellationToken:
        """The same as `cancellation`, under the name S4-9 gives it; its `call_id` is `call_id`."""
        return self.cancellation

    def update(self, partial: object) -> None:
        """Tells a partial result (S0-31, S2-6): anything a tool may also return (C56)."""
        self.report(ContentUpdate(partial=as_tool_result(partial)))

    def on_update(self, partial: object) -> None:
        """The same as `update`, under the name S0 and S2 give it."""
        self.update(partial)

    def progress(self, text: str, fraction: float | None = None) -> None:
        """Tells a line of progress (S0-35); `fraction` is 0.0 to 1.0."""
        self.report(ProgressUpdate(text=_text_of(text), fraction=_fraction_of(fraction)))

    def on_progress(self, text: str) -> None:
        """The same as `progress`, under the name S0-29 gives it."""
        self.progress(text)

    def output(self, chunk: str, stream: Literal["stdout", "stderr"] = "stdout", bytes_total: int = 0) -> None:
        """Tells a piece of output."""
        named: Literal["stdout", "stderr"] = "stderr" if stream == "stderr" else "stdout"
        total = bytes_total if isinstance(bytes_total, int) else 0  # pyright: ignore[reportUnnecessaryIsInstance] — tools may be untyped
        self.report(OutputUpdate(chunk=_text_of(chunk), stream=named, bytes_total=total))

    def emit(self, kind: str, data: object) -> None:
        """Tells typed data (S3-16): an object; anything else is told as the `value` of one."""
        fields = {str(name): value for name, value in data.items()} if is_object(data) else {"value": data}
        self.report(DataUpdate(kind=str(kind), data=fields))

    def measure(self, name: str, value: MetricValue) -> None:
        """Notes a value for the call's report."""
        self.metrics[str(name)] = Metric(value=value if isinstance(value, str | bool | float) else _measured(value))


class Tool(ABC):
    """One tool. Predicates are asked for each call; one that raises counts as the careful answer (C3)."""

    spec: ToolSpec
    """Name, description and schema, as the model sees them."""

    arguments_model: type[BaseModel] | None = None
    """A pydantic model that validates arguments; None: `spec.input_schema` does."""

    execution_mode: ExecutionMode = "shared"

    starts_processes: bool = False
    """True if calls start programs that could outlive a killed tui-agent: each call then gets a mark for them."""

    aborts_siblings: bool = False
    """Whether a call that fails makes the other calls of its message pointless; heeded with `sibling_abort` (C26)."""

    @property
    def name(self) -> str:
        """The name calls use."""
        return self.spec.name

    @abstractmethod
    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Runs one call with validated arguments.

        Raises:
            ToolError: the call failed; the text goes to the model. Any other exception does, too, with a traceback
                in the result's details.
        """

    runs_in_thread: bool = False
    """True if calls run in a thread, which Python cannot stop: the result of an abandoned call then says that it may
    still be working."""

    ends_calls_of_its_own: bool = False
    """True if a call runs tools itself, as a sub-agent does: when stopped, it gets the time that those tools need to
    end before it is cancelled."""

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        """The arguments with aliases and the like put right, before they are validated; changes nothing it is given."""
        return arguments

    def is_read_only(self, arguments: JsonObject) -> bool:
        """Whether this call changes nothing (S1-6)."""
        return False

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        """Whether this call may run beside others (S1-6); the same as read-only unless a tool says otherwise."""
        return self.is_read_only(arguments)

    def accesses(self, arguments: JsonObject) -> Accesses | None:
        """The resolved paths this call touches; None: unknown, so it conflicts with everything unless safe (C2)."""
        return None

    def subject(self, arguments: JsonObject) -> Subject | None:
        """What permission rules compare their pattern with."""
        return None

    def notices_changes(self, arguments: JsonObject) -> bool:
        """Whether this call refuses by itself a file that changed since the model saw it. Otherwise a person is asked
        again where another file stands in the place of the one the question was about."""
        return False

    def timeout(self, arguments: JsonObject) -> Timeout:
        """How long this call may execute; approval does not count (P40). What is no finite number above 0, nor
        `"default"`, nor None, is refused together with the call, which does not run (C24, P39)."""
        return "default"

    def interruptible(self, arguments: JsonObject) -> bool:
        """Whether steering mode `interrupt` may cancel this call while it runs."""
        return False

    def summarise(self, arguments: JsonObject) -> str:
        """One line for a row or a dialog; also called with arguments that were never validated."""
        return ""

    async def preview(self, arguments: JsonObject) -> Preview | None:
        """What the call would do, for the person who is asked."""
        return None


def _resolved(paths: Iterable[Path | str] | Path | str) -> frozenset[Path]:
    several = (paths,) if isinstance(paths, Path | str) else paths
    return frozenset(Path(path).resolve() for path in several)


def _text_of(text: object) -> str:
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        return str(text)
    return type(text).__name__


def _measured(value: object) -> MetricValue:
    with suppress(OverflowError):
        return float(value) if isinstance(value, int) else _text_of(value)
    return _text_of(value)


def _fraction_of(fraction: object) -> float | None:
    """From 0 to 1; None where it is no number."""
    if not isinstance(fraction, int | float) or fraction != fraction:
        return None
    return min(max(float(fraction), 0.0), 1.0)
