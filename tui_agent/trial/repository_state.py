"""Changes of a repository's own state in a layer: in words, and with the files that are kept together."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.git.git_program import bare_environment, find_git, start_git
from tui_agent.git.git_walls import find_bubblewrap
from tui_agent.git.repository import data_directories, repository_roots
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.trial import FileKind, LayerChange

from .layer_root import LayerRoot
from .layer_view import LayerView, identity_of, kind_of, status_of

_RUN_LATER = re.compile(
    r"(?!(?:logs|refs)/)(?:.*/)?(?:hooks(?:/.*)?|config(?:\.worktree)?|commondir|gitdir|info/attributes"
    r"|objects/info/(?:http-)?alternates)\Z",
    re.DOTALL,
)
"""Files of a repository by which git runs programs, or finds other directories."""
_NOISE = re.compile(r"(?:.*/)?(?:COMMIT_EDITMSG|ORIG_HEAD|MERGE_RR|gc\.log|gc\.pid|FETCH_HEAD|description|branches)\Z")
_BEGUN = {
    "MERGE_HEAD": "merge",
    "rebase-merge/": "rebase",
    "rebase-apply/": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
_KINDS = (("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote branch"))
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SECONDS = 10.0
_MOST_BYTES = 50_000_000
_MOST_WORDS = 20


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
    """Return the repository whose directory a layer covers; None if there is none."""
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
        """Find the files of the state among the changes of a layer; the others become protected or stay. Blocks."""
        self._repository = repository
        self._view = LayerView(repository.root)
        self._made_ns = made_ns
        self._common = repository.root.place / repository.common
        start = os.path.join(self._common, "")
        self.inside = [change for change in found if str(change.target).startswith(start)]
        """All changes in the repository's directory."""
        self.protected: list[LayerChange] = []
        """Those that are decided one by one."""
        self.files: list[LayerChange] = []
        """Those that are kept together, or not at all."""
        for change in self.inside:
            self._assign(change)
        self._neutral = _NeutralGit(repository, self._view)
        try:
            self._old_index, self._new_index = self._indexes()
            if self._old_index == self._new_index:
                self.files = [one for one in self.files if self._name(one) != self._own("index")]
            self.words = tuple(self._all_words()) if any(map(self._counts, self.files)) else ()
        finally:
            self._neutral.close()
        self.files = [*self.files, *self._watched()] if self.words else []
        for change in self.files:
            if change.conflict:
                self.words = (*self.words, f"cannot be kept: {self._name(change)}: {change.conflict}")

    def is_tied(self, change: LayerChange) -> bool:
        """Return True if a change of the work tree is part of a checkout, merge, commit or stash. Blocks."""
        names = {self._name(file) for file in self.files if file.source != file.target}
        if not any(name.startswith("refs/") or name in map(self._own, ("HEAD", *_BEGUN)) for name in names):
            return False
        if not change.target.is_relative_to(self._repository.top):
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
        name = self._name(change)
        if name.endswith(".lock"):
            if change.kind == "deleted":
                self.protected.append(change)
        elif _RUN_LATER.match(name):
            self.protected.append(change)
        elif name.startswith("objects/") and change.old == change.new == "file":
            return  # Its content is in its name.
        else:
            if change.new in ("link", "special"):
                change.conflict = "it is not a regular file"
            change.sort = "repository"
            self.files.append(change)

    def _name(self, change: LayerChange) -> str:
        return change.target.relative_to(self._common).as_posix()

    def _own(self, name: str) -> str:
        return self._repository.own[len(self._repository.common) :] + name

    def _counts(self, change: LayerChange) -> bool:
        """Return True for a change that is worth a question by itself."""
        name = self._name(change)
        if _NOISE.match(name) or "directory" in (change.old, change.new):
            return False
        if name.startswith("logs/") and change.seen:  # A `git reset` that moves nothing adds a line.
            return change.size < change.seen[3]
        return not (name.startswith("objects/") and change.kind == "added")

    def _watched(self) -> Iterator[LayerChange]:
        """Yield the files that must not change meanwhile although the layer did not change them."""
        changed = {self._name(change) for change in self.files}
        for name in (self._own("HEAD"), "packed-refs"):
            if name not in changed and (status := status_of(self._common / name)) is not None:
                conflict = "it changed since the command started" if status.st_ctime_ns > self._made_ns else ""
                yield self._watch(name, "file", conflict, identity_of(status))
        if os.path.lexists(self._common / "reftable"):
            yield self._watch("reftable", "directory", "a trial cannot keep refs in this format", ())

    def _watch(self, name: str, kind: FileKind, conflict: str, seen: tuple[int, ...]) -> LayerChange:
        path = self._common / name
        return LayerChange(str(path), path, "changed", "repository", kind, kind, path, conflict=conflict, seen=seen)

    # --- words --------------------------------------------------------------------------------------------------------

    def _all_words(self) -> Iterator[str]:
        if not self._neutral.can_run:
            yield "the repository changed"
            return
        old_head, new_head = (self._text(self._own("HEAD"), is_new=is_new) for is_new in (False, True))
        old, new = self._refs(is_new=False), self._refs(is_new=True)
        base = old.get(old_head.removeprefix("ref: "), old_head)
        words = [
            word for name in sorted({*old, *new}) for word in self._ref_words(name, old.get(name), new.get(name), base)
        ]
        if old_head != new_head:
            words.insert(0, f"HEAD: {_short(old_head)} → {_short(new_head)}")
        for name, what in _BEGUN.items():
            was, is_now = (self._has(self._own(name), is_new=is_new) for is_new in (False, True))
            words += [f"{what} {'begun' if is_now else 'ended'}"] if was != is_now else []
        if self._old_index != self._new_index:
            words += self._index_words(new.get(new_head.removeprefix("ref: "), new_head))
        yield from (words if len(words) <= _MOST_WORDS else [*words[:_MOST_WORDS], f"{len(words) - _MOST_WORDS} more"])
        if not words:
            yield "reflog or packed objects changed"

    def _ref_words(self, name: str, old: str | None, new: str | None, base: str) -> Iterator[str]:
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
        if new is None:
            yield f"{kind} {short} deleted"
            return
        if old is None:
            yield f"{kind} {short} created"
        if kind != "branch" or (old is None and new == base):
            if old is not None:
                yield f"{kind} {short} moved"
            return
        ahead, behind = self._neutral.count(old or base, new), self._neutral.count(new, old or base)
        subject = self._neutral.subject(new)
        if ahead == 0 and behind:
            yield f"{short} moved back by {behind} {'commit' if behind == 1 else 'commits'}"
        elif ahead:
            rewritten = f", {behind} replaced" if behind else ""
            yield f"{ahead} {'commit' if ahead == 1 else 'commits'} on {short}{rewritten}: {subject}"
        elif old is not None:
            yield f"{short} moved to {new[:10]}"

    def _index_words(self, head: str) -> list[str]:
        index = self._view.find(self._repository.own + "index")
        staged = self._neutral.staged(head, index) if index is not None else None
        if staged is None:
            return ["index changed"]
        return [f"index: {staged} {'file' if staged == 1 else 'files'} staged"] if staged else []

    # --- reading ------------------------------------------------------------------------------------------------------

    def _place(self, name: str, *, is_new: bool) -> Path | None:
        path = self._common / name
        return self._view.find(self._repository.common + name) if is_new else (path if status_of(path) else None)

    def _has(self, name: str, *, is_new: bool) -> bool:
        return self._place(name.rstrip("/"), is_new=is_new) is not None

    def _text(self, name: str, *, is_new: bool) -> str:
        """Return the content of a small file; empty if it is missing or a link."""
        path = self._place(name, is_new=is_new)
        try:
            is_file = path is not None and kind_of(status_of(path)) == "file"
            content = read_regular_file(str(path), _MOST_BYTES) if is_file else b""
        except OSError:
            return ""
        text = content.decode("utf-8", "replace")
        return text if name.startswith("logs/") or name == "packed-refs" else text.strip()

    def _refs(self, *, is_new: bool) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self._text("packed-refs", is_new=is_new).splitlines():
            value, _, name = line.partition(" ")
            if _HASH.fullmatch(value):
                found[name] = value
        waiting = ["refs"]
        while waiting:
            path = waiting.pop()
            for name in self._names(path, is_new=is_new):
                below = f"{path}/{name}"
                place = self._place(below, is_new=is_new)
                if place is not None and kind_of(status_of(place)) == "directory":
                    waiting.append(below)
                elif _HASH.fullmatch(value := self._text(below, is_new=is_new)):
                    found[below] = value
        return found

    def _names(self, path: str, *, is_new: bool) -> Iterable[str]:
        if is_new:
            return self._view.names(self._repository.common + path)
        try:
            return os.listdir(self._common / path)
        except OSError:
            return ()

    def _indexes(self) -> tuple[dict[bytes, list[bytes]], dict[bytes, list[bytes]]]:
        """Return the entries of the index before and in the layer, by name; both empty if it did not change."""
        if not any(self._name(change) == self._own("index") for change in self.files):
            if not any(map(self._counts, self.files)):
                return {}, {}
            entries = self._neutral.entries(self._common / self._own("index"))
            return entries, entries
        new = self._view.find(self._repository.own + "index")
        return self._neutral.entries(self._common / self._own("index")), self._neutral.entries(new)


