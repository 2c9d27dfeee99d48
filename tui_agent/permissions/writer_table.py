"""Commands that change files, and where in their words the files stand.

One entry a command: `ROLE: options`. What is not in an entry counts as a flag, and its value (if it had one) as one
more file: too many files are found rather than too few. Roles:

    ALL     every operand is changed
    FIRST   the first operand is changed
    SECOND  the second operand is changed
    LAST    the last operand is changed; if it is a directory, what the other operands are called in it
    MOVE    the same, and the other operands are changed, too
    NONE    only what options name

Behind an option: `:` its value is only text; `<` it is read; `>` it is changed; `*` it is the directory that things
go into; `@` it is the directory that the command runs in. `!` marks an option without which nothing is changed; `?` one
with which nothing is changed; `&` one that makes the change reach everything below a directory.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Literal, get_args

from .shell_syntax import names

Role = Literal["ALL", "FIRST", "SECOND", "LAST", "MOVE", "NONE"]
OptionValue = Literal["", "text", "read", "write", "into", "directory"]

WRITERS: dict[str, str] = {
    # --- removing
    "rm": "ALL: -r& -R& --recursive&",
    "rmdir": "ALL:",
    "unlink": "ALL:",
    "shred": "ALL: -n: -s: --iterations: --size: --random-source<",
    "trash": "ALL:",
    # --- making
    "touch": "ALL: -d: -t: -r< --date: --time: --reference<",
    "truncate": "ALL: -s: -r< --size: --reference<",
    "mkdir": "ALL: -m: --mode:",
    "mkfifo": "ALL: -m: --mode:",
    "mknod": "FIRST: -m: --mode:",
    "mktemp": "ALL: -p> --tmpdir> --suffix:",
    "tee": "ALL:",
    "fallocate": "ALL: -l: -o: --length: --offset:",
    # --- marking
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
    "install": "LAST: -t* --target-directory* -g: -m: -o: -S: --group: --mode: --owner: --suffix: --strip-program:",
    "rsync": "LAST: -e: -f: -B: -M: -T> --rsh: --rsync-path: --exclude: --include: --filter: --exclude-from< "
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
    "vi": "ALL: -c: -S< -u< --cmd:",
    "vim": "ALL: -c: -S< -u< --cmd:",
    "nvim": "ALL: -c: -S< -u< --cmd:",
    "ex": "ALL: -c: -S< -u< --cmd:",
    "ed": "ALL: -p:",
    "nano": "ALL:",
    "emacs": "ALL: --eval: -l< --load<",
    # --- writing what an option names
    "sort": "NONE: -o> --output> -T> --temporary-directory> -k: -t: -S: --key: --field-separator: --parallel:",
    "shuf": "NONE: -o> --output> -i: -n: -e:",
    "tree": "NONE: -o> -L: -I: -P:",
    "iconv": "NONE: -o> --output> -f: -t:",
    "uniq": "SECOND: -f: -s: -w:",
    "xxd": "SECOND: -c: -g: -l: -o: -s:",
    "split": "SECOND: -a: -b: -C: -l: -n: --suffix-length: --bytes: --line-bytes: --lines: --number: --filter:",
    "csplit": "NONE: -f> --prefix> -b: -n:",
    "zip": "FIRST: -b> -i: -x: -n: -t: -P:",
    "curl": "NONE: -o> --output> -D> --dump-header> -c> --cookie-jar> --trace> --trace-ascii> --stderr> --output-dir* "
    "-H: -X: -d: -F: -A: -e: -u: -b: -T< -K< -x: -m: -w: --data: --header: --request: --user: --url:",
    "wget": "NONE: -O> --output-document> -o> --output-file> -a> --append-output> -P* --directory-prefix* -i< -e: -U: "
    "--header: --user-agent: --post-data:",
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
    "strace": "NONE: -o> --output> -e: -p: -s:",
}
"""What each command changes. Commands that need more than a line are read in `shell_effects`."""

EDITS_IN_PLACE = names("sed perl ruby")
"""Their option `-i` may carry a suffix."""


@dataclass(frozen=True, slots=True)
class Writer:
    """One entry, taken apart."""

    role: Role
    values: dict[str, OptionValue] = field(default_factory=dict[str, OptionValue])
    needed: frozenset[str] = frozenset()
    """Nothing is changed without one of these; empty: always."""
    preventing: frozenset[str] = frozenset()
    """Nothing is changed with one of these."""
    whole: frozenset[str] = frozenset()
    """With one of these the change reaches everything below a directory."""


@cache
def writer(name: str) -> Writer | None:
    """The entry of a command."""
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


_VALUES: dict[str, OptionValue] = {":": "text", "<": "read", ">": "write", "*": "into", "@": "directory"}
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}
