"""Which projects a person trusts, and what a project brings that trust would apply (safety promise 8).

An answer is bound to the folder's real path and to the content of its settings and of its instruction files: what is
other than what was shown is another question, each of the two by itself.
"""

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tui_agent.context import (
    ContextLayer,
    foreign_instructions,
    load_own_instructions,
    load_project_instructions,
)
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.regular_file import parse_toml, read_regular_file
from tui_agent.protocol.repository_files import refusal, target_outside
from tui_agent.settings import (
    PROJECT_FILE,
    Locations,
    ProjectTrust,
    content_digest,
    load_settings,
)

_LARGEST_STORE = 64 * 1024 * 1024
"""Largest size in bytes of the file with all answers."""

TrustAnswer = Literal["no", "tightening", "all"]
"""Nothing is applied; everything but allow rules; those, too."""


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """What a project brings, for the person who is asked."""

    folder: Path
    """Its real path."""
    digest: str
    """Of its settings file; that of an empty one where there is none."""
    instructions_digest: str
    settings: tuple[str, ...]
    """Settings it would change, such as `model = "x"`."""
    tightening: tuple[str, ...]
    """Rules that deny or ask."""
    allows: tuple[str, ...]
    """Rules that allow something without a question."""
    refused: tuple[str, ...]
    """What is not taken from a project, whatever the answer."""
    instructions: tuple[str, ...]
    """Files with words for the model."""
    links: tuple[str, ...] = ()
    """A sentence for each file that is not used because it is a link out of the repository."""


@dataclass(frozen=True, slots=True)
class FolderTrust:
    """What of a folder is applied."""

    instructions: tuple[ContextLayer, ...]
    """Those that may be read: the user's own, and the project's as far as they are trusted."""
    is_trusted: bool
    """Whether everything that the folder brings is trusted, or it brings nothing."""
    left_out: tuple[str, ...]
    """The instructions that are not read, and why, in words."""


def trust_request_for(folder: Path, locations: Locations) -> TrustRequest | None:
    """What the project in a folder brings; None if it brings nothing, or such as no trust applies. Blocks.

    Raises:
        ConfigurationError: the settings cannot be read; the text names the file and line.
    """
    folder = Path(os.path.realpath(folder))
    if not _may_be_trusted(folder):
        return None
    found = _settings_content(folder)
    own = load_own_instructions(locations.config_dir)
    instructions = load_project_instructions(folder, own)
    if found is None and not instructions:
        return None
    content = found or b""
    trust = ProjectTrust(content_digest(content), allows=True)
    loaded = load_settings(locations, project=folder, trust=trust, environment={})
    values = parse_toml(content)
    ours = [rule for rule in loaded.rules if rule.layer == "project"]
    source = str(folder / PROJECT_FILE)
    return TrustRequest(
        folder,
        content_digest(content),
        _instructions_digest(instructions),
        tuple(
            f"{key} = {_value(values, key)}" for key, origin in loaded.origins.items() if _is_from(origin, source, key)
        ),
        tuple(f"{rule.verdict} {rule.text}" for rule in ours if rule.verdict != "allow"),
        tuple(f"{rule.verdict} {rule.text}" for rule in ours if rule.verdict == "allow"),
        () if found is None else tuple(loaded.ignored),
        tuple(_named(layer, folder) for layer in instructions),
        _foreign(folder, own),
    )


def folder_trust(folder: Path, locations: Locations, *, given: bool = False) -> FolderTrust:
    """What of a folder's instructions is read, and whether all it brings is trusted. Blocks.

    Args:
        folder: the working directory.
        locations: where our files are.
        given: for this run the person says yes (`--trust`).
    """
    folder = Path(os.path.realpath(folder))
    trust = trust_for(folder, locations, given=given)
    own = load_own_instructions(locations.config_dir)
    brought = load_project_instructions(folder, own)
    takes_settings = _settings_are_trusted(folder, trust)
    foreign = tuple(f"{folder}: {words}" for words in _foreign_instructions(folder, own))
    if not brought:
        return FolderTrust(own, takes_settings, foreign)
    if trust is not None and trust.instructions in (None, _instructions_digest(brought)):
        return FolderTrust((*own, *brought), takes_settings, foreign)
    names = ", ".join(_named(layer, folder) for layer in brought)
    knows = trust is not None and trust.instructions != NO_INSTRUCTIONS
    why = "they are not what was trusted" if knows else "this folder is not trusted"
    how = "; --trust reads them for one run" if _may_be_trusted(folder) else ""
    words = f"{folder}: {names} not read, because {why}{how}"
    return FolderTrust(own, False, (words, *foreign))


def trust_for(folder: Path, locations: Locations, *, given: bool = False) -> ProjectTrust | None:
    """How far the project in a folder is trusted now. Blocks.

    Args:
        folder: the project.
        locations: where our files are.
        given: for this run the person says yes (`--trust`), which accepts no allow rule that was not accepted before.
    """
    kept = TrustStore(locations).trust_in(folder)
    if not given or not _may_be_trusted(Path(os.path.realpath(folder))):
        return kept
    with suppress(ConfigurationError):
        content = _settings_content(folder)
        if kept is not None and content is not None and kept.digest == content_digest(content):
            return replace(kept, instructions=None)
    return ProjectTrust()


