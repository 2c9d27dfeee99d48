"""The base class of tools, and the context of a call (S1-26, S1-27).

A tool describes itself completely, so that no other module knows tools by name. It takes its arguments as a
`JsonObject`; `tui_agent.tools.typed_tool` adds typed arguments.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias

from pydantic import BaseModel, Field
from typing_extensions import TypeVar

from .cancellation import CancellationToken
from .diffs import NO_DIFF, Diff
from .errors import ToolError
from .messages import AssistantMessage, FrozenModel, JsonObject, is_object
from .reports import Metric, MetricValue
from .server_question import FieldValue, ServerQuestion
from .tool_result import ToolResult, as_tool_result
from .trial import PendingChanges, Place

ExecutionMode = Literal["shared", "sequential"]
"""`sequential`: no other call of the same message runs beside a call of this tool."""

Verdict = Literal["allow", "ask", "deny"]
"""Decision of a policy about a call (S1-18)."""

DepsT = TypeVar("DepsT", default=Any)
"""Type of the objects that an agent's owner hands to its tools."""

Timeout: TypeAlias = float | Literal["default"] | None
"""Seconds, or `"default"` for the engine's `tool_timeout`; None if the tool has its own timeout or needs none."""


class ToolSpec(FrozenModel):
    """Description of a tool for the model."""

    name: str
    description: str
    input_schema: JsonObject


class Preview(FrozenModel):
    """Effect of a call, shown to the user before approval."""

    kind: Literal["diff", "command", "text"]
    text: Diff | str
    """A unified diff, a command, or plain text."""
    path: str | None = None
    """Resolved path of the file of a diff."""
    note: str = ""
    """Notes, one a line, such as that the call runs in a sandbox or what else it would change."""

    @cached_property
    def diff(self) -> Diff:
        """The diff; empty for another kind."""
        if self.kind != "diff":
            return NO_DIFF
        return self.text if isinstance(self.text, Diff) else Diff(self.text)


class PreviewError(ToolError):
    """A call that would fail now, but may succeed later, so it has a preview."""

    def __init__(self, text: str, preview: Preview, reported: Callable[[], None] | None = None) -> None:
        super().__init__(text)
        self.preview = preview
        """Preview for the time when the call can succeed."""
        self.reported = reported
        """Called when the model gets the text."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """Resolved paths that a call touches. Two calls may overlap if neither writes a path that the other touches."""

    reads: frozenset[Path] = frozenset()
    writes: frozenset[Path] = frozenset()
    searches: frozenset[Path] = frozenset()
    """Directories that are read with everything below them."""
    keeps: frozenset[Path] = frozenset()
    """Directories of which the call reads and changes a copy, and whose changes are kept after it. Such calls run
    beside one another and keep in call order; every other call that touches the directory keeps its place."""

    @classmethod
    def of(
        cls,
        reads: Iterable[Path | str] | Path | str = (),
        writes: Iterable[Path | str] | Path | str = (),
        searches: Iterable[Path | str] | Path | str = (),
    ) -> "Accesses":
        """Return the accesses of one or several paths; links are resolved.

        Relative paths start at the process's working directory.
        """
        return cls(_resolved(reads), _resolved(writes), _resolved(searches))


@dataclass(frozen=True, slots=True)
class JudgedTarget:
    """A resolved path that a policy checked, and identities to verify when the tool opens it."""

    path: str
    identities: tuple[tuple[str, int, int], ...] = ()
    """Path, device and inode, at the time of the request for approval, of the target if it existed and of the nearest
    existing directory above it; empty if no approval was needed."""


@dataclass(frozen=True, slots=True)
class PathSubject:
    """A permission subject: a path from the call's arguments."""

    path: str
    intent: Literal["read", "write", "search"]
    leaves_out_denied: bool = False
    """True for a search that leaves out the paths for which `ToolContext.is_denied` is True; a rule that denies reading
    only some of them then neither asks nor denies."""


