"""A small program around the app, for tests in a real terminal.

It repeats what it hears, slowly for `slow`; for `killer` it answers what is dear to read.
"""

import asyncio

from tests.ui.stage import FakePolicy, StageTool
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.provider import ModelRequest
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import Reply, call, reply
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.bridge.agent_bridge import AgentBridge


def answer(request: ModelRequest) -> Reply:
    """Repeat the last message; after `slow`, call a tool that never ends."""
    last = request.messages[-1]
    if isinstance(last, UserMessage) and last.text == "killer":
        return reply("[" * 2_000_000)
    if isinstance(last, UserMessage):
        return reply(call("look", what="slowly")) if last.text == "slow" else reply(f"heard {last.text!r}")
    return reply("looked")


async def main() -> None:
    """Run until the user quits."""
    bus = EventBus()
    config = AgentLoopConfig(
        provider=ScriptedProvider([answer] * 50),
        tools=[StageTool("look", waits=True)],
        bus=bus,
        policy=FakePolicy(),
        gate=ApprovalGate(interactive=True),
    )
    await TuiAgentApp(AgentBridge(AgentLoop(config), bus)).run_async()


if __name__ == "__main__":
    asyncio.run(main())
