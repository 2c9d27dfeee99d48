"""A real agent with real tools, a real directory and a real journal; only the model is scripted."""

import os
import subprocess
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.transcript_checks import validate_history
from tests.support.trial_directories import CopiedLayers, TrialTool
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.execution import ApprovalGate, ExecutionOptions, Sequential
from tui_agent.git.protected_tree import ProtectedTree
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.facts.change_facts import RewindPoint
from tui_agent.protocol.provider import ModelRequest
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import Call, Reply, reply
from tui_agent.rewind import Rewinder
from tui_agent.session import JournalWriter, SessionStore, StoredSession
from tui_agent.session.store import CONTENTS_NAME
from tui_agent.tools import Workspace, default_tools
from tui_agent.tools.file_states import ContentStore

GIT = ("git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main")

State = dict[str, tuple[str, int]]
"""Name → content (or target of a link) and mode."""


@dataclass
class Kept:
    """A running session that is saved."""

    root: Path
    store: SessionStore
    session: StoredSession
    loop: AgentLoop
    bus: EventBus
    rewinder: Rewinder
    replies: deque[Reply] = field(default_factory=deque[Reply])

    async def ask(self, words: str, *calls: Call) -> None:
        """Send a user message that the model answers with these calls, then with its end."""
        if calls:
            self.replies.append(reply(*calls))
        self.replies.append(reply(f"did {words}"))
        await self.loop.run(words)

    async def point(self, words: str) -> RewindPoint:
        """Return the moment before a user message."""
        return next(point for point in await self.rewinder.points() if point.text == words and point.is_turn)

    async def check(self) -> None:
        """Assert that the journal folds to the present conversation, and that the API would accept it."""
        await self.rewinder.keep()
        messages = tuple(self.loop.history.messages())
        validate_history(messages)
        assert self.store.load(self.session.id).messages == messages

    @property
    def state(self) -> State:
        return state_of_tree(self.root)


def state_of_tree(root: Path) -> State:
    """Return every file below a directory, except git's own."""
    found: State = {}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name != ".git"]
        for name in files:
            path = Path(directory, name)
            text = f"→ {os.readlink(path)}" if path.is_symlink() else path.read_bytes().decode("latin-1")
            found[str(path.relative_to(root))] = (text, 0 if path.is_symlink() else path.stat().st_mode & 0o777)
    return found


def git_work_tree(root: Path, **files: str) -> None:
    """Make `root` a repository with these files committed; an underscore in a name means a dot."""
    for name, content in files.items():
        (root / name.replace("_", ".")).write_text(content, "utf-8")
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run((*GIT, *command), cwd=root, check=True)


@asynccontextmanager
async def kept_session(
    root: Path, sessions: Path, resume: str | None = None, gate: ApprovalGate | None = None
) -> AsyncIterator[Kept]:
    """Open a session in `root`, new or resumed. Its tool `command` runs in a trial, about which the gate is asked."""
    store = SessionStore(sessions)
    session = store.create(root) if resume is None else store.load(resume)
    assert session.path is not None
    bus = EventBus(session.origin(), first_seq=session.next_seq)
    spool = store.files_path(session.id)
    contents = ContentStore(spool / CONTENTS_NAME)
    replies: deque[Reply] = deque()

    def next_reply(request: ModelRequest) -> Reply:
        return replies.popleft()

    async with JournalWriter(bus, session.path, expected_size=session.size if resume else None) as recorder:
        session.announce(bus, "test")
        protected = ProtectedTree(root.resolve())
        workspace = Workspace(root, spool_dir=spool, contents=contents, protected_files=protected.files)
        loop = AgentLoop(
            AgentLoopConfig(
                provider=ScriptedProvider([next_reply] * 200),
                tools=[
                    *default_tools(workspace, is_read_only_command=lambda command: command.startswith("cat ")),
                    TrialTool(CopiedLayers(root, sessions / "layers", contents)),
                ],
                gate=gate,
                bus=bus,
                options=ExecutionOptions(strategy=Sequential()),
                history=session.messages,
                session_id=session.id,
                before_effects=recorder.flush_or_warn,
            )
        )
        rewinder = Rewinder(loop, bus, session.path, recorder.flush, contents, root)
        rewinder.remove_leftovers(session.envelopes)
        yield Kept(root, store, session, loop, bus, rewinder, replies)
