"""The invariants of events in a live engine: calls arrive, gates open, users answer, answers break off.

`test_invariants` plays whole stories. Here each step depends on the previous one, and all events so far are validated
whenever time passes.
"""

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.execution.bench import settled
from tests.execution.kit import Doors, FakePolicy, ScriptedTool, Steering, call
from tests.execution.test_invariants import options_of, paths, some_options
from tests.support.examples import examples
from tests.support.transcript_checks import validate_events, validate_history
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import VirtualClockLoop
from tui_agent.execution import (
    ApprovalGate,
    EarlyExecutions,
    HookBus,
    ToolExecutionResult,
    ToolExecutor,
    ToolScheduler,
)
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import ToolQueued, ToolStarted
from tui_agent.protocol.hooks import ModifyArguments
from tui_agent.protocol.messages import AssistantMessage, ToolResultMessage, user_message
from tui_agent.protocol.permissions import ApprovalDecision

NAMES = ["look", "look", "act", "act", "lone", "ask", "fail", "nothing"]
EFFECTS = {"act", "lone", "ask", "fail"}

asked = st.tuples(st.sampled_from(NAMES), st.sampled_from([None, "/a", "/b", "/a/c"]), st.booleans())
"""Name, path, and a flag for calls that a hook rewrites."""

commands = st.sampled_from(["finish", "finish", "finish", "break", "break", "cut", "leave"])