@dataclass(frozen=True, slots=True)
class CommandSubject:
    """A permission subject: a shell command, exactly as it would run."""

    command: str
    leaves_sandbox: bool = False
    """True if the call asks to run outside the sandbox, whatever its targets."""
    in_background: bool = False
    """True if the call ends before the command does, which therefore cannot run in a trial."""


@dataclass(frozen=True, slots=True)
class UrlSubject:
    """A permission subject: a URL to fetch."""

    url: str


Subject = PathSubject | CommandSubject | UrlSubject
"""Value that rule patterns are matched against; a tool without one is matched by its name only."""


class ContentUpdate(FrozenModel):
    """A partial result: `context.update`."""

    partial: ToolResult


class ProgressUpdate(FrozenModel):
    """A line of progress: `context.progress`."""

    text: str
    fraction: float | None = Field(default=None, ge=0.0, le=1.0)


class OutputUpdate(FrozenModel):
    """A piece of output: `context.output`."""

    chunk: str
    stream: Literal["stdout", "stderr"] = "stdout"
    bytes_total: int = 0
    """Bytes of this stream so far, also those not reported; 0 if the engine should count the reported ones."""


class DataUpdate(FrozenModel):
    """Typed data: `context.emit` (S3-16)."""

    kind: str
    data: JsonObject


ToolUpdate = ContentUpdate | ProgressUpdate | OutputUpdate | DataUpdate


class StartedProcess(FrozenModel):
    """First process of a program that a call started; recorded so that tui-agent finds it after a crash."""

    pid: int
    """Id of the process, its process group and its session; 0 if only the mark is known."""
    started: int
    """Start time in clock ticks since boot; it differs if the id was reused."""
    boot: str = ""
    """Boot id of the system; empty if it has none."""
    mark: str
    """Mark of every process that the program starts."""


TIME_LIMIT_DATA = "time_limit"
"""Kind of the `tool.data` by which the engine reports a new time limit of a running call: `{"timeout_s": seconds}`."""

EFFECTS_DATA = "effects"
"""Kind of the `tool.data` with what was found out about a call's effects after its end: it replaces the details of the
same names in the result, and `mark`, if there is one, precedes the details' `outcome`."""


def _no_resources() -> "ToolResources[Any]":
    return ToolResources(None)


def _drop(update: object) -> None:
    """Discard a report; used in contexts without an engine."""


@dataclass(frozen=True, slots=True)
class ToolResources(Generic[DepsT]):
    """Objects that an agent's owner hands to its tools."""

    deps: DepsT
    workspace: Path | None = None
    """The agent's directory; None if it has none."""


