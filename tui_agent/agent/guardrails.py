"""Checks by code of the user: guardrails (S4-67 … S4-70), input filters, and hooks of runs.

Guardrails check requests, answers, calls and results, and may end a run. Filters pass, annotate or reject a message of
the user before it joins the conversation. Hooks of runs answer about prompts, the end of a run and compactions.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar, get_args

from tui_agent.context.history import ConversationHistory
from tui_agent.execution import GuardrailTrip, ToolGuardrails
from tui_agent.execution.contained_calls import Crash, asked, kind_of
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import AgentEvent, GuardrailTripped, InputRejected, InputSource, InputWarned, Warned
from tui_agent.protocol.messages import AssistantMessage, JsonObject, Message, TextBlock, ToolCall, UserMessage
from tui_agent.protocol.tool import Tool, ToolResult
from tui_agent.protocol.value_checks import (
    expect_choice,
    expect_flag,
    expect_kind,
    expect_members,
    refuse_unknown_fields,
    shown_value,
)

from .event_publisher import EventPublisher
from .stop_tokens import unless_cancelled

MAX_CONTINUATIONS = 8
"""Most times that hooks continue one run."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PromptCheck:
    """The answer about a message of the user."""

    refusal: str = ""
    """Reason why it is not sent; empty if it is."""
    by: str = ""
    """Name of the hook that refuses it."""
    notices: tuple[str, ...] = ()
    """Texts for the model that follow the message."""


class RunHooks(Protocol):
    """Hooks of one agent. If one raises, the agent publishes a warning and continues as without an answer."""

    async def check_prompt(self, message: UserMessage, /) -> PromptCheck:
        """Check a message of the user before it becomes part of the conversation."""
        ...

    async def before_end(self, answer: str, is_continued: bool, /) -> str | None:
        """Return why the run must not end yet, for the model; None: it may.

        Args:
            answer: the final answer.
            is_continued: True if a hook has already continued this run.
        """
        ...

    async def before_compaction(self, trigger: Literal["automatic", "manual"], focus: str, /) -> None:
        """Note that the conversation is about to be compacted; `focus` is what the user wants kept, or empty."""
        ...

    async def after_compaction(self) -> str | None:
        """Return a text for the model that follows a compaction; None or empty: none."""
        ...

    def for_sub_agent(self, agent_id: str, /) -> "RunHooks | None":
        """Return the hooks of a sub-agent; None: it has none."""
        ...


async def ask_run_hooks(
    publish: Callable[[AgentEvent], object],
    question: Callable[..., Awaitable[T]],
    *arguments: object,
    token: CancellationToken | None = None,
) -> T | None:
    """Return the answer of an agent's hooks; if they failed, publish a warning and return None.

    Raises:
        OperationCancelledError: `token` was set first.
    """
    asking = asked(question, *arguments, timeout=None)
    answer = await (asking if token is None else unless_cancelled(token, asking))
    if isinstance(answer, Crash):
        publish(Warned(code="hook_failed", text=f"A hook failed: {answer.text}"))
        return None
    return answer  # pyright: ignore[reportReturnType] — `asked` does not know the type


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class InputVerdict:
    """The verdict of a filter.

    Raises:
        ConfigurationError: a field is unknown or of the wrong kind: an action such as "block" would let all pass.
    """

    action: Literal["pass", "warn", "reject"] = "pass"
    """`warn`: `text` is appended to the message for the model; `reject`: the message is not sent."""
    text: str = ""
    """The note, or the reason for the rejection."""

    def __post_init__(self) -> None:
        expect_choice("InputVerdict.action", self.action, ("pass", "warn", "reject"))
        expect_kind("InputVerdict.text", self.text, str, "text")


class InputFilter(Protocol):
    """One filter; an agent calls its filters in the order of the configuration."""

    @property
    def name(self) -> str:
        """Its name in events."""
        ...

    def check(self, message: UserMessage) -> InputVerdict | Awaitable[InputVerdict]:
        """Check one message. An exception rejects it: a message that could not be checked does not pass."""
        ...


