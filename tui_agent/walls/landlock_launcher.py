"""Program that confines itself by Landlock and seccomp and becomes another one, where namespaces are refused.

Run it as `python -I -S landlock_launcher.py RULES STATUS COMMAND…`. RULES is a JSON file with the paths to `read`,
`list`, `write` and `devices`, the working `directory`, whether there is a `network`, and the most bytes of a file
(`size`). It writes to the
descriptor STATUS before it becomes the command. It imports nothing of the package, so that it starts fast.

The command writes nowhere but in the named directories, reads nothing but the named paths, has no capabilities, and
reaches no process outside. Landlock alone does not restrict changes of modes, times and attributes, sockets that have a
path, or limits of other processes: seccomp refuses the system calls for them.
"""

import ctypes
import errno
import json
import os
import platform
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

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Number of the architecture, and its column in the table below."""
_REFUSED = {
    errno.EROFS: (
        # chmod, fchmod, fchmodat, fchmodat2, chown, fchown, lchown, fchownat
        (90, -1), (91, 52), (268, 53), (452, 452), (92, -1), (93, 55), (94, -1), (260, 54),
        # setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr, setxattrat, removexattrat
        (188, 5), (189, 6), (190, 7), (197, 14), (198, 15), (199, 16), (463, 463), (466, 466),
        # utime, utimes, futimesat, utimensat, file_setattr
        (132, -1), (235, -1), (261, -1), (280, 88), (469, 469),
    ),
    errno.EPERM: (
        # io_uring_setup, ptrace, process_vm_readv, process_vm_writev, pidfd_getfd, process_madvise, kcmp
        (425, 425), (101, 117), (310, 270), (311, 271), (438, 438), (440, 440), (312, 272),
        # add_key, request_key, keyctl, bpf, perf_event_open, userfaultfd, move_pages, migrate_pages
        (248, 217), (249, 218), (250, 219), (321, 280), (298, 241), (323, 282), (279, 239), (256, 238),
        # shmget, shmat, msgget, semget, mq_open, mq_unlink
        (29, 194), (30, 196), (68, 186), (64, 190), (240, 180), (241, 181),
    ),
}  # fmt: skip
"""System calls that are refused, by the error: their numbers on x86-64 and ARM-64."""
_OF_ITSELF = (
    # prlimit64, sched_setaffinity, sched_setscheduler, sched_setparam, sched_setattr; setpriority, ioprio_set
    (302, 261, 0), (203, 122, 0), (144, 119, 0), (142, 118, 0), (314, 274, 0), (141, 140, 1), (251, 30, 1),
)  # fmt: skip
"""System calls that may only mean the caller, and the argument that then is 0."""
_SOCKET = (41, 198)
_NETWORKS = (2, 10, 16)
"""Families of sockets: IPv4, IPv6, and the kernel's."""
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000


def main() -> None:
    """Confine this process, and become the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(sys.argv[1], encoding="utf-8") as file:
        rules = json.load(file)
    status = int(sys.argv[2])
    os.chdir(rules["directory"])
    _set_limits(rules["size"])
    _check(libc, libc.prctl(38, 1, 0, 0, 0), "no new privileges")
    _restrict_files(libc, rules)
    _drop_capabilities(libc)
    _restrict_calls(libc, network=rules["network"])
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


def _restrict_calls(libc: ctypes.CDLL, *, network: bool) -> None:
    architecture, column = _ARCHITECTURES[platform.machine()]
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _FAIL | errno.ENOSYS), (_LOAD, 0, 0, 0)]
    if column == 0:
        program += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    for error, calls in _REFUSED.items():
        for number in (call[column] for call in calls if call[column] >= 0):
            program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | error)]
    for *numbers, argument in _OF_ITSELF:
        refused = (_RETURN, 0, 0, _FAIL | errno.EPERM)
        program += [(_EQUAL, 0, 4, numbers[column]), (_LOAD, 0, 0, 16 + 8 * argument), (_EQUAL, 1, 0, 0), refused]
        program += [(_RETURN, 0, 0, _ALLOW)]
    families = _NETWORKS if network else ()
    checks = [(_EQUAL, len(families) - place, 0, family) for place, family in enumerate(families)]
    refused = (_RETURN, 0, 0, _FAIL | errno.ENETUNREACH)
    program += [(_EQUAL, 0, 2 + len(checks), _SOCKET[column]), (_LOAD, 0, 0, 16), *checks, refused]
    program += [(_RETURN, 0, 0, _ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    filter_program = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    _check(libc, libc.prctl(22, 2, filter_program, 0, 0), "seccomp")


def _check(libc: ctypes.CDLL, result: int, what: str) -> int:
    if result < 0:
        raise SystemExit(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def landlock_abi() -> int:
    """Return the version of Landlock that the kernel offers; 0: none, or not on this kind of machine."""
    if sys.platform != "linux" or platform.machine() not in _ARCHITECTURES:
        return 0
    return max(0, ctypes.CDLL(None, use_errno=True).syscall(_CREATE, None, 0, 1))


if __name__ == "__main__":
    main()
