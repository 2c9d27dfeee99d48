"""The engine as a library: `Agent`, an `AgentLoop` with keyword options that also runs without an event loop.

An agent behaves as its loop does, and its options are those of `AgentLoopConfig`.
"""

import asyncio
import contextlib
import contextvars
import difflib
import functools
import importlib
import inspect
import logging
import os
import selectors
import tempfile
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypedDict, TypeVar, Unpack, cast

from tui_agent import __version__
from tui_agent.agent import (
    DEFAULT_SYSTEM,
    AgentLoop,
    AgentLoopConfig,
    AgentLoopSnapshot,
    AgentStream,
    Budget,
    CheckpointStore,
    Guardrail,
    InputFilter,
    OutputFormat,
    RepetitionLimits,
    RetryPolicy,
    RunReport,
    UserInput,
)
from tui_agent.agent.checkpoints import restore_state, restored_config
from tui_agent.agent.guardrails import RunHooks
from tui_agent.agent.loop_config import BeforeRequests, SystemText, UpdateTools
from tui_agent.agent.output_format import OutputT
from tui_agent.agent.run_input import Trigger
from tui_agent.context import ContextGuard, ContextLayer, ConversationHistory
from tui_agent.execution import ApprovalGate, BeforeEffects, ExecutionOptions, HookBus, Strategy, ToolLike, ToolRegistry
from tui_agent.execution.contained_calls import contained
from tui_agent.execution.options import parse_strategy
from tui_agent.permissions import PermissionPolicy, is_read_only_command
from tui_agent.permissions.rules.rule import RuleLike
from tui_agent.protocol.background import run_in_thread
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.callbacks import notify
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import AgentEvent, McpStatus
from tui_agent.protocol.messages import Message, Usage, UserMessage
from tui_agent.protocol.permissions import (
    ApprovalDecision,
    ApprovalRequest,
    PermissionChecker,
    PermissionMode,
)
from tui_agent.protocol.programs import install_command
from tui_agent.protocol.provider import ModelProvider
from tui_agent.protocol.tool import Tool, ToolResources
from tui_agent.protocol.value_checks import expect_kind
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.endpoint_provider import provider_for
from tui_agent.providers.model_catalog import ANTHROPIC, find_target
from tui_agent.tools import Workspace, default_tools
from tui_agent.trial.trials import Trials

if TYPE_CHECKING:
    # Imported at run time only for an agent with tool servers.
    from tui_agent.mcp.server_parts import ServerParts
    from tui_agent.mcp.server_pool import ConfiguredServer, KeptServers

_T = TypeVar("_T")

_POLL_SECONDS = 0.05
"""Seconds between two checks of whether a loop stopped before it did the work of another thread."""

_ENDINGS = 3
"""Attempts to wait for an interrupted run: the call and the run each raise once, and the user may press Ctrl+C
again."""

ModeName: TypeAlias = PermissionMode | Literal["ask", "allow", "deny", "plan", "accept_edits"]
"""A permission mode or its name."""

Approve: TypeAlias = Callable[[ApprovalRequest], ApprovalDecision | bool | Awaitable[ApprovalDecision | bool]]
"""Answers a request for approval: True allows the call, False denies it; an `ApprovalDecision` can do more."""


Servers: TypeAlias = Mapping[str, object] | Sequence[Mapping[str, object]] | str | os.PathLike[str]
"""Tool servers as in `.mcp.json`: entries or `ToolServer` records by name, a list of entries, or the path of a file."""

_LOG = logging.getLogger("tui_agent")


class StepOptions(TypedDict, total=False):
    """Options of `AgentLoopConfig` with functions that a run awaits at certain moments."""

    before_effects: BeforeEffects | None
    before_requests: BeforeRequests | None
    update_tools: UpdateTools | None
    effects_published: Callable[[], Awaitable[None]] | None
    run_hooks: RunHooks | None