async def filtered(
    filters: Sequence[InputFilter], message: UserMessage, source: InputSource, publish: Callable[[AgentEvent], None]
) -> UserMessage | str:
    """Return the message with the notes of all filters, or the reason of the first filter that rejects it."""
    notes: list[TextBlock] = []
    for input_filter in filters:
        verdict = await asked(input_filter.check, message, timeout=None)
        if isinstance(verdict, Crash):
            # A filter exists to keep something out, so its failure keeps the message out.
            verdict = InputVerdict("reject", f"filter {input_filter.name} failed: {verdict.text}")
        if not isinstance(verdict, InputVerdict):
            verdict = InputVerdict("reject", f"filter {input_filter.name} answered {verdict!r}")
        match verdict.action:
            case "pass":
                pass
            case "warn":
                publish(InputWarned(filter=input_filter.name, text=verdict.text, source=source))
                notes.append(TextBlock(text=f"[Note by {input_filter.name}: {verdict.text}]"))
            case "reject":
                reason = verdict.text or f"filter {input_filter.name} refused it"
                publish(InputRejected(filter=input_filter.name, reason=reason, source=source))
                return reason
    return message.model_copy(update={"content": (*message.content, *notes)}) if notes else message


Severity = Literal["low", "medium", "high", "critical"]
GuardrailKind = Literal["input", "output", "tool_input", "tool_output"]


@dataclass(frozen=True, slots=True)
class GuardrailContext:
    """The data that a guardrail checks."""

    kind: GuardrailKind
    messages: Sequence[Message]
    """The conversation; for `output`, the answer is its last message."""
    system: str
    answer: AssistantMessage | None
    """The answer, for `output`."""
    step: int
    call: ToolCall | None = None
    """For `tool_input` and `tool_output`: the call, with the arguments in effect."""
    result: ToolResult | None = None
    """The result of the call, for `tool_output`."""


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class GuardrailDecision:
    """A guardrail's answer. Only one that does not pass and is a tripwire ends the run (S4-69); one that does not pass
    denies the call or withholds the result it looked at, tripwire or not.

    Raises:
        ConfigurationError: a field is unknown or of the wrong kind: a text such as "no" would count as passed.
    """

    passed: bool
    tripwire: bool = False
    reason: str = ""
    severity: Severity = "medium"

    def __post_init__(self) -> None:
        expect_flag("GuardrailDecision.passed", self.passed)
        expect_flag("GuardrailDecision.tripwire", self.tripwire)
        expect_kind("GuardrailDecision.reason", self.reason, str, "text")
        expect_choice("GuardrailDecision.severity", self.severity, get_args(Severity))


class Guardrail(Protocol):
    """One check. Guardrails of a kind are called in the order of the configuration."""

    @property
    def name(self) -> str:
        """Its name in events."""
        ...

    @property
    def kind(self) -> GuardrailKind:
        """`input`: before each request; `output`: after each answer, before its calls are awaited (S4-68);
        `tool_input`: before a call is judged; `tool_output`: before its result is shown to anyone."""
        ...

    async def check(self, context: GuardrailContext) -> GuardrailDecision:
        """Check the context. An exception counts as a tripwire: data that could not be checked does not pass."""
        ...


def expect_guardrail(name: str, guardrail: Guardrail) -> None:
    """Refuse an object that is not a guardrail, or that would never be asked because its kind is unknown.

    Args:
        name: the field, for the error.
        guardrail: the object to check.

    Raises:
        ConfigurationError: it lacks `name`, `kind` or `check`, or its kind is not a `GuardrailKind`.
    """
    expect_members(name, guardrail, ("name", "kind", "check"), "a guardrail")
    kinds = get_args(GuardrailKind)
    if guardrail.kind not in kinds:
        shown = shown_value(guardrail.kind)
        raise ConfigurationError(
            f"{name}: guardrail {guardrail.name} has no kind {shown}; there are {', '.join(kinds)}"
        )


