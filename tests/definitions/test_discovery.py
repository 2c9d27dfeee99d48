"""Reading of skills, commands and sub-agents: places, names, conflicts, and files that are not used."""

import os
from pathlib import Path

import pytest

from tui_agent.definitions.discovery import (
    MAX_FILE,
    project_places,
    read_definitions,
    skill_files,
    user_places,
)
from tui_agent.definitions.records import Definitions, is_allowed


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    return folder


def read(project: Path, home: Path | None = None, reserved: tuple[str, ...] = ()) -> Definitions:
    own = read_definitions(user_places(home / "config", home)) if home else ()
    return Definitions.of((*own, *read_definitions(project_places(project))), reserved)


def only_problem(project: Path) -> str:
    found = read(project)
    assert (found.skills, found.commands, found.agents) == ((), (), ())
    assert len(found.problems) == 1, found.problems
    return found.problems[0].text


def test_the_users_own_come_first_then_the_nearest_and_no_file_replaces_a_built_in_command(
    project: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for folder, text in (
        (home / ".claude", "own"),
        (project / ".claude", "far"),
        (project / "deep/.claude", "near"),
        (project / "deep/.tui-agent", "nearest"),
    ):
        write(folder / "commands/a.md", f"{text} a")
        if text != "own":
            write(folder / "commands/b.md", f"{text} b")
    write(project / ".claude/commands/help.md", "not the help")

    found = read(project / "deep", home, reserved=("help",))

    assert {command.name: command.body for command in found.commands} == {"a": "own a", "b": "nearest b"}
    reasons = [problem.text for problem in found.problems]
    assert ".claude/commands/help.md: not used: /help is a built-in command" in reasons
    assert len(reasons) == 6
    assert sum("comes first" in reason for reason in reasons) == 5


def test_one_file_under_two_names_is_read_once(project: Path) -> None:
    write(project / ".agents/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Forms.\n---\nText")
    (project / ".claude").mkdir()
    (project / ".claude/skills").symlink_to(project / ".agents/skills")

    found = read(project)

    assert len(found.skills) == 1
    assert found.problems == ()


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("hooks: {PreToolUse: []}\ndescription: x", "'hooks' is not supported and changes what it may do"),
        ("shell: powershell", "'shell' is not supported and changes what it may do"),
        ("name: pdf\ndescription: {a: b}", "`description` must be text"),
        ("name: pdf\n\tdescription: x", "SKILL.md:3: not used: not valid YAML"),
        ("- name", "SKILL.md:2: not used: the front matter must be a table"),
        ("name: &a [*a]", "SKILL.md:2: not used: not valid YAML"),
        ("name: [[a]]", "`name` must be text"),
        ("name: " + "[" * 15_000, "nested too deeply"),
        ("- " * 8_000, "not valid YAML"),
        (f"name: {'x' * 20_000}", "longer than"),
    ],
)
def test_a_bad_skill_is_a_problem_with_file_and_line(project: Path, front: str, reason: str) -> None:
    write(project / ".claude/skills/pdf/SKILL.md", f"---\n{front}\n---\nText")

    text = only_problem(project)

    assert text.startswith(".claude/skills/pdf/SKILL.md")
    assert reason in text


def test_skills_in_other_encodings_and_letters_are_read(project: Path) -> None:
    text = "---\nname: {}\ndescription: größer\n---\nText"
    for name, file, content in (
        ("wide", "SKILL.md", text.format("wide").encode("utf-16")),
        ("old", "SKILL.md", text.format("old").replace("\n", "\r").encode()),
        ("small", "skill.md", text.format("small").encode()),
    ):
        write(project / f".claude/skills/{name}/{file}", "").write_bytes(content)

    found = {(skill.name, skill.description, skill.body) for skill in read(project).skills}

    assert found == {(name, "größer", "Text") for name in ("wide", "old", "small")}


