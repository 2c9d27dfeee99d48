"""The bash tool in a trial, with real layers: what is proposed, what keeping does, and what the model reads."""

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.calls import Recorded, call, details_of
from tests.trial.ways import wait_for_removals
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.tool import OutputUpdate, PathSubject, ToolResult, ToolUpdate
from tui_agent.protocol.trial import MOST_FILES, KeepSelection, PendingChanges
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.edit_tools import EditTool
from tui_agent.tools.file_states import ContentStore
from tui_agent.tools.glob_tool import GlobTool
from tui_agent.tools.grep_tool import GrepTool
from tui_agent.tools.processes.background_jobs import BackgroundJobs
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.workspace import Workspace
from tui_agent.trial.sorting import PathSorter
from tui_agent.trial.trials import Trials

pytestmark = pytest.mark.slow


@pytest.fixture
def trials(root: Path, tmp_path: Path) -> Iterator[Trials]:
    """Trials that work here."""
    trials = Trials(root, tmp_path / "trials", "one", PathSorter(root))
    assert trials.facts.backend == "overlay", trials.facts.problem
    yield trials
    trials.close()


@pytest.fixture
def workspace(root: Path, tmp_path: Path, trials: Trials) -> Workspace:
    """A workspace with a store for contents."""
    contents = ContentStore(tmp_path / "contents")
    return Workspace(root, spool_dir=tmp_path / "spool", contents=contents, trial_temporary=trials.temporary)


@pytest.fixture
def bash(workspace: Workspace, trials: Trials) -> BashTool:
    """The tool with trials."""
    return BashTool(workspace, is_read_only_command=lambda _: False, trials=trials)


