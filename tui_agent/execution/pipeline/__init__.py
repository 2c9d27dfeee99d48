"""The stages of one call: received, admitted, approved, run and finished."""
