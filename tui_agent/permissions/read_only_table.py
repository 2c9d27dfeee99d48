"""Table of read-only commands, with the options that keep them read-only.

One entry a command. The policy asks about everything that an entry does not list, so an entry lists what is allowed,
never what is not. To add a command, add an entry (or an option) and a line in the tests.

An entry is `OPERANDS: options`. Operands:

    NONE      no operands
    ANY       any words, options or not; they are only text
    TEXT      words that are only text
    PATHS     files or directories, read
    LIST      the same; without operands: the working directory
    TREES     directories, read with everything below them (without operands: the working directory)
    ONE, TWO  at most this many paths
    PATTERN   a pattern, then paths; an option marked `!` replaces the pattern
    SEARCH    a pattern, then trees

Options are written as on the command line: `-alh` is three flags that may be joined. After an option: `:` it takes a
value that is only text; `<` its value is a path that is read; `=` a value that may follow without a blank; `!` it
replaces the pattern. `-#` is a number such as `-5`. A leading `~`: options are never joined. Long options must be
spelled in full.

Left out of all entries on purpose: options that follow links out of the workspace (`grep -R`, `ls -L`, `du -L`), that
name files with lists of files (`--files0-from`), that start a program (`sort --compress-program`, `rg --pre`, `diff
-l`), or that write (`sort -o`, `tree -o`, `file -C`).
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Literal, get_args

from .shell_syntax import names

Operands = Literal["NONE", "ANY", "TEXT", "PATHS", "LIST", "TREES", "ONE", "TWO", "PATTERN", "SEARCH"]
ValueKind = Literal["", "text", "path", "optional"]
"""Value of an option: none, text, a path, or optional text."""

COMMANDS: dict[str, str] = {
    # --- shell built-ins
    ":": "ANY:",
    "true": "ANY:",
    "false": "ANY:",
    "echo": "ANY:",
    "exit": "ANY:",
    "return": "ANY:",
    "break": "ANY:",
    "continue": "ANY:",
    "expr": "ANY:",
    "basename": "ANY:",
    "dirname": "ANY:",
    "tr": "ANY:",
    "seq": "ANY:",
    "sleep": "ANY:",
    "pwd": "NONE: -LP",
    "wait": "NONE:",
    "history": "NONE:",
    "tput": "TEXT:",
    "alias": "NONE:",
    "hash": "NONE:",
    "dirs": "NONE: -lpv",
    "jobs": "NONE: -lprs",
    "umask": "NONE: -pS",
    "ulimit": "NONE: -aHSbcdefiklmnpqrstuvx",
    "help": "TEXT: -dms",
    "times": "NONE:",
    "type": "TEXT: -afptP",
    "which": "TEXT: -a --all",
    "whereis": "TEXT: -bmsul",
    # --- listing
    "ls": "LIST: -aAbBcCdDfFgGhiklmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author --escape --block-size: "
    "--ignore-backups --color= --directory --classify= --file-type --format: --full-time --group-directories-first "
    "--no-group --human-readable --si --hide: --hyperlink= --indicator-style: --inode --ignore: --kibibytes --literal "
    "--numeric-uid-gid --hide-control-chars --show-control-chars --quote-name --quoting-style: --reverse --recursive "
    "--size --sort: --time: --time-style: --tabsize: --width: --context --zero --version --help",
    "tree": "TREES: -adfxqNQpugshDFvrtcUiACSnJX -L: -I: -P: --noreport --charset: --filelimit: --dirsfirst --prune "
    "--filesfirst --matchdirs --ignore-case --si --du --inodes --device --sort: --timefmt: --gitignore --version",
    "stat": "PATHS: -Lft -c: --dereference --file-system --format: --printf: --terse --version --help",
    "file": "PATHS: -bEhiklLnNrsv0 -e: -F: --brief --mime --mime-type --mime-encoding --extension --keep-going "
    "--dereference --no-dereference --no-pad --raw --special-files --separator: --version --help",
    "du": "TREES: -0abchHklmPsSx -B: -d: -t: --null --all --apparent-size --block-size: --bytes --total --max-depth: "
    "--human-readable --inodes --count-links --no-dereference --one-file-system --si --separate-dirs --summarize "
    "--threshold: --time= --time-style: --exclude: --version --help",
    "df": "PATHS: -ahHiklPTv -B: -t: -x: --all --block-size: --total --human-readable --si --inodes --local --output= "
    "--portability --print-type --type: --exclude-type: --version --help",
    "realpath": "PATHS: -emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet "
    "--relative-to: --relative-base: --strip --no-symlinks --zero --version --help",
    "readlink": "PATHS: -efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet "
    "--silent --verbose --zero --version --help",
    # --- showing files
    "cat": "PATHS: -AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs "
    "--show-nonprinting --version --help",
    "tac": "PATHS: -br -s: --before --regex --separator: --version --help",
    "nl": "PATHS: -p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering: --number-format: --number-separator: "
    "--number-width: --starting-line-number: --no-renumber --version --help",
    "head": "PATHS: -# -qvz -c: -n: --bytes: --lines: --quiet --silent --verbose --zero-terminated --version --help",
    "tail": "PATHS: -# -qvzf -c: -n: -s: --follow --sleep-interval: --pid: --bytes: --lines: --quiet --silent "
    "--verbose --zero-terminated --version --help",
    "od": "PATHS: -abcdfilosxv -A: -j: -N: -S: -t: -w= --address-radix: --endian: --skip-bytes: --read-bytes: "
    "--strings= --format: --output-duplicates --width= --version --help",
    "hexdump": "PATHS: -bcCdovx -e: -n: -s: --canonical --length: --skip: --no-squeezing",
    "hd": "PATHS: -bcdovx -e: -n: -s:",
    "xxd": "ONE: ~ -a -b -C -E -e -i -p -ps -u -c: -cols: -g: -l: -len: -s:",
    "strings": "PATHS: -afowW -n: -t: -e: --all --print-file-name --bytes: --radix: --encoding: --version --help",
    "wc": "PATHS: -cmlLw --bytes --chars --lines --max-line-length --words --total: --version --help",
    "cksum": "PATHS: -a: --algorithm: --tag --untagged --base64 --raw --zero --version --help",
    "md5sum": "PATHS: -btz --binary --text --tag --zero --version --help",
    "sha1sum": "PATHS: -btz --binary --text --tag --zero --version --help",
    "sha256sum": "PATHS: -btz --binary --text --tag --zero --version --help",
    "sha512sum": "PATHS: -btz --binary --text --tag --zero --version --help",
    "sum": "PATHS: -rs --sysv",
    "shasum": "PATHS: -bt -a: --algorithm: --binary --text",
    "b3sum": "PATHS: --no-names --raw",
    "b2sum": "PATHS: -btz -l: --binary --text --tag --zero --length: --version --help",
    "base64": "PATHS: -di -w: --decode --ignore-garbage --wrap: --version --help",
    "less": "PATHS: -eEFgGiIJKmMnNqQrRsSwWX -x: --chop-long-lines --no-init --quit-if-one-screen --LINE-NUMBERS "
    "--RAW-CONTROL-CHARS --raw-control-chars --ignore-case --squeeze-blank-lines --version --help",
    "more": "PATHS: -# -cdeflpsu -n: --squeeze --plain --version --help",
    "bat": "PATHS: -Apnuf -l: -r: -H: -m: --show-all --plain --number --unbuffered --language: --line-range: "
    "--highlight-line: --file-name: --tabs: --wrap: --terminal-width: --color: --italic-text: --decorations: --theme: "
    "--style: --list-themes --list-languages --paging: --version --help",
    # --- showing compressed files
    "zcat": "PATHS: -fq --force --quiet",
    "gzip": "PATHS: -# -cdfklNqtv --stdout --to-stdout --decompress --uncompress --force --list --quiet --test "
    "--verbose",
    "gunzip": "PATHS: -cfklNqtv --stdout --to-stdout --force --list --quiet --test --verbose",
    "xz": "PATHS: -cdfklqtvQ --stdout --to-stdout --decompress --uncompress --force --list --quiet --test --verbose",
    "unxz": "PATHS: -cfklqtvQ --stdout --to-stdout --force --list --quiet --test --verbose",
    "xzcat": "PATHS: -fqQ",
    "bzip2": "PATHS: -cdfkqtvs --stdout --decompress --force --quiet --test --verbose --small",
    "bunzip2": "PATHS: -cfkqtvs --stdout --force --quiet --test --verbose --small",
    "bzcat": "PATHS: -s --small",
    "zstdcat": "PATHS: -fq",
    "zipinfo": "PATHS: -12hlmMstTvz",
    # --- processing text
    "sort": "PATHS: -bcCdfghiMmnRrsuVz -k: -t: --ignore-leading-blanks --dictionary-order --ignore-case "
    "--general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort "
    "--reverse --sort: --version-sort --check= --key: --merge --stable --field-separator: --unique --zero-terminated "
    "--parallel: --debug --version --help",
    "uniq": "ONE: -cdDiuz -f: -s: -w: --count --repeated --all-repeated= --skip-fields: --group= --ignore-case "
    "--skip-chars: --unique --zero-terminated --check-chars: --version --help",
    "cut": "PATHS: -nsz -b: -c: -d: -f: --bytes: --characters: --delimiter: --fields: --complement --only-delimited "
    "--output-delimiter: --zero-terminated --version --help",
    "paste": "PATHS: -sz -d: --delimiters: --serial --zero-terminated --version --help",
    "join": "TWO: -iz -a: -e: -j: -o: -t: -v: -1: -2: --ignore-case --check-order --nocheck-order --header --version",
    "comm": "TWO: -123z --check-order --nocheck-order --output-delimiter: --total --zero-terminated --version --help",
    "column": "PATHS: -deJLtx -c: -N: -o: -s: --table --separator: --output-separator: --table-columns: --json",
    "fold": "PATHS: -bs -w: --bytes --spaces --width: --version --help",
    "fmt": "PATHS: -cstu -w: -p: -g: --width: --split-only --uniform-spacing --version --help",
    "expand": "PATHS: -i -t: --initial --tabs: --version --help",
    "unexpand": "PATHS: -a -t: --all --first-only --tabs: --version --help",
    "rev": "PATHS:",
    "iconv": "PATHS: -cls -f: -t: --from-code: --to-code: --list --silent",
    "numfmt": "ANY:",
    "cmp": "TWO: -bls -i: -n: --print-bytes --ignore-initial: --verbose --bytes: --quiet --silent --version --help",
    "diff": "TWO: -# -abBcdeEinNpqrstTuwyZ -C: -F: -I: -S: -U: -W: -x: --normal --brief --report-identical-files "
    "--context= --unified= --ed --rcs --side-by-side --width: --left-column --suppress-common-lines "
    "--show-c-function --show-function-line: --label: --expand-tabs --initial-tab --tabsize: --recursive "
    "--no-dereference --new-file --unidirectional-new-file --exclude: --starting-file: --ignore-case "
    "--ignore-tab-expansion --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines "
    "--ignore-matching-lines: --text --strip-trailing-cr --minimal --speed-large-files --color= --version --help",
    "jq": "PATTERN: -aCcejMnRrSs --compact-output --color-output --exit-status --monochrome-output --null-input "
    "--raw-output --raw-input --slurp --sort-keys --join-output --ascii-output --tab --indent: --seq --stream",
    "yq": "PATHS: -rcPyMCenN -o= -p= -I= --prettyPrint --output-format= --input-format= --indent= "
    "--colors --no-colors --no-doc --null-input --raw-output --exit-status",
    # --- searching
    "grep": "PATTERN: -# -abcEFGHhIilLnoPqrsTvVwxyzZU -e:! -f<! -A: -B: -C: -d: -D: -m: --extended-regexp "
    "--fixed-strings --basic-regexp --perl-regexp --regexp:! --file<! --ignore-case --no-ignore-case --invert-match "
    "--word-regexp --line-regexp --count --color= --colour= --files-without-match --files-with-matches --max-count: "
    "--only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename --label: "
    "--line-number --initial-tab --null --after-context: --before-context: --context: --text --binary-files: "
    "--devices: --directories: --exclude: --exclude-dir: --include: --recursive --line-buffered --null-data "
    "--group-separator: --no-group-separator --version --help",
    "rg": "SEARCH: -aFHhiIlnNopPqsSuUvVwx0cb -e:! -f<! -A: -B: -C: -E: -g: -j: -m: -M: -r: -t: -T: --text "
    "--fixed-strings --with-filename --no-filename --ignore-case --case-sensitive --smart-case --line-number "
    "--no-line-number --only-matching --pretty --pcre2 --quiet --invert-match --word-regexp --line-regexp "
    "--files-with-matches --files-without-match --null --count --count-matches --byte-offset --regexp:! --file<! "
    "--after-context: --before-context: --context: --max-depth: --encoding: --glob: --iglob: --threads: --max-count: "
    "--max-columns: --max-columns-preview --max-filesize: --replace: --type: --type-not: --type-list! --files! "
    "--hidden --no-hidden --no-ignore --no-ignore-vcs --no-ignore-parent --no-ignore-dot --no-ignore-global "
    "--no-config --unrestricted --multiline --multiline-dotall --crlf --column --no-column --color: --colors: "
    "--heading --no-heading --json --stats --trim --vimgrep --sort: --sortr: --sort-files --stop-on-nonmatch "
    "--passthru --context-separator: --field-match-separator: --field-context-separator: --path-separator: "
    "--line-buffered --no-messages --no-mmap --mmap --one-file-system --binary --include-zero --glob-case-insensitive "
    "--no-follow --engine: --auto-hybrid-regex --no-unicode --null-data --version --help",
    "ag": "SEARCH: -acFHilLnoQsSuUvw -A: -B: -C: -G: -m: --hidden --color --nocolor --group --nogroup --heading "
    "--noheading --numbers --nonumbers --column --count --literal --ignore-case --case-sensitive --smart-case "
    "--files-with-matches --ignore: --depth: --max-count: --after= --before= --context= --vimgrep --version --help",
    "fd": "SEARCH: -HIFgaspuq1i -d: -t: -e: -E: -S: -c: --hidden --no-ignore --no-ignore-vcs --unrestricted "
    "--case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --full-path --print0 --max-depth: "
    "--min-depth: --exact-depth: --type: --extension: --exclude: --size: --changed-within: --changed-before: --color: "
    "--max-results: --quiet --show-errors --one-file-system --prune --strip-cwd-prefix --version --help",
    # --- the machine and the user
    "date": "TEXT: -uR -d: -r< --reference< -I= --date: --utc --universal --iso-8601= --rfc-email --rfc-3339: "
    "--version --help",
    "cal": "TEXT: -13jmsyY --three --monday --sunday --julian --year",
    "uname": "NONE: -asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor "
    "--hardware-platform --operating-system --version --help",
    "hostname": "NONE: -s --short",
    "whoami": "NONE: --version --help",
    "id": "TEXT: -agGnruzZ --group --groups --name --real --user --version --help",
    "groups": "TEXT:",
    "nproc": "NONE: --all --ignore: --version --help",
    "arch": "NONE:",
    "uptime": "NONE: -ps --pretty --since --version --help",
    "free": "NONE: -bkmghltw --bytes --kibi --mebi --gibi --human --lohi --total --wide --version --help",
    "w": "NONE: -hsfoiu",
    "who": "NONE: -abdHlmpqrstTu",
    "pstree": "TEXT: -aclnpstuAU",
    "top": "NONE: -bcHiS1 -n: -d: -p: -o: -w= -u:",
    "ss": "NONE: -alntupxw46semioOH --all --listening --numeric --tcp --udp --unix --processes --summary --extended "
    "--memory --info --no-header --oneline --ipv4 --ipv6",
    "netstat": "NONE: -alntupxw46seir --all --listening --numeric --tcp --udp --programs --extend --route --statistics",
    "man": "TEXT: -kfaw -s: --apropos --whatis --all --where --sections:",
    "tty": "NONE: -s --silent --quiet",
    "locale": "TEXT: -amck --all-locales --charmaps --category-name --keyword-name",
    "getconf": "TEXT: -a",
    "lscpu": "NONE: -abcJyx -e= -p= --all --bytes --json --extended= --parse=",
    "lsblk": "NONE: -abdDfilJmnpPrsStOz -o: -e: -I: --all --fs --json --output:",
    "ps": "TEXT: -AeafFlNjHwx -o: -p: -C: -u: -U: -g: --forest --no-headers --headers --sort: --pid: --ppid: --user: "
    "--format: --cols: --columns: --width: --version --help",
    "pgrep": "TEXT: -afilnovxcw -d: -g: -P: -s: -t: -u: -U: --full --list-name --list-full --count --newest --oldest",
    # --- contents of archives, listed only
    "tar": "PATHS: -tvzjJ -f< --list --verbose --gzip --bzip2 --xz --file<",
    "unzip": "PATHS: -lvZ1pqc",
}
"""Entries by command."""

ALIASES = {
    "egrep": "grep",
    "fgrep": "grep",
    "fdfind": "fd",
    "batcat": "bat",
    "gawk": "awk",
    "mawk": "awk",
    "sha224sum": "sha256sum",
}
"""Other names of commands in the table."""

VERSION_ONLY = names(
    "python python3 node npm pip pip3 git ruby perl gcc g++ cc clang make cmake java javac php lua sqlite3 psql rg fd "
    "jq docker curl wget tar zip unzip rsync bash zsh vim"
)
"""Commands allowed only to print their version, without those that a project can replace."""


@dataclass(frozen=True, slots=True)
class ReadOnlyCommand:
    """A parsed entry."""

    operands: Operands
    options: dict[str, ValueKind] = field(default_factory=dict[str, ValueKind])
    """Kind of value by option, with its dashes."""
    gives_pattern: frozenset[str] = frozenset()
    """Options that replace the pattern."""
    takes_number: bool = False
    joins: bool = True
    """True if several flags may follow one dash."""


@cache
def read_only_command(name: str) -> ReadOnlyCommand | None:
    """Return the entry of a command, or None."""
    entry = COMMANDS.get(ALIASES.get(name, name))
    return parse_entry(entry) if entry is not None else None


@cache
def parse_entry(entry: str) -> ReadOnlyCommand:
    """Parse an entry.

    Raises:
        KeyError: the kind of its operands is unknown.
    """
    operands, _, written = entry.partition(":")
    tokens = [token for token in written.split() if token not in ("~", "-#")]
    joins = "~" not in written.split()
    options: dict[str, ValueKind] = {}
    gives_pattern: set[str] = set()
    for token in tokens:
        bare = token.rstrip("!")
        kind = _KINDS.get(bare[-1], "")
        bare = bare[:-1] if kind else bare
        is_one = bare.startswith("--") or kind or not joins
        found = [bare] if is_one else [f"-{letter}" for letter in bare[1:]]
        options.update(dict.fromkeys(found, kind))
        if token.endswith("!"):
            gives_pattern.update(found)
    return ReadOnlyCommand(_OPERANDS[operands], options, frozenset(gives_pattern), "-#" in written.split(), joins)


_KINDS: dict[str, ValueKind] = {":": "text", "<": "path", "=": "optional"}
_OPERANDS: dict[str, Operands] = {kind: kind for kind in get_args(Operands)}
