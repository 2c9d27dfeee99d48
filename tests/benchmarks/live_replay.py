"""Records a live tour and compares its replay with the screen: `python -m tests.benchmarks.live_replay`.

Only run by hand: for a run on a busy machine, the replay once took minutes instead of seconds, for an unknown reason.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.ui.test_replay import Taken, recordings, text_at
from tui_agent.recording import read_recording
from tui_agent.ui.replay.replay_stage import Stage


def main(root: Path) -> None:
    taken = Taken(root)
    taken.place.mkdir()
    asyncio.run(recordings.record(taken.file, (100, 30), taken.place, taken.take, pace=0.005, streams=True))
    began, recording = time.monotonic(), read_recording(taken.file)
    stage, moment, watched = Stage(recording), 0.0, dict[str, str]()
    for name, at in recording.marks.items():
        while moment < at:
            moment = min(at, moment + 0.7)
            assert stage.play_to(moment)
            stage.strips()
        watched[name] = stage.text()
    stage.close()
    different = [name for name, text in watched.items() if recordings.without_clocks(text) != taken.seen[name]]
    if text_at(recording, recording.marks["detail"]) != watched["detail"]:
        different.append("detail, jumped to")
    print(f"{len(watched)} moments, {time.monotonic() - began:.1f} s; different: {different or 'none'}")
    sys.exit(bool(different))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="live-replay-") as directory:
        main(Path(directory))
