"""Daemons that escape from the command that starts them in every way, so that only the lasting mark identifies them."""

import shlex
import sys
from pathlib import Path

import psutil

_WROTE = "echo $$ > {name}.tmp; /bin/mv {name}.tmp {name}.pid"
_LOOP = "while :; do read -t 60 < <(:) || /bin/sleep 0.05; done"
_RENAMED = (
    "import ctypes, os, time; ctypes.CDLL(None).prctl(15, b'systemd', 0, 0, 0); "
    "open('{name}.tmp', 'w').write(f'{{os.getpid()}}\\n'); os.rename('{name}.tmp', '{name}.pid'); time.sleep(600)"
)

DAEMONS = {
    "plain": f"{_WROTE}; {_LOOP}",
    "another title": f"{_WROTE}; exec -a '[kworker/0:1]' /bin/sleep 600",
    "another name": f'exec {sys.executable} -I -S -c "{_RENAMED}"',
    "closed descriptors": f"exec 0<&- 1>&- 2>&-; {_WROTE}; {_LOOP}",
    "ignores every signal": f"trap '' TERM HUP INT; {_WROTE}; {_LOOP}",
    "stopped": f"{_WROTE}; kill -STOP $$; {_LOOP}",
    "nohup": f"{_WROTE}; exec /usr/bin/nohup /bin/sleep 600 >/dev/null 2>&1",
}
"""Name of each way to escape → script."""


def daemon(root: Path, kind: str = "plain", name: str = "daemon") -> str:
    """Write a daemon's script to `root` and return a command that starts it in a new session, without environment and
    parents. It writes its id to `NAME.pid`."""
    script = root / f"{name}.sh"
    script.write_text(DAEMONS[kind].format(name=name) + "\n", "utf-8")
    again = f"(setsid env -i /bin/bash {script.name} >/dev/null 2>&1 </dev/null &)"
    return f"(setsid env -i /bin/bash -c {shlex.quote(again)} &)"


def until_there(name: str = "daemon") -> str:
    """Return a command that waits until the daemon runs."""
    return f"until [ -s {name}.pid ]; do sleep 0.01; done"


def pid_of(root: Path, name: str = "daemon") -> int:
    """Return the daemon's id."""
    return int((root / f"{name}.pid").read_text())


def living_in(root: Path) -> list[int]:
    """Return the processes whose working directory is `root`, whatever their names and parents."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(root) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
