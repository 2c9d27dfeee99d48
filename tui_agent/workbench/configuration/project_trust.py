"""Trust in a folder: everything that it brings, and the user's answer to exactly that (safety promise 8).

An answer is bound to one digest of everything, at the folder's real path. If anything changes, the user is asked again
and sees the difference; until then, what changed is not used.
"""

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tui_agent.context import (
    ContextLayer,
    cut_instructions,
    foreign_instructions,
    load_own_instructions,
    load_project_instructions,
)
from tui_agent.git.repository_safety import program_settings
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import FrozenModel, JsonObject, is_array, is_object
from tui_agent.protocol.regular_file import make_private_directories, read_regular_file, refusal, target_outside
from tui_agent.protocol.secret_variables import mask_secrets
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.setting_files import parse_toml
from tui_agent.settings import PROJECT_FILE, LoadedSettings, Locations, ProjectTrust, content_digest, load_settings

from .found_files import (
    NO_HOOKS,
    FoundHooks,
    counts_of,
    link_problems,
    project_definitions,
    project_hooks,
    trust_sections,
    used,
    without_effect,
)

if TYPE_CHECKING:
    # Imported at run time only by a program that has such files.
    from tui_agent.definitions.records import Found

TrustAnswer = Literal["no", "tightening", "all"]
"""Apply nothing, everything except allow rules and what starts programs, or everything."""
Kind = Literal["settings", "servers", "hooks", "instructions", "git"]
"""Kinds of contents; each applies as long as nothing of its kind has changed."""
SERVERS_FILE = Path(".mcp.json")
"""File of a project with tool servers, in the form that other agents use."""
CHANGES = "changed since you trusted this folder"
"""Heading of the differences."""

_LONGEST_KEPT = 65_536
"""Characters up to which a trusted text is kept to compare it later."""
_LARGEST_ANSWER = 64 * 1024 * 1024
"""Largest size in bytes of the file with an answer."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a folder brings: a file, or a list such as that of its hooks."""

    kind: Kind
    name: str
    digest: str
    source: str | Path
    """The text in which changes are shown, or the file to read it from."""


@dataclass(frozen=True, slots=True)
class FolderContents:
    """Everything that a folder brings, read once."""

    folder: Path
    """Real path."""
    settings: bytes | None
    servers: bytes | None
    hooks: FoundHooks
    instructions: tuple[ContextLayer, ...]
    definitions: "tuple[Found, ...]"
    git: tuple[str, ...]
    """Settings and links of its repository with which git may run programs or read elsewhere."""
    own: tuple[ContextLayer, ...]
    """Instructions of the user's own."""
    problem: str
    """Reason why its settings or servers cannot be read; empty if they can."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Everything that needs trust."""
        parts: list[Part] = []
        if self.settings is not None:
            text = self.settings.decode("utf-8", "replace")
            parts.append(Part("settings", str(PROJECT_FILE), content_digest(self.settings), text))
        if self.servers is not None:
            text = self.servers.decode("utf-8", "replace")
            parts.append(Part("servers", str(SERVERS_FILE), content_digest(self.servers), text))
        parts += [Part("hooks", *hook_part) for hook_part in self.hooks.parts(self.folder)]
        parts += [
            Part("instructions", _relative_name(layer, self.folder), _digest(layer.text), layer.text)
            for layer in self.instructions
        ]
        parts += [
            Part("instructions", os.path.relpath(one.source.path, self.folder), one.source.digest, one.source.path)
            for one in used(self.definitions)
        ]
        if self.git:
            parts.append(Part("git", "settings and links of its repository", _digest(*self.git), "\n".join(self.git)))
        return tuple(replace(part, name=_writable(part.name)) for part in parts)

    @property
    def digest(self) -> str:
        """The one digest that an answer is bound to."""
        return _digest_of_all((part.kind, part.name, part.digest) for part in self.parts)

    @property
    def links(self) -> tuple[str, ...]:
        """A message for each file that is not used because it links to a target outside the repository."""
        names = ((name, target_outside(self.folder / name, self.folder)) for name in (PROJECT_FILE, SERVERS_FILE))
        files = (refusal(name, outside) for name, outside in names if outside is not None)
        return (*files, *self.unused_instructions, *self.hooks.links)

    @property
    def unused_instructions(self) -> tuple[str, ...]:
        """The messages about instructions and definitions."""
        found = foreign_instructions(self.folder, self.own)
        texts = (refusal(Path(os.path.relpath(path, self.folder)), target) for path, target in found)
        return (*texts, *link_problems(self.definitions))


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """Contents of a folder that the user is asked to trust."""

    contents: FolderContents
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    """Everything that the question shows: headings, each with its entries; changes come first."""
    powers: str
    """The contents that need an answer of their own, such as `allow rules and hooks`; empty if there are none."""

    @property
    def folder(self) -> Path:
        """Real path of the folder."""
        return self.contents.folder


