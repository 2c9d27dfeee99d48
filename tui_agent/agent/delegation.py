"""Sub-agents: one with a task of its own, several in a row, several at once (S4-79 … S4-81), and their kinds.

A sub-agent never has more tools or rights than its parent: the same policy judges its calls, and its approval requests
go to the same gate under its own name.
"""

import asyncio
import inspect
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Literal, TypeAlias, get_args

from tui_agent.context.registry import CONTEXT_LAYER, SYSTEM_LAYER, layer_text, write_layer
from tui_agent.execution import as_tool
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import SubagentEnded, SubagentStarted
from tui_agent.protocol.messages import new_id
from tui_agent.protocol.provider import ModelProvider
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.value_checks import expect_choice, expect_function, expect_items, expect_kind

from .limit_settings import DEFAULT_MAX_STEPS
from .loop import AgentLoop

MAX_LISTED = 10_000
"""Most characters of the list of kinds for the model."""
LISTED_DESCRIPTION = 500
"""Most characters of a description in it."""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """A kind of sub-agent. It has the rights of its parent and of this profile, whichever are tighter."""

    name: str
    description: str
    prompt: str
    """Its system prompt."""
    allows: Callable[[str], bool] | None = None
    """Returns True for the names of the tools that it may have; None: all of its parent's."""
    provider: Callable[[], ModelProvider] | None = None
    """Returns the model that it uses; None: that of its parent.

    Raises:
        ConfigurationError: the model cannot be used.
    """
    max_steps: int | None = None
    """Most steps of its run; None: as many as any sub-agent."""


def listed_profiles(profiles: Sequence[AgentProfile]) -> str:
    """Return names and descriptions for the model; if not all fit, it says how many are left out."""
    lines: list[str] = []
    room = MAX_LISTED
    for profile in profiles:
        description = " ".join(profile.description.split())
        cut = "…" if len(description) > LISTED_DESCRIPTION else ""
        line = f"- {profile.name}: {description[:LISTED_DESCRIPTION]}{cut}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    left_out = len(profiles) - len(lines)
    return "\n".join([*lines, *([f"({left_out} more are not listed for lack of room.)"] if left_out else [])])


MAX_DEPTH = 3
"""Most levels of sub-agents below the root."""

OWNER = "chain"

ContextChoice = Literal["fork", "fresh"]
"""`fork`: the sub-agent starts with the conversation so far (S4-79); `fresh`: with its task alone."""

Link: TypeAlias = AgentLoop | Callable[[str], str | Awaitable[str]]
"""One link of a chain: an agent, or a function of the previous text."""

CONSOLIDATE_PROMPT = """\
Several agents worked on parts of one request. Combine their results into one answer: keep every fact that \
matters, say where they disagree, and name what failed. The results:
"""

ANOTHER_ROUND_PROMPT = """\
You and other agents worked on this and on the tasks below. Review all results, your own included: correct \
what is wrong, keep what is right, and give your complete result again. The results so far:
"""

Judge: TypeAlias = Callable[[Sequence[AgentRunReport]], bool | Awaitable[bool]]
"""Returns True if the results of a round, in the order of the tasks, are good enough."""


class AgentBoundTool(Tool):
    """A tool that belongs to one agent, so that a sub-agent needs one of its own."""

    @abstractmethod
    def bound_to(self, agent: AgentLoop) -> Tool:
        """Return a new tool of this kind that belongs to `agent`; this one stays as it is."""


@dataclass(frozen=True, slots=True)
class ChainResult:
    """The results of a chain."""

    texts: tuple[str, ...]
    """The text of each link that finished."""
    failed: AgentRunReport | None = None
    """The report of the agent that did not finish; None: the chain is complete."""

    @property
    def text(self) -> str:
        """The text of the last link that finished."""
        return self.texts[-1] if self.texts else ""