class MoreOptions(StepOptions, total=False):
    """Options of `AgentLoopConfig` that an `Agent` accepts beside its own."""

    only_tools: Callable[[str], bool] | None
    context: str
    layers: Sequence[ContextLayer]
    gate: ApprovalGate
    bus: EventBus
    input_filters: Sequence[InputFilter]
    guard: ContextGuard | None
    summary_provider: Callable[[], ModelProvider] | None
    fallback_provider: Callable[[], ModelProvider] | None
    repetition: RepetitionLimits | None
    thinking_tokens: int | None
    cache: bool
    retry: RetryPolicy
    checkpoint: CheckpointStore | None
    cancellation: CancellationToken | None
    waiting: Sequence[UserMessage]
    session_id: str
    agent_id: str
    usage: Usage
    cost: float | None


class Agent(AgentLoop, Generic[OutputT]):
    """An agent made of a model and keyword options.


    ```python
    agent = Agent("model-name", tools=[search_web], max_steps=20)
    report = agent.run_sync("What is new?").raise_for_reason()
    print(report.output)
    ```

    A permission policy checks every call. Calls that only read inside the workspace run; any other call is denied
    unless a rule, the mode or `approve` allows it. Nothing is sent or loaded before the first run.

    Args:
        model: a provider, or the name of a model as for `--model`: `claude-…`, or `PROVIDER/MODEL` for a shipped
            endpoint. The key is that of the environment.
        tools: functions and tools that the model may call; `coding_tools` returns the built-in ones.
        deps: an object for the tools, which they find as `context.deps`; `ToolContext[Shop]` is the context of a tool
            that needs a `Shop`.
        mcp: tool servers as in `.mcp.json`, such as `{"time": {"command": "uvx", "args": ["mcp-server-time"]}}`, a
            list of such entries, or the path of such a file. They start with the first run.
        system: the system prompt, as text or as a function that returns it. Default: that of the built-in coding
            agent if there is a workspace, else none.
        workspace: the agent's directory, named in the system prompt. `coding_tools()` and `context.workspace` are for
            it. Default: that of its tools; if they have none, none is named, and the policy resolves paths against the
            current one.
        mode: the decision for calls that no rule decides. Default: ask.
        rules: permission rules such as `"allow bash(git status:*)"`; the first match decides.
        policy: decides about calls in place of `mode` and `rules`.
        approve: answers requests for approval, one at a time; a plain function runs in a thread and may wait for
            the user. Default: calls that need approval are denied.
        hooks: hooks before and after calls.
        guardrails: checks of requests, answers, calls and results.
        output_type: the type of final answers, such as a pydantic model; `report.output` is its instance.
        options: execution of calls: scheduling, timeouts, limits.
        strategy: how calls of one answer are scheduled: `auto`, `sequential`, `parallel` or `batched:N`.
        tracing: address of a collector of OpenTelemetry, or a tracer: spans of the runs.
        max_steps: maximum steps of one run. Default: unlimited.
        budget: limits of one run in tokens, cost and time.
        max_tokens: maximum tokens of an answer. Default: the provider's.
        temperature: sampling temperature. Default: the provider's.
        history: the conversation so far.
        snapshot: an earlier result of `dump`, from which the agent continues.
        more: other options of `AgentLoopConfig`.

    Raises:
        ConfigurationError: an option is of the wrong kind, options exclude each other, or workspace, tools and policy
            name different directories.
        TypeError: an option has an unknown name.
    """

    def __init__(
        self,
        model: str | ModelProvider,
        *,
        tools: Sequence[ToolLike] = (),
        system: SystemText | None = None,
        workspace: str | os.PathLike[str] | None = None,
        deps: object = None,
        mcp: Servers | None = None,
        mode: ModeName | None = None,
        rules: Sequence[RuleLike] = (),
        policy: PermissionChecker | None = None,
        approve: Approve | None = None,
        hooks: HookBus | None = None,
        guardrails: Sequence[Guardrail] = (),
        output_type: type[OutputT] | None = None,
        options: ExecutionOptions | None = None,
        strategy: Strategy | str | None = None,
        tracing: object = None,
        max_steps: int | None = None,
        budget: Budget | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        history: ConversationHistory | Sequence[Message] = (),
        snapshot: AgentLoopSnapshot | None = None,
        **more: Unpack[MoreOptions],
    ) -> None:
        """Configure the agent; see the class for the options."""
        _refuse_unknown(more)
        _refuse_both("a policy, or a mode and rules", policy is not None, mode is not None or bool(rules))
        words = "a snapshot or a history"
        _refuse_both(words, snapshot is not None, bool(history), ": a snapshot contains its conversation")
        _expect_tracing(tracing)
        if approve is not None:
            more["gate"] = _approval_gate(approve, more)
        root, tools = _placed(tools, workspace)
        servers = None if mcp is None else self._kept_servers(mcp, root, more)
        config = AgentLoopConfig(
            provider=provider_of(model) if isinstance(model, str) else model,
            tools=tools,
            system=system if system is not None else DEFAULT_SYSTEM if root is not None else "",
            workspace=root,
            policy=policy or policy_of_mode(root, mode, rules),
            hooks=hooks,
            guardrails=guardrails,
            output=OutputFormat(output_type) if output_type is not None else None,
            options=_options(options, strategy),
            resources=ToolResources(deps),
            max_steps=max_steps,
            budget=budget or Budget(),
            max_tokens=max_tokens,
            temperature=temperature,
            history=history,
            **more,
        )
        config = config if snapshot is None else restored_config(snapshot, config)
        self._begin(config, owns_provider=isinstance(model, str))
        self._servers, self._tracing = servers, tracing
        if snapshot is not None:
            restore_state(self._agent, snapshot)

    @classmethod
    def from_config(cls, config: AgentLoopConfig) -> Self:
        """Return an agent with exactly this configuration; for options without a keyword."""
        agent = cls.__new__(cls)
        agent._begin(config, owns_provider=False)
        return agent

    def _begin(self, config: AgentLoopConfig, *, owns_provider: bool) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owns_provider = owns_provider
        self._servers: KeptServers | None = None
        self._tracing: object = None
        # `AgentLoopConfig` is not generic, so the type parameter is lost there.
        self._format = cast(OutputFormat[OutputT] | None, config.output)

    def __repr__(self) -> str:
        model, tools = self.provider.model.name, ", ".join(self._agent.tools.names)
        return f"{type(self).__name__}({model!r}, tools=[{tools}], messages={self.history.length})"

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(
        self,
        user_input: UserInput = None,
        *,
        trigger: Trigger | None = None,
        tools: Sequence[ToolLike] = (),
        allowed_tools: Callable[[str], bool] | None = None,
        provider: ModelProvider | None = None,
        cancellation: CancellationToken | None = None,
        run_id: str | None = None,
    ) -> RunReport[OutputT]:
        """Run one input to its end, like `AgentLoop.run`; the report has the typed `output`."""
        with self._running_here(), self._own_token(cancellation) as token:
            async with self._traced():
                report = await super().run(
                    user_input,
                    trigger=trigger,
                    tools=tools,
                    allowed_tools=allowed_tools,
                    provider=provider,
                    cancellation=token,
                    run_id=run_id,
                )
        return RunReport[OutputT].of(report, self._format)

    def stream(self, user_input: UserInput = None) -> AgentStream[RunReport[OutputT]]:
        """Run and yield each event, like `AgentLoop.stream`; the report in `Done` has the typed `output`."""
        # The base class calls this agent's `run`, which returns these reports.
        return cast(AgentStream[RunReport[OutputT]], super().stream(user_input))

    def run_sync(
        self,
        user_input: UserInput = None,
        *,
        tools: Sequence[ToolLike] = (),
        cancellation: CancellationToken | None = None,
    ) -> RunReport[OutputT]:
        """Run one input to its end without an event loop; later calls continue the conversation.

        All calls in one thread share an event loop, which is closed when the thread or the program ends. Ctrl+C aborts
        the run, leaves the conversation valid and raises KeyboardInterrupt.

        Args:
            user_input: see `run`.
            tools: additional tools for this run.
            cancellation: a token that aborts this run, from any thread; None: nothing does but `abort`.

        Raises:
            ConfigurationError: an event loop is running in this thread; see `run` for the others.
            AlreadyRunningError: the agent is running in another thread.
            KeyboardInterrupt: the user pressed Ctrl+C.
        """
        _refuse_running_loop("run_sync", "run")
        _host().agents.add(self)
        return _run_to_its_end(_host().runner, self.run(user_input, tools=tools, cancellation=cancellation))

    async def resume_with_approval(self, call_id: str, decision: ApprovalDecision) -> RunReport[OutputT] | None:
        """Answer the request for approval of a call in the snapshot, and continue, like `AgentLoop`.

        None, and a warning, if no such call waits.
        """
        report = await super().resume_with_approval(call_id, decision)
        return None if report is None else RunReport[OutputT].of(report, self._format)

    @property
    def reports(self) -> tuple[RunReport[OutputT], ...]:
        """Reports of all runs, oldest first (S4-43)."""
        return tuple(RunReport[OutputT].of(report, self._format) for report in super().reports)

    # --- steering from any thread -------------------------------------------------------------------------------------

    def steer(self, message: str | UserMessage) -> UserMessage:
        """Queue a steering message for the current run, like `AgentLoop`; thread-safe."""
        return self._on_its_loop(lambda: super(Agent, self).steer(message))

    def follow_up(self, message: str | UserMessage) -> UserMessage:
        """Queue a message for a turn of its own, like `AgentLoop`; thread-safe."""
        return self._on_its_loop(lambda: super(Agent, self).follow_up(message))

    def stop(self) -> None:
        """End the run after this step; without a run, do nothing. Thread-safe."""
        self._on_its_loop(super().stop)

    def abort(self, reason: str = "aborted") -> None:
        """End the run now, like `AgentLoop`; thread-safe."""
        self._on_its_loop(lambda: super(Agent, self).abort(reason))

    @contextlib.contextmanager
    def _running_here(self) -> Generator[None]:
        """Record the event loop of a run, for calls from other threads."""
        if self.running:
            yield  # This second run is about to be refused: keep the loop of the first.
            return
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loop = None

    @contextlib.contextmanager
    def _own_token(self, callers: CancellationToken | None) -> Generator[CancellationToken | None]:
        """Yield a token of this event loop that the caller's token cancels, from any thread."""
        if not isinstance(callers, CancellationToken):
            yield callers
            return
        own = CancellationToken()
        forget = callers.on_cancel(lambda: self._on_its_loop(lambda: own.cancel(callers.reason)))
        try:
            yield own
        finally:
            forget()

    def _on_its_loop(self, work: Callable[[], _T]) -> _T:
        """Call `work` on the event loop of the run and return its result; wait for it if the loop is in another
        thread."""
        loop = self._loop
        if loop is None or loop is _running_loop():
            return work()
        done = Future[_T]()
        with contextlib.suppress(RuntimeError):  # The loop may be closed by now.
            loop.call_soon_threadsafe(_settle, done, work)
        while not done.done():
            wait([done], _POLL_SECONDS)
            if not loop.is_running() and done.cancel():
                return work()  # The run ended first, and its loop no longer runs.
        return done.result()

    @contextlib.asynccontextmanager
    async def _traced(self) -> AsyncGenerator[None]:
        """Send spans of a run, if the agent has a target for them."""
        if self._tracing is None:
            yield
            return
        exporter = await asyncio.to_thread(importlib.import_module, "tui_agent.tracing.span_exporter")
        async with exporter.SpanStream.of_run(self.bus, self._tracing, __version__):
            yield

    def _kept_servers(self, mcp: Servers, root: Path | None, more: MoreOptions) -> "KeptServers":
        """Return the tool servers, and add to the options what uses them before each step."""
        from tui_agent.mcp.server_pool import KeptServers

        bus = more.setdefault("bus", EventBus())
        kept = KeptServers(
            _configured_servers(mcp),
            lambda: _server_parts(bus, root or Path.cwd()),
            window=lambda: self.provider.model.context_window,
            tool_changed=self._withdraw_grant,
        )
        first = more.get("update_tools")

        async def update(tools: ToolRegistry) -> None:
            if first is not None:
                await first(tools)
            await kept.update(tools)

        more["update_tools"] = update
        return kept

    def _withdraw_grant(self, tool: str) -> None:
        """Make a tool that changed ask again."""
        if isinstance(policy := self._agent.policy, PermissionPolicy):
            policy.remove_session_rule("allow", tool)

    # --- closing ------------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Abort the run, and close the provider if the agent made it from a model's name.

        A provider object may serve other agents; its owner closes it.
        """
        self.destroy()
        if self._servers is not None:
            await self._servers.close()
        if self._owns_provider:
            await self.provider.aclose()

    def close(self) -> None:
        """Abort the run and close the provider as `aclose` does, and close the connections that `run_sync` opened.

        Blocks until they are closed. For a thread without a running event loop. A provider object stays usable.

        Raises:
            ConfigurationError: an event loop is running in this thread.
        """
        _refuse_running_loop("close", "aclose")
        _host().runner.run(self._close_here())

    async def _close_here(self) -> None:
        await self.aclose()
        await self._disconnect()

    async def _disconnect(self) -> None:
        """Close the connections and tool servers of this event loop; other threads may still use the agent."""
        if self._servers is not None:
            await self._servers.close()
        if isinstance(self.provider, AnthropicProvider):
            await self.provider.disconnect()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_FOLLOWING: "weakref.WeakKeyDictionary[Tool, None]" = weakref.WeakKeyDictionary()
"""Tools that were made without a directory, so that an agent's workspace is theirs, too."""


