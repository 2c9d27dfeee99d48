"""Skills and command files that the user types: prompts, shell commands under the permission rules, limits of a run."""

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.agent.harness import Bench, BenchMaker
from tui_agent.agent.delegation import delegate
from tui_agent.definitions.discovery import Place, read_definitions
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.events import PermissionDecided, RunStarted
from tui_agent.protocol.provider import ModelInfo
from tui_agent.protocol.tool import ToolContext
from tui_agent.providers import Reply, ScriptedProvider, call, reply
from tui_agent.settings import Settings
from tui_agent.tools import BackgroundJobs
from tui_agent.workbench.built_in_tools import built_in_tools
from tui_agent.workbench.sessions.side_requests import SideRequests
from tui_agent.workbench.typed_definitions import (
    NamedModels,
    TypedDefinitions,
    catalogue_layers,
    definitions_in_force,
    give_definitions,
)


@pytest.fixture
async def jobs() -> AsyncIterator[BackgroundJobs]:
    async with BackgroundJobs() as opened:
        yield opened


def made(
    root: Path,
    steps: Sequence[str | Reply],
    rules: Sequence[str] = (),
    mode: str = "ask",
    jobs: BackgroundJobs | None = None,
    other: ScriptedProvider | None = None,
) -> tuple[Bench, TypedDefinitions]:
    """Return an agent in a workspace with the definitions of its folder `.claude`."""
    policy = PermissionPolicy(root, rules=rules, mode=mode)
    definitions = definitions_in_force(read_definitions([Place(root / ".claude", "project")]))
    layers = catalogue_layers(definitions)
    b = BenchMaker()(steps, *built_in_tools(root, root / "spool", jobs=jobs), policy=policy, layers=layers)
    models = NamedModels(b.loop, Settings(), SideRequests(Settings(), lambda _: other or ScriptedProvider([])))
    give_definitions(b.loop, definitions, models)
    return b, TypedDefinitions(b.loop, definitions, models)


def write(root: Path, name: str, text: str) -> None:
    path = root / ".claude" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


async def test_a_command_file_becomes_a_prompt_with_arguments_and_outputs(tmp_path: Path, jobs: BackgroundJobs) -> None:
    (tmp_path / "notes.txt").write_text("first\nsecond\n")
    write(tmp_path, "commands/look.md", "Explain $1: !`head -n 1 $1` See @notes.txt.")
    b, typed = made(tmp_path, ["It is a list."], jobs=jobs)

    assert typed.knows("/look notes.txt")
    report = await typed.run("/look notes.txt")

    assert report is not None
    assert b.sent(0) == ['user: Explain notes.txt: <output of="head -n 1 notes.txt">first</output> See @notes.txt.']
    assert [event.trigger for event in b.of(RunStarted)] == ["command", "prompt"]
    assert b.of(RunStarted)[0].input == "/look: head -n 1 notes.txt"


@pytest.mark.parametrize(("rules", "mode"), [((), "ask"), (("deny bash(rm:*)",), "allow"), ((), "plan")])
async def test_a_command_of_a_file_runs_only_if_the_rules_allow_it(
    tmp_path: Path, rules: tuple[str, ...], mode: str, jobs: BackgroundJobs
) -> None:
    (tmp_path / "precious").write_text("data")
    write(tmp_path, "commands/clean.md", "---\nallowed-tools: Bash(rm:*)\n---\nClean up: !`rm precious`")
    b, typed = made(tmp_path, ["It was refused."], rules, mode, jobs)

    await typed.run("/clean")

    assert (tmp_path / "precious").exists()
    assert [event.decision for event in b.of(PermissionDecided)] in (["ask"], ["deny"])
    (sent,) = b.sent(0)
    assert "This command was not run: " in sent


async def test_arguments_neither_run_nor_add_anything(tmp_path: Path, jobs: BackgroundJobs) -> None:
    write(tmp_path, "commands/say.md", 'Say $ARGUMENTS. !`echo "$ARGUMENTS"`')
    b, typed = made(tmp_path, ["Done."], ["allow bash(echo:*)"], jobs=jobs)

    await typed.run("/say !`touch a` $(touch b); touch c")

    assert list(tmp_path.glob("?")) == []
    typed_text = "!`touch a` $(touch b); touch c"
    assert b.sent(0) == [f"user: Say {typed_text}. <output of=\"echo '{typed_text}'\">{typed_text}</output>"]


async def test_a_command_limits_the_tools_and_the_model_of_its_run_alone(tmp_path: Path) -> None:
    write(tmp_path, "commands/a.md", "---\nallowed-tools: Read, Bash(git log:*), nothing\nmodel: other\n---\nGo")
    other = ScriptedProvider(["From the other model."], model=ModelInfo("other"))
    b, typed = made(tmp_path, ["Mine."], other=other)

    assert typed.needs_own_run("/a")
    with pytest.raises(ConfigurationError, match="needs a run of its own"):
        typed.expanded("/a")
    await typed.run("/a")
    await b.loop.run("Hi")

    assert b.texts[1::2] == ["assistant: From the other model.", "assistant: Mine."]
    assert {tool.name for tool in other.requests[0].tools} == {"read", "bash", "bash_output", "kill_bash"}
    assert {"write", "grep"} <= {tool.name for tool in b.provider.requests[0].tools}
    assert b.loop.provider.model.name == "scripted-model"