@dataclass(frozen=True, slots=True)
class FolderTrust:
    """Trusted part of a folder."""

    instructions: tuple[ContextLayer, ...]
    """Instructions that apply: the user's own, and the project's if they are trusted."""
    is_trusted: bool
    """True if everything that the folder brings is trusted, or it brings nothing."""
    left_out: tuple[str, ...]
    """Messages about the instructions that are not used, or not whole."""
    definitions: "tuple[Found, ...]"
    """The project's skills, commands and sub-agents, if they are trusted, and the problems of such files."""
    servers: bytes | None
    """Content of the project's file of tool servers, if they may start."""
    servers_refusal: str
    """Message about servers that may not; empty if there are none."""
    hooks: FoundHooks
    """The project's hooks, if they may run; otherwise only what they would have restricted."""
    hooks_refusal: str
    """Message about hooks that may not; empty if there are none."""


def read_contents(folder: Path, locations: Locations) -> FolderContents:
    """Read everything that a folder brings. Blocks; never raises."""
    folder = Path(os.path.realpath(folder))
    files: dict[Path, bytes | None] = {}
    problem = ""
    for name in (PROJECT_FILE, SERVERS_FILE):
        try:
            files[name] = _content_of(folder / name, folder)
        except ConfigurationError as error:
            # It is not what the user trusted, if they did.
            files[name], problem = b"", problem or str(error)
    # Known first, because a file that is the user's own needs no trust, wherever it is linked from.
    own = load_own_instructions(locations.config_dir)
    return FolderContents(
        folder,
        files[PROJECT_FILE],
        files[SERVERS_FILE],
        project_hooks(folder),
        load_project_instructions(folder, own),
        project_definitions(folder, locations),
        program_settings(str(folder)),
        own,
        problem,
    )


def trust_request_for(folder: Path, locations: Locations) -> TrustRequest | None:
    """Return the contents of a folder that need trust; None if there are none, or the folder is never trusted. Blocks.

    Raises:
        ConfigurationError: the settings cannot be read; the message names file and line.
    """
    if not _may_be_trusted(folder):
        return None
    contents = read_contents(folder, locations)
    if contents.problem:
        raise ConfigurationError(contents.problem)
    # A folder that brings nothing asks nothing, and is trusted.
    if not contents.parts:
        return None
    folder = contents.folder
    # Loaded as if everything were accepted, to show what a yes would mean.
    trust = ProjectTrust(content_digest(contents.settings or b""), allows=True)
    loaded = load_settings(locations, project=folder, trust=trust, environment={})
    rules = [(rule.verdict, f"{rule.verdict} {rule.text}") for rule in loaded.rules if rule.layer == "project"]
    allows = tuple(text for verdict, text in rules if verdict == "allow")
    servers = (*_servers_of(loaded, folder), *_servers_in(contents.servers))
    languages = _language_servers_of(loaded, folder)
    # Also after a no: its differences are to what was trusted before.
    kept = TrustStore(locations).find(folder)
    sections = (
        (CHANGES, () if kept is None else tuple(_changes(kept.trusted, contents))),
        ("settings it would change", _changed_settings(loaded, contents)),
        ("rules that deny or ask", tuple(text for verdict, text in rules if verdict != "allow")),
        ("rules that allow calls without a question", allows),
        ("never taken from a project, whatever you answer", () if contents.settings is None else loaded.ignored),
        ("tool servers: programs it would run and addresses it would connect to", servers),
        ("language servers: programs it would run", languages),
        ("hooks: commands it would run by itself, without questions", contents.hooks.entries),
        ("settings and links of its repository: git may run these programs, or read elsewhere", contents.git),
        (
            "files with instructions for the model",
            tuple(_name_with_imports(layer, folder) for layer in contents.instructions),
        ),
        *trust_sections(contents.definitions),
        ("links that lead out of this repository, not used", contents.links),
    )
    brought = (
        ("allow rules", allows),
        ("tool servers", servers),
        ("language servers", languages),
        ("hooks", contents.hooks.entries),
        ("git's programs", contents.git),
    )
    *others, last = [what for what, entries in brought if entries] or [""]
    powers = f"{', '.join(others)} and {last}" if others else last
    return TrustRequest(contents, tuple((heading, entries) for heading, entries in sections if entries), powers)