def coding_tools(workspace: str | os.PathLike[str] | None = None, *, trials: Trials | None = None) -> list[Tool]:
    """Return the built-in tools for one directory: read, write, edit, bash, glob, grep and todo.

    An agent with these tools works in their directory.

    Args:
        workspace: the directory. Default: that of the agent (`workspace=`), or else the current one.
        trials: makes the layers in which commands run first; the policy needs its `facts` as `trial`. None: commands
            run outside.

    Raises:
        ConfigurationError: `workspace` is not an existing directory.
    """
    given = "." if workspace is None else workspace
    root, spool = _expect_directory("the workspace of coding_tools", given).resolve(), _spool_dir()
    tools = default_tools(
        Workspace(root, spool_dir=spool),
        is_read_only_command=lambda command: is_read_only_command(command, root, (spool,)),
        trials=trials,
    )
    if workspace is None and trials is None:
        _FOLLOWING.update(dict.fromkeys(tools))
    return tools


def _placed(
    tools: Sequence[ToolLike], workspace: str | os.PathLike[str] | None
) -> tuple[Path | None, Sequence[ToolLike]]:
    """Return the agent's directory, and its tools with those that follow the directory made for it."""
    if workspace is None:
        return _directory_of(tools), tools
    root = _expect_directory("workspace", workspace)
    if not any(isinstance(tool, Tool) and tool in _FOLLOWING for tool in tools):
        return root, tools
    made = {tool.name: tool for tool in coding_tools(root)}
    return root, [made[tool.name] if isinstance(tool, Tool) and tool in _FOLLOWING else tool for tool in tools]


