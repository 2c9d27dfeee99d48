"""Program that keeps changing a workspace to mislead tools: it moves names, and replaces directories by links out of
the workspace or into protected directories, permanently or for a moment.

Run it as `file_vandal.py WORKSPACE SEED`; it prints `ready`, and ends with its input. It changes only files it reaches
without following a link, so every other change is the fault of a tool.
"""

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

NAMES = ("a", "b", "c", "f", "g")
TARGETS = ("../outside", "outside", ".git", "node_modules/x", "../state", "a", "b", "f", ".husky", "loop")
PROTECTED_FILES = (".git/config", "node_modules/x/f")


def main(workspace: str, seed: str) -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    os.chdir(workspace)
    chance = random.Random(seed)
    print("ready", flush=True)
    while not over.is_set():
        with suppress(OSError):
            vandalise(chance)


def vandalise(chance: random.Random) -> None:
    """Make one change."""
    here, there = (hold(chance) for _ in range(2))
    try:
        name, other = chance.choice(NAMES), chance.choice(NAMES)
        changes: tuple[tuple[int, Callable[[], object]], ...] = (
            (12, lambda: flip(chance, name, here)),
            (2, lambda: replace_by_link(chance, name, here)),
            (4, lambda: os.mkdir(name, dir_fd=here)),
            (8, lambda: write(name, here)),
            (1, lambda: os.rename(name, other, src_dir_fd=here, dst_dir_fd=there)),
            (1, lambda: os.rename(name, f"old{chance.randrange(5)}", src_dir_fd=here, dst_dir_fd=here)),
            (2, lambda: os.unlink(name, dir_fd=here)),
            (1, lambda: os.rmdir(name, dir_fd=here)),
            (1, lambda: os.link(chance.choice(PROTECTED_FILES), name, dst_dir_fd=here)),
        )
        weights, choices = zip(*changes, strict=True)
        chance.choices(choices, weights)[0]()
    finally:
        os.close(here)
        os.close(there)


def hold(chance: random.Random) -> int:
    """Open one of the directories that are really in the workspace."""
    held = os.open(".", os.O_PATH | os.O_DIRECTORY)
    for _ in range(chance.randrange(3)):
        try:
            deeper = os.open(chance.choice(NAMES[:3]), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=held)
        except OSError:
            break
        os.close(held)
        held = deeper
    return held


def flip(chance: random.Random, name: str, directory: int) -> None:
    """Replace a name by a link for a moment."""
    os.rename(name, "aside", src_dir_fd=directory, dst_dir_fd=directory)
    os.symlink(chance.choice(TARGETS), name, dir_fd=directory)
    time.sleep(chance.choice((0, 0.0002, 0.002)))
    os.unlink(name, dir_fd=directory)
    os.rename("aside", name, src_dir_fd=directory, dst_dir_fd=directory)


def replace_by_link(chance: random.Random, name: str, directory: int) -> None:
    """Replace a name by a link."""
    os.symlink(chance.choice(TARGETS), "link", dir_fd=directory)
    try:
        os.rename("link", name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.rename(name, f"old{chance.randrange(50)}", src_dir_fd=directory, dst_dir_fd=directory)
        os.rename("link", name, src_dir_fd=directory, dst_dir_fd=directory)


def write(name: str, directory: int) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, dir_fd=directory)
    os.write(descriptor, b"line one\nline two\n")
    os.close(descriptor)


if __name__ == "__main__":
    main(*sys.argv[1:])
