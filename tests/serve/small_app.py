"""A program that speaks the protocol of Textual's web driver, and starts at once: the app behind the tests' pages.

What it does depends on its first argument:

- `echo`: shows what is typed, and each message of the server; ends when the server wants it to quit;
- `deaf`: ignores every wish to end, and has started a process in a session of its own;
- `broken`: writes to standard error and ends with code 3;
- `torn`: writes half a packet and ends;
- `flood`: writes until it gets a message, and ends.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time


def packet(kind: bytes, data: bytes) -> None:
    sys.stdout.buffer.write(kind + len(data).to_bytes(4, "big") + data)
    sys.stdout.buffer.flush()


def begin() -> None:
    sys.stdout.buffer.write(b"__GANGLION__\n")
    packet(b"D", f"begun {os.getpid()} ".encode())


def received() -> tuple[bytes, bytes]:
    kind = sys.stdin.buffer.read(1)
    return kind, sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))


def echo() -> None:
    begin()
    while True:
        kind, data = received()
        if not kind or (kind == b"M" and json.loads(data)["type"] == "quit"):
            break
        packet(b"D", data)
    packet(b"M", json.dumps({"type": "exit"}).encode())


def main() -> None:
    kind = sys.argv[1]
    if kind == "deaf":
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
        begin()
        packet(b"D", f"child {child.pid} ".encode())
        while True:
            time.sleep(1000)
    elif kind == "broken":
        sys.stderr.write("no key is set\x1b[31m\n")
        sys.exit(3)
    elif kind == "torn":
        begin()
        sys.stdout.buffer.write(b"D\0\0\0\x09half")
    elif kind == "flood":
        begin()
        received()  # The size.
        while not select.select([sys.stdin], [], [], 0)[0]:
            packet(b"D", b"x" * 100_000)
    else:
        echo()


main()
