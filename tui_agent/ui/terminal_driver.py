"""The terminal as it is left and taken again: Textual's driver, but for the moments in which it is not ours.

Textual starts anew on every `SIGCONT`, also where it was never suspended: then it takes its own settings for those the
terminal had before, and never puts back the person's. Told to end while it sleeps, it would first take a terminal
that belongs to the shell by then, which stops it again.
"""

from textual.drivers.linux_driver import LinuxDriver


class TerminalDriver(LinuxDriver):
    """Touches the terminal only while it is its own."""

    asleep = False
    """Whether the terminal was given back, to the shell or to an editor."""
    leaving = False
    """Whether the program ends: then a terminal that was given back is not taken again."""

    def suspend_application_mode(self) -> None:
        """Gives the terminal back."""
        if not self.asleep:
            super().suspend_application_mode()
            self.asleep = True

    def resume_application_mode(self) -> None:
        """Takes the terminal again, if it was given back and there is something to come."""
        if self.asleep and not self.leaving:
            # In the background this stops, and goes on inside of itself when the shell lets it.
            super().resume_application_mode()
            self.asleep = False

    def stop_application_mode(self) -> None:
        """Puts the terminal back to what it was."""
        if not self.asleep:
            super().stop_application_mode()

    def disable_input(self) -> None:
        """Hears no keys any more."""
        if not self.asleep:
            super().disable_input()

    def write(self, data: str) -> None:
        """Draws; nobody would take it any more where the terminal was given back for good."""
        if not (self.asleep and self.leaving):
            super().write(data)
