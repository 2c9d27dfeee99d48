"""Changes of a repository's own state (`.git`) in a layer: their description, and the files that are kept together."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tui_agent.git.git_program import bare_environment, find_bubblewrap, find_git, start_git
from tui_agent.git.repository_layout import data_directories, repository_roots
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.trial import FileKind, LayerChange

from .confinement import LayerRoot
from .layer_files import identity_of, kind_of, status_of

_RUN_LATER = re.compile(
    r"(?!(?:logs|refs)/)(?:.*/)?(?:hooks(?:/.*)?|config(?:\.worktree)?|commondir|gitdir|info/attributes"
    r"|objects/info/(?:http-)?alternates)\Z",
    re.DOTALL,
)
"""Files of a repository by which git runs programs, or finds other directories."""
_NOISE = re.compile(r"(?:.*/)?(?:COMMIT_EDITMSG|ORIG_HEAD|MERGE_RR|gc\.log|gc\.pid|FETCH_HEAD|description|branches)\Z")
_BEGUN = {
    "MERGE_HEAD": "merge",
    "rebase-merge/head-name": "rebase",
    "rebase-apply/next": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
"""Files that are there while something is not finished, and what that is."""
_KINDS = (("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote branch"))
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SECONDS = 10.0
_MOST_BYTES = 50_000_000
_MOST_WORDS = 20

_Index = dict[bytes, list[bytes]]
"""Entries of an index by name; of conflicts there are several for one name."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository of a workspace, as far as a layer covers it."""

    root: LayerRoot
    common: str
    """Shared directory below the root's place; empty or with a final `/`."""
    own: str
    """Directory of the work tree's HEAD and index, in the same way."""
    top: Path
    """Top of the work tree."""
    workspace: LayerRoot


def repository_in(roots: Sequence[LayerRoot]) -> Repository | None:
    """Return the repository around the workspace, the first root; None unless a root covers its data. Blocks."""
    for top in repository_roots(str(roots[0].place))[:1]:
        places = [Path(place) for place in data_directories(top)]
        for root in roots:
            if places and all(place.is_relative_to(root.place) for place in places):
                own, common = (_below(place, root) for place in (places[0], places[-1]))
                if own or root is not roots[0]:
                    return Repository(root, common, own, Path(top), roots[0])
    return None


def _below(place: Path, root: LayerRoot) -> str:
    name = place.relative_to(root.place).as_posix()
    return "" if name == "." else f"{name}/"


