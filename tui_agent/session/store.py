"""Where sessions are: one journal each in one directory, for their owner only. Everything here blocks."""

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ConfigurationError, SessionError
from tui_agent.protocol.events import SessionCreated, SessionForked, SessionLoaded, SessionRenamed
from tui_agent.protocol.messages import now_ms
from tui_agent.protocol.regular_file import sync_directory

from .journal import FILE_MODE, JournalFile, with_journal_lock
from .journal_reader import JournalContents, read_journal
from .stored_session import StoredSession
from .summary import SessionSummary, says, summarise

JOURNAL_SUFFIX = ".jsonl"
FILES_SUFFIX = ".files"
CONTENTS_NAME = "contents"
"""Where, among a session's files, what was kept of changed files is."""
DIRECTORY_MODE = 0o700

_VALID_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class SessionStore:
    """The sessions below one directory. Its methods block: off the event loop call them in a thread."""

    def __init__(self, root: Path) -> None:
        """Does nothing yet; `root` is made, 0700, when the first session is."""
        self.root = root

    def refuse_name(self, session_id: str) -> None:
        """Refuses what cannot be the name of a new session.

        Raises:
            ConfigurationError: the name is not valid or taken.
        """
        _check(session_id)
        if self._path(session_id).exists():
            raise _taken(session_id)

    def create(self, cwd: Path, session_id: str | None = None) -> StoredSession:
        """Makes a new, empty session.

        Args:
            cwd: directory it is about; `latest` finds it by that.
            session_id: its name; a random one where None.

        Raises:
            ConfigurationError: the name is not valid or taken.
            SessionError: nothing can be written below `root`.
        """
        _check(session_id)
        try:
            make_private_directory(self.root)
            while True:
                name = session_id or uuid.uuid4().hex[:12]
                try:
                    self._reserve(name)
                except FileExistsError:
                    if session_id is None:
                        continue
                    raise _taken(name) from None
                return StoredSession(name, self._path(name), cwd)
        except OSError as error:
            raise SessionError(
                f"No session can be kept in {self.root}: {error.strerror or error}. "
                "Make room for it there, or start with --no-session."
            ) from error

    def list(self, containing: str = "") -> tuple[SessionSummary, ...]:
        """Every session, the one written to last first; reads only the beginning and end of each file.

        Args:
            containing: only sessions in whose title or messages this text stands, in any case; reads the files.

        Raises:
            SessionError: `root` cannot be looked into. A file that cannot be read is left out.
        """
        found = [summarise(self._path(session_id)) for session_id in self._ids()]
        known = [summary for summary in found if summary is not None and says(summary, containing)]
        return tuple(sorted(known, key=lambda summary: (summary.updated, summary.id), reverse=True))

    def latest(self, cwd: Path) -> SessionSummary | None:
        """The session of this directory that was written to last, of those in which something was said; or None."""
        here = os.path.realpath(cwd)
        return next((found for found in self.list() if found.said and _resolved(found.cwd) == here), None)

    def find(self, text: str) -> str:
        """The id that `text` is, or the only one that begins with it.

        Raises:
            SessionError: no session or more than one begins with it.
        """
        ids = self._ids()
        if text in ids:
            return text
        matches = [session_id for session_id in ids if text and session_id.startswith(text)]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise SessionError(f"There is no session {text!r}. `tui-agent sessions list` shows what there is.")
        raise SessionError(
            f"{len(matches)} sessions begin with {text!r}: {', '.join(matches[:8])}. Give more of the id."
        )

    def load(self, session_id: str) -> StoredSession:
        """Reads a session, however damaged: what is readable, and what was not. Changes nothing.

        Raises:
            SessionError: there is none, or its file cannot be read at all.
        """
        path = self._existing(session_id)
        contents = read_journal(path)
        problems = contents.problems
        return StoredSession(
            id=session_id,
            path=path,
            cwd=_cwd_of(contents),
            envelopes=contents.envelopes,
            problems=problems,
            new_problems=tuple(problem for problem in problems if problem.line > contents.published_until),
            size=contents.size,
            next_seq=contents.last_seq + 1,
            resumed=True,
        )

    def fork(self, session_id: str, at_seq: int | None = None, new_id: str | None = None) -> StoredSession:
        """Copies a session up to one of its events; the original is only read, also while it is open elsewhere.

        What is kept beside the journal is copied whole, and the copy's events lead to the copied files: either session
        may be deleted without the other.

        Args:
            session_id: the original.
            at_seq: number of the last event that is copied; None: all of them.
            new_id: name of the copy; a random one where None.

        Raises:
            ConfigurationError: the name is not valid or taken.
            SessionError: there is no such session or no such event, or the copy cannot be written.
        """
        original = self.load(session_id)
        copied = [one for one in original.envelopes if at_seq is None or one.seq <= at_seq]
        if not copied:
            raise SessionError(f"Session {session_id} has no event up to number {at_seq}; nothing was copied.")
        made = self.create(original.cwd, new_id)
        last = copied[-1]
        forked = SessionForked(id=made.id, path=str(made.path), parent=session_id, at_seq=last.seq)
        copied.append(Envelope(forked, last.seq + 1, now_ms(), last.mono, made.origin()))
        try:
            self._copy_files(session_id, made.id)
            moved = (_quoted(self.files_path(session_id)), _quoted(self.files_path(made.id)))
            self._write_whole(made.id, [_of_session(one, made.id) for one in copied], moved)
        except SessionError:
            self.delete(made.id)
            raise
        return self.load(made.id)

    def rename(self, session_id: str, title: str) -> None:
        """Gives a session a title.

        Raises:
            ConfigurationError: the title says nothing.
            SessionError: there is no such session, it is open elsewhere, or it cannot be written.
        """
        words = " ".join(title.split())
        if not words:
            raise ConfigurationError("a session's title cannot be empty; it was left as it is")
        session = self.load(self.find(session_id))
        renamed = SessionRenamed(id=session.id, title=words)
        last = session.envelopes[-1].mono if session.envelopes else 0.0
        line = Envelope(renamed, session.next_seq, now_ms(), last, session.origin()).to_json()
        self._append(self._path(session.id), f"{line}\n", session.size)

    def delete(self, session_id: str) -> None:
        """Removes a session with everything kept for it.

        Raises:
            SessionError: there is none, it is open somewhere, or it cannot be removed.
        """
        path = self._existing(session_id)

        def remove() -> None:
            # The journal goes last: as long as anything is left, the session is there to be deleted again.
            shutil.rmtree(self.files_path(session_id), ignore_errors=True)
            path.unlink()

        try:
            with_journal_lock(path, remove)
        except OSError as error:
            raise SessionError(f"Session {session_id} cannot be removed: {error.strerror or error}.") from error

    def journal_path(self, session_id: str) -> Path:
        """Where a session's journal is; may not exist."""
        _check(session_id)
        return self._path(session_id)

    def files_path(self, session_id: str) -> Path:
        """Where a session's large results are kept; may not exist."""
        _check(session_id)
        return self.root / f"{session_id}{FILES_SUFFIX}"

    def files_dir(self, session_id: str) -> Path:
        """`files_path`, made if it is missing, 0700.

        Raises:
            SessionError: it cannot be made.
        """
        path = self.files_path(session_id)
        try:
            make_private_directory(path)
        except OSError as error:
            raise SessionError(f"{path} cannot be made: {error.strerror or error}.") from error
        return path

    def _copy_files(self, session_id: str, copy_id: str) -> None:
        """Copies what is kept beside a journal; what goes away meanwhile was nobody's result yet."""
        source, target = self.files_path(session_id), self.files_path(copy_id)
        if not source.is_dir():
            return
        try:
            make_private_directory(target)
            shutil.copytree(source, target, symlinks=True, copy_function=_copy_if_there, dirs_exist_ok=True)
        except OSError as error:
            raise SessionError(
                f"The files of session {session_id} cannot be copied: {error.strerror or error}. Nothing was copied."
            ) from error

    def _write_whole(self, session_id: str, envelopes: Iterable[Envelope], moved: tuple[str, str]) -> None:
        """Puts a whole journal in place of an empty one; of paths, `moved` has old and new."""
        lines = "".join(f"{one.to_json()}\n" for one in envelopes).replace(*moved)
        unfinished = self.files_dir(session_id) / "journal"
        try:
            unfinished.unlink(missing_ok=True)
            self._append(unfinished, lines)
            unfinished.rename(self._path(session_id))
            sync_directory(self.root)
            with suppress(OSError):
                unfinished.parent.rmdir()
        except OSError as error:
            raise SessionError(f"Session {session_id} cannot be written: {error.strerror or error}.") from error

    def _append(self, path: Path, lines: str, size: int = 0) -> None:
        """Appends to a journal of `size` bytes that nobody has open."""
        file = JournalFile(path, expected_size=size)
        try:
            file.append(lines.encode(), durable=True)
        except OSError as error:
            raise SessionError(f"{path} cannot be written: {error.strerror or error}.") from error
        finally:
            file.close()

    def _ids(self) -> Sequence[str]:
        try:
            with os.scandir(self.root) as entries:
                names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise SessionError(f"Sessions in {self.root} cannot be listed: {error.strerror or error}.") from error
        ids = (name.removesuffix(JOURNAL_SUFFIX) for name in names if name.endswith(JOURNAL_SUFFIX))
        return tuple(session_id for session_id in ids if _VALID_ID.fullmatch(session_id))

    def _path(self, session_id: str) -> Path:
        return self.root / f"{session_id}{JOURNAL_SUFFIX}"

    def _existing(self, session_id: str) -> Path:
        _check(session_id)
        path = self._path(session_id)
        if path.is_symlink() or not path.is_file():
            raise SessionError(f"There is no session {session_id!r}. `tui-agent sessions list` shows what there is.")
        return path

    def _reserve(self, name: str) -> None:
        """Makes the empty journal, for its owner only under any umask, and the name itself durable."""
        descriptor = os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            os.fchmod(descriptor, FILE_MODE)
        finally:
            os.close(descriptor)
        sync_directory(self.root)


