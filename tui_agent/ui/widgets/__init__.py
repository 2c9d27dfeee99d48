"""The parts of a screen; each changes through `apply(envelope)` or through what a person does, and in no other way."""
