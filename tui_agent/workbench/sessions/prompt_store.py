"""The prompts of a project, kept for searching, and the unsent draft of a program that did not end properly.

Each prompt is stored with its session: a prompt whose session was deleted is not found any more. A command that the
user keeps from the model (`!!`) is not stored.
"""

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.messages import is_object
from tui_agent.protocol.regular_file import read_regular_file

FOLDER = "prompts"
"""Directory beside the journals. Its files have mode 0600."""
MAX_PROMPTS = 1_000
"""Prompts that are kept, the newest ones."""
MAX_FOUND = 50
"""Prompts that one search returns."""
MAX_SIZE = 100_000
"""Characters of a prompt or draft; longer ones are not kept."""

USES = "commands.json"
"""File with the uses of `/` commands."""
MOST_USES = 200
"""Uses of one command at which all counts are halved."""
MOST_COMMANDS = 100
"""Commands whose uses are kept, those used most."""

_FILE_MODE = 0o600
_MAX_BYTES = 64 * 1024 * 1024
_PRIVATE = "!!"
_COMMAND = re.compile(r"\s*/[^\W\d_][\w:-]*(\s|\Z)")
"""Matches a text that is most probably a `/` command, and not a path."""


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """One line of the file."""

    text: str
    session_id: str = ""
    """Id of its session; empty if it is not known: an unsent draft, or a line of an earlier version."""

    @property
    def line(self) -> str:
        """The prompt as it is stored."""
        return f"{json.dumps({'text': self.text, 'session': self.session_id})}\n"


