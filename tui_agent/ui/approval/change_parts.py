"""The parts of a change that the user accepts or keeps one by one, the answer that makes only those, and texts to edit.

The parts of a call are the hunks of its diff; a call whose input cannot be cut along them has none. A part of what a
command changed in a trial is a hunk of a text whose whole diff is known, else a whole file, a tree of files, or the
repository's state.

A command, the content of a written file and the new text of an edit are edited as they are, any other input as JSON.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.diffs import Diff, DiffHunk, hunks_between, split_lines
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.trial import REPOSITORY, KeepSelection, ProposedChanges, ProposedFile
from tui_agent.ui.text.code_highlighter import language_of
from tui_agent.ui.text.decision_rows import CONFLICT, CUT, NO_DIFF, file_facts, tree_runs
from tui_agent.ui.text.line import Run
from tui_agent.ui.text.sanitiser import one_line, sanitise, visible

# --- parts of a call --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangePart:
    """One hunk, or a whole change without one."""

    hunks: tuple[DiffHunk, ...] = ()
    """The hunk, with its place in the file."""
    own: DiffHunk | None = None
    """The same change, with its place in the text that the call names; None if that is the file's."""
    path: str = ""
    """File of the hunks, for the colours of its language."""
    name: str = ""
    """Subject, if the parts are not those of one file."""
    facts: tuple[Run, ...] = ()
    """Facts that its lines do not show."""

    @property
    def text(self) -> str:
        """The hunks as a diff writes them."""
        return "\n".join(hunk.text for hunk in self.hunks)


@dataclass(frozen=True, slots=True)
class ChangeParts:
    """The parts of one call."""

    parts: tuple[ChangePart, ...]
    _args: JsonObject
    _name: str
    """The argument with the new text."""

    @property
    def initial(self) -> frozenset[int]:
        """Indexes of the parts that are accepted at first: all."""
        return frozenset(range(len(self.parts)))

    def input_with(self, accepted: Collection[int]) -> JsonObject:
        """Return the input that makes only the accepted parts, by index."""
        text = text_with(str(self._args[self._name]), self.parts, accepted)
        return {**self._args, self._name: text}

    def decision(self, accepted: Collection[int]) -> ApprovalDecision:
        """Return the answer that lets the accepted parts through; the model reads which ones are left out."""
        count = len(self.parts)
        left_out = [part for index, part in enumerate(self.parts) if index not in accepted]
        if not left_out:
            return ApprovalDecision(decision="approve")
        if len(left_out) == count:
            return ApprovalDecision(decision="deny", note=f"I accept none of the {count} parts of this change.")
        texts = "\n".join(part.text for part in left_out)
        note = f"I left out {len(left_out)} of the {count_text(count, 'part')} of this change:\n{texts}"
        return ApprovalDecision(decision="approve", input=self.input_with(accepted), note=note)


def change_parts(request: ApprovalRequest) -> ChangeParts | None:
    """Return the parts of a request; None if there are fewer than two, or the input cannot be cut along them."""
    preview, args = request.preview, request.args
    if preview is None or preview.kind != "diff":
        return None
    shown = whole_hunks(preview.diff)
    path = preview.diff.files[0].path if shown else ""
    match args:
        case {"old_string": str() as old, "new_string": str() as new}:
            own, name = hunks_between(split_lines(old), split_lines(new)), "new_string"
        case {"content": str() as content}:
            own, name = shown if shown is not None and _fit(shown, split_lines(content)) else (), "content"
        case _:
            return None
    hunks = shown if shown is not None and len(shown) == len(own) else own
    parts = [ChangePart((hunk,), one, path) for hunk, one in zip(hunks, own, strict=True)]
    return ChangeParts(tuple(parts), args, name) if len(parts) > 1 else None


def text_with(new: str, parts: Sequence[ChangePart], accepted: Collection[int]) -> str:
    """Return a new text with the old lines in place of the parts that are not accepted, by index."""
    lines = split_lines(new)
    # From the end, so that the places of the parts before stay right.
    for index in range(len(parts) - 1, -1, -1):
        if index not in accepted:
            hunk = parts[index].own or parts[index].hunks[0]
            lines[hunk.new_index : hunk.new_index + len(hunk.new)] = hunk.old
    return "".join(lines)


