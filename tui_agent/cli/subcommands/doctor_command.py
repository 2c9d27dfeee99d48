"""`tui-agent doctor`: shows what works here."""

from pathlib import Path

import click

from tui_agent.cli.installation_checks import examine, findings_text, probe_findings
from tui_agent.cli.process.controlling_terminal import say


@click.command()
@click.option("--probe", is_flag=True, help="Also ask the usual ports of this machine for model servers.")
def doctor(probe: bool) -> int:
    """Check what works here. The exit code is 1 if the agent cannot run."""
    findings = list(examine(Path.cwd()))
    if probe:
        findings += probe_findings()
    say(findings_text(findings))
    if any(finding.state == "bad" for finding in findings):
        say("\nThe agent cannot run a model with this. `tui-agent --demo` works without a key or network.")
        return 1
    return 0
