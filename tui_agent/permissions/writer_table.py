"""Table of commands that change files, with the position of the files in their words.

One entry a command: `ROLE: options`. An option without an entry counts as a flag, and the word after it both as
another file and as a path that may be changed: too many files are found rather than too few. A long option may be
abbreviated wherever the command allows it. Roles:

    ALL     every operand is changed
    FIRST   the first operand is changed
    SECOND  the second operand is changed
    LAST    the last operand is changed; if it is a directory, the files in it with the names of the other operands
    MOVE    the same, and the other operands are changed, too
    NONE    only values of options are changed

After an option: `:` its value is only text; `<` it is read; `>` it is changed; `*` it is the target directory; `@` it
is the command's working directory; `$` it is a program. `!` marks an option without which nothing is changed; `?` one
with which nothing is changed; `&` one that extends the change to everything below a directory.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Literal, get_args

from .shell_syntax import names

Role = Literal["ALL", "FIRST", "SECOND", "LAST", "MOVE", "NONE"]
OptionValue = Literal["", "text", "read", "code", "directory", "write", "into"]
"""Value of an option; if a word may abbreviate several options, the last in this order counts."""

_TAR = (
    "--to-command$ --use-compress-program$ --info-script$ --new-volume-script$ --rsh-command$ --rmt-command$ "
    "--checkpoint-action$ --transform$ --xform$ --volno-file> --files-from< --exclude: --exclude-from< --mode: "
    "--owner: --group: --mtime: --newer: --after-date: --format: --label: --strip-components: --starting-file: "
    "--suffix: --tape-length: --blocking-factor: --record-size: --sparse-version: --quoting-style: --sort: "
    "--level: --add-file<"
)

WRITERS: dict[str, str] = {
    # --- removing
    "rm": "ALL: -r& -R& --recursive&",
    "rmdir": "ALL:",
    "unlink": "ALL:",
    "shred": "ALL: -n: -s: --iterations: --size: --random-source<",
    "trash": "ALL:",
    # --- creating
    "touch": "ALL: -d: -t: -r< --date: --time: --reference<",
    "truncate": "ALL: -s: -r< --size: --reference<",
    "mkdir": "ALL: -m: --mode:",
    "mkfifo": "ALL: -m: --mode:",
    "mknod": "FIRST: -m: --mode:",
    "mktemp": "ALL: -p> --tmpdir> --suffix:",
    "tee": "ALL:",
    "fallocate": "ALL: -l: -o: --length: --offset:",
    # --- changing attributes
    "chmod": "ALL: -R& --recursive& --reference<",
    "chown": "ALL: -R& --recursive& --reference< --from:",
    "chgrp": "ALL: -R& --recursive& --reference<",
    "chattr": "ALL: -R&",
    "chcon": "ALL: -R& --recursive& --reference<",
    "setfacl": "ALL: -R& --recursive& -m: -M< -x: -X< --modify: --remove:",
    "setfattr": "ALL: -n: -v: -x: --name: --value: --remove:",
    # --- copying
    "cp": "LAST: -t* --target-directory* -S: --suffix:",
    "mv": "MOVE: -t* --target-directory* -S: --suffix:",
    "rename": "ALL:",
    "ln": "LAST: -t* --target-directory* -S: --suffix:",
    "link": "ALL:",
    "install": "LAST: -t* --target-directory* -g: -m: -o: -S: --group: --mode: --owner: --suffix: --strip-program$",
    "rsync": "LAST: -e$ -f: -B: -M: -T> --rsh$ --rsync-path$ --exclude: --include: --filter: --exclude-from< "
    "--include-from< --files-from< --backup-dir> --suffix: --log-file> --temp-dir> --partial-dir> --max-size: "
    "--min-size: --bwlimit: --timeout: --port: --password-file< --chmod: --chown: --delete& --delete-before& "
    "--delete-after& --delete-during& --delete-excluded&",
    "scp": "LAST: -c: -F< -i< -J: -l: -o: -P: -S: -D: -X:",
    "ditto": "LAST:",
    "patch": "ALL: -d@ -o> -r> -i< -p: -D: -F: -g: -V: -x: -Y: -z: -B: --directory@ --output> --reject-file> --input< "
    "--strip: --fuzz:",
    # --- changing in place
    "sed": "ALL: -i! --in-place! -e: -f< -l: --expression: --file< --line-length:",
    "perl": "ALL: -i! -e: -E: -I: -M: -m: -C: -D: -x:",
    "ruby": "ALL: -i! -e: -I: -r: -C@ -E: -K: -T: -W: -x:",
    "gzip": "ALL: -c? --stdout? --to-stdout? -l? --list? -t? --test? -S: --suffix: -r&",
    "gunzip": "ALL: -c? --stdout? --to-stdout? -l? --list? -t? --test? -S: --suffix: -r&",
    "bzip2": "ALL: -c? --stdout? -t? --test?",
    "bunzip2": "ALL: -c? --stdout? -t? --test?",
    "xz": "ALL: -c? --stdout? --to-stdout? -l? --list? -t? --test? -S: --suffix: -T: --threads:",
    "unxz": "ALL: -c? --stdout? -t? --test? -S:",
    "zstd": "ALL: -c? --stdout? -l? --list? -t? --test? -o> -D< -T:",
    "dos2unix": "ALL:",
    "unix2dos": "ALL:",
    "strip": "ALL: -o> -K: -N: -R:",
    "vi": "ALL: -c$ -S< -u< -w> -W> --cmd$",
    "vim": "ALL: -c$ -S< -u< -w> -W> --cmd$",
    "nvim": "ALL: -c$ -S< -u< -w> -W> --cmd$",
    "ex": "ALL: -c$ -S< -u< -w> -W> --cmd$",
    "ed": "ALL: -p:",
    "nano": "ALL:",
    "emacs": "ALL: --eval$ --execute$ -f: -l< --load<",
    # --- writing files named by options
    "sort": "NONE: -o> --output> -T> --temporary-directory> -k: -t: -S: --key: --field-separator: --parallel: "
    "--compress-program$",
    "shuf": "NONE: -o> --output> -i: -n: -e:",
    "tree": "NONE: -o> -L: -I: -P:",
    "iconv": "NONE: -o> --output> -f: -t:",
    "uniq": "SECOND: -f: -s: -w:",
    "xxd": "SECOND: -c: -g: -l: -o: -s:",
    "split": "SECOND: -a: -b: -C: -l: -n: --suffix-length: --bytes: --line-bytes: --lines: --number: --filter$",
    "csplit": "NONE: -f> --prefix> -b: -n:",
    "zip": "FIRST: -b> -i: -x: -n: -t: -P:",
    "curl": "NONE: -o> --output> -D> --dump-header> -c> --cookie-jar> --trace> --trace-ascii> --stderr> --output-dir* "
    "--hsts> --alt-svc> --etag-save> --libcurl> -H: -X: -d: -F: -A: -e: -u: -b: -T< -K< -x: -m: -w: --data: --header: "
    "--request: --user: --url: --form: --cookie: --user-agent: --referer: --config< --upload-file< --etag-compare<",
    "wget": "NONE: -O> --output-document> -o> --output-file> -a> --append-output> -P* --directory-prefix* -i< -e$ -U: "
    "--save-cookies> --hsts-file> --warc-file> --warc-tempdir> --rejected-log> --use-askpass$ --load-cookies< "
    "--input-file< --execute$ --header: --user-agent: --post-data: --post-file<",
    "aria2c": "NONE: -d* --dir* -o> --out> -l> --log> --save-session> --on-download-complete$ -i<",
    "gcc": "NONE: -o> -I: -L: -l: -D: -x: -include<",
    "g++": "NONE: -o> -I: -L: -l: -D: -x: -include<",
    "cc": "NONE: -o> -I: -L: -l: -D: -x:",
    "clang": "NONE: -o> -I: -L: -l: -D: -x:",
    "ld": "NONE: -o> -L: -l: -T<",
    "openssl": "NONE: -out> -in< -keyout> -config<",
    "gpg": "NONE: -o> --output> -r: -u: --recipient: --homedir@",
    "ssh-keygen": "NONE: -f> -t: -b: -C: -N: -P:",
    "pandoc": "NONE: -o> --output> -f: -t: --from: --to:",
    "xmllint": "NONE: --output> -o>",
    # --- running another command, and writing
    "strace": "NONE: -o> --output> -e: -p: -s:",
    "ltrace": "NONE: -o> --output> -e: -p: -s:",
    "script": "ALL: -c$ -I> -O> -B> -T> -E: -o: -m: --log-in> --log-out> --log-io> --log-timing> --command$",
    "flock": "FIRST: -w: -E: --timeout: --conflict-exit-code:",
    "time": "NONE: -o> --output> -f: --format:",
    "valgrind": "NONE: --log-file> --xml-file>",
    # --- archives; the second word is the mode
    "tar create": "NONE: -f> -g> -C< -T< -X< -I$ -F$ -b: -H: -K: -L: -N: -V: --file> --listed-incremental> "
    f"--index-file> {_TAR}",
    "tar extract": "NONE: -C> -f< -g< -T< -X< -I$ -F$ -b: -H: -K: -L: -N: -V: --directory> --file< "
    f"--listed-incremental< --index-file> {_TAR}",
    # --- git
    "git apply": "NONE: --directory*",
    "git am": "NONE: --directory*",
    "git archive": "NONE: -o> --output> --exec$ --remote: --format: --prefix:",
    "git bundle create": "FIRST:",
    "git bugreport": "NONE: -o> --output-directory>",
    "git checkout": "ALL: -b: -B: --orphan: --pathspec-from-file<",
    "git checkout-index": "ALL: --prefix>",
    "git clean": "ALL: -e: --exclude:",
    "git clone": "SECOND: --separate-git-dir> -b: -c: -j: -o: -u$ --branch: --config: --depth: --origin: --template< "
    "--reference< --upload-pack$",
    "git config": "NONE: -f> --file>",
    "git diagnose": "NONE: -o> --output-directory>",
    "git diff": "NONE: --output>",
    "git difftool": "NONE: -x$ --extcmd$",
    "git fast-export": "NONE: --export-marks>",
    "git fast-import": "NONE: --export-marks> --export-pack-edges>",
    "git fetch": "NONE: --upload-pack$",
    "git filter-branch": "NONE: -d> --setup$ --env-filter$ --tree-filter$ --index-filter$ --parent-filter$ "
    "--msg-filter$ --commit-filter$ --tag-name-filter$",
    "git format-patch": "NONE: -o> --output-directory> --output>",
    "git grep": "NONE: -O$ --open-files-in-pager$",
    "git init": "FIRST: --separate-git-dir> -b: --template<",
    "git log": "NONE: --output>",
    "git mailinfo": "ALL:",
    "git mailsplit": "NONE: -o>",
    "git merge-file": "FIRST:",
    "git mv": "ALL:",
    "git pull": "NONE: --upload-pack$",
    "git push": "NONE: --exec$ --receive-pack$",
    "git read-tree": "NONE: --prefix> --index-output>",
    "git rebase": "NONE: -x$ --exec$",
    "git restore": "ALL: -s: --source: --pathspec-from-file<",
    "git rm": "ALL: --cached?",
    "git show": "NONE: --output>",
    "git submodule add": "SECOND: -b: --name: --reference<",
    "git worktree add": "FIRST: -b: -B: --reason:",
    "git worktree move": "ALL:",
    "git worktree remove": "ALL:",
}
"""Entries by command. `subcommand_effects` handles commands that need more than an entry."""

PLAIN_FLAGS = names(
    "--all --append --archive --backup --bzip2 --compress --compressed --create --debug --decode --delete "
    "--dereference --directory --dry-run --exact --extract --fail --fail-with-body --force --get --globoff --gzip "
    "--head --human-readable --insecure --interactive --itemize-changes --keep --keep-old-files --links --list "
    "--location --lzma --make-directories --no-clobber --no-dereference --no-directories --no-host-directories "
    "--no-parent --no-preserve-root --no-recursion --no-target-directory --null --one-file-system --ours --overlay "
    "--overwrite --parents --partial --patch --perms --preserve --preserve-permissions --progress --quiet "
    "--recursive --reflink --relative --remote-name --remote-name-all --remove-source-files --show-error --silent "
    "--sparse --staged --stats --stdout --symbolic --theirs --times --timestamping --totals --update --verbose "
    "--worktree --xz --zstd"
)
"""Options without a value, of all writers."""
EDITS_IN_PLACE = names("sed perl ruby")
"""Commands whose option `-i` may have a suffix attached."""


@dataclass(frozen=True, slots=True)
class Writer:
    """A parsed entry."""

    role: Role
    values: dict[str, OptionValue] = field(default_factory=dict[str, OptionValue])
    needed: frozenset[str] = frozenset()
    """Options one of which is needed for a change; empty if none is."""
    preventing: frozenset[str] = frozenset()
    """Options that prevent a change."""
    whole: frozenset[str] = frozenset()
    """Options that extend the change to everything below a directory."""

    @property
    def options(self) -> frozenset[str]:
        """Every option of the entry."""
        return self.needed | self.preventing | self.whole | self.values.keys()


@cache
def writer(name: str) -> Writer | None:
    """Return the entry of a command, or None."""
    entry = WRITERS.get(name)
    if entry is None:
        return None
    role, _, written = entry.partition(":")
    values: dict[str, OptionValue] = {}
    marked: dict[str, set[str]] = {"!": set(), "?": set(), "&": set()}
    for token in written.split():
        option, mark = token[:-1], token[-1]
        if mark in marked:
            marked[mark].add(option)
        else:
            values[option] = _VALUES[mark]
    return Writer(_ROLES[role], values, frozenset(marked["!"]), frozenset(marked["?"]), frozenset(marked["&"]))


_VALUES: dict[str, OptionValue] = {":": "text", "<": "read", ">": "write", "*": "into", "@": "directory", "$": "code"}
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}
