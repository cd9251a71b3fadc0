"""Numbers that stand for what is no number in the cells of X and in rules (`mixed`)."""

import sys

MISSING = -(2.0**900)
"""Code of a missing cell in X; finite, so columns can be summed."""
MAX_CUT = sys.float_info.max
"""Cut above every cell; its negative is below every cell."""
MAX_LEVELS = 50
LEFT, SET = 1, 2
"""Parts of ``rule_kind``: missing rows go left; the cut is a set of levels."""