class PromptStore:
    """The prompts and the draft of one project. Without a directory they are kept in memory only."""

    def __init__(self, sessions_dir: Path | None, project: Path) -> None:
        """Store the paths; nothing is read yet.

        Args:
            sessions_dir: directory of the journals; None: nothing is written or read.
        """
        self._sessions_dir = sessions_dir
        self._folder = None if sessions_dir is None else sessions_dir / FOLDER
        # A digest, because a path may be longer than the name of a file.
        self._name = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:16]
        self._prompts: list[StoredPrompt] = []
        self._draft = ""
        self._loaded = self._folder is None
        self._lock = asyncio.Lock()

    async def find(self, text: str, /) -> tuple[str, ...]:
        """Return at most `MAX_FOUND` prompts that contain a text, ignoring case: the newest first, commands last."""
        await self._load()
        wanted = text.casefold()
        texts = dict.fromkeys(one.text for one in reversed(self._prompts) if wanted in one.text.casefold())
        return tuple(sorted(texts, key=lambda one: _COMMAND.match(one) is not None)[:MAX_FOUND])

    async def all(self) -> tuple[str, ...]:
        """Return the kept prompts, at most `MAX_PROMPTS`, the oldest first."""
        await self._load()
        return tuple(prompt.text for prompt in self._prompts)

    async def add(self, text: str, session_id: str, /) -> None:
        """Add a prompt that was sent. A prompt that cannot be written is kept until the program ends.

        A prompt with `!!`, one longer than `MAX_SIZE`, and one equal to the last are not added.
        """
        await self._load()
        prompt = StoredPrompt(text, session_id)
        # The same prompt twice in a row is one when the user looks back.
        if len(text) > MAX_SIZE or _is_private(text) or self._prompts[-1:] == [prompt]:
            return
        self._prompts = [*self._prompts, prompt][-MAX_PROMPTS:]
        await self._in_thread(lambda _: self._append(prompt), text)

    async def command_uses(self) -> Mapping[str, int]:
        """Return the uses of `/` commands in all projects, by name; counts of long ago are halved."""
        if self._folder is None:
            return {}
        return await asyncio.to_thread(_read_uses, self._folder / USES)

    async def count_command(self, name: str, /) -> None:
        """Count one more use of a `/` command."""
        await self._in_thread(self._count, name)

    async def earlier_draft(self) -> str:
        """Return the draft of a program that did not end properly, now the newest prompt; empty if there is none."""
        await self._load()
        return self._draft

    async def save_draft(self, text: str, /) -> None:
        """Keep the draft in case the program does not end properly; an empty one removes it."""
        await self._in_thread(self._write_draft, "" if _is_private(text) else text)

    def forget_draft(self) -> None:
        """Remove the draft, because the program ends properly. Blocks."""
        if self._folder is not None:
            with suppress(OSError):
                self._draft_path(os.getpid()).unlink(missing_ok=True)

    # --- files --------------------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        """Read the files, once."""
        async with self._lock:
            if not self._loaded:
                self._loaded = True
                await asyncio.to_thread(self._read)

    async def _in_thread(self, write: Callable[[str], None], text: str) -> None:
        if self._folder is not None:
            async with self._lock:
                # A full disk must not end the conversation; the journal reports it.
                with suppress(OSError):
                    await asyncio.to_thread(write, text)

    @property
    def _history_path(self) -> Path:
        return (self._folder or Path()) / f"{self._name}.jsonl"

    def _draft_path(self, pid: int) -> Path:
        return (self._folder or Path()) / f"{self._name}.{pid}.draft"

    def _read(self) -> None:
        lines = _lines_of(self._history_path)
        stored = [prompt for line in lines if (prompt := _prompt_of(line)) is not None]
        kept = [prompt for prompt in stored if not _is_private(prompt.text)]
        self._prompts = self._of_existing_sessions(kept)[-MAX_PROMPTS:]
        # Not for each prompt: the file is written anew only when half of it is too old.
        if len(lines) > 2 * MAX_PROMPTS or len(kept) < len(stored):
            with suppress(OSError):
                _write(self._history_path, "".join(prompt.line for prompt in kept[-MAX_PROMPTS:]))
        for path in self._left_drafts():
            self._draft = _text_of("\n".join(_lines_of(path))) or self._draft
        if self._draft:
            # A prompt from now on, so that the next draft does not replace it.
            draft = StoredPrompt(self._draft)
            self._prompts.append(draft)
            with suppress(OSError):
                self._append(draft)
        for path in self._left_drafts():
            with suppress(OSError):
                path.unlink()

    def _of_existing_sessions(self, prompts: Iterable[StoredPrompt]) -> list[StoredPrompt]:
        """Return the prompts whose session was not deleted, by hand or by another program."""
        # Imported here: the first screen does not need sessions.
        with IMPORTING:
            from tui_agent.session.store import JOURNAL_SUFFIX

        folder = self._sessions_dir or Path()
        known = {prompt.session_id: True for prompt in prompts}
        for session_id in filter(None, known):
            known[session_id] = (folder / f"{session_id}{JOURNAL_SUFFIX}").exists()
        return [prompt for prompt in prompts if known[prompt.session_id]]

    def _count(self, name: str) -> None:
        path = (self._folder or Path()) / USES
        _make_folder(path.parent)
        uses = _read_uses(path)
        uses[name] = uses.get(name, 0) + 1
        if uses[name] > MOST_USES:
            # What was used long ago counts less and less.
            uses = {one: count // 2 for one, count in uses.items() if count > 1}
        kept = sorted(uses, key=lambda one: -uses[one])[:MOST_COMMANDS]
        _write(path, json.dumps({one: uses[one] for one in kept}))

    def _left_drafts(self) -> list[Path]:
        """Return the drafts of programs that are gone, the newest last."""
        found: list[tuple[float, Path]] = []
        for path in (self._folder or Path()).glob(f"{self._name}.*.draft"):
            pid = path.name.split(".")[1]
            # A program that still runs has a user who is typing in it.
            if pid.isdecimal() and int(pid) != os.getpid() and not _is_running(int(pid)):
                with suppress(OSError):
                    found.append((path.stat().st_mtime, path))
        return [path for _, path in sorted(found)]

    def _append(self, prompt: StoredPrompt) -> None:
        _make_folder(self._history_path.parent)
        # Appended in one write, so that two windows of a project do not mix their lines.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._history_path, flags, _FILE_MODE)
        try:
            os.write(descriptor, prompt.line.encode())
        finally:
            os.close(descriptor)

    def _write_draft(self, text: str) -> None:
        path = self._draft_path(os.getpid())
        if text.strip() and len(text) <= MAX_SIZE:
            _make_folder(path.parent)
            _write(path, json.dumps(text))
        else:
            path.unlink(missing_ok=True)


def _make_folder(path: Path) -> None:
    # Imported here: the first screen does not need sessions.
    with IMPORTING:
        from tui_agent.session.store import make_private_directory

    make_private_directory(path)


def _write(path: Path, text: str) -> None:
    with IMPORTING:
        from tui_agent.tools.atomic_write import write_atomically

    write_atomically(path, text.encode())


def _lines_of(path: Path) -> list[str]:
    """Return the lines of a file; none if it cannot be read."""
    try:
        return read_regular_file(str(path), _MAX_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def forget_session(sessions_dir: Path, session_id: str) -> None:
    """Remove the prompts of a session from the files of all projects, because it was deleted. Blocks."""
    for path in (sessions_dir / FOLDER).glob("*.jsonl"):
        lines = _lines_of(path)
        kept = [line for line in lines if (prompt := _prompt_of(line)) is None or prompt.session_id != session_id]
        if len(kept) < len(lines):
            with suppress(OSError):
                _write(path, "".join(f"{line}\n" for line in kept))


def _read_uses(path: Path) -> dict[str, int]:
    """Return the uses of commands; none if the file is damaged. Blocks."""
    try:
        values = json.loads(read_regular_file(str(path), _MAX_BYTES))
    except (OSError, ValueError):
        return {}
    if not is_object(values):
        return {}
    return {name: count for name, count in values.items() if isinstance(count, int) and count > 0}


def _is_private(text: str) -> bool:
    """Return True for a shell command that the user keeps from the model."""
    return text.lstrip().startswith(_PRIVATE)


def _prompt_of(line: str) -> StoredPrompt | None:
    """Return the prompt in a line; None if the line is damaged."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    match value:
        case {"text": str() as text, "session": str() as session_id} if text:
            return StoredPrompt(text, session_id)
        case str() as text if text:
            return StoredPrompt(text)
        case _:
            return None


def _text_of(line: str) -> str:
    """Return the text in a line; empty if the line is damaged."""
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def _is_running(pid: int) -> bool:
    """Return True if a process has this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