def test_a_command_without_needs_can_be_a_steering_message(tmp_path: Path) -> None:
    write(
        tmp_path, "commands/git/a.md", "---\ndescription: Be\n  brief\nargument-hint: [what]\n---\nBe brief about $1."
    )
    _, typed = made(tmp_path, [])

    assert not typed.needs_own_run("/git:a tests")
    assert typed.expanded("/git:a tests") == "Be brief about tests."
    assert typed.expanded("/unknown tests") == "/unknown tests"
    assert [(one.slash, one.argument, one.help) for one in typed.commands] == [("git:a", "[what]", "Be brief")]


async def test_skills_are_listed_for_the_model_and_loaded_by_it_or_by_name(tmp_path: Path) -> None:
    write(tmp_path, "skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Fills forms.\n---\nUse fill.py.")
    write(tmp_path, "skills/pdf/fill.py", "pass")
    write(tmp_path, "skills/help/SKILL.md", "---\nname: help\ndescription: Helps.\n---\nHelp.")
    b, typed = made(tmp_path, ["Filled."])

    await typed.run("/pdf the tax form")

    request = b.provider.requests[0]
    assert "skill" in [tool.name for tool in request.tools]
    assert any("- pdf: Fills forms." in part.text for part in request.system)
    (sent,) = b.sent(0)
    assert f"Skill pdf, in {tmp_path}/.claude/skills/pdf." in sent
    assert "\n- fill.py\n\nUse fill.py.\n\nArguments: the tax form" in sent
    assert [one.slash for one in typed.commands] == ["pdf"], "a skill never replaces a built-in command"


async def test_a_sub_agent_has_the_steps_and_tools_of_its_file(tmp_path: Path, jobs: BackgroundJobs) -> None:
    write(tmp_path, "agents/short.md", "---\ndescription: d\nmaxTurns: 1\ntools: []\n---\nText")
    b, _ = made(tmp_path, [reply(call("read", path="x")), "Done."], jobs=jobs)
    models = NamedModels(b.loop, Settings(), SideRequests(Settings(), lambda _: ScriptedProvider([])))
    found = definitions_in_force(read_definitions([Place(tmp_path / ".claude", "project")]))
    (profile,) = give_definitions(b.loop, found, models)

    report = await delegate(b.loop, "Do it.", context="fresh", profile=profile)

    assert report.reason == "max_steps"
    assert b.provider.requests[0].tools == ()


def test_a_page_lists_what_is_used_and_what_is_not(tmp_path: Path) -> None:
    write(tmp_path, "agents/review.md", "---\ndescription: Reviews.\n---\nText")
    write(tmp_path, "commands/help.md", "Mine.")
    write(tmp_path, "skills/bad/SKILL.md", "---\nname: bad\ndescription: x\n---\n")
    _, typed = made(tmp_path, [])

    used, *problems = typed.facts()

    assert (used.kind, used.name, used.description) == ("sub-agent", "review", "Reviews.")
    assert [(one.kind, one.problem.partition(": ")[2]) for one in problems] == [
        ("skill", "not used: the text of the skill is missing"),
        ("command", "not used: /help is a built-in command"),
    ]


def test_without_definitions_nothing_of_them_is_loaded(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, pathlib\n"
        "from tests.workbench.quiet_bench import open_quietly\n"
        "from tests.workbench.configuration.test_live_settings import options_for\n"
        "async def main():\n"
        f"    options = options_for(pathlib.Path({str(tmp_path)!r}))\n"
        "    async with open_quietly(options) as bench:\n"
        "        assert bench.definitions.facts() == ()\n"
        "        assert 'skill' not in {tool.name for tool in bench.agent.tools}\n"
        "asyncio.run(main())\n"
        "unwanted = {'yaml', 'tui_agent.definitions', 'tui_agent.workbench.typed_definitions'}\n"
        "unwanted |= {'tui_agent.hook_files', 'tui_agent.workbench.file_hooks', 'tui_agent.tools.findings_tool'}\n"
        "assert not unwanted & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


async def test_a_skill_is_filled_in_as_a_command_is(tmp_path: Path, jobs: BackgroundJobs) -> None:
    body = "Now: !`echo DYN` args=$ARGUMENTS a1=$1 b=$ARGUMENTS[1] c=$second in ${CLAUDE_SKILL_DIR}"
    write(tmp_path, "skills/dyn/SKILL.md", f"---\narguments: [first, second]\n---\n{body}")
    b, typed = made(tmp_path, ["Done."], ["allow bash(echo DYN)"], jobs=jobs)

    assert typed.needs_own_run("/dyn one two")
    await typed.run("/dyn one two")

    (sent,) = b.sent(0)
    filled = f"args=one two a1=one b=two c=two in {tmp_path}/.claude/skills/dyn"
    assert sent.endswith(f'Now: <output of="echo DYN">DYN</output> {filled}')


async def test_skills_for_the_user_or_the_model_alone_are_only_there_for_one(tmp_path: Path) -> None:
    write(tmp_path, "skills/manual/SKILL.md", "---\ndisable-model-invocation: true\n---\nMANUAL")
    write(tmp_path, "skills/auto/SKILL.md", "---\nuser-invocable: false\nname: automatic\n---\nAUTO")
    b, typed = made(tmp_path, ["Done."])

    await typed.run("/manual")

    system = "".join(part.text for part in b.provider.requests[0].system)
    assert ("manual" in system, "- automatic: AUTO" in system) == (False, True)
    assert "MANUAL" in b.sent(0)[0]
    assert (typed.knows("/auto"), typed.knows("/automatic")) == (False, False)
    skills = next(tool for tool in b.loop.tools if tool.name == "skill")
    assert "AUTO" in (await skills.execute({"name": "auto"}, ToolContext("1", "skill"))).text
    with pytest.raises(ToolError, match="no skill 'manual'"):
        await skills.execute({"name": "manual"}, ToolContext("1", "skill"))