async def delegate(
    parent: AgentLoop,
    task: str,
    *,
    context: ContextChoice = "fork",
    tools: Sequence[str] | None = None,
    name: str = "agent",
    profile: AgentProfile | None = None,
    call_id: str = "",
    max_steps: int | None = DEFAULT_MAX_STEPS,
    cancellation: CancellationToken | None = None,
) -> AgentRunReport:
    """Run a sub-agent to its end and return its report; a run that fails is reported, not raised (S4-79).

    Args:
        parent: the agent for which it works.
        task: the text of its first message.
        context: `fork` starts with a copy of the parent's conversation so far, `fresh` with an empty one.
        tools: names of the parent's tools it may use; None: all of them.
        name: the first part of its agent id, unless a profile names it.
        profile: its prompt, tools and model; None: those of the parent.
        call_id: the call that started it; empty if none did.
        max_steps: the maximum number of steps of its run; None: no limit.
        cancellation: aborts the run once it is cancelled; the report then has the reason `aborted`.

    Raises:
        ConfigurationError: the sub-agent would be deeper than `MAX_DEPTH`, the parent has no tool of a name, or an
            argument is of the wrong kind.
        asyncio.CancelledError: the asyncio task that waits here was cancelled; the sub-agent has ended by then.
    """
    _check_delegation(parent, context, cancellation)
    expect_kind("delegate(task)", task, str, "text")
    if tools is not None:
        expect_items("delegate(tools=…)", tools, _expect_name, "a list of names of tools or None")
    agent_id = f"{name if profile is None else profile.name}-{new_id('').strip('_')[:6]}"
    child = _made(parent, agent_id, context, tools, profile, call_id, max_steps)
    run_id, bus, origin = new_id("run"), parent.bus, parent.origin
    bus.publish(SubagentStarted(child_run_id=run_id, call_id=call_id, agent=agent_id, task=task), origin)
    try:
        with parent.running_child(child):
            return await child.run(task, trigger="subagent", cancellation=cancellation, run_id=run_id)
    finally:
        ended = SubagentEnded(child_run_id=run_id, call_id=call_id, agent=agent_id, status="error")
        # None if it ended before its run began.
        for report in child.reports[-1:]:
            told = {"status": report.reason, "text": report.final_text, "usage": report.total_usage}
            ended = ended.model_copy(update=told)
        bus.publish(ended, origin)


async def chain(links: Sequence[Link], text: str) -> ChainResult:
    """Run agents and functions one after another; the output of each is the input of the next (S4-80).

    From the second link on, an agent gets the text as its layer `agentloop.context`, too. An agent that does not finish
    ends the chain. Exceptions of functions are not caught.

    Raises:
        ConfigurationError: a link is neither an AgentLoop nor a function, or `text` is not text; nothing was started.
    """
    # All checked first, so that a wrong link does not waste the work of those before it.
    links = expect_items("chain(links)", links, _expect_link, "a list of AgentLoops and functions")
    expect_kind("chain(text)", text, str, "text")
    texts: list[str] = []
    for link in links:
        if isinstance(link, AgentLoop):
            # The first agent reads the text as its input anyway.
            if texts:
                write_layer(link.history.registry, CONTEXT_LAYER, f"Output of the previous step:\n\n{text}", OWNER)
            report = await link.run(text)
            if report.reason != "done":
                return ChainResult(tuple(texts), report)
            text = report.final_text
        else:
            given = link(text)
            text = await given if inspect.isawaitable(given) else given
        texts.append(text)
    return ChainResult(tuple(texts))


async def consolidate(
    parent: AgentLoop,
    tasks: Sequence[str],
    *,
    context: ContextChoice = "fork",
    request: str = CONSOLIDATE_PROMPT,
    rounds: int = 1,
    judge: Judge | None = None,
    cancellation: CancellationToken | None = None,
) -> AgentRunReport:
    """Run one sub-agent a task at the same time, and another that combines their results (S4-81).

    The results are passed on in the order of the tasks, failed ones marked. Returns the report of the last sub-agent.

    Args:
        parent: the agent for which they work.
        tasks: one task for each sub-agent.
        context: the conversation they start with.
        request: the instruction for the sub-agent that combines the results.
        rounds: rounds of work; from the second on, each sub-agent gets the results of all.
        judge: called after each round but the last; True ends the work early. Its exceptions are not caught. None: all
            rounds are done.
        cancellation: aborts all of them once it is cancelled; None: nothing does.

    Raises:
        ConfigurationError: see `delegate`, or `rounds` is less than 1; nothing was started.
    """
    _check_delegation(parent, context, cancellation)
    tasks = expect_items("consolidate(tasks)", tasks, _expect_task, "a list of tasks")
    expect_kind("consolidate(request=…)", request, str, "text")
    expect_function("consolidate(judge=…)", judge, "a function or None", optional=True)
    expect_kind("consolidate(rounds=…)", rounds, int, "a whole number")
    if parent.origin.depth >= MAX_DEPTH:
        # Checked here, too, because the tasks would all fail one by one.
        raise _too_deep()
    if rounds < 1:
        raise ConfigurationError(f"rounds of sub-agents must be 1 or more, got {rounds}")

    async def work(words: Sequence[str]) -> list[AgentRunReport]:
        async with asyncio.TaskGroup() as group:
            working = [
                group.create_task(delegate(parent, word, context=context, name=f"part{n}", cancellation=cancellation))
                for n, word in enumerate(words, 1)
            ]
        return [each.result() for each in working]

    reports = await work(tasks)
    for _ in range(rounds - 1):
        if judge is not None:
            verdict = judge(reports)
            if await verdict if inspect.isawaitable(verdict) else verdict:
                break
        reports = await work([_once_more(place, tasks, reports) for place in range(len(tasks))])
    words = "\n\n".join([request.strip(), *_found(tasks, reports)])
    return await delegate(parent, words, context="fresh", tools=(), name="together", cancellation=cancellation)


