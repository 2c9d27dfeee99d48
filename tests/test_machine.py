"""Programs that the tests need; look here first if many tests fail."""

import shutil

from tests.support.table import table

PROGRAMS = {
    "bash": "bash", "git": "git", "cat": "coreutils", "diff": "diffutils", "find": "findutils", "grep": "grep",
    "gzip": "gzip", "awk": "mawk", "sed": "sed", "tar": "tar", "setsid": "util-linux", "xargs": "findutils",
}  # fmt: skip
"""Programs that commands in tests run, with the Debian package: beside git, all are on every Debian."""


@table("name", PROGRAMS)
def test_programs_used_by_the_tests_are_installed(name: str) -> None:
    assert shutil.which(name) is not None, f"the tests need {name}: install {PROGRAMS[name]}"
