"""The headless front end: print mode with text, json or a stream of events as output, and plain mode.

```python
options = HeadlessOptions(read_prompt(argument), "stream-json")
async with Workbench.open(launch_options, watched=options.interactive) as bench:
    code = await run_headless(bench, options)
```
"""

from .exit_codes import ExitCode, code_of
from .plain_mode_output import Describe
from .print_run import HeadlessOptions, StandardStreams, read_prompt, run_headless
from .reporters import describe_briefly

__all__ = [
    "Describe",
    "ExitCode",
    "HeadlessOptions",
    "StandardStreams",
    "code_of",
    "describe_briefly",
    "read_prompt",
    "run_headless",
]