class RepositoryState:
    """Change of one repository in a layer."""

    def __init__(self, repository: Repository, found: Iterable[LayerChange], made_ns: int) -> None:
        """Find the files of the state among the changes of a layer; the others become protected or stay. Blocks.

        Args:
            found: the changes; `sort`, `path` and `conflict` of some are set.
            made_ns: as for `read_changes`.
        """
        self._repository = repository
        self._made_ns = made_ns
        self._common = repository.root.place / repository.common
        self.rest: list[LayerChange] = []
        """Changes that are decided one by one: those elsewhere, and protected ones."""
        self.files: list[LayerChange] = []
        """Those that are kept together, or not at all; their paths are relative to the repository's directory."""
        self.words: tuple[str, ...] = ()
        """Description of the change, part by part; empty if nothing in it is worth a question, as then is `files`."""
        self._old_index: _Index = {}
        self._new_index: _Index = {}
        start = os.path.join(self._common, "")
        for change in found:
            if str(change.target).startswith(start):
                self._assign(change)
            else:
                self.rest.append(change)
        self._changed = {change.path: change for change in self.files}
        heads = {self._own(name) for name in ("HEAD", *_BEGUN)}
        self._is_moved = any(name.startswith("refs/") or name in heads for name in self._changed)
        if any(change.path == self._own("index") or _counts(change) for change in self.files):
            with TemporaryDirectory(prefix="git-", dir=repository.root.upper.parent) as place:
                self._read(_NeutralGit(repository, Path(place)))
        self.files = [*self.files, *self._watched()] if self.words else []
        for change in self.files:
            if change.conflict:
                self.words = (*self.words, f"cannot be kept: {change.path}: {change.conflict}")

    def is_tied(self, change: LayerChange) -> bool:
        """Return True if a change of the work tree is part of a checkout, merge, commit or stash. Blocks."""
        if not self._is_moved or not change.target.is_relative_to(self._repository.top):
            return False
        if b"" in self._new_index:  # Not known.
            return True
        name = os.fsencode(change.target.relative_to(self._repository.top))
        entries = self._new_index.get(name)
        if entries != self._old_index.get(name):
            return True
        if entries is None or change.new == "absent":
            return False
        return entries[0].split(b" ")[2] == _blob_hash(change, len(entries[0].split(b" ")[2]))

    def _assign(self, change: LayerChange) -> None:
        """Put one change to the state, to the protected files, or to neither."""
        name = change.target.relative_to(self._common).as_posix()
        is_lock = name.endswith(".lock")
        if _RUN_LATER.match(name) or (is_lock and change.kind == "deleted"):
            change.sort = "protected"
            self.rest.append(change)
        elif not is_lock and not (name.startswith("objects/") and change.old == change.new == "file"):
            # An object that is there already has its content in its name.
            if change.new in ("link", "special"):
                change.conflict = "it is not a regular file"
            change.sort, change.path = "repository", name
            self.files.append(change)

    def _own(self, name: str) -> str:
        return self._repository.own[len(self._repository.common) :] + name

    def _read(self, git: "_NeutralGit") -> None:
        """Read the index, and find words for the change."""
        index = self._own("index")
        self._old_index = git.entries(self._stored(index, is_new=False))
        self._new_index = git.entries(self._stored(index, is_new=True)) if index in self._changed else self._old_index
        if self._old_index == self._new_index:
            # Only what git remembers of the files' times is different.
            self._changed.pop(index, None)
            self.files = [*self._changed.values()]
        if any(map(_counts, self.files)):
            self.words = tuple(self._all_words(git))

    def _watched(self) -> Iterator[LayerChange]:
        """Yield the files that must not change meanwhile although the layer did not change them."""
        for name in (self._own("HEAD"), "packed-refs"):
            if name not in self._changed and (status := status_of(self._common / name)) is not None:
                conflict = "it changed since the command started" if status.st_ctime_ns > self._made_ns else ""
                yield self._watch(name, "file", conflict, identity_of(status))
        if os.path.lexists(self._common / "reftable"):
            yield self._watch("reftable", "directory", "a trial cannot keep refs in this format", ())

    def _watch(self, name: str, kind: FileKind, conflict: str, seen: tuple[int, ...]) -> LayerChange:
        path = self._common / name
        return LayerChange(name, path, "changed", "repository", kind, kind, path, conflict=conflict, seen=seen)

    # --- words --------------------------------------------------------------------------------------------------------

    def _all_words(self, git: "_NeutralGit") -> Iterator[str]:
        if not git.can_run:
            yield "the repository changed"
            return
        old_head, new_head = (self._text(self._own("HEAD"), is_new=is_new).strip() for is_new in (False, True))
        old, new = self._packed(is_new=False), self._packed(is_new=True)
        base = self._value(old_head.removeprefix("ref: "), old, is_new=False) or old_head
        head = self._value(new_head.removeprefix("ref: "), new, is_new=True) or new_head
        names = {name for name in self._changed if name.startswith("refs/")}
        names |= {name for name, _ in old.items() ^ new.items()}
        words = [f"HEAD: {_short(old_head)} → {_short(new_head)}"] if old_head != new_head else []
        for name in sorted(names):
            values = self._value(name, old, is_new=False), self._value(name, new, is_new=True)
            words += self._ref_words(git, name, *values, base)
        for name, what in _BEGUN.items():
            was, is_now = (self._stored(self._own(name), is_new=is_new) is not None for is_new in (False, True))
            words += [f"{what} {'begun' if is_now else 'ended'}"] if was != is_now else []
        if self._old_index != self._new_index:
            words += self._index_words(git, head)
        yield from (words if len(words) <= _MOST_WORDS else [*words[:_MOST_WORDS], f"{len(words) - _MOST_WORDS} more"])
        if not words:
            yield "reflog or packed objects changed"

    def _ref_words(self, git: "_NeutralGit", name: str, old: str, new: str, base: str) -> Iterator[str]:
        if old == new:
            return
        if name == "refs/stash":
            log = f"logs/{name}"
            change = self._text(log, is_new=True).count("\n") - self._text(log, is_new=False).count("\n")
            count = abs(change) or 1
            yield f"stash: {count} {'entry' if count == 1 else 'entries'} {'dropped' if change < 0 else 'added'}"
            return
        kind, short = next(
            ((what, name[len(start) :]) for start, what in _KINDS if name.startswith(start)), ("ref", name)
        )
        if not new or not old:
            yield f"{kind} {short} {'created' if new else 'deleted'}"
        if not new or kind != "branch" or (not old and new == base):
            if new and old:
                yield f"{kind} {short} moved"
            return
        ahead, behind = git.distance(old or base, new)
        if ahead == 0 and behind:
            yield f"{short} moved back by {behind} {'commit' if behind == 1 else 'commits'}"
        elif ahead:
            rewritten = f", {behind} replaced" if behind else ""
            yield f"{ahead} {'commit' if ahead == 1 else 'commits'} on {short}{rewritten}: {git.subject(new)}"
        elif old:
            yield f"{short} moved to {new[:10]}"

    def _index_words(self, git: "_NeutralGit", head: str) -> list[str]:
        index = self._stored(self._own("index"), is_new=True)
        staged = git.staged(head, index) if index is not None else None
        if staged is None:
            return ["index changed"]
        return [f"index: {staged} {'file' if staged == 1 else 'files'} staged"] if staged else []

    # --- reading ------------------------------------------------------------------------------------------------------

    def _stored(self, name: str, *, is_new: bool) -> Path | None:
        """Return where a file of the repository is stored before the command or after it; None if it is not there."""
        if is_new and (change := self._changed.get(name)) is not None:
            return None if change.new == "absent" else change.source
        path = self._common / name
        return None if status_of(path) is None else path

    def _text(self, name: str, *, is_new: bool) -> str:
        """Return the content of a small file; empty if it is missing or a link."""
        path = self._stored(name, is_new=is_new)
        return "" if path is None else _text_of(path)

    def _packed(self, *, is_new: bool) -> dict[str, str]:
        lines = (line.split(" ", 1) for line in self._text("packed-refs", is_new=is_new).splitlines() if " " in line)
        return {name: value for value, name in lines if _HASH.fullmatch(value)}

    def _value(self, name: str, packed: Mapping[str, str], *, is_new: bool) -> str:
        """Return the commit that a ref names; empty if it does not exist."""
        # The name may be what a command wrote into HEAD.
        if not name.startswith("refs/") or ".." in name:
            return ""
        value = self._text(name, is_new=is_new).strip()
        return value if _HASH.fullmatch(value) else packed.get(name, "")


