"""The headless front end: print mode with text, json or a stream of events as output, and plain mode.

It needs a session, a bus and an agent:

```python
session = store.create(cwd)                                  # or store.load(id), or StoredSession.ephemeral(cwd)
options = HeadlessOptions(read_prompt(argument), "stream-json")
bus = EventBus(session.origin(), first_seq=session.next_seq)
async with AsyncExitStack() as stack:
    recorder = None
    if session.path is not None:
        recorder = await stack.enter_async_context(JournalWriter(bus, session.path, expected_size=session.size))
    session.announce(bus, __version__)
    agent = AgentLoop(AgentLoopConfig(…, bus=bus, gate=ApprovalGate(interactive=options.interactive)))
    code = await run_headless(agent, bus, options, keep=recorder.flush if recorder else None)
```
"""

from .agent_port import Agent
from .command_agent import CommandAgent
from .exit_codes import ExitCode, code_of
from .plain_reporter import Describe
from .reporters import describe_briefly
from .service import HeadlessOptions, StandardStreams, read_prompt, run_headless

__all__ = [
    "Agent",
    "CommandAgent",
    "Describe",
    "ExitCode",
    "HeadlessOptions",
    "StandardStreams",
    "code_of",
    "describe_briefly",
    "read_prompt",
    "run_headless",
]
