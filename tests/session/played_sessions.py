"""Sessions published event by event as by the engine, from a script that Hypothesis can vary."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentCreated,
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    CompactionEnded,
    CompactionStarted,
    ContextUsage,
    HookEnded,
    HookStarted,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    RunEnded,
    RunStarted,
    SessionCreated,
    SteeringDelivered,
    SteeringDropped,
    SteeringQueued,
    SteeringRequeued,
    StepEnded,
    StepRetry,
    StepStarted,
    SubagentEnded,
    SubagentStarted,
    ToolBatchEnded,
    ToolBatchStarted,
    ToolEnded,
    ToolOutput,
    ToolProgress,
    ToolQueued,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
    TurnStarted,
    UsageUpdated,
)
from tui_agent.protocol.messages import (
    AssistantMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.tool import ToolResult

SESSION = "played"


@dataclass(frozen=True)
class PlayedCall:
    """One call of an answer."""

    output: tuple[str, ...] = ()
    asks: bool = False
    hooked: bool = False
    early: bool = False
    """True if the call runs while the answer still streams."""
    runs: bool = True
    child: bool = False
    """True if the call starts a sub-agent."""
    text: str = "done"


@dataclass(frozen=True)
class PlayedStep:
    """One answer and its calls."""

    text: tuple[str, ...] = ("Hello",)
    calls: tuple[PlayedCall, ...] = ()
    retried: bool = False
    steer: str | None = None
    """Steering message sent while the calls run and delivered after them."""
    dropped: bool = False
    requeued: bool = False
    compacts: bool = False


@dataclass(frozen=True)
class PlayedRun:
    """One prompt."""

    prompt: str = "do it"
    steps: tuple[PlayedStep, ...] = (PlayedStep(),)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
played_calls = st.builds(
    PlayedCall,
    output=st.lists(texts, max_size=3).map(tuple),
    asks=st.booleans(),
    hooked=st.booleans(),
    early=st.booleans(),
    runs=st.booleans(),
    child=st.booleans(),
    text=texts,
)
played_steps = st.builds(
    PlayedStep,
    text=st.lists(texts, min_size=1, max_size=3).map(tuple),
    calls=st.lists(played_calls, max_size=3).map(tuple),
    retried=st.booleans(),
    steer=st.none() | texts,
    dropped=st.booleans(),
    requeued=st.booleans(),
    compacts=st.booleans(),
)
played_runs = st.builds(PlayedRun, prompt=texts, steps=st.lists(played_steps, min_size=1, max_size=3).map(tuple))
played_sessions = st.lists(played_runs, min_size=1, max_size=2).map(tuple)

FULL_SESSION = (
    PlayedRun(
        "fix the test\nplease\u2028now\u0085!",
        (
            PlayedStep(
                ("Let ", "me look.\n", "\u2028"),
                (
                    PlayedCall(("a\n", "b\n"), early=True),
                    PlayedCall(asks=True, hooked=True),
                    PlayedCall(child=True),
                    PlayedCall(runs=False),
                ),
                steer="also the changelog",
            ),
            PlayedStep(("Again", "."), retried=True, compacts=True),
        ),
    ),
    PlayedRun("and now?", (PlayedStep(("Done.",), steer="never mind", dropped=True),)),
)


class Player:
    """Publishes the events of a script in the engine's order."""

    def __init__(self, bus: EventBus) -> None:
        self.bus = bus
        self._runs = self._calls = self._messages = 0

    def begin(self, cwd: Path = Path("/somewhere")) -> None:
        self.bus.publish(SessionCreated(id=SESSION, path=None, cwd=str(cwd), version="0"))
        self.bus.publish(AgentCreated(model="scripted", tools=("work",), mode=PermissionMode.ASK))

    def play(self, script: Sequence[PlayedRun]) -> None:
        for run in script:
            self.run(run, "main", 0)

    def run(self, run: PlayedRun, agent: str, depth: int) -> str:
        self._runs += 1
        run_id = f"run_{self._runs}"
        where = Origin(session_id=SESSION, run_id=run_id, agent_id=agent, depth=depth)
        self._tell(RunStarted(input=run.prompt, trigger="prompt", model="scripted", mode=PermissionMode.ASK), where)
        self._user_message(UserMessage(content=_blocks(run.prompt or "?"), id=self._message_id(), timestamp=1), where)
        for index, step in enumerate(run.steps, start=1):
            self._step(step, index, Origin(SESSION, run_id, agent, None, depth, index, index))
        self._tell(RunEnded(reason="done", final_text="done"), where)
        return run_id

    def _step(self, step: PlayedStep, index: int, where: Origin) -> None:
        kind = "initial" if index == 1 else "tool_followup"
        self._tell(TurnStarted(index=index), where)
        self._tell(StepStarted(index=index, kind=kind), where)
        if step.compacts:
            self._tell(CompactionStarted(trigger="automatic", strategy="trim", tokens_before=9), where)
            self._tell(CompactionEnded(ok=True, tokens_after=5, removed=0), where)
        if step.retried:
            partial = self._message_id()
            self._tell(MessageStarted(message_id=partial, role="assistant"), where)
            self._tell(MessageDelta(message_id=partial, kind="text", delta="I wi"), where)
            self._tell(MessageDiscarded(message_id=partial, reason="the stream broke"), where)
            self._tell(StepRetry(attempt=2, max=10, wait_s=1.0, error_kind="network", discarded=True), where)
        message = self._answer(step, where)
        usage = Usage(input_tokens=10, output_tokens=2)
        self._tell(UsageUpdated(delta=usage, total=usage), where)
        if message.tool_calls:
            self._batch(step, message, where)
        self._tell(StepEnded(index=index, kind=kind, llm_ms=1.0, finish_reason=message.stop_reason, usage=usage), where)
        self._tell(TurnEnded(index=index, message_id=message.id, usage=usage), where)
        self._deliver(step, where)

    def _answer(self, step: PlayedStep, where: Origin) -> AssistantMessage:
        message_id = self._message_id()
        self._tell(MessageStarted(message_id=message_id, role="assistant"), where)
        for delta in step.text:
            self._tell(MessageDelta(message_id=message_id, kind="text", delta=delta), where)
            self._tell(ContextUsage(tokens=len(delta), window=100, source="estimate"), where)
        calls: list[ToolCall] = []
        streams = any(call.early for call in step.calls)
        for index, call in enumerate(step.calls):
            self._calls += 1
            calls.append(ToolCall(id=f"call_{self._calls}", name="work", arguments={"n": self._calls}))
            if streams:
                self._begin_batch(message_id, index, where)
                self._queue(calls[-1], index, where)
                if call.early:
                    self._work(call, calls[-1], index, where)
        message = AssistantMessage(
            content=(TextBlock(text="".join(step.text)), *calls),
            id=message_id,
            stop_reason="tool_use" if calls else "end_turn",
            timestamp=2,
        )
        self._tell(MessageEnded(message_id=message_id, message=message), where)
        return message

    def _batch(self, step: PlayedStep, message: AssistantMessage, where: Origin) -> None:
        pairs = list(zip(message.tool_calls, step.calls, strict=True))
        if not any(played.early for played in step.calls):
            for index, call in enumerate(message.tool_calls):
                self._begin_batch(message.id, index, where)
                self._queue(call, index, where)
        if step.steer is not None:
            self._type(step, where)
        for index, (call, played) in enumerate(pairs):
            if not played.early:
                self._work(played, call, index, where)
        for call, played in pairs:
            self._result(call, played, where)
        ids = tuple(call.id for call in message.tool_calls)
        ended = ToolBatchEnded(batch_id=f"batch_{message.id}", strategy="auto", call_ids=ids, total_ms=1, busy_ms=1)
        self._tell(ended, where)

    def _begin_batch(self, message_id: str, index: int, where: Origin) -> None:
        """Publish the batch before its first call."""
        if index == 0:
            self._tell(ToolBatchStarted(batch_id=f"batch_{message_id}", strategy="auto"), where)

    def _queue(self, call: ToolCall, index: int, where: Origin) -> None:
        self._tell(ToolQueued(call_id=call.id, name=call.name, args_raw=call.arguments, index=index), where)

    def _work(self, played: PlayedCall, call: ToolCall, index: int, where: Origin) -> None:
        if played.hooked:
            self._tell(HookStarted(event="before_tool", name="guard", call_id=call.id), where)
            self._tell(HookEnded(event="before_tool", name="guard", call_id=call.id, action="allow"), where)
        if played.asks:
            question = ApprovalRequested(
                request_id=f"ask_{call.id}", call_id=call.id, digest="d", tool=call.name, args=call.arguments
            )
            self._tell(question, where)
            self._tell(
                ApprovalResolved(request_id=f"ask_{call.id}", call_id=call.id, decision="approve", by="user"), where
            )
        if played.runs:
            self._run_call(played, call, where)
        self._tell(
            ToolEnded(
                call_id=call.id,
                name=call.name,
                index=index,
                status="ok" if played.runs else "denied_policy",
                is_error=not played.runs,
                content=_blocks(played.text),
                details={"n": index},
            ),
            where,
        )

    def _run_call(self, played: PlayedCall, call: ToolCall, where: Origin) -> None:
        self._tell(ToolStarted(call_id=call.id, name=call.name, args=call.arguments), where)
        if played.child and where.depth == 0:
            name = f"agent_{call.id}"
            self._tell(SubagentStarted(child_run_id="child", call_id=call.id, agent=name, task="look"), where)
            child_step = PlayedStep(calls=(PlayedCall(("x",)),))
            self.run(PlayedRun("look", (child_step, PlayedStep(("Seen.",)))), name, 1)
            self._tell(SubagentEnded(child_run_id="child", call_id=call.id, agent=name, status="ok"), where)
        total = 0
        for number, chunk in enumerate(played.output, start=1):
            total += len(chunk)
            self._tell(ToolOutput(call_id=call.id, stream="stdout", chunk=chunk, bytes_total=total), where)
            self._tell(ToolProgress(call_id=call.id, text=f"{number}"), where)
            partial = ToolResult.of_text(chunk)
            self._tell(ToolUpdated(call_id=call.id, partial=partial, n=number), where)

    def _result(self, call: ToolCall, played: PlayedCall, where: Origin) -> None:
        message = ToolResultMessage(
            call_id=call.id,
            tool_name=call.name,
            content=_blocks(played.text),
            is_error=not played.runs,
            details={"n": 0},
            id=self._message_id(),
            timestamp=3,
        )
        self._tell(MessageStarted(message_id=message.id, role="tool_result", call_id=call.id), where)
        self._tell(MessageEnded(message_id=message.id, message=message), where)

    def _type(self, step: PlayedStep, where: Origin) -> None:
        message = UserMessage(content=_blocks(step.steer or "?"), id=self._steer_id(where), kind="steer", timestamp=4)
        self._tell(
            SteeringQueued(message_id=message.id, kind="steer", text=message.text, position=0, message=message),
            where,
        )
        if step.requeued:
            again = SteeringRequeued(message_id=message.id, kind="steer", text=message.text, reason="not delivered")
            self._tell(again, where)
        if step.dropped:
            self._tell(SteeringDropped(message_id=message.id, kind="steer", text=message.text, reason="edited"), where)

    def _deliver(self, step: PlayedStep, where: Origin) -> None:
        """Every step ends with a user message, so that an answer never follows an answer."""
        steered = step.steer is not None and step.calls and not step.dropped
        text = (step.steer or "?") if steered else "go on"
        message_id = self._steer_id(where) if steered else self._message_id()
        message = UserMessage(content=_blocks(text), id=message_id, kind="steer", timestamp=4)
        if steered:
            self._tell(SteeringDelivered(message_id=message_id, kind="steer", text=text, boundary="after it"), where)
        self._user_message(message, where)

    def _user_message(self, message: UserMessage, where: Origin) -> None:
        self._tell(MessageStarted(message_id=message.id, role="user"), where)
        self._tell(MessageEnded(message_id=message.id, message=message), where)

    def _steer_id(self, where: Origin) -> str:
        return f"steer_{where.run_id}_{where.step}"

    def _message_id(self) -> str:
        self._messages += 1
        return f"msg_{self._messages}"

    def _tell(self, event: AgentEvent, where: Origin) -> None:
        self.bus.publish(event, where)


def play(script: Sequence[PlayedRun]) -> list[Envelope]:
    """Return all events of a session, unmerged."""
    bus = EventBus(Origin(session_id=SESSION))
    with bus.subscribe(merge=False) as subscription:
        player = Player(bus)
        player.begin()
        player.play(script)
        return subscription.drain()


def _blocks(text: str) -> tuple[TextBlock, ...]:
    return (TextBlock(text=text),)