async def first_trip(
    guardrails: Iterable[Guardrail], context: GuardrailContext, publish: Callable[[AgentEvent], None]
) -> str | None:
    """Call the guardrails of the context's kind in order, and publish those that do not pass.

    Returns:
        The reason of the first tripwire, after which no guardrail is called; None if there was none.
    """
    for guardrail in guardrails:
        trip = await _trip_of(guardrail, context)
        if trip is None:
            continue
        publish(_tripped(trip, context.kind))
        if trip.halts:
            return trip.reason
    return None


async def _trip_of(guardrail: Guardrail, context: GuardrailContext) -> GuardrailTrip | None:
    """Return the objection of a guardrail; None if it has none, or checks something else."""
    if guardrail.kind != context.kind:
        return None
    decision = await decision_of(guardrail, context)
    if decision.passed:
        return None
    return GuardrailTrip(guardrail.name, decision.reason, decision.severity, halts=decision.tripwire)


def _tripped(trip: GuardrailTrip, lane: GuardrailKind) -> GuardrailTripped:
    return GuardrailTripped(name=trip.name, lane=lane, severity=trip.severity, reason=trip.reason, halted=trip.halts)


async def decision_of(guardrail: Guardrail, context: GuardrailContext) -> GuardrailDecision:
    """Return a guardrail's decision. A failure is a tripwire, and a decision that does not pass has a reason."""
    answer = await asked(guardrail.check, context, timeout=None)
    if isinstance(answer, GuardrailDecision):
        no_word = not answer.passed and not answer.reason
        return replace(answer, reason=f"guardrail {guardrail.name} did not pass") if no_word else answer
    why = f"answered a {type(answer).__name__}"
    if isinstance(answer, Crash):
        # The text of the exception may contain the result that must be withheld.
        why = f"failed: {kind_of(answer) if context.kind == 'tool_output' else answer.text}"
    reason = f"guardrail {guardrail.name} {why}"
    return GuardrailDecision(passed=False, tripwire=True, reason=reason, severity="critical")


class AgentToolGuardrails:
    """Checks an agent's calls with its guardrails. One that does not pass denies the call or withholds the result; a
    tripwire also ends the run, and no later guardrail is called (S4-69)."""

    def __init__(
        self, guardrails: Sequence[Guardrail], history: ConversationHistory, publisher: EventPublisher
    ) -> None:
        self._guardrails = guardrails
        self._history = history
        self._publisher = publisher

    async def check_input(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> GuardrailTrip | None:
        """Check a call, with the arguments in effect; None: it passes."""
        return await self._first_trip("tool_input", call.model_copy(update={"arguments": arguments}), None)

    async def check_output(self, call: ToolCall, result: ToolResult) -> GuardrailTrip | None:
        """Check the result of a call; None: it passes."""
        return await self._first_trip("tool_output", call, result)

    async def _first_trip(self, kind: GuardrailKind, call: ToolCall, result: ToolResult | None) -> GuardrailTrip | None:
        context = GuardrailContext(
            kind,
            self._history.messages(),
            self._history.system,
            answer=None,
            step=self._publisher.origin.step or 0,
            call=call,
            result=result,
        )
        verdict: GuardrailTrip | None = None
        for guardrail in self._guardrails:
            trip = await _trip_of(guardrail, context)
            if trip is None:
                continue
            if verdict is not None:
                # The caller publishes the verdict itself, so only the other trip is published here.
                self._publisher.publish(_tripped(verdict if trip.halts else trip, kind))
            if trip.halts:
                return trip
            verdict = verdict or trip
        return verdict


def tool_lanes(
    guardrails: Sequence[Guardrail], history: ConversationHistory, publisher: EventPublisher
) -> ToolGuardrails | None:
    """Return the guardrails for calls and results; None if the agent has none."""
    # Without any, calls pass no guardrail stage at all, and reports are live.
    asked = tuple(guardrail for guardrail in guardrails if guardrail.kind in ("tool_input", "tool_output"))
    if not asked:
        return None
    checks = AgentToolGuardrails(asked, history, publisher)
    looks_at_results = any(guardrail.kind == "tool_output" for guardrail in asked)
    return ToolGuardrails(checks.check_input, checks.check_output if looks_at_results else None)
