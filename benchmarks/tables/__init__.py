"""Public tables: regression with fixed splits, causal effects, times to an event."""
