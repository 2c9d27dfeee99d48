"""Program that confines itself by Landlock and seccomp and becomes another one, where namespaces are refused.

Run it as `python -I -S landlock_launcher.py RULES STATUS COMMAND…`. RULES is a JSON file with the paths to `read`,
`list`, `write` and `devices`, the working `directory`, whether there is a `network`, the most bytes of a file (`size`),
and the `filter` of system calls, as hexadecimal digits. It writes to the descriptor STATUS before it becomes the
command. It imports nothing of the package, so that it starts fast.

The command writes nowhere but in the named directories, reads nothing but the named paths, has no capabilities, and
reaches no process outside. Landlock alone does not restrict changes of modes, times and attributes, sockets that have a
path, or limits of other processes: seccomp refuses the system calls for them.
"""

import ctypes
import json
import os
import resource
import stat
import struct
import sys

LEAST_ABI = 6
"""Version of Landlock that keeps signals and abstract sockets inside: Linux 6.12."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE, _IOCTL = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_EVERYTHING = (1 << 16) - 1
_DEVICES = 1 << 6 | 1 << 11
"""Rights to create devices."""
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL


def main() -> None:
    """Confine this process, and become the command; never returns.

    Raises:
        OSError: a file cannot be read, or the command cannot be started.
        SystemExit: the kernel refuses a part of the walls.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with open(sys.argv[1], encoding="utf-8") as file:
        rules = json.load(file)
    status = int(sys.argv[2])
    os.chdir(rules["directory"])
    _set_limits(rules["size"])
    _check(libc, libc.prctl(38, 1, 0, 0, 0), "no new privileges")
    _restrict_files(libc, rules)
    _drop_capabilities(libc)
    _restrict_calls(libc, rules["filter"])
    os.write(status, b'{"child-pid": %d, "started": true}\n' % os.getpid())
    os.close(status)
    os.execvp(sys.argv[3], sys.argv[3:])


def _set_limits(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    most = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _restrict_files(libc: ctypes.CDLL, rules: "dict[str, list[str]]") -> None:
    attributes = struct.pack("QQQ", _EVERYTHING, 0 if rules["network"] else 3, 3)
    ruleset = _check(libc, libc.syscall(_CREATE, attributes, len(attributes), 0), "Landlock")
    rights = {"read": _READ | _EXECUTE | _LIST, "list": _LIST, "write": _EVERYTHING & ~_DEVICES & ~_IOCTL,
              "devices": _READ | _WRITE | _IOCTL | _TRUNCATE}  # fmt: skip
    for kind, allowed in rights.items():
        for path in rules[kind]:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            mine = allowed if stat.S_ISDIR(os.fstat(place).st_mode) else allowed & _OF_FILES
            if mine:
                _check(libc, libc.syscall(_ADD, ruleset, 1, struct.pack("=Qi", mine, place), 0), path)
            os.close(place)
    _check(libc, libc.syscall(_RESTRICT, ruleset, 0), "Landlock")
    os.close(ruleset)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drop all, also from what a program of root would get back."""
    for number in range(64):
        libc.prctl(24, number, 0, 0, 0)
    libc.prctl(47, 4, 0, 0, 0)
    _check(libc, libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)), "capabilities")


def _restrict_calls(libc: ctypes.CDLL, text: str) -> None:
    lines = bytes.fromhex(text)
    code = ctypes.create_string_buffer(lines)
    program = struct.pack("HxxxxxxP", len(lines) // 8, ctypes.addressof(code))
    _check(libc, libc.prctl(22, 2, program, 0, 0), "seccomp")


def _check(libc: ctypes.CDLL, result: int, what: str) -> int:
    if result < 0:
        raise SystemExit(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def landlock_abi() -> int:
    """Return the version of Landlock that the kernel offers; 0: none."""
    if sys.platform != "linux":
        return 0
    return max(0, ctypes.CDLL(None, use_errno=True).syscall(_CREATE, None, 0, 1))


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        # In one line: it is shown as the reason why these walls do not work.
        raise SystemExit(str(error)) from None