def provider_of(name: str) -> AnthropicProvider:
    """Return the provider for a model name, with key and endpoint of the environment.

    `PROVIDER/MODEL` names a shipped endpoint, unless the environment has an address of its own.

    Raises:
        ConfigurationError: the name is empty, the endpoint is unknown or not a URL, or its key is not set.
    """
    address = os.environ.get("ANTHROPIC_BASE_URL") or None
    target = find_target(name, {}, own_address=address is not None)
    if target is None or target.provider == ANTHROPIC:
        return AnthropicProvider(name if target is None else target.name, base_url=address)
    endpoint = target.endpoint
    key = None if endpoint.key_env is None else os.environ.get(endpoint.key_env)
    if endpoint.key_env is not None and not key:
        raise ConfigurationError(f"no key for {target.provider}: set {endpoint.key_env}")
    return provider_for(target, auth_token=key)


def _options(options: ExecutionOptions | None, strategy: Strategy | str | None) -> ExecutionOptions:
    """Return the options with the strategy."""
    found = options or ExecutionOptions()
    if strategy is None:
        return found
    return replace(found, strategy=parse_strategy(strategy) if isinstance(strategy, str) else strategy)


def _configured_servers(mcp: Servers) -> "list[ConfiguredServer]":
    """Return the servers of `mcp=`."""
    from tui_agent.mcp.server_config import given_servers, parse_server_file
    from tui_agent.mcp.server_pool import ConfiguredServer
    from tui_agent.mcp.server_task import not_installed

    if find_spec("mcp") is None:
        raise ConfigurationError(not_installed())
    origin = "mcp="
    if isinstance(mcp, str | os.PathLike):
        origin = os.fspath(mcp)
        try:
            servers, notes = parse_server_file(Path(origin).read_bytes())
        except OSError as error:
            raise ConfigurationError(f"mcp: {origin} cannot be read: {error.strerror or error}") from error
    else:
        servers, notes = given_servers(mcp)
    for note in notes:
        _LOG.warning("%s: %s", origin, note)
    return [ConfiguredServer(name, server, origin) for name, server in servers.items()]