def open_trust_request(folder: Path, locations: Locations) -> TrustRequest | None:
    """Return the contents of a folder that the user has not answered about; None if there are none. Blocks.

    Also None if its settings cannot be read: they are not applied.
    """
    try:
        offer = trust_request_for(folder, locations)
    except ConfigurationError:
        return None  # Settings that cannot be read are not applied, and `config check` says why.
    return None if offer is None or TrustStore(locations).knows(offer) else offer


def folder_trust(folder: Path, locations: Locations, *, given: bool = False) -> FolderTrust:
    """Return the trusted part of a folder. Blocks.

    Args:
        given: True if the user trusts the folder for this run (`--trust`).
    """
    contents = read_contents(folder, locations)
    folder, own, definitions = contents.folder, contents.own, contents.definitions
    # `--trust` in the home directory would let every project below bring its own rules.
    given = given and _may_be_trusted(folder)
    stored = TrustStore(locations).find(folder) if _may_be_trusted(folder) else None
    changed = {kind: _changed_names(stored, contents, kind) for kind in get_args(Kind)}
    all_accepted = stored is not None and stored.answer == "all"

    def reason(kind: Kind) -> str:
        if stored is None or stored.answer == "no":
            return "you did not accept them" if given else "this folder is not trusted"
        names = ", ".join(changed[kind])
        return f"{names} changed since you trusted this folder" if names else "you did not accept them"

    def unused(kind: Kind) -> bool:
        return bool(changed[kind]) or not all_accepted

    servers, servers_refusal = contents.servers, ""
    # Not with `--trust`: servers start programs, which needs an answer to exactly these.
    if servers is not None and unused("servers"):
        names = ", ".join(_parsed_servers(servers)[0]) or "none that can be used"
        servers, servers_refusal = (
            None,
            (
                f"{folder / SERVERS_FILE}: tool servers not started ({names}), because {reason('servers')}; "
                "start tui-agent here to see and accept them"
            ),
        )
    hooks, hooks_refusal = contents.hooks, ""
    if hooks.hooks and unused("hooks"):
        names = ", ".join(dict.fromkeys(file.path for file in hooks.files if file.hooks))
        hooks, hooks_refusal = (
            without_effect(hooks),
            (f"{folder}: hooks of {names} not run: {reason('hooks')}; start tui-agent there without -p to accept them"),
        )
    advice = "; --trust {} for one run" if _may_be_trusted(folder) else ""
    left_out = [f"{folder}: {text}" for text in contents.unused_instructions]
    is_known = not any(names and not (given and kind in _GIVEN) for kind, names in changed.items())
    is_trusted = is_known and not contents.problem
    if contents.git and unused("git") and not given:
        is_trusted = False
        text = f"you did not accept what its repository has: {contents.git[0]}{advice.format('accepts it')}"
        left_out.append(f"{folder}: each git command asks: {text}")
    used_layers = (*own, *contents.instructions)
    if changed["instructions"] and not given:
        names = ", ".join([*(_relative_name(one, folder) for one in contents.instructions), *counts_of(definitions)])
        # First, because it is what the user misses.
        left_out.insert(0, f"{folder}: {names} not used: {reason('instructions')}{advice.format('uses them')}")
        used_layers, definitions = own, ()
    left_out += cut_instructions(used_layers)
    return FolderTrust(
        used_layers, is_trusted, tuple(left_out), definitions, servers, servers_refusal, hooks, hooks_refusal
    )


def without_files(trust: FolderTrust) -> FolderTrust:
    """Return the trust in a folder of which, and of the user's own files, nothing is used."""
    nothing = {"instructions": (), "left_out": (), "definitions": (), "servers": None, "servers_refusal": ""}
    return replace(trust, **nothing, hooks=NO_HOOKS, hooks_refusal="")


