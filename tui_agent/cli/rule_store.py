"""Writes a rule that a person gave into a settings file, with everything else in it as it was."""

import fcntl
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, InlineTable, Table

from tui_agent.permissions import Rule
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import GrantScope
from tui_agent.protocol.regular_file import parse_toml, read_regular_file
from tui_agent.settings import PROJECT_FILE, Locations

from .project_trust import TrustStore, write_atomically


class RuleStore:
    """Keeps grants beyond the session: in the user's settings, or in those of the project."""

    def __init__(self, locations: Locations, project: Path) -> None:
        self._locations = locations
        self._project = Path(os.path.realpath(project))
        self._trust = TrustStore(locations)

    def file_of(self, scope: GrantScope) -> Path | None:
        """The file in which rules of a scope stand; None: such rules are not kept."""
        return {"user": self._locations.user_file, "project": self._project / PROJECT_FILE}.get(scope)

    def store(self, rules: Sequence[Rule], scope: GrantScope) -> str | None:
        """Adds allow rules to the file of a scope and says which file that is. Blocks.

        Raises:
            ConfigurationError: the file cannot be read or written, or the project is not trusted; nothing was changed.
        """
        path = self.file_of(scope)
        if path is None:
            return None
        self._add(path, rules, for_project=scope == "project")
        return str(path)

    def _add(self, path: Path, rules: Sequence[Rule], *, for_project: bool) -> None:
        path = Path(os.path.realpath(path))
        if for_project and not path.is_relative_to(self._project):
            raise ConfigurationError(f"{path} is outside the project; grant it for the session")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _directory_lock(path.parent):
                before = read_regular_file(str(path)) if path.exists() else None
                if for_project and not self._trust.may_renew(self._project, before):
                    raise ConfigurationError(
                        "this folder's own allow rules are not trusted; grant it for the session or the user"
                    )
                parse_toml(before or b"")
                text = (before or b"").decode("utf-8-sig")
                for rule in rules:
                    text = with_rule(text, rule)
                after = text.encode("utf-8")
                if after == before:
                    return
                write_atomically(path, after)
                if for_project:
                    self._trust.renew(self._project, after)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{path}: the rule cannot be stored: {error}") from error


def with_rule(text: str, rule: Rule) -> str:
    """A settings file's text with one rule more; comments and order stay.

    The rule goes in front of the first rule that asks, because it answers that question, and behind every denial
    before it.

    Raises:
        ConfigurationError: the text is no settings file.
    """
    try:
        document = tomlkit.parse(text)
        section = document.setdefault("permissions", tomlkit.table())
        rules = section.setdefault("rules", tomlkit.array()) if isinstance(section, Table | InlineTable) else None
        if not isinstance(rules, Array):
            raise ConfigurationError("`permissions.rules` is no list; the rule was not stored")
        written: list[object] = rules.unwrap()
        if [rule.verdict, rule.text] in written:
            return text
        asking = (at for at, one in enumerate(written) if isinstance(one, list) and one[:1] == ["ask"])
        rules.insert(next(asking, len(written)), [rule.verdict, rule.text])
        if not written:
            rules.multiline(True)
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigurationError(f"the settings are not valid TOML, and the rule was not stored: {error}") from error


@contextmanager
def _directory_lock(directory: Path) -> Generator[None]:
    """Keeps other processes of ours from writing there at the same time."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
