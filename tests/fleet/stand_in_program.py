"""A small program in place of the headless one: prints the events of a run that changes files, without a model.

The first line of its input names the bytes to write, or `hang`, or `tell BYTES` for the size of an event.
"""

import itertools
import json
import os
import sys
from pathlib import Path

NUMBERS = itertools.count(1)


def tell(kind: str, **data: object) -> None:
    head = {"v": 1, "seq": next(NUMBERS), "ts": 1, "mono": 0.0, "session_id": "unit", "run_id": "r", "agent_id": "main"}
    place = {"parent_call_id": None, "depth": 0, "turn": None, "step": None}
    print(json.dumps({**head, **place, "type": kind, "data": data}, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    words = json.loads(sys.stdin.readline())["text"]
    tell("run.started", input=words)
    tell("tool.started", call_id="c1", name="read", read_only=True)
    tell("tool.ended", call_id="c1", name="read")
    tell("tool.started", call_id="c2", name="bash", read_only=False)
    if words.startswith("tell "):
        tell("message.ended", text="x" * int(words[5:]))
        words = "10"
    if words == "hang":
        sys.stdin.read()
    Path("made.bin").write_bytes(os.urandom(int(words)))
    tell("tool.ended", call_id="c2", name="bash")
    tell("run.ended", reason="done", final_text="Done.")
    assert sys.stdin.read() == "", "input ends after the run"
    Path("late.txt").write_text("after the last call\n")