def trust_for(folder: Path, locations: Locations, *, given: bool = False) -> ProjectTrust | None:
    """Return the current trust in the settings of a folder; None if there is none. Blocks.

    Args:
        given: True if the user trusts the folder for this run (`--trust`); this accepts no further allow rules.
    """
    stored = TrustStore(locations).trust_in(folder)
    if not given or not _may_be_trusted(folder):
        return stored
    try:
        content = _content_of(folder / PROJECT_FILE, Path(os.path.realpath(folder)))
    except ConfigurationError:
        content = None
    # An accepted allow rule stays accepted; `--trust` adds none.
    is_known = stored is not None and content is not None and stored.digest == content_digest(content)
    return stored if is_known else ProjectTrust()


def server_file_problems(folder: Path) -> tuple[str, ...]:
    """Return a message about each entry of the project's file of tool servers that is not used as written. Blocks.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    folder = Path(os.path.realpath(folder))
    content = _content_of(folder / SERVERS_FILE, folder)
    return tuple(f"{SERVERS_FILE}: {problem}" for problem in _parsed_servers(content)[1])


Trusted: TypeAlias = dict[Kind, dict[str, tuple[str, str | None]]]
"""Kinds, names, and for each the digest and the text; None: it was too long to be kept."""


class StoredTrust(FrozenModel):
    """The user's last answer about a folder."""

    folder: str
    answer: TrustAnswer
    digest: str
    """Digest of everything that the answer is about."""
    trusted: Trusted
    """The contents that were trusted last."""

    def digests(self, kind: Kind) -> dict[str, str]:
        """Return the digests of what is trusted of a kind."""
        return {} if self.answer == "no" else {name: kept[0] for name, kept in self.trusted.get(kind, {}).items()}


