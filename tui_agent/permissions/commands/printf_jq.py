"""Commands with a small language in their arguments: programs of `jq`, `yq` and `printf` that only print."""

import re
from collections.abc import Sequence

from .argv import is_known
from .reads import Reads

_PRINTF = re.compile(r"(?:[^%]|%%|%[-#0 +']*[\d*]*(?:\.[\d*]*)?(?:\([^)]*\)T|[sbqdiouxXcfeEgG]))*\Z", re.DOTALL)
_JQ_WORDS = re.compile(r"\b(?:import|include|env|ENV|modulemeta|get_search_list)\b")
_YQ_WORDS = re.compile(r"\b(?:import|include|\w*env\w*|ENV|\w*load\w*|\w*eval\w*|\w*system\w*)\b")


def printf_reads(words: Sequence[str]) -> Reads | None:
    """Judge `printf FORMAT …`. `-v` and `%n` set variables, and the subscript of such a variable can run commands."""
    rest = words[2:] if len(words) > 1 and words[1] == "--" else words[1:]
    if not rest or not is_known(rest[0]) or rest[0].startswith("-"):
        return None
    return Reads() if _PRINTF.match(rest[0]) else None


def is_plain_jq(program: str) -> bool:
    """True if a `jq` program reads no modules and no environment."""
    return not _JQ_WORDS.search(program)


def is_plain_yq(program: str) -> bool:
    """True if a program for either of the two `yq`s reads no other file and no environment and runs nothing."""
    return not _YQ_WORDS.search(program)
