"""Layouts of `.claude` folders as repositories publish them: each entry is used, or named with a reason."""

import json
from pathlib import Path

from tests.support.table import table
from tui_agent.definitions.discovery import project_places, read_definitions
from tui_agent.definitions.records import Definitions, kind_of
from tui_agent.hook_files.hook_file_reader import parse_hook_file
from tui_agent.protocol.prompt_references import RESERVED_COMMANDS

GUARD = "python3 .claude/hooks/guard.py"


def front(body: str = "Text.", **fields: str) -> str:
    """Return a file with front matter; `_` in names stands for `-`."""
    lines = (f"{name.replace('_', '-')}: {value}" for name, value in fields.items())
    return "\n".join(("---", *lines, "---", body))


def settings(**events: object) -> str:
    """Return a settings file with one hook for each event: its command, or its whole entry."""
    entries: dict[str, object] = {
        name: [{"matcher": "", "hooks": [{"type": "command", "command": entry} if isinstance(entry, str) else entry]}]
        for name, entry in events.items()
    }
    return json.dumps({"hooks": entries}, indent=1)


def hook(**fields: object) -> dict[str, object]:
    return {"type": "command", "command": GUARD, **fields}


Layout = tuple[str, dict[str, str], str, tuple[str, ...]]
LAYOUTS: list[Layout] = [
    # name, files below `.claude`, everything that is used, reasons for the others and notes
    ("plain", {"commands/fix.md": "Fix it.", "agents/qa.md": front(description="d")}, "command fix, agent qa", ()),
    (
        "agents in folders by subject",
        {
            "agents/team/lead.md": front(name="lead", description="d", model="opus", color="red"),
            "agents/team/deep/dev.md": front(description="d", tools="Read, Write, Bash, mcp__docs__search"),
            "agents/README.md": "# Agents",
        },
        "agent lead, agent dev",
        ("agents/README.md:1: not used: `description` is missing",),
    ),
    (
        "commands in folders",
        {"commands/git/ship.md": front(description="d"), "commands/git/hot/fix.md": "Fix $ARGUMENTS"},
        "command git:ship, command git:hot:fix",
        (),
    ),
    (
        "skills grouped by subject",
        {
            "skills/office/pdf/SKILL.md": front(name="pdf", description="d"),
            "skills/office/xlsx/SKILL.md": front(name="xlsx", description="d", license="MIT"),
            "skills/office/pdf/reference/SKILL.md": "part of the skill pdf",
            "skills/shared/style.md": "no skill",
        },
        "skill pdf, skill xlsx",
        ("skills/shared: not used: it has no SKILL.md",),
    ),
    (
        "skills as single files",
        {"skills/review-pr.md": front(name="review-pr", description="d"), "skills/README.md": "# Skills"},
        "",
        ("skills/review-pr.md: not used: a skill is a folder with SKILL.md; move it to review-pr/SKILL.md",),
    ),
    (
        "a long description in several lines",
        {"skills/api/SKILL.md": front(name="api", description=">-\n  " + "words " * 200)},
        "skill api",
        ("skills/api/SKILL.md:3: `description` has 1,199 characters",),
    ),
    (
        "names with capitals, blanks and other folders",
        {
            "skills/postgresql/SKILL.md": front(name="pg-design", description="d"),
            "skills/Big Name/SKILL.md": front(name="Big Name", description="d"),
            "agents/x.md": front(name="Code Reviewer", description="d"),
        },
        "skill pg-design, skill Big-Name, agent Code-Reviewer",
        ("SKILL.md:2: `name` is pg-design", "SKILL.md:2: `name` is Big Name", "x.md:2: `name` is Code Reviewer"),
    ),
    ("without front matter", {"skills/plain/SKILL.md": "# Title\n\nText"}, "skill plain", ()),
    (
        "skills only for the user, or only for the model",
        {
            "skills/deploy/SKILL.md": front(description="d", disable_model_invocation="true", allowed_tools="Bash"),
            "skills/style/SKILL.md": front(description="d", user_invocable="false"),
        },
        "skill deploy, skill style",
        (),
    ),
    (
        "a skill that runs in another context",
        {"skills/audit/SKILL.md": front(description="d", context="fork", agent="Explore", effort="high")},
        "skill audit",
        ("SKILL.md:3: 'context' has no effect", "SKILL.md:4: 'agent' has no", "SKILL.md:5: 'effort' has no"),
    ),
    (
        "a skill for some files",
        {"skills/ruby/SKILL.md": front(description="d", paths='\n  - "**/*.rb"\n  - Gemfile')},
        "skill ruby",
        (),
    ),
    (
        "a skill with hooks, and one for another shell",
        {
            "skills/guarded/SKILL.md": front(description="d", hooks="\n  PreToolUse: []"),
            "skills/windows/SKILL.md": front(description="d", shell="powershell"),
        },
        "",
        ("guarded/SKILL.md:3: not used: 'hooks' is not", "windows/SKILL.md:3: not used: 'shell' is not supported"),
    ),
    (
        "an agent that only plans",
        {
            "agents/planner.md": front(name="planner", description="d", permissionMode="plan"),
            "agents/worker.md": front(
                description="d", maxTurns="30", memory="project", background="true", skills="\n  - a"
            ),
            "agents/none.md": front(description="d", tools="[]", disallowedTools="Bash"),
        },
        "agent worker, agent none",
        (
            "planner.md:4: not used: 'permissionMode'",
            "worker.md:4: 'memory' has",
            "worker.md:5: 'background' has",
            "worker.md:6: 'skills' has",
        ),
    ),
    (
        "an agent of another program",
        {"agents/open.md": front(description="d", mode="subagent", temperature="0.1", permission="\n  edit: deny")},
        "",
        ("open.md:5: not used: 'permission' is not supported and changes what it may do",),
    ),
    (
        "names that are taken",
        {
            "commands/help.md": "Help.",
            "commands/pdf.md": "PDF.",
            "skills/pdf/SKILL.md": front(description="d"),
            "skills/clear/SKILL.md": front(description="d"),
        },
        "skill pdf, skill clear",
        ("help.md: not used: /help is a", "pdf.md: not used: the skill", "SKILL.md: /clear is a built-in command, so"),
    ),
    (
        "placeholders without a value",
        {"commands/x.md": "${CLAUDE_SESSION_ID} ${CLAUDE_EFFORT}", "skills/s/SKILL.md": "a\n\n${CLAUDE_PLUGIN_ROOT}/x"},
        "command x, skill s",
        ("x.md:1: ${CLAUDE_EFFORT} has no value here", "SKILL.md:3: ${CLAUDE_PLUGIN_ROOT} has no value here"),
    ),
    (
        "broken front matter",
        {"commands/a.md": "---\ndescription: d\nText", "agents/b.md": "---\nname: b\n\tdescription: d\n---\nText"},
        "",
        ("a.md:1: not used: the front matter has no end", "b.md:3: not used: not valid YAML"),
    ),
    (
        "hooks for every event",
        {
            "settings.json": settings(
                PreToolUse=GUARD, PostToolUse=GUARD, Stop=GUARD, SessionEnd=GUARD, PreCompact=GUARD,
                PostToolUseFailure=GUARD, UserPromptExpansion=GUARD, InstructionsLoaded=GUARD, WorktreeCreate=GUARD,
            )
        },
        "hook PreToolUse, hook PostToolUse, hook Stop, hook SessionEnd, hook PreCompact",
        tuple(
            f": the event {name} is not known here"
            for name in ("PostToolUseFailure", "UserPromptExpansion", "InstructionsLoaded", "WorktreeCreate")
        ),
    ),
    (
        "hooks of other types",
        {
            "settings.json": settings(
                PreToolUse={"type": "prompt", "prompt": "Is it safe? $ARGUMENTS"},
                PostToolUse={"type": "http", "url": "http://127.0.0.1:9/x"},
                Stop={"type": "mcp_tool", "server": "s", "tool": "t"},
            )
        },
        "",
        ('PreToolUse: only hooks of the type command run here, not "prompt"', 'not "http"', 'not "mcp_tool"'),
    ),
    (
        "hooks with fields of later versions",
        {
            "settings.json": settings(
                PreToolUse=hook(**{"if": "Bash(git *)", "timeout": 5, "statusMessage": "…"}),
                PostToolUse=hook(**{"async": True}),
                Stop=hook(asyncRewake=True, rewakeSummary="s"),
                SessionStart=hook(once=True),
                Notification={"type": "command", "command": "notify-send", "args": ["Waiting"]},
                PermissionRequest=hook(shell="powershell"),
            )
        },
        "hook PreToolUse, hook PostToolUse, hook Notification",
        ("Stop: 'asyncRewake', 'rewakeSummary' is not supported",
         "SessionStart: 'once' is not supported", "PermissionRequest: only bash is supported"),
    ),
    (
        "other settings",
        {"settings.json": '{"$schema": "https://x",\n"env": {"A": "1"}, "model": "opus", "statusLine": {}}'},
        "",
        ("json:2: only hooks and permissions are read of this file, not 'env', 'model', 'statusLine'",),
    ),
    (
        "rules",
        {
            "settings.json": json.dumps(
                {
                    "permissions": {
                        "allow": ["Bash(ls:*)"],
                        "deny": ["Read(./.env)", "Read(secrets/**)", "Bash(curl:*)", "Skill(deploy)"],
                        "ask": ["Bash(git push *)", "Agent(Explore)"],
                        "defaultMode": "plan",
                    }
                },
                indent=1,
            )
        },
        "",
        (
            "json:10: the deny rule 'Skill(deploy)' has no",
            "json:14: the ask rule 'Agent(Explore)' has no",
            "json:16: 'defaultMode'",
        ),
    ),
]  # fmt: skip


@table(("name", "files", "used", "named"), LAYOUTS)
def test_every_entry_is_used_or_named(
    name: str, files: dict[str, str], used: str, named: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / ".claude"
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, "utf-8")

    found = Definitions.of(read_definitions(project_places(tmp_path)), RESERVED_COMMANDS)
    in_force = (*found.skills, *found.commands, *found.agents)
    entries = [f"{kind_of(one)} {one.name}" for one in in_force]
    texts = [*(problem.text for problem in found.problems), *(note for one in in_force for note in one.source.notes)]
    if "settings.json" in files:
        content = (folder / "settings.json").read_bytes()
        file = parse_hook_file(content, ".claude/settings.json", "project", tmp_path)
        entries += [f"hook {one.event}" for one in file.hooks]
        texts += [*file.problems, *file.rule_problems, *file.unread]
        assert all(problem in file.unused_guards for problem in file.problems if "PreToolUse" in problem)

    assert sorted(entries) == sorted(filter(None, used.split(", "))), texts
    assert len(texts) == len(named), texts
    for part in named:
        assert sum(part in text for text in texts) == 1, (part, texts)