class TrustStore:
    """The user's answers, a private file (0600) for each folder, with the texts that were trusted."""

    def __init__(self, locations: Locations) -> None:
        self._directory = locations.state_dir / "trust"

    def find(self, folder: Path) -> StoredTrust | None:
        """Return the answer about a folder; None if there is none. Blocks."""
        try:
            stored = StoredTrust.model_validate_json(read_regular_file(str(self._path(folder)), _LARGEST_ANSWER))
        except (OSError, ValueError):
            return None  # A damaged answer is none.
        # The name of the file is only a digest, which could be that of another folder.
        return stored if stored.folder == _writable(os.path.realpath(folder)) else None

    def trust_in(self, folder: Path) -> ProjectTrust | None:
        """Return the trust in the settings of a folder; None if the user refused it or was never asked. Blocks."""
        stored = self.find(folder)
        if stored is None or stored.answer == "no" or not _may_be_trusted(folder):
            return None
        return ProjectTrust(stored.digests("settings").get(str(PROJECT_FILE), ""), allows=stored.answer == "all")

    def knows(self, offer: TrustRequest) -> bool:
        """Return True if the user has answered about exactly these contents. Blocks."""
        stored = self.find(offer.folder)
        return stored is not None and stored.digest == offer.contents.digest

    def remember(self, offer: TrustRequest, answer: TrustAnswer) -> None:
        """Store an answer. Blocks.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        # A no keeps what was trusted, so that the next question can show the difference to it.
        if answer == "no":
            before = self.find(offer.folder)
            self._store(offer.folder, answer, offer.contents.digest, {} if before is None else before.trusted)
        else:
            # Without powers there is one yes, and it is whole: later rules of the user's own may join it.
            self._store(offer.folder, answer if offer.powers else "all", offer.contents.digest, _kept(offer.contents))

    def may_renew(self, folder: Path, before: bytes | None) -> bool:
        """Return True if an allow rule that the user adds to the project's settings would apply. Blocks.

        That is so if the settings are trusted with their allow rules, or do not exist yet (`before` is None).
        """
        # There are no settings yet, so that nothing of a stranger is accepted with the rule.
        if before is None:
            return _may_be_trusted(folder)
        trusted = self.trust_in(folder)
        return trusted is not None and trusted.allows and trusted.digest == content_digest(before)

    def renew(self, folder: Path, after: bytes) -> None:
        """Extend the trust to settings that tui-agent has changed on behalf of the user. Blocks.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        before = self.find(folder)
        # Servers and hooks that the user did not accept must not start because a rule was added.
        trusted: Trusted = {} if before is None or before.answer != "all" else {**before.trusted}
        text = mask_secrets(after.decode("utf-8", "replace"), _secrets(parse_toml(after)))
        trusted["settings"] = {str(PROJECT_FILE): (content_digest(after), _if_short(text))}
        digests = ((kind, name, kept[0]) for kind, found in trusted.items() for name, kept in found.items())
        self._store(folder, "all", _digest_of_all(digests), trusted)

    def _path(self, folder: Path) -> Path:
        # `prelude/kept_frame.py` looks at this file, too: what the start page shows depends on it.
        name = os.path.realpath(folder).encode("utf-8", "replace")
        return self._directory / f"{blake2b(name, digest_size=16).hexdigest()}.json"

    def _store(self, folder: Path, answer: TrustAnswer, digest: str, trusted: Trusted) -> None:
        # Imported with the first answer, so that the first screen does not wait for the tools.
        from tui_agent.tools.atomic_write import write_atomically

        path = self._path(folder)
        stored = StoredTrust(folder=_writable(os.path.realpath(folder)), answer=answer, digest=digest, trusted=trusted)
        try:
            make_private_directories(path.parent)
            write_atomically(path, stored.model_dump_json(indent=1).encode("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{path}: cannot be written: {error}") from error


_GIVEN: tuple[Kind, ...] = ("settings", "instructions", "git")
"""Kinds that `--trust` accepts."""


def _may_be_trusted(folder: Path) -> bool:
    """Return False for the home directory and the root: trust in them would cover everything below."""
    # Compared as real paths: a link to the home directory is the home directory.
    return os.path.realpath(folder) not in ("/", os.path.realpath(Path.home()))


def _digest(*texts: str) -> str:
    return content_digest("\0".join(texts).encode("utf-8", "surrogateescape"))


def _digest_of_all(parts: Iterable[tuple[str, str, str]]) -> str:
    # Sorted: the order in which a file system lists files must not ask again.
    return _digest(json.dumps(sorted(parts)))


def _changed_names(stored: StoredTrust | None, contents: FolderContents, kind: Kind) -> list[str]:
    """Return what is not as it was trusted; nothing if the folder brings nothing of this kind."""
    brought = {part.name: part.digest for part in contents.parts if part.kind == kind}
    kept = {} if stored is None else stored.digests(kind)
    return [name for name in dict.fromkeys((*brought, *kept)) if brought.get(name) != kept.get(name)] if brought else []


# --- differences ------------------------------------------------------------------------------------------------------


def _kept(contents: FolderContents) -> Trusted:
    """Return kinds, names, and for each the digest and the text to keep, without the secrets of servers."""
    with_secrets = [parse_toml(contents.settings or b"")]
    with suppress(ValueError, RecursionError):  # Then no server of it can start.
        with_secrets.append(json.loads(contents.servers or b"{}"))
    secrets = [secret for values in with_secrets for secret in _secrets(values)]
    found: Trusted = {}
    for part in contents.parts:
        text = part.source if isinstance(part.source, str) else _text_of(part.source, part.digest)
        kept = None if text is None else _if_short(mask_secrets(_writable(text), secrets))
        found.setdefault(part.kind, {})[part.name] = (part.digest, kept)
    return found


def _secrets(values: object) -> Iterator[str]:
    """Yield what servers get as variables and headers."""
    for key, value in values.items() if is_object(values) else ():
        # Only these can have secrets of the user in clear text; other settings name variables.
        if key in ("env", "headers") and is_object(value):
            yield from (text for text in value.values() if isinstance(text, str))
        else:
            yield from _secrets(value)


def _writable(text: str) -> str:
    """Return a text with escapes for what JSON cannot hold, such as bytes of a name that are no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _if_short(text: str) -> str | None:
    return text if len(text) <= _LONGEST_KEPT else None


def _text_of(path: Path, digest: str) -> str | None:
    """Return the text of a file; None if it cannot be read, or has changed meanwhile."""
    try:
        content = read_regular_file(str(path))
    except OSError:
        return None
    return content.decode("utf-8", "replace") if content_digest(content) == digest else None


def _changes(trusted: Trusted, contents: FolderContents) -> Iterator[str]:
    """Yield the differences to what was trusted, file by file."""
    present = _kept(contents)
    for kind in get_args(Kind) if trusted else ():
        before, after = trusted.get(kind, {}), present.get(kind, {})
        for name in dict.fromkeys((*before, *after)):
            if name not in before or name not in after:
                yield f"{name}: {'new' if name in after else 'gone'}"
            elif before[name][0] != after[name][0]:
                yield from _difference(name, before[name][1], after[name][1])


def _difference(name: str, before: str | None, after: str | None) -> Iterator[str]:
    if before is None or after is None:
        yield f"{name}: changed, and too long to show how"
        return
    # Without lines around a change: they were accepted, and would hide what is new.
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    yield f"{name}:" if lines else f"{name}: changed only in what is not kept: a secret, or the end of a line"
    yield from (f"{line[0]} {line[1:]}" for line in lines if not line.startswith("@@"))


# --- settings ---------------------------------------------------------------------------------------------------------


def _content_of(path: Path, folder: Path) -> bytes | None:
    """Return the content of a file of the folder; None if it is missing or links out of the repository."""
    # A directory of this name is not the file that other agents read.
    if path.name == SERVERS_FILE.name and path.is_dir():
        return None
    try:
        content = read_regular_file(str(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error
    # Checked after reading, so that a link created meanwhile is noticed.
    return content if target_outside(path, folder) is None else None


def _changed_settings(loaded: LoadedSettings, contents: FolderContents) -> tuple[str, ...]:
    """Return the settings that the project would change, as they are written."""
    source, values = str(contents.folder / PROJECT_FILE), parse_toml(contents.settings or b"")
    return tuple(
        f"{key} = {_value(values, key)}"
        for key, origin in loaded.origins.items()
        if origin.partition(":")[0] == source and key != "permissions.rules" and not key.startswith(("mcp.", "lsp."))
    )


def _value(values: JsonObject, key: str) -> str:
    value: object = values
    for name in key.split("."):
        value = value.get(name) if is_object(value) else None
    return json.dumps(value, ensure_ascii=False, default=str)


# --- instructions -----------------------------------------------------------------------------------------------------


def _relative_name(layer: ContextLayer, folder: Path) -> str:
    """Return the path of an instruction file, relative to the folder."""
    return os.path.relpath(str(layer.metadata["path"]), folder)


def _name_with_imports(layer: ContextLayer, folder: Path) -> str:
    """Return the path of an instruction file, with the files that it imports."""
    imports: object = layer.metadata.get("imports")
    names = [os.path.relpath(str(path), folder) for path in imports] if is_array(imports) else []
    name = _relative_name(layer, folder)
    return f"{name}, which imports {', '.join(names)}" if names else name


# --- tool servers -----------------------------------------------------------------------------------------------------


def _servers_of(loaded: LoadedSettings, folder: Path) -> list[str]:
    """Return the servers of the project's settings, as they are written."""
    # By origin: the user's own servers are loaded with them, and need no question.
    names = _names_of(loaded, folder, "mcp.")
    return [_server_words(name, server) for name, server in loaded.settings.mcp.items() if name in names]


def _language_servers_of(loaded: LoadedSettings, folder: Path) -> tuple[str, ...]:
    """Return the language servers of the project's settings, as they are written."""
    names = _names_of(loaded, folder, "lsp.")
    found = ((name, server) for name, server in loaded.settings.lsp.items() if name in names)
    return tuple(f"{name}: {server.shown}  for {', '.join(server.files)}" for name, server in found)


def _names_of(loaded: LoadedSettings, folder: Path, prefix: str) -> set[str]:
    """Return the names of the servers that the project's settings have below a key."""
    source = str(folder / PROJECT_FILE)
    return {key.split(".")[1] for key, origin in loaded.origins.items() if key.startswith(prefix) and source in origin}


def _servers_in(content: bytes | None) -> list[str]:
    """Return the servers of a file, as they are written; if it cannot be read, why."""
    servers, problems = _parsed_servers(content)
    return [*(_server_words(name, server) for name, server in servers.items()), *problems]


def _parsed_servers(content: bytes | None) -> tuple[Mapping[str, ToolServer], Sequence[str]]:
    if content is None:
        return {}, ()
    from tui_agent.mcp.server_config import parse_server_file

    try:
        return parse_server_file(content)
    except ConfigurationError as error:
        return {}, (str(error),)


def _server_words(name: str, server: ToolServer) -> str:
    added = {"env": server.env, "headers": server.headers}
    more = [f"{what}: {json.dumps(values, ensure_ascii=False)}" for what, values in added.items() if values]
    more += [f"{what}: {value}" for what in ("cwd", "bearer_token_env") if (value := getattr(server, what))]
    from tui_agent.mcp.server_config import variables_of

    variables = variables_of(server)
    more += [f"receives your variables: {', '.join(variables)}"] if variables else []
    return "  ".join([f"{name}: {server.shown}", *more])