def make_private_directory(path: Path) -> None:
    """Makes a directory and its missing parents, 0700 under any umask; narrows the directory itself if it was wider.

    Raises:
        OSError: it cannot be made, or something else has the name.
    """
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for directory in reversed(missing):
        try:
            directory.mkdir(DIRECTORY_MODE)
        except FileExistsError:
            if not directory.is_dir():
                raise
        if directory.stat().st_mode & 0o777 != DIRECTORY_MODE:
            directory.chmod(DIRECTORY_MODE)


def _quoted(path: Path) -> str:
    """How a path begins in the text of a journal, up to the names in it."""
    return json.dumps(f"{path}{os.sep}", ensure_ascii=False)[1:-1]


def _copy_if_there(source: str, target: str) -> None:
    with suppress(FileNotFoundError):
        shutil.copy2(source, target, follow_symlinks=False)


def _check(session_id: str | None) -> None:
    """Refuses a name that is no plain file name."""
    if session_id is not None and not _VALID_ID.fullmatch(session_id):
        raise ConfigurationError(
            f"{session_id!r} cannot name a session: 1 to 64 letters, digits, dots, hyphens and underscores, "
            "the first a letter or digit."
        )


def _taken(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"There is a session named {name} already. Go on with it by --resume {name}, or choose another name."
    )


def _of_session(envelope: Envelope, session_id: str) -> Envelope:
    """An event as one of another session."""
    event = envelope.event
    if isinstance(event, SessionCreated):
        event = event.model_copy(update={"id": session_id})
    return replace(envelope, event=event, origin=replace(envelope.origin, session_id=session_id))


def _resolved(cwd: str) -> str:
    """Return the real path of a directory that a journal names; empty if a damaged journal names none."""
    return "" if "\0" in cwd else os.path.realpath(cwd)


def _cwd_of(contents: JournalContents) -> Path:
    """Where the session was begun, or went on last; the present directory where no readable event says it."""
    for envelope in reversed(contents.envelopes):
        if isinstance(envelope.event, SessionCreated | SessionLoaded) and envelope.event.cwd:
            return Path(envelope.event.cwd)
    return Path()