class Trial(Recorded):
    """One call in a trial, and what it proposed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.proposals: list[PendingChanges] = []
        self.context.place = "trial"
        self.context.propose = self.proposals.append


async def run(bash: BashTool, command: str, **arguments: Any) -> tuple[ToolResult, PendingChanges | None]:
    """Run a command in a trial."""
    trial = Trial()
    result = await call(bash, trial, command=command, **arguments)
    return result, trial.proposals[0] if trial.proposals else None


async def test_changes_are_shown_in_full_with_what_matters_first(bash: BashTool, root: Path) -> None:
    for name, content in {
        "changed.py": b"a\nb\n",
        "gone.txt": b"old\n",
        "data.bin": b"\0\1\2",
        "run.sh": b"echo\n",
        "latin.txt": "Ein Café für déjà-vu öffnet\nx\n".encode("cp1252"),
    }.items():
        (root / name).write_bytes(content)
    command = (
        "sed -i s/b/c/ changed.py; rm gone.txt; printf '\\0\\1\\2\\3' > data.bin; chmod +x run.sh; "
        "sed -i s/x/y/ latin.txt; ln -s changed.py link; mkdir empty; mkdir .git; echo '[core]' > .git/config; "
        "printf '#!/bin/sh\\n' > new.sh; chmod +x new.sh; touch stamp"
    )

    result, pending = await run(bash, command)

    assert pending is not None, result.text
    files = {file.path: file for file in pending.proposed.files}
    shown = [file.path for file in pending.proposed.files]
    assert shown.index("gone.txt") < shown.index("new.sh") < shown.index("changed.py") < shown.index("run.sh")
    assert "-b\n+c\n" in files["changed.py"].diff
    assert (files["changed.py"].added, files["changed.py"].removed, files["changed.py"].is_text) == (1, 1, True)
    assert (files["gone.txt"].kind, files["gone.txt"].removed) == ("deleted", 1)
    assert files["data.bin"].note == "binary, 3 → 4 bytes"
    assert re.fullmatch(r"mode 6\d\d → 7\d\d", files["run.sh"].note)
    assert "-x\n+y\n" in files["latin.txt"].diff
    assert "Windows-1252" in files["latin.txt"].note
    assert files["link"].note == "link to changed.py"
    assert files["empty"].note == "empty directory"
    assert files["new.sh"].note == "can be run"
    assert (files["stamp"].note, files["stamp"].has_more, files["stamp"].whole_diff) == ("empty", False, "")
    assert not os.path.lexists(root / "link")
    assert (root / "gone.txt").exists()


async def test_the_whole_of_a_cut_diff_is_stored(bash: BashTool, root: Path) -> None:
    (root / "long.txt").write_text("line\n" * 9_000)

    _, pending = await run(bash, "sed -i 's/line/change/' long.txt")

    assert pending is not None
    (file,) = pending.proposed.files
    stored = Path(file.whole_diff)
    assert file.has_more
    assert stored.read_text().count("\n+change") == 9_000
    assert stored.stat().st_mode & 0o777 == 0o600


async def test_a_protected_file_is_shown_with_who_runs_it(bash: BashTool, root: Path) -> None:
    await asyncio.to_thread(subprocess.run, ("git", "init", "-q"), cwd=root, check=True)
    reasons = {
        ".envrc": "direnv runs it",
        ".Husky/pre-commit": "git runs it as a hook",
        ".gitattributes": "git runs the filters that it names",
        ".github/workflows/ci.yml": "GitHub runs it",
        ".git/hooks/pre-push": "git runs it",
        "docs/AGENTS.md": "agents obey it",
    }
    command = "; ".join(f"mkdir -p $(dirname {path}); echo x > {path}" for path in reasons)

    _, pending = await run(bash, command)

    assert pending is not None
    proposed = pending.proposed
    shown = {one.path: one.runs_later for one in (*proposed.files, *proposed.trees)}
    for path, reason in reasons.items():
        assert reason in (shown.get(path), shown.get(f"{path.split('/')[0]}/")), (path, shown)


async def test_a_kept_part_is_in_the_workspace_and_known_to_undo(
    bash: BashTool, workspace: Workspace, root: Path
) -> None:
    (root / "a.py").write_text("a\n")
    (root / "b.py").write_text("b\n")
    trial = Trial()
    await call(bash, trial, command="echo 2 >> a.py; echo 2 >> b.py; echo n > n.py")
    (pending,) = trial.proposals

    kept = await pending.keep(KeepSelection(paths=("a.py", "n.py")))

    assert (set(kept.kept), kept.discarded, kept.problems) == ({"a.py", "n.py"}, ("b.py",), ())
    assert [(root / name).read_text() for name in ("a.py", "b.py", "n.py")] == ["a\n2\n", "b\n", "n\n"]
    changed = {Path(data["path"]).name: data for kind, data in trial.data if kind == "file.changed"}
    assert {name: data["change"] for name, data in changed.items()} == {"a.py": "modified", "n.py": "created"}
    assert workspace.contents is not None
    assert workspace.contents.get(changed["a.py"]["before"]["digest"]) == b"a\n"
    assert workspace.contents.get(changed["a.py"]["after"]["digest"]) == b"a\n2\n"
    assert "+2\n" in changed["a.py"]["diff"]


async def test_an_edited_text_is_kept_in_the_encoding_of_the_file(bash: BashTool, root: Path) -> None:
    (root / "latin.txt").write_bytes("é\none\n".encode("cp1252"))
    _, pending = await run(bash, "sed -i s/one/two/ latin.txt")
    assert pending is not None

    kept = await pending.keep(KeepSelection(paths=("latin.txt",), texts={"latin.txt": "é\nthree ü\n"}))

    assert kept.kept == ("latin.txt",)
    assert (root / "latin.txt").read_bytes() == "é\nthree ü\n".encode("cp1252")


async def test_a_later_edit_knows_what_a_kept_command_changed(bash: BashTool, workspace: Workspace, root: Path) -> None:
    (root / "a.py").write_text("a\nb\n")
    await call(ReadTool(workspace), path="a.py")
    _, pending = await run(bash, "sed -i s/a/c/ a.py")
    assert pending is not None
    await pending.keep(KeepSelection(paths=("a.py",)))

    await call(EditTool(workspace), path="a.py", old_string="c\n", new_string="d\n")

    assert (root / "a.py").read_text() == "d\nb\n"


async def test_thousands_of_files_are_a_few_lines_and_kept_by_them(bash: BashTool, root: Path) -> None:
    count = MOST_FILES + 300
    _, pending = await run(bash, f"mkdir out; for i in $(seq {count}); do echo $i > out/$i; done")
    assert pending is not None
    proposed = pending.proposed

    assert (len(proposed.files), proposed.count) == (MOST_FILES, count)
    assert [(tree.path, tree.files) for tree in proposed.trees] == [("out/", 300)]
    kept = await pending.keep(KeepSelection(paths=("out/",)))

    assert kept.kept == ("out/",)
    assert len(list((root / "out").iterdir())) == 300


async def test_a_cancelled_command_leaves_nothing(bash: BashTool, root: Path, tmp_path: Path, trials: Trials) -> None:
    token = CancellationToken()

    def stop(update: ToolUpdate) -> None:
        if isinstance(update, OutputUpdate):
            token.cancel("enough")

    trial = Trial(cancellation=token, on_update=stop)
    result = await call(bash, trial, command="echo x > new.txt; echo written; sleep 600")

    assert "[what it changed in its trial was discarded: new.txt]" in result.text
    assert trial.proposals == []
    assert not (root / "new.txt").exists()
    wait_for_removals(trials)
    assert not list(tmp_path.glob("trials/sessions/*/layers/*"))


async def test_what_the_trial_refused_is_named_and_the_next_question_says_so(bash: BashTool) -> None:
    command = "curl --max-time 5 -sS http://192.0.2.1/ || python3 -c \"import urllib.request as r; r.urlopen('http://192.0.2.1')\""

    result, _ = await run(bash, command)
    preview = await bash.preview({"command": command, "sandbox": False})

    assert "`sandbox: false`" in result.text
    refused = details_of(result)["trial_refused"]
    assert "network" in refused
    assert preview is not None
    assert f"In its trial it was refused: {refused}." in preview.note


async def test_what_still_runs_ends_with_the_trial_and_is_named(bash: BashTool) -> None:
    result, pending = await run(bash, "sleep 600 & echo started")

    assert pending is None
    assert result.text.startswith("started\n")
    assert "still running in the background: sleep" in result.text
    assert "run_in_background" in result.text
    with pytest.raises(ToolError, match="runs outside only"):
        await run(bash, "sleep 1", run_in_background=True)


async def test_searches_of_tmp_look_where_commands_look(bash: BashTool, workspace: Workspace, trials: Trials) -> None:
    await run(bash, "mkdir -p /tmp/found; echo hello > /tmp/found/a.log")
    place = str(trials.temporary)

    for tool, arguments, wanted in (
        (GrepTool(workspace), {"pattern": "hello", "path": "/tmp"}, "a.log"),
        (GrepTool(workspace), {"pattern": "hello", "path": "/tmp/found/"}, "a.log"),
        (GlobTool(workspace), {"pattern": "**/*.log", "path": "/tmp"}, "a.log"),
        (GlobTool(workspace), {"pattern": "/tmp/found/*.log"}, "a.log"),
        (ReadTool(workspace), {"path": "/tmp/found/a.log"}, "hello"),
    ):
        prepared = tool.prepare_arguments(arguments)
        subject = tool.subject(prepared)
        assert isinstance(subject, PathSubject)
        assert subject.path.startswith(place), arguments
        assert wanted in (await tool.execute(prepared, Recorded().context)).text, arguments
    for path in ("/tmp/../etc", "/tmp/none", f"{workspace.root}/a", "/tmpx"):
        assert workspace.in_trial(path) == path


async def test_a_command_in_a_trial_is_not_sent_to_the_background(workspace: Workspace, trials: Trials) -> None:
    async with BackgroundJobs() as jobs, asyncio.TaskGroup() as tasks:
        bash = BashTool(workspace, is_read_only_command=lambda _: False, trials=trials, jobs=jobs)
        started = asyncio.Event()
        trial = Trial(on_update=lambda _: started.set())
        task = tasks.create_task(call(bash, trial, command="echo begun; sleep 600"))
        await started.wait()
        with pytest.raises(ToolError, match="runs in a trial"):
            jobs.send("call_1")
        trial.cancellation.cancel("enough")
        await task

    assert jobs.in_trial == set()


async def test_a_waiting_layer_gives_its_result_again(bash: BashTool, root: Path) -> None:
    (root / "runs").write_text("")
    result, pending = await run(bash, "echo said; echo x >> runs")
    assert pending is not None
    await pending.record(result.model_dump_json())
    again = Trial()
    again.context.resumed_from = "call_1"

    repeated = await call(bash, again, command="echo said; echo x >> runs")
    await again.proposals[0].keep(KeepSelection(paths=("runs",)))

    assert repeated.text == result.text
    assert again.proposals[0].proposed == pending.proposed
    assert (root / "runs").read_text() == "x\n"
    gone = Trial()
    gone.context.resumed_from = "call_1"
    with pytest.raises(ToolError, match="ran before"):
        await call(bash, gone, command="echo said")
