"""Commands that may be run because another command's words name them, where nobody has listed that it does so.

Rules that forbid must hold behind every program that runs another one, and there are more of those than any table
names. So behind a program that is not known, every later word may be a command; behind one that is known not to run
its operands, what stands in an option or in quotes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from .command_pattern import BORDER, CommandPattern, command_patterns
from .normalized_argv import strip_git_options
from .read_only_check import canonical_name, is_mostly_read_only
from .rule import Rule
from .shell_syntax import names
from .wrapper_table import INTERPRETERS
from .writer_table import writer

PROGRAM_INPUT = names(
    "make gmake ed ex vi vim nvim patch psql mysql sqlite3 mongosh redis-cli bc gdb lldb ftp sftp telnet nc"
)
"""Known commands whose input says what they do."""
MAX_CANDIDATES = 2_000
"""Most words of one command that are compared with the rules; beyond, a person is asked."""

MAX_FOLLOWING = 16
"""Most words of one that is named."""

_NAMED_BY_OPERANDS = names(
    "npm pnpm yarn bun cargo go pip pip3 pipx uv poetry pdm hatch rye conda mamba gem bundle composer brew apt apt-"
    "get aptitude apt-cache apt-mark dnf yum zypper pacman apk emerge port choco winget scoop snap flatpak dpkg rpm "
    "nix docker podman nerdctl docker-compose kubectl oc helm minikube kind k3s aws gcloud az gsutil terraform tofu "
    "pulumi ansible vagrant packer git hg svn jj fossil darcs gh glab hub tea systemctl service journalctl "
    "launchctl rc-service update-rc.d chkconfig rustup rbenv pyenv nvm nodenv asdf mise volta sdk make gmake ninja "
    "cmake ctest meson bazel buck gradle gradlew mvn mvnw ant sbt rake just task tox nox pytest jest vitest mocha "
    "ava rspec phpunit tsc eslint prettier biome ruff mypy pyright black isort flake8 pylint rubocop shellcheck "
    "stylelint golangci-lint rustc gcc g++ cc c++ clang clang++ ld javac kotlinc ghc swiftc man info tldr apropos "
    "whatis kill pkill killall pgrep ps id groups useradd usermod chsh mount umount mkfs lsblk ip ifconfig ping dig "
    "nslookup host psql mysql sqlite3 redis-cli mongosh createdb dropdb gofmt rustfmt dotnet mix rebar3 lein stack "
    "cabal opam dune deno zig swift flutter dart bash-completion unalias unset tput clear reset read "
    "export declare typeset local readonly set shopt getopts let 7z 7za zip unzip tar bsdtar cpio ar git-lfs pre-"
    "commit"
)
"""Programs that take their operands for names of their own: of packages, targets, files, services."""
_RUNS_BEHIND: dict[str, frozenset[str]] = {
    name: names(words)
    for programs, words in (
        (
            "docker podman nerdctl docker-compose podman-compose kubectl oc minikube",
            "exec run create debug unshare ssh --",
        ),
        ("npm pnpm yarn bun", "exec dlx x --call"),
        ("cmake", "-E"),
        (
            "uv poetry pdm hatch rye conda mamba pipx volta bundle nix rustup pyenv rbenv nvm nodenv asdf mise aws",
            "exec run x --",
        ),
    )
    for name in programs.split()
}
"""Words behind which programs of containers and packages run what follows."""
_RUN_BY_OPTION = re.compile(
    r"-{1,2}(?:e|x|c|entrypoint|exec|cmd|command|extcmd|program|pager|editor|shell|filter|run|hook|script|toolexec|vettool|"
    r"html|on-[a-z-]+|pre|post)\Z"
)
"""Options whose value programs run."""
_RUN_BY_LETTER = {"fd": "X", "fdfind": "X", "man": "H P", "scp": "S", "sftp": "S"}
"""More such options, of single programs."""
_SAID = re.compile(r"-[A-Za-z]*m\Z|--(?:message|title|body|description|notes|grep|author|trailer)\Z|-[tb]\Z")
_SAID_INSIDE = re.compile(r"(?:-m.|--(?:message|title|body|description|notes|grep|author|trailer)=)", re.DOTALL)
_SAYING = names("git hg svn jj gh glab hub tea fossil darcs")
"""Programs with options whose values are only said to people."""
_TEST_RUNNERS: dict[str, frozenset[str]] = {
    "pytest": names("-k -m"),
    "py.test": names("-k -m"),
    "jest": names("-t --testNamePattern"),
    "vitest": names("-t --testNamePattern"),
    "mocha": names("-g --grep -f --fgrep"),
}
"""Programs with options that choose tests by their names."""
_RUNS_TESTS = re.compile(r"(?:run |run-script )?t(?:est\S*)?\Z")
"""What of a package runner's words has tests run, which take such options behind `--`."""
_CUTS = re.compile(r"[\s'\"`(),;:=<>|&\[\]{}!@$\\]+")
_SHORT = re.compile(r"-\w")
_TEXT = re.compile(r"[\s;|&`$()<>]")


@dataclass(frozen=True, slots=True)
class Forbidden:
    """What a rule forbids."""

    pattern: CommandPattern
    """Open at its end: what follows in another command's words may not belong to it."""
    rule: Rule


