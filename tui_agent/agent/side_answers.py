"""Requests beside the conversation: a question that belongs to no call, and an answer of the model for someone else."""

from collections.abc import AsyncGenerator, Callable

from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.facts.page_facts import SideAnswer
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.provider import ModelProvider, ModelRequest, StreamEvent

from .agent_state import AgentState
from .current_run import CurrentRun
from .response_accumulator import StepState, accumulate


async def ask_user(agent: AgentState, request: ApprovalRequest) -> ApprovalDecision:
    """Ask a question through the agent's gate. Without an approver the answer is `deny`."""
    return (await agent.gate.ask(request, agent.publisher)).decision


async def answer_beside(
    agent: AgentState,
    run: CurrentRun,
    request: ModelRequest,
    provider: ModelProvider | None,
    take: Callable[[StreamEvent], object],
) -> SideAnswer:
    """Ask the model once, without retries, and count the usage for the agent and its run.

    Raises:
        ProviderError: the model did not answer, or the budget of the run is used up.
    """
    if (overrun := run.overrun()) is not None:
        raise ProviderError(overrun, kind="invalid_request")
    provider = provider or agent.provider
    state = StepState()
    cost: float | None = None
    stream = provider.stream(request)
    try:
        async for event in stream:
            accumulate(state, event)
            take(event)
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
        if state.usage != Usage():
            cost = provider.model.cost_of(state.usage)
            agent.count(state.usage, cost, provider.model.name)
            run.count(state.usage, cost)
    if state.stop_reason is None:
        raise ProviderError("the answer was cut off", kind="stream_cut")
    return SideAnswer(state.text, state.model or provider.model.name, state.stop_reason, cost)
