"""Hooks of runs: what they continue, and what they cannot keep from the user."""

from typing import Literal

from tui_agent.agent.run_hooks import MAX_CONTINUATIONS, PromptCheck, RunHooks
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import UserMessage

from .harness import Bench, BenchMaker


class StubbornHooks:
    """Hooks that never let a run end; the user writes during their last question that counts."""

    def __init__(self) -> None:
        self.bench: Bench | None = None
        self.asked = 0

    async def check_prompt(self, message: UserMessage, /) -> PromptCheck:
        return PromptCheck()

    async def before_end(self, answer: str, is_continued: bool, /) -> str | None:
        self.asked += 1
        if self.asked == MAX_CONTINUATIONS + 1:
            assert self.bench is not None
            self.bench.loop.steer("wait")
        return "Not yet."

    async def before_compaction(self, trigger: Literal["automatic", "manual"], focus: str, /) -> None:
        pass

    async def after_compaction(self) -> str | None:
        return None

    def for_sub_agent(self, agent_id: str, /) -> RunHooks | None:
        return None


async def test_hooks_at_their_limit_do_not_end_a_run_before_a_message_of_the_user(bench: BenchMaker) -> None:
    hooks = StubbornHooks()
    hooks.bench = made = bench(["answer"] * (MAX_CONTINUATIONS + 2), run_hooks=hooks)

    report = await made.loop.run("go")

    assert report.reason == "done"
    assert made.delivered == ["wait"]
    assert made.sent(MAX_CONTINUATIONS + 1)[-1] == "user: wait"
    assert [event.code for event in made.of(Warned)] == ["hook_limit"] * 2