def applied(old: str, hunks: Sequence[DiffHunk]) -> str | None:
    """Return an old text with all hunks of its diff; None if they are not those of this text."""
    lines = split_lines(old)
    # From the end, so that the places of the hunks before stay right.
    for hunk in reversed(hunks):
        start, before = hunk.old_index, hunk.old
        if start < 0 or tuple(lines[start : start + len(before)]) != before:
            return None
        lines[start : start + len(before)] = hunk.new
    return "".join(lines) if _fit(hunks, lines) else None


def whole_hunks(diff: Diff) -> tuple[DiffHunk, ...] | None:
    """Return the hunks of the diff of one file; None if the diff is cut or notes another encoding or line end."""
    if len(diff.files) != 1 or diff.files[0].notes or diff.files[0].left_out or not diff.files[0].new_name:
        return None
    # What begins with a note has a side that is not a text.
    return diff.hunks if diff.startswith("--- ") else None


def _fit(hunks: Iterable[DiffHunk], lines: Sequence[str]) -> bool:
    """Return True if the new text has each hunk at its place."""
    return all(
        hunk.new_index >= 0 and tuple(lines[hunk.new_index : hunk.new_index + len(hunk.new)]) == hunk.new
        for hunk in hunks
    )


# --- parts of what a command changed ----------------------------------------------------------------------------------

MOST_BYTES = 1_000_000
"""Bytes of a workspace file above which it is kept as a whole or not at all."""
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class ProposedParts:
    """The parts of a proposal. A path with several parts is a text of which some hunks can be kept."""

    parts: tuple[ChangePart, ...]
    initial: frozenset[int]
    """Indexes of the parts that are accepted at first: all but conflicts."""
    _changes: ProposedChanges
    _paths: tuple[str, ...]
    _texts: Mapping[str, str]
    """New texts by path, as far as they are known."""

    def decision(self, accepted: Collection[int]) -> ApprovalDecision:
        """Return the answer that keeps the accepted parts; the model reads which hunks are left out."""
        conflicts = any(file.conflict for file in self._changes.files)
        if not accepted:
            return ApprovalDecision(decision="deny")
        # A plain yes leaves conflicts out, so that keeping them needs a selection.
        if len(accepted) == len(self.parts) and not conflicts:
            return ApprovalDecision(decision="approve")
        left_out = [
            (path, part)
            for index, (path, part) in enumerate(zip(self._paths, self.parts, strict=True))
            if index not in accepted and self._paths.count(path) > 1
        ]
        kept = {self._paths[index] for index in accepted}
        texts = "\n".join(f"{path}\n{part.text}" for path, part in left_out if path in kept)
        note = f"I left out these parts of files:\n{texts}" if texts else ""
        return ApprovalDecision(decision="approve", input=self.selection(accepted), note=note)

    def selection(self, accepted: Collection[int]) -> JsonObject:
        """Return the fields of `KeepSelection` that keep the accepted parts."""
        paths = list(dict.fromkeys(path for index, path in enumerate(self._paths) if index in accepted))
        texts: dict[str, str] = {}
        for path in paths:
            own = [index for index, one in enumerate(self._paths) if one == path]
            if not all(index in accepted for index in own):
                chosen = [place for place, index in enumerate(own) if index in accepted]
                texts[path] = text_with(self._texts[path], [self.parts[index] for index in own], chosen)
        overwrite = tuple(file.path for file in self._changes.files if file.conflict and file.path in paths)
        # The files that belong to the repository's change are kept with it.
        return KeepSelection(paths=tuple(paths), texts=texts, overwrite=overwrite).model_dump(mode="json")

    def edit(self, index: int, accepted: Collection[int]) -> "ChangedText | None":
        """Return the text of the file of the part `index`, to be edited and kept with the parts `accepted`.

        None if the file has no text, or one with characters that an editor hides.
        """
        path = self._paths[index]
        text = self._texts.get(path)
        # An editor shows a tab; whatever else hides would be edited unseen.
        if text is None or sanitise(plain := text.replace("\t", " ")) != plain:
            return None
        return ChangedText(path, text, self.selection({*accepted, index}))

    def edit_only(self) -> "ChangedText | None":
        """Return the first text that can be edited, to be kept with all that is accepted at first; None without one."""
        places = [index for index, path in enumerate(self._paths) if path in self._texts]
        return self.edit(places[0], self.initial) if places else None


