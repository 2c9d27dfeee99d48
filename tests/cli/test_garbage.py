"""Searches for garbage are short while the program works."""

import subprocess
import sys

GROWING = """
import gc
from tui_agent.cli.process.process_setup import begin_start, collect_at_rest, end_start

begin_start()
end_start()
searched = []
def note(phase, info):
    if phase == "start":
        searched.append(sum(len(gc.get_objects(age)) for age in range(info["generation"] + 1)))
gc.callbacks.append(note)
kept = [[number] for number in range(200_000)]
print(max(searched))
collect_at_rest()
print(max(searched) > len(kept))
"""


def test_no_search_while_many_objects_are_made_looks_through_more_than_a_few_of_them() -> None:
    result = subprocess.run([sys.executable, "-c", GROWING], capture_output=True, text=True, check=True)

    most, found_at_rest = result.stdout.split()
    assert int(most) < 40_000
    assert found_at_rest == "True"