def forbidden(rules: Iterable[Rule]) -> tuple[Forbidden, ...]:
    """What rules deny or ask about; those that begin with a star compare with every command by themselves."""
    return tuple(
        Forbidden(replace(pattern, is_prefix=True), rule)
        for rule in rules
        if rule.verdict != "allow" and rule.pattern is not None
        for pattern in command_patterns(rule.pattern)
        if pattern.pieces[0]
    )


def find_indirect_command(
    words: Sequence[str], texts: Iterable[str], known: Sequence[Forbidden]
) -> tuple[str, Rule] | None:
    """A command that the words of another one name and a rule forbids, with the rule; None if there is none.

    Args:
        words: the other command, with its name.
        texts: what else it is given: its input, values of variables.
        known: what rules forbid.
    """
    starts = tuple({one.pattern.pieces[0].partition(BORDER)[0] for one in known})
    for count, candidate in enumerate(_candidates(words, texts)):
        if count > MAX_CANDIDATES:
            return f"one of more than {MAX_CANDIDATES} words", known[0].rule
        first = candidate[0].rstrip("/").rsplit("/", 1)[-1]
        if not first.startswith(starts):
            continue
        joined = [BORDER.join((first, *candidate[1:]))]
        if first == "git":
            joined.append(BORDER.join((first, *strip_git_options(candidate[1:]))))
        for one in known:
            if any(one.pattern.match(text) for text in joined):
                return first, one.rule
    return None


def reads_program_from_input(words: Sequence[str]) -> bool:
    """Whether the input of a command may be a program, or say what the command does."""
    name = canonical_name(words[0])
    if name in INTERPRETERS:
        return len(words) == 1 or words[1] in ("-", "-i")
    if name in PROGRAM_INPUT:
        return True
    return name not in _NAMED_BY_OPERANDS and writer(name) is None and not is_mostly_read_only(name)


def _candidates(words: Sequence[str], texts: Iterable[str]) -> Iterator[list[str]]:
    """Everything that may be a command, with what follows it."""
    yield from _behind_options(words)
    for at, is_bare in _eligible(words):
        pieces = _pieces(words[at])
        # What stands alone in its word is followed by the next words; a text of several words by its own.
        following = list(words[at + 1 : at + MAX_FOLLOWING])
        if len(pieces) == 1 and not is_bare and _CUTS.search(words[at]) is None:
            yield [*pieces, *following]
            continue
        for place in range(len(pieces)):
            yield [*pieces[place:], *following]
    for text in texts:
        pieces = _pieces(text)
        for place in range(len(pieces)):
            yield pieces[place : place + MAX_FOLLOWING]


def _behind_options(words: Sequence[str]) -> Iterator[list[str]]:
    """The command with what stands behind its first options, and what an alias of git's makes of it."""
    name = canonical_name(words[0])
    if name == "git":
        for at, word in enumerate(words):
            if word.startswith("alias."):
                yield [name, *(_pieces(word)[1:] or words[at + 1 : at + MAX_FOLLOWING])]
    elif words[1:] and words[1].startswith(("-", "+")):
        yield from ([name, *words[at : at + MAX_FOLLOWING]] for at in range(2, min(len(words), MAX_FOLLOWING)))


def _pieces(text: str) -> list[str]:
    """The words inside a word; of options joined with their value, the value."""
    found: list[str] = []
    for piece in _CUTS.split(text):
        if piece and _SHORT.match(piece):
            found.append(piece[2:] if len(piece) > 2 else piece)
            if _TEXT.search(text):
                found.extend(piece[at:] for at in range(3, min(len(piece), 6)))
        elif piece:
            found.append(piece)
    return found


def _eligible(words: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Which of a command's words may name a command, and whether as they stand."""
    name = canonical_name(words[0])
    if name.startswith("python") and len(words) > 2 and words[1] == "-m":
        yield from ((at + 2, is_bare) for at, is_bare in _eligible(words[2:]))
        return
    takes_names = name in _NAMED_BY_OPERANDS or writer(name) is not None or is_mostly_read_only(name)
    runs = False
    letters = _RUN_BY_LETTER.get(name, "")
    choosing, behind = _choosing_tests(name, words)
    for at in range(1, len(words)):
        before, word = words[at - 1], words[at]
        if name in _SAYING and ((at > 1 and _SAID.match(before)) or _SAID_INSIDE.match(word)):
            continue
        if at > 1 and before in choosing and at > behind:
            continue
        if not takes_names or runs or (at > 1 and (_RUN_BY_OPTION.match(before) or before[1:] in letters.split())):
            yield at, True
        elif "=" in word or _TEXT.search(word) or _SHORT.match(word):
            yield at, False
        runs = runs or word in _RUNS_BEHIND.get(name, ())


def _choosing_tests(name: str, words: Sequence[str]) -> tuple[frozenset[str], int]:
    """The options whose values choose tests by name, and behind which word they do."""
    if name in ("npm", "pnpm", "yarn") and "--" in words:
        behind = words.index("--")
        if _RUNS_TESTS.match(" ".join(words[1:behind])):
            return names("-t --testNamePattern -g --grep"), behind
    return _TEST_RUNNERS.get(name, frozenset()), 0