@dataclass(slots=True)
class ToolContext(Generic[DepsT]):
    """Facts about a running call, and methods to report from it (S0-29, S4-9).

    Reports are synchronous and may be made any number of times (S2-26). They never fail the call: values of the wrong
    type are converted.
    """

    call_id: str
    tool_name: str
    step: int = 0
    cancellation: CancellationToken = field(default_factory=CancellationToken)
    """Child of the run's token, also set when this call times out."""
    report: Callable[[ToolUpdate], None] = _drop
    """Receiver of updates. The engine publishes them in order, all before the end of the call."""
    metrics: dict[str, Metric] = field(default_factory=dict[str, Metric])
    """Measured values for the call's report."""
    targets: tuple[JudgedTarget, ...] = ()
    """Resolved paths that the policy checked. The tool opens these and resolves nothing again; empty if there are
    none."""
    answer: AssistantMessage | None = None
    """Assistant message of the call; None if the call started before the message was complete (S3-15)."""
    can_use: Callable[[str, JsonObject], Verdict] = lambda name, arguments: "deny"
    """Returns the policy's verdict on another call, by tool name and arguments, without running it (S3-15)."""
    is_denied: Callable[[str], bool] = lambda path: False
    """True if a rule denies reading a path below the directory that this call searches, relative to it."""
    mark: str = ""
    """Mark for every process that this call starts, recorded before the call started; if empty, the tool makes one."""
    report_process: Callable[[StartedProcess], None] = _drop
    """Records a program that this call started and that ends with it. Call it on the event loop only."""
    report_effects: Callable[[DataUpdate], None] | None = None
    """Receiver of effects that are found only after the call's end, such as `file.changed` and `EFFECTS_DATA`. None if
    they must be reported before: a hook or a guardrail follows, or no request to the model does."""
    agent: str = ""
    """Name of the agent that made the call."""
    place: Place = "outside"
    """Place in which the policy lets a command run."""
    resumed_from: str = ""
    """Id under which the call's layer waits (`Trials.waiting`), if it ran in an earlier process and no one has decided
    on its changes; else empty. The tool then returns the stored result and proposes the same changes again. If the
    layer is gone, it raises; it never runs the command again."""
    propose: Callable[[PendingChanges], None] = _drop
    """Receives the changes of a command that ran in a trial, once, before the tool returns its result. The engine then
    decides, asks the user if it has to, and adds to the result what became of them."""
    answers: Mapping[str, FieldValue] | None = None
    """The user's answer to the tool's `question`, by field; None if there was no question or no one could answer."""
    extra_seconds: Callable[[], float] = lambda: 0.0
    """Returns the seconds that the user has added to the call's time limit so far. The engine keeps the limit; only a
    tool with a timer of its own needs this."""

    resources: ToolResources[DepsT] = field(default_factory=_no_resources)
    """Objects that the agent's owner hands to the tools; read them as `deps` and `workspace`."""

    @property
    def deps(self) -> DepsT:
        """The agent's `deps`; None if it has none."""
        return self.resources.deps

    @property
    def workspace(self) -> Path | None:
        """The agent's directory, with every link followed; None if it has none."""
        return self.resources.workspace

    @property
    def tool_call_id(self) -> str:
        """Alias of `call_id` (S0-29)."""
        return self.call_id

    @property
    def cancel(self) -> CancellationToken:
        """Alias of `cancellation` (S0-29)."""
        return self.cancellation

    @property
    def signal(self) -> CancellationToken:
        """Alias of `cancellation` (S4-9)."""
        return self.cancellation

    def update(self, partial: object) -> None:
        """Report a partial result: any value that a tool may also return (S0-31, S2-6)."""
        self.report(ContentUpdate(partial=as_tool_result(partial)))

    def on_update(self, partial: object) -> None:
        """Alias of `update` (S0-31, S2-6)."""
        self.update(partial)

    def progress(self, text: str, fraction: float | None = None) -> None:
        """Report a line of progress (S0-35); `fraction` is 0.0 to 1.0, None: unknown."""
        self.report(ProgressUpdate(text=_text_of(text), fraction=_fraction_of(fraction)))

    def on_progress(self, text: str) -> None:
        """Alias of `progress` (S0-29)."""
        self.progress(text)

    def output(self, chunk: str, stream: Literal["stdout", "stderr"] = "stdout", bytes_total: int = 0) -> None:
        """Report a piece of output; `bytes_total` as in `OutputUpdate`."""
        named: Literal["stdout", "stderr"] = "stderr" if stream == "stderr" else "stdout"
        total = bytes_total if isinstance(bytes_total, int) else 0  # pyright: ignore[reportUnnecessaryIsInstance] — tools may be untyped
        self.report(OutputUpdate(chunk=_text_of(chunk), stream=named, bytes_total=total))

    def emit(self, kind: str, data: object) -> None:
        """Report typed data: an object, or any other value, which becomes `{"value": …}` (S3-16)."""
        fields = {str(name): value for name, value in data.items()} if is_object(data) else {"value": data}
        self.report(DataUpdate(kind=str(kind), data=fields))

    def measure(self, name: str, value: MetricValue) -> None:
        """Add a measured value to the call's report; a later one of the same name replaces it."""
        self.metrics[str(name)] = Metric(value=value if isinstance(value, str | bool | float) else _measured(value))