def _check_delegation(parent: object, context: object, cancellation: object) -> None:
    """
    Raises:
        ConfigurationError: an argument of `delegate` or `consolidate` is of the wrong kind.
    """
    expect_kind("the parent of a sub-agent", parent, AgentLoop, "an AgentLoop")
    expect_choice("context of a sub-agent", context, get_args(ContextChoice))
    kinds = (CancellationToken, NoneType)
    expect_kind("the cancellation of a sub-agent", cancellation, kinds, "a CancellationToken or None")


def _expect_name(name: str, value: object) -> None:
    expect_kind(name, value, str, "the name of a tool")


def _expect_task(name: str, value: object) -> None:
    expect_kind(name, value, str, "text")


def _expect_link(name: str, value: object) -> None:
    if not isinstance(value, AgentLoop):
        expect_function(name, value, "an AgentLoop or a function of the previous text")


def _found(tasks: Sequence[str], reports: Sequence[AgentRunReport]) -> list[str]:
    """Return each task with its result."""
    return [f"## {task}\n\n{outcome_text(report)}" for task, report in zip(tasks, reports, strict=True)]


def _once_more(place: int, tasks: Sequence[str], reports: Sequence[AgentRunReport]) -> str:
    """Return a task with the results of the previous round."""
    return "\n\n".join([tasks[place], ANOTHER_ROUND_PROMPT.strip(), *_found(tasks, reports)])


def outcome_text(report: AgentRunReport) -> str:
    """Return the text of a sub-agent; if it did not finish or is silent, the reason and its last text."""
    text = report.final_text.strip()
    if report.reason == "done" and text:
        return text
    why = f": {report.error}" if report.error else ""
    said = f"\n\nIts last text:\n{text}" if text else ""
    reason = report.reason if report.reason != "done" else "it gave no answer"
    return f"The sub-agent did not finish ({reason}{why}).{said}"


def _made(
    parent: AgentLoop,
    agent_id: str,
    context: ContextChoice,
    tools: Sequence[str] | None,
    profile: AgentProfile | None,
    call_id: str,
    max_steps: int | None,
) -> AgentLoop:
    if parent.origin.depth >= MAX_DEPTH:
        raise _too_deep()
    config = parent.child_config(agent_id, call_id or None)
    own = [as_tool(tool) for tool in config.tools]
    chosen = own if tools is None else [tool for tool in own if tool.name in tools]
    unknown = set(tools or ()) - {tool.name for tool in chosen}
    # Silently fewer tools would look like a model that does not use them.
    if unknown:
        raise ConfigurationError(f"a sub-agent cannot have tools that its parent lacks: {', '.join(sorted(unknown))}")
    if profile is not None and profile.allows is not None:
        chosen = [tool for tool in chosen if profile.allows(tool.name)]
    # Tools for the main agent alone, such as a plan, must be asked for by name.
    chosen = [tool for tool in chosen if not tool.for_main_agent or tool.name in (tools or ())]
    plain = tuple(tool for tool in chosen if not isinstance(tool, AgentBoundTool))
    config = replace(config, tools=plain, max_steps=max_steps)
    if context == "fork":
        fork = parent.history.fork(agent_id)
        # The call that starts the sub-agent has no result yet; a server would refuse the conversation.
        fork.drop_open_step()
        registry, system = fork.registry, config.system
        config = replace(
            config,
            history=fork,
            # The fork has all layers, so nothing of the configuration may be written over them.
            layers=(),
            workspace=None,
            system=layer_text(registry, SYSTEM_LAYER) if isinstance(system, str) else system,
            context=layer_text(registry, CONTEXT_LAYER),
        )
    if profile is not None:
        provider = config.provider if profile.provider is None else profile.provider()
        limits = [limit for limit in (max_steps, profile.max_steps) if limit is not None]
        config = replace(config, system=profile.prompt, provider=provider, max_steps=min(limits, default=None))
    child = AgentLoop(config)
    # At the deepest level a tool that starts agents could only fail.
    if child.origin.depth < MAX_DEPTH:
        for tool in chosen:
            if isinstance(tool, AgentBoundTool):
                child.add_tool(tool.bound_to(child))
    return child


def _too_deep() -> ConfigurationError:
    return ConfigurationError(f"sub-agents can be nested at most {MAX_DEPTH} levels deep; do this part yourself")
