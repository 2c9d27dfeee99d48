"""Adds the user's rules to a settings file, and leaves the rest of the file as it is."""

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
from tui_agent.tools.atomic_write import write_atomically

from .project_trust import TrustStore


class RuleStore:
    """Stores grants beyond the session, in the settings of the user or of the project."""

    def __init__(self, locations: Locations, project: Path) -> None:
        self._locations = locations
        self._project = Path(os.path.realpath(project))
        self._trust = TrustStore(locations)

    def file_of(self, scope: GrantScope) -> Path | None:
        """Return the settings file for rules of a scope; None if they are not stored."""
        return {"user": self._locations.user_file, "project": self._project / PROJECT_FILE}.get(scope)

    def store(self, rules: Sequence[Rule], scope: GrantScope) -> str | None:
        """Add allow rules to the settings file of a scope and return its path. Blocks.

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
            raise ConfigurationError(
                f"{path} is outside the project, so the rule cannot be stored there; "
                "allow the call for this session instead"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _directory_lock(path.parent):
                before = read_regular_file(str(path)) if path.exists() else None
                if for_project and not self._trust.may_renew(self._project, before):
                    raise ConfigurationError(
                        "this folder's own allow rules are not trusted; allow it for this session or for you instead"
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
            raise ConfigurationError(f"{path}: the rule was not stored: {error}") from error


def with_rule(text: str, rule: Rule) -> str:
    """Return the text of a settings file with one more rule; comments and order stay.

    The rule is inserted before the first ask rule, which it must override, and so after the deny rules before that.

    Raises:
        ConfigurationError: the text is not a settings file.
    """
    try:
        document = tomlkit.parse(text)
        section = document.setdefault("permissions", tomlkit.table())
        rules = section.setdefault("rules", tomlkit.array()) if isinstance(section, Table | InlineTable) else None
        if not isinstance(rules, Array):
            raise ConfigurationError("`permissions.rules` is not a list; the rule was not stored")
        written: list[object] = rules.unwrap()
        if [rule.verdict, rule.text] in written:
            return text
        asking = (at for at, entry in enumerate(written) if isinstance(entry, list) and entry[:1] == ["ask"])
        rules.insert(next(asking, len(written)), [rule.verdict, rule.text])
        if not written:
            rules.multiline(True)
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigurationError(f"the settings are not valid TOML; the rule was not stored: {error}") from error


@contextmanager
def _directory_lock(directory: Path) -> Generator[None]:
    """Keep other tui-agent processes from changing files of the directory at the same time."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
