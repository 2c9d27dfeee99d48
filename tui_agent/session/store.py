"""The store of sessions: a directory with one journal for each, readable by its owner only."""

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ConfigurationError, SessionError, SessionWriteError
from tui_agent.protocol.events import SessionCreated, SessionForked, SessionLoaded, SessionRenamed
from tui_agent.protocol.messages import now_ms
from tui_agent.protocol.past_session import events_of
from tui_agent.protocol.regular_file import make_private_directories, sync_directory

from .journal import FILE_MODE, JournalFile, is_journal_open, with_journal_lock
from .journal_reader import JournalContents, scan_journal
from .stored_session import SessionFolds, StoredSession
from .summary import SessionSummary, says, summarise

JOURNAL_SUFFIX = ".jsonl"
FILES_SUFFIX = ".files"
LIVE_SUFFIX = ".live"
"""Suffix of the file in which an open session announces itself."""
SOCKET_SUFFIX = ".sock"
"""Suffix of the socket on which it takes answers."""
CONTENTS_NAME = "contents"
"""Directory, among a session's files, of saved contents of changed files."""
DIRECTORY_MODE = 0o700

_VALID_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class LatestSession:
    """The session that a directory continues."""

    session: SessionSummary | None
    """None if the directory has no session with messages, or if all are open in other programs."""
    open_elsewhere: tuple[SessionSummary, ...]
    """Sessions with a later message of the user that other programs have open, newest first."""
    vanished: tuple[SessionSummary, ...] = ()
    """If the directory has none: sessions whose own directory no longer exists and had the same name or parent as this
    one, newest first. A directory that was renamed or moved has its sessions here."""


