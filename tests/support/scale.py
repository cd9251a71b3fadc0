"""How many times over the reliability tests repeat: 1 in the ordinary run, more by choice."""

import os


def scaled(n: int) -> int:
    """``n`` repetitions times ``PYMC_TREES_RELIABILITY_SCALE`` (default 1)."""
    return n * int(os.environ.get("PYMC_TREES_RELIABILITY_SCALE", "1"))
