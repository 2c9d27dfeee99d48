"""Reads and changes of a command, as its row tells them."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN

from .argv import Arguments, is_known, is_remote, parse_arguments
from .catalogue import CommandFacts, Role, group
from .invocation import Copy, FileFilter, Invocation, Reads, Write, attached_paths

_LIMITS = ("NONE", "ONE", "TWO")
"""Meanings that limit the number of operands."""
_WRITTEN: dict[Role, slice] = {
    "ALL": slice(None), "BELOW": slice(None), "REST": slice(1, None), "FIRST": slice(1), "SECOND": slice(1, 2),
}  # fmt: skip
"""Operands that are changed, by role."""
_PATTERN = re.compile(r"[*?{\[]|\.\.\.\Z")
_NUMBERED = re.compile(r"#\d")
_IN_BRACKETS = re.compile(r"[{\[].*[}\]]")
_FILE_ADDRESS = re.compile(r"file:(?://(?:localhost)?(?=/))?([^?#]*)", re.IGNORECASE)
_ENDING = re.compile(r"[._-][A-Za-z0-9]+\Z")


def reads_by_row(facts: CommandFacts, found: Arguments) -> Reads | None:
    """Return the reads of sorted words, or None if the command does not allow as many operands."""
    operands, paths = [one for one in found.operands if one not in ("-", "", PIPE)], found.paths
    if facts.reads in _LIMITS and len(found.operands) > _LIMITS.index(facts.reads):
        return None
    if facts.reads in ("PATTERN", "SEARCH") and found.operands and not found.has(*facts.reading.gives_pattern):
        operands = [one for one in found.operands[1:] if one not in ("-", PIPE)]
    if facts.reads in ("ANY", "TEXT"):
        operands = []
    is_tree = facts.reads in ("TREES", "SEARCH") or found.has(*facts.reading.descends)
    if not operands and (is_tree or facts.reads == "LIST"):
        operands = ["."]
    if not is_tree:
        return Reads((*paths, *operands))
    if "always" in facts.reading.lists or found.has(*facts.reading.lists):
        return Reads(tuple(paths), listed=tuple(operands))
    return Reads(tuple(paths), tuple(operands))


def programs_of(facts: CommandFacts, found: Arguments) -> list[str]:
    """Return the programs in the words of a command."""
    operands = found.operands if facts.scripts == "ALL" else found.operands[1:] if facts.scripts == "REST" else []
    return [*found.of("code", "program"), *(operand for operand in operands if not facts.is_plain("", operand))]


def writes_of(name: str, facts: CommandFacts, found: Arguments) -> tuple[Write, ...]:
    """Return the changes of a command, by its role."""
    is_whole, operands, into = found.has(*facts.changes.whole), found.operands, found.into
    if name == "sqlite3":
        operands = [file_of_address(operand) for operand in operands]
    if name == "sed" and not found.has("-e", "-f", "--expression", "--file"):
        operands = operands[1:]  # The first operand is the script.
    role: Role = "ALL" if name == "install" and found.has("-d", "--directory") else facts.writes
    is_below, anywhere = role == "BELOW", Write(".", below=True, includes=FileFilter())
    writes = [Write(path, is_whole, is_below) for path in (*found.of("write"), *([into] if into is not None else []))]
    writes += [Write(path, below=True, is_mount=True) for path in found.of("mount")]
    if found.has(*facts.changes.removing):
        removed = found.sources if role == "LAST" else operands[role == "FIRST" :]
        writes += [Write(operand, whole=True) for operand in removed if not is_remote(operand)]
        writes += [Write(UNKNOWN)] if found.of("list") or found.has("-@", "--names-stdin") else []
    if (facts.changes.needed and not found.has(*facts.changes.needed)) or found.has(*facts.changes.preventing):
        return tuple(writes)
    if facts.changes.suffix:
        writes += [Write(path, is_whole) for operand in operands for path in _repacked(facts, found, operand)]
    if role == "TREES":
        writes += _rewritten(facts, operands, is_whole)
    if role in _WRITTEN:
        writes += [Write(operand, is_whole, is_below) for operand in operands[_WRITTEN[role]]]
    if role in ("LAST", "MOVE") and operands:
        writes += () if is_remote(found.target) else _into(found, is_whole)
        writes += [Write(one, whole=True) for one in found.sources if role == "MOVE"]
    writes += [anywhere] if found.has(*facts.changes.everywhere) else []
    return tuple(dict.fromkeys((*writes, *with_endings(writes, found))))


def with_endings(writes: Sequence[Write], found: Arguments) -> list[Write]:
    """Return the changes of files named like others, with an ending that an option gives."""
    paths = [write.path for write in writes] or [""]
    return [Write(path + ending) for ending in found.of("ending") for path in paths]


def file_of_address(text: str) -> str:
    """Return the path in an address `file:…`, or the text itself."""
    found = _FILE_ADDRESS.match(text)
    return unquote(found[1]) if found else text


def _rewritten(facts: CommandFacts, operands: Sequence[str], whole: bool) -> Iterator[Write]:
    """Yield the changes of a command that rewrites files, and files below directories, in place."""
    # Some also expand patterns: `prettier --write 'src/**/*.js'`, `gofmt ./...`.
    files = FileFilter(() if whole else facts.changes.files)
    for operand in operands or (".",):
        pattern = _PATTERN.search(operand)
        top = (operand[: pattern.start()].rpartition("/")[0] or ".") if pattern else operand
        yield Write(top, whole, below=True, includes=files)


def _repacked(facts: CommandFacts, found: Arguments, path: str) -> Iterator[str]:
    """Yield the names of the files that a program makes or removes when it packs or unpacks a file."""
    suffix = next((value for one in ("-S", "--suffix") for value in found.given.get(one, ())), facts.changes.suffix)
    if not (facts.changes.unpacks or found.has("-d", "--decompress", "--uncompress")):
        yield path + suffix
        return
    stem = path.removesuffix(suffix) if path.endswith(suffix) else _ENDING.sub("", path)
    yield from (stem, f"{stem}.tar", path + suffix)
    if found.has("-N", "--name"):
        yield f"{path.rpartition('/')[0] or '.'}/{UNKNOWN}"


def _into(found: Arguments, whole: bool) -> list[Write]:
    """Return the target and, in case it is a directory, the paths of the sources in it."""
    keeps_path = found.has("--parents", "-R", "--relative")
    paths = (one.partition("://")[2] or one.partition(":")[2] if is_remote(one) else one for one in found.sources)
    held = (one.lstrip("/") if keeps_path else one.rstrip("/").rsplit("/", 1)[-1] for one in paths)
    return [Write(found.target, whole), *(Write(f"{found.target}/{one}") for one in held if one not in ("", ".", ".."))]


def invocation_by_row(name: str, facts: CommandFacts, words: Sequence[str]) -> Invocation:
    """Return the invocation by a command's row and the words that the row's name does not contain."""
    found = parse_arguments(facts, words)
    writes = [*writes_of(name, facts, found), *_downloaded(name, found)]
    mentions = [*map(Write, found.unclear)]
    if facts.scripts == "ALL" and any(
        word.startswith("@") and not facts.is_plain("", word) for word in (*found.operands, *found.of("optional"))
    ):
        writes.append(Write(UNKNOWN))  # A file of more words.
    if found.directory is not None:
        # It changes the files that its input names, below this directory.
        mentions.append(Write("."))
        writes += [Write(".")] if name == "patch" else []
    links: list[str] = []
    if name in ("ln", "cp") and any(re.match(r"-s\Z|--sy", flag) for flag in found.flags):
        mentions += map(Write, found.sources)
        links = [place for source in found.sources for place in _linked(found, source)]
    elif name == "ln" or (name == "cp" and found.has("-l", "--link")):
        # A hard link lets later commands change the same file under another name.
        writes += map(Write, found.sources)
    places = [*([] if found.directory is None else [found.directory]), *found.of("place")]
    may_be_remote = name in group("version_control")
    places += [one for one in found.operands if facts.works_in and not (may_be_remote and is_remote(one))]
    return Invocation(
        writes=tuple(writes),
        mentions=tuple(dict.fromkeys(mentions)),
        attached=attached_paths(found.of("", "optional")),
        code=tuple(programs_of(facts, found)),
        runs_in=found.directory,
        works_in=tuple(dict.fromkeys(places)),
        copies=_copies(name, facts, found),
        links=tuple(links),
    )


def _downloaded(name: str, found: Arguments) -> Iterator[Write]:
    """Yield the files that get their names from the addresses of a download."""
    into = found.into if found.into is not None else "."
    # A file of options may name others, and `#1` is what a pattern of the address matches.
    if name in group("downloaders") and (found.of("script") or any(map(_NUMBERED.search, found.of("write")))):
        yield Write(UNKNOWN)
    is_named = name == "curl" and not found.has("-O", "--remote-name", "--remote-name-all")
    if name not in group("downloaders") or is_named or found.has("--output-document", "--spider", "--out"):
        return
    if name != "curl" and found.has("-O", "-o"):
        return
    for address in found.operands:
        base = address.partition("?")[0].rstrip("/").rpartition("/")[2].rpartition(":")[2]
        if base and is_known(base):
            yield Write(f"{into}/{_IN_BRACKETS.sub(UNKNOWN, base)}")
    if found.has(*group("named_elsewhere")):
        yield Write(into, below=True, includes=FileFilter())


def _linked(found: Arguments, source: str) -> tuple[str, ...]:
    """Return the paths that a link with this text may lead to; a relative one begins at the link's directory."""
    if source.startswith(("/", "~")) or not is_known(source) or found.has("-r", "--relative"):
        return (source,)
    above = found.target.rstrip("/").rpartition("/")[0]
    return (f"{above or '.'}/{source}", f"{found.target}/{source}")


