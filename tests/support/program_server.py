"""Fork server for the installed program: most of the CPU time of a start is that of its imports.

Run as a script: it imports what the program imports, then forks for each request that comes through standard input, a
Unix socket. A request is JSON (arguments, environment, directory, module, and whether standard input becomes the
controlling terminal) with four descriptors: the three standard streams, and a socket for the process id and the exit
status.
"""

import gc
import importlib
import json
import os
import runpy
import socket
import sys

# In the order of a start, the entry point first.
PRELOADED = (
    "tui_agent.__main__",
    "tui_agent.cli.command_line",
    "tui_agent.cli.screen_entry",
    "tui_agent.ui.app.app_start",
    "tui_agent.workbench.workbench",
    "tui_agent.headless",
    "tui_agent.providers.anthropic_sdk",
    "tui_agent.providers.demo.demo_server",
    "anyio._backends._asyncio",
    "httpcore2",
)
LONGEST_REQUEST = 1 << 17
HIGHEST_DESCRIPTOR = 64
"""Number above all descriptors of the server."""


def serve() -> str:
    """Fork for each request, until the tests have ended; return in each forked program the module that it runs."""
    requests = socket.socket(fileno=os.dup(0))
    running: set[int] = set()
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, 4)
        running -= {pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]}
        if not request:
            os._exit(0)
        keeper = os.fork()
        if keeper == 0:
            if keep(descriptors):
                requests.detach()
                return become(json.loads(request), descriptors)
            os._exit(0)
        running.add(keeper)
        for descriptor in descriptors:
            os.close(descriptor)


def keep(descriptors: list[int]) -> bool:
    """Fork the program, and report its process id and then its status; return True in the program."""
    program = os.fork()
    if program == 0:
        return True
    with socket.socket(fileno=descriptors[3]) as answer:
        # Otherwise the reader of a pipe would wait for this process, too.
        os.closerange(0, 3)
        for descriptor in descriptors[:3]:
            os.close(descriptor)
        answer.sendall(f"{program}\n".encode())
        _, status = os.waitpid(program, 0)
        answer.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    return False


def become(request: dict[str, object], descriptors: list[int]) -> str:
    """Make this process one that was started with the request's arguments, environment, directory and streams.

    Return the module that it runs, from that directory; empty for the installed program.
    """
    terminal = request["terminal"]
    if terminal:
        os.setsid()
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    os.closerange(3, HIGHEST_DESCRIPTOR)
    if terminal:
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = list(request["arguments"])
    sys.path[1:1] = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        old = getattr(sys, name)
        # As the interpreter does it: lines on a terminal, and always those of errors.
        lines = number == 2 or (number == 1 and os.isatty(1))
        new = open(  # noqa: SIM115
            number, mode, encoding=old.encoding, errors=old.errors, closefd=False, buffering=1 if lines else -1
        )
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    module = str(request["module"])
    if module:
        sys.path[0] = os.getcwd()
    return module


if __name__ == "__main__":
    # Instead of the directory of this file, whose modules do not belong to the program.
    sys.path[0] = os.path.dirname(sys.executable)
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    if module := serve():
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        from tui_agent.__main__ import main

        main()
