"""Filters of system calls, as seccomp takes them, for ways out that neither namespaces nor Landlock close."""

import errno
import platform
import struct
import sys
from collections.abc import Iterable

_ARCHITECTURES = {"x86_64": 0, "aarch64": 1}
"""Columns of the tables below, by the machine."""
_NUMBERS = (0xC000003E, 0xC00000B7, 0x40000003, 0x40000028)
"""Numbers of the architectures, in the order of the tables' columns: x86-64, ARM-64, and their 32-bit forms."""
_KEYS = ((248, 217, 286, 309), (249, 218, 287, 310), (250, 219, 288, 311))
"""add_key, request_key, keyctl: a command has its parent's session keyring, which belongs to no namespace."""
_IOCTL = (16, 29, 54, 54)
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type into the terminal."""

_READ_ONLY = (
    # chmod, fchmod, fchmodat, fchmodat2, chown, fchown, lchown, fchownat
    (90, -1), (91, 52), (268, 53), (452, 452), (92, -1), (93, 55), (94, -1), (260, 54),
    # setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr, setxattrat, removexattrat
    (188, 5), (189, 6), (190, 7), (197, 14), (198, 15), (199, 16), (463, 463), (466, 466),
    # utime, utimes, futimesat, utimensat, file_setattr
    (132, -1), (235, -1), (261, -1), (280, 88), (469, 469),
)  # fmt: skip
"""System calls that change a file without writing to it, which Landlock does not restrict."""
_OTHERS = (
    # io_uring_setup, ptrace, process_vm_readv, process_vm_writev, pidfd_getfd, process_madvise, kcmp
    (425, 425), (101, 117), (310, 270), (311, 271), (438, 438), (440, 440), (312, 272),
    # bpf, perf_event_open, userfaultfd, move_pages, migrate_pages
    (321, 280), (298, 241), (323, 282), (279, 239), (256, 238),
    # shmget, shmat, shmctl, msgget, semget, mq_open, mq_unlink
    (29, 194), (30, 196), (31, 195), (68, 186), (64, 190), (240, 180), (241, 181),
)  # fmt: skip
"""System calls that reach other processes, or open something that another filter would have to look into."""
_OF_ITSELF = (
    # prlimit64, sched_setaffinity, sched_setscheduler, sched_setparam, sched_setattr
    (302, 261, 0), (203, 122, 0), (144, 119, 0), (142, 118, 0), (314, 274, 0),
    # setpriority and ioprio_set: first for one process, then the caller
    (141, 140, 0), (141, 140, 1), (251, 30, 1),
)  # fmt: skip
"""System calls that may only mean the caller, and the argument that then is 0."""
_SOCKET = (41, 198)
_NETWORKS = (2, 10, 16)
"""Families of sockets: IPv4, IPv6, and the kernel's."""
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16

Line = tuple[int, int, int, int]


def is_known_machine() -> bool:
    """Return True if the numbers of system calls are known here."""
    return sys.platform == "linux" and platform.machine() in _ARCHITECTURES


def filter_for_namespaces() -> bytes:
    """Return the filter for a command in namespaces of its own: keyrings, and input to the terminal."""
    program: list[Line] = []
    for column, machine in enumerate(_NUMBERS):
        checks = [line for numbers in _KEYS for line in _refused(numbers[column], errno.EPERM)]
        checks += _no_terminal_input(column)
        program += [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 0, len(checks) + 2, machine), (_LOAD, 0, 0, _NUMBER), *checks]
        program += [(_RETURN, 0, 0, _ALLOW)]
    return _packed([*program, (_RETURN, 0, 0, _FAIL | errno.ENOSYS)])


def filter_without_namespaces(*, network: bool) -> bytes:
    """Return the filter for a command under Landlock; only where `is_known_machine` is True.

    Args:
        network: True if the command may open sockets of IPv4 and IPv6.
    """
    column = _ARCHITECTURES[platform.machine()]
    program: list[Line] = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, _NUMBERS[column])]
    program += [(_RETURN, 0, 0, _FAIL | errno.ENOSYS), (_LOAD, 0, 0, _NUMBER)]
    if column == 0:
        program += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    for error, calls in ((errno.EROFS, _READ_ONLY), (errno.EPERM, (*_OTHERS, *_KEYS))):
        for numbers in calls:
            program += _refused(numbers[column], error)
    program += _no_terminal_input(column)
    for *numbers, argument in _OF_ITSELF:
        program += _refused_unless(numbers[column], argument, (0,), errno.EPERM)
    program += _refused_unless(_SOCKET[column], 0, _NETWORKS if network else (), errno.ENETUNREACH)
    return _packed([*program, (_RETURN, 0, 0, _ALLOW)])


def _refused(number: int, error: int) -> list[Line]:
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | error)] if number >= 0 else []


def _refused_unless(number: int, argument: int, allowed: tuple[int, ...], error: int) -> list[Line]:
    """Refuse a call unless an argument has one of the values; for other calls the next line decides."""
    checks = [(_EQUAL, len(allowed) - place, 0, value) for place, value in enumerate(allowed)]
    refused = [(_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument), *checks, (_RETURN, 0, 0, _FAIL | error)]
    return [(_EQUAL, 0, len(refused) + 1, number), *refused, (_LOAD, 0, 0, _NUMBER)]


def _no_terminal_input(column: int) -> list[Line]:
    argument = (_LOAD, 0, 0, _FIRST_ARGUMENT + 8)
    checks = [line for request in _TERMINAL_INPUT for line in _refused(request, errno.EPERM)]
    return [(_EQUAL, 0, len(checks) + 2, _IOCTL[column]), argument, *checks, (_LOAD, 0, 0, _NUMBER)]


def _packed(program: Iterable[Line]) -> bytes:
    return b"".join(struct.pack("HBBI", *line) for line in program)
