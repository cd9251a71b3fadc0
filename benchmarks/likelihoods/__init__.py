"""Forests under other likelihoods than the Normal: `cases`, `run`, and the table (`__main__`)."""
