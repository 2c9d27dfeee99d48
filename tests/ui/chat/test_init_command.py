"""`/init` and `/effort` as the user types them."""

from pathlib import Path

from tests.support.table import table
from tests.ui.stage import Stage, StageTool, stage
from tests.ui.still import notes
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.providers.scripted_provider import call, reply


def place(on_stage: Stage, folder: Path) -> None:
    on_stage.loop.config.workspace = folder


def shown(on_stage: Stage) -> str:
    return " ".join(notes(on_stage.app))


async def test_init_does_not_overwrite_a_file_unasked(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("mine")
    async with stage(["Revised."], mode=PermissionMode.ALLOW) as on_stage:
        place(on_stage, tmp_path)
        await on_stage.say("/init")
        await on_stage.until(lambda: "AGENTS.md exists and was not changed. /init update" in shown(on_stage))
        assert on_stage.told() == []
        assert on_stage.draft == "/init"

        await on_stage.type(" update")
        await on_stage.pilot.press("enter")
        await on_stage.settled()
        [prompt] = on_stage.told()
        assert prompt.startswith("Revise AGENTS.md")


@table(
    ("typed", "mode", "answer"),
    [
        ("/init all", PermissionMode.ASK, "/init writes AGENTS.md; /init update revises it"),
        ("/init update", PermissionMode.ASK, "This project has no AGENTS.md. /init writes one."),
        ("/init", PermissionMode.PLAN, "Plan mode changes no files"),
    ],
)
async def test_init_says_why_nothing_happens(tmp_path: Path, typed: str, mode: PermissionMode, answer: str) -> None:
    async with stage(mode=mode) as on_stage:
        place(on_stage, tmp_path)
        await on_stage.say(typed)

        await on_stage.until(lambda: answer in shown(on_stage))
        assert on_stage.told() == []


async def test_init_waits_for_the_run(tmp_path: Path) -> None:
    look = StageTool("look", waits=True)
    async with stage([reply(call("look", what="a")), "Done.", "Written."], [look]) as on_stage:
        place(on_stage, tmp_path)
        await on_stage.say("look")
        await on_stage.until(lambda: look.ran)
        await on_stage.say("/init")
        await on_stage.until(lambda: "turns to AGENTS.md when it is done" in shown(on_stage))
        look.gate.set()
        await on_stage.settled()
        await on_stage.until(lambda: len(on_stage.told()) == 2)
