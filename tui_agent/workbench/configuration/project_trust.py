"""Trust in projects: the settings and instructions that a project brings, and the user's answers (safety promise 8).

An answer is bound to the folder's real path and to the content that was shown, of the settings and of the instruction
files separately. If either changes, the user is asked again.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_agent.context import (
    ContextLayer,
    cut_instructions,
    foreign_instructions,
    load_own_instructions,
    load_project_instructions,
)
from tui_agent.git.repository_safety import program_settings
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.private_directory import make_private_directories
from tui_agent.protocol.regular_file import parse_toml, read_regular_file
from tui_agent.protocol.repository_files import refusal, target_outside
from tui_agent.protocol.tool_server import ToolServer
from tui_agent.settings import (
    PROJECT_FILE,
    Locations,
    ProjectTrust,
    content_digest,
    load_settings,
)

from .definition_files import counts_of, digest_of, link_problems, project_definitions, trust_sections, used
from .hook_file_trust import project_hooks

if TYPE_CHECKING:
    # Imported at run time only by a program that has such files.
    from tui_agent.definitions.records import Found

_LARGEST_STORE = 64 * 1024 * 1024
"""Largest size in bytes of the file with all answers."""

TrustAnswer = Literal["no", "tightening", "all"]
"""Apply nothing, everything except allow rules and what starts programs, or everything."""
_PROGRAMS = ("servers", "hooks", "git")
"""Entries of an answer about what starts programs."""
SERVERS_FILE = Path(".mcp.json")
"""File of a project with tool servers, in the form that other agents use."""


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """Contents of a project that the user is asked to trust."""

    folder: Path
    """Real path of the project."""
    digest: str
    """Digest of its settings file, or of an empty text if it has none."""
    instructions_digest: str
    settings: tuple[str, ...]
    """Settings that it would change, such as `model = "x"`."""
    tightening: tuple[str, ...]
    """Rules that deny or ask."""
    allows: tuple[str, ...]
    """Rules that allow calls without asking."""
    refused: tuple[str, ...]
    """Entries that are never taken from a project, one message each."""
    instructions: tuple[str, ...]
    """Files with instructions for the model."""
    definitions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Skills, commands and sub-agents: headings, each with its entries. `instructions_digest` covers them, too."""
    servers: tuple[str, ...] = ()
    """Tool servers that it would start or connect to, as they are written."""
    servers_digest: str | None = None
    """Digest of the file of servers; None if there is none."""
    hooks: tuple[str, ...] = ()
    """Hooks with their commands, as they are written."""
    hooks_digest: str | None = None
    """Digest of the hooks and their scripts; None if there are none."""
    git: tuple[str, ...] = ()
    """Settings and links of its repository with which git may run programs or read elsewhere."""
    links: tuple[str, ...] = ()
    """A message for each file that is not used because it links to a target outside the repository."""

    @property
    def sections(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Everything that the question shows: headings, each with its entries."""
        sections = (
            ("settings it would change", self.settings),
            ("rules that deny or ask", self.tightening),
            ("rules that allow calls without a question", self.allows),
            ("never taken from a project, whatever you answer", self.refused),
            ("tool servers: programs it would run and addresses it would connect to", self.servers),
            ("hooks: commands it would run by itself, without questions", self.hooks),
            ("settings and links of its repository: git may run these programs, or read elsewhere", self.git),
            ("files with instructions for the model", self.instructions),
            *self.definitions,
            ("links that lead out of this repository, not used", self.links),
        )
        return tuple((heading, entries) for heading, entries in sections if entries)

    @property
    def powers(self) -> str:
        """The contents that need an answer of their own: allow rules, tool servers, hooks; empty if there are none."""
        brought = (
            ("allow rules", self.allows),
            ("tool servers", self.servers),
            ("hooks", self.hooks),
            ("git's programs", self.git),
        )
        *others, last = [what for what, entries in brought if entries] or [""]
        return f"{', '.join(others)} and {last}" if others else last


@dataclass(frozen=True, slots=True)
class FolderTrust:
    """Trusted part of a folder."""

    instructions: tuple[ContextLayer, ...]
    """Instructions that apply: the user's own, and the project's if they are trusted."""
    is_trusted: bool
    """True if everything that the folder brings is trusted, or it brings nothing."""
    left_out: tuple[str, ...]
    """Messages about the instructions that are not used, or not whole."""
    definitions: "tuple[Found, ...]" = ()
    """The project's skills, commands and sub-agents, if they are trusted, and the problems of such files."""


def trust_request_for(folder: Path, locations: Locations) -> TrustRequest | None:
    """Return the contents of a project that need trust; None if there are none, or the folder is never trusted. Blocks.

    Raises:
        ConfigurationError: the settings cannot be read; the message names file and line.
    """
    folder = Path(os.path.realpath(folder))
    if not _may_be_trusted(folder):
        return None
    found = _settings_content(folder)
    own = load_own_instructions(locations.config_dir)
    instructions = load_project_instructions(folder, own)
    servers_content = _servers_content(folder)
    definitions = project_definitions(folder, locations)
    hooks = project_hooks(folder)
    git = program_settings(str(folder))
    if (
        found is None
        and not instructions
        and servers_content is None
        and not used(definitions)
        and hooks.digest is None
        and not git
    ):
        return None
    content = found or b""
    trust = ProjectTrust(content_digest(content), allows=True)
    loaded = load_settings(locations, project=folder, trust=trust, environment={})
    values = parse_toml(content)
    rules = [rule for rule in loaded.rules if rule.layer == "project"]
    source = str(folder / PROJECT_FILE)
    return TrustRequest(
        folder,
        content_digest(content),
        _instructions_digest(instructions, definitions),
        tuple(
            f"{key} = {_value(values, key)}"
            for key, origin in loaded.origins.items()
            if _is_from(origin, source, key) and not key.startswith("mcp.")
        ),
        tuple(f"{rule.verdict} {rule.text}" for rule in rules if rule.verdict != "allow"),
        tuple(f"{rule.verdict} {rule.text}" for rule in rules if rule.verdict == "allow"),
        () if found is None else tuple(loaded.ignored),
        tuple(_name_with_imports(layer, folder) for layer in instructions),
        servers=(*_servers_of(loaded.settings.mcp, loaded.origins, source), *_servers_in(servers_content)),
        servers_digest=None if servers_content is None else content_digest(servers_content),
        hooks=hooks.entries,
        hooks_digest=hooks.digest,
        git=git,
        definitions=trust_sections(definitions),
        links=(*_foreign(folder, own), *link_problems(definitions), *hooks.links),
    )


def folder_trust(folder: Path, locations: Locations, *, given: bool = False) -> FolderTrust:
    """Return the trusted part of a folder. Blocks.

    Args:
        folder: the working directory.
        locations: the user's directories.
        given: True if the user trusts the folder for this run (`--trust`).
    """
    folder = Path(os.path.realpath(folder))
    trust = trust_for(folder, locations, given=given)
    own = load_own_instructions(locations.config_dir)
    project = load_project_instructions(folder, own)
    trusts_settings = (
        _settings_are_trusted(folder, trust) and _servers_are_known(folder, trust) and _hooks_are_known(folder, trust)
    )
    git = program_settings(str(folder))
    may_be_trusted = _may_be_trusted(folder)
    knows_git = (given and may_be_trusted) or (trust is not None and trust.git == _digest_of_git(git))
    trusts_settings = trusts_settings and (not git or knows_git)
    definitions = project_definitions(folder, locations)
    foreign = tuple(f"{folder}: {text}" for text in _foreign_instructions(folder, own))
    foreign += tuple(f"{folder}: {text}" for text in link_problems(definitions))
    if git and not knows_git:
        advice = "; --trust accepts it for one run" if may_be_trusted else ""
        foreign += (f"{folder}: each git command asks: you did not accept what its repository has: {git[0]}{advice}",)
    if not project and not used(definitions):
        return FolderTrust(own, trusts_settings, (*foreign, *cut_instructions(own)), definitions)
    if trust is not None and trust.instructions in (None, _instructions_digest(project, definitions)):
        used_layers = (*own, *project)
        return FolderTrust(used_layers, trusts_settings, (*foreign, *cut_instructions(used_layers)), definitions)
    names = ", ".join([*(_relative_name(layer, folder) for layer in project), *counts_of(definitions)])
    was_trusted = trust is not None and trust.instructions != NO_INSTRUCTIONS
    reason = "changed since they were trusted" if was_trusted else "this folder is not trusted"
    advice = "; --trust uses them for one run" if _may_be_trusted(folder) else ""
    return FolderTrust(own, False, (f"{folder}: {names} not used: {reason}{advice}", *foreign, *cut_instructions(own)))


def trust_for(folder: Path, locations: Locations, *, given: bool = False) -> ProjectTrust | None:
    """Return the current trust in the project of a folder; None if there is none. Blocks.

    Args:
        folder: the project.
        locations: the user's directories.
        given: True if the user trusts the folder for this run (`--trust`); this accepts no further allow rules, no
            tool servers and no hooks.
    """
    stored = TrustStore(locations).trust_in(folder)
    if not given or not _may_be_trusted(Path(os.path.realpath(folder))):
        return stored
    with suppress(ConfigurationError):
        content = _settings_content(folder)
        if stored is not None and content is not None and stored.digest == content_digest(content):
            return replace(stored, instructions=None)
    return ProjectTrust()


def project_servers(folder: Path, trust: ProjectTrust | None) -> tuple[bytes | None, str]:
    """Return the content of the project's file of tool servers if they may start, and why they may not. Blocks."""
    folder = Path(os.path.realpath(folder))
    content = _servers_content(folder)
    if content is None:
        return None, ""
    if trust is not None and trust.allows and trust.servers == content_digest(content):
        return content, ""
    if trust is None:
        reason = "this folder is not trusted"
    elif trust.servers in (None, content_digest(content)):
        reason = "you did not accept them"
    else:
        reason = "they changed since you answered"
    names = ", ".join(_server_names(content)) or "none that can be used"
    advice = "start tui-agent here to see and accept them"
    return None, f"{folder / SERVERS_FILE}: tool servers not started ({names}), because {reason}; {advice}"


def server_file_problems(folder: Path) -> tuple[str, ...]:
    """Return a message about each entry of the project's file of tool servers that is not used as written. Blocks."""
    content = _servers_content(Path(os.path.realpath(folder)))
    if content is None:
        return ()
    from tui_agent.mcp.server_config import parse_server_file

    try:
        _, problems = parse_server_file(content)
    except ConfigurationError as error:
        problems = (str(error),)
    return tuple(f"{SERVERS_FILE}: {problem}" for problem in problems)


class TrustStore:
    """The user's answers, in a private file (0600)."""

    def __init__(self, locations: Locations) -> None:
        self._path = locations.state_dir / "trust.json"

    def trust_in(self, folder: Path) -> ProjectTrust | None:
        """Return the user's trust in the project of a folder; None if they refused it or were never asked. Blocks."""
        entry: object = self._read().get(os.path.realpath(folder))
        if not is_object(entry) or not _may_be_trusted(Path(os.path.realpath(folder))):
            return None
        digest: object = entry.get("digest")
        if not isinstance(digest, str):
            return None
        allows = entry.get("allows") is True
        return ProjectTrust(
            digest,
            allows=allows,
            instructions=_instructions_in(entry),
            servers=_digest_entry(entry, "servers"),
            hooks=_digest_entry(entry, "hooks"),
            git=_digest_entry(entry, "git") if allows else None,
        )

    def knows(self, offer: TrustRequest) -> bool:
        """Return True if the user has accepted or refused exactly this request. Blocks."""
        entry: object = self._read().get(str(offer.folder))
        if not is_object(entry):
            return False
        programs = tuple(_digest_entry(entry, name) for name in _PROGRAMS)
        accepted = (entry.get("digest"), _instructions_in(entry), *programs)
        offered = (offer.digest, offer.instructions_digest, *_programs_of(offer).values())
        return accepted == offered or entry.get("refused") == _digest_of_all(offer)

    def remember(self, offer: TrustRequest, answer: TrustAnswer) -> None:
        """Store an answer. Blocks.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        entry: JsonObject = {"refused": _digest_of_all(offer)}
        if answer != "no":
            entry = {
                "digest": offer.digest,
                "allows": answer == "all",
                "instructions": offer.instructions_digest,
            }
            entry |= {name: digest for name, digest in _programs_of(offer).items() if digest is not None}
        self._store(str(offer.folder), entry)

    def may_renew(self, folder: Path, before: bytes | None) -> bool:
        """Return True if an allow rule that the user adds to the project's settings would apply. Blocks.

        That is so if the settings are trusted with their allow rules, or do not exist yet (`before` is None).
        """
        if before is None:
            return _may_be_trusted(Path(os.path.realpath(folder)))
        trusted = self.trust_in(folder)
        return trusted is not None and trusted.allows and trusted.digest == content_digest(before)

    def renew(self, folder: Path, after: bytes) -> None:
        """Extend the trust to settings that tui-agent has changed on behalf of the user. Blocks.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        old: object = self._read().get(os.path.realpath(folder))
        instructions = _instructions_in(old) if is_object(old) else NO_INSTRUCTIONS
        entry: JsonObject = {"digest": content_digest(after), "allows": True, "instructions": instructions}
        # Servers and hooks that the user did not accept must not start because a rule was added.
        if is_object(old) and old.get("allows") is True:
            entry |= {name: digest for name in _PROGRAMS if (digest := _digest_entry(old, name)) is not None}
        self._store(os.path.realpath(folder), entry)

    def _read(self) -> JsonObject:
        try:
            entries: object = json.loads(read_regular_file(str(self._path), _LARGEST_STORE))
        except (OSError, ValueError, RecursionError):
            return {}
        return entries if is_object(entries) else {}

    def _store(self, folder: str, entry: JsonObject) -> None:
        # Imported with the first answer, so that the first screen does not wait for the tools.
        from tui_agent.tools.atomic_write import write_atomically

        entries = self._read() | {folder: entry}
        try:
            make_private_directories(self._path.parent)
            write_atomically(self._path, json.dumps(entries, indent=1).encode("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{self._path}: cannot be written: {error}") from error


def _may_be_trusted(folder: Path) -> bool:
    """Return False for the home directory and the root: trust in them would cover everything below."""
    return folder != Path("/") and folder != Path(os.path.realpath(Path.home()))


def _settings_content(folder: Path) -> bytes | None:
    """Return the content of the folder's settings file; None if it is missing or links out of the repository."""
    return _content_of(folder / PROJECT_FILE, folder)


def _servers_content(folder: Path) -> bytes | None:
    """Return the content of the folder's file of tool servers; None if it is missing or links out of the repository."""
    return None if (folder / SERVERS_FILE).is_dir() else _content_of(folder / SERVERS_FILE, folder)


def _servers_are_known(folder: Path, trust: ProjectTrust | None) -> bool:
    """Return True if the user answered yes to the folder as its file of tool servers is, or it has none."""
    try:
        content = _servers_content(folder)
    except ConfigurationError:
        return False
    return content is None or (trust is not None and trust.servers == content_digest(content))


def _hooks_are_known(folder: Path, trust: ProjectTrust | None) -> bool:
    """Return True if the user answered yes to the folder with its hooks as they are, or it has none."""
    digest = project_hooks(folder).digest
    return digest is None or (trust is not None and trust.hooks == digest)


def _servers_of(servers: Mapping[str, ToolServer], origins: Mapping[str, str], source: str) -> list[str]:
    """Return the servers of the project's settings, as they are written."""
    from_project = {key.split(".")[1] for key, origin in origins.items() if key.startswith("mcp.") and source in origin}
    return [_server_words(name, server) for name, server in servers.items() if name in from_project]


def _servers_in(content: bytes | None) -> list[str]:
    """Return the servers of a file, as they are written; if it cannot be read, why."""
    if content is None:
        return []
    from tui_agent.mcp.server_config import parse_server_file

    try:
        servers, problems = parse_server_file(content)
    except ConfigurationError as error:
        return [f"{SERVERS_FILE}: {error}"]
    return [*(_server_words(name, server) for name, server in servers.items()), *problems]


def _server_names(content: bytes) -> Sequence[str]:
    from tui_agent.mcp.server_config import parse_server_file

    try:
        return tuple(parse_server_file(content)[0])
    except ConfigurationError:
        return ()


def _server_words(name: str, server: ToolServer) -> str:
    added = {"env": server.env, "headers": server.headers}
    more = [f"{what}: {json.dumps(values, ensure_ascii=False)}" for what, values in added.items() if values]
    more += [f"{what}: {value}" for what in ("cwd", "bearer_token_env") if (value := getattr(server, what))]
    from tui_agent.mcp.server_config import variables_of

    variables = variables_of(server)
    more += [f"receives your variables: {', '.join(variables)}"] if variables else []
    return "  ".join([f"{name}: {server.shown}", *more])


def _content_of(path: Path, folder: Path) -> bytes | None:
    """Return the content of a file of the folder; None if it is missing or links out of the repository."""
    try:
        content = read_regular_file(str(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error
    # Checked after reading, so that a link created meanwhile is noticed.
    return content if target_outside(path, folder) is None else None


def _foreign(folder: Path, own: Sequence[ContextLayer]) -> tuple[str, ...]:
    """Return a message for each file of the folder that is not used because it links out of the repository."""
    instructions = _foreign_instructions(folder, own)
    links = [
        refusal(name, outside)
        for name in (PROJECT_FILE, SERVERS_FILE)
        if (outside := target_outside(folder / name, folder)) is not None
    ]
    return (*links, *instructions)


def _foreign_instructions(folder: Path, own: Sequence[ContextLayer]) -> tuple[str, ...]:
    found = foreign_instructions(folder, own)
    return tuple(refusal(Path(os.path.relpath(path, folder)), target) for path, target in found)


def _settings_are_trusted(folder: Path, trust: ProjectTrust | None) -> bool:
    """Return True if the folder's settings are trusted, or it has none."""
    try:
        content = _settings_content(folder)
    except ConfigurationError:
        return False
    return content is None or (trust is not None and trust.digest in (None, content_digest(content)))


def _instructions_digest(layers: Sequence[ContextLayer], definitions: "Sequence[Found]" = ()) -> str:
    return digest_of([(layer.name, layer.text) for layer in layers], definitions)


def _instructions_in(entry: JsonObject) -> str:
    digest: object = entry.get("instructions")
    return digest if isinstance(digest, str) else NO_INSTRUCTIONS


def _digest_entry(entry: JsonObject, name: str) -> str | None:
    digest: object = entry.get(name)
    return digest if isinstance(digest, str) else None


def _digest_of_all(offer: TrustRequest) -> str:
    digests = [offer.digest, offer.instructions_digest]
    digests += [digest for digest in _programs_of(offer).values() if digest is not None]
    return content_digest(" ".join(digests).encode())


def _programs_of(offer: TrustRequest) -> dict[str, str | None]:
    """Return the digests of what starts programs, by the names of their entries."""
    digests = (offer.servers_digest, offer.hooks_digest, _digest_of_git(offer.git))
    return dict(zip(_PROGRAMS, digests, strict=True))


def _digest_of_git(settings: Sequence[str]) -> str | None:
    return content_digest("\0".join(settings).encode("utf-8", "surrogateescape")) if settings else None


def _relative_name(layer: ContextLayer, folder: Path) -> str:
    """Return the path of an instruction file, relative to the folder."""
    return os.path.relpath(str(layer.metadata["path"]), folder)


def _name_with_imports(layer: ContextLayer, folder: Path) -> str:
    """Return the path of an instruction file, with the files that it imports."""
    imports: object = layer.metadata.get("imports")
    names = [os.path.relpath(str(path), folder) for path in imports] if is_array(imports) else []
    name = _relative_name(layer, folder)
    return f"{name}, which imports {', '.join(names)}" if names else name


NO_INSTRUCTIONS = _instructions_digest(())
"""Digest of no instructions, also that of an answer without an entry for them."""


def _is_from(origin: str, source: str, key: str) -> bool:
    return key != "permissions.rules" and (origin == source or origin.startswith(f"{source}:"))


def _value(values: JsonObject, key: str) -> str:
    value: object = values
    for name in key.split("."):
        value = value.get(name) if is_object(value) else None
    return json.dumps(value, ensure_ascii=False, default=str)
