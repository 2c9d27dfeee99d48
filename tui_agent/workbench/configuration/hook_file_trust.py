"""Hook files of the user and of a project, read only where there are some, and trust in those of a project."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.repository_files import refusal, repository_root, target_outside
from tui_agent.settings import LoadedSettings, ProjectTrust, RuleSetting, content_digest

if TYPE_CHECKING:
    # Imported at run time only by a program that has such files.
    from tui_agent.hook_files.file_hook import FileHook, HookFile, Origin
    from tui_agent.hook_files.hook_scripts import Script

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

    @property
    def digest(self) -> str | None:
        """Digest of the hooks with their scripts; None if there are no hooks."""
        if not self.hooks:
            return None
        hooks = [[h.event, h.matcher, h.command, h.timeout, str(h.project_dir), *h.options] for h in self.hooks]
        return content_digest(json.dumps([hooks, [[p, s.digest] for p, s in self.scripts.items()]]).encode())

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
    from tui_agent.hook_files.file_hook import HookFile
    from tui_agent.hook_files.hook_scripts import read_scripts

    outside = {path: target for path in paths if (target := target_outside(path, here)) is not None}
    links = tuple(refusal(Path(os.path.relpath(path, here)), target) for path, target in outside.items())
    read = [
        _read(path, os.path.relpath(path, here), "project", path.parent.parent) for path in paths if path not in outside
    ]
    files = tuple(file for file in read if file is not None and file != HookFile(file.path))
    return FoundHooks(files, read_scripts(hook for file in files for hook in file.hooks), links)


def trusted_project_hooks(folder: Path, find_trust: Callable[[], ProjectTrust | None]) -> tuple[FoundHooks, str]:
    """Return the project's hooks if they may run, and else why they may not. Blocks.

    Args:
        folder: the working directory.
        find_trust: returns the trust in it; called only if there are hooks.
    """
    found = project_hooks(folder)
    if found.digest is None:
        return found, ""
    trust = find_trust()
    if trust is not None and trust.allows and trust.hooks == found.digest:
        return found, ""
    if trust is None:
        reason = "this folder is not trusted"
    elif trust.hooks is None or trust.hooks == found.digest:
        reason = "you did not accept them"
    else:
        reason = "they changed since you answered"
    names = ", ".join(dict.fromkeys(file.path for file in found.files if file.hooks))
    text = f"{folder}: hooks of {names} not run: {reason}; start tui-agent there without -p to accept them"
    unused = {"hooks": (), "problems": (), "unused_guards": (), "is_broken": False}
    return FoundHooks(tuple(replace(file, **unused) for file in found.files), {}), text


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
    from tui_agent.hook_files.file_hook import HookFile
    from tui_agent.hook_files.hook_file_reader import parse_hook_file

    try:
        content = read_regular_file(str(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        return HookFile(shown, problems=(f"{shown}: cannot be read: {error}",), is_broken=True)
    return parse_hook_file(content, shown, origin, project_dir)
