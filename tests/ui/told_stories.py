"""Stories of any events that an agent may publish, and the facts about them, recomputed from the events alone.

`facts_of` shares no code with the screen: it looks at the whole list again for each fact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from tests.ui.story import Story
from tui_agent.agent.event_publisher import StatusState, fold_status, status_of
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BackgroundEnded,
    BackgroundStarted,
    CompactionEnded,
    CompactionStarted,
    ContextUsage,
    FileChanged,
    RunEnded,
    RunStarted,
    SessionForked,
    SessionLoaded,
    StatusChanged,
    StepRetry,
    StepStarted,
    SubagentStarted,
    TodoItem,
    TodoUpdated,
    ToolEnded,
    ToolQueued,
    ToolStarted,
    ToolStatus,
    UsageUpdated,
)
from tui_agent.protocol.messages import TextBlock, Usage

Step = tuple[str, int, float]
"""Name of a method of `ToldStory`, a number to choose with, and the seconds before it."""

ENDS: tuple[ToolStatus, ...] = ("ok", "error", "timeout", "denied_policy", "skipped_user", "cancelled", "interrupted")
SIGNS = {
    "queued": "◌",
    "asking": "▲",
    "ok": "✔",
    "error": "✖",
    "timeout": "⏱",
    "denied_policy": "⊘",
    "denied_user": "⊘",
    "skipped_user": "⤼",
    "cancelled": "■",
    "interrupted": "?",
    "background": "»",
}
"""Signs of the states of a call, as the contract of the screen lists them; a running call has any of the spinner."""


class ToldStory(Story):
    """A session that any steps can continue; a step that is not possible now does nothing."""

    def __init__(self) -> None:
        self._state = StatusState()
        self._status: StatusChanged | None = None
        super().__init__()
        self.root = self.origin
        self.running = False
        self.steps = self.runs = self.jobs = 0
        self.open: dict[str, tuple[str, bool]] = {}
        """Tool of each call that has not ended, and True once it has started."""
        self.asked: dict[str, str] = {}
        self.agents: list[str] = []
        """Calls whose sub-agents work."""
        self.above: dict[str, str] = {}

    def tell(self, event: AgentEvent) -> Envelope:
        """Add an event, and the status that the agent publishes after it."""
        told = super().tell(event)
        if self.origin.depth == 0 and not isinstance(event, StatusChanged):
            self._state = fold_status(self._state, event)
            status = status_of(self._state)
            if self._status is not None and status != self._status:
                super().tell(status)
            self._status = status
        return told

    def status(self, status: object, detail: str = "") -> Story:
        """Leave the status to `tell`."""
        return self

    # --- steps --------------------------------------------------------------------------------------------------------

    def prompt(self, _: int) -> None:
        """Begin a run."""
        if not self.running:
            self.runs, self.steps, self.running = self.runs + 1, 0, True
            self.run(f"prompt {self.runs}", f"r{self.runs}")
            self.root = self.origin
            self.model_step(0)

    def model_step(self, number: int) -> None:
        """Ask the model and get an answer."""
        if self.running:
            self.step(self.steps).answer(f"Step {number}.", tokens=1_000 + 777 * number + 31 * len(self.envelopes))
            self.steps += 1
            self.root = self.origin

    def retry(self, number: int) -> None:
        """Repeat a request that failed."""
        if self.running:
            self.step(self.steps)
            self.steps += 1
            self.root = self.origin
            self.tell(StepRetry(attempt=2, max=9, wait_s=5.0 + number, error_kind="overloaded", text="Overloaded"))

    def call_tool(self, number: int) -> None:
        """Queue a call of the agent."""
        if self.running:
            tool = ("bash", "read", "edit")[number % 3]
            self.open[self.queued(tool, self._words)] = (tool, False)

    def delegate(self, number: int) -> None:
        """Start a sub-agent."""
        if self.running and len(self.agents) < 2:
            words = self._words
            call_id = self.queued("agent", words)
            self.started(call_id, "agent", words)
            self.tell(SubagentStarted(child_run_id=call_id, call_id=call_id, agent=f"agent-{number}", task="Task"))
            self.open[call_id] = ("agent", True)
            self.agents.append(call_id)

    def call_within(self, number: int) -> None:
        """Queue a call of a sub-agent."""
        if self.agents:
            parent = self.agents[number % len(self.agents)]
            self._within(parent)
            call_id = self.queued("bash", self._words)
            self.open[call_id], self.above[call_id] = ("bash", False), parent
            self.origin = self.root

    def start(self, number: int) -> None:
        """Start a queued call that does not ask."""
        if call_id := self._choose(number, lambda one: not self.open[one][1] and one not in self.asked.values()):
            tool, _ = self.open[call_id]
            self._within(self.above.get(call_id))
            self.started(call_id, tool, f"it-{call_id}")
            self.open[call_id] = (tool, True)
            self.origin = self.root

    def ask(self, number: int) -> None:
        """Ask about a queued call."""
        if call_id := self._choose(number, lambda one: not self.open[one][1] and one not in self.asked.values()):
            self._within(self.above.get(call_id))
            self.asked[self.asks(call_id, self.open[call_id][0], f"it-{call_id}", "no rule")] = call_id
            self.origin = self.root

    def allow(self, number: int) -> None:
        """Answer a question."""
        if self.asked:
            request = list(self.asked)[number % len(self.asked)]
            call_id = self.asked.pop(request)
            self._within(self.above.get(call_id))
            self.resolved(request, call_id)
            self.origin = self.root

    def change_file(self, number: int) -> None:
        """Change a file with a running call."""
        if call_id := self._choose(number, lambda one: self.open[one][1] and one not in self.above):
            self.tell(FileChanged(path=f"f{number}.py", change="modified", added=number, removed=1, call_id=call_id))

    def finish(self, number: int) -> None:
        """End a call that has started; an agent ends after its calls."""
        if call_id := self._choose(number, lambda one: self.open[one][1] and one not in self.above.values()):
            self._end(call_id, ENDS[number % len(ENDS)])

    def print_lines(self, number: int) -> None:
        """End a command that printed lines."""
        if call_id := self._choose(number, lambda one: self.open[one] == ("bash", True)):
            lines = "\n".join(f"{call_id} line {place}" for place in range(1 + 8 * number**2))
            self._end(call_id, ENDS[number % 2], text=lines)

    def spend(self, number: int) -> None:
        """Count tokens and cost."""
        tokens = Usage(input_tokens=10, output_tokens=5)
        self.tell(UsageUpdated(delta=tokens, total=tokens, cost=number * 0.007 if number else None))

    def plan(self, number: int) -> None:
        """Plan."""
        states = ["done"] * (number % 4) + ["in_progress"] + ["pending"] * (number % 3)
        items = tuple(TodoItem(text=f"item {place}", status=state) for place, state in enumerate(states))  # type: ignore[arg-type]
        if self.running:
            self.tell(TodoUpdated(items=items))

    def leave(self, number: int) -> None:
        """Leave a command running in the background: that of a call which runs, if there is one."""
        self.jobs += 1
        task = f"bash_{self.jobs}"
        call_id = self._choose(number, lambda one: self.open[one] == ("bash", True))
        self._within(self.above.get(call_id))
        self.tell(BackgroundStarted(task_id=task, kind="shell", command="npm run dev"))
        if call_id:
            self._end(call_id, "ok", details={"task_id": task})
        self.origin = self.root

    def end_job(self, number: int) -> None:
        """End a background command."""
        if self.jobs:
            self.tell(BackgroundEnded(task_id=f"bash_{1 + number % self.jobs}", kind="shell", status="exited", code=0))

    def compact(self, number: int) -> None:
        """Compact the conversation."""
        if self.running and not self.open:
            before, after = 150_000 + number, 9_000 + 500 * number
            self.tell(CompactionStarted(trigger="automatic", strategy="summary", tokens_before=before))
            self.wait(1.5)
            self.tell(CompactionEnded(ok=True, tokens_before=before, tokens_after=after, removed=3))
            self.tell(ContextUsage(tokens=after, window=200_000, source="estimate"))

    def end_run(self, number: int) -> None:
        """End the run: as it should, or cancelled with all that was open."""
        if self.running:
            for call_id in reversed(list(self.open)):
                self._end(call_id, "cancelled")
            self.running = False
            self.tell(RunEnded(reason="done" if number % 2 else "aborted", total_ms=1.0))

    def fork(self, number: int) -> None:
        """Continue in a fork: another process, whose clock began elsewhere."""
        if self.envelopes and not self.running:
            self.now += 50_000.0
            self.tell(SessionForked(id="s2", parent="s1", at_seq=len(self.envelopes)))
            self._rest()

    def crash(self, _: int) -> None:
        """Resume after a crash: whatever ran has no end."""
        self.now += 50_000.0
        self._rest()

    def _rest(self) -> None:
        self.open.clear()
        self.asked.clear()
        self.agents.clear()
        self.running, self._state, self.jobs = False, StatusState(), 0
        self.tell(SessionLoaded(id="s1"))

    @property
    def _words(self) -> str:
        """The words of the next call, which no other has."""
        return f"it-c{self._calls + 1}"

    def _end(self, call_id: str, status: ToolStatus, **fields: object) -> None:
        tool, _ = self.open.pop(call_id)
        for request, asking in list(self.asked.items()):
            if asking == call_id:
                del self.asked[request]
                self._within(self.above.get(call_id))
                self.tell(ApprovalResolved(request_id=request, call_id=call_id, decision="deny", by="cancel"))
        self._within(self.above.pop(call_id, None))
        if call_id in self.agents:
            self.agents.remove(call_id)
        self.ended(call_id, tool, status, **{"latency_ms": 10.0 + 130.0 * len(self.envelopes), **fields})
        self.origin = self.root

    def _choose(self, number: int, fits: Callable[[str], bool]) -> str:
        found = [call_id for call_id in self.open if fits(call_id)]
        return found[number % len(found)] if found else ""

    def _within(self, parent: str | None) -> None:
        if parent is not None:
            self.origin = replace(self.root, run_id=parent, agent_id="agent-b6aefc", parent_call_id=parent, depth=1)


STEPS = (
    *("model_step", "call_tool", "call_tool", "call_tool", "start", "start", "start", "start", "ask", "ask", "allow"),
    *("finish", "finish", "finish", "print_lines", "print_lines", "delegate", "call_within", "call_within"),
    *("change_file", "change_file", "plan", "leave", "end_job", "spend", "retry", "compact"),
    *("end_run", "fork", "crash"),
)


def told_stories() -> st.SearchStrategy[list[Step]]:
    """Return lists of steps of a story. A step that needs a run begins one, so that few do nothing."""
    step = st.tuples(st.sampled_from(STEPS), st.integers(0, 11), st.sampled_from((0.0, 0.4, 1.3, 7.0, 65.0)))
    return st.lists(step, min_size=8, max_size=40)


def tell(steps: Sequence[Step]) -> ToldStory:
    """Return the story of these steps."""
    story = ToldStory()
    story.prompt(0)
    for name, number, seconds in steps:
        story.wait(seconds)
        if name not in ("leave", "end_job", "end_run", "fork", "crash", "spend"):
            story.prompt(0)
        getattr(story, name)(number)
    return story


# --- the facts, from the events ---------------------------------------------------------------------------------------


@dataclass
class CallFacts:
    """Facts about one call, from the events."""

    call_id: str
    number: int
    tool: str
    depth: int
    state: str
    """`queued`, `asking`, `running`, or how it ended."""
    since: float = 0.0
    """Time of its start."""
    in_run: bool = False
    parent: str | None = None
    lasted: float = 0.0
    """Seconds of execution, as its end reports them."""
    lines: int = 0
    """Number of lines that it printed."""


@dataclass
class Facts:
    """Facts about the session, from the events."""

    calls: list[CallFacts]
    asking: int
    busy: bool
    run_began: float | None
    """Start of the run in progress; None if there is none."""
    step: int | None
    tokens: int
    cost: float
    jobs: int
    plan: tuple[int, int]
    files: dict[str, tuple[int, int]]
    """Added and removed lines of each changed file."""
    retry_at: float | None
    timeline: bool
    """True if a run of this session, not of the one that it was forked from, can be shown."""
    running: list[CallFacts] = field(default_factory=list[CallFacts])

    def __post_init__(self) -> None:
        self.running = [call for call in self.calls if call.state == "running"]

    def sign_of(self, call: CallFacts) -> str:
        """Return the sign of a call; empty for a spinner."""
        inner = (one.state == "asking" for one in self.calls if one.parent == call.call_id)
        return SIGNS["asking"] if call.state == "running" and any(inner) else SIGNS.get(call.state, "")


def facts_of(told: Sequence[Envelope]) -> Facts:
    """Return the facts about these events."""
    events = [(envelope.event, envelope) for envelope in told]
    root = [(event, envelope) for event, envelope in events if envelope.origin.depth == 0]
    last_load = max((place for place, (event, _) in enumerate(events) if isinstance(event, SessionLoaded)), default=-1)
    last_fork = max((place for place, (event, _) in enumerate(events) if isinstance(event, SessionForked)), default=-1)
    starts = [
        place for place, (event, one) in enumerate(events) if isinstance(event, RunStarted) and not one.origin.depth
    ]
    ends = [place for place, (event, one) in enumerate(events) if isinstance(event, RunEnded) and not one.origin.depth]
    run_at = starts[-1] if starts else -1
    busy = run_at > max([last_load, *ends])
    calls: list[CallFacts] = []
    for place, (event, envelope) in enumerate(events):
        if isinstance(event, ToolQueued):
            own = [(one, at) for one, at in events[place:] if getattr(one, "call_id", None) == event.call_id]
            later = [one for one, _ in events[place:]]
            state, since, lasted, lines = "queued", 0.0, 0.0, 0
            for one, at in own:
                if isinstance(one, ToolStarted):
                    state, since = "running", at.mono
                elif isinstance(one, ApprovalRequested):
                    state = "asking"
                elif isinstance(one, ApprovalResolved):
                    state = "queued"
                elif isinstance(one, ToolEnded):
                    state, lasted = one.status, one.latency_ms / 1_000
                    lines = len(text_of(one).splitlines())
                    if task := (one.details or {}).get("task_id"):
                        state = background_state(str(task), later)
            if state in ("queued", "asking", "running") and any(isinstance(one, SessionLoaded) for one in later):
                state = "interrupted"
            number = 1 + sum(isinstance(one, ToolQueued) for one, _ in events[:place])
            origin = envelope.origin
            facts = (number, event.name, origin.depth, state, since, place > run_at, origin.parent_call_id, lasted)
            calls.append(CallFacts(event.call_id, *facts, lines))
    sizes = [
        event.tokens if isinstance(event, ContextUsage) else event.tokens_after
        for event, _ in root
        if isinstance(event, ContextUsage | CompactionEnded)
    ]
    begun = {event.task_id for event, _ in events[last_load + 1 :] if isinstance(event, BackgroundStarted)}
    over = {event.task_id for event, _ in events[last_load + 1 :] if isinstance(event, BackgroundEnded)}
    changes = [event for event, _ in events if isinstance(event, FileChanged)]
    plans = [event.items for event, _ in root if isinstance(event, TodoUpdated)]
    retries = [(place, event) for place, (event, _) in enumerate(events) if isinstance(event, StepRetry)]
    is_retrying = bool(retries) and not any(
        isinstance(event, StepStarted | RunEnded | SessionLoaded) for event, _ in events[retries[-1][0] :]
    )
    own = [event for event, one in events[run_at:] if not one.origin.depth] if busy else []
    in_run = [event for event in own if isinstance(event, StepStarted)]
    return Facts(
        calls=calls,
        asking=sum(call.state == "asking" for call in calls),
        busy=busy,
        run_began=events[run_at][1].mono if busy else None,
        step=len(in_run) or None,
        tokens=sizes[-1] if sizes else 0,
        cost=next((event.cost or 0.0 for event, _ in reversed(events) if isinstance(event, UsageUpdated)), 0.0),
        jobs=len(begun - over),
        plan=(sum(item.status == "done" for item in plans[-1]), len(plans[-1])) if plans else (0, 0),
        files={
            path: (sum(one.added for one in changes if one.path == path), sum(one.path == path for one in changes))
            for path in {one.path for one in changes}
        },
        retry_at=events[retries[-1][0]][1].mono + retries[-1][1].wait_s if is_retrying else None,
        timeline=any(place > last_fork for place in starts),
    )


def text_of(end: ToolEnded) -> str:
    """Return the text of a result."""
    return "".join(block.text for block in end.content if isinstance(block, TextBlock))


def background_state(task: str, later: Sequence[AgentEvent]) -> str:
    """Return the state of a call that became a background command: that of the command."""
    for event in later:
        if isinstance(event, BackgroundEnded) and event.task_id == task:
            return "ok"
        if isinstance(event, SessionLoaded):
            return "interrupted"
    return "background"
