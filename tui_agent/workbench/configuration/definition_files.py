"""Skills, commands and sub-agents of the user and of a project, read only where there are some."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.repository_files import repository_root
from tui_agent.settings import Locations

if TYPE_CHECKING:
    # Imported at run time only by a program that has such files.
    from tui_agent.definitions.records import Definition, Found

_FOLDERS = (".tui-agent", ".claude")
_KINDS = ("skills", "commands", "agents")


def own_definitions(locations: Locations) -> "tuple[Found, ...]":
    """Read the user's own definitions. Blocks; never raises."""
    home = Path.home()
    kinds = [folder / kind for folder in (locations.config_dir, home / ".claude") for kind in _KINDS]
    if not any(map(os.path.lexists, (*kinds, home / ".agents/skills"))):
        return ()
    from tui_agent.definitions.discovery import read_definitions, user_places

    return read_definitions(user_places(locations.config_dir, home))


def project_definitions(folder: Path, locations: Locations) -> "tuple[Found, ...]":
    """Read the definitions from the repository root down to a folder, except the user's own. Blocks; never raises."""
    here = Path(os.path.realpath(folder))
    root = repository_root(here)
    chain = [parent for parent in (here, *here.parents) if parent.is_relative_to(root)]
    names = [*(f"{folder}/{kind}" for folder in _FOLDERS for kind in _KINDS), ".agents/skills"]
    if not any(os.path.lexists(parent / name) for parent in chain for name in names):
        return ()
    from tui_agent.definitions.discovery import project_places, read_definitions, user_places

    own = {os.path.realpath(place.path) for place in user_places(locations.config_dir, Path.home())}
    return read_definitions(place for place in project_places(here) if os.path.realpath(place.path) not in own)


def used(found: "Iterable[Found]") -> "list[Definition]":
    """Return the definitions without the problems, also those that others of their name precede."""
    if not found:
        return []
    from tui_agent.definitions.records import Problem

    return [one for one in found if not isinstance(one, Problem)]


def trust_sections(found: "Iterable[Found]") -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return headings and entries of the trust question for the definitions of a project."""
    if not found:
        return ()
    entries = [(one.kind, _trust_entry(one)) for one in used(found)]
    headings = {
        "skill": "skills, which the model can load",
        "command": "commands, which run when you type their name",
        "agent": "sub-agents, which the model can start",
    }
    return tuple((heading, tuple(text for of, text in entries if of == kind)) for kind, heading in headings.items())


def _trust_entry(definition: "Definition") -> str:
    """Return name, file, what the definition would run or use, and for most its description."""
    from tui_agent.definitions.definition_text import PromptTemplate
    from tui_agent.definitions.records import AgentFile, Skill, shortened

    if isinstance(definition, AgentFile):
        tools = "all tools" if definition.tools is None else f"the tools {', '.join(definition.tools) or 'none'}"
        model = f" and the model {definition.model}" if definition.model else ""
        entry = f"{definition.name} ({definition.source.shown}), with {tools}{model}"
        return f"{entry}: {shortened(definition.description)}"
    commands = PromptTemplate.of(definition.body).commands
    runs = f", runs {', '.join(f'`{command}`' for command in commands)}" if commands else ""
    model = f", uses the model {definition.model}" if definition.model else ""
    entry = f"({definition.source.shown}){runs}{model}"
    if isinstance(definition, Skill):
        return f"{definition.name} {entry}: {shortened(definition.description)}"
    return f"/{definition.name} {entry}"


def counts_of(found: "Iterable[Found]") -> list[str]:
    """Return how many definitions of each kind there are, in words."""
    kinds = [type(one).__name__ for one in used(found)]
    names = {"Skill": "skill", "CommandFile": "command", "AgentFile": "sub-agent"}
    counts = [(kinds.count(kind), name) for kind, name in names.items()]
    return [f"{count} {name}{'s' * (count != 1)}" for count, name in counts if count]


def file_problems(found: "Iterable[Found]") -> tuple[str, ...]:
    """Return a message for each file, or part of one, that has no effect."""
    if not found:
        return ()
    from tui_agent.definitions.records import Definitions
    from tui_agent.protocol.prompt_command import RESERVED_COMMANDS

    definitions = Definitions.of(found, RESERVED_COMMANDS)
    of_kind = {"skill": "skill", "command": "command", "agent": "sub-agent"}
    in_force = (*definitions.skills, *definitions.commands, *definitions.agents)
    notes = [note for one in in_force for note in one.source.notes]
    return (*(f"{of_kind[one.kind]} not used: {one.place}: {one.reason}" for one in definitions.problems), *notes)


def link_problems(found: "Iterable[Found]") -> tuple[str, ...]:
    """Return a message for each link that is not used because it leads out of the repository."""
    if not found:
        return ()
    from tui_agent.definitions.records import Problem

    return tuple(one.text for one in found if isinstance(one, Problem) and one.is_link)
