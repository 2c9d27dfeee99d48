"""The bash tool with real commands."""

import asyncio
import os
import re
import shutil
import time
from pathlib import Path

import psutil
import pytest

from tests.tools.calls import Recorded, call, details_of
from tests.tools.processes.test_process import lives, pid_from
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import InvalidArgumentsError, ToolError
from tui_agent.protocol.tool import CommandSubject
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.edit_tools import WriteTool
from tui_agent.tools.file_change import DIFF_LIMIT
from tui_agent.tools.file_states import ContentStore
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.workspace import Workspace


def only_reads(command: str) -> bool:
    return command.startswith(("git status", "tar t"))


@pytest.fixture
def bash(workspace: Workspace) -> BashTool:
    return BashTool(workspace, is_read_only_command=only_reads)


async def test_stdout_and_stderr_are_interleaved(bash: BashTool) -> None:
    recorded = Recorded()

    result = await call(bash, recorded, command="echo out; echo err >&2; echo more")

    assert result.text == "out\nerr\nmore"
    assert not result.is_error
    assert recorded.output == "out\nerr\nmore\n"
    assert details_of(result)["exit_code"] == 0
    assert recorded.context.metrics["exit_code"].value == 0
    assert recorded.context.metrics["output_bytes"].value == 13


async def test_commands_run_on_a_system_without_proc(
    bash: BashTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-proc").mkdir()
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "no-proc"))

    assert (await call(bash, command="echo said; sleep 0.1")).text == "said"
    assert "stopped after" in (await call(bash, command="sleep 600", timeout=0.2)).text


async def test_runs_in_the_workspace_with_a_clean_shell(
    bash: BashTool, root: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean_environment / ".bashrc").write_text("echo started\n")
    (root / "start.sh").write_text("echo hooked\n")
    monkeypatch.setenv("BASH_ENV", str(root / "start.sh"))
    monkeypatch.setenv("BASH_FUNC_pwd%%", "() { echo shadowed; }")

    assert (await call(bash, command="pwd")).text == str(root)


async def test_long_output_is_cut_in_the_middle_and_kept_whole_in_a_file(bash: BashTool, workspace: Workspace) -> None:
    result = await call(bash, command="seq 1 100000")

    details = details_of(result)
    path = Path(details["persisted_path"])
    assert path.read_text() == "".join(f"{number}\n" for number in range(1, 100_001))
    assert details["truncated"]
    assert details["size_bytes"] == path.stat().st_size == 588_895
    assert len(result.text) < 31_000
    head, note, tail = re.split(r"(\[….*…\])\n", result.text)
    lines = head.split() + tail.split()
    assert all(line.isdecimal() for line in lines)
    assert (lines[0], lines[-1]) == ("1", "100000")
    amount = f"{588_895 - len(head) - len(tail) - 1:,} of 588,895 bytes ({100_000 - len(lines):,} lines)"
    assert note == f"[… {amount} left out here; the full output is in {path}; use read to page it …]"
    assert details["lines"] == 100_000
    page = await call(ReadTool(workspace), path=str(path), offset=50_000, limit=1)
    assert page.text.startswith(" 50000\t50000\n")


@pytest.mark.slow
async def test_a_flood_of_output_takes_little_memory_and_leaves_the_loop_free(bash: BashTool) -> None:
    recorded, process = Recorded(), psutil.Process()
    before, longest = process.memory_info().rss, 0.0
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call(bash, recorded, command="yes | head -c 200M", timeout=120))
        while not task.done():
            # Seconds of the processor: those of a clock also pass while a busy machine runs other programs.
            tick = time.process_time()
            await asyncio.sleep(0.005)
            longest = max(longest, time.process_time() - tick)

    details = details_of(task.result())
    assert details["size_bytes"] == 200 * 1024 * 1024 == Path(details["persisted_path"]).stat().st_size
    assert process.memory_info().rss - before < 50_000_000
    assert longest < 0.5
    assert len(recorded.output) < 70_000 + 100_000 * details["duration_ms"] / 1000


