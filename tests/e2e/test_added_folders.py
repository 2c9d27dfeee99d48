"""Folders that are added to the workspace: before the start, while it runs, and in a resumed session."""

from pathlib import Path

import pytest

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, says, words_in
from .test_headless import piped
from .user_machine import UserMachine

pytestmark = pytest.mark.slow


@pytest.fixture
def library(machine: UserMachine) -> Path:
    folder = machine.root / "library"
    folder.mkdir()
    folder.joinpath("lib.py").write_text("def price(): ...\n", "utf-8")
    return folder


def test_a_folder_joins_a_running_session_and_stays_when_it_is_resumed(machine: UserMachine, library: Path) -> None:
    lib = str(library / "lib.py")
    script = [
        calls(call("read", path=lib)),
        says("Not yet."),
        calls(call("read", path=lib), call("grep", pattern="price", path=str(library))),
        calls(call("write", path=str(library / "new.py"), content="x\n"), call("bash", command=f"touch {library}/t")),
        says("Done."),
    ]
    with piped(machine, script, "--permission-mode", "accept_edits", "--session", "s1") as (program, server):
        program.tell(type="user", text="one")
        asked = program.hear("approval.requested")["data"]
        program.tell(type="approval", request_id=asked["request_id"], decision="deny")
        program.hear("run.ended")
        program.tell(type="add_dir", path="nowhere")
        assert "cannot add nowhere: it is not a folder" in program.hear("error")["data"]["text"]
        program.tell(type="add_dir", path="../library")
        assert program.hear("notice")["data"]["context"] == {"folder": str(library)}
        program.tell(type="user", text="two")
        program.hear("run.ended")
        assert program.end() == 0
        told = words_in(bodies_of(server)[2])
    assert any(f"The user added {library} to the workspace" in text for text in told)
    kinds = [event["type"] for event in program.events]
    assert kinds.count("approval.requested") == 1
    assert (library / "new.py").read_text("utf-8") == "x\n"
    assert (library / "t").exists()

    with ServerThread([calls(call("read", path=lib)), says("Read.")]) as server:
        done = machine.run("-p", "three", "--resume", "s1", variables=server.environment)
        system = "".join(part["text"] for part in bodies_of(server)[0]["system"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "Read.\n", "")
    assert f"Also part of the workspace, with absolute paths: {library}" in system

    (library / "lib.py").unlink()
    for one in library.iterdir():
        one.unlink()
    library.rmdir()
    with ServerThread([says("Gone.")]) as server:
        done = machine.run("-p", "four", "--resume", "s1", variables=server.environment)
    assert f"A folder of this session: cannot add {library}: it is not a folder" in done.stderr
