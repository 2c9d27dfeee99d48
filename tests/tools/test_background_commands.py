"""Background commands with real bash: started, sent, read, stopped, and ended with their session."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.tools.calls import Recorded, call, details_of, eventually
from tests.tools.processes.test_process import lives, pid_from
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import AgentEvent, BackgroundEnded, BackgroundOutput, BackgroundStarted, FileChanged
from tui_agent.protocol.permissions import DECIDED_BY_USER
from tui_agent.protocol.tool import CommandSubject, ToolUpdate
from tui_agent.tools import BackgroundJobs, BashOutputTool, KillBashTool, default_tools
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.file_states import ContentStore
from tui_agent.tools.processes import background_jobs
from tui_agent.tools.processes.background_jobs import Job
from tui_agent.tools.workspace import Workspace


class Session:
    """The tools of one session, and everything it published and said to the model."""

    def __init__(self, workspace: Workspace) -> None:
        self.events: list[AgentEvent] = []
        self.notices: list[tuple[str, str]] = []
        self.jobs = BackgroundJobs(self.events.append)
        self.jobs.notify = lambda agent, text: self.notices.append((agent, text))
        self.bash = BashTool(workspace, is_read_only_command=lambda command: command.startswith("cat "), jobs=self.jobs)
        self.output = BashOutputTool(self.jobs)
        self.kill = KillBashTool(self.jobs)

    async def start(self, command: str, **more: Any) -> str:
        return details_of(await call(self.bash, command=command, run_in_background=True, **more))["task_id"]

    def send(self, _: ToolUpdate) -> None:
        """Send the running call to the background, as the user does."""
        self.jobs.send("call_1")

    async def read(self, task_id: str, wait: float = 0.0) -> str:
        return (await call(self.output, task_id=task_id, wait=wait)).text

    async def ended(self, task_id: str) -> Job:
        job = self.jobs.find(task_id)
        await job.moments.over.wait()
        while not any(isinstance(event, BackgroundEnded) and event.task_id == task_id for event in self.events):
            await asyncio.sleep(0.01)
        return job


@pytest.fixture
async def session(workspace: Workspace) -> AsyncIterator[Session]:
    session = Session(workspace)
    async with session.jobs:
        yield session


async def test_the_call_returns_at_once_and_the_command_runs_on(session: Session, root: Path) -> None:
    result = await call(session.bash, command="until [ -e go ]; do sleep 0.01; done; echo went", run_in_background=True)

    assert result.text.startswith("[this command runs on as bash_1. bash_output returns")
    assert not result.is_error
    assert details_of(result)["task_id"] == "bash_1"
    assert await session.read("bash_1") == "[no new output]\n[bash_1 is running since 0 s]"
    (root / "go").touch()
    assert await session.read("bash_1", wait=60) == "went\n[bash_1 ended with exit code 0]"
    assert await session.read("bash_1") == "[no new output]\n[bash_1 ended with exit code 0]"
    assert session.events[0] == BackgroundStarted(
        task_id="bash_1", kind="bash", command="until [ -e go ]; do sleep 0.01; done; echo went"
    )
    await session.ended("bash_1")
    assert session.events[-1] == BackgroundEnded(task_id="bash_1", kind="bash", status="exited", code=0)


async def test_a_command_that_ends_at_once_is_an_ordinary_call_or_a_job_that_ended(session: Session) -> None:
    result = await call(session.bash, command="echo done; exit 3", run_in_background=True)

    task_id = details_of(result).get("task_id")
    text = result.text if task_id is None else f"{result.text}\n{await session.read(task_id, wait=60)}"
    assert text.count("done") == 1
    assert "exit code 3" in text


async def test_its_end_is_reported_once_to_the_agent_that_started_it(session: Session) -> None:
    recorded = Recorded()
    recorded.context.agent = "explore-1"
    await call(session.bash, recorded, command="sleep 0.2; exit 4", run_in_background=True)
    await session.ended("bash_1")
    # The model has read the end of this one.
    read = await session.start("sleep 0.2")
    assert "ended with exit code 0" in await session.read(read, wait=60)
    await session.ended(read)

    text = "The background command bash_1 (`sleep 0.2; exit 4`) ended with exit code 4. bash_output has its output."
    assert session.notices == [("explore-1", text)]


async def test_a_running_call_can_be_sent_without_its_time_limit_and_cancellation(session: Session, root: Path) -> None:
    recorded = Recorded(on_update=session.send)
    command = "echo before; until [ -e go ]; do sleep 0.01; done; echo after"
    result = await call(session.bash, recorded, command=command, timeout=2.0)
    recorded.cancellation.cancel("the run was cancelled")

    before, note = result.text.split("\n")
    assert before == "before"
    assert note.startswith("[the user sent this command to the background: it runs on as bash_1.")
    assert (await session.read("bash_1", wait=2.5)).startswith("[no new output]\n[bash_1 is running since ")
    with pytest.raises(ToolError, match="bash_1 cannot be detached"):
        await session.jobs.detach("bash_1")
    (root / "go").touch()
    other = Recorded()
    other.context.agent = "explore-1"
    for reader in (Recorded(), other):
        text = (await call(session.output, reader, task_id="bash_1", wait=60)).text
        assert text == "after\n[bash_1 ended with exit code 0]", "each agent reads all output"
    assert session.jobs.send("call_1") is None, "only a running command can be sent"


async def test_to_stop_what_the_user_sent_is_a_change(session: Session) -> None:
    recorded = Recorded(on_update=session.send)
    # The user reads the result of a command of their own.
    recorded.context = replace(recorded.context, agent=DECIDED_BY_USER)
    result = await call(session.bash, recorded, command="echo; sleep 300")
    await session.start("sleep 300")

    assert result.text.endswith("as bash_1; /jobs shows its output and stops it]")
    assert not session.kill.is_read_only({"task_id": "bash_1"})
    assert session.kill.is_read_only({"task_id": "bash_2"})


async def test_kill_ends_it_with_everything_it_started_and_the_model_learns_of_others(
    session: Session, root: Path
) -> None:
    task_id = await session.start("sleep 300 & echo $! > pid; sleep 300")
    child = await pid_from(root / "pid")

    assert (await call(session.kill, task_id=task_id)).text == "bash_1 was stopped."
    assert not lives(child)
    assert (await call(session.kill, task_id=task_id)).text == "bash_1 had ended already: it was stopped."
    await session.ended(task_id)
    assert session.events[-1] == BackgroundEnded(task_id="bash_1", kind="bash", status="killed")
    assert session.notices == []

    task_id = await session.start("sleep 300")
    session.jobs.kill(task_id, by="user")
    await session.ended(task_id)
    ((_, text),) = session.notices
    assert text.startswith("The background command bash_2 (`sleep 300`) was stopped by the user.")
    limited = await session.start("sleep 300", timeout=0.2)
    assert (await session.ended(limited)).status == "timeout", "a time limit that the model set"


@pytest.mark.usefixtures("subreaper")
async def test_the_user_detaches_one_with_what_it_started_and_its_output_goes_to_a_file(
    workspace: Workspace, root: Path
) -> None:
    session = Session(workspace)
    async with session.jobs:
        command = "echo before; echo $$ > tmp; mv tmp pid; until [ -e go ]; do sleep 0.01; done; echo after; sleep 300"
        await session.start(f"{unmarked('below')}; {command}")
        pid, below = await pid_from(root / "pid"), await pid_from(root / "below")
        while b"before" not in session.jobs.find("bash_1").output.peek().head:
            await asyncio.sleep(0.01)
        job = await session.jobs.detach("bash_1")
        await session.ended("bash_1")
        await call(session.bash, command="true")

    try:
        assert lives(pid)
        assert lives(below)
        assert job.file is not None
        (root / "go").touch()
        file = job.file
        assert await asyncio.to_thread(eventually, lambda: file.read_text() == "before\nafter\n")
        assert session.events[-1] == BackgroundEnded(task_id="bash_1", kind="bash", status="detached")
        assert f"runs on without tui-agent (pid {pid}, output in {file})" in session.notices[0][1]
    finally:
        os.killpg(pid, signal.SIGKILL)
        os.killpg(below, signal.SIGKILL)


@pytest.mark.parametrize("failing", ["complete_file", "Popen"])
async def test_a_command_that_cannot_be_detached_runs_on(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    await session.start("echo $$ > tmp; mv tmp pid; until [ -e go ]; do sleep 0.01; done; echo after")
    pid = await pid_from(root / "pid")
    with monkeypatch.context() as patched:
        patched.setattr(session.jobs.find("bash_1").output if failing == "complete_file" else subprocess, failing, fail)
        for _ in range(2):
            with pytest.raises(ToolError, match="runs on as before: No space left on device"):
                await session.jobs.detach("bash_1")

    assert lives(pid)
    (root / "go").touch()
    assert await session.read("bash_1", wait=60) == "after\n[bash_1 ended with exit code 0]"


async def test_their_number_is_limited_and_an_unknown_id_names_them(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_jobs, "MOST_JOBS", 1)
    await session.start("sleep 300")

    with pytest.raises(ToolError, match=r"1 commands run in the background already \(bash_1\)"):
        await session.start("sleep 300")
    with pytest.raises(ToolError, match=r"No background command is called 'bash_7'\. Running: bash_1\."):
        await call(session.output, task_id="bash_7")
    result = await call(session.bash, command="sleep 300 & echo done")
    assert result.text.startswith("done\n[stopped, because they were still running in the background: sleep (pid ")


async def test_much_output_is_cut_in_the_middle_and_kept_in_a_file(session: Session, root: Path) -> None:
    # What comes before the call returns is in its own result, so the output waits for that.
    count = "until [ -e go ]; do sleep 0.01; done; seq 1 200000; echo last; until false; do sleep 1; done"
    task_id = await session.start(count)
    (root / "go").touch()
    while not session.jobs.find(task_id).output.peek().tail.endswith(b"last\n"):
        await asyncio.sleep(0.01)

    text = await session.read(task_id)
    assert " left out here; the full output is in " in text
    assert text.endswith("\nlast\n[bash_1 is running since 0 s]") or "last\n[bash_1 is running" in text
    assert len(text) < 40_000
    published = "".join(event.chunk for event in session.events if isinstance(event, BackgroundOutput))
    assert len(published) <= background_jobs.PUBLISHED_OUTPUT + 100


def test_it_is_judged_as_the_command_and_never_starts_early(session: Session, workspace: Workspace) -> None:
    plain, lasting = {"command": "cat a"}, {"command": "cat a", "run_in_background": True}

    assert session.bash.subject(lasting) == CommandSubject("cat a", in_background=True)
    assert session.bash.is_read_only(plain)
    assert not session.bash.is_concurrency_safe(lasting)
    assert session.bash.accesses(lasting) is None
    without = default_tools(workspace, is_read_only_command=lambda _: False)
    assert not {"bash_output", "kill_bash"} & {tool.name for tool in without}
    assert "run_in_background" not in str([tool.spec for tool in without])


async def test_changes_beside_it_are_its_own_or_no_one_s_and_protected_ones_can_be_undone(
    root: Path, tmp_path: Path
) -> None:
    (root / "hook").write_text("old")
    warnings: list[str] = []
    workspace = Workspace(
        root,
        spool_dir=tmp_path / "spool",
        contents=ContentStore(tmp_path / "contents"),
        protected_files=lambda: ({"hook": ""}, True),
        warn_of_protected=warnings.append,
    )
    session = Session(workspace)
    async with session.jobs:
        await session.start("until [ -e go ]; do sleep 0.01; done; echo newest > hook")
        recorded = Recorded()
        recorded.context.call_id = "call_2"
        result = await call(session.bash, recorded, command="echo new > hook; echo x > other")
        (root / "go").touch()
        await session.ended("bash_1")

    assert warnings == [
        "A command changed protected files: hook modified. Press ctrl+u on its row to undo that.",
        "A background command changed protected files: hook modified. Press ctrl+u on its row to undo that.",
    ]
    changes = {
        Path(data["path"]).name: data.get("call_id", "own") for kind, data in recorded.data if kind == "file.changed"
    }
    assert changes == {"hook": "own", "other": None}
    assert details_of(result)["files_changed"] == 1
    assert "1 file changed beside a background command" in details_of(result)["outcome"]
    assert session.notices[0][1].endswith("It changed protected files: hook modified.")
    (changed,) = [event for event in session.events if isinstance(event, FileChanged)]
    assert changed.call_id == "call_1"


def unmarked(name: str) -> str:
    """Return a command that starts a daemon which nothing ties to its call, and waits until it runs."""
    script = f"ulimit -S -x 5; echo $$ > {name}.tmp; mv {name}.tmp {name}; exec sleep 300"
    return f"env -i PATH=$PATH setsid -f bash -c '{script}' >/dev/null 2>&1; until [ -s {name} ]; do sleep 0.01; done"


@pytest.mark.usefixtures("subreaper")
async def test_a_daemon_ends_with_its_call_beside_a_background_command(session: Session, root: Path) -> None:
    await session.start(f"{unmarked('theirs')}; sleep 300")
    theirs = await pid_from(root / "theirs")
    await call(session.bash, command=f"{unmarked('ours')}; sleep 300", timeout=2.0)

    assert not lives(await pid_from(root / "ours"))
    assert lives(theirs)
    await call(session.kill, task_id="bash_1")
    assert not lives(theirs)


FORKS_TWICE = f"""{sys.executable} -c "import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open('{{0}}.tmp', 'w').write(str(os.getpid()) + chr(10)); os.rename('{{0}}.tmp', '{{0}}')
time.sleep(300)\""""
PUT_AWAY = {
    "tmux": (
        "command -v tmux >/dev/null || exec setsid -f bash -c 'echo $$ > {0}; sleep 300'; export TMUX_TMPDIR=$PWD; "
        "tmux -L t new-session -d 'echo $$ > {0}.tmp; mv {0}.tmp {0}; sleep 300'"
    ),
    "forks twice": FORKS_TWICE,
    "forks twice, holding no output": f"{FORKS_TWICE} >/dev/null 2>&1",
    "nohup": "nohup sleep 300 >/dev/null 2>&1 & echo $! > {0}",
    "disowned": "sleep 300 & disown; echo $! > {0}",
    "holding the output": "sleep 300 & echo $! > {0}",
    "in a session of its own": "setsid sleep 300 & echo $! > {0}",
    "without a mark": "",
}


@pytest.mark.slow
@pytest.mark.usefixtures("subreaper")
async def test_what_a_command_leaves_running_lives_until_the_session_ends(workspace: Workspace, root: Path) -> None:
    session = Session(workspace)
    places = [f"{number}.pid" for number in range(len(PUT_AWAY))]
    texts: list[str] = []
    async with session.jobs:
        for place, (name, text) in zip(places, PUT_AWAY.items(), strict=True):
            command = unmarked(place) if name == "without a mark" else text.format(place)
            result = await call(session.bash, command=f"{command}; until [ -s {place} ]; do sleep 0.01; done")
            texts.append(result.text)
            assert not result.is_error
            assert details_of(result)["task_id"] == f"bash_{len(texts)}"
        await call(session.bash, command="true")
        pids = [await pid_from(root / place) for place in places]

        assert [place for place, pid in zip(places, pids, strict=True) if not lives(pid)] == []
        assert [job.task_id for job in session.jobs.running] == [f"bash_{count + 1}" for count in range(len(texts))]
        assert [
            text for text in texts if not re.search(r"\[still running: .* \(pid \d+\); it ends with the", text)
        ] == []
        assert not [event for event in session.events if isinstance(event, BackgroundEnded)]

    assert [place for place, pid in zip(places, pids, strict=True) if lives(pid)] == []
    ended = [event.status for event in session.events if isinstance(event, BackgroundEnded)]
    assert ended == ["ended_with_session"] * len(texts)


async def test_a_job_counts_what_its_command_leaves_running_as_its_own(session: Session, root: Path) -> None:
    task_id = await session.start(f"{FORKS_TWICE.format('pid')}; until [ -s pid ]; do sleep 0.01; done; echo started")
    pid = await pid_from(root / "pid")

    text = await session.read(task_id, wait=60)
    assert re.fullmatch(r"started\n\[bash_1 ended with exit code 0 and left running: python\S* \(pid \d+\)\]", text)
    assert session.jobs.find(task_id).status == "running"
    assert (await call(session.kill, task_id=task_id)).text == "bash_1 was stopped."
    assert not lives(pid)


async def test_the_model_learns_when_a_job_ends_that_leaves_something_running(session: Session, root: Path) -> None:
    command = "sleep 0.3; sleep 300 & echo $! > pid; exit 3"
    task_id = await session.start(command)
    await session.jobs.find(task_id).moments.exited.wait()
    pid = await pid_from(root / "pid")
    os.kill(pid, signal.SIGTERM)
    await session.ended(task_id)

    assert [text for _, text in session.notices] == [
        f"The background command bash_1 (`{command}`) ended with exit code 3 and left running: sleep (pid {pid}).",
        f"The background command bash_1 (`{command}`) has ended with everything it had left running. bash_output has "
        "its output.",
    ]
    assert session.events[-1] == BackgroundEnded(task_id=task_id, kind="bash", status="exited", code=3)


async def test_what_a_call_leaves_running_outlives_its_time_limit_and_prints_on(session: Session, root: Path) -> None:
    command = "(until [ -e go ]; do sleep 0.01; done; echo late) & sleep 0.1; echo done"
    result = await call(session.bash, command=command, timeout=2.0)

    assert result.text.startswith("done\n[still running: bash (pid ")
    assert "is running" not in await session.read("bash_1", wait=2.0)
    (root / "go").touch()
    await session.ended("bash_1")
    assert (await session.read("bash_1")).startswith("late\n[bash_1 has ended with everything")


@pytest.mark.usefixtures("subreaper")
async def test_a_background_command_that_has_no_mark_stays(session: Session, root: Path) -> None:
    command = f"ulimit -S -x 5; {unmarked('below')} & echo $$ > tmp; mv tmp leader; sleep 300"
    await session.start(command)
    leader, below = await pid_from(root / "leader"), await pid_from(root / "below")
    await call(session.bash, command="true")

    assert lives(leader)
    assert lives(below)


@pytest.mark.slow
@settings(max_examples=examples(20, 6))
@given(st.lists(st.sampled_from(["plain", "child", "sent", "setsid", "deaf"]), min_size=1, max_size=4), st.booleans())
def test_no_job_outlives_its_session(tmp_path_factory: pytest.TempPathFactory, kinds: list[str], fails: bool) -> None:
    root = tmp_path_factory.mktemp("work")
    commands = {
        "plain": "echo $$ > {n}.pid; exec sleep 300",
        "child": "sleep 300 & echo $! > {n}.pid; sleep 300",
        "sent": "echo $$ > {n}.pid; echo; exec sleep 300",
        "setsid": "setsid sleep 300 & echo $! > {n}.pid; sleep 300",
        "deaf": "trap '' TERM; echo $$ > {n}.pid; while :; do sleep 300; done",
    }

    async def run() -> list[psutil.Process]:
        session = Session(Workspace(root, spool_dir=root / "spool"))
        async with session.jobs:
            for number, kind in enumerate(kinds):
                command = commands[kind].format(n=number)
                if kind == "sent":
                    recorded = Recorded(on_update=session.send)
                    await call(session.bash, recorded, command=command)
                else:
                    await session.start(command)
            found = [psutil.Process(await pid_from(root / f"{number}.pid")) for number in range(len(kinds))]
            if fails:
                raise LookupError(found)
        return found

    try:
        processes = asyncio.run(run())
    except LookupError as error:
        (processes,) = error.args
    assert [process for process in processes if process.is_running() and process.status() != "zombie"] == []