def _counts(change: LayerChange) -> bool:
    """Return True for a change of the repository that is worth a question by itself."""
    name = change.path
    if _NOISE.match(name) or "directory" in (change.old, change.new):
        return False
    if name.startswith("logs/") and change.seen:  # A `git reset` that moves nothing adds a line.
        return change.size < change.seen[3]
    return not (name.startswith("objects/") and change.kind == "added")


def _text_of(path: Path) -> str:
    try:
        is_file = kind_of(status_of(path)) == "file"
        return read_regular_file(str(path), _MOST_BYTES).decode("utf-8", "replace") if is_file else ""
    except OSError:
        return ""


def _short(head: str) -> str:
    return head.removeprefix("ref: ").removeprefix("refs/heads/") if head.startswith("ref: ") else head[:10]


def _blob_hash(change: LayerChange, length: int) -> bytes:
    """Return the name that git gives to the content of a changed file."""
    try:
        is_link = change.new == "link"
        content = (
            os.fsencode(os.readlink(change.source)) if is_link else read_regular_file(str(change.source), _MOST_BYTES)
        )
    except OSError:
        return b""
    kind = hashlib.sha1 if length == 40 else hashlib.sha256
    return kind(b"blob %d\0" % len(content) + content).hexdigest().encode()


class _NeutralGit:
    """A git that reads the objects and the index of a layer in a repository of ours, without their settings."""

    def __init__(self, repository: Repository, place: Path) -> None:
        root = repository.root
        self._git = find_git(repository.workspace.place)
        self._place = place
        for name in ("objects", "refs"):
            (place / name).mkdir()
        (place / "HEAD").write_text("ref: refs/heads/none\n")
        if "sha256" in _text_of(root.place / repository.common / "config").lower():
            text = "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n"
            (place / "config").write_text(text)
        objects = [place / repository.common / "objects" for place in (root.upper, root.place)]
        # Objects of another repository must not be read because a command named it.
        is_foreign = status_of(objects[0] / "info" / "alternates") is not None
        self._objects = [str(one) for one in objects if not is_foreign and kind_of(status_of(one)) == "directory"]
        self._environment = bare_environment(repository.workspace.place) | {
            "GIT_DIR": str(place),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, self._objects)),
        }

    @property
    def can_run(self) -> bool:
        """True if git may run: never without walls."""
        return self._git is not None and find_bubblewrap(str(self._place)) is not None

    def entries(self, index: Path | None) -> _Index:
        """Return the entries of an index."""
        found: _Index = {}
        if index is None or kind_of(status_of(index)) != "file":
            return found
        output = self._run(("ls-files", "--stage", "-v", "-z"), index)
        if output is None:  # Not known; equal only if the same bytes are.
            return {b"": [b"? ? " + hashlib.sha256(index.read_bytes()).hexdigest().encode()]}
        for record in output.split(b"\0")[:-1]:
            facts, _, name = record.partition(b"\t")
            found.setdefault(name, []).append(facts)
        return found

    def distance(self, old: str, new: str) -> tuple[int, int]:
        """Return the number of commits in `new` that are not in `old`, and in `old` that are not in `new`."""
        sides = f"{new}...{old}" if _HASH.fullmatch(old) else new
        output = self._run(("rev-list", "--left-right", "--count", sides)) or self._run(("rev-list", "--count", new))
        counts = [*map(int, (output or b"0").split()), 0]
        return counts[0], counts[1]

    def subject(self, commit: str) -> str:
        """Return the first line of a commit's message."""
        output = self._run(("log", "-1", "--format=%s", commit)) or b""
        return output.decode("utf-8", "replace").strip()

    def staged(self, head: str, index: Path) -> int | None:
        """Return the number of names in an index that differ from a commit; None if it is not known."""
        if not _HASH.fullmatch(head):
            return len(self.entries(index))
        output = self._run(("diff-index", "--cached", "--name-only", "-M", "-z", head), index)
        return None if output is None else output.count(b"\0")

    def _run(self, arguments: tuple[str, ...], index: Path | None = None) -> bytes | None:
        if self._git is None:
            return None
        if index is not None:
            if kind_of(status_of(index)) != "file":
                return None
            # A copy: git may want to write beside it.
            shutil.copyfile(index, self._place / "index")
        return start_git(
            self._git,
            arguments,
            environment=self._environment,
            seconds=_SECONDS,
            readable=[str(self._place), *self._objects],
            directory=str(self._place),
        )


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