class TrustStore:
    """The answers that were given, in a file of ours (0600)."""

    def __init__(self, locations: Locations) -> None:
        self._path = locations.state_dir / "trust.json"

    def trust_in(self, folder: Path) -> ProjectTrust | None:
        """What a person said about the project in a folder; None: nothing, or no. Blocks."""
        told: object = self._read().get(os.path.realpath(folder))
        if not is_object(told) or not _may_be_trusted(Path(os.path.realpath(folder))):
            return None
        digest: object = told.get("digest")
        if not isinstance(digest, str):
            return None
        return ProjectTrust(digest, allows=told.get("allows") is True, instructions=_instructions_in(told))

    def knows(self, offer: TrustRequest) -> bool:
        """Whether a person answered for exactly this offer, yes or no. Blocks."""
        told: object = self._read().get(str(offer.folder))
        if not is_object(told):
            return False
        is_accepted = told.get("digest") == offer.digest and _instructions_in(told) == offer.instructions_digest
        return is_accepted or told.get("refused") == _digest_of_both(offer)

    def remember(self, offer: TrustRequest, answer: TrustAnswer) -> None:
        """Keeps an answer. Blocks.

        Raises:
            ConfigurationError: it cannot be kept.
        """
        said: JsonObject = {"refused": _digest_of_both(offer)}
        if answer != "no":
            said = {
                "digest": offer.digest,
                "allows": answer == "all",
                "instructions": offer.instructions_digest,
            }
        self._keep(str(offer.folder), said)

    def may_renew(self, folder: Path, before: bytes | None) -> bool:
        """Whether a rule that a person adds to these settings would hold: they are trusted with their allow rules, or
        there are none yet (`before` is None). Blocks."""
        if before is None:
            return _may_be_trusted(Path(os.path.realpath(folder)))
        trusted = self.trust_in(folder)
        return trusted is not None and trusted.allows and trusted.digest == content_digest(before)

    def renew(self, folder: Path, after: bytes) -> None:
        """Keeps trust in settings that we changed ourselves because a person said so. Blocks.

        Raises:
            ConfigurationError: it cannot be kept.
        """
        told: object = self._read().get(os.path.realpath(folder))
        instructions = _instructions_in(told) if is_object(told) else NO_INSTRUCTIONS
        said: JsonObject = {"digest": content_digest(after), "allows": True, "instructions": instructions}
        self._keep(os.path.realpath(folder), said)

    def _read(self) -> JsonObject:
        try:
            told: object = json.loads(read_regular_file(str(self._path), _LARGEST_STORE))
        except (OSError, ValueError, RecursionError):
            return {}
        return told if is_object(told) else {}

    def _keep(self, folder: str, said: JsonObject) -> None:
        everything = self._read() | {folder: said}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self._path, json.dumps(everything, indent=1).encode("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{self._path}: cannot be written: {error}") from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces a file of ours as a whole; a new one is 0600, an old one keeps its mode. Blocks."""
    mode = 0o600
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode & 0o777
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _may_be_trusted(folder: Path) -> bool:
    """Never the home or the root: trust in one of them would cover everything below it."""
    return folder != Path("/") and folder != Path(os.path.realpath(Path.home()))


def _settings_content(folder: Path) -> bytes | None:
    """Return the folder's settings file; None if it is missing or leads out of the repository."""
    path = folder / PROJECT_FILE
    try:
        content = read_regular_file(str(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error
    # Checked after reading, so that a link put there meanwhile is noticed.
    return content if target_outside(path, folder) is None else None


def _foreign(folder: Path, own: Sequence[ContextLayer]) -> tuple[str, ...]:
    """Return a sentence for each file of the folder that is not used because it leads out of the repository."""
    words = _foreign_instructions(folder, own)
    outside = target_outside(folder / PROJECT_FILE, folder)
    return words if outside is None else (refusal(PROJECT_FILE, outside), *words)


def _foreign_instructions(folder: Path, own: Sequence[ContextLayer]) -> tuple[str, ...]:
    found = foreign_instructions(folder, own)
    return tuple(refusal(Path(os.path.relpath(path, folder)), target) for path, target in found)


def _settings_are_trusted(folder: Path, trust: ProjectTrust | None) -> bool:
    """Whether the folder's settings are those that are trusted, or there are none."""
    try:
        content = _settings_content(folder)
    except ConfigurationError:
        return False
    return content is None or (trust is not None and trust.digest in (None, content_digest(content)))


def _instructions_digest(layers: Sequence[ContextLayer]) -> str:
    """What stands for instructions in an answer about them: exactly what the model would be given, file by file."""
    return content_digest(json.dumps([[layer.name, layer.text] for layer in layers]).encode())


def _instructions_in(told: JsonObject) -> str:
    digest: object = told.get("instructions")
    return digest if isinstance(digest, str) else NO_INSTRUCTIONS


def _digest_of_both(offer: TrustRequest) -> str:
    return content_digest(f"{offer.digest} {offer.instructions_digest}".encode())


def _named(layer: ContextLayer, folder: Path) -> str:
    """An instruction file by its name, as seen from the folder."""
    return os.path.relpath(str(layer.metadata["path"]), folder)


NO_INSTRUCTIONS = _instructions_digest(())
"""The digest of none at all; an answer that says nothing of instructions was about none."""


def _is_from(origin: str, source: str, key: str) -> bool:
    return key != "permissions.rules" and (origin == source or origin.startswith(f"{source}:"))


def _value(values: JsonObject, key: str) -> str:
    value: object = values
    for name in key.split("."):
        value = value.get(name) if is_object(value) else None
    return json.dumps(value, ensure_ascii=False, default=str)