class LiveEngine(RuleBasedStateMachine):
    """One turn: answers that break off, then one that is finished, abandoned or cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualClockLoop)
        self.told: list[Envelope] = []
        self.committed: list[ToolResultMessage] = []
        self.names: dict[str, str] = {}
        self.of_answer: list[str] = []
        self.discarded: set[str] = set()
        self.recorded = 0
        self.result: ToolExecutionResult | None = None
        self.ending = ""
        self.shut_down = False

    @initialize(
        options=some_options,
        hooked=st.booleans(),
        records=st.sampled_from(["no", "yes", "broken"]),
        first=st.lists(asked, min_size=1, max_size=4),
        breaks=st.booleans(),
    )
    def begin(self, options: dict[str, Any], hooked: bool, records: str, first: list[Any], breaks: bool) -> None:
        self.options = options_of(options)
        self.doors, self.steering, self.token, self.bus = (
            Doors(),
            Steering(),
            CancellationToken(),
            ValidatingBus(whole=False),
        )
        self.subscription = self.bus.subscribe(merge=False)
        self.gate = ApprovalGate(interactive=True)
        self.commands: asyncio.Queue[str] = asyncio.Queue()
        hooks = HookBus()
        if hooked:
            hooks.before_tool(lambda question: ModifyArguments({"path": "/b"}) if "n" in question.arguments else None)
            hooks.before_update(lambda question: True)

        async def record() -> None:
            self.recorded += 1
            await asyncio.sleep(0.1)
            if records == "broken":
                raise OSError("disk full")

        self.records = records != "no"
        self.executor = ToolExecutor(
            self._tools(),
            bus=self.bus,
            options=self.options,
            hooks=hooks,
            policy=FakePolicy({"ask": "ask"}),
            gate=self.gate,
            before_effects=record if self.records else None,
        )
        self.do(self._start)
        for one in first:
            self.submit(one)
        if breaks:
            self.end_the_answer("break")
            for one in first:
                self.submit(one)

    def _tools(self) -> list[ScriptedTool]:
        async def fail(arguments: Any, context: Any) -> Any:
            await self.doors(arguments, context)
            raise ValueError("broken")

        async def tell(arguments: Any, context: Any) -> Any:
            context.progress("going on")
            return await self.doors(arguments, context)

        failing = ScriptedTool("fail", fail)
        failing.aborts_siblings = True
        return [
            ScriptedTool("look", tell, read_only=True, interruptible=True),
            ScriptedTool("act", tell, paths=paths, interruptible=True),
            ScriptedTool("lone", self.doors, alone=True),
            ScriptedTool("ask", self.doors),
            failing,
        ]

    def do(self, step: Any, *arguments: Any) -> None:
        """Do something on the engine's loop and let everything react."""

        async def work() -> None:
            answer = step(*arguments)
            if asyncio.iscoroutine(answer):
                await answer
            await settled()

        self.runner.run(work())

    async def _start(self) -> None:
        self.body = asyncio.get_running_loop().create_task(self._live())

    async def _live(self) -> None:
        async with EarlyExecutions(self.token) as early:
            while not self.ending:
                self.of_answer = []
                scheduler = self.scheduler = ToolScheduler(
                    self.executor,
                    cancellation=self.token,
                    get_steering=self.steering,
                    on_result=self.committed.append,
                    early=early,
                )
                async with scheduler:
                    await self._play(scheduler, await self.commands.get())

    async def _play(self, scheduler: ToolScheduler, command: str) -> None:
        if command == "break":
            self.discarded |= set(self.of_answer)
            await scheduler.discard("the stream broke")
            return
        self.ending = command
        if command == "leave":
            self.discarded |= set(self.of_answer)
        else:
            self.result = await scheduler.finish(cut=command == "cut")

    @property
    def is_open(self) -> bool:
        return not self.ending and not self.body.done() and self.commands.empty()

    @precondition(lambda self: self.is_open and len(self.names) < 12)
    @rule(one=asked)
    def submit(self, one: tuple[str, str | None, bool]) -> None:
        name, path, numbered = one
        call_id = f"c{len(self.names)}"
        self.names[call_id] = name
        self.of_answer.append(call_id)
        arguments = {"path": path} if path else {}
        self.do(self.scheduler.submit, call(name, call_id, **arguments, **({"n": 1} if numbered else {})))

    @precondition(lambda self: self.is_open)
    @rule(command=commands)
    def end_the_answer(self, command: str) -> None:
        self.do(self.commands.put_nowait, command)

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def open_a_door(self, data: st.DataObject) -> None:
        self.do(self.doors.open, data.draw(st.sampled_from(sorted(self.names))))

    @rule(noticed=st.booleans())
    def steer(self, noticed: bool) -> None:
        self.steering.say()
        if noticed:
            self.do(self.scheduler.notify_steering)

    @precondition(lambda self: self.gate.pending)
    @rule(decision=st.sampled_from(["approve", "deny", "skip"]))
    def answer_a_question(self, decision: Any) -> None:
        request = self.gate.pending[0]
        self.do(self.gate.resolve, request.request_id, ApprovalDecision(decision=decision))

    @rule(seconds=st.sampled_from([0.2, 1.5, 6.0]))
    def wait(self, seconds: float) -> None:
        self.do(asyncio.sleep, seconds)
        self._judge(complete=False)

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def take_one_back(self, data: st.DataObject) -> None:
        self.do(self.scheduler.cancel_call, data.draw(st.sampled_from(sorted(self.names))), "not this one")

    @precondition(lambda self: self.names)
    @rule(how=st.sampled_from(["not at all"] * 4 + ["by token", "by task"]))
    def abort(self, how: str) -> None:
        if how == "by task":
            self.shut_down = self.shut_down or not self.body.done()
            self.do(self.body.cancel)
        elif how == "by token":
            self.do(self.token.cancel, "esc")

    def _judge(self, *, complete: bool) -> None:
        self.told += self.subscription.drain()
        answered = {message.call_id for message in self.committed}
        validate_events(
            self.told,
            complete=complete,
            ordered=self.options.message_events == "ordered",
            balanced=self.options.balanced_start or self.options.start_unknown or self._all_start,
            unanswered=set(self.names) - answered if self.shut_down else self.discarded,
        )

    @property
    def _all_start(self) -> bool:
        return self.options.start_events == "upfront"

    def teardown(self) -> None:
        try:
            if hasattr(self, "body"):
                self.do(self._come_to_an_end)
                self._judge(complete=True)
                self._judge_the_whole()
        finally:
            self.runner.close()

    async def _come_to_an_end(self) -> None:
        self.doors.open(*self.names)
        if self.is_open:
            self.commands.put_nowait("finish")
        while not self.body.done():
            for request in self.gate.pending:
                self.gate.resolve(request.request_id, ApprovalDecision(decision="approve"))
            self.doors.open(*self.names)
            await asyncio.sleep(1)

    def _judge_the_whole(self) -> None:
        events = [envelope.event for envelope in self.told]
        assert self.gate.pending == ()
        assert not self.body.cancelled() or self.shut_down
        if self.result is not None and not self.shut_down:
            assert self.result.tool_results == tuple(self.committed)
            assert [message.call_id for message in self.committed if self._is_ordered] == (
                self.of_answer if self._is_ordered else []
            )
            asked = tuple(call(self.names[name], name) for name in self.of_answer)
            if asked:
                answer = AssistantMessage(content=asked, stop_reason="tool_use")
                validate_history([user_message("go"), answer, *self.committed, *self.scheduler.steering_messages])
        executions = [event for event in events if isinstance(event, ToolStarted) and event.adopted_from is None]
        assert len(self.doors.arrived) <= len(executions), "a tool ran without an event"
        assert all(event.read_only for event in events if isinstance(event, ToolStarted) and event.adopted_from)
        assert len([event for event in events if isinstance(event, ToolQueued)]) == len(self.names)
        if self.records:
            effects = [name for name in self.doors.arrived if self.names[name] in EFFECTS]
            assert len(effects) <= self.recorded, "an effect without a record"

    @property
    def _is_ordered(self) -> bool:
        return self.options.message_events == "ordered"


LiveEngine.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=30, report_multiple_bugs=False)
TestLiveEngine = LiveEngine.TestCase