class SessionStore:
    """The sessions in one directory. Its methods block: call them in a thread."""

    def __init__(self, root: Path) -> None:
        """Store the path; the first session creates `root` with mode 0700."""
        self.root = root

    def refuse_name(self, session_id: str) -> None:
        """Raise unless a new session can have this name.

        Raises:
            ConfigurationError: the name is not valid or taken.
        """
        _check(session_id)
        if self._path(session_id).exists():
            raise _taken(session_id)

    def create(self, cwd: Path, session_id: str | None = None) -> StoredSession:
        """Create an empty session.

        Args:
            cwd: its directory, by which `latest` finds it.
            session_id: its name; None for a random one.

        Raises:
            ConfigurationError: the name is not valid or taken.
            SessionWriteError: nothing can be written below `root`.
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
            raise SessionWriteError(f"No session can be saved in {self.root}: {error.strerror or error}.") from error

    def list(self, containing: str = "") -> tuple[SessionSummary, ...]:
        """Return all sessions, the one with the latest message of the user first.

        Reads of each file only the beginning, and the end down to that message.

        Args:
            containing: only sessions with this text in their title or messages, case-insensitive; reads whole files.

        Raises:
            SessionError: `root` cannot be read. Unreadable files are left out.
        """
        found = [summarise(self._path(session_id)) for session_id in self._ids()]
        known = [summary for summary in found if summary is not None and says(summary, containing)]
        return tuple(sorted(known, key=_last_message, reverse=True))

    def newest_paths(self) -> tuple[Path, ...]:
        """Return the paths of all journals, the one written last first. Reads no journal.

        Raises:
            SessionError: `root` cannot be read.
        """
        return tuple(path for _, path in self._newest())

    def _newest(self) -> Sequence[tuple[int, Path]]:
        """Return the time of the last write of each journal, in milliseconds since the epoch, and its path."""
        found: list[tuple[int, str]] = []
        for session_id in self._ids():
            with suppress(OSError):
                found.append((self._path(session_id).stat().st_mtime_ns, session_id))
        return [(written // 1_000_000, self._path(session_id)) for written, session_id in sorted(found, reverse=True)]

    def latest(self, cwd: Path) -> LatestSession:
        """Return the session of this directory with the latest message of the user that no other program has open.

        Reads only the journals that were changed after that message; all of them if no session fits.

        Raises:
            SessionError: `root` cannot be read.
        """
        here = os.path.realpath(cwd)
        with_messages: list[SessionSummary] = []
        open_here: list[SessionSummary] = []
        latest: SessionSummary | None = None
        for written, path in self._newest():
            # A journal is not older than its last message: none of the others has a later one.
            if latest is not None and written < latest.last_message:
                break
            summary = summarise(path)
            if summary is None or not summary.said:
                continue
            with_messages.append(summary)
            if _resolved(summary.cwd) != here:
                continue
            if is_journal_open(path):
                open_here.append(summary)
            elif latest is None or _last_message(summary) > _last_message(latest):
                latest = summary
        open_here = [one for one in open_here if latest is None or _last_message(one) > _last_message(latest)]
        open_elsewhere = tuple(sorted(open_here, key=_last_message, reverse=True))
        if latest is not None:
            return LatestSession(latest, open_elsewhere)
        newest_first = sorted(with_messages, key=_last_message, reverse=True)
        vanished = tuple(summary for summary in newest_first if _may_have_become(summary.cwd, here))
        return LatestSession(None, open_elsewhere, vanished)

    def find(self, text: str) -> str:
        """Return the session id that equals `text`, or the only one that begins with it.

        Raises:
            SessionError: no id, or more than one, begins with it; or `root` cannot be read.
        """
        ids = self._ids()
        if text in ids:
            return text
        matches = [session_id for session_id in ids if text and session_id.startswith(text)]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise SessionError(f"There is no session {text!r}. `tui-agent sessions list` shows all sessions.")
        raise SessionError(
            f"{len(matches)} sessions begin with {text!r}: {', '.join(matches[:8])}. Type more of the id."
        )

    def load(self, session_id: str) -> StoredSession:
        """Read a session, even a damaged one: its readable events and its problems. Changes nothing.

        Raises:
            ConfigurationError: the id is not one of a session.
            SessionError: the session does not exist, or its file cannot be read.
        """
        path = self._existing(session_id)
        folds = SessionFolds()
        contents = scan_journal(path, folds.apply)
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
            folds=folds,
        )

    def fork(self, session_id: str, at_seq: int | None = None, new_id: str | None = None) -> StoredSession:
        """Copy a session up to one of its events. The original is only read and may be open.

        The files beside the journal are copied, too, and the events of the copy refer to the copied files: each session
        can be deleted without the other.

        Args:
            at_seq: number of the last event to copy; None for all.
            new_id: name of the copy; None for a random one.

        Raises:
            ConfigurationError: an id is not valid, or the name is taken.
            SessionError: the session does not exist, it has no event up to `at_seq`, or the copy cannot be written.
        """
        original = self.load(session_id)
        copied = [one for one in original.envelopes if at_seq is None or one.seq <= at_seq]
        if not copied:
            raise SessionError(f"Session {session_id} has no event numbered {at_seq} or lower; nothing was copied.")
        made = self.create(original.cwd, new_id)
        last = copied[-1]
        forked = SessionForked(id=made.id, path=str(made.path), parent=session_id, at_seq=last.seq)
        copied.append(Envelope(forked, last.seq + 1, now_ms(), last.mono, made.origin()))
        try:
            # First, because the events of the copy refer to them.
            self._copy_files(session_id, made.id)
            moved = (_quoted(self.files_path(session_id)), _quoted(self.files_path(made.id)))
            self._write_whole(made.id, [_of_session(one, made.id) for one in copied], moved)
        except SessionError:
            self.delete(made.id)
            raise
        return self.load(made.id)

    def rename(self, session_id: str, title: str) -> None:
        """Set the title of a session.

        Args:
            session_id: its id, or the beginning of it.

        Raises:
            ConfigurationError: the title is empty.
            SessionError: the session does not exist, is open in another program, or cannot be written.
        """
        words = " ".join(title.split())
        if not words:
            raise ConfigurationError("a session's title cannot be empty; it was not changed")
        session = self.load(self.find(session_id))
        renamed = SessionRenamed(id=session.id, title=words)
        # The clock of this process has another beginning than that of the session's events.
        last = session.envelopes[-1].mono if session.envelopes else 0.0
        line = Envelope(renamed, session.next_seq, now_ms(), last, session.origin()).to_json()
        self._append(self._path(session.id), f"{line}\n", session.size)

    def delete(self, session_id: str) -> None:
        """Delete a session with all its files.

        Raises:
            ConfigurationError: the id is not one of a session.
            SessionError: the session does not exist, is open, or cannot be deleted.
        """
        path = self._existing(session_id)

        def remove() -> None:
            # The journal goes last: if the deletion fails half-way, the session still exists and can be deleted again.
            shutil.rmtree(self.files_path(session_id), ignore_errors=True)
            for suffix in (LIVE_SUFFIX, SOCKET_SUFFIX):
                # Those of a program that was killed.
                path.with_suffix(suffix).unlink(missing_ok=True)
            path.unlink()

        try:
            with_journal_lock(path, remove)
        except OSError as error:
            raise SessionError(f"Session {session_id} cannot be deleted: {error.strerror or error}.") from error

    def journal_path(self, session_id: str) -> Path:
        """Return the path of a session's journal, which may not exist.

        Raises:
            ConfigurationError: the id is not one of a session.
        """
        _check(session_id)
        return self._path(session_id)

    def files_path(self, session_id: str) -> Path:
        """Return the directory of a session's long results, which may not exist.

        Raises:
            ConfigurationError: the id is not one of a session.
        """
        _check(session_id)
        return self.root / f"{session_id}{FILES_SUFFIX}"

    def files_dir(self, session_id: str) -> Path:
        """Return `files_path`; create the directory with mode 0700 if it is missing.

        Raises:
            ConfigurationError: the id is not one of a session.
            SessionError: it cannot be created.
        """
        path = self.files_path(session_id)
        try:
            make_private_directory(path)
        except OSError as error:
            raise SessionError(f"{path} cannot be created: {error.strerror or error}.") from error
        return path

    def _copy_files(self, session_id: str, copy_id: str) -> None:
        """Copy the files beside a journal. Files that vanish meanwhile are skipped: no event refers to them yet."""
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
        """Replace an empty journal with a complete one. `moved` is the old and the new path of the session's files."""
        # In the text of the lines, because results quote the paths as well.
        lines = "".join(f"{one.to_json()}\n" for one in envelopes).replace(*moved)
        unfinished = self.files_dir(session_id) / "journal"
        try:
            unfinished.unlink(missing_ok=True)
            self._append(unfinished, lines)
            # After a kill, the copy is empty or whole.
            unfinished.rename(self._path(session_id))
            sync_directory(self.root)
            with suppress(OSError):
                # It stays if the session has other files.
                unfinished.parent.rmdir()
        except OSError as error:
            raise SessionError(f"Session {session_id} cannot be written: {error.strerror or error}.") from error

    def _append(self, path: Path, lines: str, size: int = 0) -> None:
        """Append to a journal of `size` bytes that no program has open."""
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
                # Opening a link or a pipe with such a name could reach or block anything.
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
            raise SessionError(f"There is no session {session_id!r}. `tui-agent sessions list` shows all sessions.")
        return path

    def _reserve(self, name: str) -> None:
        """Create the empty journal with mode 0600 under any umask, and sync its directory entry."""
        descriptor = os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            # The umask takes bits away from the mode of the open.
            os.fchmod(descriptor, FILE_MODE)
        finally:
            os.close(descriptor)
        # After a power loss, a name that is not on the disk is gone with everything written under it.
        sync_directory(self.root)


