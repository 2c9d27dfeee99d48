"""The way of one call: received, admitted, approved, run and finished."""