def test_keys_that_restrict_a_skill_are_honoured(project: Path) -> None:
    for name, key in {
        "manual": "disable-model-invocation: true",
        "odd": "disable-model-invocation: perhaps",
        "automatic": "user-invocable: false",
        "both": "user-invocable: yes\ndisable-model-invocation: no",
        "reading": "disallowed-tools: Bash, Write",
        "writing": "disallowedTools: Bash",
        "other": "Disable_Model_Invocation: true\nuserInvocable: false",
    }.items():
        write(project / f".claude/skills/{name}/SKILL.md", f"---\n{key}\n---\nText")

    found = {skill.name: (skill.for_model, skill.for_user, skill.tools) for skill in read(project).skills}

    assert found == {
        "manual": (False, True, None),
        "odd": (False, True, None),
        "automatic": (True, False, None),
        "both": (True, True, None),
        "reading": (False, True, ("!bash", "!write", "!bash_output", "!kill_bash")),
        "writing": (False, True, ("!bash", "!bash_output", "!kill_bash")),
        "other": (False, False, None),
    }


def test_a_pattern_allows_tools_and_an_exclamation_mark_forbids_them() -> None:
    cases = (("grep", ("!bash",), True), ("bash", ("*", "!bash"), False), ("edit", ("read",), False))
    assert [is_allowed(tool, patterns) for tool, patterns, _ in cases] == [expected for *_, expected in cases]


def test_files_that_cannot_be_read_are_problems(project: Path) -> None:
    commands = project / ".claude/commands"
    write(commands / "long.md", "x" * (MAX_FILE + 1))
    (commands / "bytes.md").write_bytes(b"one\n\xff")
    os.mkfifo(commands / "pipe.md")
    write(commands / "open.md", "---\ndescription: x\n")
    write(commands / "two words.md", "x")
    write(project / ".claude/agents/empty.md", "---\ndescription: x\n---\n")

    texts = {problem.text for problem in read(project).problems}

    assert len(texts) == 6
    assert any("long.md: not used: it cannot be read" in text and "larger" in text for text in texts)
    assert ".claude/commands/bytes.md:2: not used: it is not UTF-8 text" in texts
    assert any("pipe.md: not used: it cannot be read" in text for text in texts)
    assert any("open.md:1: not used: the front matter has no end" in text for text in texts)


def test_links_out_of_the_repository_or_of_a_skills_folder_are_not_used(project: Path, tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.md", "---\nname: pdf\ndescription: x\n---\nkey")
    (project / ".claude/commands").mkdir(parents=True)
    (project / ".claude/commands/secret.md").symlink_to(secret)
    inside = write(project / "README.md", secret.read_text("utf-8"))
    (project / ".claude/skills/pdf").mkdir(parents=True)
    (project / ".claude/skills/pdf/SKILL.md").symlink_to(inside)

    found = read(project)

    assert (found.skills, found.commands) == ((), ())
    reasons = sorted(problem.reason for problem in found.problems)
    assert reasons[0].endswith("README.md, outside the skill's folder")
    assert reasons[1].endswith("secret.md, outside this repository")


def test_the_list_of_a_skills_files_has_no_links_out_of_its_folder(project: Path, tmp_path: Path) -> None:
    folder = project / ".claude/skills/pdf"
    write(folder / "SKILL.md", "---\nname: pdf\ndescription: x\n---\nText")
    write(folder / "scripts/fill\x1b.py", "pass")
    (folder / "key").symlink_to(write(tmp_path / "key", "secret"))
    (folder / "all").symlink_to(tmp_path)

    assert skill_files(read(project).skills[0]) == ("scripts/fill\\x1b.py",)


def test_hidden_characters_become_escapes(project: Path) -> None:
    write(project / ".claude/commands/a.md", "---\ndescription: x\u202ey\n---\nDo\u200b it\x1b[2J")

    (command,) = read(project).commands

    assert command.description == "x\\u202ey"
    assert command.body == "Do\\u200b it\\x1b[2J"


def test_values_without_the_quotes_that_yaml_wants_are_read(project: Path) -> None:
    write(project / ".claude/agents/a.md", "---\nname: a\ndescription: Use it. Example: <x>user: hi</x>\n---\nBody")
    write(project / ".claude/commands/b.md", "---\nargument-hint: [pr] [label] # or: none\ndescription: no\n---\nBody")

    found = read(project)

    assert found.problems == ()
    assert found.agents[0].description == "Use it. Example: <x>user: hi</x>"
    assert found.commands[0].hint == "[pr] [label] # or: none"
    assert found.commands[0].description == "no"