def _last_message(summary: SessionSummary) -> tuple[int, int, str]:
    """Return a key that sorts sessions by their latest message."""
    return summary.last_message, summary.updated, summary.id


def make_private_directory(path: Path) -> None:
    """Create a directory and its missing parents with mode 0700 under any umask; set that of an existing one. Blocks.

    Raises:
        OSError: it cannot be created, or a file has the name.
    """
    make_private_directories(path)
    if path.stat().st_mode & 0o777 != DIRECTORY_MODE:
        path.chmod(DIRECTORY_MODE)


def _quoted(path: Path) -> str:
    """Return a directory as it appears in the JSON of a journal, with a final slash."""
    return json.dumps(f"{path}{os.sep}", ensure_ascii=False)[1:-1]


def _copy_if_there(source: str, target: str) -> None:
    with suppress(FileNotFoundError):
        shutil.copy2(source, target, follow_symlinks=False)


def _check(session_id: str | None) -> None:
    """Raise unless a name is a plain file name."""
    if session_id is not None and not _VALID_ID.fullmatch(session_id):
        raise ConfigurationError(
            f"{session_id!r} cannot name a session: 1 to 64 letters, digits, dots, hyphens and underscores, "
            "the first a letter or digit."
        )


def _taken(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"A session named {name} already exists. Continue it with --resume {name}, or choose another name."
    )


def _of_session(envelope: Envelope, session_id: str) -> Envelope:
    """Return the event with another session id."""
    event = envelope.event
    if isinstance(event, SessionCreated):
        event = event.model_copy(update={"id": session_id})
    return replace(envelope, event=event, origin=replace(envelope.origin, session_id=session_id))


def _resolved(cwd: str) -> str:
    """Return the real path of a directory from a journal; empty if a damaged journal has no valid path."""
    return "" if "\0" in cwd else os.path.realpath(cwd)


def _may_have_become(cwd: str, here: str) -> bool:
    """True if a directory no longer exists and has the parent or the name of another one."""
    was = _resolved(cwd)
    is_alike = os.path.dirname(was) == os.path.dirname(here) or os.path.basename(was) == os.path.basename(here)
    return bool(was) and was != here and is_alike and not os.path.isdir(was)


def _cwd_of(contents: JournalContents) -> Path:
    """Return the directory in which the session last began or continued; the current one if no event names it."""
    cwd = Path()
    for envelope in events_of(contents.envelopes, (SessionCreated, SessionLoaded)):
        if isinstance(envelope.event, SessionCreated | SessionLoaded) and envelope.event.cwd:
            cwd = Path(envelope.event.cwd)
    return cwd