def _server_parts(bus: EventBus, root: Path) -> "ServerParts":
    """Return what the servers of an agent share."""
    from tui_agent.mcp.server_parts import ServerParts
    from tui_agent.tools.media.media_blocks import check_media
    from tui_agent.tools.processes.child_environment import child_environment
    from tui_agent.tools.processes.command_launcher import HelperTree

    def publish(event: AgentEvent) -> None:
        if isinstance(event, McpStatus) and event.problem:
            _LOG.warning("%s", event.problem)
        bus.publish(event)

    root = root.resolve()
    return ServerParts(
        environment=child_environment(os.environ),
        secrets=dict(os.environ),
        root=root,
        publish=publish,
        new_tree=functools.partial(HelperTree, root),
        check_media=check_media,
    )


def _expect_tracing(tracing: object) -> None:
    if tracing is not None and find_spec("opentelemetry") is None:
        raise ConfigurationError(f"tracing needs an extra: {install_command('otel')}")


def policy_of_mode(workspace: Path | None, mode: ModeName | None, rules: Sequence[RuleLike]) -> PermissionPolicy:
    """Return the policy for a directory (None: the current one) in a mode (None: ask).

    Raises:
        ConfigurationError: the mode is unknown, or a rule is not valid.
    """
    root = workspace if workspace is not None else Path.cwd()
    return PermissionPolicy(
        root, mode=PermissionMode.ASK if mode is None else mode, rules=rules, readable_paths=(_spool_dir(),)
    )


