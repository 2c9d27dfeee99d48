"""A headless program with a real agent on a scripted model, wired as the command line wires it.

`python -m tests.headless.headless_program ROOT OPTIONS_JSON` with `scene`, and optionally `prompt`, `output`, `input`,
`deltas`, `resume`.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.headless.scripted_agent import bench_of
from tests.session.real_agents import AskingPolicy, agent_for, bus_for
from tui_agent.execution import ApprovalGate
from tui_agent.headless import HeadlessOptions, run_headless
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import Step, call, reply
from tui_agent.session import JournalWriter, SessionStore

SCENES: dict[str, list[Step]] = {
    "work": [reply("Let me.", call("look", what="a"), call("leave", trace="x")), "It is done."],
    "endless": [reply(call("look", what=str(number))) for number in range(50)],
}


async def main(root: Path, chosen: dict[str, Any]) -> int:
    options = HeadlessOptions(
        chosen.get("prompt"), chosen.get("output", "text"), chosen.get("input", "text"), chosen.get("deltas", False)
    )
    store = SessionStore(root / "sessions")
    session = store.load("one") if chosen.get("resume") else store.create(root, "one")
    assert session.path is not None
    bus = bus_for(session)
    async with AsyncExitStack() as stack:
        recorder = await stack.enter_async_context(JournalWriter(bus, session.path, expected_size=session.size))
        session.announce(bus, "0")
        agent = agent_for(
            session,
            bus,
            ScriptedProvider(SCENES[chosen["scene"]]),
            root / "effects",
            policy=AskingPolicy(),
            gate=ApprovalGate(interactive=options.interactive),
        )
        return await run_headless(bench_of(agent, bus, save=recorder.flush), options)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2]))))