def _copies(name: str, facts: CommandFacts, found: Arguments) -> tuple[Copy, ...]:
    """Return the sources that `cp`, `mv` and the like copy or move with everything in them, and their targets."""
    if name == "patch" and not found.operands and not found.has("--dry-run", "-o", "--output"):
        return (Copy(None, "."),)
    is_move = facts.writes == "MOVE"
    is_copy = name in ("cp", "rsync", "scp", "ditto") or facts.name.endswith(" cp")
    if not (is_move or is_copy) or is_remote(found.target):
        return ()
    # cp skips directories, and follows links, without one of these options.
    if name == "cp" and not any(re.match(r"-[A-Za-z]*[rRadP]|--(?:[ra]|no-d)", flag) for flag in found.flags):
        return ()
    return tuple(
        Copy(None if is_remote(source) else source, _copied_to(name, found, source), is_merged=not is_move)
        for source in found.sources
        if name != "scp" or not is_remote(source) or found.has("-r")
    )


def _copied_to(name: str, found: Arguments, source: str) -> str:
    # `cp a/. b` and `rsync a/ b` copy the contents, `cp a b` and `rsync a b` the directory itself.
    last = source.rstrip("/").rpartition("/")[2]
    if found.has("--parents") or (name == "rsync" and found.has("-R", "--relative")):
        return f"{found.target}/{source.lstrip('/')}"
    is_contents = last in ("", ".", "..") or name == "ditto" or (name == "rsync" and source.endswith("/"))
    if is_contents or (name in ("cp", "mv") and found.has("-T", "--no-target-directory")):
        return found.target
    return f"{found.target}/{last}"