async def test_binary_output_is_saved_and_not_shown(bash: BashTool) -> None:
    result = await call(bash, command="head -c 1000 /dev/zero")

    path = details_of(result)["persisted_path"]
    assert result.text == f"[binary output of 1,000 bytes; the full output is in {path}; use read to page it]"
    assert Path(path).read_bytes() == bytes(1000)


async def test_commands_continue_when_the_limit_for_saved_output_is_reached(root: Path, tmp_path: Path) -> None:
    warnings: list[str] = []
    workspace = Workspace(root, spool_dir=tmp_path / "spool", spool_limit=50_000, warn=warnings.append)
    tool = BashTool(workspace, is_read_only_command=only_reads)

    results = await asyncio.gather(*(call(tool, command=f"seq {number}00001 {number}20000") for number in range(1, 6)))
    binary = await call(tool, command="head -c 1000 /dev/zero")

    assert sum(file.stat().st_size for file in workspace.spool_dir.iterdir()) == 50_000
    for number, result in enumerate(results, start=1):
        assert result.text.startswith(f"{number}00001\n")
        assert result.text.endswith(f"{number}20000")
        assert "the saved outputs of this session have reached their limit of 50,000 bytes …]" in result.text
        assert details_of(result)["exit_code"] == 0
    assert "the full output could not be saved: the saved outputs of this session have reached" in binary.text
    assert len(warnings) == 1
    assert "have reached 50,000 bytes" in warnings[0]


async def test_a_resumed_session_counts_output_saved_before(root: Path, tmp_path: Path) -> None:
    for _ in range(2):
        workspace = Workspace(root, spool_dir=tmp_path / "spool", spool_limit=200_000)
        result = await call(BashTool(workspace, is_read_only_command=only_reads), command="seq 100001 120000")

    assert sum(file.stat().st_size for file in workspace.spool_dir.iterdir()) == 200_000
    assert (
        "holds part of the output: only the first 60,000 bytes were saved, because the saved outputs of this session"
        in result.text
    )


async def test_a_command_that_takes_too_long_is_stopped_and_its_output_kept(bash: BashTool, root: Path) -> None:
    script = "echo begun; setsid bash -c 'echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 60' & wait"

    result = await call(bash, command=script, timeout=2.5)

    assert result.text == "begun\n[stopped after 2.5 s, together with every process it had started]"
    assert result.is_error
    assert details_of(result)["timed_out"]
    assert details_of(result)["duration_ms"] < 30_000
    assert not lives(await pid_from(root / "pid"))


async def test_a_cancelled_call_returns_the_output_so_far(bash: BashTool) -> None:
    token = CancellationToken()
    recorded = Recorded(token, on_update=lambda update: token.cancel("the user said stop"))

    result = await call(bash, recorded, command="echo begun; sleep 60")

    assert result.text == "begun\n[cancelled; the command and every process it had started were stopped]"
    assert details_of(result)["cancelled"]
    assert result.is_error


async def test_without_its_directory_a_command_runs_in_the_nearest_parent(workspace: Workspace, root: Path) -> None:
    bash = BashTool(workspace, is_read_only_command=only_reads)
    await call(bash, command=f"rm -rf {root}")
    results = [(await call(bash, command=command)).text for command in ("pwd", "cd /tmp && pwd")]
    written = await call(WriteTool(workspace), path="again.txt", content="x\n")

    removed = f"The working directory {root} was removed; a file that you write there makes it again."
    note = f"[{removed} This ran in {root.parent}.]"
    assert results == [f"{root.parent}\n{note}", f"/tmp\n{note}"]
    assert "the working directory was removed; this makes it again" in written.text
    assert (await call(bash, command="pwd; ls")).text == f"{root}\nagain.txt"