class Tool(ABC):
    """A tool. Its predicates are evaluated for each call; if one raises, the call is refused with the error."""

    spec: ToolSpec
    """Name, description and schema for the model."""

    arguments_model: type[BaseModel] | None = None
    """Pydantic model that validates arguments; None to validate with `spec.input_schema`."""

    execution_mode: ExecutionMode = "shared"

    starts_processes: bool = False
    """True if calls start programs that could outlive a killed tui-agent: each call then gets a mark for its
    processes."""

    aborts_siblings: bool = False
    """True if a failed call makes the other calls of its message pointless; used with `sibling_abort`."""

    working_directory: Path | None = None
    """Directory in which relative paths of the arguments begin, with every link followed; None if the tool has none.
    The tools and the policy of an agent share one."""

    @property
    def name(self) -> str:
        """Name of the tool in calls."""
        return self.spec.name

    @property
    def is_offered(self) -> bool:
        """True if the next request offers the tool to the model; a call of it runs all the same."""
        return True

    @abstractmethod
    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Run one call with validated arguments.

        Raises:
            ToolError: the call failed; the model reads the text. Any other exception has the same effect, with a
                traceback in the result's details.
        """

    runs_in_thread: bool = False
    """True if calls run in a thread, which Python cannot stop: the result of an abandoned call then says that it may
    still be running."""

    for_main_agent: bool = False
    """True if a sub-agent has the tool only if its call names it in `tools`."""

    ends_calls_of_its_own: bool = False
    """True if a call runs tools itself, as a sub-agent does: when stopped, it gets the time that those tools need to
    end before it is cancelled."""

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments with aliases and the like normalised, before validation; do not modify the originals."""
        return arguments

    def is_read_only(self, arguments: JsonObject) -> bool:
        """True if this call changes nothing (S1-6)."""
        return False

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        """True if this call may run beside others (S1-6). Default: the value of `is_read_only`."""
        return self.is_read_only(arguments)

    def accesses(self, arguments: JsonObject) -> Accesses | None:
        """Return the resolved paths this call touches. None if unknown: unless it is concurrency-safe, the call then
        conflicts with every other."""
        return None

    def subject(self, arguments: JsonObject) -> Subject | None:
        """Return the value that permission rules match their pattern against; None: the call has no such value."""
        return None

    def notices_changes(self, arguments: JsonObject) -> bool:
        """True if this call itself refuses a file that changed since the model read it. Otherwise the engine asks the
        user again if the file was replaced after the approval."""
        return False

    def question(self, arguments: JsonObject) -> ServerQuestion | None:
        """Return what the engine asks the user before this call runs; None for no question.

        It waits in the queue of requests for approval and takes the place of one. The answer is `ToolContext.answers`.
        """
        return None

    def timeout(self, arguments: JsonObject) -> Timeout:
        """Return the maximum seconds of execution, without waits for approval; None: no limit.

        `"default"` stands for the engine's limit. The engine does not run a call with any other value, such as 0.
        """
        return "default"

    def interruptible(self, arguments: JsonObject) -> bool:
        """True if steering mode `interrupt` may cancel this call while it runs."""
        return False

    def summarise(self, arguments: JsonObject) -> str:
        """Return the call in one line, for lists and dialogs; must also work with invalid arguments."""
        return ""

    async def later_changes(self, arguments: JsonObject) -> str:
        """Return how the files of a call that has ended were changed since, such as by a hook; the result then says so.
        Empty if they were not."""
        return ""

    async def preview(self, arguments: JsonObject) -> Preview | None:
        """Return the effect of the call, for the request for approval; None: nothing to show.

        Raises:
            InvalidArgumentsError: the call can never succeed. The model gets the error, and no one is asked.
            ToolError: the call would fail. The model gets the error without a question if it may read the call's file
                anyway and no earlier call can change that; otherwise the request shows the error.
        """
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
    """Return the fraction, limited to 0 … 1; None if it is not a number."""
    if not isinstance(fraction, int | float) or fraction != fraction:
        return None
    return min(max(float(fraction), 0.0), 1.0)