def _directory_of(tools: Sequence[object]) -> Path | None:
    """Return the directory in which the first of these tools that has one works; the registry compares the others."""
    directories = (tool.working_directory for tool in tools if isinstance(tool, Tool))
    return next((directory for directory in directories if directory is not None), None)


def _expect_directory(name: str, path: str | os.PathLike[str]) -> Path:
    """Return the path of an existing directory."""
    expect_kind(name, path, (str, os.PathLike), "a directory")
    if not str(path) or not Path(path).is_dir():
        raise ConfigurationError(f"{name} must be a directory, got {str(path)!r}")
    return Path(path)


def _spool_dir() -> Path:
    """Return the directory for long outputs; the first one creates it."""
    return Path(tempfile.gettempdir()) / f"tui-agent-spool-{os.geteuid()}"


def _refuse_both(words: str, first: bool, second: bool, why: str = "") -> None:
    """Raise if two options exclude each other."""
    if first and second:
        raise ConfigurationError(f"pass {words}, not both{why}")


def _refuse_unknown(more: MoreOptions) -> None:
    """Raise for an unknown option and suggest the closest name."""
    known = sorted({*MoreOptions.__annotations__, *(one.name for one in fields(AgentLoopConfig))})
    for name in more:
        if name not in MoreOptions.__annotations__:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near and near[0] != name else ""
            raise TypeError(f"Agent has no option {name!r}{hint}")


# --- approvals --------------------------------------------------------------------------------------------------------