class ChangedText:
    """The text of one file to edit, and the selection that keeps the edited text."""

    def __init__(self, path: str, text: str, selection: JsonObject) -> None:
        self._path, self._selection = path, selection
        self.text = text
        """The text to be edited."""
        self.language = language_of(path)
        """The language to highlight."""
        self.file_name = f"text{PurePath(path).suffix or '.txt'}"
        """A file name for another editor."""
        self.subject = f"the text of {one_line(visible(path), _LONGEST_NAME)}"
        """Description of the edited text."""

    def read(self, text: str) -> JsonObject:
        """Return the selection that keeps an edited text."""
        chosen = KeepSelection.model_validate(self._selection)
        texts = chosen.texts if text == self.text else {**chosen.texts, self._path: text}
        return chosen.model_copy(update={"texts": texts}).model_dump(mode="json")


def keep_all(changes: ProposedChanges) -> JsonObject | None:
    """Return the selection of everything that a plain yes keeps; None if that is all: conflicts are left out."""
    if not any(file.conflict for file in changes.files):
        return None
    parts = proposed_parts(changes, {})
    return parts.selection(parts.initial)


def can_choose(changes: ProposedChanges) -> bool:
    """Return True if a proposal has several parts, or one that a plain yes does not keep; False if none can be kept."""
    hunks = (len(whole_hunks(file.diff) or ()) if _has_hunks(file) else 1 for file in _decided(changes))
    is_left_out = any(file.conflict for file in changes.files)
    return not changes.problem and (is_left_out or sum(hunks) + len(changes.trees) + bool(changes.repository) > 1)


def editable(changes: ProposedChanges) -> tuple[str, ...]:
    """Return the paths of texts that the user can edit."""
    return tuple(file.path for file in _decided(changes) if _is_known_text(file)) if not changes.problem else ()


def proposed_parts(changes: ProposedChanges, texts: Mapping[str, str]) -> ProposedParts:
    """Return the parts of a proposal; without its new text in `texts`, a file is kept as a whole or not at all."""
    found: list[tuple[str, ChangePart]] = []
    if changes.repository:
        words = ", ".join(changes.repository)
        with_files = f"  with {count_text(len(changes.repository_files), 'file')}" if changes.repository_files else ""
        found.append((REPOSITORY, _whole("repository", ((f"  {visible(words)}", ""), (with_files, "muted")))))
    # What runs code later is read first.
    for file in sorted(_decided(changes), key=lambda file: file.sort != "protected"):
        hunks = whole_hunks(file.diff) if _has_hunks(file) and file.path in texts else None
        if hunks is not None and len(hunks) > 1:
            for number, hunk in enumerate(hunks, 1):
                name = f"{visible(file.path)}, part {number} of {len(hunks)}"
                found.append((file.path, ChangePart((hunk,), path=file.path, name=name)))
        else:
            found.append((file.path, _file_part(file)))
    found.extend((tree.path, _whole(visible(tree.path), tuple(tree_runs(tree)[-2:]))) for tree in changes.trees)
    conflicts = {file.path for file in changes.files if file.conflict}
    initial = frozenset(index for index, (path, _) in enumerate(found) if path not in conflicts)
    paths, parts = tuple(path for path, _ in found), tuple(part for _, part in found)
    return ProposedParts(parts, initial, changes, paths, texts)


def new_texts(root: Path, changes: ProposedChanges) -> dict[str, str]:
    """Return the new texts of files: those whose whole diff is known and applies to the workspace's file. Blocks."""
    found: dict[str, str] = {}
    for file in _decided(changes):
        # The diff has the changed lines alone; the others are those of the file, if it is still the one that was
        # compared.
        hunks = whole_hunks(file.diff) if _is_known_text(file) else None
        old = "" if file.kind == "added" else _read_text(root / file.path) if hunks else None
        text = applied(old, hunks) if hunks and old is not None else None
        if text is not None:
            found[file.path] = text
    return found


def _decided(changes: ProposedChanges) -> list[ProposedFile]:
    with_repository = set(changes.repository_files) if changes.repository else set[str]()
    return [file for file in changes.files if file.sort != "refused" and file.path not in with_repository]


def _is_known_text(file: ProposedFile) -> bool:
    """True if the diff has the whole of a text that can be changed before it is kept."""
    return file.is_text and bool(file.diff) and not file.has_more and not file.conflict and file.kind != "deleted"


def _has_hunks(file: ProposedFile) -> bool:
    return _is_known_text(file) and file.kind == "changed"


