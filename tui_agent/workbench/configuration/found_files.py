"""Skills, commands, sub-agents and hooks that the user and a project have as files, read only where there are some."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.regular_file import read_regular_file, refusal, repository_root, target_outside
from tui_agent.settings import LoadedSettings, Locations, RuleSetting, content_digest

if TYPE_CHECKING:
    # Imported at run time only by a program that has such files.
    from tui_agent.definitions.records import Definition, Found
    from tui_agent.hook_files.foreign_hooks import FileHook, HookFile, Origin, Script


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
    """Return the definitions without the problems, including those that another one of their name replaces."""
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
    """Return the numbers of definitions of each kind in words, such as `2 skills`; empty without any."""
    kinds = [type(one).__name__ for one in used(found)]
    names = {"Skill": "skill", "CommandFile": "command", "AgentFile": "sub-agent"}
    counts = [(kinds.count(kind), name) for kind, name in names.items()]
    return [f"{count} {name}{'s' * (count != 1)}" for count, name in counts if count]


def file_problems(found: "Iterable[Found]") -> tuple[str, ...]:
    """Return a message for each file, or part of one, that has no effect."""
    if not found:
        return ()
    from tui_agent.definitions.records import Definitions
    from tui_agent.protocol.prompt_references import RESERVED_COMMANDS

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


_FOLDER = ".claude"
_PROJECT_NAMES = ("settings.json", "settings.local.json")


@dataclass(frozen=True, slots=True)
class FoundHooks:
    """Hooks of some files."""

    files: "tuple[HookFile, ...]"
    scripts: "dict[str, Script]"
    """The scripts that a project's hooks run."""
    links: tuple[str, ...] = ()
    """A message for each file that is not used because it leads out of the repository."""

    @property
    def hooks(self) -> "tuple[FileHook, ...]":
        """The hooks, in the order of the files; none if a file turns them off."""
        return () if any(one.disables_all for one in self.files) else tuple(h for one in self.files for h in one.hooks)

    @property
    def problems(self) -> tuple[str, ...]:
        """Reasons why parts of the files are not used."""
        off = [f"{one.path}: disableAllHooks is set, no hook runs" for one in self.files if one.disables_all]
        return (*off, *(problem for one in self.files for problem in one.problems))

    @property
    def broken(self) -> tuple[str, ...]:
        """Reasons why whole files cannot be used."""
        return tuple(problem for one in self.files if one.is_broken for problem in one.problems)

    @property
    def missing_guards(self) -> tuple[str, ...]:
        """Messages about hooks and permission rules that restrict calls elsewhere, and not here."""
        guards = (f"hook not used: {problem}" for one in self.files for problem in one.unused_guards)
        return (*guards, *(problem for one in self.files for problem in one.rule_problems))

    def parts(self, folder: Path) -> Iterator[tuple[str, str, str | Path]]:
        """Yield what trust is bound to, the hooks and each script that they run: name, digest, and text or file."""
        if self.hooks:
            hooks = [[h.event, h.matcher, h.command, h.timeout, str(h.project_dir), *h.options] for h in self.hooks]
            shown = "\n".join(hook.shown for hook in self.hooks)
            yield "hooks", content_digest(json.dumps(hooks).encode()), shown
            for path, script in self.scripts.items():
                yield os.path.relpath(path, folder), script.digest, Path(path)

    @property
    def entries(self) -> tuple[str, ...]:
        """The hooks as the trust question lists them, with the scripts that they run."""
        scripts = [os.path.relpath(path, self.hooks[0].project_dir) for path in self.scripts] if self.hooks else []
        listed = (f"with the scripts as they are now: {', '.join(scripts)}",) if scripts else ()
        return (*(f"{hook.shown}  ({hook.source})" for hook in self.hooks), *listed)


NO_HOOKS = FoundHooks((), {})


def own_hooks(folder: Path) -> FoundHooks:
    """Return the hooks of the user's own file. Blocks; never raises."""
    path = _own_file()
    if not os.path.lexists(path):
        return NO_HOOKS
    file = _read(path, f"~/{_FOLDER}/{path.name}", "user", folder)
    return NO_HOOKS if file is None else FoundHooks((file,), {})


def project_hooks(folder: Path) -> FoundHooks:
    """Return the hooks from the root of the repository down to a folder. Blocks; never raises."""
    here = Path(os.path.realpath(folder))
    root = repository_root(here)
    places = [place for place in (*reversed(here.parents), here) if place.is_relative_to(root)]
    own = os.path.realpath(_own_file())
    paths = [place / _FOLDER / name for place in places for name in _PROJECT_NAMES]
    paths = [path for path in paths if os.path.lexists(path) and os.path.realpath(path) != own]
    if not paths:
        return NO_HOOKS
    from tui_agent.hook_files.foreign_hooks import HookFile, read_scripts

    outside = {path: target for path in paths if (target := target_outside(path, here)) is not None}
    links = tuple(refusal(Path(os.path.relpath(path, here)), target) for path, target in outside.items())
    read = [
        _read(path, os.path.relpath(path, here), "project", path.parent.parent) for path in paths if path not in outside
    ]
    files = tuple(file for file in read if file is not None and file != HookFile(file.path))
    return FoundHooks(files, read_scripts(hook for file in files for hook in file.hooks), links)


def without_effect(found: FoundHooks) -> FoundHooks:
    """Return the files without their hooks: only their permission rules that deny or ask count."""
    unused = {"hooks": (), "problems": (), "unused_guards": (), "is_broken": False}
    return FoundHooks(tuple(replace(file, **unused) for file in found.files), {})


def with_file_rules(loaded: LoadedSettings, folder: Path) -> LoadedSettings:
    """Return settings with the rules of hook files that deny or ask, as one more list: it can only make calls stricter.

    Files of a project that is not trusted count, too. Blocks.
    """
    if not loaded.settings.hook_files:
        return loaded
    files = (*own_hooks(folder).files, *project_hooks(folder).files)
    found = [rule for verdict in ("deny", "ask") for file in files for rule in file.rules if rule.verdict == verdict]
    rules = [RuleSetting(rule.verdict, rule.text, rule.origin, "other agents") for rule in found]
    return replace(loaded, rules=(*loaded.rules, *rules))


def _own_file() -> Path:
    return Path.home() / _FOLDER / "settings.json"


def _read(path: Path, shown: str, origin: "Origin", project_dir: Path) -> "HookFile | None":
    from tui_agent.hook_files.foreign_hooks import HookFile
    from tui_agent.hook_files.hook_file_reader import parse_hook_file

    try:
        content = read_regular_file(str(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        return HookFile(shown, problems=(f"{shown}: cannot be read: {error}",), is_broken=True)
    return parse_hook_file(content, shown, origin, project_dir)
