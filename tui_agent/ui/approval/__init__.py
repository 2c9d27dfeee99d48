"""The approval dialog and the queue of open approval requests."""