def _file_part(file: ProposedFile) -> ChangePart:
    notes = file_facts(file)
    if file.conflict:
        notes.append((f"  {visible(file.conflict)}; {CONFLICT}", "warning"))
    if file.sort == "protected":
        notes.append((f"  protected: {visible(file.runs_later)}" if file.runs_later else "  protected", "error"))
    if file.has_more:
        notes.append((f"  {CUT if file.diff else NO_DIFF}", "muted"))
    return ChangePart(file.diff.hunks, path=file.path, name=visible(file.path), facts=tuple(notes))


def _whole(name: str, facts: tuple[Run, ...]) -> ChangePart:
    return ChangePart(name=name, facts=facts)


def _read_text(path: Path) -> str | None:
    """Return a file of the workspace as text; None if it is none, or large."""
    try:
        # The diff is about the link, not about the file that it leads to.
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return path.read_bytes().decode("utf-8")
    except (OSError, ValueError):
        return None


# --- the input of a call as a text ------------------------------------------------------------------------------------

_NEW_TEXTS = {"content": "the content of", "new_string": "the new text in"}
"""Arguments with the new text of a file, and what the user edits."""
_SUFFIX = re.compile(r"\.\w{1,16}", re.ASCII)


class InputEdit:
    """The text to edit, and the input that an edited text describes."""

    def __init__(self, request: ApprovalRequest) -> None:
        self._args = request.args
        command = _command_name(request)
        is_plan = request.question is not None and request.question.kind == "plan"
        self._name = "plan" if is_plan else command or _new_text_name(request)
        path = request.args.get("path")
        file = PurePath(path).name if isinstance(path, str) else ""
        suffix = PurePath(file).suffix
        whole = json.dumps(request.args, ensure_ascii=False, indent=2, default=str)
        if not _SUFFIX.fullmatch(suffix):
            suffix = ".txt"
        self.text = str(request.args[self._name]) if self._name is not None else _UNSAFE.sub(_escaped, whole)
        """The text to be edited."""
        self.language = "json" if self._name is None else "bash" if command else language_of(file)
        """The language to highlight."""
        self.file_name = "input.json" if self._name is None else "command.sh" if command else f"text{suffix}"
        """A file name for another editor."""
        self.subject = "the input as JSON" if self._name is None else "the command"
        """Description of the edited text."""
        if is_plan:
            self.language, self.file_name, self.subject = "markdown", "plan.md", "the plan"
        if self._name in _NEW_TEXTS:
            self.subject = f"{_NEW_TEXTS[self._name]} {one_line(visible(str(path or file)), _LONGEST_NAME)}".strip()

    def read(self, text: str) -> JsonObject:
        """Return the input that an edited text describes.

        Raises:
            ValueError: the text is not valid; the error's text is for the user.
        """
        if self._name is not None:
            if not text.strip() and self._name not in _NEW_TEXTS:
                raise ValueError("nothing is left to run")
            return {**self._args, self._name: text}
        try:
            found: object = json.loads(text)
        # Brackets nested by the thousand raise the second one.
        except (ValueError, RecursionError) as error:
            raise ValueError(f"this is not valid JSON: {error}") from error
        if not is_object(found):
            raise ValueError("the input must be a JSON object: { … }")
        return found


_UNSAFE = re.compile(r"[^\n\x20-\x7e]")


def _command_name(request: ApprovalRequest) -> str | None:
    """Return the name of the argument that the preview shows as a command; None if part of it is invisible."""
    preview = request.preview
    if preview is None or preview.kind != "command" or visible(preview.text) != preview.text:
        return None
    return next((name for name, value in request.args.items() if value == preview.text), None)


def _new_text_name(request: ApprovalRequest) -> str | None:
    """Return the name of the argument with the new text of the file that the preview shows.

    None if an editor would not show all of it, or would change it: invisible characters, line ends other than LF.
    """
    if request.preview is None or request.preview.kind != "diff":
        return None
    for name in _NEW_TEXTS:
        value = request.args.get(name)
        if isinstance(value, str):
            plain = value.replace("\t", " ")
            return name if sanitise(plain) == plain else None
    return None


def _escaped(match: re.Match[str]) -> str:
    """Return a visible character as it is, an invisible one as JSON escapes it."""
    return match[0] if visible(match[0]) == match[0] else json.dumps(match[0])[1:-1]