async def test_without_bash_there_is_an_error(bash: BashTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(ToolError, match="bash is not installed"):
        await call(bash, command="true")


async def test_a_bash_inside_the_workspace_is_not_used(
    bash: BashTool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "bash").write_text("#!/bin/sh\necho evil\n")
    (root / "bash").chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}:{os.environ['PATH']}")

    assert (await call(bash, command="echo good")).text == "good"


async def test_a_read_only_command_uses_no_program_from_the_workspace(
    bash: BashTool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gzip", "git-lfs"):
        (root / name).write_text(f"#!/bin/sh\ntouch {root}/proof-$(basename $0)\ncat\n")
        (root / name).chmod(0o755)
    await call(bash, command="mkdir d; touch d/f; tar czf x.tar.gz d")
    monkeypatch.setenv("PATH", f"{root}:{os.environ['PATH']}")

    assert "d/f" in (await call(bash, command="tar tzf x.tar.gz")).text
    assert not list(root.glob("proof-*"))
    await call(bash, command=" tar tzf x.tar.gz")
    assert list(root.glob("proof-*")), "a command that the user allowed runs as ever"


async def test_the_command_reaches_bash_unchanged(bash: BashTool) -> None:
    command = "  printf '%s' \"$BASH_EXECUTION_STRING\" # 'ä\t\\ \n "

    assert (await call(bash, command=command)).text == command


UNREADABLE = {
    'echo "unterminated': "unexpected EOF while looking for matching",
    "if true; then echo x": "unexpected end of file",
    "for i in": "syntax error",
    "echo $(": "unexpected EOF",
    "echo a; )": "near unexpected token",
    "echo a |": "unexpected end of file",
    "echo 'it''s' isn't": "unexpected EOF",
    "echo fine\n{ echo x": "unexpected end of file",
    "case x in a) echo x": "unexpected end of file",
}
READABLE = [
    "shopt -s extglob\necho !(a)",
    "shopt -s expand_aliases\nalias x='if true'\nx; then echo y; fi",
    "cat <<A\nx",
    "ls",
]


async def test_only_a_command_that_bash_cannot_read_is_refused_before_the_question(bash: BashTool, root: Path) -> None:
    errors: dict[str, str] = {}
    for command in (*UNREADABLE, *READABLE):
        try:
            await bash.preview({"command": command})
        except InvalidArgumentsError as error:
            errors[command] = str(error)

    wrong = [command for command, part in UNREADABLE.items() if part not in errors.get(command, "")]
    assert (wrong, [command for command in READABLE if command in errors]) == ([], [])
    assert errors["echo a; )"].startswith("The command was not run, because bash cannot read it:\n")


WITH_CARRIAGE_RETURNS = {
    "echo test\r": "echo test",
    "if true\r\nthen echo x\r\nfi\r\n": "if true\nthen echo x\nfi\n",
    "cat <<EOF\r\nhi\r\nEOF\r\n": "cat <<EOF\nhi\nEOF\n",
    "cat <<'EOF' > a.bat\n@echo off\r\nEOF\n": "cat <<'EOF' > a.bat\n@echo off\r\nEOF\n",
    "printf 'a\\r\\n'": "printf 'a\\r\\n'",
}


async def test_a_command_with_line_ends_of_another_system_is_judged_shown_and_run_without_them(bash: BashTool) -> None:
    judged = {text: bash.subject({"command": text}) for text in WITH_CARRIAGE_RETURNS}

    assert judged == {text: CommandSubject(right) for text, right in WITH_CARRIAGE_RETURNS.items()}
    assert (await call(bash, command="if true\r\nthen printf x\r\nfi\r\n")).text == "x"
    preview = await bash.preview({"command": "echo test\r"})
    assert preview is not None
    assert preview.text == "echo test"


async def test_files_changed_by_a_command_are_reported(workspace: Workspace, tmp_path: Path) -> None:
    kept = Workspace(workspace.root, spool_dir=tmp_path / "spool", contents=ContentStore(tmp_path / "contents"))
    (workspace.root / "a.txt").write_text("a\n")
    recorded = Recorded()

    result = await call(
        BashTool(kept, is_read_only_command=only_reads), recorded, command="echo b >> a.txt; echo n > n; exit 1"
    )

    emitted = {Path(data["path"]).name: data for kind, data in recorded.data if kind == "file.changed"}
    assert {name: data["change"] for name, data in emitted.items()} == {"a.txt": "modified", "n": "created"}
    assert (emitted["a.txt"]["known"], emitted["a.txt"]["added"], emitted["a.txt"]["removed"]) == (True, 1, 0)
    assert emitted["a.txt"]["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n a\n+b\n"
    assert emitted["n"]["diff"].startswith("--- /dev/null\n+++ b/n\n")
    assert details_of(result)["files_changed"] == 2


async def test_the_total_size_of_a_commands_diffs_is_bounded(workspace: Workspace, tmp_path: Path) -> None:
    kept = Workspace(workspace.root, spool_dir=tmp_path / "spool", contents=ContentStore(tmp_path / "contents"))
    recorded = Recorded()

    command = "for i in {1..6}; do seq -f %030g 1 1000 > $i; done; head -c 9999 /dev/zero > binary"
    await call(BashTool(kept, is_read_only_command=only_reads), recorded, command=command)

    emitted = [data for kind, data in recorded.data if kind == "file.changed"]
    assert [len(data["diff"]) > 0 for data in emitted] == [True, True, True, False, False, False, False]
    assert sum(len(data["diff"]) for data in emitted) <= DIFF_LIMIT
    assert "more lines" in emitted[0]["diff"]
    assert {data["added"] for data in emitted[:4]} == {1000}


SHOWN_AS_A_TERMINAL_DOES = {
    "for i in {1..3000}; do printf '\\rDownloading %5d/3000' $i; done; echo; echo 'ERROR: checksum mismatch'; "
    "for i in {1..3000}; do printf '\\rUnpacking %5d' $i; done; echo; echo finished": (
        "Downloading  3000/3000\nERROR: checksum mismatch\nUnpacking  3000\nfinished"
    ),
    "for i in {1..200}; do printf '\\rprogress %d%%' $i; done; echo; echo done": "progress 200%\ndone",
    "mkdir -p f; touch f/a f/b; find f -type f -print0 | sort -z": (
        "f/a\nf/b\n[each NUL byte is shown as a line break]"
    ),
    "printf 'layer 1: 10%%\\nlayer 2: 10%%\\n\\033[2A\\033[Klayer 1: done\\n\\033[Klayer 2: 50%%\\n'": (
        "layer 1: done\nlayer 2: 50%"
    ),
    "printf 'a\\tb\\r\\nc\\r\\n'; printf 'cut: \\303'": "a\tb\nc\ncut: \ufffd",
}


async def test_the_model_gets_output_as_a_terminal_shows_it_in_the_end(bash: BashTool) -> None:
    results = {text: (await call(bash, command=text)).text for text in SHOWN_AS_A_TERMINAL_DOES}

    assert results == SHOWN_AS_A_TERMINAL_DOES


async def test_a_cut_inside_a_long_line_names_the_place_to_read_from(bash: BashTool) -> None:
    result = await call(bash, command="echo first; printf 'é%.0s' {1..20000}")

    head, note = result.text.split("\n")[1:3]
    assert note.endswith(f"use read to page it, from `offset` 2 and `column` {len(head) + 1} …]")


NEED_A_TERMINAL = {
    "an editor": "vim a.txt",
    "a screen of its own": r"printf 'hello\n\033[?1049h\033[22;0;0tmenu'; sleep 60",
    "rows and columns": r"printf 'hello\n\033[2;1H~\033[24;1H:'; sleep 60",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", NEED_A_TERMINAL.values(), ids=NEED_A_TERMINAL)
async def test_a_command_that_waits_for_keys_is_ended_with_a_hint(bash: BashTool, command: str) -> None:
    if command.startswith("vim") and not shutil.which("vim"):
        pytest.skip("vim is not installed")
    result = await call(bash, command=command, timeout=30)

    before, note = result.text.rsplit("\n", 1)
    assert note.startswith("[stopped: the command needs a terminal. ")
    assert "~" not in before
    assert "menu" not in before
    assert result.is_error
    assert not details_of(result)["timed_out"]
    assert not details_of(result)["cancelled"]


async def test_commands_that_miss_a_terminal_say_so_and_editors_change_nothing(bash: BashTool, root: Path) -> None:
    await call(
        bash, command="git init -q .; git config user.email a@b; git config user.name a; git config sequence.editor vim"
    )
    await call(bash, command="touch a; git add a; git commit -qm a; echo x > a")
    texts = {
        command: (await call(bash, command=command, timeout=30)).text
        for command in (
            "git commit -a",
            "git rebase -i --root --autostash",
            "echo failed tty get; false",
            "$EDITOR a; $VISUAL a",
            "echo 'fine: not a tty'",
        )
    }

    assert "Aborting commit due to empty commit message" in texts["git commit -a"]
    assert "Successfully rebased" in texts["git rebase -i --root --autostash"]
    assert texts["echo failed tty get; false"].endswith(
        "[commands have no terminal here: use options or a program that need none]"
    )
    assert texts["$EDITOR a; $VISUAL a"] == "[no output]"
    assert texts["echo 'fine: not a tty'"] == "fine: not a tty"


async def test_a_recorded_screen_in_the_output_ends_no_command(bash: BashTool) -> None:
    for shown in (r"\033[2;1Hrecorded\033[24;1H:\n", r"\033[1;1H\033[2Jcompiling "):
        result = await call(bash, command=f"printf '{shown}'; sleep 0.8; echo worked")
        assert result.text.endswith("worked")


RUN_AS_A_TERMINAL_DOES = {
    "pkill -f 'vite --port 5173'; echo after": "after",
    "pgrep -f 'no-such-program-8812' || echo none": "none",
    "kill $(pgrep -f 'my-dev-server') 2>/dev/null; echo after": "after",
    "(sleep 0.05; pkill -f 'another-dev-server'); echo after": "after",
    "echo $0 $# $-": f"{shutil.which('bash')} 0 hBc",
    "echo a\nno-such-program\necho $LINENO": (
        f"a\n{shutil.which('bash')}: line 2: no-such-program: command not found\n3"
    ),
    "set -e\nfalse\necho not reached": "[exit code 1]",
    "trap 'echo bye' EXIT; exit 4": "bye\n[exit code 4]",
    "cat; ls /proc/self/fd | wc -l": "4",
    "printf '%s' '" + "x" * 200_000 + "' | wc -c": "200000",
    "printf '\x01\x7f\u00e9\u0300' | od -An -c": "001 177 303 251 314 200",
}


async def test_the_text_of_a_command_runs_as_in_a_terminal_and_never_finds_its_own_shell(bash: BashTool) -> None:
    wanted = {text: end for text, end in RUN_AS_A_TERMINAL_DOES.items() if shutil.which("pkill") or "f '" not in text}
    results = {text: re.sub(" +", " ", (await call(bash, command=text)).text.strip()) for text in wanted}

    assert results == wanted


async def test_output_that_cannot_be_saved_is_reported(root: Path) -> None:
    (root / "file").touch()
    tool = BashTool(Workspace(root, spool_dir=root / "file"), is_read_only_command=only_reads)

    result = await call(tool, command="seq 1 100000")

    assert "the full output could not be saved: File exists …]" in result.text
    assert result.text.endswith("100000")