def _short(head: str) -> str:
    return head.removeprefix("ref: ").removeprefix("refs/heads/") if head.startswith("ref: ") else head[:10]


def _blob_hash(change: LayerChange, length: int) -> bytes:
    """Return the name that git gives to the content of a changed file."""
    if change.new == "link":
        content = os.fsencode(os.readlink(change.source))
    else:
        try:
            content = read_regular_file(str(change.source), _MOST_BYTES)
        except OSError:
            return b""
    kind = hashlib.sha1 if length == 40 else hashlib.sha256
    return kind(b"blob %d\0" % len(content) + content).hexdigest().encode()


class _NeutralGit:
    """A git that reads the objects and the index of a layer in a repository of ours, without their settings."""

    def __init__(self, repository: Repository, view: LayerView) -> None:
        root = repository.root
        self._git = find_git(repository.workspace.place)
        self._place = Path(tempfile.mkdtemp(prefix="git-", dir=root.upper.parent))
        for name in ("objects", "refs"):
            (self._place / name).mkdir()
        (self._place / "HEAD").write_text("ref: refs/heads/none\n")
        if "sha256" in _config(root.place / repository.common / "config"):
            self._place.joinpath("config").write_text(
                "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n"
            )
        objects = [place / repository.common / "objects" for place in (root.upper, root.place)]
        # Objects of another repository must not be read because a command named it.
        is_foreign = status_of(objects[0] / "info" / "alternates") is not None
        places = [] if is_foreign else objects
        self._objects = [str(place) for place in places if kind_of(status_of(place)) == "directory"]
        self._environment = bare_environment(repository.workspace.place) | {
            "GIT_DIR": str(self._place),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, self._objects)),
        }

    @property
    def can_run(self) -> bool:
        """True if git may run: never without walls."""
        return self._git is not None and find_bubblewrap(str(self._place)) is not None

    def close(self) -> None:
        """Remove the repository."""
        shutil.rmtree(self._place, ignore_errors=True)

    def entries(self, index: Path | None) -> dict[bytes, list[bytes]]:
        """Return the entries of an index by name; of conflicts there are several for one name."""
        found: dict[bytes, list[bytes]] = {}
        if index is None or kind_of(status_of(index)) != "file":
            return found
        output = self._run(("ls-files", "--stage", "-v", "-z"), index)
        if output is None:  # Not known; equal only if the same bytes are.
            return {b"": [b"? ? " + hashlib.sha256(index.read_bytes()).hexdigest().encode()]}
        for record in output.split(b"\0")[:-1]:
            facts, _, name = record.partition(b"\t")
            found.setdefault(name, []).append(facts)
        return found

    def count(self, old: str, new: str) -> int:
        """Return the number of commits in `new` that are not in `old`."""
        output = self._run(("rev-list", "--count", new, f"^{old}")) if _HASH.fullmatch(old) else None
        output = output or self._run(("rev-list", "--count", new))
        return int(output) if output and output.strip().isdigit() else 0

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
        environment = self._environment
        if index is not None:
            if kind_of(status_of(index)) != "file":
                return None
            # A copy: git may want to write beside it.
            shutil.copyfile(index, self._place / "index")
        places = [str(self._place), *self._objects]
        return start_git(
            self._git,
            arguments,
            environment=environment,
            seconds=_SECONDS,
            readable=places,
            directory=str(self._place),
        )


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _config(path: Path) -> str:
    try:
        return read_regular_file(str(path)).decode("utf-8", "replace").lower()
    except OSError:
        return ""