def _approval_gate(approve: Approve, more: MoreOptions) -> ApprovalGate:
    """Return the gate whose approver is `approve`."""
    if "gate" in more:
        raise ConfigurationError("pass approve or a gate, not both: a gate has its own approver")
    if not callable(approve):
        advice = 'to allow every call without approval, use mode="allow"'
        raise ConfigurationError(f"approve must be a function, got {approve!r}; {advice}")
    return ApprovalGate(approver=_Approver(approve))


class _Approver:
    """An approver that calls `approve` for one request at a time; a plain function runs in a thread and blocks
    nothing."""

    def __init__(self, approve: Approve) -> None:
        self._approve = approve
        self._turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    async def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            answer = await self._answer(request)
        if isinstance(answer, bool):
            return ApprovalDecision(decision="approve" if answer else "deny")
        if not isinstance(answer, ApprovalDecision):
            raise TypeError(f"approve returned {answer!r}; it must return True, False or an ApprovalDecision")
        return answer

    async def _answer(self, request: ApprovalRequest) -> object:
        if inspect.iscoroutinefunction(self._approve):
            return await self._approve(request)
        answer = await run_in_thread(lambda: self._approve(request))
        return await answer if inspect.isawaitable(answer) else answer


# --- code without an event loop ---------------------------------------------------------------------------------------


class _LoopHost:
    """The event loop of one thread for `run_sync`. All calls share it, because connections and locks of providers and
    tools belong to the loop of their first use."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.runner = asyncio.Runner(loop_factory=_new_loop)
        self.agents: weakref.WeakSet[Agent[Any]] = weakref.WeakSet()
        weakref.finalize(self, _close_host, self.process, self.runner, self.agents)


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that a forked process can close. An epoll object is shared with the parent; closing it breaks
    both."""
    return asyncio.SelectorEventLoop(selectors.PollSelector())


_THREAD = threading.local()

_CLOSING = "tui-agent closes a loop"


def _host() -> _LoopHost:
    """Return this thread's event-loop host; a forked process gets a new one."""
    host: _LoopHost | None = getattr(_THREAD, "host", None)
    if host is None or host.process != os.getpid():
        host = _THREAD.host = _LoopHost()
    return host


def _run_to_its_end(runner: asyncio.Runner, work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of `work`. On KeyboardInterrupt or SystemExit, wait for its end before raising, so that nothing
    of
    it stays on the loop for a later run."""
    task: asyncio.Task[_T] | None = None

    async def begin() -> _T:
        nonlocal task
        task = asyncio.current_task()
        return await work

    try:
        # Context variables that the caller set since the last run count, as with `await agent.run(…)`.
        return runner.run(begin(), context=contextvars.copy_context())
    except (KeyboardInterrupt, SystemExit):
        for _ in range(_ENDINGS):
            if task is not None and not task.done():
                with contextlib.suppress(KeyboardInterrupt, SystemExit):
                    runner.run(_ended(task))
        if task is not None and task.done() and not task.cancelled():
            task.exception()
        raise


async def _ended(task: asyncio.Task[Any]) -> None:
    await asyncio.wait([task])


def _settle(done: "Future[_T]", work: Callable[[], _T]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    results: list[_T] = []
    crash = notify(lambda: results.append(work()))
    if crash is not None:
        done.set_exception(crash.error)  # The caller's thread raises it.
    else:
        done.set_result(results[0])


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that is running in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _close_host(process: int, runner: asyncio.Runner, agents: "weakref.WeakSet[Agent[Any]]") -> None:
    """Close connections and loop when the thread or the program ends."""
    if process != os.getpid():
        runner.get_loop().close()  # The connections are the parent's.
    elif _running_loop() is not None:
        # The garbage collector may call this in any thread, even during another run.
        threading.Thread(target=_close_host, args=(process, runner, agents), name=_CLOSING).start()
    elif not runner.get_loop().is_running():
        for agent in list(agents):
            runner.run(contained(agent._disconnect()))  # pyright: ignore[reportPrivateUsage] - same module
        runner.close()


def _refuse_running_loop(name: str, instead: str) -> None:
    """Raise if the caller should await the async method instead."""
    if _running_loop() is not None:
        raise ConfigurationError(
            f"{name} cannot be called while an event loop is running in this thread; use `await agent.{instead}(…)`"
        )
